package counts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// in gives a permit in org_a to somebody with a permission there, by any of these.
func in(t testing.TB, scopes []string, permissions ...access.Permission) access.Permit {
	t.Helper()
	caller := &access.Caller{UserID: "usr_x", OrgID: "org_a", Scopes: scopes,
		Memberships: access.Memberships{"org_a": {access.Custom("role_x", permissions)}}}
	if permissions[0] == access.UserSupport {
		caller.Memberships = access.Memberships{access.Installation: {access.IAMSupport}}
	}
	permit, err := caller.InBy("org_a", permissions)
	must(t, err)
	return permit
}

func shown(n Numbers) string {
	var all []string
	for _, p := range []*int64{n.People, n.ServiceUsers, n.Applications, n.Groups, n.Providers, n.OpenInvitations} {
		if p == nil {
			all = append(all, "-")
		} else {
			all = append(all, fmt.Sprint(*p))
		}
	}
	return strings.Join(all, " ")
}

func person(t testing.TB, s event.Store, id, org string, then ...event.Fact[user.User]) {
	t.Helper()
	eventtest.Given(t, s, user.Kind, id, org, []event.Claim{user.NameClaim(org, id)},
		append([]event.Fact[user.User]{user.HumanAdded{Personal: user.HumanFacts{UserName: id, UserNameKey: id}}}, then...)...)
}

func invited(t testing.TB, s *eventtest.Store, id, org string, life time.Duration,
	then ...event.Fact[invitation.Invitation]) {
	t.Helper()
	facts := []event.Fact[invitation.Invitation]{
		invitation.Added{Inviter: "usr_root", Personal: invitation.Invited{Email: id, EmailKey: id}},
		invitation.Sent{Link: 1, Life: life.Microseconds(), Expires: event.Micros(s.Now().Add(life)), Inviter: "usr_root"}}
	eventtest.Given(t, s, invitation.Kind, id, org, []event.Claim{invitation.EmailClaim(org, id)},
		append(facts, then...)...)
}

func TestObjectsAreCountedForWhoMayListThem(t *testing.T) {
	s := eventtest.New(t, model.Kinds...)
	membertest.Given(t, s)
	person(t, s, "usr_1", "org_a")
	person(t, s, "usr_2", "org_a", user.WasLocked{})
	person(t, s, "usr_3", "org_a", user.WasRemoved{})
	person(t, s, "usr_4", "org_b")
	membertest.User(t, s, "usr_5", "org_a", nil)
	membertest.User(t, s, "usr_6", "org_a", nil, user.WasRemoved{})
	for i := range 3 {
		name := fmt.Sprint("a", i)
		eventtest.Given(t, s, app.Kind, "app_"+name, "org_a", nil, app.Added{Name: name, NameKey: name, Type: app.Web})
	}
	eventtest.Given(t, s, group.Kind, "grp_1", "org_a", []event.Claim{group.NameClaim("org_a", "g")},
		group.Added{Name: "g", NameKey: "g"})
	eventtest.Given(t, s, group.Kind, "grp_2", "org_a", nil, group.Added{Name: "h", NameKey: "h"}, group.WasRemoved{})
	invited(t, s, "inv_1", "org_a", time.Hour)
	invited(t, s, "inv_2", "org_a", time.Hour, invitation.WasAccepted{UserID: "usr_1"})
	invited(t, s, "inv_3", "org_b", time.Hour)
	c := New(s, s.Now)
	for _, p := range []struct {
		permissions []access.Permission
		want        string
	}{
		{[]access.Permission{access.UserRead, access.AppRead, access.GroupRead, access.IDPRead, access.InvitationRead},
			"2 1 3 1 0 1"},
		{[]access.Permission{access.UserRead}, "2 1 - - - -"},
		{[]access.Permission{access.UserSupport}, "2 1 - - - 1"},
		{[]access.Permission{access.AppRead}, "- - 3 - - -"},
		{[]access.Permission{access.GroupRead, access.IDPRead}, "- - - 1 0 -"},
		{[]access.Permission{access.InvitationRead}, "- - - - - 1"},
		{[]access.Permission{access.OrgRead}, "- - - - - -"},
	} {
		for scopes, want := range map[string]string{"": p.want, "signet.read": p.want, "signet.self": "- - - - - -"} {
			var bound []string
			if scopes != "" {
				bound = []string{scopes}
			}
			n, err := c.Of(t.Context(), in(t, bound, p.permissions...))
			if err != nil || shown(n) != want {
				t.Errorf("%v with %q: got %s, want %s, %v", p.permissions, scopes, shown(n), want, err)
			}
		}
	}
}

