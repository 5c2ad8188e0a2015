package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/notify"
	"github.com/signet-idm/signet/internal/share"
)

// FollowerName is that of all webhooks in the metrics.
const FollowerName = "webhooks"

const (
	pollTime     = time.Second // how often to look for what other nodes have written
	defaultLease = 30 * time.Second
	defaultPause = 5 * time.Second // before the second try

	perWebhook  = 8   // messages on their way to one receiver, and one where it has failed several times on end
	perNode     = 512 // to all of those that answer, of which one organization has half at most
	perNodeLame = 128 // to all others, likewise
	lameAfter   = 3   // messages on end that failed or took long
	slow        = 2 * time.Second

	tailEvents = 2000 // of the end of the log that are kept in memory
	tailBytes  = 4 << 20
)

// Dispatcher serves the webhooks of all organizations on one node, beside the Dispatchers of other nodes.
type Dispatcher struct {
	Webhooks *Webhooks
	Log      *slog.Logger
	Metrics  *Metrics
	Meters   *notify.Meters // of all webhooks together, as FollowerName; nil: nobody wants to know
	// Lease is how long a node that has died keeps others from its webhooks; zero: 30 seconds.
	Lease time.Duration
	// FirstPause is how long an event that has failed waits for its second try; the other pauses follow from it, see pauses. Zero: 5 seconds.
	FirstPause time.Duration

	poll   time.Duration
	tail   event.Tail
	usual  *share.Places      // for messages on their way to receivers that answer
	lame   *share.Places      // and to others
	hooks  map[string]*served // all that are not removed
	all    sync.WaitGroup
	warned bool // of addresses that stand in the log
}

// served is a webhook as the dispatcher knows it.
type served struct {
	org     string
	changed bool          // it is to be looked at
	worker  *worker       // nil: it is not in use
	cancel  func()        // ends the worker
	ended   chan struct{} // closed when the last worker has ended; nil: there was none
}

// Run serves until ctx ends. Messages on their way are waited for a little.
func (d *Dispatcher) Run(ctx context.Context) {
	d.prepare()
	defer d.all.Wait()
	ticker := time.NewTicker(d.poll)
	defer ticker.Stop()
	begun, failing := false, false
	for {
		written := d.Webhooks.Store.Written()
		err := error(nil)
		if !begun {
			err = d.begin(ctx)
		}
		if err == nil && len(d.hooks) > 0 {
			err = d.follow(ctx)
			begun = true
		}
		if len(d.hooks) == 0 { // an installation without webhooks need not read its log for them
			begun, written = false, nil
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			d.Log.Warn("the database does not answer, webhooks wait: retrying", "error", err)
		}
		failing = err != nil
		if !event.Await(ctx, written, ticker.C, event.Gather) {
			return
		}
	}
}

func (d *Dispatcher) prepare() {
	d.Lease, d.FirstPause = cmp.Or(d.Lease, defaultLease), cmp.Or(d.FirstPause, defaultPause)
	d.poll = cmp.Or(d.poll, min(pollTime, d.FirstPause, d.Lease/6))
	d.tail.MaxEvents, d.tail.MaxBytes = tailEvents, tailBytes
	d.usual, d.lame = places(perNode), places(perNodeLame)
	d.hooks = map[string]*served{}
}

// begin lists the webhooks there are. Those that change afterwards are seen in the log.
func (d *Dispatcher) begin(ctx context.Context) error {
	end, err := d.Webhooks.Store.Position(ctx)
	if err != nil {
		return err
	}
	d.tail.Begin(end)
	var old []string
	for after := (&event.Cursor{}); after != nil; {
		var found []*event.Object[Webhook]
		if found, after, err = Kind.List(ctx, d.Webhooks.Store, event.Query{After: *after, Limit: page}); err != nil {
			return err
		}
		for _, o := range found {
			d.noteChange(o.ID, o.Org)
			if o.Data.AddressInLog {
				old = append(old, o.ID)
			}
		}
	}
	if n := len(old); n > 0 && !d.warned {
		d.warned = true
		d.Log.Warn("the log contains addresses of webhooks that an older version recorded: if they contain tokens, replace the tokens and set the addresses again",
			"webhooks", n, "such as", old[:min(n, 10)])
	}
	return nil
}

