package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/journal"
)

const (
	maxWindow = 256                    // events that were read and are not yet done
	saveAfter = 64                     // messages between two notes of how far it has come, while there is more to do
	saveTime  = 500 * time.Millisecond // or so long
	readAhead = 20                     // events of an object that was put aside
	maxPages  = 10                     // of the log read at a stretch: meanwhile answers wait, and the lease runs
)

// pauses between the tries of an event, in first pauses: with 5 seconds these are 5 s, 30 s, 2, 10 and 30 minutes, 1, 2, 4 and 8
// hours. So there are ten tries within about 16 hours.
var pauses = []int{1, 6, 24, 120, 360, 720, 1440, 2880, 5760}

// worker is one webhook on one node. Everything in it belongs to the goroutine of run, but for what says otherwise.
type worker struct {
	d       *Dispatcher
	id      string
	turn    event.Turn[progress, *progress]
	wake    chan struct{}
	changed atomic.Bool // set by the dispatcher: the webhook, or what it has put aside, is to be read again
	cancel  context.CancelFunc
	done    chan struct{}
	known   atomic.Pointer[inUse] // shared by the messages on their way

	results     chan result // has room for all that are on their way
	sending     context.Context
	stopSending context.CancelFunc

	holds   bool                  // as far as this node knows, it is its turn
	state   progress              // as it was noted last
	lookAt  int64                 // when to see again whether it is another node's turn
	scanned int64                 // up to here the log was read
	window  []*pending            // what was read and is not yet done, in order
	lanes   map[string][]*pending // of each object, in order; the first may be on its way
	ready   []string              // objects whose first event can be sent
	asides  map[string]*aside
	counted map[bool]int    // of them, in the metrics
	nextTry int64           // none of them is due before that
	dirty   map[string]bool // objects whose rows are to be written, or dropped where they are no longer aside
	history history
	onWay   int
	unsaved int // messages since the last note
	savedAt int64
	waitTil int64 // nothing is sent before that: the store was away, or the webhook is not in use
	bad     int   // messages on end that failed or took long
	full    bool  // as many are aside as can be
	failing bool  // the store was away the last time
}

// pending is an event that is to be sent.
type pending struct {
	event event.Event
	done  bool
}

// result is what came of a message.
type result struct {
	event event.Event
	try   int
	Outcome
	err error // nothing is known: the store was away, the webhook is not in use, or the node stops
}

func newWorker(d *Dispatcher, id string) *worker {
	w := &worker{d: d, id: id, wake: make(chan struct{}, 1), done: make(chan struct{}), results: make(chan result, perWebhook),
		turn: event.Turn[progress, *progress]{Store: d.Webhooks.Store, Row: progressRow(id), Node: event.NewID("nod"), Life: d.Lease}}
	w.reset()
	return w
}

// reset forgets everything that was read.
func (w *worker) reset() {
	w.holds, w.state, w.scanned, w.window, w.ready = false, progress{}, 0, nil, nil
	w.lanes, w.asides, w.dirty = map[string][]*pending{}, map[string]*aside{}, map[string]bool{}
	w.nextTry, w.history, w.unsaved, w.bad = 0, history{}, 0, 0
	w.count()
	w.sending, w.stopSending = context.WithCancel(context.Background())
}

// count shows what is put aside in the metrics.
func (w *worker) count() { w.counted = w.d.Metrics.put(w.asides, w.counted) }

func (w *worker) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (w *worker) now() int64 { return event.Micros(w.d.Webhooks.Clock()) }

