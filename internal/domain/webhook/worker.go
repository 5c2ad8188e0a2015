package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
)

const (
	saveAfter = 64 // messages between two notes of how far it has come, while there is more to do
	readAhead = 20 // events of an object that is parked
)

// pauses between the tries of an event, in first pauses: with 5 seconds these are 5 s, 30 s, 2, 10 and 30 minutes, 1,
// 2, 4 and 8 hours. So there are ten tries within about 16 hours.
var pauses = []int{1, 6, 24, 120, 360, 720, 1440, 2880, 5760}

// worker is one webhook on one node: the sink of its notify.Worker. A key is an object.
type worker struct {
	*notify.Worker
	d       *Dispatcher
	id      string
	known   atomic.Pointer[inUse]
	changed atomic.Bool  // set by the dispatcher: the webhook, or what is parked, is to be read again
	bad     atomic.Int32 // messages on end that failed or took long
	begins  bool         // its own first event is still to come
	history history
	counted map[bool]int // of what is parked, in the metrics
	full    bool         // as much is parked as can be
}

func newWorker(d *Dispatcher, id string, u *inUse) *worker {
	w := &worker{d: d, id: id}
	w.known.Store(u)
	w.Worker = notify.NewWorker(notify.Worker{
		Log:    d.Log.With("webhook", id),
		Clock:  d.Webhooks.Clock,
		Sink:   w,
		Lease:  notify.Lease{Store: d.Webhooks.Store, Row: progressRow(id)},
		Name:   FollowerName,
		Meters: d.Meters,
		Rests:  true,
		Rules: notify.Rules{Life: d.Lease, Poll: d.poll, Peek: d.Lease / 6, SaveAfter: saveAfter,
			MaxParked: notify.MaxParked, KeepFailed: true, Slots: w.slots, Retry: d.retry},
	})
	return w
}

// slots keeps a receiver that does not answer from taking the slots of others.
func (w *worker) slots() int {
	if w.bad.Load() >= lameAfter {
		return 1
	}
	return perWebhook
}

// retry gives the pause before the next try.
func (d *Dispatcher) retry(p *notify.Parked, r *notify.Result, _ int64) (time.Duration, bool) {
	if p.Tries > len(pauses) {
		return 0, false
	}
	pause := time.Duration(pauses[p.Tries-1]) * d.FirstPause
	// or all that failed together would come back together
	pause = time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
	return max(pause, r.RetryAfter), true
}

func (w *worker) Load(ctx context.Context, p *notify.Progress) (map[string]*notify.Parked, error) {
	parked, err := allParked(ctx, w.d.Webhooks.Store, w.id)
	history, unread := readHistory(ctx, w.d.Webhooks.Store, w.id)
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	w.begins, w.history = p.Begins, history
	w.bad.Store(0)
	w.count(parked)
	return parked, nil
}

// Refresh reads the settings, and what was replayed or skipped by command: only such rows were written by others.
func (w *worker) Refresh(ctx context.Context, q *notify.Queue) error {
	if !w.changed.Swap(false) {
		return nil
	}
	u, err := w.d.Webhooks.use(ctx, w.id, w.known.Load())
	if err == errNotInUse {
		return nil // the dispatcher will say so
	}
	parked, unread := allParked(ctx, w.d.Webhooks.Store, w.id)
	if err := cmp.Or(err, unread); err != nil {
		w.changed.Store(true)
		return err
	}
	w.known.Store(u)
	for objectID, p := range parked {
		q.Resume(objectID, p)
	}
	return nil
}

func (w *worker) Events(ctx context.Context, position int64) ([]event.Event, error) {
	return w.d.events(ctx, position, notify.Page)
}

func (w *worker) EventsOf(ctx context.Context, objectID string, p *notify.Parked) ([]event.Event, error) {
	return w.d.Webhooks.Store.EventsOf(ctx, objectID, p.Sequence, readAhead)
}

