// Package notify runs work that has to be done about an event after it was recorded, such as sending a mail or calling
// a webhook, and that may take long or fail.
//
// A Worker sends the events that a Sink wants. Every node runs all workers, but only one node at a time does the work
// of each: the node that holds the Lease in the worker's row, which also holds how far the worker has come. A node that
// stops gives the lease back. A node that was killed loses it when it expires, and another node continues from the row.
// So each event is sent at least once, and twice only where a node dies or loses its lease after the work and before
// the row is written.
//
// Events are sent in the order of the log, those of one key one after the other. An event that fails is parked with its
// key, to be tried again later, while the others go on. Queue decides what to do next, without I/O.
//
// A Follower is a worker that gives every event a key of its own, and sends one at a time. It begins with the events
// that are recorded after it is first seen.
package notify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	poll       = time.Second // how often to look for what other nodes have written
	leaseLife  = 30 * time.Second
	handleTime = 20 * time.Second // for one event: less than the lease, so that nobody else begins meanwhile
	minTries   = 10               // of one event, within about an hour; more where the follower is patient
	firstPause = 5 * time.Second  // before the second try; doubles with every other
	maxPause   = 30 * time.Minute
)

// Refusal is what Handle returns where the other side answers, but refuses this one event: the others are served
// meanwhile.
type Refusal struct {
	Cause   error
	ForGood bool // another try most likely changes nothing
}

func (r *Refusal) Error() string { return r.Cause.Error() }

func (r *Refusal) Unwrap() error { return r.Cause }

// Follower handles some types of events. Its name is that of its row: it never changes.
type Follower struct {
	Name  string
	Types []event.Type
	// Handle is given each event of these types, with 20 seconds for it. When it fails, the event comes again later:
	// ten times within about an hour and then, unless it was refused for good (Refusal), until it is as old as
	// Patience. What it returns is logged: no secret and nothing personal may be in it.
	Handle   func(ctx context.Context, e *event.Event) error
	Patience time.Duration
	// Forgetful says that it is better to give up some of what failed than to wait, where too much is parked: the
	// oldest of the organization that has the most. What is not forgetful gives up only what was refused, and waits
	// where the other side is away.
	Forgetful bool
}

// Runner runs followers on one node.
type Runner struct {
	Store     event.Log
	Log       *slog.Logger
	Clock     func() time.Time // that of the store
	Followers []Follower
	Meters    *Meters // nil: nobody wants to know
}

func rowOf(name string) event.RowKey { return event.RowKey{Table: event.Followers, Key: name} }

