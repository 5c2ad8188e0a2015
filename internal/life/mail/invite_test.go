package mail

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/life/invitation"
)

func (p *post) invites(t *testing.T, email, language string) {
	t.Helper()
	boss := &access.Caller{UserID: "usr_boss", OrgID: "org_a",
		Memberships: access.Memberships{"org_a": {access.OrgOwner}}}
	permit, err := boss.In("org_a", access.InvitationWrite)
	must(t, err)
	_, err = invitation.Invitations{Store: p.Store, Master: p.Master, Mail: true}.Create(t.Context(), permit,
		invitation.New{Email: email, Language: language})
	must(t, err)
}

func TestAnInvitationIsSent(t *testing.T) {
	p := newPost(t)
	p.person(t, "boss", true, user.Profile{DisplayName: "Ada Boss"})
	p.invites(t, "nia@mail.test", "de")
	must(t, p.deliver(t))
	m := p.one(t)
	if m.Kind != Invitation || m.To != "nia@mail.test" || m.Language != "de" ||
		!strings.Contains(m.Text, "Ada Boss lädt Sie ein, A bei id.example.org beizutreten.") ||
		!strings.HasPrefix(m.Link, "https://id.example.org/login/invitation?token=sgn_inv_") ||
		!strings.Contains(m.Text, m.Link) || m.UserID != "" {
		t.Errorf("%+v", m)
	}
	if p.Stored(t, strings.SplitN(m.Link, "token=", 2)[1]) {
		t.Error("the link is stored")
	}
}

// Whoever invites chooses the name that the mail is from: it must not be an advertisement.
func TestAnInvitationIsNoAdvertisement(t *testing.T) {
	p := newPost(t)
	p.person(t, "boss", true, user.Profile{DisplayName: "Win at evil.example now"})
	p.invites(t, "nia@mail.test", "")
	must(t, p.deliver(t))
	m := p.one(t)
	for _, part := range []string{"Win at", "evil.example"} { // four letters alone are in some tokens
		if strings.Contains(m.Text+m.HTML, part) {
			t.Errorf("%+v", m)
		}
	}
	if !strings.Contains(m.Text, "A invites you to join A at id.example.org.") {
		t.Errorf("%+v", m)
	}
}

func TestAnInvitationThatComesTooSoonIsSentLater(t *testing.T) {
	p := newPost(t)
	p.person(t, "boss", true, jo)
	p.invites(t, "nia@mail.test", "")
	must(t, p.deliver(t))
	p.one(t)
	// of another organization
	must(t, p.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Decide: func(tx *event.Tx) error {
			tx.DropRow(invitation.Counts(p.Master, "org_a", "nia@mail.test").Row)
			return nil
		},
	}))
	list, _, err := invitation.Kind.List(t.Context(), p.Store, event.Query{Org: "org_a", Limit: 1})
	must(t, err)
	p.Advance(time.Second)
	eventtest.Given(t, p.Store, invitation.Kind, list[0].ID, "", nil,
		invitation.Sent{Link: 2, Life: 1e12, Expires: event.Micros(p.Now()) + 1e12, Inviter: "usr_boss"})
	if refusal, refused := errors.AsType[*notify.Refusal](p.deliver(t)); !refused || refusal.ForGood {
		t.Errorf("%v", refusal)
	}
}

// What came with a new user is no news to them.
func TestANewcomerIsNotToldOfTheFirstPassword(t *testing.T) {
	p := newPost(t)
	eventtest.Given(t, p.Store, user.Kind, "usr_nia", "org_a", []event.Claim{user.NameClaim("org_a", "nia")},
		user.HumanAdded{
			EmailVerified: true,
			Personal: user.HumanFacts{UserName: "nia", UserNameKey: "nia", Profile: jo, Email: "nia@mail.test",
				EmailKey: "nia@mail.test"},
		}, user.PasswordChanged{}, user.PasskeyAdded{FactorID: "fac_1"})
	must(t, p.deliver(t))
	p.none(t, "it came with the user")
}

// offers has the organization org_b, whose owner usr_boss sees the people of org_a, offer roles to somebody.
func (p *post) offers(t *testing.T, id string) {
	t.Helper()
	boss := &access.Caller{UserID: "usr_boss", OrgID: "org_b",
		Memberships: access.Memberships{"org_b": {access.OrgOwner}, "org_a": {access.OrgOwnerViewer}}}
	permit, err := boss.In("org_b", access.MemberWrite)
	must(t, err)
	members, err := member.OfOrganization(permit)
	must(t, err)
	_, err = members.Set(t.Context(), p.Store, id, event.IfMatch{}, []string{"ORG_OWNER"})
	must(t, err)
}

func TestAnOfferIsToldOnceADay(t *testing.T) {
	p := newPost(t)
	eventtest.Given(t, p.Store, org.Kind, "org_b", "org_b", nil, org.Added{Name: "Bee & Sons"})
	p.person(t, "nia", true, user.Profile{DisplayName: "Nia", PreferredLanguage: "de"})
	p.person(t, "unproven", false, jo)
	must(t, p.deliver(t))
	p.sent = nil
	p.offers(t, "usr_nia")
	p.offers(t, "usr_unproven") // an address that is nobody's yet
	must(t, p.deliver(t))
	m := p.one(t)
	if m.Kind != RolesOffered || m.UserID != "usr_nia" || m.Language != "de" ||
		m.Link != "https://id.example.org/account/organizations" ||
		!strings.Contains(m.Text, "Bee & Sons möchte Sie aufnehmen") || !strings.Contains(m.Text, "bis 01.02.2026") {
		t.Errorf("%+v", m)
	}
	p.Advance(time.Hour)
	p.offers(t, "usr_nia")
	must(t, p.deliver(t))
	if len(p.sent) != 0 {
		t.Errorf("sent again: %+v", p.sent)
	}
	p.Advance(24 * time.Hour)
	p.offers(t, "usr_nia")
	must(t, p.deliver(t))
	p.one(t)
}
