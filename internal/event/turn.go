package event

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Lease says whose turn it is to do something that one node at a time does. It is embedded in the document that says how far that has come.
type Lease struct {
	Node  string `json:"node,omitempty"`  // empty: nobody's
	Until int64  `json:"until,omitempty"` // then others may begin
}

func (l *Lease) lease() *Lease { return l }

// leased is a document with a Lease embedded.
type leased[P any] interface {
	*P
	lease() *Lease
}

// Turn is one node's part in work that one node at a time does. P is the document in the row of that work.
type Turn[P any, D leased[P]] struct {
	Store Store
	Row   RowKey
	Node  string        // this one, as the row names it
	Life  time.Duration // of the lease
}

// Look tells until when it is the turn of another node; 0: it is not. It costs less than Take.
func (t *Turn[P, D]) Look(ctx context.Context, now int64) (until int64, err error) {
	row, err := t.Store.Row(ctx, t.Row)
	if err != nil || row == nil {
		return 0, err
	}
	document, err := t.read(row)
	if err != nil || !t.isAnothers(document, now) {
		return 0, err
	}
	return document.lease().Until, nil
}

// Take makes it this node's turn, and gives what there is to go on from; nil where it is the turn of another, or there is no row.
func (t *Turn[P, D]) Take(ctx context.Context) (taken D, err error) {
	return t.write(ctx, func(tx *Tx, document D) D {
		if t.isAnothers(document, tx.Now()) {
			return nil
		}
		*document.lease() = t.renewed(tx)
		return document
	})
}

// Keep notes how far this node has come and renews its lease. It is false where another has taken over, or the row is gone: then
// nothing is written. also writes what belongs to it.
func (t *Turn[P, D]) Keep(ctx context.Context, document D, also ...func(*Tx)) (kept bool, err error) {
	return t.note(ctx, document, t.renewed, also)
}

// Leave is Keep that gives the turn away, for others not to wait for the end of the lease.
func (t *Turn[P, D]) Leave(ctx context.Context, document D, also ...func(*Tx)) (kept bool, err error) {
	return t.note(ctx, document, func(*Tx) Lease { return Lease{} }, also)
}

func (t *Turn[P, D]) note(ctx context.Context, document D, lease func(*Tx) Lease, also []func(*Tx)) (kept bool, err error) {
	next := *document // a command that ctx ends may still be decided, while the caller goes on
	noted, err := t.write(ctx, func(tx *Tx, stored D) D {
		if stored.lease().Node != t.Node {
			return nil
		}
		for _, write := range also {
			write(tx)
		}
		*stored = next
		*stored.lease() = lease(tx)
		return stored
	})
	if noted == nil {
		return false, err
	}
	*document = *noted
	return true, nil
}

// isAnothers tells whether it is the turn of another node. What this one took without learning of it is its own.
func (t *Turn[P, D]) isAnothers(document D, now int64) bool {
	l := document.lease()
	return l.Node != "" && l.Node != t.Node && now < l.Until
}

func (t *Turn[P, D]) renewed(tx *Tx) Lease {
	return Lease{Node: t.Node, Until: tx.Now() + t.Life.Microseconds()}
}

func (t *Turn[P, D]) read(row *Row) (D, error) {
	var document D = new(P)
	if err := json.Unmarshal(row.Value, document); err != nil {
		return nil, fmt.Errorf("the row %s: %w", row.Key, err)
	}
	return document, nil
}

// write replaces the document by what decide makes of it, and gives that; nil where decide does, or there is no row.
func (t *Turn[P, D]) write(ctx context.Context, decide func(*Tx, D) D) (D, error) {
	var written D
	err := t.Store.Do(ctx, Command{Origin: Origin{Actor: System}, Rows: []RowKey{t.Row}, Decide: func(tx *Tx) error {
		written = nil
		row, err := tx.Row(t.Row)
		if err != nil || row == nil {
			return err
		}
		document, err := t.read(row)
		if err != nil {
			return err
		}
		next := decide(tx, document)
		if next == nil {
			return nil
		}
		value, err := json.Marshal(next)
		if err != nil {
			return err
		}
		tx.PutRow(Row{RowKey: t.Row, Value: value})
		written = next
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return written, nil
}
