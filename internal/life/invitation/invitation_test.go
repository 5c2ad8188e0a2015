package invitation

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	must   = testkit.Must
	home   = netip.MustParseAddr("192.0.2.1")
	hasher = secret.NewCheapHasher()

	owner   = access.Memberships{"org_a": {access.OrgOwner}}
	manager = access.Memberships{"org_a": {access.OrgUserManager}}
	viewer  = access.Memberships{"org_a": {access.OrgOwnerViewer}}
)

const right = "correct horse battery"

// world has the organizations org_def and org_a, with usr_owner and usr_manager in org_a, and groups of org_a: one that
// gives nothing (grp_plain), one that gives roles (grp_roles), and one that gives roles of applications (grp_app).
// grp_b is of org_def.
type world struct {
	Invitations
	t         *testing.T
	store     *eventtest.Store
	newcomers newcomer.Newcomers
}

func newWorld(t *testing.T, mail bool) *world {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, session.Kind, group.Kind,
		project.Kind, project.AccessKind, role.Kind, Kind)
	factors, err := factor.New(s.Master, "https://id.signet.test")
	must(t, err)
	sessions := &session.Sessions{Store: s, Factors: factors, Hasher: hasher, Master: s.Master, Clock: s.Now,
		DefaultOrg: "org_def", Standings: &session.Standings{}}
	w := &world{t: t, store: s, newcomers: newcomer.Newcomers{Sessions: sessions},
		Invitations: Invitations{Store: s, Master: s.Master, DefaultOrg: "org_def",
			ExternalURL: "https://id.signet.test", Mail: mail}}
	eventtest.Given(t, s, org.Kind, "org_def", "org_def", nil, org.Added{Name: "def"})
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "a"})
	w.person("usr_owner", "org_a", "owner@a.test", user.VerifiedByOwner)
	w.person("usr_manager", "org_a", "manager@a.test", user.VerifiedByOwner)
	w.user("usr_owner", user.MembershipSet{Scope: "org_a", Roles: owner["org_a"]})
	w.user("usr_manager", user.MembershipSet{Scope: "org_a", Roles: manager["org_a"]})
	for id, facts := range map[string][]event.Fact[group.Group]{
		"grp_plain": nil,
		"grp_roles": {group.RolesSet{Roles: []access.Role{access.OrgOwnerViewer}}},
		"grp_app": {group.AppRolesSet{Place: "prj_1", Project: "prj_1", Org: "org_a",
			Roles: []user.AppRole{{Key: "admin", Epoch: 1}}}},
	} {
		eventtest.Given(t, s, group.Kind, id, "org_a", []event.Claim{group.NameClaim("org_a", id)},
			append([]event.Fact[group.Group]{group.Added{Name: id, NameKey: id}}, facts...)...)
	}
	eventtest.Given(t, s, group.Kind, "grp_b", "org_def", []event.Claim{group.NameClaim("org_def", "b")},
		group.Added{Name: "b", NameKey: "b"})
	return w
}

func (w *world) person(id, orgID, email string, by user.Verifier) {
	w.t.Helper()
	fact := user.HumanAdded{EmailVerified: by != "",
		Personal: user.HumanFacts{UserName: id, UserNameKey: id, Email: email, EmailKey: strings.ToLower(email),
			Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}}}
	if by != "" {
		fact.Verification = &user.Verification{By: by, At: 1}
	}
	eventtest.Given(w.t, w.store, user.Kind, id, orgID, []event.Claim{user.NameClaim(orgID, syntax.NameKey(id))}, fact)
}

func (w *world) user(id string, facts ...event.Fact[user.User]) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, user.Kind, id, "", nil, facts...)
}

// permit is that of a user with what they hold now.
func (w *world) permit(id string) access.Permit {
	w.t.Helper()
	u := eventtest.State(w.t, w.store, user.Kind, id)
	p, err := (&access.Caller{UserID: id, OrgID: u.Org, Memberships: u.Data.Memberships}).In("org_a",
		access.InvitationWrite)
	must(w.t, err)
	return p
}

// link makes the link of an invitation: that which was shown, or that of the mail.
func (w *world) link(m Made) string {
	w.t.Helper()
	if m.Link != "" {
		u, err := url.Parse(m.Link)
		must(w.t, err)
		return u.Query().Get(ParamToken)
	}
	events, err := w.store.EventsOf(w.t.Context(), m.ID, 1, 100)
	must(w.t, err)
	d, err := Mailed(w.t.Context(), w.store, w.store.Master, &events[len(events)-1])
	must(w.t, err)
	return d.Token
}

func (w *world) invite(n New) (Made, string) {
	w.t.Helper()
	m, err := w.Create(w.t.Context(), w.permit("usr_owner"), n)
	must(w.t, err)
	return m, w.link(m)
}

func somebody() newcomer.Person {
	return newcomer.Person{UserName: "new", FirstName: "New", LastName: "Person", Password: right, Peer: home}
}

func (w *world) accept(token string) (session.SignedIn, error) {
	w.t.Helper()
	return w.acceptNew(token, somebody())
}

func (w *world) acceptNew(token string, p newcomer.Person) (session.SignedIn, error) {
	w.t.Helper()
	l, err := w.Open(w.t.Context(), token)
	if err != nil {
		return session.SignedIn{}, err
	}
	return l.AcceptNew(w.t.Context(), w.newcomers, p)
}

