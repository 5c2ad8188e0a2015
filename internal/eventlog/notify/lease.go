package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Progress is the row of a worker: how far it has come, and which node works.
type Progress struct {
	Position int64    `json:"position"`          // up to here everything was sent, or is parked
	Begins   bool     `json:"begins,omitempty"`  // of a webhook: its own first event is still to come
	Parked   []Retry  `json:"held,omitempty"`    // of a follower: what is parked
	Failure  *Failure `json:"failure,omitempty"` // of a follower: the last one; nil: none
	Node     string   `json:"node,omitempty"`    // that holds the lease; empty: none
	Until    int64    `json:"until,omitempty"`   // then another node may acquire it
	// of a webhook: nothing is parked, and nobody works until an event behind Position is wanted
	Idle bool `json:"idle,omitempty"`
}

// Failure is when an event failed, and why.
type Failure struct {
	At      int64  `json:"at"`
	Problem string `json:"problem"`
}

// Read gives the row of a follower. One that has not begun has come nowhere.
func Read(ctx context.Context, r event.Reader, name string) (*Progress, error) {
	row, err := r.Row(ctx, rowOf(name))
	if err != nil || row == nil {
		return &Progress{}, err
	}
	return progressIn(row)
}

// Put writes the row.
func (p *Progress) Put(tx *event.Tx, row event.RowKey) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: row, Value: value})
	return nil
}

func progressIn(row *event.Row) (*Progress, error) {
	p := &Progress{}
	if err := json.Unmarshal(row.Value, p); err != nil {
		return nil, fmt.Errorf("the row %s: %w", row.Key, err)
	}
	return p, nil
}

// Lease lets one node at a time do the work that a row is about.
type Lease struct {
	Store event.Store
	Row   event.RowKey
	Node  string // this one, as the row names it
	Life  time.Duration
}

// Peek tells until when another node holds the lease; 0: none does. It costs less than Acquire.
func (l *Lease) Peek(ctx context.Context, now int64) (until int64, err error) {
	p, err := l.Read(ctx)
	if err != nil || p == nil || !l.isTaken(p, now) {
		return 0, err
	}
	return p.Until, nil
}

// Read gives the row; nil: there is none.
func (l *Lease) Read(ctx context.Context) (*Progress, error) {
	row, err := l.Store.Row(ctx, l.Row)
	if err != nil || row == nil {
		return nil, err
	}
	return progressIn(row)
}

// Acquire gives what there is to go on from; nil where another node holds the lease, or there is no row.
func (l *Lease) Acquire(ctx context.Context) (*Progress, error) { return l.acquire(ctx, 0) }

// acquire is Acquire of what may be idle: then nothing up to from was wanted.
func (l *Lease) acquire(ctx context.Context, from int64) (*Progress, error) {
	return l.update(ctx, func(tx *event.Tx, p *Progress) bool {
		if l.isTaken(p, tx.Now()) {
			return false
		}
		p.wake(from)
		p.Node, p.Until = l.Node, tx.Now()+l.Life.Microseconds()
		return true
	})
}

func (p *Progress) wake(from int64) {
	if p.Idle {
		p.Position, p.Idle = max(p.Position, from), false
	}
}

// Wake notes of what is idle that nothing up to from was wanted, and that this is not known of what comes behind it.
func (l *Lease) Wake(ctx context.Context, from int64) error {
	_, err := l.update(ctx, func(_ *event.Tx, p *Progress) bool {
		idle := p.Idle
		p.wake(from)
		return idle
	})
	return err
}

// Renew saves how far this node has come, and rows that go with it: without a value they are dropped. It gives what was
// saved; nil where another node has acquired the lease, or there is no row: then nothing is written.
func (l *Lease) Renew(ctx context.Context, p Progress, with []event.Row) (*Progress, error) {
	p.Node = l.Node
	return l.save(ctx, p, with)
}

// Release is Renew that gives the lease back, so that others need not wait for its end.
func (l *Lease) Release(ctx context.Context, p Progress, with []event.Row) (*Progress, error) {
	p.Node = ""
	return l.save(ctx, p, with)
}

func (l *Lease) save(ctx context.Context, p Progress, with []event.Row) (*Progress, error) {
	return l.update(ctx, func(tx *event.Tx, stored *Progress) bool {
		if stored.Node != l.Node {
			return false
		}
		for _, row := range with {
			if row.Value == nil {
				tx.DropRow(row.RowKey)
			} else {
				tx.PutRow(row)
			}
		}
		if *stored = p; p.Node != "" {
			stored.Until = tx.Now() + l.Life.Microseconds()
		}
		return true
	})
}

// isTaken tells whether another node holds the lease. What this one acquired without learning of it is its own.
func (l *Lease) isTaken(p *Progress, now int64) bool {
	return p.Node != "" && p.Node != l.Node && now < p.Until
}

// update replaces the row by what decide makes of it, and gives that; nil where decide refuses, or there is no row.
func (l *Lease) update(ctx context.Context, decide func(*event.Tx, *Progress) bool) (*Progress, error) {
	var updated *Progress
	err := l.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{l.Row},
		Decide: func(tx *event.Tx) error {
			updated = nil
			row, err := tx.Row(l.Row)
			if err != nil || row == nil {
				return err
			}
			p, err := progressIn(row)
			if err != nil || !decide(tx, p) {
				return err
			}
			updated = p
			return p.Put(tx, l.Row)
		},
	})
	if err != nil {
		return nil, err
	}
	return updated, nil
}