// follow reads the end of the log, looks at the webhooks that have changed, and wakes those that may have something to do.
func (d *Dispatcher) follow(ctx context.Context) error {
	grown := false
	for {
		end, _ := d.tail.End()
		events, err := d.Webhooks.Store.Events(ctx, end, tailEvents/4)
		if err != nil {
			return err
		}
		for i := range events {
			switch e := &events[i]; e.Type.Kind() {
			case Kind.Name():
				d.noteChange(e.ObjectID, e.Org)
			case "org":
				for _, s := range d.hooks {
					s.changed = s.changed || s.org == e.ObjectID
				}
			}
		}
		d.tail.Add(events)
		grown = grown || len(events) > 0
		if len(events) < tailEvents/4 {
			break
		}
	}
	for id, s := range d.hooks {
		if grown && s.worker != nil {
			s.worker.Wake()
		}
		if s.changed {
			if err := d.look(ctx, id, s); err != nil {
				return err
			}
			s.changed = false
		}
	}
	return nil
}

// noteChange lets a webhook be looked at.
func (d *Dispatcher) noteChange(id, org string) {
	if d.hooks[id] == nil {
		d.hooks[id] = &served{org: org}
	}
	d.hooks[id].changed = true
}

// look starts to serve a webhook that is in use, and ends it where it is not any more.
func (d *Dispatcher) look(ctx context.Context, id string, s *served) error {
	u, err := d.Webhooks.use(ctx, id, nil)
	switch {
	case err == errNotInUse:
		return d.end(ctx, id, s)
	case err == nil && s.worker != nil:
		s.worker.changed.Store(true)
		s.worker.Wake()
	case err == nil:
		d.serve(ctx, newWorker(d, id, u), s)
	}
	return err
}

// serve runs a worker, once the one before it has ended.
func (d *Dispatcher) serve(ctx context.Context, w *worker, s *served) {
	before, ended := s.ended, make(chan struct{})
	ctx, s.cancel = context.WithCancel(ctx)
	s.worker, s.ended = w, ended
	d.all.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		w.Run(ctx)
	})
}

// end lets a webhook go that is not in use, and clears away what is left of one that was removed.
func (d *Dispatcher) end(ctx context.Context, id string, s *served) error {
	if s.worker != nil {
		s.cancel()
		s.worker = nil
	}
	o, err := Kind.Read(ctx, d.Webhooks.Store, id)
	if err == nil && (o == nil || o.Data.State == Removed) {
		if err = Clear(ctx, d.Webhooks.Store, id); err == nil {
			delete(d.hooks, id)
		}
	}
	return err
}

// places are shared by organizations. How many messages wait for one follows from how many webhooks there are.
func places(n int) *share.Places {
	return share.New(share.Bounds{Places: n, Waiting: math.MaxInt, Reserve: true})
}

// enter waits for a place, and gives back how to leave it; nil where ctx ends first. Who stays long moves over to the places of those
// that do not answer, where there is one, so that many who stall at once do not keep the others of their organization out.
func (d *Dispatcher) enter(ctx context.Context, places *share.Places, org string) (leave func()) {
	claim := share.Claim{Org: org}
	if places.Enter(ctx, claim) != nil {
		return nil
	}
	var mu sync.Mutex
	left := false
	move := time.AfterFunc(slow, func() {
		mu.Lock()
		defer mu.Unlock()
		if !left && places != d.lame && d.lame.Try(claim) { // it may have begun before it was stopped
			places.Leave(claim)
			places = d.lame
		}
	})
	return func() {
		move.Stop()
		mu.Lock()
		defer mu.Unlock()
		left = true
		places.Leave(claim)
	}
}

// events gives up to limit events behind a position, from memory where they are there.
func (d *Dispatcher) events(ctx context.Context, position int64, limit int) ([]event.Event, error) {
	if found, here := d.tail.After(position, limit); here {
		return found, nil
	}
	return d.Webhooks.Store.Events(ctx, position, limit)
}