func (w *world) acceptMine(id, token string) (in string, err error) {
	w.t.Helper()
	l, err := w.Open(w.t.Context(), token)
	if err != nil {
		return "", err
	}
	_, err = w.AcceptMine(w.t.Context(), w.as(id), l)
	return l.Org.ID, err
}

func (w *world) as(id string) *access.Caller {
	w.t.Helper()
	u := eventtest.State(w.t, w.store, user.Kind, id)
	return &access.Caller{UserID: id, OrgID: u.Org, Memberships: u.Data.Memberships, TokenKind: string(secret.Session)}
}

func TestWhoMayInviteWithWhat(t *testing.T) {
	invalid := errs.Invalid(errs.Violation{Field: "x"})
	for _, c := range []struct {
		name    string
		by      string
		n       New
		refusal *errs.Error
	}{
		{"an owner, with nothing", "usr_owner", New{}, nil},
		{"an owner, with roles", "usr_owner", New{Roles: []string{"ORG_OWNER", "ORG_OWNER"}}, nil},
		{"an owner, with all groups", "usr_owner",
			New{Groups: []string{"grp_plain", "grp_roles", "grp_app", "grp_plain"}}, nil},
		{"a manager, with nothing", "usr_manager", New{}, nil},
		{"a manager, with a group that gives nothing", "usr_manager", New{Groups: []string{"grp_plain"}}, nil},
		{"a manager, with a role", "usr_manager", New{Roles: []string{"ORG_USER_MANAGER"}}, access.ErrDenied},
		{"a manager, with a group that gives roles", "usr_manager", New{Groups: []string{"grp_roles"}},
			access.ErrDenied},
		{"a manager, with a group that gives roles of applications", "usr_manager", New{Groups: []string{"grp_app"}},
			access.ErrDenied},
		{"somebody who gives members less than an owner, an owner's role", "usr_members",
			New{Roles: []string{"ORG_OWNER"}}, member.ErrGrantsMore},
		{"a role that is none", "usr_owner", New{Roles: []string{"IAM_OWNER"}}, invalid},
		{"a group of another organization", "usr_owner", New{Groups: []string{"grp_b"}}, invalid},
		{"a group that does not exist", "usr_owner", New{Groups: []string{"grp_x"}}, invalid},
		{"no address", "usr_owner", New{Email: "nobody"}, invalid},
		{"too short", "usr_owner", New{Life: time.Hour - time.Second}, invalid},
		{"too long", "usr_owner", New{Life: 30*24*time.Hour + time.Second}, invalid},
		{"as short as can be", "usr_owner", New{Life: time.Hour}, nil},
		{"as long as can be", "usr_owner", New{Life: 30 * 24 * time.Hour}, nil},
		{"somebody who is invited already", "usr_owner", New{Email: "TWICE@b.test"}, ErrAlreadyInvited},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, true)
			w.person("usr_members", "org_def", "m@def.test", user.VerifiedByOwner)
			w.user("usr_members",
				user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOrgManager}},
				user.MembershipSet{Scope: "org_a", Roles: manager["org_a"]})
			w.invite(New{Email: "twice@b.test"})
			if c.n.Email == "" {
				c.n.Email = "New@B.test"
			}
			before := w.store.Fingerprint()
			m, err := w.Create(t.Context(), w.permit(c.by), c.n)
			if c.refusal != nil {
				if got, is := errors.AsType[*errs.Error](err); !is || got.Kind != c.refusal.Kind ||
					got.Reason != c.refusal.Reason {
					t.Errorf("got %v", err)
				}
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			i := eventtest.State(t, w.store, Kind, m.ID)
			if i.Org != "org_a" || i.Data.State != Pending || i.Data.Email != "New@B.test" || i.Data.Inviter != c.by ||
				m.Link != "" || i.Data.Shown || len(i.Data.Groups) > 3 || len(i.Data.Roles) > 1 {
				t.Errorf("%+v, %+v", i.Data, m)
			}
		})
	}
}

func TestWhoJoinsByAnInvitation(t *testing.T) {
	for _, mail := range []bool{true, false} {
		w := newWorld(t, mail)
		m, token := w.invite(New{Email: "new@b.test", Roles: []string{"ORG_USER_MANAGER"},
			Groups: []string{"grp_plain", "grp_roles", "grp_app"}, Language: "de"})
		if (m.Link == "") != mail || w.store.Stored(t, token) {
			t.Fatalf("mail %v: shown %q, or stored", mail, m.Link)
		}
		l, err := w.Open(t.Context(), token)
		must(t, err)
		if l.Email() != "new@b.test" || l.Org.ID != "org_a" || l.Inviter.ID != "usr_owner" {
			t.Errorf("%+v", l)
		}
		_, err = w.Open(t.Context(), token)
		must(t, err) // looking at it uses nothing up
		in, err := w.accept(token)
		must(t, err)
		u := eventtest.State(t, w.store, user.Kind, in.UserID)
		h := u.Data.Human
		if u.Org != "org_a" || h.Email.Address != "new@b.test" || h.Email.Verified != mail ||
			h.Profile.PreferredLanguage != "de" ||
			!slices.Equal(u.Data.Direct()["org_a"], []access.Role{access.OrgUserManager}) ||
			!u.Data.Memberships.Hold(access.PolicyRead, "org_a") {
			t.Errorf("mail %v: %+v, %+v", mail, u.Data, h)
		}
		if mail && h.Email.Verification.By != user.VerifiedByOwner {
			t.Errorf("%+v", h.Email)
		}
		for _, g := range []string{"grp_plain", "grp_roles", "grp_app"} {
			if !u.Data.In("org_a", g) {
				t.Errorf("not in %s", g)
			}
		}
		if g := eventtest.State(t, w.store, group.Kind, "grp_roles"); g.Data.Members != 1 {
			t.Errorf("the group counts %d", g.Data.Members)
		}
		i := eventtest.State(t, w.store, Kind, m.ID)
		if i.Data.State != Accepted || i.Data.UserID != in.UserID || i.Data.Email == "" {
			t.Errorf("%+v", i.Data)
		}
		_, err = w.accept(token)
		eventtest.As(t, err, ErrLinkUsed)
		_, err = w.acceptMine("usr_owner", token)
		eventtest.As(t, err, ErrLinkUsed)
	}
}

