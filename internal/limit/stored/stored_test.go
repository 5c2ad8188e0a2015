package stored

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// Nodes of the previous version read the same rows.
func TestACounterIsAPlainRowThatExpires(t *testing.T) {
	s := eventtest.New(t)
	c := At[Window]("key")
	do := func(decide func(tx *event.Tx) error) {
		t.Helper()
		command := event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{c.Row}, Decide: decide}
		if err := s.Do(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want ...int64) {
		t.Helper()
		do(func(tx *event.Tx) error {
			got, err := c.Get(tx)
			if !slices.Equal(got, want) {
				t.Errorf("the counter holds %v, not %v", got, want)
			}
			return err
		})
	}
	holds()
	do(func(tx *event.Tx) error { c.Put(tx, Window{1, 2}, time.Hour); return nil })
	holds(1, 2)
	row, err := s.Row(t.Context(), event.RowKey{Table: event.Throttle, Key: "key"})
	if err != nil || row == nil || string(row.Value) != "[1,2]" {
		t.Errorf("the row is %+v, %v", row, err)
	}
	s.Advance(time.Hour)
	holds()
	do(func(tx *event.Tx) error { c.Put(tx, Window{3}, time.Hour); return nil })
	do(func(tx *event.Tx) error { c.Drop(tx); return nil })
	holds()
	s.GivenRow(event.Row{RowKey: c.Row, Value: json.RawMessage(`[4]`)})
	holds(4)
}

func TestTheKeyOfACounterTellsNothing(t *testing.T) {
	master := secret.NewMasterKey()
	a, b := Of[int](master, "purpose", "ab", "c"), Of[int](master, "purpose", "a", "bc")
	same, other := Of[int](master, "purpose", "ab", "c"), Of[int](master, "other", "ab", "c")
	if a == b || a == other || a != same || len(a.Row.Key) != 64 {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestAWindowTellsHowLongToWait(t *testing.T) {
	second := time.Second.Microseconds()
	for _, c := range []struct {
		name string
		in   Window
		now  int64
		most int
		left int
		wait time.Duration
	}{
		{"empty", nil, 100, 1, 0, 0},
		{"one of two", Window{100}, 100, 2, 1, 0},
		{"full", Window{100, 200}, 200, 2, 2, time.Second - 100*time.Microsecond},
		{"more than full", Window{100, 200, 300}, 300, 2, 3, time.Second - 100*time.Microsecond},
		{"the last moment of the first", Window{100, 200}, 99 + second, 2, 2, time.Microsecond},
		{"the first is over", Window{100, 200}, 100 + second, 2, 1, 0},
		{"all are over", Window{100, 200}, 200 + second, 1, 0, 0},
	} {
		w := slices.Clone(c.in).Since(c.now, time.Second)
		if wait := w.Wait(c.now, c.most, time.Second); len(w) != c.left || wait != c.wait {
			t.Errorf("%s: %v, wait %v", c.name, w, wait)
		}
	}
}
