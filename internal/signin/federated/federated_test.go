package federated

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// refusedFor demands that nothing is recorded but why somebody does not get in; nothing at all where why is empty.
func (w *world) refusedFor(mark int64, before, userID string, why session.Reason) {
	w.t.Helper()
	if why == "" {
		if w.store.Fingerprint() != before {
			w.t.Error("a refusal wrote something")
		}
		return
	}
	w.store.Then(w.t, mark, eventtest.Fact{Object: session.IDFor(userID), Type: "sign_in.failed.v1",
		Payload:  `{"count":1,"by":[{"method":"fed","reason":"` + string(why) + `","count":1}]}`,
		Personal: `{"address":"192.0.2.1","userAgent":"curl/8"}`})
	events, err := w.store.Events(w.t.Context(), mark, 1)
	must(w.t, err)
	if events[0].Origin != (event.Origin{Actor: event.System, RequestID: "req_1"}) {
		w.t.Errorf("caused by %+v", events[0].Origin)
	}
}

func TestWhoSignsInThroughAProvider(t *testing.T) {
	none := func(*world) {}
	reasons := map[string]session.Reason{
		"where it is bound to another one":                        session.WrongOrganization,
		"an inactive user":                                        session.UserInactive,
		"a locked user":                                           session.UserLocked,
		"an inactive organization":                                session.ProviderRefused, // which owns the provider, too
		"a provider that is inactive":                             session.ProviderRefused,
		"a provider that was switched off and on since the check": session.ProviderRefused,
		"a provider that was changed since the check":             session.ProviderRefused,
		"a removed provider":                                      session.ProviderRefused,
		"an identity of another organization":                     session.ProviderRefused,
		"a user of another organization than the provider":        session.WayNotAllowed,
		"after the user was promoted":                             session.LinkIsSuspended,
		"after somebody with less changed the provider":           session.LinkIsSuspended,
		"where the organization allows another provider":          session.WayNotAllowed,
		"where the organization allows passwords only":            session.WayNotAllowed,
	}
	for _, c := range []struct {
		name    string
		given   func(*world)
		who     func(*world) idp.Identity
		at      SignInRequest
		refusal *errs.Error
		user    string
	}{
		{"somebody who is linked", none, nil, SignInRequest{}, nil, "usr_b"},
		{"where the sign-in is bound to the organization", none, nil, SignInRequest{OrgID: "org_b"}, nil, "usr_b"},
		{"where it is bound to another one", none, nil, SignInRequest{OrgID: "org_def"}, session.ErrSignInFailed, ""},
		{"another subject", none, func(w *world) idp.Identity { return w.who("idp_b", "2") }, SignInRequest{},
			session.ErrNotLinked, ""},
		{"another issuer", none,
			func(w *world) idp.Identity { i := w.who("idp_b", "1"); i.Issuer = "https://UP.test"; return i },
			SignInRequest{}, session.ErrNotLinked, ""},
		{"the same subject at another provider", none, func(w *world) idp.Identity { return w.who("idp_def", "1") },
			SignInRequest{}, session.ErrNotLinked, ""},
		{"a number in another spelling", func(w *world) { w.user("usr_b", linked("idp_b", "1000")) },
			func(w *world) idp.Identity { return w.who("idp_b", "1e3") }, SignInRequest{}, session.ErrNotLinked, ""},
		{"an unlinked one", func(w *world) { w.user("usr_b", user.LinkRemoved{LinkID: "lnk_1", Provider: "idp_b"}) },
			nil, SignInRequest{}, session.ErrNotLinked, ""},
		{"an inactive user", func(w *world) { w.user("usr_b", user.Deactivated{}) }, nil, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"a locked user", func(w *world) { w.user("usr_b", user.WasLocked{}) }, nil, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"a removed user", func(w *world) { w.user("usr_b", user.WasRemoved{}) }, nil, SignInRequest{},
			session.ErrNotLinked, ""},
		{"an inactive organization",
			func(w *world) { eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.Deactivated{}) }, nil,
			SignInRequest{}, session.ErrSignInFailed, ""},
		{"a provider that is inactive", func(w *world) { w.idp("idp_b", idp.Deactivated{}) }, nil, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"a provider that was switched off and on since the check",
			func(w *world) { w.idp("idp_b", idp.Deactivated{}, idp.Reactivated{}) },
			func(w *world) idp.Identity { i := w.who("idp_b", "1"); i.Epoch = 0; return i }, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"a provider that was changed since the check",
			func(w *world) { w.idp("idp_b", idp.Vouched{By: "usr_admin", Roles: bOwner}) },
			func(w *world) idp.Identity { i := w.who("idp_b", "1"); i.Version = 1; return i }, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"a removed provider", func(w *world) { w.idp("idp_b", idp.WasRemoved{}) }, nil, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"an identity of another organization", none,
			func(w *world) idp.Identity { i := w.who("idp_b", "1"); i.Org = "org_def"; return i }, SignInRequest{},
			session.ErrSignInFailed, ""},
		{"no subject", none, func(w *world) idp.Identity { return w.who("idp_b", "") }, SignInRequest{},
			session.ErrNotLinked, ""},
		{"a user of another organization than the provider", func(w *world) { w.user("usr_def", linked("idp_b", "9")) },
			func(w *world) idp.Identity { return w.who("idp_b", "9") }, SignInRequest{}, session.ErrSignInFailed, ""},
		{"a user of another organization, through the default one's provider",
			func(w *world) { w.user("usr_b", linked("idp_def", "9")) },
			func(w *world) idp.Identity { return w.who("idp_def", "9") }, SignInRequest{}, nil, "usr_b"},
		{"after the user was promoted", func(w *world) {
			w.user("usr_b", user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}})
		}, nil, SignInRequest{}, session.ErrLinkSuspended, ""},
		{"after somebody with less changed the provider",
			func(w *world) { w.idp("idp_b", idp.Vouched{By: "usr_x", Roles: bSettings}) }, nil, SignInRequest{},
			session.ErrLinkSuspended, ""},
		{"confirmed since", func(w *world) {
			w.idp("idp_b", idp.Vouched{By: "usr_x", Roles: bSettings})
			w.user("usr_b", user.LinkConfirmed{LinkID: "lnk_1", Confirmed: user.Confirmation{Version: 2, By: "usr_b"}})
		}, nil, SignInRequest{}, nil, "usr_b"},
		{"where the organization allows it", func(w *world) {
			w.policy("org_b", policy.SignIn{SignInMethods: []policy.Way{policy.WithProvider},
				Providers: []string{"idp_b"}})
		}, nil, SignInRequest{}, nil, "usr_b"},
		{"where the organization allows another provider",
			func(w *world) { w.policy("org_b", policy.SignIn{Providers: []string{"idp_x"}}) }, nil, SignInRequest{},
			session.ErrMethodNotAllowed, ""},
		{"where the organization allows passwords only",
			func(w *world) { w.policy("org_b", policy.SignIn{SignInMethods: []policy.Way{policy.WithPassword}}) }, nil,
			SignInRequest{}, session.ErrMethodNotAllowed, ""},
		{"where the organization of the provider says how its own people sign in", func(w *world) {
			w.user("usr_b", linked("idp_def", "9"))
			w.policy("org_def", policy.SignIn{SignInMethods: []policy.Way{policy.WithPassword}})
		}, func(w *world) idp.Identity { return w.who("idp_def", "9") }, SignInRequest{}, nil, "usr_b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.user("usr_b", linked("idp_b", "1"))
			c.given(w)
			who := idp.Identity{}
			if c.who == nil {
				who = w.who("idp_b", "1")
				who.Org = "org_b"
			} else {
				who = c.who(w)
			}
			mark, before := w.store.Mark(), w.store.Fingerprint()
			c.at.Peer, c.at.UserAgent, c.at.RequestID = home, "curl/8", "req_1"
			in, err := w.SignInThrough(t.Context(), who, c.at)
			eventtest.As(t, err, c.refusal)
			if c.refusal != nil {
				about := "usr_b"
				if who.Subject == "9" {
					about = "usr_def"
				}
				w.refusedFor(mark, before, about, reasons[c.name])
				if in.Token != "" {
					t.Error("a refusal gives a session")
				}
				return
			}
			caller, err := w.Authenticate(t.Context(), in.Token)
			must(t, err)
			if caller.UserID != c.user || in.UserID != c.user || in.SecondFactorRequired ||
				session.Recent(caller, w.store.Now()) {
				t.Errorf("%+v, %+v", in, caller)
			}
			w.idp(who.Provider, idp.Deactivated{})
			_, err = w.Authenticate(t.Context(), in.Token)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

func TestASignInThroughAProviderIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "1"))
	mark := w.store.Mark()
	who := w.who("idp_b", "1")
	who.Session, who.Fresh, who.Proven, who.Email = "upstream-sid", true, event.Micros(w.store.Now())-1,
		"secret@else.test"
	in, err := w.signIn(who)
	must(t, err)
	w.store.Then(t, mark, eventtest.Fact{
		Object:   session.IDFor("usr_b"),
		Type:     "sign_in.succeeded.v1",
		Payload:  `{"sessionId":"` + in.SessionID + `","method":"fed","provider":"idp_b"}`,
		Personal: `{"address":"192.0.2.1","userAgent":"curl/8"}`,
	})
	token, err := w.store.TokenByID(t.Context(), in.SessionID)
	must(t, err)
	proof, err := session.ProofOf(token)
	must(t, err)
	if up := proof.Upstream; token.Provider != "idp_b" || up == nil || up.Link != "lnk_1" || up.Said != who.Proven ||
		up.Session != SessionDigest("upstream-sid") || len(proof.Methods) != 1 ||
		proof.Methods[0] != session.ByProvider {
		t.Errorf("%+v with %+v", proof, proof.Upstream)
	}
	if caller, err := w.Authenticate(t.Context(), in.Token); err != nil || !session.Recent(caller, w.store.Now()) {
		t.Errorf("who was asked again is not recent: %v", err)
	}
}

