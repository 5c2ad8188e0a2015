package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
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

	manyHooks = 1000
	// events that a start reads again, if it is not known up to where the log was looked at
	maxBehind  = 20_000
	sweepTime  = 10 * time.Second // between looks at the rows of some idle webhooks
	sweepParts = 60               // looks until all were seen

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
	// FirstPause is how long an event that has failed waits for its second try; the other pauses follow from it, see
	// pauses. Zero: 5 seconds.
	FirstPause time.Duration

	poll  time.Duration
	tail  event.Tail
	usual *fairqueue.Slots // for messages on their way to receivers that answer
	lame  *fairqueue.Slots // and to others
	all   sync.WaitGroup

	hooks   map[string]*served // all that are not removed
	order   []string           // of their identifiers, for sweep
	touched map[string]*served // that are to be looked at
	active  map[string]*served // that have a worker
	owners  index              // all, by the organization that they belong to
	idle    index              // those that are idle, by the organizations whose events they want

	listed int64 // what changed up to here was known when the webhooks were listed
	litter int   // webhooks listed and workers ended since memory was given back

	swept     time.Time // see sweep
	next      int
	looked    int64 // see noteLooked
	candidate int64
	since     time.Time

	warned bool // of addresses that stand in the log
}

// served is a webhook as the dispatcher knows it. One that is idle is no more than this.
type served struct {
	id, org string
	from    int64 // nothing up to here is wanted, if the row says that it is idle

	idle     *Selection // which events wake it; nil: it is not idle
	position int64      // of an idle one: behind that

	worker *worker       // nil: it is idle, or not in use
	cancel func()        // ends the worker
	ending bool          // that was called, because there is nothing to do
	ended  chan struct{} // closed when the last worker has ended; nil: there was none
}

// index finds webhooks by organization.
type index map[string]map[string]*served

func (x index) put(org string, s *served) {
	if x[org] == nil {
		x[org] = map[string]*served{}
	}
	x[org][s.id] = s
}

func (x index) drop(org string, s *served) {
	if delete(x[org], s.id); len(x[org]) == 0 {
		delete(x, org)
	}
}

// everyOrg stands for all organizations in the index of those that events wake.
const everyOrg = "*"

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
	d.usual, d.lame = newSlots(perNode), newSlots(perNodeLame)
	d.forget()
}

// begin lists the webhooks there are. Those that change afterwards are seen in the log, and those that are idle are
// woken by what they want of it: from where all of them were looked at. If nobody knows where that is, it is read from
// the first of their own positions, and those that are far behind are not idle.
func (d *Dispatcher) begin(ctx context.Context) error {
	end, err := d.Webhooks.Store.Position(ctx)
	if err != nil {
		return err
	}
	d.forget()
	d.listed = end
	start := end
	var old []string
	looked := int64(-1)
	for after := (&event.Cursor{}); after != nil; {
		var found []*event.Object[Webhook]
		if found, after, err = Kind.List(ctx, d.Webhooks.Store, event.Query{After: *after, Limit: page}); err != nil {
			return err
		}
		if looked < 0 && len(found) > 0 {
			if looked, err = d.readLooked(ctx); err != nil {
				return err
			}
		}
		for _, o := range found {
			s := d.noteChange(o.ID, o.Org, 0)
			if o.Data.AddressInLog {
				old = append(old, o.ID)
			}
			if o.Data.State != Active {
				continue
			}
			p, err := d.lease(s).Read(ctx)
			if err != nil {
				return err
			}
			if p != nil && p.Idle && p.Node == "" && (looked > 0 || p.Position >= end-maxBehind) {
				delete(d.touched, o.ID)
				d.rest(s, o.Data.Selection, p.Position)
				start = min(start, p.Position)
			}
		}
		// the entries that stay would lie scattered over a large heap, which could not be given back
		if d.litter += len(found); d.litter >= manyHooks {
			d.litter = 0
			runtime.GC()
		}
	}
	if looked > 0 {
		start = min(end, looked)
	}
	d.tail.Begin(start)
	d.litter = len(d.hooks)
	if n := len(old); n > 0 && !d.warned {
		d.warned = true
		d.Log.Warn("the log contains addresses of webhooks that an older version recorded: if they contain tokens, replace the tokens and set the addresses again",
			"webhooks", n, "such as", old[:min(n, 10)])
	}
	return nil
}

func (d *Dispatcher) forget() {
	d.hooks, d.touched, d.active = map[string]*served{}, map[string]*served{}, map[string]*served{}
	d.owners, d.idle = index{}, index{}
	d.order, d.candidate = nil, 0
}

