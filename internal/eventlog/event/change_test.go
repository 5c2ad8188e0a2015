package event

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
)

// running is a store that has nothing but a batch.
type running struct {
	Store
	batch *Batch
}

func (r running) Do(_ context.Context, c Command) error { return r.batch.Run(&c) }

func TestAChangeIsJudgedInOneOrder(t *testing.T) {
	unknown, forbidden, wrong := errors.New("unknown"), errors.New("forbidden"), errors.New("wrong state")
	moved := errs.New(errs.Aborted, SequenceMismatch, "")
	for _, c := range []struct {
		name      string
		id        string
		forbidden bool
		state     error
		sequence  uint64
		want      error
	}{
		{"everything is wrong", "thg_x", true, wrong, 6, unknown},
		{"all but that there is one", "thg_1", true, wrong, 6, forbidden},
		{"state and sequence", "thg_1", false, wrong, 6, wrong},
		{"the sequence", "thg_1", false, nil, 6, moved},
		{"the sequence that it has afterwards", "thg_1", false, nil, 8, moved},
		{"nothing", "thg_1", false, nil, 7, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBatch(&Record{Ref: things.Ref("thg_1"), Org: "org_1", Sequence: 7, Doc: []byte(`{"name":"a"}`)})
			target := Target[thing]{
				Kind:   things,
				ID:     c.id,
				Origin: Origin{Actor: "usr_1"},
				Reach: func(o *Object[thing]) error {
					if o == nil {
						return unknown
					}
					return nil
				},
			}.And(func(*thing) error {
				if c.forbidden {
					return forbidden
				}
				return nil
			}).Needs(Command{Rows: []RowKey{{Secrets, "k"}}})
			details, err := target.Change(t.Context(), running{batch: b}, IfMatch{Set: true, Sequence: c.sequence},
				func(tx *Tx, o *Object[thing]) error {
					tx.DropRow(RowKey{Secrets, "k"})
					if err := o.Append(bumped{}); err != nil {
						return err
					}
					return c.state
				})
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if changes := b.Changes(); changes.Empty() != (c.want != nil) {
				t.Errorf("changes: %+v", changes)
			}
			if want := (Details{Sequence: 8, Changed: Time(1000), Created: Time(0), Org: "org_1"}); c.want == nil &&
				details != want || c.want != nil && details != (Details{}) {
				t.Errorf("details: %+v", details)
			}
			if c.want == nil && b.Changes().Events[0].Actor != "usr_1" {
				t.Error("nobody did it")
			}
		})
	}
}

// A command that finds out only when it decides what else it has to write is run again with that, and nothing of the
// first run counts.
func TestACommandAsksForMore(t *testing.T) {
	record := func(id string) *Record {
		return &Record{Ref: things.Ref(id), Org: "org_1", Sequence: 7, Doc: []byte(`{"name":"a"}`)}
	}
	b := newBatch(record("thg_1"), record("thg_2"))
	runs := 0
	target := Target[thing]{Kind: things, ID: "thg_1", Origin: Origin{Actor: "usr_1"},
		Reach: func(*Object[thing]) error { return nil }}.
		Needs(Command{Read: []Ref{things.Ref("thg_2")}}).
		Then(func(tx *Tx, o *Object[thing]) error {
			if runs++; len(o.Appended()) != 1 {
				t.Errorf("appended %v", o.Appended())
			}
			if err := tx.Require(Command{Write: []Ref{things.Ref("thg_2")},
				Rows: []RowKey{{Throttle, "k"}}}); err != nil {
				return err
			}
			if _, err := tx.Row(RowKey{Throttle, "k"}); err != nil {
				return err
			}
			other, err := things.Get(tx, "thg_2")
			if err != nil {
				return err
			}
			return other.Append(bumped{})
		})
	details, err := target.Change(t.Context(), running{batch: b}, IfMatch{},
		func(_ *Tx, o *Object[thing]) error { return o.Append(bumped{}) })
	if err != nil || details.Sequence != 8 || runs != 2 || len(b.Changes().Events) != 2 {
		t.Errorf("%v, %+v, %d runs, %d events", err, details, runs, len(b.Changes().Events))
	}
	// One that never has enough ends.
	_, err = Target[thing]{Kind: things, ID: "thg_1", Origin: Origin{Actor: "usr_1"},
		Reach: func(*Object[thing]) error { return nil }}.
		Change(t.Context(), running{batch: b}, IfMatch{}, func(tx *Tx, _ *Object[thing]) error {
			runs++
			return tx.Require(Command{Rows: []RowKey{{Throttle, string(rune('a' + runs))}}})
		})
	if !errors.Is(err, errContention) {
		t.Errorf("got %v", err)
	}
}