// Nobody takes a name like somebody's address by a link that proves none.
func TestAShownLinkProvesNothing(t *testing.T) {
	for _, mail := range []bool{true, false} {
		w := newWorld(t, mail)
		_, token := w.invite(New{Email: "boss@b.test"})
		for _, name := range []string{"", "boss@b.test", "boss＠b.test"} {
			p := somebody()
			p.UserName = name
			in, err := w.acceptNew(token, p)
			if mail {
				must(t, err)
				if u := eventtest.State(t, w.store, user.Kind, in.UserID); !strings.HasPrefix(u.Data.UserName, "boss") {
					t.Errorf("%+v", u.Data)
				}
				break
			}
			if e, is := errors.AsType[*errs.Error](err); !is || e.Kind != errs.InvalidArgument {
				t.Errorf("%q: %v", name, err)
			}
		}
		p := somebody()
		p.UserName, p.Email, p.Verification = "other@b.test", "other@b.test",
			user.Verification{By: user.VerifiedByOwner}
		if _, err := w.acceptNew(token, p); err == nil {
			t.Error("an invitation was accepted for another address")
		}
	}
}

func TestWhichLinksLeadNowhere(t *testing.T) {
	for _, c := range []struct {
		name    string
		given   func(w *world, m Made)
		refusal *errs.Error
		opened  *errs.Error // of a page that was opened before; nil: the same
	}{
		{"withdrawn", func(w *world, m Made) {
			_, err := w.Withdraw(w.t.Context(), w.permit("usr_manager"), m.ID, event.IfMatch{})
			must(w.t, err)
		}, ErrLinkWithdrawn, nil},
		{"expired", func(w *world, _ Made) { w.store.Advance(DefaultLife) }, ErrLinkExpired, nil},
		{"swept", func(w *world, _ Made) {
			w.store.Advance(DefaultLife)
			must(w.t, w.Sweep(w.t.Context(), w.store.Now()))
		}, ErrLinkExpired, nil},
		{"long ago", func(w *world, _ Made) { w.store.Advance(DefaultLife + kept) }, ErrLinkUnknown, ErrLinkExpired},
		{"replaced", func(w *world, m Made) {
			w.store.Advance(2 * time.Minute)
			_, err := w.Resend(w.t.Context(), w.permit("usr_owner"), m.ID, event.IfMatch{}, 0)
			must(w.t, err)
		}, ErrLinkReplaced, nil},
		{"the inviter is no member any more",
			func(w *world, _ Made) { w.user("usr_owner", user.MembershipSet{Scope: "org_a"}) }, ErrInviterMayNot, nil},
		{"the inviter holds less", func(w *world, _ Made) {
			w.user("usr_owner", user.MembershipSet{Scope: "org_a", Roles: manager["org_a"]})
		}, ErrInviterMayNot, nil},
		{"the inviter may only look", func(w *world, _ Made) {
			w.user("usr_owner", user.MembershipSet{Scope: "org_a", Roles: viewer["org_a"]})
		}, ErrInviterMayNot, nil},
		{"the inviter is switched off", func(w *world, _ Made) { w.user("usr_owner", user.Deactivated{}) },
			ErrInviterMayNot, nil},
		{"the inviter is locked", func(w *world, _ Made) { w.user("usr_owner", user.WasLocked{}) },
			ErrInviterMayNot, nil},
		{"the inviter is gone", func(w *world, _ Made) { w.user("usr_owner", user.WasRemoved{}) },
			ErrInviterMayNot, nil},
		{"the organization is switched off",
			func(w *world, _ Made) { eventtest.Given(w.t, w.store, org.Kind, "org_a", "", nil, org.Deactivated{}) },
			ErrOrgAway, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, true)
			w.person("usr_bea", "org_def", "new@b.test", user.VerifiedByOwner)
			m, token := w.invite(New{Email: "new@b.test", Roles: []string{"ORG_OWNER"}})
			opened, err := w.Open(t.Context(), token)
			must(t, err)
			c.given(w, m)
			before := w.store.Fingerprint()
			_, err = w.accept(token)
			eventtest.As(t, err, c.refusal)
			_, err = w.acceptMine("usr_bea", token)
			eventtest.As(t, err, c.refusal)
			_, err = w.AcceptMine(t.Context(), w.as("usr_bea"), opened) // by a page that was opened before
			eventtest.As(t, err, cmp.Or(c.opened, c.refusal))
			if w.store.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
	w := newWorld(t, true)
	other, _ := secret.NewToken(secret.Invitation)
	session, _ := secret.NewToken(secret.Session)
	for _, token := range []string{"", "x", other, session} {
		_, err := w.accept(token)
		eventtest.As(t, err, ErrLinkUnknown)
	}
}

// What a group gives may grow after the invitation: the inviter has to be able to give that.
func TestAGroupThatGivesMoreIsJudgedAnew(t *testing.T) {
	for _, c := range []struct {
		fact    event.Fact[group.Group]
		refusal *errs.Error
	}{
		{group.RolesSet{Roles: []access.Role{access.OrgOwner}}, ErrInviterMayNot},
		{group.AppRolesSet{Place: "prj_1", Project: "prj_1", Org: "org_a",
			Roles: []user.AppRole{{Key: "admin", Epoch: 1}}}, ErrInviterMayNot},
		{group.WasRemoved{}, nil},
	} {
		w := newWorld(t, true)
		m, err := w.Create(t.Context(), w.permit("usr_manager"),
			New{Email: "new@b.test", Groups: []string{"grp_plain"}})
		must(t, err)
		token := w.link(m)
		eventtest.Given(t, w.store, group.Kind, "grp_plain", "", nil, c.fact)
		in, err := w.accept(token)
		if c.refusal != nil {
			eventtest.As(t, err, c.refusal)
			continue
		}
		must(t, err)
		if u := eventtest.State(t, w.store, user.Kind, in.UserID); len(u.Data.Groups) > 0 {
			t.Errorf("%+v", u.Data.Groups)
		}
	}
}

// A group that is about to give roles sees everybody who joins.
func TestAGroupThatCountsIsTold(t *testing.T) {
	w := newWorld(t, true)
	_, token := w.invite(New{Email: "new@b.test", Groups: []string{"grp_plain"}})
	l, err := w.Open(t.Context(), token)
	must(t, err)
	eventtest.Given(t, w.store, group.Kind, "grp_plain", "", nil, group.MembersCounted{Members: 4})
	_, err = l.AcceptNew(t.Context(), w.newcomers, somebody())
	must(t, err)
	if g := eventtest.State(t, w.store, group.Kind, "grp_plain"); g.Data.Members != 5 {
		t.Errorf("%+v", g.Data)
	}
}

func TestWhoAcceptsWithTheirAccount(t *testing.T) {
	for _, c := range []struct {
		name    string
		org     string
		email   string
		by      user.Verifier
		given   func(*world)
		refusal *errs.Error
	}{
		{"of another organization, whose owner has proven the address", "org_def", "New@b.test",
			user.VerifiedByOwner, nil, nil},
		{"of another organization, on the word of the installation", "org_def", "new@b.test",
			user.VerifiedByInstallation, nil, nil},
		{"of another organization, on the word of its administrator", "org_def", "new@b.test",
			user.VerifiedByAdministrator, nil, ErrOtherAddress},
		{"of another organization, on the word of its administrator who has proven the domain", "org_def", "new@b.test",
			user.VerifiedByAdministrator, func(w *world) {
				eventtest.Given(w.t, w.store, org.Kind, "org_def", "",
					[]event.Claim{org.DomainClaim("b.test"), org.ProvenClaim("b.test")},
					org.DomainAdded{Domain: "b.test", Verified: true},
					org.DomainVerified{Domain: "b.test", Proven: true})
			}, nil},
		{"of another organization, not verified", "org_def", "new@b.test", "", nil, ErrOtherAddress},
		{"with another address", "org_def", "other@b.test", user.VerifiedByOwner, nil, ErrOtherAddress},
		{"of the same organization", "org_a", "new@b.test", user.VerifiedByAdministrator, nil, nil},
		{"of the same organization, not verified", "org_a", "new@b.test", "", nil, ErrOtherAddress},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, true)
			w.person("usr_bea", c.org, c.email, c.by)
			if c.given != nil {
				c.given(w)
			}
			w.user("usr_bea", user.MembershipSet{Scope: "org_a", Roles: viewer["org_a"]})
			m, token := w.invite(New{Email: "new@b.test", Roles: []string{"ORG_USER_MANAGER"},
				Groups: []string{"grp_plain"}})
			l, err := w.Open(t.Context(), token)
			must(t, err)
			if may := w.MayAccept(t.Context(), l,
				eventtest.State(t, w.store, user.Kind, "usr_bea")); (may == nil) != (c.refusal == nil) {
				t.Errorf("the page says %v", may)
			}
			before := w.store.Fingerprint()
			in, err := w.acceptMine("usr_bea", token)
			if c.refusal != nil {
				eventtest.As(t, err, c.refusal)
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			u := eventtest.State(t, w.store, user.Kind, "usr_bea")
			if in != "org_a" || u.Org != c.org ||
				!slices.Equal(u.Data.Memberships["org_a"],
					[]access.Role{access.OrgOwnerViewer, access.OrgUserManager}) || !u.Data.In("org_a", "grp_plain") {
				t.Errorf("%+v", u.Data)
			}
			if i := eventtest.State(t, w.store, Kind, m.ID); i.Data.State != Accepted || i.Data.UserID != "usr_bea" {
				t.Errorf("%+v", i.Data)
			}
		})
	}
}