// follow reads the end of the log, looks at the webhooks that have changed, and wakes those that may have something to
// do.
func (d *Dispatcher) follow(ctx context.Context) error {
	grown := false
	for {
		end, _ := d.tail.End()
		events, err := d.Webhooks.Store.Events(ctx, end, tailEvents/4)
		if err != nil {
			return err
		}
		for i := range events {
			d.see(&events[i])
		}
		d.tail.Add(events)
		grown = grown || len(events) > 0
		if len(events) < tailEvents/4 {
			break
		}
	}
	d.giveBack(d.letRest())
	if err := d.sweep(ctx); err != nil {
		return err
	}
	if end, _ := d.tail.End(); grown {
		for _, s := range d.active {
			s.worker.Follow(end)
		}
	}
	for id, s := range d.touched {
		if s.ending {
			continue // until it has ended
		}
		if err := d.look(ctx, id, s); err != nil {
			return err
		}
		delete(d.touched, id)
	}
	return d.noteLooked(ctx)
}

// see takes in an event: what it changes, and who wants it.
func (d *Dispatcher) see(e *event.Event) {
	switch e.Type.Kind() {
	case Kind.Name():
		if !d.knows(d.hooks[e.ObjectID], e) {
			d.noteChange(e.ObjectID, e.Org, e.Position-1)
		}
	case "org":
		for _, s := range d.owners[e.ObjectID] {
			if !d.knows(s, e) {
				d.noteChange(s.id, s.org, e.Position-1)
			}
		}
	}
	for _, org := range [...]string{e.Org, everyOrg} {
		for _, s := range d.idle[org] {
			if e.Position > s.position && s.idle.wants(s.org, e) {
				d.wake(s, e.Position-1)
			}
		}
	}
}

// knows tells whether an idle webhook was listed with a change already. Otherwise a start would wake all webhooks that
// were added shortly before it.
func (d *Dispatcher) knows(s *served, e *event.Event) bool {
	return s != nil && s.idle != nil && e.Position <= d.listed
}

// noteChange lets a webhook be looked at. If it is idle, it wants nothing up to from.
func (d *Dispatcher) noteChange(id, org string, from int64) *served {
	s := d.hooks[id]
	if s == nil {
		for _, other := range d.owners[org] {
			org = other.org // one text for all of them
			break
		}
		s = &served{id: id, org: org}
		d.hooks[id] = s
		d.owners.put(org, s)
		d.order = append(d.order, id)
	}
	if s.idle != nil {
		d.wake(s, max(from, s.position))
	}
	d.touched[id] = s
	return s
}

// rest makes a webhook idle: all that there is of it from now on is an entry in the index.
func (d *Dispatcher) rest(s *served, selection Selection, position int64) {
	s.idle, s.position, s.worker, s.cancel, s.ending = &selection, position, nil, nil, false
	for _, org := range s.wakers() {
		d.idle.put(org, s)
	}
}

// wake ends that, because of an event behind from.
func (d *Dispatcher) wake(s *served, from int64) {
	for _, org := range s.wakers() {
		d.idle.drop(org, s)
	}
	s.idle, s.from = nil, from
	d.touched[s.id] = s
}

// wakers are the organizations whose events may wake an idle webhook.
func (s *served) wakers() []string {
	switch {
	case s.idle.AllOrganizations:
		return []string{everyOrg}
	case len(s.idle.OrganizationIDs) > 0:
		return s.idle.OrganizationIDs
	}
	return []string{s.org}
}

// letRest ends workers that have nothing to do, and makes the webhooks of those that have ended idle, unless the log
// has grown meanwhile by what they want. It tells how many ended.
func (d *Dispatcher) letRest() (ended int) {
	for id, s := range d.active {
		if !s.ending {
			if _, changed := d.touched[id]; !changed && s.worker.Resting(d.Lease) {
				s.ending = true
				s.cancel()
			}
			continue
		}
		select {
		case <-s.ended:
		default:
			continue
		}
		delete(d.active, id)
		ended++
		w := s.worker
		s.worker, s.cancel, s.ending = nil, nil, false
		position, idle := w.Rested()
		if !idle {
			s.from = 0
			d.touched[id] = s
			continue
		}
		d.rest(s, w.known.Load().hook.Data.Selection, position)
		missed, here := d.tail.After(position, tailEvents)
		if !here {
			d.wake(s, position)
			continue
		}
		for i := range missed {
			if s.idle != nil && s.idle.wants(s.org, &missed[i]) {
				d.wake(s, missed[i].Position-1)
			}
		}
	}
	return ended
}

// giveBack returns memory to the system after many webhooks were listed or many workers ended, once no more do: by
// itself the runtime keeps the heap that they needed.
func (d *Dispatcher) giveBack(ended int) {
	if d.litter += ended; ended == 0 && d.litter > manyHooks {
		d.litter = 0
		debug.FreeOSMemory()
	}
}