func TestAnInvitationIsNotOpenOnceItHasExpired(t *testing.T) {
	s := eventtest.New(t, model.Kinds...)
	membertest.Given(t, s)
	// with the rows by which the sweep finds them
	all := invitation.Invitations{Store: s, Master: s.Master, DefaultOrg: "org_d", ExternalURL: "https://id.test"}
	for org, emails := range map[string][]string{"org_a": {"a@x.test", "b@x.test"}, "org_b": {"c@x.test"}} {
		permit, err := (&access.Caller{UserID: "usr_root", OrgID: "org_d",
			Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}).In(org, access.InvitationWrite)
		must(t, err)
		for i, email := range emails {
			_, err = all.Create(t.Context(), permit, invitation.New{Email: email, Life: time.Duration(1+i) * time.Hour})
			must(t, err)
		}
	}
	c, permit := New(s, s.Now), in(t, nil, access.InvitationRead)
	want := func(n string) {
		t.Helper()
		if got, err := c.Of(t.Context(), permit); err != nil || shown(got) != "- - - - - "+n {
			t.Errorf("got %s, want %s, %v", shown(got), n, err)
		}
	}
	want("2")
	s.Advance(time.Hour)
	want("1") // nobody has swept
	must(t, all.Sweep(t.Context(), s.Now()))
	want("1")
}

// counting stands for a store in which org_a has so many objects of each kind.
type counting struct {
	event.Reader
	of      atomic.Int64
	reads   atomic.Int64
	fails   error
	reading chan struct{} // nil: it answers at once
}

func (c *counting) Count(ctx context.Context, all []event.Counted) ([]int64, error) {
	c.reads.Add(1)
	if c.reading != nil {
		c.reading <- struct{}{}
		c.reading <- struct{}{}
	}
	n := make([]int64, len(all))
	for i := range n {
		n[i] = c.of.Load()
	}
	return n, errors.Join(ctx.Err(), c.fails)
}

func newCounting(t *testing.T) (*counting, *eventtest.Store) {
	t.Helper()
	s := eventtest.New(t, model.Kinds...)
	membertest.Given(t, s)
	return &counting{Reader: s}, s
}

func TestOnlyLargeNumbersAreHeld(t *testing.T) {
	r, s := newCounting(t)
	c, apps, groups := New(r, s.Now), in(t, nil, access.AppRead), in(t, nil, access.GroupRead)
	of := func(permit access.Permit, want string, reads int64) {
		t.Helper()
		n, err := c.Of(t.Context(), permit)
		if err != nil || shown(n) != want || r.reads.Load() != reads {
			t.Errorf("got %s after %d reads, want %s after %d, %v", shown(n), r.reads.Load(), want, reads, err)
		}
	}
	r.of.Store(large - 1)
	of(apps, "- - 9999 - - -", 1)
	r.of.Store(large)
	of(apps, "- - 10000 - - -", 2)
	r.of.Store(large + 5)
	s.Advance(Held - time.Microsecond)
	of(apps, "- - 10000 - - -", 2)
	of(groups, "- - - 10005 - -", 3) // who may list something else is told of nothing that was held
	s.Advance(time.Microsecond)
	of(apps, "- - 10005 - - -", 4)
	s.Advance(Held)
	r.fails = errors.New("no disk")
	if _, err := c.Of(t.Context(), apps); !errors.Is(err, r.fails) {
		t.Errorf("got %v", err)
	}
	r.fails = nil
	of(apps, "- - 10005 - - -", 6)
	if len(c.turns) != 0 || len(c.held) != 1 {
		t.Errorf("%d turns and %d answers are left", len(c.turns), len(c.held))
	}
}

func TestABoundedNumberOfAnswersIsHeld(t *testing.T) {
	c, now := New(nil, nil), time.Unix(0, 0)
	for i := range maxHeld + 10 {
		c.hold(asked{org: fmt.Sprint(i)}, answer{until: now.Add(Held)}, now)
	}
	if len(c.held) != maxHeld {
		t.Errorf("%d answers", len(c.held))
	}
	c.hold(asked{org: "last"}, answer{until: now.Add(2 * Held)}, now.Add(Held))
	if len(c.held) != 1 {
		t.Errorf("%d answers: the old ones are forgotten", len(c.held))
	}
}

func TestManyWhoAskAtOnceCostOneReading(t *testing.T) {
	r, s := newCounting(t)
	r.of.Store(large)
	r.reading = make(chan struct{})
	c, permit := New(r, s.Now), in(t, nil, access.AppRead)
	var all sync.WaitGroup
	ask := func() {
		n, err := c.Of(context.WithoutCancel(t.Context()), permit)
		if err != nil || shown(n) != "- - 10000 - - -" {
			t.Errorf("got %s, %v", shown(n), err)
		}
	}
	all.Go(ask)
	testkit.Receive(t, r.reading, "the first reading")
	for range 20 {
		all.Go(ask)
	}
	testkit.Await(t, "all others to wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.turns["org_a"].users == 21
	})
	// Who gives up waits no longer.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Of(gone, permit); err == nil {
		t.Error("somebody who has gone got an answer")
	}
	testkit.Receive(t, r.reading, "the first reading to end")
	all.Wait()
	if n := r.reads.Load(); n != 1 {
		t.Errorf("%d readings", n)
	}
}
