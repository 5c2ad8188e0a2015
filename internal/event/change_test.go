package event

import (
	"context"
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/errs"
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
			target := Target[thing]{Kind: things, ID: c.id, Origin: Origin{Actor: "usr_1"}, Reach: func(o *Object[thing]) error {
				if o == nil {
					return unknown
				}
				return nil
			}}.And(func(*thing) error {
				if c.forbidden {
					return forbidden
				}
				return nil
			}).Needs(Command{Rows: []RowKey{{Secrets, "k"}}})
			details, err := target.Change(t.Context(), running{batch: b}, IfMatch{Set: true, Sequence: c.sequence}, func(tx *Tx, o *Object[thing]) error {
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
			if want := (Details{Sequence: 8, Changed: Time(1000), Created: Time(0), Org: "org_1"}); c.want == nil && details != want || c.want != nil && details != (Details{}) {
				t.Errorf("details: %+v", details)
			}
			if c.want == nil && b.Changes().Events[0].Actor != "usr_1" {
				t.Error("nobody did it")
			}
		})
	}
}