func TestSomebodyFromElsewhereIsAGuestWithoutRoles(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_bea", "org_def", "new@b.test", user.VerifiedByOwner)
	_, token := w.invite(New{Email: "new@b.test"})
	_, err := w.acceptMine("usr_bea", token)
	must(t, err)
	u := eventtest.State(t, w.store, user.Kind, "usr_bea")
	if roles, is := u.Data.Memberships["org_a"]; !is || len(roles) > 0 {
		t.Errorf("%+v", u.Data.Memberships)
	}
}

// Accepting is an acceptance of what the invitation promised when it was sent. Roles that a group has got since then
// wait.
func TestRolesThatAGroupGotSinceAnInvitationWait(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_bea", "org_def", "new@b.test", user.VerifiedByOwner)
	m, token := w.invite(New{Email: "new@b.test", Roles: []string{"ORG_USER_MANAGER"},
		Groups: []string{"grp_roles", "grp_plain"}})
	if i := eventtest.State(t, w.store, Kind, m.ID); !slices.Equal(i.Data.Promised(),
		[]access.Role{access.OrgOwnerViewer, access.OrgUserManager}) {
		t.Errorf("promised %v", i.Data.Promised())
	}
	eventtest.Given(t, w.store, group.Kind, "grp_plain", "", nil, group.RolesSet{Roles: []access.Role{access.OrgOwner}})
	_, err := w.acceptMine("usr_bea", token)
	must(t, err)
	u := eventtest.State(t, w.store, user.Kind, "usr_bea")
	if !slices.Equal(u.Data.Memberships["org_a"], []access.Role{access.OrgOwnerViewer, access.OrgUserManager}) ||
		!slices.Equal(u.Data.Waiting("org_a"), []access.Role{access.OrgOwner}) || user.Unaccepted(u, "org_a") {
		t.Errorf("holds %v, waiting %v", u.Data.Memberships, u.Data.Waiting("org_a"))
	}
}

