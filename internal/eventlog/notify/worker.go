package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// stopTime is how long events on their way have when the node stops.
const stopTime = 3 * time.Second

// ErrNotNow is what Send gives where nothing is to be sent for the moment, and nobody needs to hear of it.
var ErrNotNow = errors.New("nothing is sent for now")

// Sink is where a worker's events go. All but Send is called by one goroutine, while the node holds the lease.
type Sink interface {
	// Load gives what is parked. The node has just acquired the lease.
	Load(ctx context.Context, p *Progress) (map[string]*Parked, error)
	// Refresh takes in what others have changed since.
	Refresh(ctx context.Context, q *Queue) error
	// Events reads a page of the log behind a position.
	Events(ctx context.Context, position int64) ([]event.Event, error)
	// EventsOf reads the next events of a key that is parked, beginning with the one that has failed, where one has.
	EventsOf(ctx context.Context, key string, p *Parked) ([]event.Event, error)
	// Wants tells whether an event is to be sent. Those of one key are sent one after the other.
	Wants(e *event.Event) (key string, wanted bool)
	// Send sends an event. The error says that nothing is known.
	Send(ctx context.Context, e *event.Event) (Outcome, error)
	// Settled hears what came of a try, and what was parked because of it.
	Settled(r *Result, p *Parked, q *Queue)
	// Save completes the row, and gives others to be written with it: dropped, where they have no value.
	Save(p *Progress, q *Queue) ([]event.Row, error)
	// Closed hears that the node no longer holds the lease.
	Closed()
}

// Worker sends the events of the log to a sink, on one node at a time.
type Worker struct {
	Log   *slog.Logger
	Clock func() time.Time // that of the store
	Sink  Sink
	Rules Rules
	Lease Lease

	Name   string  // in the metrics and traces
	Meters *Meters // nil: nobody wants to know

	// Of a worker that rests while there is nothing to do, see Resting. Somebody else follows the log then, and starts
	// another one when there is.
	Rests bool
	From  int64 // nothing up to here is wanted, if it was idle

	*standing

	meter   *meter // nil: likewise
	queue   *Queue // nil: this node does not hold the lease
	peekAt  int64
	failing bool // the store was away the last time
	wake    chan struct{}
	results chan Result
	sends   context.Context
	endAll  context.CancelFunc
}

// standing is what others may ask of a worker while it runs.
type standing struct {
	upto   atomic.Int64 // up to here somebody follows the log
	quiet  atomic.Int64 // since when there has been nothing to do; 0: there is something
	marked atomic.Bool  // the row says that it is not idle, or that it is by now
	rested atomic.Int64 // up to here nothing is to be done, as the row says; -1: it does not
}

// NewWorker completes a worker.
func NewWorker(w Worker) *Worker {
	w.Lease.Node, w.Lease.Life = event.NewID("nod"), w.Rules.Life
	w.wake, w.results = make(chan struct{}, 1), make(chan Result)
	w.standing = &standing{}
	w.rested.Store(-1)
	return &w
}

// Follow tells the worker how far the log goes.
func (w *Worker) Follow(end int64) {
	w.upto.Store(end)
	w.Wake()
}

// Marked tells whether the row says that there is something to do, or another node has done it.
func (w *Worker) Marked() bool { return w.marked.Load() }

// Resting tells whether there has been nothing to do for a time, or another node has done it all. The caller that runs
// the worker may end it then.
func (w *Worker) Resting(after time.Duration) bool {
	quiet := w.quiet.Load()
	return w.rested.Load() >= 0 || quiet != 0 && w.now()-quiet >= after.Microseconds()
}

// Rested tells, of a worker that has ended, up to where the row says that there is nothing to do; false: it does not.
func (w *Worker) Rested() (position int64, idle bool) {
	position = w.rested.Load()
	return position, position >= 0
}

// Wake lets the worker look at the log.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (w *Worker) now() int64 { return event.Micros(w.Clock()) }

