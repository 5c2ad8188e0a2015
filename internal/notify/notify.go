// Package notify runs followers of the log: work that has to be done about an event after it was recorded, such as sending
// a mail, and that may take long or fail.
//
// Every node runs all followers, but of each only one works at a time: the one that holds the lease in the follower's row,
// beside how far it has come. A node that stops gives the lease back; one that was killed loses it when its time is over,
// and another goes on where the row says. So each event is handled at least once, and twice only where a node dies
// or loses its lease between the work and the note of it.
//
// Events come in the order of the log. One that cannot be handled is put aside and tried again later, for a bounded
// time, while the others go on. A follower that is new begins with what happens from then on.
package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/event"
)

const (
	poll       = time.Second // how often to look for what other nodes have written
	leaseLife  = 30 * time.Second
	handleTime = 20 * time.Second // for one event: less than the lease, so that nobody else begins meanwhile
	stopTime   = 2 * time.Second  // of that, for an event that is on its way when the node stops
	page       = 200              // events read at once
	lag        = 2000             // events that mean nothing to a follower are noted when there are so many
	maxHeld    = 1000             // put aside; with more, the follower waits
	minTries   = 10               // of one event, within about an hour; more where the follower is patient
	firstPause = 5 * time.Second  // before the second try; doubles with every other
	maxPause   = 30 * time.Minute
)

// Refusal is what Handle returns where the other side answers, but refuses this one event: the others are served meanwhile.
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
	// Handle is given each event of these types, with 20 seconds for it. When it fails, the event comes again later: ten times within
	// about an hour and then, unless it was refused for good (Refusal), until it is as old as Patience. What it returns is logged: no
	// secret and nothing personal may be in it.
	Handle   func(ctx context.Context, e *event.Event) error
	Patience time.Duration
	// Forgetful says that it is better to give up some of what failed than to wait, where too much has been put aside: the oldest of the
	// organization that has the most. What is not forgetful gives up only what was refused, and waits where the other side is away.
	Forgetful bool
}

// Runner runs followers on one node.
type Runner struct {
	Store     event.Log
	Log       *slog.Logger
	Clock     func() time.Time // that of the store
	Followers []Follower
}

// progress is what a follower's row holds.
type progress struct {
	Position int64  `json:"position"`       // up to here everything was handled, or is held
	Held     []held `json:"held,omitempty"` // what failed, to be tried again
	event.Lease
}

// held is an event that is put aside.
type held struct {
	Position int64  `json:"position"`
	Org      string `json:"org,omitempty"`
	Tries    int    `json:"tries"`
	Next     int64  `json:"next"` // when to try again
	Refused  bool   `json:"refused,omitempty"`
}

func rowOf(name string) event.RowKey { return event.RowKey{Shelf: event.Followers, Key: name} }