// Whatever a command follows is declared before it sees it, whether it has a reference or looks for one.
func TestACommandFollowsReferences(t *testing.T) {
	claim := Claim{"thing", "a"}
	var seen []string
	s := seeing{running{batch: newBatch(&Record{Ref: things.Ref("thg_2"), Org: "org_1", Sequence: 7,
		Doc: []byte(`{"name":"a"}`)})}, &seen}
	looked := ""
	err := Do(t.Context(), s, Command{Write: []Ref{things.Ref("thg_1")}, Decide: func(tx *Tx) error {
		if err := tx.Require(Command{Claims: []Claim{claim}}); err != nil {
			return err
		}
		if _, err := tx.Holder(claim); err != nil {
			return err
		}
		if looked == "" {
			return Look(func(context.Context) (Command, error) {
				looked = "thg_2"
				return Command{Read: []Ref{things.Ref(looked)}}, nil
			})
		}
		if o, err := things.Get(tx, looked); err != nil || o == nil {
			t.Errorf("%v, %v", o, err)
		}
		if o, err := things.Follow(tx, "thg_3"); err != nil || o != nil {
			return err
		}
		o, err := things.FollowToWrite(tx, looked)
		if err != nil {
			return err
		}
		return o.Append(bumped{})
	}})
	// The claim, what was looked for, what is only read, what is written: each is asked for once.
	if want := "[1 false 1 false 1 false 1 false 2 false]"; err != nil || fmt.Sprint(seen) != want ||
		len(s.batch.Changes().Events) != 1 {
		t.Errorf("%v, %v, %+v", err, seen, s.batch.Changes().Events)
	}
	gone := errors.New("gone")
	err = Do(t.Context(), s, Command{Decide: func(*Tx) error {
		return Look(func(context.Context) (Command, error) { return Command{}, gone })
	}})
	if !errors.Is(err, gone) {
		t.Errorf("a look that fails: %v", err)
	}
}

// noted is a LongQueue that says what happens.
type noted struct {
	steps   *[]string
	refuses error
}

func (n noted) EnterLong(context.Context) error {
	*n.steps = append(*n.steps, "enter")
	return n.refuses
}
func (n noted) LeaveLong() { *n.steps = append(*n.steps, "leave") }

// seeing is a store that says which commands may be long.
type seeing struct {
	running
	steps *[]string
}

func (s seeing) Do(ctx context.Context, c Command) error {
	*s.steps = append(*s.steps, fmt.Sprint(c.Objects(), " ", MayWriteMany(ctx)))
	return s.running.Do(ctx, c)
}

// A command that finds out when it decides that it writes many objects waits in the queue for long ones before it runs
// again, if there is one, and leaves it in the end.
func TestACommandThatTurnsOutToBeLongWaitsForItsTurn(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]struct {
		more    int
		with    func(context.Context, noted) context.Context
		refuses error
		want    string
	}{
		"few": {MaxObjects - 1,
			func(ctx context.Context, n noted) context.Context { return WithLongQueue(ctx, n) }, nil,
			"[1 false 32 false 32 false]"},
		"many": {MaxObjects,
			func(ctx context.Context, n noted) context.Context { return WithLongQueue(ctx, n) }, nil,
			"[1 false enter 33 true 33 true leave]"},
		"no queue": {MaxObjects, func(ctx context.Context, _ noted) context.Context { return ctx }, nil,
			"[1 false 33 true 33 true]"},
		"has one already": {MaxObjects,
			func(ctx context.Context, n noted) context.Context { return WritesMany(WithLongQueue(ctx, n)) }, nil,
			"[1 true 33 true 33 true]"},
		"is refused": {MaxObjects,
			func(ctx context.Context, n noted) context.Context { return WithLongQueue(ctx, n) }, full,
			"[1 false enter]"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []string
			var more Command
			records := []*Record{{Ref: things.Ref("thg_0"), Org: "org_1", Sequence: 7, Doc: []byte(`{"name":"a"}`)}}
			for i := range c.more {
				more.Write = append(more.Write, things.Ref(fmt.Sprint("thg_", i+1)))
				more.Rows = append(more.Rows, RowKey{Throttle, fmt.Sprint(i)})
			}
			err := Do(c.with(t.Context(), noted{&steps, c.refuses}),
				seeing{running{batch: newBatch(records...)}, &steps}, Command{
					Write: []Ref{things.Ref("thg_0")},
					Decide: func(tx *Tx) error {
						if err := tx.Require(more); err != nil {
							return err
						}
						return tx.Require(Command{Rows: []RowKey{{Throttle, "another"}}})
					},
				})
			if got := fmt.Sprint(steps); !errors.Is(err, c.refuses) || got != c.want {
				t.Errorf("%v, %v", err, got)
			}
		})
	}
}