func (w *worker) run(ctx context.Context) {
	defer close(w.done)
	defer w.stop()
	ticker := time.NewTicker(w.d.poll)
	defer ticker.Stop()
	for {
		err := w.work(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !w.failing {
			w.d.Log.Warn("webhook: it goes on when the store answers", "webhook", w.id, "error", err)
		}
		w.failing = err != nil
		select {
		case r := <-w.results:
			w.settle(ctx, r)
			for more := true; more; {
				select {
				case r := <-w.results:
					w.settle(ctx, r)
				default:
					more = false
				}
			}
		case <-w.wake:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// work does what there is to do, where it is this node's turn. Its errors are those of the store.
func (w *worker) work(ctx context.Context) error {
	if w.holds && w.state.Until-w.now() < (w.d.Lease/2).Microseconds() {
		if err := w.save(ctx, false); err != nil {
			return err
		}
	}
	if !w.holds {
		if err := w.take(ctx); err != nil || !w.holds {
			return err
		}
	}
	if w.changed.Swap(false) {
		if err := w.reload(ctx); err != nil {
			w.changed.Store(true)
			return err
		}
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	if err := w.retry(ctx); err != nil {
		return err
	}
	w.start()
	if w.unsaved > 0 && (w.unsaved >= saveAfter || w.onWay == 0 || w.now()-w.savedAt >= saveTime.Microseconds()) {
		return w.save(ctx, false)
	}
	return nil
}

// take makes it this node's turn, unless it is another's.
func (w *worker) take(ctx context.Context) error {
	if w.now() < w.lookAt {
		return nil
	}
	now := w.now()
	until, err := w.turn.Look(ctx, now)
	if err != nil {
		return err
	}
	w.lookAt = now + (w.d.Lease / 6).Microseconds() // a node that stops gives its turn away before its time is over
	if until != 0 {
		w.lookAt = min(w.lookAt, until)
		return nil
	}
	u, err := w.d.Webhooks.use(ctx, w.id, nil)
	if err == errNotInUse {
		return nil // the dispatcher will say so
	}
	if err != nil {
		return err
	}
	w.known.Store(u)
	p, err := w.turn.Take(ctx)
	if err != nil || p == nil {
		return err
	}
	return w.load(ctx, *p)
}

// load reads what the node before has left.
func (w *worker) load(ctx context.Context, p progress) error {
	objects, list, err := asides(ctx, w.d.Webhooks.Store, w.id, "", 2*maxAside)
	if err != nil {
		return err
	}
	if w.history, err = readHistory(ctx, w.d.Webhooks.Store, w.id); err != nil {
		return err
	}
	for i, a := range list {
		w.asides[objects[i]] = a
	}
	w.holds, w.state, w.scanned, w.savedAt = true, p, p.Position, w.now()
	w.count()
	return nil
}

// reload reads the settings, and what was replayed or skipped by command: only such rows were written by others.
func (w *worker) reload(ctx context.Context) error {
	u, err := w.d.Webhooks.use(ctx, w.id, w.known.Load())
	if err == errNotInUse {
		return nil
	}
	if err != nil {
		return err
	}
	w.known.Store(u)
	objects, list, err := asides(ctx, w.d.Webhooks.Store, w.id, "", 2*maxAside)
	if err != nil {
		return err
	}
	for i, a := range list {
		if mine := w.asides[objects[i]]; mine != nil && mine.Failed && !a.Failed && !w.dirty[objects[i]] {
			w.asides[objects[i]], w.nextTry = a, 0
		}
	}
	return nil
}

// read hands out the next events of the log, as long as there is room for what may fail. On a long way it comes back after each part.
func (w *worker) read(ctx context.Context) error {
	w.warnFull()
	u := w.known.Load()
	for pages := 0; len(w.window) < maxWindow && len(w.asides)+len(w.lanes) < maxAside; pages++ {
		if pages == maxPages {
			w.wakeUp()
			return nil
		}
		events, err := w.d.events(ctx, w.scanned, page)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			if len(w.window) >= maxWindow || len(w.asides)+len(w.lanes) >= maxAside {
				return nil
			}
			w.scanned = e.Position
			if w.state.Begins {
				w.state.Begins = !(e.ObjectID == w.id && e.Sequence == 1)
				continue
			}
			if w.asides[e.ObjectID] != nil || !u.hook.State.wants(u.hook.Org, e) {
				continue // one that is put aside finds it in the log when its turn comes
			}
			p := &pending{event: *e}
			w.window = append(w.window, p)
			if w.lanes[e.ObjectID] = append(w.lanes[e.ObjectID], p); len(w.lanes[e.ObjectID]) == 1 {
				w.ready = append(w.ready, e.ObjectID)
			}
		}
		if len(events) == 0 {
			return nil
		}
	}
	return nil
}

// warnFull says once that the webhook waits for somebody.
func (w *worker) warnFull() {
	if full := len(w.asides) >= maxAside; full != w.full {
		if w.full = full; full {
			w.d.Log.Warn("webhook: too many objects are put aside, so it waits until their events are taken, replayed or skipped", "webhook", w.id, "objects", len(w.asides))
		}
	}
}

// most is how many messages may be on their way.
func (w *worker) most() int {
	if w.bad >= lameAfter {
		return 1
	}
	return perWebhook
}

// free tells whether another message may be sent. When the lease is over none is: another node may have begun.
func (w *worker) free() bool {
	now := w.now()
	return w.onWay < w.most() && now >= w.waitTil && now < w.state.Until
}

// start sends what comes in its turn.
func (w *worker) start() {
	for len(w.ready) > 0 && w.free() {
		objectID := w.ready[0]
		w.ready = w.ready[1:]
		if lane := w.lanes[objectID]; len(lane) > 0 {
			w.send(lane[0].event, 1)
		}
	}
}

// retry sends what was put aside and is due, and what has come behind it since.
func (w *worker) retry(ctx context.Context) error {
	if w.now() < w.nextTry || len(w.asides) == 0 {
		return nil
	}
	next := int64(1<<63 - 1)
	for objectID, a := range w.asides {
		if a.Failed || a.busy {
			continue
		}
		if a.Next > w.now() || !w.free() {
			next = min(next, a.Next)
			continue
		}
		e, err := w.comesNext(ctx, objectID, a)
		if err != nil {
			return err
		}
		w.dirty[objectID] = true
		w.unsaved++
		if e == nil { // it has caught up
			delete(w.asides, objectID)
			continue
		}
		a.busy = true
		w.send(*e, a.Tries+1)
	}
	w.nextTry = next
	return nil
}

// comesNext finds the next event of an object that was put aside; nil where the log has none up to where it was read.
func (w *worker) comesNext(ctx context.Context, objectID string, a *aside) (*event.Event, error) {
	u := w.known.Load()
	for {
		if len(a.ahead) == 0 {
			var err error
			if a.ahead, err = w.d.Webhooks.Store.EventsOf(ctx, objectID, a.Sequence, readAhead); err != nil || len(a.ahead) == 0 {
				return nil, err
			}
		}
		e := a.ahead[0]
		if e.Position > w.scanned {
			a.ahead = nil
			return nil, nil
		}
		if u.hook.State.wants(u.hook.Org, &e) {
			a.Sequence, a.Type = e.Sequence, e.Type
			return &e, nil
		}
		a.Sequence, a.Tries = e.Sequence+1, 0
		a.ahead = a.ahead[1:]
	}
}

// send sends an event beside the worker. Whether it may is looked up once more when there is a place for it.
func (w *worker) send(e event.Event, try int) {
	w.onWay++
	places := w.d.usual
	if w.bad >= lameAfter {
		places = w.d.lame
	}
	ctx, hooks := w.sending, w.d.Webhooks
	go func() {
		r := result{event: e, try: try}
		defer func() { w.results <- r }()
		leave := w.d.enter(ctx, places, w.known.Load().hook.Org)
		if leave == nil {
			r.err = ctx.Err()
			return
		}
		defer leave()
		u, err := hooks.use(ctx, w.id, w.known.Load())
		if err == nil {
			w.known.Store(u)
			r.Outcome, err = hooks.deliver(ctx, u, &e)
		}
		switch {
		case ctx.Err() != nil && (err != nil || r.Problem != ""):
			r.err = ctx.Err() // it may have arrived or not
		case err != nil && err != errNotInUse && errs.KindOf(err) == errs.Internal:
			w.d.Log.Error("webhook: an event cannot be read", "webhook", w.id, "event", journal.IDOf(e.ObjectID, e.Sequence), "error", err)
			r.Problem = "signet cannot read this event: its log says why"
		default:
			r.err = err
		}
	}()
}

// settle takes in what came of a message.
func (w *worker) settle(ctx context.Context, r result) {
	w.onWay--
	objectID := r.event.ObjectID
	a := w.asides[objectID]
	if r.err == nil {
		w.unsaved++
		w.judge(&r)
		w.d.Metrics.sent(r.Problem == "")
		w.history.add(Attempt{EventID: journal.IDOf(objectID, r.event.Sequence), Type: r.event.Type, Time: w.now(), Took: r.Took.Microseconds(), Try: r.try, Status: r.Status, Problem: r.Problem})
	}
	if r.err != nil || r.gone {
		switch {
		case r.gone:
			w.d.Log.Warn("webhook: the receiver says that it is gone, so the webhook is switched off", "webhook", w.id)
			if err := w.d.Webhooks.switchOff(ctx, w.id); err != nil {
				r.err = err
			}
		case !errors.Is(r.err, errNotInUse) && !errors.Is(r.err, context.Canceled) && !w.failing:
			w.d.Log.Warn("webhook: nothing was sent, it is tried again", "webhook", w.id, "error", r.err)
		}
		w.waitTil = w.now() + w.d.poll.Microseconds()
		if a != nil {
			a.busy, w.nextTry = false, 0
		} else {
			w.ready = slices.Insert(w.ready, 0, objectID)
		}
		return
	}
	switch {
	case a == nil && r.Problem == "":
		lane := w.lanes[objectID]
		lane[0].done = true
		if w.lanes[objectID] = lane[1:]; len(lane) > 1 {
			w.ready = append(w.ready, objectID)
		} else {
			delete(w.lanes, objectID)
		}
	case a == nil:
		for _, p := range w.lanes[objectID] {
			p.done = true // the row stands for all of them
		}
		delete(w.lanes, objectID)
		w.asides[objectID] = &aside{Sequence: r.event.Sequence, Type: r.event.Type, Since: w.now()}
		w.failed(objectID, w.asides[objectID], &r)
	case r.Problem == "":
		*a = aside{Sequence: r.event.Sequence + 1, ahead: a.ahead[1:]}
		w.dirty[objectID], w.nextTry = true, 0
	default:
		a.busy, a.ahead = false, nil
		if a.Tries == 0 {
			a.Since = w.now()
		}
		w.failed(objectID, a, &r)
	}
	for len(w.window) > 0 && w.window[0].done {
		w.window = w.window[1:]
	}
}

// failed notes a try that failed.
func (w *worker) failed(objectID string, a *aside, r *result) {
	w.dirty[objectID] = true
	a.Tries, a.Last, a.Status, a.Problem = a.Tries+1, w.now(), r.Status, r.Problem
	if a.Tries > len(pauses) {
		a.Failed, a.Next = true, 0
		w.d.Log.Warn("webhook: an event has failed for good, those behind it wait until it is replayed or skipped", "webhook", w.id,
			"event", journal.IDOf(objectID, a.Sequence), "tries", a.Tries, "problem", r.Problem)
		return
	}
	pause := time.Duration(pauses[a.Tries-1]) * w.d.FirstPause
	pause = time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64())) // or all that failed together would come back together
	a.Next = w.now() + max(pause, r.retryAfter).Microseconds()
	w.nextTry = min(w.nextTry, a.Next)
}

// judge keeps a receiver that does not answer from taking the places of others.
func (w *worker) judge(r *result) {
	if r.Problem == "" && r.Took < slow {
		if w.bad >= lameAfter {
			w.d.Log.Info("webhook: the receiver answers again", "webhook", w.id)
		}
		w.bad = 0
		return
	}
	if w.bad++; w.bad == lameAfter {
		w.d.Log.Warn("webhook: the receiver fails or is slow, so it gets one message at a time", "webhook", w.id, "problem", r.Problem)
	}
}

// save notes what has been done, and renews the lease or gives it away. Where another node has taken over, this one stops.
func (w *worker) save(ctx context.Context, release bool) error {
	next := progress{Position: w.scanned, Begins: w.state.Begins}
	if len(w.window) > 0 {
		next.Position = w.window[0].event.Position - 1
	}
	var put []event.Row
	var drop []event.RowKey
	for objectID := range w.dirty {
		a := w.asides[objectID]
		if a == nil {
			drop = append(drop, asideRow(w.id, objectID))
			continue
		}
		row, err := a.row(w.id, objectID)
		if err != nil {
			return err
		}
		put = append(put, row)
	}
	if w.unsaved > 0 {
		value, err := json.Marshal(w.history)
		if err != nil {
			return err
		}
		put = append(put, event.Row{RowKey: historyRow(w.id), Value: value})
	}
	note := w.turn.Keep
	if release {
		note = w.turn.Leave
	}
	kept, err := note(ctx, &next, func(tx *event.Tx) {
		for _, r := range put {
			tx.PutRow(r)
		}
		for _, k := range drop {
			tx.DropRow(k)
		}
	})
	if err != nil {
		return err
	}
	if !kept {
		w.lose()
		return nil
	}
	w.state, w.unsaved, w.savedAt = next, 0, w.now()
	clear(w.dirty)
	w.count()
	return nil
}

// lose ends what is on its way, for another node has begun with it.
func (w *worker) lose() {
	w.stopSending()
	for ; w.onWay > 0; w.onWay-- {
		<-w.results
	}
	w.reset()
}

// stop waits a little for what is on its way, notes what came of it, and gives the turn away.
func (w *worker) stop() {
	defer w.stopSending()
	if !w.holds {
		return
	}
	defer w.reset() // what waits, waits elsewhere
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopTime)
	defer cancel()
	patience := time.NewTimer(stopTime)
	defer patience.Stop()
	for w.onWay > 0 {
		select {
		case r := <-w.results:
			w.settle(ctx, r)
		case <-patience.C:
			w.stopSending()
		}
	}
	if err := w.save(ctx, true); err != nil {
		w.d.Log.Warn("webhook: another node goes on when the lease is over", "webhook", w.id, "error", err)
	}
}