func TestTheSecondFactorIsAskedForAfterAProvider(t *testing.T) {
	enrolled := func(w *world) { w.user("usr_b", user.TOTPAdded{FactorID: "fac_1", Created: 1}) }
	required := func(w *world) {
		eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil,
			org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SecondFactorRequired: true})})
	}
	everywhere := func(w *world) {
		eventtest.Given(w.t, w.store, installation.Kind, installation.ID, "", nil, installation.Added{},
			installation.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SecondFactorRequired: true})})
	}
	trusts := func(id string) func(w *world) {
		return func(w *world) { w.policy("org_b", policy.SignIn{SecondFactorProviders: []string{id}}) }
	}
	two, one := []string{"pwd", "otp"}, []string{"pwd"}
	for _, c := range []struct {
		name     string
		given    []func(*world)
		provider string
		amr      []string
		asked    bool
	}{
		{"nobody asks for one", nil, "idp_b", nil, false},
		{"one is enrolled", []func(*world){enrolled}, "idp_b", two, true},
		{"the organization requires one", []func(*world){required}, "idp_b", two, true},
		{"the installation requires one", []func(*world){everywhere}, "idp_b", two, true},
		{"the organization trusts the provider, which checked one", []func(*world){required, trusts("idp_b")},
			"idp_b", two, false},
		{"one is enrolled, and the organization trusts the provider", []func(*world){enrolled, trusts("idp_b")},
			"idp_b", two, false},
		{"the organization trusts the provider, which checked a password", []func(*world){required, trusts("idp_b")},
			"idp_b", one, true},
		{"the organization trusts the provider, which says nothing", []func(*world){required, trusts("idp_b")},
			"idp_b", nil, true},
		{"the organization trusts another provider", []func(*world){required, trusts("idp_def")}, "idp_b", two, true},
		{"the installation requires one, and the organization trusts its own provider",
			[]func(*world){everywhere, trusts("idp_b")}, "idp_b", two, true},
		{"the installation requires one, and the organization trusts the default one's",
			[]func(*world){everywhere, trusts("idp_def")}, "idp_def", two, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.user("usr_b", linked(c.provider, "1"))
			for _, given := range c.given {
				given(w)
			}
			who := w.who(c.provider, "1")
			who.Methods = c.amr
			in, err := w.signIn(who)
			must(t, err)
			caller, err := w.Authenticate(t.Context(), in.Token)
			must(t, err)
			if in.SecondFactorRequired != c.asked || caller.MustProveSecondFactor != c.asked {
				t.Errorf("%+v, %t", in, caller.MustProveSecondFactor)
			}
		})
	}
}

