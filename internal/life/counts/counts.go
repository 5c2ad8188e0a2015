// Package counts tells how many objects an organization has. The numbers are exact. They are read over indexes when
// somebody asks: no command pays for them, and there is no row that all commands of an organization would wait for.
package counts

import (
	"context"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
)

// Numbers are those that a caller may know; nil: not this one.
type Numbers struct {
	People          *int64
	ServiceUsers    *int64
	Applications    *int64
	Groups          *int64
	Providers       *int64
	OpenInvitations *int64
}

// Held is for how long the numbers of a large organization are the answer to others, too.
const Held = 10 * time.Second

const (
	// large is from which number on numbers are held. Smaller ones are read sooner than a page of a list.
	large = 10_000
	// maxHeld is how many answers are held.
	maxHeld = 1000
)

// Counts counts. Safe for concurrent use.
type Counts struct {
	reader event.Reader
	clock  func() time.Time

	mu    sync.Mutex
	turns map[string]*turn // by organization
	held  map[asked]answer
}

// turn is of the one who reads the numbers of an organization.
type turn struct {
	taken chan struct{} // has room for one
	users int           // who has it or waits for it
}

// asked is a question: who may know the same numbers asks the same.
type asked struct {
	org                                         string
	users, apps, groups, providers, invitations bool
}

type answer struct {
	numbers Numbers
	until   time.Time
}

// New makes one that has read nothing.
func New(r event.Reader, clock func() time.Time) *Counts {
	return &Counts{reader: r, clock: clock, turns: map[string]*turn{}, held: map[asked]answer{}}
}

// Of gives the numbers of the permit's organization, of what the caller may list there. Of each organization one caller
// reads at a time. Others wait, and get what was read meanwhile if it is held. Errors: org.ErrNotFound.
func (c *Counts) Of(ctx context.Context, permit access.Permit) (Numbers, error) {
	if _, err := org.Get(ctx, c.reader, permit); err != nil {
		return Numbers{}, err
	}
	q := question(permit)
	leave, err := c.enter(ctx, q.org)
	if err != nil {
		return Numbers{}, err
	}
	defer leave()
	now := c.clock() // before it is read: what changes meanwhile is at most so old
	if n, is := c.known(q, now); is {
		return n, nil
	}
	n, total, err := c.read(ctx, q, now)
	if err == nil && total >= large {
		c.hold(q, answer{numbers: n, until: now.Add(Held)}, now)
	}
	return n, err
}

// question is for what the caller may list. An application needs no more for that than the scope to read.
func question(permit access.Permit) asked {
	may := func(permissions ...access.Permission) bool {
		for _, p := range permissions {
			if permit.HoldsFor(access.ReadScope, p, permit.Org()) {
				return true
			}
		}
		return false
	}
	return asked{
		org:         permit.Org(),
		users:       may(access.UserRead, access.UserSupport),
		apps:        may(access.AppRead),
		groups:      may(access.GroupRead),
		providers:   may(access.IDPRead),
		invitations: may(access.InvitationRead, access.UserSupport),
	}
}

// read counts, and tells how much that was.
func (c *Counts) read(ctx context.Context, q asked, now time.Time) (n Numbers, total int64, err error) {
	var all []event.Counted
	var found []**int64
	ask := func(wanted bool, to **int64, what event.Counted) {
		if wanted {
			what.Org = q.org
			all, found = append(all, what), append(found, to)
		}
	}
	ask(q.users, &n.People, event.Counted{Kind: user.Kind.Name()})
	ask(q.users, &n.ServiceUsers, user.Services())
	ask(q.apps, &n.Applications, event.Counted{Kind: app.Kind.Name()})
	ask(q.groups, &n.Groups, event.Counted{Kind: group.Kind.Name()})
	ask(q.providers, &n.Providers, event.Counted{Kind: idp.Kind.Name()})
	ask(q.invitations, &n.OpenInvitations, invitation.Open())
	counts, err := c.reader.Count(ctx, all)
	if err != nil {
		return Numbers{}, 0, err
	}
	for i, to := range found {
		*to = &counts[i]
		total += counts[i]
	}
	if q.users { // all were counted, and most are people
		*n.People -= *n.ServiceUsers
	}
	if q.invitations && *n.OpenInvitations > 0 {
		over, err := invitation.Over(ctx, c.reader, q.org, now)
		if err != nil {
			return Numbers{}, 0, err
		}
		*n.OpenInvitations = max(*n.OpenInvitations-over, 0)
	}
	return n, total, nil
}

// enter waits for the turn of an organization. leave gives it to the next one.
func (c *Counts) enter(ctx context.Context, org string) (leave func(), err error) {
	c.mu.Lock()
	t := c.turns[org]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		c.turns[org] = t
	}
	t.users++
	c.mu.Unlock()
	gone := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(c.turns, org)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}

func (c *Counts) known(q asked, now time.Time) (Numbers, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, is := c.held[q]
	return a.numbers, is && now.Before(a.until)
}

// hold keeps an answer where there is room, once what is too old is forgotten.
func (c *Counts) hold(q asked, a answer, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, old := range c.held {
		if !now.Before(old.until) {
			delete(c.held, other)
		}
	}
	if len(c.held) < maxHeld {
		c.held[q] = a
	}
}
