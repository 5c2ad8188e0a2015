package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine/silence"
)

// A batch whose objects this node remembers, and that needs nothing else, decides without asking PostgreSQL first: one
// round trip less, and no lock before that of the UPDATE. That the objects still stand where they stood is checked in
// the transaction that writes, also for those on which a refusal rests. Otherwise the batch decides again, upon what
// PostgreSQL says, with locks.

// mayAssume tells whether a batch may go by what this node remembers. The writer's connection has committed a moment
// ago, and is still there: a dead one should be found by a question, and not by a COMMIT of which nobody knows whether it
// came through. And no other node has just changed the same objects: it may do so again, and everything would be decided
// twice.
func (e *pgEngine) mayAssume() bool {
	now := time.Now()
	return !e.pooled && e.conn != nil && !e.conn.IsClosed() && now.Sub(e.committed) < time.Second &&
		now.Sub(e.raceLost) > time.Second &&
		silence.Quiet(e.conn.PgConn().Conn())
}

var errNeedsLocks = errors.New("what is written beside the events needs the locks on objects without events")

// needsLocks tells that something is written beside events while an object that was declared for writing gets none. Then
// the lock alone keeps another node from changing the object in that moment: the UPDATE does not lock it, and the check
// sees only what was committed before.
func needsLocks(n *Needs, c *event.Changes) bool {
	// what else there is was declared, see Needs.Remembered
	if len(c.Claims)+len(c.Put)+len(c.Dropped)+len(c.Tokens) == 0 {
		return false
	}
	for kind, ids := range n.Write {
		for _, id := range ids {
			if !slices.ContainsFunc(c.Updated,
				func(r *event.Record) bool { return r.Ref == event.Ref{Kind: kind, ID: id} }) {
				return true
			}
		}
	}
	return false
}

const (
	// the hash of the last event, which has the whole history in it, and the form of the state
	stood       = "was_hash, was_shape"
	stillStands = "s.hash = v.was_hash AND s.shape = v.was_shape"
	// raiseUnlessAll divides by zero, and so stops the COMMIT behind it, unless there is a row for each of the ids.
	raiseUnlessAll = "1 / (CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END)"
)

// stood gives where the objects of one kind stood that these records are of: an array for each column of the constant.
func (k *pgKind) stood(records []*event.Record, loaded *event.Loaded) []any {
	var hashes [][]byte
	var shapes []int64
	for _, r := range records {
		if r.Kind == k.Name() {
			was := loaded.Records[r.Ref]
			hashes, shapes = append(hashes, was.Hash), append(shapes, int64(was.Shape))
		}
	}
	return []any{hashes, shapes}
}

// checkAssumed queues the checks of what was assumed, without what is updated: there the UPDATE checks it.
func (e *pgEngine) checkAssumed(b *pgx.Batch, updated []*event.Record) {
	checked := make(map[event.Ref]bool, len(updated))
	for _, r := range updated {
		checked[r.Ref] = true
	}
	for i := range e.kinds {
		k := &e.kinds[i]
		var ids []string
		var records []*event.Record
		for ref, r := range e.loaded.Records {
			if ref.Kind == k.Name() && !checked[ref] {
				ids, records = append(ids, ref.ID), append(records, r)
			}
		}
		if ids != nil {
			b.Queue(k.same, append([]any{ids}, k.stood(records, &e.loaded)...)...)
		}
	}
}
