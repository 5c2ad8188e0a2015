package mail

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

func TestWhoMayNotUseAPasswordIsToldHowElse(t *testing.T) {
	passkey := user.PasskeyAdded{FactorID: "fac_1"}
	for _, c := range []struct {
		name  string
		ways  []policy.Way
		link  string
		owns  []event.Fact[user.User]
		wants string
	}{
		{"providers", []policy.Way{policy.WithProvider}, "", nil, "Sign in through Corp, Other."},
		{"providers, a passkey that is not allowed", []policy.Way{policy.WithProvider}, "",
			[]event.Fact[user.User]{passkey}, "Sign in through Corp, Other."},
		{"the provider of a link", []policy.Way{policy.WithProvider}, "idp_2", nil, "Sign in through Other."},
		{"a passkey", []policy.Way{policy.WithPasskey}, "", []event.Fact[user.User]{passkey},
			"Sign in with your passkey."},
		{"both", []policy.Way{policy.WithProvider, policy.WithPasskey}, "idp_1", []event.Fact[user.User]{passkey},
			"Sign in through Corp or with your passkey."},
		{"a passkey that the person does not have", []policy.Way{policy.WithPasskey}, "", nil,
			"Ask your administrator how to sign in."},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPost(t)
			eventtest.Given(t, p.Store, installation.Kind, installation.ID, "org_a", nil,
				installation.Added{DefaultOrg: "org_a"})
			for id, name := range map[string]string{"idp_1": "Corp", "idp_2": "Other", "idp_3": "Draft"} {
				eventtest.Given(t, p.Store, idp.Kind, id, "org_a", nil, idp.OIDCAdded{General: idp.General{Name: name},
					Drafted: idp.Drafted{Draft: name == "Draft"}}, idp.Vouched{By: "usr_x"})
			}
			eventtest.Given(t, p.Store, org.Kind, "org_a", "", nil,
				org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SignIn: policy.SignIn{SignInMethods: c.ways}})})
			p.person(t, "jo", true, jo)
			if c.link != "" {
				eventtest.Given(t, p.Store, user.Kind, "usr_jo", "",
					[]event.Claim{user.LinkClaim(c.link, "i", "s")},
					user.LinkAdded{LinkID: "lnk_1", Provider: c.link, Personal: user.LinkFacts{Issuer: "i", Subject: "s"}})
			}
			p.happened(t, "jo", c.owns...)
			p.sent = nil
			p.companion(t, "jo", session.PasswordResetRequested{NoPassword: true})
			must(t, p.deliver(t))
			m := p.one(t)
			if m.Kind != NoPassword || m.To != "jo@mail.test" || m.Code != "" || m.Link != "" ||
				!strings.Contains(m.Text, c.wants) || !strings.Contains(m.HTML, c.wants) {
				t.Errorf("%+v", m)
			}
		})
	}
}
