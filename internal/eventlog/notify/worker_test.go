package notify

import (
	"context"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

// countingLog counts how often a row is read.
type countingLog struct {
	event.Log
	rows int
}

func (c *countingLog) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	c.rows++
	return c.Log.Row(ctx, key)
}

// Many workers wait for leases that other nodes hold: they look now and then, and when the lease is over.
func TestALeaseThatAnotherNodeHoldsIsLookedAtNowAndThen(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := &countingLog{Log: w.Open(t)}
		r := w.runner(s, newSeen().follower())
		must(t, r.Begin(t.Context()))
		other := &Lease{Store: s, Row: rowOf("test"), Node: "nod_other", Life: 7 * time.Second}
		_, err := other.Acquire(t.Context())
		must(t, err)
		worker := r.worker(r.Followers[0])
		worker.Rules.Peek = 5 * time.Second
		for _, c := range []struct {
			after time.Duration
			looks int
			holds bool
		}{
			{0, 1, false},
			{0, 0, false},
			{5*time.Second - time.Microsecond, 0, false},
			{time.Microsecond, 1, false},
			{2*time.Second - time.Microsecond, 0, false},
			{time.Microsecond, 1, true}, // at its end, which comes before the next time to look
		} {
			s.rows = 0
			w.Clock.Advance(c.after)
			work(t, worker)
			if s.rows != c.looks || (worker.queue != nil) != c.holds {
				t.Errorf("after another %v it was looked at %d times, and is held: %t", c.after, s.rows,
					worker.queue != nil)
			}
		}
	})
}