// What an invitation promises is what a custom role had then; what is given is the role as it is when somebody accepts.
func TestACustomRoleThatChangesBeforeAnInvitationIsAccepted(t *testing.T) {
	read, write, more := access.UserRead, access.UserWrite, access.Permission("org.write")
	for name, c := range map[string]struct {
		happens     []event.Fact[role.Role]
		inviter     []access.Role // what the inviter has then, if it is something else
		guest, ours []access.Permission
		refused     bool
	}{
		"nothing": {guest: []access.Permission{read, write}, ours: []access.Permission{read, write}},
		"wider": {happens: []event.Fact[role.Role]{role.PermissionsSet{Permissions: []access.Permission{more, read, write}}},
			guest: []access.Permission{read, write}, ours: []access.Permission{more, read, write}},
		"narrower": {happens: []event.Fact[role.Role]{role.PermissionsSet{Permissions: []access.Permission{read}}},
			guest: []access.Permission{read}, ours: []access.Permission{read}},
		"removed": {happens: []event.Fact[role.Role]{role.WasRemoved{}}, refused: true},
		"wider than the inviter": {
			happens: []event.Fact[role.Role]{role.PermissionsSet{Permissions: []access.Permission{more, read, write}}},
			inviter: []access.Role{access.OrgUserManager, access.Custom("role_2",
				[]access.Permission{access.MemberWrite})}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			permit, err := w.as("usr_owner").In("org_a", access.MemberWrite)
			must(t, err)
			made, err := role.Add(t.Context(), w.store, permit,
				role.New{Name: "r", Permissions: []string{string(read), string(write)}}, event.Once{})
			must(t, err)
			id := made.ID
			w.person("usr_else", "org_def", "else@b.test", user.VerifiedByOwner)
			w.user("usr_else", user.PasswordSet{}, user.PasswordChanged{})
			_, ours := w.invite(New{Email: "new@a.test", Roles: []string{id}})
			_, guests := w.invite(New{Email: "else@b.test", Roles: []string{id}})
			if c.happens != nil {
				eventtest.Given(t, w.store, role.Kind, id, "", nil, c.happens...)
			}
			if c.inviter != nil {
				w.user("usr_owner", user.MembershipSet{Scope: "org_a", Roles: c.inviter})
			}
			_, err = w.acceptMine("usr_else", guests)
			_, err2 := w.accept(ours)
			if c.refused {
				eventtest.As(t, err, ErrInviterMayNot)
				eventtest.As(t, err2, ErrInviterMayNot)
				return
			}
			must(t, err)
			must(t, err2)
			u := eventtest.State(t, w.store, user.Kind, "usr_else")
			if got := u.Data.Memberships["org_a"]; !slices.Equal(got, []access.Role{access.Custom(id, c.guest)}) {
				t.Errorf("the guest holds %v", got)
			}
			held, _, err := user.Kind.List(t.Context(), w.store, event.Query{Group: user.HoldersOf(id), Limit: 10})
			must(t, err)
			for _, u := range held {
				if got := u.Data.Direct()["org_a"]; !slices.Equal(got, []access.Role{access.Custom(id, c.ours)}) {
					t.Errorf("%s was given %v", u.ID, got)
				}
			}
			if o := eventtest.State(t, w.store, role.Kind, id); len(held) != 2 || c.happens == nil && o.Data.Holders != 2 {
				t.Errorf("%d hold it, and it counts %d", len(held), o.Data.Holders)
			}
		})
	}
	w := newWorld(t, true)
	for _, wrong := range []string{"role_0199a1b2c3d47e5f8091a2b3c4d5e6f1", "role_x", "ORG_OTHER"} {
		_, err := w.Create(t.Context(), w.permit("usr_owner"), New{Email: "new@a.test", Roles: []string{wrong}})
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[0]")
	}
}

