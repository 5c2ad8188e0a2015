package journal

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// pace is how often things are done.
type pace struct {
	heartbeat time.Duration // a sign of life where nothing happens, and another look at whether the follower may
	poll      time.Duration // a look for what other nodes have written
	gather    time.Duration // to let events gather, so that a busy log is not read once for each
}

var usual = pace{heartbeat: 10 * time.Second, poll: time.Second, gather: event.Gather}

const (
	page      = 100       // how many events one query reads for a follower that is behind
	heldBytes = 256 << 10 // of events that are held while they are sent, about: there may be many slow readers
)

// Now is the place to follow from where only what happens from now on matters.
const Now = -1

// Follow sends the events behind a position as they happen, oldest first, until ctx ends or sending fails. With each
// comes the position to go on after. A sign of life without an event comes at once, and whenever nothing was sent for
// ten seconds.
//
// Before anything is sent, the credential and the permission are judged again. What they end with is an error, as is
// one of the store. Errors: InvalidArgument on cursor for a position that the log has not come to.
func (j *Journal) Follow(ctx context.Context, permit access.Permit, q Query, after int64,
	send func(e *Entry, position int64) error) error {
	if err := q.scope(permit); err != nil {
		return err
	}
	end, err := j.store.Position(ctx)
	switch {
	case err != nil:
		return err
	case after > end:
		return errs.Invalid(errs.Violation{Field: "cursor",
			Message: "is ahead of the log, which was restored from a backup: leave it out, and read missed events with ListEvents"})
	case after < 0:
		after = end
	}
	tail := j.tails.join(j)
	defer j.tails.leave(tail)
	f := follower{Journal: j, permit: permit, query: q, send: send, tail: tail}
	if err := f.sign(nil, after); err != nil {
		return err
	}
	f.judged = time.Now()
	alive := time.NewTimer(j.pace.heartbeat)
	defer alive.Stop()
	for {
		next := tail.bell.Next()
		upTo, more, err := f.advance(ctx, after)
		if err != nil {
			return err
		}
		after = upTo
		if !more {
			alive.Reset(time.Until(f.said.Add(j.pace.heartbeat)))
			select {
			case <-ctx.Done():
			case <-next:
			case <-alive.C:
			}
		}
		// This also runs between pages: a caller whose filter finds nothing in a long log is told how far the search
		// has come, and may leave.
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(f.said) < j.pace.heartbeat {
			continue
		}
		if err := f.judge(ctx); err != nil {
			return err
		}
		if err := f.sign(nil, after); err != nil {
			return err
		}
	}
}

// follower is one who follows.
type follower struct {
	*Journal
	permit access.Permit
	query  Query
	send   func(e *Entry, position int64) error
	tail   *tail
	judged time.Time // when it was last clear that the follower may
	said   time.Time // when something was last sent
}

// judge asks again whether the follower may.
func (f *follower) judge(ctx context.Context) error {
	permit, err := f.permit.Renew(ctx)
	if err != nil {
		return err
	}
	f.permit, f.judged = permit, time.Now()
	return f.query.scope(permit)
}

func (f *follower) sign(e *Entry, position int64) error {
	err := f.send(e, position)
	f.said = time.Now()
	return err
}

// advance sends what there is after a position, up to a bounded number of events, and tells up to where that was and
// whether there is more.
func (f *follower) advance(ctx context.Context, after int64) (upTo int64, more bool, err error) {
	events, upTo, more, err := f.read(ctx, after)
	if err != nil || len(events) == 0 {
		return upTo, more, err
	}
	if n := holdable(events); n < len(events) {
		events, upTo, more = slices.Clone(events[:n]), events[n-1].Position, true
	}
	// Now, not before: whatever the follower loses its right by is either judged here or not among what was read.
	if err := f.judge(ctx); err != nil {
		return 0, false, err
	}
	keys := keyring{Reader: f.store, rows: map[event.RowKey]*event.Row{}}
	for i := range events {
		if time.Since(f.judged) >= f.pace.heartbeat { // it may take long to be sent
			if err := f.judge(ctx); err != nil {
				return 0, false, err
			}
			clear(keys.rows)
		}
		e, err := Show(ctx, keys, f.root, &events[i], personal(f.permit))
		if err != nil {
			return 0, false, err
		}
		if err := f.sign(e, events[i].Position); err != nil {
			return 0, false, err
		}
	}
	return upTo, more, nil
}

// holdable is how many of the events may be held while they are sent: at least one.
func holdable(events []event.Event) int {
	size := 0
	for i := range events {
		if size += events[i].Size(); size > heldBytes {
			return max(i, 1)
		}
	}
	return len(events)
}

// read finds the events that are meant after a position: among those that all followers share, or else in the store.
func (f *follower) read(ctx context.Context, after int64) (found []event.Event, upTo int64, more bool, err error) {
	if recent, covered := f.tail.After(after, keptEvents); covered {
		for i := range recent {
			if after = recent[i].Position; f.query.Filter.Matches(&recent[i]) {
				found = append(found, recent[i])
			}
		}
		return found, after, false, nil
	}
	// Everything up to here can be seen by what is read afterwards; what is behind it may yet be lost with the power.
	end, err := f.store.Position(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	asked := f.query.Filter.query()
	asked.OldestFirst, asked.After, asked.Limit = true, after, page
	got, err := f.store.EventsWhere(ctx, asked)
	if err != nil {
		return nil, 0, false, err
	}
	if upTo = max(end, after); got.Next != 0 {
		upTo = min(upTo, got.Next)
	}
	return slices.DeleteFunc(got.Events,
		func(e event.Event) bool { return e.Position > upTo || !f.query.Filter.Matches(&e) }), upTo, true, nil
}
