// Package fairqueue shares a scarce resource of a node fairly between the organizations that want it, so that none of
// them can use it up.
//
// Slots limits how many callers do something at once: hash passwords, send messages, keep streams open.
// A slot that becomes free goes to the organization that holds the fewest. If several hold equally few, it goes to the
// one that has waited longest for its turn, no matter how many of its callers wait. An organization that is alone gets
// all slots, unless Bounds.Reserve is set. If the waiting line is full, the organization with the most waiters loses
// one.
//
// This does not work for slots that are held for a long time: a new caller would have to wait until another one
// leaves. For such slots, Bounds.Reserve keeps room for other organizations.
package fairqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

// UsedUp says that an organization has its share of something, and has to wait until it needs less of it.
const UsedUp errs.Reason = "ORGANIZATION_SHARE_USED_UP"

// ErrUsedUp is the refusal of one more for an organization that has its share.
var ErrUsedUp = &errs.Error{Kind: errs.ResourceExhausted, Reason: UsedUp, RetryAfter: 2 * time.Second,
	Message: "your organization has used up its share of this server: send fewer requests at the same time, and try again shortly"}

// Busy says that more is asked for than the server can begin in time.
const Busy errs.Reason = "SERVER_BUSY"

// ErrBusy is the refusal where it is nobody's share.
var ErrBusy = &errs.Error{Kind: errs.Unavailable, Reason: Busy, RetryAfter: time.Second,
	Message: "this server is busy: try again shortly, or on another node"}

// Bounds of slots.
type Bounds struct {
	Slots   int // that are held at once
	Waiting int // callers whom we know that wait; 0: nobody does
	Public  int // others who wait
	Bytes   int // that the waiting of either kind keep in memory; 0: any

	// Reserve gives an organization another slot only while more are free than it holds already: it never has more
	// than half, the next one never more than half of what is left, and so on.
	Reserve bool

	// Full is the refusal where it is nobody's share, UsedUp where it is; nil: ErrBusy and ErrUsedUp.
	Full, UsedUp *errs.Error
}

// Claim is what somebody wants a slot for.
type Claim struct {
	Org     string
	Network string // of who asks, where an organization's own turn is divided by that, too
	// anybody can ask for it, so what the organization's own people ask for goes first, three times out of four
	Public bool
	Bytes  int // that the caller keeps in memory while it waits
}

// Slots are divided between organizations. They are safe for concurrent use.
type Slots struct {
	bounds Bounds

	mu      sync.Mutex
	free    int
	lent    int // see Lend
	groups  map[string]*group
	turns   uint64 // that were given so far
	tickets uint64
	line    [2]load // of all that wait, those whom we know and the public
	refused Refused
	pace    Pace
	moved   time.Time // when the line last moved, or began
}

// Refused is how many were refused so far: because of an organization's share, and because there is no room for
// anybody, or none in time.
type Refused struct{ UsedUp, Full uint64 }

// load is what waits somewhere.
type load struct{ callers, bytes int }

func (l *load) add(callers, bytes int) { l.callers, l.bytes = l.callers+callers, l.bytes+bytes }

// group is one organization.
type group struct {
	held  int
	last  uint64 // its last turn; at first the one before it came, so that being new is no merit
	lanes []*lane
	line  [2]load
	own   int // turns of its own people in a row while the public waited
}

// mostOwn turns of its own people are followed by one of the public: a client that sets passwords without a pause must
// not keep everybody from signing in.
const mostOwn = 3

// lane is one network within an organization, and either what is public or what is not.
type lane struct {
	network string
	public  bool
	held    int
	last    uint64
	waiting []*waiter
}

type waiter struct {
	claim  Claim
	ticket uint64
	turn   chan error // nil: the slot is the waiter's; else why it will not be
}

// Of groups and lanes that nobody uses so many are kept, to be used again.
const (
	idleGroups = 256
	idleLanes  = 8
)