func (w *worker) Wants(e *event.Event) (key string, wanted bool) {
	if w.begins {
		w.begins = !(e.ObjectID == w.id && e.Sequence == 1)
		return "", false
	}
	hook := w.known.Load().hook
	return e.ObjectID, hook.Data.wants(hook.Org, e)
}

// Send sends an event. Whether it may is looked up once more when there is a slot for it.
func (w *worker) Send(ctx context.Context, e *event.Event) (out notify.Outcome, err error) {
	slots, hooks := w.d.usual, w.d.Webhooks
	if w.bad.Load() >= lameAfter {
		slots = w.d.lame
	}
	leave := w.d.enter(ctx, slots, w.known.Load().hook.Org)
	if leave == nil {
		return out, ctx.Err()
	}
	defer leave()
	u, err := hooks.use(ctx, w.id, w.known.Load())
	if err == nil {
		w.known.Store(u)
		out, err = hooks.deliver(ctx, u, e)
	}
	switch {
	case err == nil && out.Gone:
		w.Log.Warn("the receiver of a webhook answered 410 Gone: the webhook was deactivated")
		return out, cmp.Or(hooks.switchOff(ctx, w.id), errNotInUse)
	case err != nil && err != errNotInUse && errs.KindOf(err) == errs.Internal:
		w.Log.Error("an event cannot be read", "event", journal.IDOf(e.ObjectID, e.Sequence), "error", err)
		return notify.Outcome{Problem: "signet cannot read this event: its log says why"}, nil
	}
	return out, err
}

func (w *worker) Settled(r *notify.Result, p *notify.Parked, _ *notify.Queue) {
	if r.Err != nil && !r.Gone {
		return
	}
	id := journal.IDOf(r.Event.ObjectID, r.Event.Sequence)
	w.judge(r)
	w.d.Metrics.sent(r.Problem == "")
	w.history.add(Attempt{EventID: id, Type: r.Event.Type, Time: event.Micros(w.Clock()), Took: r.Took.Microseconds(),
		Try: r.Try, Status: r.Status, Problem: r.Problem})
	if p != nil && p.Failed {
		w.Log.Warn("an event of a webhook failed for good: later events of its object wait until it is replayed or skipped", "event", id, "tries", p.Tries, "problem", p.Problem)
	}
}

// judge tells whether the receiver answers.
func (w *worker) judge(r *notify.Result) {
	if r.Problem == "" && r.Took < slow {
		if w.bad.Swap(0) >= lameAfter {
			w.Log.Info("the receiver of a webhook answers again")
		}
		return
	}
	if w.bad.Add(1) == lameAfter {
		w.Log.Warn("the receiver of a webhook fails or is slow: it gets one message at a time", "problem", r.Problem)
	}
}

func (w *worker) Save(p *notify.Progress, q *notify.Queue) (rows []event.Row, err error) {
	p.Begins = w.begins
	parked := q.Parked()
	w.count(parked)
	for objectID := range q.Changed() {
		row := event.Row{RowKey: parkedRow(w.id, objectID)}
		if parked[objectID] != nil {
			if row.Value, err = json.Marshal(parked[objectID]); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	if q.Unsaved() {
		value, err := json.Marshal(w.history)
		return append(rows, event.Row{RowKey: historyRow(w.id), Value: value}), err
	}
	return rows, nil
}

// Closed lets another node count what waits.
func (w *worker) Closed() { w.count(nil) }

// count shows what is parked in the metrics, and says once that the webhook waits for somebody.
func (w *worker) count(parked map[string]*notify.Parked) {
	w.counted = w.d.Metrics.put(parked, w.counted)
	full := len(parked) >= notify.MaxParked
	if full && !w.full {
		w.Log.Warn("a webhook has too many parked objects: it waits until their events are accepted, replayed or skipped", "objects", len(parked))
	}
	w.full = full
}