// Every condition of linking by an address stands in package session (links.go); here is what comes of it.
func TestSomebodyIsLinkedByAnAddress(t *testing.T) {
	byEmail := idp.OIDCAdded{General: idp.General{Name: "b", LinkByEmail: true},
		OIDC: idp.OIDC{Issuer: "https://b.test"}}
	reasons := map[string]session.Reason{"providers are not allowed": session.WayNotAllowed,
		"the provider was changed since the check": session.ProviderRefused}
	for _, c := range []struct {
		name    string
		given   func(*world)
		change  func(*idp.Identity)
		refusal *errs.Error
		asked   bool
	}{
		{"the only one with the address", nil, nil, nil, false},
		{"with a second factor of their own, which is asked for", func(w *world) {
			w.user("usr_b", user.TOTPAdded{FactorID: "fac_1", Created: 1})
			w.policy("org_b", policy.SignIn{SecondFactorProviders: []string{"idp_e"}})
		}, nil, nil, true},
		{"not verified there", nil, func(i *idp.Identity) { i.EmailVerified = false }, session.ErrNotLinked, false},
		{"has another address here", func(w *world) {
			w.user("usr_b", user.EmailChanged{Personal: user.EmailFacts{Email: new("x@b.test"),
				EmailKey: new("x@b.test")}})
		}, nil, session.ErrNotLinked, false},
		{"another one has the same address, not verified", func(w *world) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_twin", "org_b",
				[]event.Claim{user.NameClaim("org_b", "twin")},
				user.HumanAdded{Personal: user.HumanFacts{UserName: "twin", UserNameKey: "twin", Email: "ANN@b.test",
					EmailKey: "ann@b.test"}})
		}, nil, session.ErrNotLinked, false},
		{"another one has the same address on the word of an administrator", func(w *world) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_twin", "org_b",
				[]event.Claim{user.NameClaim("org_b", "twin")}, user.HumanAdded{
					EmailVerified: true,
					Verification:  &user.Verification{By: user.VerifiedByAdministrator, At: 9},
					Personal: user.HumanFacts{UserName: "twin", UserNameKey: "twin", Email: "ANN@b.test",
						EmailKey: "ann@b.test"},
				})
		}, nil, session.ErrNotLinked, false},
		{"one with the same address in another organization",
			func(w *world) { w.person("usr_far", "org_def", "far", "ann@b.test") }, nil, nil, false},
		{"the user owns another organization, and an owner changed the provider", func(w *world) {
			w.user("usr_b", user.MembershipSet{Scope: "org_def", Roles: []access.Role{access.OrgOwner}})
		}, nil, nil, false},
		{"the user holds more", func(w *world) {
			w.user("usr_b", user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwnerViewer}})
		}, nil, session.ErrNotLinked, false},
		{"providers are not allowed",
			func(w *world) { w.policy("org_b", policy.SignIn{SignInMethods: []policy.Way{policy.WithPassword}}) }, nil,
			session.ErrMethodNotAllowed, false},
		{"the provider was changed since the check",
			func(w *world) { w.idp("idp_e", idp.Vouched{By: "usr_admin", Roles: bOwner}) },
			func(i *idp.Identity) { i.Version = 1 }, session.ErrSignInFailed, false},
		{"the user is inactive", func(w *world) { w.user("usr_b", user.Deactivated{}) }, nil,
			session.ErrNotLinked, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, idp.Kind, "idp_e", "org_b", nil, byEmail,
				idp.Vouched{By: "usr_admin", Roles: bOwner})
			if c.given != nil {
				c.given(w)
			}
			who := w.who("idp_e", "e")
			who.Email, who.EmailVerified, who.Methods = "Ann@B.test", true, []string{"mfa"}
			if c.change != nil {
				c.change(&who)
			}
			mark, before := w.store.Mark(), w.store.Fingerprint()
			if _, err := w.SignInThrough(t.Context(), who,
				SignInRequest{NoLink: true, Peer: home}); !errors.Is(err, session.ErrNotLinked) ||
				w.store.Fingerprint() != before {
				t.Errorf("somebody who may not be linked: %v", err)
			}
			in, err := w.signIn(who)
			eventtest.As(t, err, c.refusal)
			if c.refusal != nil {
				w.refusedFor(mark, before, "usr_b", reasons[c.name])
				return
			}
			u := eventtest.State(t, w.store, user.Kind, "usr_b")
			if in.UserID != "usr_b" || in.SecondFactorRequired != c.asked || len(u.Data.Human.Links) != 1 ||
				u.Data.Human.Links[0].Confirmed.By != "" {
				t.Errorf("%+v, %+v", in, u.Data.Human.Links)
			}
			if w.store.Mark() == mark {
				t.Error("nothing is recorded")
			}
			again, err := w.signIn(who)
			must(t, err)
			if again.UserID != "usr_b" || len(eventtest.State(t, w.store, user.Kind, "usr_b").Data.Human.Links) != 1 {
				t.Error("the second time is another one")
			}
		})
	}
}