// New makes slots that are all free.
func New(b Bounds) *Slots {
	if b.Full == nil {
		b.Full = ErrBusy
	}
	if b.UsedUp == nil {
		b.UsedUp = ErrUsedUp
	}
	return &Slots{bounds: b, free: b.Slots, groups: map[string]*group{}}
}

// Do runs work in a slot; nil has room for all. Errors: those of Enter, and of work. Work that has begun is not
// interrupted.
func (s *Slots) Do(ctx context.Context, c Claim, work func() error) error {
	if s == nil {
		return work()
	}
	if err := s.Enter(ctx, c); err != nil {
		return err
	}
	defer s.Leave(c)
	// When the slot and the end of ctx come together, the work would be for nobody.
	if err := ctx.Err(); err != nil {
		return err
	}
	return work()
}

// Enter waits for a slot. A caller that gets one must call Leave with the same claim. Errors: Bounds.UsedUp;
// Bounds.Full, also if the deadline of ctx passes before the turn comes, or is sure to; ctx.Err() if it is cancelled.
func (s *Slots) Enter(ctx context.Context, c Claim) error {
	s.mu.Lock()
	g := s.group(c.Org)
	if s.may(g) { // nobody who waits could take it, or would have
		s.hold(g, g.lane(c, s.turns))
		s.mu.Unlock()
		return nil
	}
	err := s.pace.Admit(ctx, s.ahead(g, &c), s.bounds.Full)
	if err != nil {
		s.refused.Full++
	} else {
		err = s.makeRoom(g, &c)
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	w := s.queue(g, c)
	s.mu.Unlock()

	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-w.turn: // it came at the same moment
		if err == nil {
			s.leave(c)
		}
	default:
		s.unqueue(w)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.refused.Full++
		return s.bounds.Full.Because(ctx.Err())
	}
	return ctx.Err()
}

// Try takes a slot that is free at this moment, and tells whether there was one.
func (s *Slots) Try(c Claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(c.Org)
	if !s.may(g) {
		return false
	}
	s.hold(g, g.lane(c, s.turns))
	return true
}

// Leave gives a slot back.
func (s *Slots) Leave(c Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c)
}

// Lend runs work that goes before whatever the slots are for: until it is done, n of them are given to nobody. The
// work does not wait until they are free, and one slot is always given. nil has none to lend.
func (s *Slots) Lend(n int, work func() error) error {
	if s == nil {
		return work()
	}
	lend := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent += n
		s.call()
	}
	lend(n)
	defer lend(-n)
	return work()
}

// Load tells how many slots are held, and how many callers wait.
func (s *Slots) Load() (held, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounds.Slots - s.free, s.waiting()
}

// Bounds are those that the slots were made with, with the refusals that follow from them.
func (s *Slots) Bounds() Bounds { return s.bounds }

// Refused tells how many were refused.
func (s *Slots) Refused() Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *Slots) waiting() int { return s.line[0].callers + s.line[1].callers }

// may tells whether an organization may have one more.
func (s *Slots) may(g *group) bool {
	if s.lent >= s.free && s.free < s.bounds.Slots {
		return false
	}
	return s.free > 0 && (!s.bounds.Reserve || g.held < s.free)
}

func (s *Slots) hold(g *group, l *lane) {
	s.free--
	s.turns++
	g.held, g.last = g.held+1, s.turns
	if l.public || g.line[class(true)].callers == 0 {
		g.own = 0
	} else {
		g.own++
	}
	l.held, l.last = l.held+1, s.turns
}

func (s *Slots) leave(c Claim) {
	g := s.groups[c.Org]
	if g == nil || g.lane(c, s.turns).held == 0 {
		panic("fairqueue: a slot is given back that nobody holds")
	}
	g.held--
	g.lane(c, s.turns).held--
	s.free++
	s.call()
}