// sweep looks at the rows of some idle webhooks now and then: a node of an older version may have begun with one, and
// died.
func (d *Dispatcher) sweep(ctx context.Context) error {
	now := d.Webhooks.Clock()
	if since := now.Sub(d.swept); since >= 0 && since < sweepTime || len(d.order) == 0 {
		return nil
	}
	for range 1 + len(d.order)/sweepParts {
		d.next = (d.next + 1) % len(d.order)
		s := d.hooks[d.order[d.next]]
		if s == nil || s.idle == nil {
			continue
		}
		p, err := d.lease(s).Read(ctx)
		if err != nil {
			return err
		}
		if p != nil && !p.Idle {
			d.wake(s, 0)
		}
	}
	d.swept = now
	return nil
}

func (d *Dispatcher) lease(s *served) *notify.Lease {
	return &notify.Lease{Store: d.Webhooks.Store, Row: progressRow(s.id)}
}

// lookedRow says up to where the log was looked at for all webhooks: one that wants an event before that is not idle
// any more, as its row says, or has come behind it.
var lookedRow = event.RowKey{Table: event.Followers, Key: "webhooks/looked"}

func (d *Dispatcher) readLooked(ctx context.Context) (int64, error) {
	p, err := (&notify.Lease{Store: d.Webhooks.Store, Row: lookedRow}).Read(ctx)
	if err != nil || p == nil {
		return 0, err
	}
	return p.Position, nil
}

// noteLooked writes lookedRow. It waits for two leases after the position became true: by then, every node that was
// about to begin serving a webhook has begun.
func (d *Dispatcher) noteLooked(ctx context.Context) error {
	if len(d.touched) > 0 {
		return nil
	}
	for _, s := range d.active {
		if !s.worker.Marked() {
			return nil
		}
	}
	now := d.Webhooks.Clock()
	if d.candidate == 0 {
		if end, _ := d.tail.End(); end > d.looked {
			d.candidate, d.since = end, now
		}
		return nil
	}
	if since := now.Sub(d.since); since >= 0 && since < 2*d.Lease {
		return nil
	}
	err := d.Webhooks.Store.Do(ctx, event.Command{
		Origin: system,
		Rows:   []event.RowKey{lookedRow},
		Decide: func(tx *event.Tx) error {
			return (&notify.Progress{Position: d.candidate}).Put(tx, lookedRow)
		},
	})
	if err == nil {
		d.looked, d.candidate = d.candidate, 0
	}
	return err
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
	w.From = s.from
	end, _ := d.tail.End()
	w.Follow(end)
	d.active[s.id] = s
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
		delete(d.active, id)
	} else if s.from > 0 { // what happens until it is in use again is for it, and nothing before
		if err := d.lease(s).Wake(ctx, s.from); err != nil {
			return err
		}
		s.from = 0
	}
	o, err := Kind.Read(ctx, d.Webhooks.Store, id)
	if err == nil && (o == nil || o.Data.State == Removed) {
		if err = Clear(ctx, d.Webhooks.Store, id); err == nil {
			delete(d.hooks, id)
			d.owners.drop(s.org, s)
			d.order = slices.DeleteFunc(d.order, func(other string) bool { return other == id })
		}
	}
	return err
}

// newSlots makes slots that organizations share. How many messages wait for one follows from the number of webhooks.
func newSlots(n int) *fairqueue.Slots {
	return fairqueue.New(fairqueue.Bounds{Slots: n, Waiting: math.MaxInt, Reserve: true})
}

// enter waits for a slot, and gives back how to leave it; nil where ctx ends first. Who stays long moves over to the
// slots of those that do not answer, where there is one, so that many who stall at once do not keep the others of
// their organization out.
func (d *Dispatcher) enter(ctx context.Context, slots *fairqueue.Slots, org string) (leave func()) {
	claim := fairqueue.Claim{Org: org}
	if slots.Enter(ctx, claim) != nil {
		return nil
	}
	var mu sync.Mutex
	left := false
	move := time.AfterFunc(slow, func() {
		mu.Lock()
		defer mu.Unlock()
		if !left && slots != d.lame && d.lame.Try(claim) { // it may have begun before it was stopped
			slots.Leave(claim)
			slots = d.lame
		}
	})
	return func() {
		move.Stop()
		mu.Lock()
		defer mu.Unlock()
		left = true
		slots.Leave(claim)
	}
}

// events gives up to limit events behind a position, from memory where they are there.
func (d *Dispatcher) events(ctx context.Context, position int64, limit int) ([]event.Event, error) {
	if found, here := d.tail.After(position, limit); here {
		return found, nil
	}
	return d.Webhooks.Store.Events(ctx, position, limit)
}