// Begin notes where followers that are new begin: behind what is in the log by now.
func (r *Runner) Begin(ctx context.Context) error {
	for _, f := range r.Followers {
		end, err := r.Store.Position(ctx)
		if err != nil {
			return err
		}
		err = r.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{rowOf(f.Name)}, Decide: func(tx *event.Tx) error {
			row, err := tx.Row(rowOf(f.Name))
			if err != nil || row != nil {
				return err
			}
			value, err := json.Marshal(progress{Position: end})
			if err != nil {
				return err
			}
			tx.PutRow(event.Row{RowKey: rowOf(f.Name), Value: value})
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Run lets the followers work until ctx ends. Begin comes first.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, f := range r.Followers {
		all.Go(func() { r.worker(f).run(ctx) })
	}
	all.Wait()
}

func (r *Runner) worker(f Follower) *worker {
	return &worker{Follower: f, runner: r, turn: event.Turn[progress, *progress]{Store: r.Store, Row: rowOf(f.Name), Node: event.NewID("nod"), Life: leaseLife}}
}

// worker is one follower on one node.
type worker struct {
	Follower
	runner *Runner
	turn   event.Turn[progress, *progress]

	holds   bool     // as far as this node knows, it is its turn
	state   progress // while it holds: what has been done, noted or not
	scanned int64    // while it holds: up to here the log was read
	failing bool     // the store was away the last time
}

func (w *worker) run(ctx context.Context) {
	defer w.release(context.WithoutCancel(ctx))
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		written := w.runner.Store.Written()
		err := w.work(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !w.failing {
			w.runner.Log.Warn("following the log: it goes on when the store answers", "follower", w.Name, "error", err)
		}
		w.failing = err != nil
		if !event.Await(ctx, written, ticker.C, event.Gather) {
			return
		}
	}
}

func (w *worker) now() int64 { return event.Micros(w.runner.Clock()) }

// work does what there is to do, where it is this node's turn. Its errors are those of the store.
func (w *worker) work(ctx context.Context) error {
	if w.holds && w.state.Until-w.now() < (leaseLife/2).Microseconds() {
		if err := w.save(ctx); err != nil {
			return err
		}
	}
	if !w.holds {
		if err := w.take(ctx); err != nil || !w.holds {
			return err
		}
	}
	if err := w.retry(ctx); err != nil || !w.holds {
		return err
	}
	for w.Forgetful || len(w.state.Held) < maxHeld {
		events, err := w.runner.Store.Events(ctx, w.scanned, page)
		if err != nil {
			return err
		}
		for i := range events {
			if e := &events[i]; slices.Contains(w.Types, e.Type) {
				if err := w.first(ctx, e); err != nil || !w.holds {
					return err
				}
				if len(w.state.Held) >= maxHeld && !w.Forgetful {
					return nil
				}
			}
			w.scanned = events[i].Position
		}
		if w.scanned-w.state.Position >= lag {
			w.state.Position = w.scanned
			if err := w.save(ctx); err != nil || !w.holds {
				return err
			}
		}
		if len(events) < page {
			return nil
		}
	}
	return nil
}

// take makes it this node's turn, unless it is another's.
func (w *worker) take(ctx context.Context) error {
	if until, err := w.turn.Look(ctx, w.now()); err != nil || until != 0 {
		return err
	}
	p, err := w.turn.Take(ctx)
	if p != nil {
		w.holds, w.state, w.scanned = true, *p, p.Position
	}
	return err
}

// save notes what has been done and renews the lease. Where another node has taken over, this one stops.
func (w *worker) save(ctx context.Context) error {
	kept, err := w.turn.Keep(ctx, &w.state)
	if err == nil {
		w.holds = kept
	}
	return err
}

// release gives the turn away.
func (w *worker) release(ctx context.Context) {
	if !w.holds {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := w.turn.Leave(ctx, &w.state); err != nil {
		w.runner.Log.Warn("following the log: another node goes on when the lease is over", "follower", w.Name, "error", err)
	}
	w.holds = false
}

// first handles an event that comes in its turn.
func (w *worker) first(ctx context.Context, e *event.Event) error {
	failed, err := w.handle(ctx, e)
	if err != nil || !w.holds {
		return err
	}
	w.state.Position, w.scanned = e.Position, e.Position
	if failed != nil {
		w.state.Held = append(slices.Clone(w.state.Held), w.again(e, 1, failed))
		w.giveUp()
	}
	return w.save(ctx)
}

// giveUp makes room where too much is put aside, unless it is better to wait.
func (w *worker) giveUp() {
	most := maxHeld - 1 // one that waits begins to at maxHeld
	if w.Forgetful {
		most = maxHeld
	}
	if len(w.state.Held) <= most {
		return
	}
	of, org := map[string]int{}, ""
	for _, h := range w.state.Held {
		if !w.Forgetful && !h.Refused {
			continue
		}
		if of[h.Org]++; of[h.Org] > of[org] {
			org = h.Org
		}
	}
	theirs := slices.DeleteFunc(slices.Clone(w.state.Held), func(h held) bool { return h.Org != org || !w.Forgetful && !h.Refused })
	if len(theirs) == 0 {
		return
	}
	oldest := slices.MinFunc(theirs, func(a, b held) int { return cmp.Compare(a.Position, b.Position) })
	w.runner.Log.Error("following the log: given up, too much has failed", "follower", w.Name, "organization", org, "position", oldest.Position, "tries", oldest.Tries)
	w.state.Held = slices.DeleteFunc(w.state.Held, func(h held) bool { return h == oldest })
}

// retry handles what was put aside and is due.
func (w *worker) retry(ctx context.Context) error {
	for _, h := range slices.Clone(w.state.Held) {
		if w.now() < h.Next {
			continue
		}
		events, err := w.runner.Store.Events(ctx, h.Position-1, 1)
		if err != nil {
			return err
		}
		rest := slices.DeleteFunc(slices.Clone(w.state.Held), func(other held) bool { return other.Position == h.Position })
		if len(events) == 1 {
			e := &events[0]
			failed, err := w.handle(ctx, e)
			switch {
			case err != nil || !w.holds:
				return err
			case failed != nil && w.enough(e, h.Tries+1, failed):
				w.runner.Log.Error("following the log: given up", "follower", w.Name, "event", string(e.Type), "position", e.Position,
					"tries", h.Tries+1, "error", failed)
			case failed != nil:
				rest = append(rest, w.again(e, h.Tries+1, failed))
			}
		}
		w.state.Held = rest
		if err := w.save(ctx); err != nil || !w.holds {
			return err
		}
	}
	return nil
}

// enough tells that an event that failed was tried often and long enough.
func (w *worker) enough(e *event.Event, tries int, failed error) bool {
	refusal, refused := errors.AsType[*Refusal](failed)
	return tries >= minTries && (refused && refusal.ForGood || w.now()-e.Time > w.Patience.Microseconds())
}

// again puts an event aside.
func (w *worker) again(e *event.Event, tries int, failed error) held {
	pause := min(firstPause<<min(tries-1, minTries), maxPause)
	w.runner.Log.Warn("following the log: it failed and will be tried again", "follower", w.Name, "event", string(e.Type), "position", e.Position,
		"tries", tries, "in", pause.String(), "error", failed)
	_, refused := errors.AsType[*Refusal](failed)
	return held{Position: e.Position, Org: e.Org, Tries: tries, Next: w.now() + pause.Microseconds(), Refused: refused}
}

// handle does the work itself, once the lease lasts long enough for it. failed is what came of it; err is the store's, or
// that of a node that stops: then nothing is known.
func (w *worker) handle(ctx context.Context, e *event.Event) (failed, err error) {
	if w.state.Until-w.now() < handleTime.Microseconds() {
		if err := w.save(ctx); err != nil || !w.holds {
			return nil, err
		}
	}
	// Whoever is cut off right behind the last word of a mail server does not know that the mail is sent, and another node sends it again.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), handleTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopTime, cancel) })()
	failed = guarded(within, w.Handle, e)
	if failed != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return failed, nil
}

// guarded makes a failure of a panic: one event must not stop a follower.
func guarded(ctx context.Context, handle func(context.Context, *event.Event) error, e *event.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return handle(ctx, e)
}