func TestWhoLinksAnAccount(t *testing.T) {
	fed := func(provider string, fresh bool) session.Proof {
		return session.Proof{Methods: []session.Method{session.ByProvider},
			Upstream: &session.Upstream{Provider: provider, Link: "lnk_0", Fresh: fresh}}
	}
	for _, c := range []struct {
		name      string
		given     func(*world)
		proof     session.Proof
		ago       time.Duration
		change    func(*idp.Identity)
		refusal   *errs.Error
		confirmed bool
	}{
		{"in a session with a recent proof", nil, byPassword, 0, nil, nil, true},
		{"in an older session", nil, byPassword, time.Hour, nil, session.ErrNotRecent, false},
		{"in a session that came through another provider", nil, fed("idp_def", true), 0, nil, nil, true},
		{"in a session that came through another provider, which did not ask again", nil, fed("idp_def", false), 0, nil,
			session.ErrNotRecent, false},
		{"in a session that came through the same provider: it does not confirm itself", nil, fed("idp_b", true), 0,
			nil, nil, false},
		{"in a session with a second factor to prove",
			func(w *world) { w.user("usr_b", user.TOTPAdded{FactorID: "fac_1", Created: 1}) }, byPassword, 0, nil,
			access.ErrSecondFactor, false},
		{"in a session with a password to change",
			func(w *world) { w.user("usr_b", user.PasswordSet{ChangeRequired: true}) }, byPassword, 0, nil,
			access.ErrPasswordChange, false},
		{"to a provider of another organization", nil, byPassword, 0,
			func(i *idp.Identity) { i.Provider, i.Org = "idp_c", "org_c" }, session.ErrSignInFailed, false},
		{"to a provider that is switched off", func(w *world) { w.idp("idp_b", idp.Deactivated{}) }, byPassword, 0, nil,
			session.ErrSignInFailed, false},
		{"to a provider that was changed since", nil, byPassword, 0, func(i *idp.Identity) { i.Version = 0 },
			session.ErrSignInFailed, false},
		{"to a provider that the organization does not allow",
			func(w *world) { w.policy("org_b", policy.SignIn{Providers: []string{"idp_x"}}) }, byPassword, 0, nil,
			session.ErrMethodNotAllowed, false},
		{"to what somebody else is linked to", func(w *world) { w.user("usr_c", linked("idp_b", "1")) }, byPassword, 0,
			nil, user.ErrLinkTaken, false},
		{"a subject that is too long", nil, byPassword, 0,
			func(i *idp.Identity) { i.Subject = strings.Repeat("x", user.MaxSubject+1) },
			errs.Invalid(errs.Violation{Field: "subject"}), false},
		{"with as many links as there can be", func(w *world) {
			for i := range user.MaxLinks - 1 {
				w.user("usr_b", linked("idp_x", "many"+string(rune('a'+i))))
			}
		}, byPassword, 0, nil, user.ErrTooManyLinks, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.person("usr_c", "org_b", "cam", "cam@b.test")
			eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
			eventtest.Given(t, w.store, idp.Kind, "idp_c", "org_c", nil, idp.OIDCAdded{},
				idp.Vouched{By: "x", Roles: iamOwner})
			zero := linked(map[bool]string{true: "idp_b", false: "idp_def"}[c.proof.Upstream.Of() == "idp_b"], "0")
			w.user("usr_b", zero)
			if c.given != nil {
				c.given(w)
			}
			who := w.who("idp_b", "1")
			who.Email = "ann@up.test"
			if c.change != nil {
				c.change(&who)
			}
			caller := w.caller("usr_b", c.proof, c.ago)
			mark, before := w.store.Mark(), w.store.Fingerprint()
			out, err := w.Link(t.Context(), caller, who, session.From{Peer: home})
			if c.refusal != nil && c.refusal.Kind == errs.InvalidArgument {
				if err == nil {
					t.Error("it is taken")
				}
				return
			}
			eventtest.As(t, err, c.refusal)
			if c.refusal != nil {
				w.refusedFor(mark, before, "usr_b", "")
				return
			}
			u := eventtest.State(t, w.store, user.Kind, "usr_b")
			l, there := u.Data.Human.Link(out.LinkID)
			if !there || l.Provider != "idp_b" || l.Subject != "1" || l.Issuer != "https://up.test" ||
				l.Name != "ann@up.test" || (l.Confirmed.By == "usr_b" && l.Confirmed.Version == 1) != c.confirmed {
				t.Errorf("%+v", l)
			}
			w.store.Then(t, mark, eventtest.Fact{
				Object: "usr_b",
				Type:   "user.link_added.v1",
				Payload: string(mustJSON(t,
					user.LinkAdded{LinkID: l.ID, Provider: "idp_b", Created: l.Created, Confirmed: l.Confirmed})),
				Personal: `{"issuer":"https://up.test","subject":"1","name":"ann@up.test"}`,
			})
			if same, err := w.Link(t.Context(), caller, who, session.From{}); err != nil || same.LinkID != out.LinkID {
				t.Errorf("the same again: %+v, %v", same, err)
			}
			if in, err := w.signIn(who); err != nil || in.UserID != "usr_b" {
				t.Errorf("signing in by it: %v", err)
			}
		})
	}
}