// Begin notes where followers that are new begin: behind what is in the log by now.
func (r *Runner) Begin(ctx context.Context) error {
	for _, f := range r.Followers {
		end, err := r.Store.Position(ctx)
		if err != nil {
			return err
		}
		err = r.Store.Do(ctx, event.Command{
			Origin: event.Origin{Actor: event.System},
			Rows:   []event.RowKey{rowOf(f.Name)},
			Decide: func(tx *event.Tx) error {
				row, err := tx.Row(rowOf(f.Name))
				if err != nil || row != nil {
					return err
				}
				return (&Progress{Position: end}).Put(tx, rowOf(f.Name))
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Run lets the followers work until ctx ends. Begin comes first.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	var workers []*Worker
	for _, f := range r.Followers {
		w := r.worker(f)
		workers = append(workers, w)
		all.Go(func() { w.Run(ctx) })
	}
	for more := true; more; {
		written := r.Store.Written()
		for _, w := range workers {
			w.Wake()
		}
		more = event.Await(ctx, written, nil, event.Gather)
	}
	all.Wait()
}

func (r *Runner) worker(f Follower) *Worker {
	s := &follower{Follower: f, log: r.Log.With("follower", f.Name), store: r.Store}
	rules := Rules{Life: leaseLife, SendTime: handleTime, Poll: poll, SaveAfter: 1, Slots: func() int { return 1 },
		Retry: s.retry}
	if !f.Forgetful {
		rules.MaxParked = MaxParked
	}
	return NewWorker(Worker{Log: s.log, Clock: r.Clock, Sink: s, Rules: rules,
		Lease: Lease{Store: r.Store, Row: rowOf(f.Name)}, Name: f.Name, Meters: r.Meters})
}

// follower is the sink of a Follower.
type follower struct {
	Follower
	log   *slog.Logger
	store event.Log
	last  *Failure // nil: none
}

// maxProblem is how much is kept of why an event failed, in bytes.
const maxProblem = 300

func keyOf(position int64) string { return strconv.FormatInt(position, 10) }

func (f *follower) Load(_ context.Context, p *Progress) (map[string]*Parked, error) {
	parked := map[string]*Parked{}
	f.last = p.Failure
	for _, h := range p.Parked {
		parked[keyOf(h.Position)] = &Parked{Retry: h}
	}
	return parked, nil
}

func (f *follower) Refresh(context.Context, *Queue) error { return nil }

func (f *follower) Events(ctx context.Context, position int64) ([]event.Event, error) {
	return f.store.Events(ctx, position, Page)
}

func (f *follower) EventsOf(ctx context.Context, _ string, p *Parked) ([]event.Event, error) {
	if p.Tries == 0 { // it was sent by now, and no other has its key
		return nil, nil
	}
	return f.store.Events(ctx, p.Position-1, 1)
}

func (f *follower) Wants(e *event.Event) (key string, wanted bool) {
	return keyOf(e.Position), slices.Contains(f.Types, e.Type)
}

// Send handles an event. A panic is a failure: one event must not stop a follower.
func (f *follower) Send(ctx context.Context, e *event.Event) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime)
	defer cancel()
	failure := errs.Guarded(func() error { return f.Handle(ctx, e) })
	if failure == nil {
		return Outcome{}, nil
	}
	refusal, refused := errors.AsType[*Refusal](failure)
	return Outcome{Problem: cmp.Or(failure.Error(), "it failed"), Refused: refused,
		ForGood: refused && refusal.ForGood}, nil
}

// retry gives an event up that was tried often and long enough.
func (f *follower) retry(p *Parked, r *Result, now int64) (time.Duration, bool) {
	enough := p.Tries >= minTries && (r.ForGood || now-r.Event.Time > f.Patience.Microseconds())
	return min(firstPause<<min(p.Tries-1, minTries), maxPause), !enough
}

func (f *follower) Settled(r *Result, p *Parked, q *Queue) {
	if p == nil {
		return
	}
	f.last = &Failure{At: p.Last, Problem: strings.ToValidUTF8(r.Problem[:min(len(r.Problem), maxProblem)], "")}
	log := f.log.With("event", string(p.Type), "position", p.Position, "tries", p.Tries, "error", r.Problem)
	if p.Next == 0 {
		log.Error("an event was dropped")
	} else {
		log.Warn("an event failed and will be retried", "in",
			(time.Duration(p.Next-p.Last) * time.Microsecond).String())
	}
	f.giveUp(q)
}

// giveUp makes room where too much is parked, unless it is better to wait: the oldest of the organization that has the
// most goes.
func (f *follower) giveUp(q *Queue) {
	most := MaxParked - 1 // one that waits begins to at MaxParked
	if f.Forgetful {
		most = MaxParked
	}
	all := f.parked(q)
	if len(all) <= most {
		return
	}
	of, org := map[string]int{}, ""
	all = slices.DeleteFunc(all, func(p Retry) bool { return !f.Forgetful && !p.Refused })
	for _, p := range all {
		if of[p.Org]++; of[p.Org] > of[org] {
			org = p.Org
		}
	}
	if i := slices.IndexFunc(all, func(p Retry) bool { return p.Org == org }); i >= 0 {
		f.log.Error("an event was dropped: too many have failed", "organization", org, "position", all[i].Position,
			"tries", all[i].Tries)
		q.Drop(keyOf(all[i].Position))
	}
}

// parked lists what is parked, in the order of the log.
func (f *follower) parked(q *Queue) (all []Retry) {
	for _, p := range q.Parked() {
		if p.Tries > 0 {
			all = append(all, p.Retry)
		}
	}
	slices.SortFunc(all, func(a, b Retry) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

func (f *follower) Save(p *Progress, q *Queue) ([]event.Row, error) {
	p.Parked, p.Failure = f.parked(q), f.last
	return nil, nil
}

func (f *follower) Closed() {}
