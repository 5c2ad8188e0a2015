package webhook

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/share"
)

const (
	pollTime     = time.Second // how often to look for what other nodes have written
	defaultLease = 30 * time.Second
	defaultPause = 5 * time.Second // before the second try
	stopTime     = 3 * time.Second // that messages on their way have when the node stops

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
	// Lease is how long a node that has died keeps others from its webhooks; zero: 30 seconds.
	Lease time.Duration
	// FirstPause is how long an event that has failed waits for its second try; the other pauses follow from it, see pauses. Zero: 5 seconds.
	FirstPause time.Duration

	poll   time.Duration
	tail   event.Tail
	usual  *share.Places     // for messages on their way to receivers that answer
	lame   *share.Places     // and to others
	orgs   map[string]string // of all webhooks that are not removed
	served map[string]*worker
	ending map[string]<-chan struct{} // closed when the worker that served a webhook before has ended
	doubts map[string]bool            // webhooks to look at
	all    sync.WaitGroup
	warned bool // of addresses that stand in the log
}

// Run serves until ctx ends. Messages on their way are waited for a little.
func (d *Dispatcher) Run(ctx context.Context) {
	if d.Lease == 0 {
		d.Lease = defaultLease
	}
	if d.FirstPause == 0 {
		d.FirstPause = defaultPause
	}
	if d.poll == 0 {
		d.poll = min(pollTime, d.FirstPause, d.Lease/6)
	}
	d.tail.MaxEvents, d.tail.MaxBytes = tailEvents, tailBytes
	d.usual, d.lame = places(perNode), places(perNodeLame)
	d.orgs, d.served, d.ending, d.doubts = map[string]string{}, map[string]*worker{}, map[string]<-chan struct{}{}, map[string]bool{}
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
		if err == nil && len(d.orgs) > 0 {
			err = d.follow(ctx)
			begun = true
		}
		if len(d.orgs) == 0 { // an installation without webhooks need not read its log for them
			begun, written = false, nil
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			d.Log.Warn("webhooks: they go on when the store answers", "error", err)
		}
		failing = err != nil
		if !event.Await(ctx, written, ticker.C, event.Gather) {
			return
		}
	}
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
			d.orgs[o.ID], d.doubts[o.ID] = o.Org, true
			if o.State.AddressInLog {
				old = append(old, o.ID)
			}
		}
	}
	if n := len(old); n > 0 && !d.warned {
		d.warned = true
		d.Log.Warn("webhooks: an older version has recorded the addresses of some in the log, where they stay: if there are tokens in them, get new ones and set the addresses anew",
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
				d.orgs[e.ObjectID], d.doubts[e.ObjectID] = e.Org, true
			case "org":
				for id, org := range d.orgs {
					if org == e.ObjectID {
						d.doubts[id] = true
					}
				}
			}
		}
		d.tail.Add(events)
		grown = grown || len(events) > 0
		if len(events) < tailEvents/4 {
			break
		}
	}
	if grown {
		for _, w := range d.served {
			w.wakeUp()
		}
	}
	for id := range d.doubts {
		if err := d.look(ctx, id); err != nil {
			return err
		}
		delete(d.doubts, id)
	}
	return nil
}

// look starts to serve a webhook that is in use, and ends it where it is not any more.
func (d *Dispatcher) look(ctx context.Context, id string) error {
	_, err := d.Webhooks.use(ctx, id, nil)
	serving := d.served[id]
	switch {
	case err == nil && serving == nil:
		w, before := newWorker(d, id), d.ending[id]
		d.served[id] = w
		delete(d.ending, id)
		within, cancel := context.WithCancel(ctx)
		w.cancel = cancel
		d.all.Go(func() {
			if before != nil {
				<-before
			}
			w.run(within)
		})
	case err == nil:
		serving.changed.Store(true)
		serving.wakeUp()
	case err == errNotInUse:
		if serving != nil {
			serving.cancel()
			delete(d.served, id)
			d.ending[id] = serving.done
		}
		o, err := Kind.Read(ctx, d.Webhooks.Store, id)
		if err != nil {
			return err
		}
		if o == nil || o.State.State == Removed {
			if err := Clear(ctx, d.Webhooks.Store, id); err != nil {
				return err
			}
			delete(d.orgs, id)
			delete(d.ending, id)
		}
	default:
		return err
	}
	return nil
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