// call gives what is free to those who wait for it.
func (s *Slots) call() {
	for s.waiting() > 0 {
		g, l := s.next()
		if g == nil {
			return
		}
		w := l.waiting[0]
		s.unqueue(w)
		s.hold(g, l)
		now := time.Now()
		s.pace.Moved(1, now.Sub(s.moved))
		s.moved = now
		w.turn <- nil
	}
}

// next finds whose turn it is.
func (s *Slots) next() (best *group, first *lane) {
	for _, g := range s.groups {
		if g.line[0].callers+g.line[1].callers == 0 || !s.may(g) {
			continue
		}
		if l := g.next(); best == nil || before(g.held, best.held, g.last, best.last, l, first) {
			best, first = g, l
		}
	}
	return best, first
}

// next finds whose turn it is within an organization where somebody waits.
func (g *group) next() (best *lane) {
	publicFirst := g.own >= mostOwn
	for _, l := range g.lanes {
		switch {
		case len(l.waiting) == 0:
		case best == nil, l.public == publicFirst && best.public != publicFirst,
			l.public == best.public && before(l.held, best.held, l.last, best.last, l, best):
			best = l
		}
	}
	return best
}

// before tells whether the first of two is served before the second.
func before(held, otherHeld int, last, otherLast uint64, l, other *lane) bool {
	switch {
	case held != otherHeld:
		return held < otherHeld
	case last != otherLast:
		return last < otherLast
	case l.public != other.public:
		return other.public
	}
	return l.waiting[0].ticket < other.waiting[0].ticket
}

func class(public bool) int {
	if public {
		return 1
	}
	return 0
}

// ahead tells how many turns a newcomer waits for at least: those of its own organization that go before it, and as
// many of each other that waits.
func (s *Slots) ahead(g *group, c *Claim) int {
	own, lanes, groups := g.line[0].callers, 0, 0
	if c.Public {
		for _, l := range g.lanes {
			if l.public && len(l.waiting) > 0 {
				lanes++
			}
		}
		public := min(g.line[1].callers, len(g.lane(*c, s.turns).waiting)*lanes)
		own = public + min(own, public*mostOwn)
	}
	for _, other := range s.groups {
		if other.line[0].callers+other.line[1].callers > 0 {
			groups++
		}
	}
	return min(s.waiting(), own*groups)
}

func (s *Slots) queue(g *group, c Claim) *waiter {
	if s.waiting() == 0 {
		s.moved = time.Now()
	}
	s.tickets++
	w := &waiter{claim: c, ticket: s.tickets, turn: make(chan error, 1)}
	l := g.lane(c, s.turns)
	l.waiting = append(l.waiting, w)
	s.line[class(c.Public)].add(1, c.Bytes)
	g.line[class(c.Public)].add(1, c.Bytes)
	return w
}

func (s *Slots) unqueue(w *waiter) {
	g := s.groups[w.claim.Org]
	l := g.lane(w.claim, s.turns)
	for i, other := range l.waiting {
		if other == w {
			copy(l.waiting[i:], l.waiting[i+1:])
			l.waiting[len(l.waiting)-1] = nil
			l.waiting = l.waiting[:len(l.waiting)-1]
			break
		}
	}
	s.line[class(w.claim.Public)].add(-1, -w.claim.Bytes)
	g.line[class(w.claim.Public)].add(-1, -w.claim.Bytes)
}

// makeRoom makes sure that one more caller can wait. If the line is full, the organization or the network that has the
// most in it loses its newest waiter, see heaviest.
func (s *Slots) makeRoom(g *group, c *Claim) error {
	line, most := &s.line[class(c.Public)], s.bounds.Waiting
	if c.Public {
		most = s.bounds.Public
	}
	for {
		weigh := func(l load) int { return l.callers }
		mine := 1
		switch {
		case line.callers >= most:
		case s.bounds.Bytes > 0 && c.Bytes > s.bounds.Bytes-line.bytes:
			weigh = func(l load) int { return l.bytes }
			mine = c.Bytes
		default:
			return nil
		}
		victim := s.heaviest(g, c, weigh, mine)
		switch {
		case victim != nil:
			s.unqueue(victim)
			s.refused.UsedUp++
			victim.turn <- s.bounds.UsedUp
		case s.free > 0, 0 < g.line[class(c.Public)].callers && g.line[class(c.Public)].callers < line.callers:
			s.refused.UsedUp++
			return s.bounds.UsedUp
		default:
			s.refused.Full++
			return s.bounds.Full
		}
	}
}

