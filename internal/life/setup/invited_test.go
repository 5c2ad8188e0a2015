package setup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/setup"
)

func invited(change ...func(*setup.InvitedOrganization)) setup.InvitedOrganization {
	o := setup.InvitedOrganization{Name: "Acme, Inc.",
		Administrator: invitation.New{Email: "Jo@Example.org", Language: "de", Life: time.Hour}}
	for _, c := range change {
		c(&o)
	}
	return o
}

func invitations(s *eventtest.Store, mail bool) invitation.Invitations {
	return invitation.Invitations{Store: s, Master: s.Master, ExternalURL: "https://id.test", Mail: mail}
}

func TestAnOrganizationComesWithAnInvitationOfItsAdministrator(t *testing.T) {
	for _, mail := range []bool{true, false} {
		s, set := world(t)
		done, err := set.Invited(t.Context(), iam, event.Once{}, invitations(s, mail), invited())
		must(t, err)
		shown := `"shown":true,`
		if mail {
			shown = ""
		}
		s.Then(t, 0,
			eventtest.Fact{Object: done.OrgID, Type: "org.added.v1",
				Payload: `{"name":"Acme, Inc.","nameKey":"acme, inc."}`},
			eventtest.Fact{Object: done.OrgID, Type: "org.domain_added.v1",
				Payload: `{"domain":"acme-inc.id.test","verified":true,"primary":true}`},
			eventtest.Fact{Object: done.InvitationID, Type: "invitation.added.v1",
				Payload:  `{"roles":["ORG_OWNER"],"language":"de","inviter":"usr_iam","founds":true}`,
				Personal: `{"email":"Jo@Example.org","emailKey":"jo@example.org"}`},
			eventtest.Fact{Object: done.InvitationID, Type: "invitation.sent.v1",
				Payload: `{"link":1,` + shown + `"life":3600000000,"expires":1767326645678901,"inviter":"usr_iam"}`},
		)
		o := eventtest.State(t, s, org.Kind, done.OrgID)
		i := eventtest.State(t, s, invitation.Kind, done.InvitationID)
		if done.Details != o.Details() || i.Org != done.OrgID || !done.Expires.Equal(eventtest.Start.Add(time.Hour)) ||
			(done.Link == "") != mail {
			t.Errorf("got %+v, the invitation is of %s", done, i.Org)
		}
	}
}

func TestWhatIsRefusedOfAnInvitedOrganization(t *testing.T) {
	s, set := world(t)
	_, err := set.Invited(t.Context(), iam, event.Once{}, invitations(s, true),
		invited(func(o *setup.InvitedOrganization) { o.Domain = "acme.example" }))
	must(t, err)
	mark := s.Mark()
	for name, tt := range map[string]struct {
		change func(*setup.InvitedOrganization)
		fields []string
	}{
		"no name":               {func(o *setup.InvitedOrganization) { o.Name = "" }, []string{"org.name"}},
		"a domain with a space": {func(o *setup.InvitedOrganization) { o.Domain = "a b" }, []string{"org.domain"}},
		"no address": {func(o *setup.InvitedOrganization) { o.Administrator.Email = "" },
			[]string{"email"}},
		"no right address": {func(o *setup.InvitedOrganization) { o.Administrator.Email = "jo" },
			[]string{"email"}},
		"a long address": {func(o *setup.InvitedOrganization) {
			o.Administrator.Email = strings.Repeat("a", 190) + "@example.org"
		}, []string{"email"}},
		"a long language": {func(o *setup.InvitedOrganization) {
			o.Administrator.Language = strings.Repeat("d", 11)
		}, []string{"language"}},
		"too long a life": {func(o *setup.InvitedOrganization) { o.Administrator.Life = 31 * 24 * time.Hour },
			[]string{"lifetimeSeconds"}},
		"all at once": {func(o *setup.InvitedOrganization) { *o = setup.InvitedOrganization{Domain: "a@b"} },
			[]string{"org.name", "org.domain", "email"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := set.Invited(t.Context(), iam, event.Once{}, invitations(s, true), invited(tt.change))
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, tt.fields...)
		})
	}
	for _, p := range []access.Permit{{}, permit("org_a", access.OrgSetup)} {
		_, err := set.Invited(t.Context(), p, event.Once{}, invitations(s, true), invited())
		eventtest.As(t, err, access.ErrDenied)
	}
	_, err = set.Invited(t.Context(), iam, event.Once{}, invitations(s, true),
		invited(func(o *setup.InvitedOrganization) { o.Domain = "ACME.example" }))
	eventtest.As(t, err, org.ErrDomainTaken)
	if s.Mark() != mark {
		t.Error("something was written")
	}
}