// Run works until ctx ends. Events on their way are waited for a little, and the lease is given back.
func (w *Worker) Run(ctx context.Context) {
	w.meter = w.Meters.add(w.Name)
	defer w.Meters.drop(w.meter)
	defer w.stop()
	ticker := time.NewTicker(w.Rules.Poll)
	defer ticker.Stop()
	for {
		err := w.work(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !w.failing {
			w.Log.Warn("the database does not answer: retrying", "error", err)
		}
		w.failing = err != nil
		w.noteQuiet(err)
		select {
		case r := <-w.results:
			w.settle(&r)
		case <-w.wake:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Worker) noteQuiet(err error) {
	switch {
	case err != nil || w.queue == nil || !w.queue.idle():
		w.quiet.Store(0)
	case w.quiet.Load() == 0:
		w.quiet.Store(w.now())
	}
}

// work does what there is to do, where this node holds the lease or can acquire it. Its errors are those of the store.
func (w *Worker) work(ctx context.Context) error {
	if w.queue == nil {
		if err := w.acquire(ctx); err != nil || w.queue == nil {
			return err
		}
	}
	if err := w.Sink.Refresh(ctx, w.queue); err != nil {
		return err
	}
	for w.queue.more = true; w.queue != nil && ctx.Err() == nil; {
		select {
		case r := <-w.results:
			w.settle(&r)
		default:
		}
		do, key := w.queue.next(w.now())
		if do == wait {
			w.meter.note(w.queue, w.now())
			return nil
		}
		if err := w.do(ctx, do, key); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) do(ctx context.Context, do action, key string) error {
	switch do {
	case save:
		return w.save(ctx, w.Lease.Renew)
	case read:
		events, err := w.Sink.Events(ctx, w.queue.scanned)
		if err == nil {
			w.queue.add(events, w.Sink.Wants)
		}
		return err
	case fetch:
		events, err := w.Sink.EventsOf(ctx, key, w.queue.lanes[key].parked)
		if err == nil {
			w.queue.fetched(key, events, w.Sink.Wants)
		}
		return err
	case send:
		go w.send(w.sends, w.queue.take(key))
	}
	return nil
}

// acquire makes this the node that works, unless another one is.
func (w *Worker) acquire(ctx context.Context) error {
	now := w.now()
	if now < w.peekAt {
		return nil
	}
	upto := w.upto.Load() // before the row is read
	p, err := w.Lease.Read(ctx)
	if err != nil {
		return err
	}
	w.peekAt = now + w.Rules.Peek.Microseconds() // a node that stops gives its lease back before the end
	w.rested.Store(-1)
	if p != nil && w.Lease.isTaken(p, now) {
		w.marked.Store(true)
		w.peekAt = min(w.peekAt, p.Until)
		return nil
	}
	if p != nil && w.Rests && p.Idle && p.Position >= upto {
		w.marked.Store(true)
		w.rested.Store(p.Position)
		return nil
	}
	p, err = w.Lease.acquire(ctx, w.From)
	if err != nil || p == nil {
		return err
	}
	w.marked.Store(true)
	parked, err := w.Sink.Load(ctx, p)
	if err != nil {
		return err
	}
	w.queue = newQueue(&w.Rules, *p, parked, now)
	w.meter.acquired(p.Position, now)
	w.sends, w.endAll = context.WithCancel(context.WithoutCancel(ctx))
	return nil
}

// send sends an event beside the worker.
func (w *Worker) send(ctx context.Context, r Result) {
	spanned, span := tracing.Work(ctx, "follower", w.Name)
	span.Set("signet.request_id", r.Event.RequestID)
	span.Set("signet.event", string(r.Event.Type))
	span.Count("signet.try", r.Try)
	r.Outcome, r.Err = w.Sink.Send(spanned, &r.Event)
	if r.Problem != "" {
		span.Set("signet.outcome", "failed")
	}
	span.End(r.Err)
	if ctx.Err() != nil && (r.Err != nil || r.Problem != "") {
		r.Err = ctx.Err() // it may have arrived or not
	}
	w.results <- r
}

func (w *Worker) settle(r *Result) {
	if r.Err != nil && !w.failing && !errors.Is(r.Err, ErrNotNow) && !errors.Is(r.Err, context.Canceled) {
		w.Log.Warn("an event could not be sent: retrying", "error", r.Err)
	}
	w.Sink.Settled(r, w.queue.settle(r, w.now()), w.queue)
}

// save writes what has been done, and renews the lease or gives it back. Where another node has acquired it, this one
// stops.
func (w *Worker) save(ctx context.Context,
	write func(context.Context, Progress, []event.Row) (*Progress, error)) error {
	p := Progress{Position: w.queue.survey(0).position}
	rows, err := w.Sink.Save(&p, w.queue)
	if err != nil {
		return err
	}
	saved, err := write(ctx, p, rows)
	if err != nil {
		return err
	}
	if saved == nil {
		w.lose()
		return nil
	}
	w.queue.wrote(*saved, w.now())
	w.meter.note(w.queue, w.now())
	return nil
}

// lose forgets everything, and ends what is on its way.
func (w *Worker) lose() {
	w.endAll()
	for range w.queue.survey(0).sending {
		<-w.results
	}
	w.queue = nil
	w.meter.lost()
	w.Sink.Closed()
}

// stop waits a little for what is on its way, saves what came of it, and gives the lease back.
func (w *Worker) stop() {
	if w.queue == nil {
		return
	}
	defer time.AfterFunc(stopTime, w.endAll).Stop()
	for range w.queue.survey(0).sending {
		r := <-w.results
		w.settle(&r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	release := func(ctx context.Context, p Progress, rows []event.Row) (*Progress, error) {
		p.Idle = w.Rests && !p.Begins && len(w.queue.lanes) == 0
		saved, err := w.Lease.Release(ctx, p, rows)
		if err == nil && saved != nil && saved.Idle {
			w.rested.Store(saved.Position)
		}
		return saved, err
	}
	if err := w.save(ctx, release); err != nil {
		w.Log.Warn("the lease could not be released: another node takes over when it expires", "error", err)
	}
	if w.queue != nil {
		w.lose()
	}
}