// However many ask at once, on whatever node, an account of a provider is linked to one user.
func TestAnAccountIsLinkedOnce(t *testing.T) {
	w := newWorld(t)
	w.person("usr_c", "org_b", "cam", "cam@b.test")
	callers := []*access.Caller{w.caller("usr_b", byPassword, 0), w.caller("usr_c", byPassword, 0)}
	who := w.who("idp_b", "1")
	var all sync.WaitGroup
	done := make([]error, 64)
	for i := range done {
		all.Go(func() { _, done[i] = w.Link(t.Context(), callers[i%2], who, session.From{}) })
	}
	all.Wait()
	n := 0
	for _, id := range []string{"usr_b", "usr_c"} {
		n += len(eventtest.State(t, w.store, user.Kind, id).Data.Human.Links)
	}
	if n != 1 {
		t.Errorf("%d links", n)
	}
}

func TestWhoConfirmsALink(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "1"), linked("idp_def", "0"))
	w.idp("idp_b", idp.Vouched{By: "usr_x", Roles: bSettings})
	who := w.who("idp_b", "1")
	_, err := w.signIn(who)
	eventtest.As(t, err, session.ErrLinkSuspended)
	u := eventtest.State(t, w.store, user.Kind, "usr_b")
	shown, err := w.Links(t.Context(), u)
	must(t, err)
	if len(shown) != 2 || !shown[0].Suspended || shown[0].ProviderName != "b" || shown[1].Suspended {
		t.Errorf("%+v", shown)
	}
	own := session.Proof{Methods: []session.Method{session.ByProvider},
		Upstream: &session.Upstream{Provider: "idp_b", Link: "lnk_1", Fresh: true}}
	for name, c := range map[string]struct {
		caller *access.Caller
		link   string
		want   *errs.Error
	}{
		"by the provider's own word": {w.caller("usr_b", own, 0), "lnk_1", errOwnWord},
		"in an older session":        {w.caller("usr_b", byPassword, time.Hour), "lnk_1", session.ErrNotRecent},
		"an unknown one":             {w.caller("usr_b", byPassword, 0), "lnk_x", user.ErrLinkNotFound},
		"somebody else's":            {w.caller("usr_def", byPassword, 0), "lnk_1", user.ErrLinkNotFound},
	} {
		_, err := w.ConfirmLink(t.Context(), c.caller, event.IfMatch{}, c.link)
		if err == nil {
			t.Error(name)
		}
		eventtest.As(t, err, c.want)
	}
	_, err = w.ConfirmLink(t.Context(), w.caller("usr_b", byPassword, 0),
		event.IfMatch{Set: true, Sequence: 99}, "lnk_1")
	if err == nil {
		t.Error("at another sequence")
	}
	_, err = w.ConfirmLink(t.Context(), w.caller("usr_b", byPassword, 0), event.IfMatch{}, "lnk_1")
	must(t, err)
	_, err = w.signIn(who)
	must(t, err)
	w.user("usr_b", user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwnerViewer}})
	_, err = w.signIn(who)
	eventtest.As(t, err, session.ErrLinkSuspended)

	permit := func(m access.Memberships) access.Permit {
		p, err := (&access.Caller{UserID: "usr_admin", OrgID: "org_b", Memberships: m}).In("org_b", access.UserRead)
		must(t, err)
		return p
	}
	_, err = w.ConfirmLinkOf(t.Context(), permit(access.Memberships{"org_b": {access.OrgOwnerViewer}}), "usr_b",
		event.IfMatch{}, "lnk_1")
	eventtest.As(t, err, access.ErrDenied)
	_, err = w.ConfirmLinkOf(t.Context(), permit(access.Memberships{"org_b": {access.OrgUserManager}}), "usr_b",
		event.IfMatch{}, "lnk_1")
	eventtest.As(t, err, access.ErrTargetHoldsMore)
	_, err = w.ConfirmLinkOf(t.Context(), permit(bOwner), "usr_def", event.IfMatch{}, "lnk_1")
	eventtest.As(t, err, user.ErrNotFound)
	_, err = w.ConfirmLinkOf(t.Context(), permit(bOwner), "usr_b", event.IfMatch{}, "lnk_x")
	eventtest.As(t, err, user.ErrLinkNotFound)
	_, err = w.ConfirmLinkOf(t.Context(), permit(bOwner), "usr_b", event.IfMatch{}, "lnk_1")
	must(t, err)
	_, err = w.signIn(who)
	must(t, err)
}

