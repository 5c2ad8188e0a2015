package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// OpenedBySupport records that support has looked at the user, at most once an hour for each agent, who is the actor.
type OpenedBySupport struct{}

// EventType implements event.Fact.
func (OpenedBySupport) EventType() event.Type { return "sign_in.opened_by_support.v1" }

// Since implements event.Gated: nodes of before could not fold it.
func (OpenedBySupport) Since() int { return 6 }

// Apply implements event.Fact.
func (OpenedBySupport) Apply(*SignIns) {}

const (
	openedAgain  = time.Hour   // for so long the same agent and person are not recorded again
	openingWait  = time.Second // that a read waits for its record
	openingRetry = time.Second
	openingsKept = 10_000 // records that wait, and that are known to be there
	openingsStop = 5 * time.Second
)

// Openings records whom support looks at. A read waits a moment for its record, but does not fail without it: what
// could not be stored is tried again until it is. What waits is lost only with the process. Nobody but support waits.
type Openings struct {
	store event.Store
	clock func() time.Time
	log   *slog.Logger
	wake  chan struct{}

	mu      sync.Mutex
	known   map[opened]time.Time // when it was recorded, or began to wait
	waiting []*unrecorded
}

// opened is who has looked at whom.
type opened struct{ agent, userID string }

// unrecorded is one that is not recorded yet.
type unrecorded struct {
	opened
	requestID string
	done      chan struct{}
}

// NewOpenings makes Openings. Run stores what they are told.
func NewOpenings(store event.Store, clock func() time.Time, log *slog.Logger) *Openings {
	return &Openings{store: store, clock: clock, log: log, wake: make(chan struct{}, 1), known: map[opened]time.Time{}}
}

// Note records that the caller, who is support, has read a user.
func (o *Openings) Note(ctx context.Context, permit access.Permit, userID string) {
	next := o.add(&unrecorded{opened: opened{permit.Origin().Actor, userID}, requestID: permit.Origin().RequestID,
		done: make(chan struct{})})
	if next == nil {
		return
	}
	timer := time.NewTimer(openingWait)
	defer timer.Stop()
	select {
	case <-next.done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// add lets one wait; nil where it is known already.
func (o *Openings) add(next *unrecorded) *unrecorded {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock()
	if at, known := o.known[next.opened]; known && now.Before(at.Add(openedAgain)) {
		return nil
	}
	if len(o.waiting) >= openingsKept {
		o.log.Error("support has opened a user, and this could not be recorded: the database takes no changes",
			"agent", next.agent, "user", next.userID)
		return nil
	}
	if len(o.known) >= openingsKept {
		clear(o.known) // the rows know
	}
	o.known[next.opened] = now
	o.waiting = append(o.waiting, next)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return next
}

// Run stores what waits until ctx ends, and then once more.
func (o *Openings) Run(ctx context.Context) {
	failing := false
	for {
		select {
		case <-o.wake:
		case <-ctx.Done():
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), openingsStop)
			defer cancel()
			if err := o.flush(within); err != nil {
				o.log.Error("not everything could be recorded that support has opened", "error", err)
			}
			return
		}
		err := o.flush(ctx)
		if err != nil && ctx.Err() == nil {
			if !failing {
				o.log.Warn("recording what support opens failed: the server retries", "error", err)
			}
			select {
			case <-time.After(openingRetry):
			case <-ctx.Done():
			}
			select {
			case o.wake <- struct{}{}:
			default:
			}
		}
		failing = err != nil
	}
}

// flush stores what waits. What fails waits on, and so does what comes after it.
func (o *Openings) flush(ctx context.Context) error {
	for {
		o.mu.Lock()
		if len(o.waiting) == 0 {
			o.mu.Unlock()
			return nil
		}
		next := o.waiting[0]
		o.mu.Unlock()
		var at time.Time
		err := errs.Guarded(func() (err error) { at, err = o.record(ctx, next); return err })
		if _, bug := errors.AsType[*errs.Panicked](err); err != nil && !bug {
			return err
		}
		o.mu.Lock()
		o.waiting = o.waiting[1:] // only this function takes from it
		if _, known := o.known[next.opened]; known && err == nil {
			o.known[next.opened] = at // another node may have recorded it long before this one heard of it
		}
		o.mu.Unlock()
		close(next.done)
		if err != nil {
			o.log.Error("support has opened a user, and this could not be recorded", "agent", next.agent,
				"user", next.userID, "error", err)
		}
	}
}

// record stores one, unless another node has within the hour, and tells when it was recorded.
func (o *Openings) record(ctx context.Context, next *unrecorded) (at time.Time, err error) {
	row := event.RowKey{Table: event.Throttle, Key: "opened_by_support/" + next.agent + "/" + next.userID}
	err = o.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: next.agent, RequestID: next.requestID},
		Write:  []event.Ref{Kind.Ref(IDFor(next.userID))},
		Read:   []event.Ref{userRef(next.userID)},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			known, err := tx.Row(row)
			if err != nil {
				return err
			}
			if known != nil {
				at = event.Time(known.Expires).Add(-openedAgain)
				return nil
			}
			at = event.Time(tx.Now())
			tx.PutRow(event.Row{RowKey: row, Value: []byte{1}, Expires: event.Micros(at.Add(openedAgain))})
			return record(tx, next.userID, OpenedBySupport{})
		},
	})
	return at, err
}
