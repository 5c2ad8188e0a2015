package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const browser, other = "browser", "another browser"

func here(string) bool { return true }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// starts starts a trial.
func starts(t *testing.T, k Keeper, id string) {
	t.Helper()
	must(t, k.Start(t.Context(), &access.Caller{UserID: "usr_a"}, id,
		&Kept{Record: Record{UserID: "usr_a", Session: "ses_a"}}))
}

// approve is Approve in a command of its own.
func approve(ctx context.Context, k Keeper, id, browser, userID string) error {
	return k.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{Row(id)},
		Decide: func(tx *event.Tx) error {
			return k.Approve(tx, id, browser, userID, nil,
				func() (json.RawMessage, error) { return json.RawMessage(`{}`), nil })
		},
	})
}

// Every command looks by itself in which browser it is and how far the trial is, whatever was read before.
func TestATrialGoesOnOnlyInItsBrowserAndUntilItsEnd(t *testing.T) {
	noted := Step{Page: Password, Outcome: Failed}
	for _, way := range []struct {
		name string
		does func(ctx context.Context, k Keeper, browser string) error
	}{
		{"open", func(ctx context.Context, k Keeper, browser string) error {
			return k.Open(ctx, "try_a", browser, here)
		}},
		{"approve", func(ctx context.Context, k Keeper, browser string) error {
			return approve(ctx, k, "try_a", browser, "usr_a")
		}},
		{"refuse", func(ctx context.Context, k Keeper, browser string) error {
			return k.Refuse(ctx, "try_a", browser, Refusal{Error: "access_denied"}, Why{Because: SaidNo})
		}},
		{"note", func(ctx context.Context, k Keeper, browser string) error {
			return k.Note(ctx, "try_a", browser, noted.Page, noted.Outcome, noted.Why)
		}},
	} {
		for _, when := range []struct {
			name, browser string
			before        func(ctx context.Context, k Keeper) error
		}{
			{"in another browser", other, nil},
			{"in no browser", "", nil},
			{"after it was approved", browser,
				func(ctx context.Context, k Keeper) error { return approve(ctx, k, "try_a", browser, "usr_a") }},
			{"after it was refused", browser, func(ctx context.Context, k Keeper) error {
				return k.Refuse(ctx, "try_a", browser, Refusal{Error: "login_required"}, Why{Because: SaidNo})
			}},
		} {
			t.Run(way.name+" "+when.name, func(t *testing.T) {
				s := eventtest.New(t)
				k := Keeper{Store: s, Master: s.Master}
				starts(t, k, "try_a")
				must(t, k.Open(t.Context(), "try_a", browser, here))
				if when.before != nil {
					must(t, when.before(t.Context(), k))
				}
				before, err := k.Read(t.Context(), "try_a")
				must(t, err)
				if err := way.does(t.Context(), k, when.browser); !errors.Is(err, ErrNotFound) && way.name != "note" {
					t.Errorf("got %v", err)
				}
				after, err := k.Read(t.Context(), "try_a")
				must(t, err)
				if was, is := fmt.Sprint(before.State, before.Browser, before.Steps, before.Refusal),
					fmt.Sprint(after.State, after.Browser, after.Steps, after.Refusal); is != was {
					t.Errorf("it was %s, and now is %s", was, is)
				}
			})
		}
	}
}

func TestATrialIsOpenedInTheBrowserOfItsSession(t *testing.T) {
	s := eventtest.New(t)
	k := Keeper{Store: s, Master: s.Master}
	starts(t, k, "try_a")
	for name, open := range map[string]func() error{
		"without the session": func() error {
			return k.Open(t.Context(), "try_a", browser, func(id string) bool { return id != "ses_a" })
		},
		"in no browser":       func() error { return k.Open(t.Context(), "try_a", "", here) },
		"by another id":       func() error { return k.Open(t.Context(), "try_b", browser, here) },
		"before it is opened": func() error { return approve(t.Context(), k, "try_a", "", "usr_a") },
	} {
		if err := open(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, k.Open(t.Context(), "try_a", browser, here))
	must(t, k.Open(t.Context(), "try_a", browser, func(string) bool { return false })) // it goes on
}

// commands counts those that reach the store.
type commands struct {
	event.Store
	n int
}

func (c *commands) Do(ctx context.Context, command event.Command) error {
	c.n++
	return c.Store.Do(ctx, command)
}

func TestATrialThatIsNotThereCostsAStrangerNoCommand(t *testing.T) {
	s := eventtest.New(t)
	count := &commands{Store: s}
	if err := (Keeper{Store: count, Master: s.Master}).Open(t.Context(), "try_a", browser,
		here); !errors.Is(err, ErrNotFound) || count.n > 0 {
		t.Errorf("%v, with %d commands", err, count.n)
	}
}

func TestWhatIsKeptOfTrialsIsBounded(t *testing.T) {
	s := eventtest.New(t)
	k := Keeper{Store: s, Master: s.Master}
	caller := &access.Caller{UserID: "usr_a"}
	for i := range MaxOpen {
		starts(t, k, fmt.Sprint("try_", i))
	}
	one := func() error { return k.Start(t.Context(), caller, "try_more", &Kept{Record: Record{UserID: "usr_a"}}) }
	if err := one(); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	must(t, k.Start(t.Context(), caller, "try_b", &Kept{Record: Record{UserID: "usr_b"}})) // of somebody else

	must(t, k.Open(t.Context(), "try_0", browser, here))
	for range 2 * maxSteps {
		must(t, k.Note(t.Context(), "try_0", browser, Password, Failed, Why{Because: ByAnswer}))
	}
	s.Advance(Life - time.Minute)
	must(t, approve(t.Context(), k, "try_0", browser, "usr_a"))
	read, err := k.Read(t.Context(), "try_0")
	must(t, err)
	if last := read.Steps[len(read.Steps)-1]; len(read.Steps) != maxSteps+1 || last.Page != Result {
		t.Errorf("there are %d steps, the last one is %+v", len(read.Steps), last)
	}
	s.Advance(time.Minute)
	must(t, one()) // the others have expired
	for id, there := range map[string]bool{"try_0": true, "try_1": false} {
		if _, err := k.Read(t.Context(), id); (err == nil) != there {
			t.Errorf("%s: %v", id, err)
		}
	}
	s.Advance(Life - time.Minute)
	if _, err := k.Read(t.Context(), "try_0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a trial that nobody finished is kept: %v", err)
	}
}