func TestNobodyJoinsElsewhereWithAPasswordThatSomebodyElseHasSet(t *testing.T) {
	for _, roles := range [][]string{nil, {"ORG_USER_MANAGER"}} {
		w := newWorld(t, true)
		w.person("usr_bea", "org_def", "new@b.test", user.VerifiedByOwner)
		w.user("usr_bea", user.PasswordSet{})
		_, token := w.invite(New{Email: "new@b.test", Roles: roles})
		_, err := w.acceptMine("usr_bea", token)
		if len(roles) == 0 {
			must(t, err)
			continue
		}
		eventtest.As(t, err, user.ErrPasswordGiven)
		w.user("usr_bea", user.PasswordChanged{})
		_, err = w.acceptMine("usr_bea", token)
		must(t, err)
	}
}

func TestAnInvitationIsAcceptedOnce(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_bea", "org_def", "new@b.test", user.VerifiedByOwner)
	_, token := w.invite(New{Email: "new@b.test", Roles: []string{"ORG_OWNER"}})
	var all sync.WaitGroup
	done := make([]error, 64)
	for i := range done {
		all.Go(func() {
			if i%2 == 0 {
				_, done[i] = w.acceptMine("usr_bea", token)
				return
			}
			p := somebody()
			p.UserName += string(rune('a' + i/2))
			_, done[i] = w.acceptNew(token, p)
		})
	}
	all.Wait()
	n := 0
	for _, err := range done {
		if err == nil {
			n++
		} else if !errors.Is(err, ErrLinkUsed) && !errors.Is(err, secret.ErrBusy) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("accepted %d times", n)
	}
}

// Nothing is left of the address where nobody accepts, nor after the user is gone.
func TestTheAddressGoesWithTheInvitation(t *testing.T) {
	const address = "secret.person@b.test"
	for _, c := range []struct {
		name string
		end  func(w *world, m Made, token string)
	}{
		{"withdrawn", func(w *world, m Made, _ string) {
			_, err := w.Withdraw(w.t.Context(), w.permit("usr_owner"), m.ID, event.IfMatch{})
			must(w.t, err)
		}},
		{"expired", func(w *world, _ Made, _ string) {
			w.store.Advance(DefaultLife)
			must(w.t, w.Sweep(w.t.Context(), w.store.Now()))
		}},
		{"the organization is gone", func(w *world, m Made, _ string) {
			w.do(m.ID, func(tx *event.Tx) error {
				i, err := Kind.Get(tx, m.ID)
				must(w.t, err)
				return EndWithOrganization(tx, i)
			})
		}},
		{"the user is gone", func(w *world, m Made, token string) {
			w.person("usr_bea", "org_def", address, user.VerifiedByOwner)
			_, err := w.acceptMine("usr_bea", token)
			must(w.t, err)
			refs, err := OfUser(w.t.Context(), w.store, "usr_bea")
			must(w.t, err)
			if len(refs) != 1 || refs[0].ID != m.ID {
				w.t.Fatalf("%v", refs)
			}
			w.do(m.ID, func(tx *event.Tx) error { return Erase(tx, m.ID) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, true)
			w.application("app_shop", "org_a", false)
			m, token := w.invite(New{Email: address, App: "app_shop", Target: "https://shop.example/secret.person"})
			events, err := w.store.EventsOf(t.Context(), m.ID, 1, 10)
			must(t, err)
			key := event.RowKey{Table: event.Keys, Key: events[0].KeyID}
			if row, err := w.store.Row(t.Context(), key); err != nil || row == nil ||
				strings.Contains(string(events[0].Payload), "secret") {
				t.Fatalf("not sealed under a key of its own: %v", err)
			}
			c.end(w, m, token)
			if row, err := w.store.Row(t.Context(), key); err != nil || row != nil {
				t.Errorf("the key is left: %v", err)
			}
			i := eventtest.State(t, w.store, Kind, m.ID)
			if text, err := json.Marshal(i.Data); err != nil || strings.Contains(string(text), "secret.person") {
				t.Errorf("left: %s", text)
			}
			if rows, err := w.store.RowsOf(t.Context(), event.Deliveries, sweepPrefix, "", 10); err != nil ||
				len(rows) > 0 {
				t.Errorf("rows are left: %v", rows)
			}
			if c.name == "withdrawn" || c.name == "expired" { // and the address can be invited again
				w.store.Advance(2 * time.Minute)
				w.invite(New{Email: address})
			}
		})
	}
}

func (w *world) do(id string, decide func(*event.Tx) error) {
	w.t.Helper()
	must(w.t, w.store.Do(w.t.Context(),
		event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{Kind.Ref(id)}, Decide: decide}))
}