// heaviest finds who has to make room: the last of the organization that has the most waiting, or else of the network
// that has, where that is more than the newcomer's would have. Of what is public the networks come first, and the
// organization's turn is never at the expense of a network that has less waiting than the newcomer's: anybody can name
// any organization.
func (s *Slots) heaviest(g *group, c *Claim, weigh func(load) int, mine int) *waiter {
	networks, lanes := map[string]load{}, []*lane(nil)
	for _, other := range s.groups {
		for _, l := range other.lanes {
			if l.public == c.Public && len(l.waiting) > 0 {
				sum, here := networks[l.network], l.load()
				sum.add(here.callers, here.bytes)
				networks[l.network], lanes = sum, append(lanes, l)
			}
		}
	}
	ofNetwork := func() *waiter {
		most := c.Network
		for network, sum := range networks {
			if weigh(sum) > weigh(networks[most]) {
				most = network
			}
		}
		if weigh(networks[most]) > weigh(networks[c.Network])+mine {
			return last(lanes, func(l *lane) bool { return l.network == most })
		}
		return nil
	}
	ofOrganization := func() *waiter {
		may := func(l *lane) bool {
			return l.public == c.Public &&
				(!l.public || l.network == c.Network || weigh(networks[l.network]) >= weigh(networks[c.Network])+mine)
		}
		var from *group
		most := weigh(g.line[class(c.Public)]) + mine
		for _, other := range s.groups {
			var sum load
			for _, l := range other.lanes {
				if may(l) {
					here := l.load()
					sum.add(here.callers, here.bytes)
				}
			}
			if other != g && weigh(sum) > most {
				from, most = other, weigh(sum)
			}
		}
		if from == nil {
			return nil
		}
		return last(from.lanes, may)
	}
	first, second := ofOrganization, ofNetwork
	if c.Public {
		first, second = second, first
	}
	if w := first(); w != nil {
		return w
	}
	return second()
}

// load is what waits in a lane.
func (l *lane) load() (sum load) {
	for _, w := range l.waiting {
		sum.add(1, w.claim.Bytes)
	}
	return sum
}

// last gives the newest waiter of the longest of these lanes.
func last(lanes []*lane, of func(*lane) bool) *waiter {
	var longest *lane
	for _, l := range lanes {
		if of(l) && len(l.waiting) > 0 && (longest == nil || len(l.waiting) > len(longest.waiting)) {
			longest = l
		}
	}
	return longest.waiting[len(longest.waiting)-1]
}

func (s *Slots) group(org string) *group {
	g := s.groups[org]
	if g == nil {
		if len(s.groups) >= idleGroups {
			for key, other := range s.groups {
				if other.held == 0 && other.line == [2]load{} {
					delete(s.groups, key)
				}
			}
		}
		g = &group{last: s.turns}
		s.groups[org] = g
	}
	return g
}

func (g *group) lane(c Claim, turns uint64) *lane {
	idle := 0
	for _, l := range g.lanes {
		if l.network == c.Network && l.public == c.Public {
			return l
		}
		if l.held == 0 && len(l.waiting) == 0 {
			idle++
		}
	}
	if idle >= idleLanes {
		kept := g.lanes[:0]
		for _, l := range g.lanes {
			if l.held > 0 || len(l.waiting) > 0 {
				kept = append(kept, l)
			}
		}
		clear(g.lanes[len(kept):])
		g.lanes = kept
	}
	l := &lane{network: c.Network, public: c.Public, last: turns}
	g.lanes = append(g.lanes, l)
	return l
}