func TestALinkThatIsRemovedEndsWhatCameByIt(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "1"), linked("idp_b", "2"))
	first, err := w.signIn(w.who("idp_b", "1"))
	must(t, err)
	second, err := w.signIn(w.who("idp_b", "2"))
	must(t, err)
	_, err = w.RemoveLink(t.Context(), w.caller("usr_b", byPassword, time.Hour), event.IfMatch{}, "lnk_1")
	eventtest.As(t, err, session.ErrNotRecent)
	_, err = w.RemoveLink(t.Context(), w.caller("usr_b", byPassword, 0), event.IfMatch{}, "lnk_x")
	eventtest.As(t, err, user.ErrLinkNotFound)
	_, err = w.RemoveLink(t.Context(), w.caller("usr_b", byPassword, 0), event.IfMatch{}, "lnk_1")
	must(t, err)
	_, err = w.Authenticate(t.Context(), first.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	_, err = w.Authenticate(t.Context(), second.Token)
	must(t, err)
	// Somebody else can be linked to it now.
	w.person("usr_c", "org_b", "cam", "cam@b.test")
	_, err = w.Link(t.Context(), w.caller("usr_c", byPassword, 0), w.who("idp_b", "1"), session.From{})
	must(t, err)

	manager, err := (&access.Caller{UserID: "usr_m", OrgID: "org_b",
		Memberships: access.Memberships{"org_b": {access.OrgUserManager}}}).In("org_b", access.UserWrite)
	must(t, err)
	_, err = w.RemoveLinkOf(t.Context(), manager, "usr_def", event.IfMatch{}, "lnk_2")
	eventtest.As(t, err, user.ErrNotFound)
	_, err = w.RemoveLinkOf(t.Context(), manager, "usr_b", event.IfMatch{}, "lnk_2")
	must(t, err)
	_, err = w.Authenticate(t.Context(), second.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	w.user("usr_c", user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwner}})
	_, err = w.RemoveLinkOf(t.Context(), manager, "usr_c", event.IfMatch{}, "lnk_1")
	eventtest.As(t, err, access.ErrTargetHoldsMore)
}

