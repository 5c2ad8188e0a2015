package event

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/signet-idm/signet/internal/base/secret"
)

// Log is a store whose events others follow as they come.
type Log interface {
	Store
	// Position is that of the last event that is on the disk; 0 when there is none. Events gives none behind it.
	Position(ctx context.Context) (int64, error)
	// Written returns a channel that is closed when this node has written an event after the call. It does not report
	// the events of other nodes: a follower of the log has to look for them now and then.
	Written() <-chan struct{}
}

// EventQuery asks for a page of events. What is left empty does not matter.
type EventQuery struct {
	Org      string
	Objects  []string
	Actor    string
	Types    []Type // one of these,
	Kinds    []Kind // or of one of these kinds
	Except   Kind   // not of this kind
	From, To int64  // microseconds; To is not included

	OldestFirst bool  // else the newest first
	After       int64 // behind this position, in that order; 0: from the beginning
	Limit       int
}

// EventPage is a part of the events that a query is about, in its order. It may hold fewer than asked for, or none, and
// still be followed by another: a query looks at a bounded number of events.
type EventPage struct {
	Events []Event
	Next   int64 // what to go on after; 0: this was the last page
}

// Matches tells whether an event is one that the query is about, wherever it stands.
func (q *EventQuery) Matches(e *Event) bool {
	return (q.Org == "" || q.Org == e.Org) &&
		(len(q.Objects) == 0 || slices.Contains(q.Objects, e.ObjectID)) &&
		(q.Actor == "" || q.Actor == e.Actor) &&
		(len(q.Types)+len(q.Kinds) == 0 || slices.Contains(q.Types, e.Type) ||
			slices.Contains(q.Kinds, e.Type.Kind())) &&
		(q.Except == "" || q.Except != e.Type.Kind()) &&
		(q.From == 0 || e.Time >= q.From) && (q.To == 0 || e.Time < q.To)
}

// Personal opens the personal part of an event that was read from the log: nil where it has none, and where its key was
// destroyed, for the person was erased.
func Personal(ctx context.Context, r Reader, root secret.MasterKey,
	e *Event) (personal []byte, erased bool, err error) {
	if e.Sealed == nil {
		return nil, false, nil
	}
	row, err := r.Row(ctx, RowKey{Table: Keys, Key: e.KeyID})
	if err != nil || row == nil {
		return nil, err == nil, err
	}
	key, err := root.UnwrapDataKey(row.Value, e.KeyID)
	if err != nil {
		return nil, false, fmt.Errorf("event %d: %w", e.Position, err)
	}
	if personal, err = key.Open(e.Sealed, e.sealContext()); err != nil {
		return nil, false, fmt.Errorf("event %d: %w", e.Position, err)
	}
	return personal, false, nil
}

// FactOf opens an event that was read from the log. The personal part is missing where the person was erased.
func (k *Objects[S]) FactOf(ctx context.Context, r Reader, root secret.MasterKey, e *Event) (Fact[S], error) {
	personal, _, err := Personal(ctx, r, root, e)
	if err != nil {
		return nil, err
	}
	return k.Decode(e.Type, e.Payload, personal)
}

// Bell wakes the goroutines that wait for the next event. Ringing it costs next to nothing while none waits.
type Bell struct {
	mu      sync.Mutex
	waiting chan struct{} // nil: nobody waits
}

// Next gives a channel that is closed by the next ring.
func (b *Bell) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

// Ring wakes them.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
