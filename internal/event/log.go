package event

import (
	"context"
	"fmt"
	"sync"

	"github.com/signet-idm/signet/internal/secret"
)

// Log is a store whose events others follow as they come.
type Log interface {
	Store
	// Position is that of the last event; 0 when there is none.
	Position(ctx context.Context) (int64, error)
	// Written gives a channel that is closed when this node has written an event after the call. What other nodes write is
	// for whoever follows the log to look for now and then.
	Written() <-chan struct{}
}

// Personal opens the personal part of an event that was read from the log: nil where it has none, and where its key was
// destroyed, for the person was erased.
func Personal(ctx context.Context, r Reader, root secret.MasterKey, e *Event) (personal []byte, erased bool, err error) {
	if e.Sealed == nil {
		return nil, false, nil
	}
	row, err := r.Row(ctx, RowKey{Shelf: Keys, Key: e.KeyID})
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

// Bell wakes whoever waits for the next event. Where nobody waits, ringing it costs next to nothing.
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