func TestSweepingLeavesWhatCounts(t *testing.T) {
	w := newWorld(t, true)
	short, _ := w.invite(New{Email: "short@b.test", Life: time.Hour})
	long, token := w.invite(New{Email: "long@b.test", Life: 2 * time.Hour})
	w.store.Advance(time.Hour)
	must(t, w.Sweep(t.Context(), w.store.Now()))
	if s := eventtest.State(t, w.store, Kind, short.ID); s.Data.State != Expired {
		t.Errorf("%+v", s.Data)
	}
	_, err := w.Resend(t.Context(), w.permit("usr_owner"), short.ID, event.IfMatch{}, 0)
	eventtest.As(t, err, ErrNotPending)
	again, err := w.Resend(t.Context(), w.permit("usr_owner"), long.ID, event.IfMatch{}, 0)
	must(t, err)
	w.store.Advance(time.Hour)
	must(t, w.Sweep(t.Context(), w.store.Now()))
	_, err = w.accept(token)
	eventtest.As(t, err, ErrLinkReplaced)
	_, err = w.accept(w.link(again))
	must(t, err) // it lives as long as the first did, from the second mail on
}

func TestInvitationsAreBounded(t *testing.T) {
	w := newWorld(t, true)
	m, _ := w.invite(New{Email: "a@b.test"})
	_, err := w.Resend(t.Context(), w.permit("usr_owner"), m.ID, event.IfMatch{}, 0)
	eventtest.As(t, err, mailcount.ErrTooMany)
	w.count(counter{Pending: maxPending})
	w.store.Advance(2 * time.Minute)
	_, err = w.Create(t.Context(), w.permit("usr_owner"), New{Email: "b@b.test"})
	must(t, err) // somebody has miscounted
	w.count(counter{Pending: 1, Day: event.Micros(w.store.Now()) / (24 * time.Hour).Microseconds(), Sent: maxADay})
	_, err = w.Create(t.Context(), w.permit("usr_owner"), New{Email: "c@b.test"})
	if e, is := errors.AsType[*errs.Error](err); !is || e.Reason != TooManyPassed || e.RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}
	w.store.Advance(24 * time.Hour)
	_, err = w.Create(t.Context(), w.permit("usr_owner"), New{Email: "c@b.test"})
	must(t, err)
}

func (w *world) count(c counter) {
	w.t.Helper()
	value, err := json.Marshal(c)
	must(w.t, err)
	w.store.GivenRow(event.Row{RowKey: countOf("org_a").Row, Value: value})
}

func TestAnOrganizationHasAtMostSoManyPendingInvitations(t *testing.T) {
	w := newWorld(t, true)
	for i := range maxPending {
		eventtest.Given(t, w.store, Kind, Kind.NewID(), "org_a",
			[]event.Claim{EmailClaim("org_a", string(rune('a'+i%26))+time.Duration(i).String()+"@b.test")},
			Added{Inviter: "usr_owner",
				Personal: Invited{Email: "x",
					EmailKey: string(rune('a'+i%26)) + time.Duration(i).String() + "@b.test"}},
			Sent{Link: 1, Life: 1, Expires: event.Micros(w.store.Now().Add(time.Hour))})
	}
	w.count(counter{Pending: maxPending})
	_, err := w.Create(t.Context(), w.permit("usr_owner"), New{Email: "new@b.test"})
	eventtest.As(t, err, ErrTooMany)
}

// However many organizations invite somebody, the mailbox gets a few mails, and none of them learns of the others.
func TestOneMailboxIsNotFlooded(t *testing.T) {
	w := newWorld(t, true)
	eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
	w.user("usr_owner", user.MembershipSet{Scope: "org_c", Roles: owner["org_a"]})
	permit, err := w.as("usr_owner").In("org_c", access.InvitationWrite)
	must(t, err)
	w.invite(New{Email: "new@b.test"})
	w.store.Advance(time.Second)
	m, err := w.Create(t.Context(), permit, New{Email: "new@b.test"})
	must(t, err)
	events, err := w.store.EventsOf(t.Context(), m.ID, 1, 10)
	must(t, err)
	_, err = Mailed(t.Context(), w.store, w.store.Master, &events[1])
	eventtest.As(t, err, mailcount.ErrTooMany)
	w.store.Advance(2 * time.Minute)
	_, err = Mailed(t.Context(), w.store, w.store.Master, &events[1])
	must(t, err) // it comes a little later
	_, err = w.Withdraw(t.Context(), permit, m.ID, event.IfMatch{})
	must(t, err)
	if _, err = Mailed(t.Context(), w.store, w.store.Master, &events[1]); !errors.Is(err, ErrNothingToSend) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyReachesInvitationsOfOtherOrganizations(t *testing.T) {
	w := newWorld(t, true)
	m, _ := w.invite(New{Email: "new@b.test"})
	w.user("usr_owner", user.MembershipSet{Scope: "org_def", Roles: owner["org_a"]})
	other, err := w.as("usr_owner").In("org_def", access.InvitationWrite)
	must(t, err)
	_, err = Get(t.Context(), w.store, other, m.ID)
	eventtest.As(t, err, ErrNotFound)
	_, err = w.Withdraw(t.Context(), other, m.ID, event.IfMatch{})
	eventtest.As(t, err, ErrNotFound)
	_, err = w.Resend(t.Context(), other, m.ID, event.IfMatch{}, 0)
	eventtest.As(t, err, ErrNotFound)
	for state, n := range map[State]int{"": 0, Pending: 0} {
		if list, _, err := List(t.Context(), w.store, other, state, event.Cursor{}, 10); err != nil || len(list) != n {
			t.Errorf("%q: %v, %v", state, list, err)
		}
	}
	for state, n := range map[State]int{"": 1, Pending: 1, Accepted: 0, Withdrawn: 0} {
		if list, _, err := List(t.Context(), w.store, w.permit("usr_owner"), state, event.Cursor{}, 10); err != nil ||
			len(list) != n {
			t.Errorf("%q: %v, %v", state, list, err)
		}
	}
}

// application adds one that starts at https://shop.example/start.
func (w *world) application(id, orgID string, all bool) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, app.Kind, id, orgID, nil, app.Added{Name: id, Type: app.Web,
		Settings: app.Settings{InitiateLoginURI: "https://shop.example/start", AllOrganizations: all}})
}

