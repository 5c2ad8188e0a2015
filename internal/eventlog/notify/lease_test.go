package notify

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

func TestALeaseIsHeldByOneNodeAtATime(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		key := event.RowKey{Table: event.Deliveries, Key: "beside"}
		one := &Lease{Store: s, Row: rowOf("test"), Node: "nod_1", Life: time.Minute}
		two := &Lease{Store: s, Row: rowOf("test"), Node: "nod_2", Life: time.Minute}
		until := func() int64 { return event.Micros(w.Clock.Now().Add(time.Minute)) }
		is := func(what string, p *Progress, err error, want *Progress) {
			t.Helper()
			must(t, err)
			if (p == nil) != (want == nil) ||
				p != nil && (p.Node != want.Node || p.Until != want.Until || p.Position != want.Position) {
				t.Errorf("%s: %+v, want %+v", what, p, want)
			}
		}
		peek := func(l *Lease, want int64) {
			t.Helper()
			if got, err := l.Peek(t.Context(), event.Micros(w.Clock.Now())); err != nil || got != want {
				t.Errorf("held by another until %d, want %d, %v", got, want, err)
			}
		}
		beside := func() string {
			row, err := s.Row(t.Context(), key)
			must(t, err)
			if row == nil {
				return "none"
			}
			return string(row.Value)
		}
		p, err := one.Acquire(t.Context())
		is("without a row", p, err, nil)
		peek(one, 0)
		must(t, w.runner(s, Follower{Name: "test"}).Begin(t.Context()))

		p, err = one.Acquire(t.Context())
		is("one acquires it", p, err, &Progress{Node: "nod_1", Until: until()})
		peek(one, 0)
		peek(two, until())
		p, err = two.Acquire(t.Context())
		is("another does not", p, err, nil)
		p, err = two.Renew(t.Context(), Progress{Position: 7}, []event.Row{{RowKey: key, Value: []byte("two")}})
		is("nor renews it", p, err, nil)
		p, err = two.Release(t.Context(), Progress{Position: 7}, []event.Row{{RowKey: key, Value: []byte("two")}})
		is("nor releases it", p, err, nil)

		w.Clock.Advance(time.Minute - time.Second)
		p, err = one.Renew(t.Context(), Progress{Position: 8}, []event.Row{{RowKey: key, Value: []byte("one")}})
		is("one renews it", p, err, &Progress{Node: "nod_1", Until: until(), Position: 8})
		if beside() != "one" {
			t.Errorf("beside it stands %s", beside())
		}
		w.Clock.Advance(time.Minute - time.Second)
		p, err = two.Acquire(t.Context())
		is("it is not over", p, err, nil)
		w.Clock.Advance(time.Second)
		peek(two, 0)
		p, err = two.Acquire(t.Context())
		is("it is over", p, err, &Progress{Node: "nod_2", Until: until(), Position: 8})
		p, err = one.Renew(t.Context(), Progress{Position: 9}, []event.Row{{RowKey: key}})
		is("one has lost it", p, err, nil)
		if beside() != "one" {
			t.Errorf("beside it stands %s", beside())
		}

		p, err = two.Release(t.Context(), Progress{Position: 10}, []event.Row{{RowKey: key}})
		is("two gives it back", p, err, &Progress{Position: 10})
		if beside() != "none" {
			t.Errorf("beside it stands %s", beside())
		}
		p, err = one.Acquire(t.Context())
		is("one goes on at once", p, err, &Progress{Node: "nod_1", Until: until(), Position: 10})
	})
}