func TestAnInvitedOrganizationIsSetUpOnce(t *testing.T) {
	s, set := world(t)
	once := event.Once{Key: "k", Request: []byte("r"), Expires: event.Micros(s.Now().Add(time.Hour))}
	first, err := set.Invited(t.Context(), iam, once, invitations(s, false), invited())
	must(t, err)
	mark := s.Mark()
	again, err := set.Invited(t.Context(), iam, once, invitations(s, false), invited())
	must(t, err)
	_, token, _ := strings.Cut(first.Link, "token=")
	if token == "" || s.Stored(t, token) {
		t.Errorf("the link is %q, or it is kept", first.Link)
	}
	if first.Link = ""; again != first || s.Mark() != mark {
		t.Errorf("got %+v, then %+v", first, again)
	}
	once.Request = []byte("x")
	_, err = set.Invited(t.Context(), iam, once, invitations(s, false), invited())
	var e *errs.Error
	if !errors.As(err, &e) || e.Reason != event.IdempotencyKeyReused {
		t.Errorf("another request: %v", err)
	}
}

// The one who sets up an organization need not hold what its owner will. The invitation counts as long as its sender
// may set up organizations, or may give the role in another way.
func TestTheFirstOwnerIsInvitedByWhoMaySetUpOrganizations(t *testing.T) {
	for name, tt := range map[string]struct {
		now     []event.Fact[user.User] // about the inviter, since the invitation
		refusal error
	}{
		"still so": {nil, nil},
		"an owner of all meanwhile": {
			[]event.Fact[user.User]{has(access.Installation, access.IAMOwner)}, nil},
		"one who reads all meanwhile": {
			[]event.Fact[user.User]{has(access.Installation, access.IAMOwnerViewer)}, invitation.ErrInviterMayNot},
		"nobody any more": {[]event.Fact[user.User]{has(access.Installation)}, invitation.ErrInviterMayNot},
		"locked":          {[]event.Fact[user.User]{user.WasLocked{}}, invitation.ErrInviterMayNot},
	} {
		t.Run(name, func(t *testing.T) {
			s, set := world(t)
			eventtest.Given(t, s, org.Kind, "org_home", "org_home", nil, org.Added{Name: "Home"})
			eventtest.Given(t, s, user.Kind, "usr_setter", "org_home",
				[]event.Claim{user.NameClaim("org_home", "setter")},
				user.HumanAdded{Personal: user.HumanFacts{UserName: "setter", UserNameKey: "setter"}},
				has(access.Installation, access.IAMOrgManager))
			p, err := (&access.Caller{UserID: "usr_setter", OrgID: "org_home",
				Memberships: access.Memberships{access.Installation: {access.IAMOrgManager}}}).In(access.Installation,
				access.OrgSetup)
			must(t, err)
			inv := invitations(s, false)
			done, err := set.Invited(t.Context(), p, event.Once{}, inv, invited())
			must(t, err)
			if len(tt.now) > 0 {
				eventtest.Given(t, s, user.Kind, "usr_setter", "", nil, tt.now...)
			}
			_, token, _ := strings.Cut(done.Link, "token=")
			if _, err := inv.Open(t.Context(), token); !errors.Is(err, tt.refusal) {
				t.Errorf("got %v, want %v", err, tt.refusal)
			}
		})
	}
}

func has(scope string, roles ...access.Role) event.Fact[user.User] {
	return user.MembershipSet{Scope: scope, Roles: roles}
}