func TestWhatAnInvitationIsFor(t *testing.T) {
	w := newWorld(t, false)
	w.application("app_shop", "org_a", false)
	w.application("app_off", "org_a", false)
	eventtest.Given(t, w.store, app.Kind, "app_off", "", nil, app.Deactivated{})
	w.application("app_theirs", "org_def", false)
	w.application("app_all", "org_def", true)
	const (
		page  = "https://shop.example/welcome"
		start = "https://shop.example/start?iss=https%3A%2F%2Fid.signet.test&login_hint=jo"
	)
	for name, tt := range map[string]struct {
		app, target string
		field       string // that is refused; empty: none
		start       string
	}{
		"nothing":                     {"", "", "", ""},
		"an application":              {"app_shop", "", "", start},
		"one that is for all":         {"app_all", "", "", start},
		"a page":                      {"app_shop", page, "", start + "&target_link_uri=https%3A%2F%2Fshop.example%2Fwelcome"},
		"a page without application":  {"", page, "targetLinkUri", ""},
		"a page elsewhere":            {"app_shop", "https://evil.example/", "targetLinkUri", ""},
		"one that is switched off":    {"app_off", "", "appId", ""},
		"one of another organization": {"app_theirs", "", "appId", ""},
		"one that there is not":       {"app_none", "", "appId", ""},
		"a long page":                 {"app_shop", page + strings.Repeat("x", 2000), "targetLinkUri", ""},
		"a long name":                 {strings.Repeat("a", 201), "", "appId", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := New{Email: syntax.DomainLabel(name) + "@b.test", App: tt.app, Target: tt.target}
			made, err := w.Create(t.Context(), w.permit("usr_owner"), n)
			if tt.field != "" {
				eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, tt.field)
				return
			}
			must(t, err)
			l, err := w.Open(t.Context(), w.link(made))
			must(t, err)
			if got := l.Start(w.ExternalURL, "jo"); got != tt.start {
				t.Errorf("leads to %q, want %q", got, tt.start)
			}
		})
	}
	t.Run("one that was switched off since", func(t *testing.T) {
		made, err := w.Create(t.Context(), w.permit("usr_owner"), New{Email: "last@b.test", App: "app_shop"})
		must(t, err)
		eventtest.Given(t, w.store, app.Kind, "app_shop", "", nil, app.Deactivated{})
		l, err := w.Open(t.Context(), w.link(made))
		if err != nil || l.App != nil || l.Start(w.ExternalURL, "jo") != "" {
			t.Errorf("it is for %v (%v)", l.App, err)
		}
	})
}

// Support has an invitation mailed once more. It gives nothing by that: who made it still answers for it, also for roles
// that support could never give.
func TestSupportSendsAnInvitationAgain(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_support", "org_def", "support@def.test", user.VerifiedByOwner)
	w.user("usr_support", user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMSupport}})
	support, err := (&access.Caller{UserID: "usr_support", OrgID: "org_def",
		Memberships: eventtest.State(t, w.store, user.Kind, "usr_support").Data.Memberships}).In("org_a",
		access.UserSupport)
	must(t, err)
	made, err := w.Create(t.Context(), w.permit("usr_owner"),
		New{Email: "new@a.test", Roles: []string{"ORG_OWNER"}, Groups: []string{"grp_roles", "grp_app"}})
	must(t, err)
	before := eventtest.State(t, w.store, Kind, made.ID).Data
	w.store.Advance(time.Hour)
	if _, err := w.Resend(t.Context(), support, made.ID, event.IfMatch{}, MaxLife); errs.KindOf(err) != errs.InvalidArgument {
		t.Errorf("for longer: %v", err)
	}
	again, err := w.Resend(t.Context(), support, made.ID, event.IfMatch{}, 0)
	must(t, err)
	after := eventtest.State(t, w.store, Kind, made.ID).Data
	if again.Link != "" || after.Inviter != "usr_owner" || after.Link != before.Link+1 || after.Life != before.Life ||
		after.Email != before.Email || !slices.Equal(after.Roles, before.Roles) {
		t.Errorf("link %q, then %+v, before %+v", again.Link, after, before)
	}
	w.Mail = false // then the link would be shown
	w.store.Advance(time.Hour)
	if _, err := w.Resend(t.Context(), support, made.ID, event.IfMatch{}, 0); !errors.Is(err, user.ErrDeliveryNotConfigured) {
		t.Errorf("without mail: %v", err)
	}
}