func TestAProviderRenewsTheProofOfASession(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "1"))
	fresh := w.who("idp_b", "1")
	fresh.Fresh, fresh.Proven = true, event.Micros(w.store.Now())
	for _, c := range []struct {
		name    string
		given   func(*world)
		who     func() idp.Identity
		refusal *errs.Error
	}{
		{"who did not ask again", nil, func() idp.Identity { return w.who("idp_b", "1") }, session.ErrNotRecent},
		{"of another subject", nil, func() idp.Identity { i := fresh; i.Subject = "2"; return i },
			session.ErrNotLinked},
		{"of another version", nil, func() idp.Identity { i := fresh; i.Version = 9; return i },
			session.ErrSignInFailed},
		{"that asked again", nil, func() idp.Identity { return fresh }, nil},
		{"by a link that is suspended", func(w *world) { w.idp("idp_b", idp.Vouched{By: "x", Roles: bSettings}) },
			func() idp.Identity {
				i := w.who("idp_b", "1")
				i.Fresh, i.Proven = true, event.Micros(w.store.Now())
				return i
			}, session.ErrLinkSuspended},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.given != nil {
				c.given(w)
			}
			caller := w.caller("usr_b", byPassword, time.Hour)
			out, err := w.ReproveThrough(t.Context(), caller, c.who(), session.From{Peer: home, Rotate: true})
			eventtest.As(t, err, c.refusal)
			if c.refusal != nil {
				return
			}
			again, err := w.Authenticate(t.Context(), out.Token)
			must(t, err)
			if !session.Recent(again, w.store.Now()) {
				t.Error("it is not recent")
			}
			// Who has a second factor proves that one again.
			again.SecondFactor = true
			proof, err := session.ProofOf(again.Session)
			must(t, err)
			if proof.SecondFactor {
				t.Error("it is taken for a second factor")
			}
		})
	}
}
