package ownpage

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	must = testkit.Must
	peer = netip.MustParseAddr("192.0.2.1")

	iamOwner = access.Memberships{access.Installation: {access.IAMOwner}}
	bOwner   = access.Memberships{"org_b": {access.OrgOwner}}
	bManager = access.Memberships{"org_b": {access.OrgUserManager}}
	settings = access.Memberships{"org_b": {access.OrgSettingsManager}}
)

const home = "https://shop.test/home"

// world has the default organization org_def and org_b, with a person each (usr_def, usr_b), providers that both are
// linked at (idp_def, idp_b), and an application of org_b (app_b) with a sign-in page of its own, for which somebody
// answers who may do everything.
type world struct {
	Pages
	t      *testing.T
	store  *eventtest.Store
	secret string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, session.Kind)
	factors, err := factor.New(s.Master, "https://id.signet.test")
	must(t, err)
	w := &world{t: t, store: s, Pages: Pages{ExternalURL: "https://id.signet.test",
		Sessions: federated.Sessions{Sessions: &session.Sessions{Store: s, Factors: factors, Master: s.Master,
			Clock: s.Now, DefaultOrg: "org_def", Standings: &session.Standings{}}}}}
	for _, id := range []string{"def", "b"} {
		eventtest.Given(t, s, org.Kind, "org_"+id, "org_"+id, nil, org.Added{Name: id})
		eventtest.Given(t, s, user.Kind, "usr_"+id, "org_"+id,
			[]event.Claim{user.NameClaim("org_"+id, syntax.NameKey("jo")),
				user.LinkClaim("idp_def", "https://up.test", id)},
			user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo", Email: "jo@x.test",
				EmailKey: "jo@x.test"}},
			user.LinkAdded{LinkID: "lnk_" + id, Provider: "idp_def", Created: 1,
				Personal: user.LinkFacts{Issuer: "https://up.test", Subject: id}})
		eventtest.Given(t, s, idp.Kind, "idp_"+id, "org_"+id, nil,
			idp.OIDCAdded{General: idp.General{Name: id, AutoRegister: true},
				OIDC: idp.OIDC{Issuer: "https://" + id + ".test"}},
			idp.Vouched{By: "usr_admin", Roles: iamOwner})
	}
	w.secret = w.application("app_b", "org_b")
	return w
}

func (w *world) application(id, orgID string) string {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Client)
	eventtest.Given(w.t, w.store, app.Kind, id, orgID, nil,
		app.Added{Name: id, Type: app.Web,
			Settings: app.Settings{AuthMethod: app.SecretBasic, RedirectURIs: []string{home}}}, app.SecretSet{},
		app.OwnSignInSet{Allowed: true}, app.Vouched{By: "usr_admin", Roles: iamOwner})
	w.store.GivenRow(event.Row{RowKey: app.SecretRow(id), Value: hash})
	return text
}

func (w *world) app(facts ...event.Fact[app.App]) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, app.Kind, "app_b", "", nil, facts...)
}

func (w *world) client() Client { return Client{ID: "app_b", Secret: w.secret, Peer: peer} }

// code is what an application has after somebody came back.
func (w *world) code(provider, subject string) Redeem {
	w.t.Helper()
	started, err := w.Start(w.t.Context(), Start{Client: w.client(), Provider: provider, ReturnAddress: home})
	must(w.t, err)
	address, err := url.Parse(started.Address)
	must(w.t, err)
	if address.Path != "/login/idp/"+provider {
		w.t.Fatalf("sent to %s", address)
	}
	attempt, err := w.Open(w.t.Context(), provider, address.Query().Get(Param))
	must(w.t, err)
	p := eventtest.State(w.t, w.store, idp.Kind, provider)
	asked := event.RowKey{Table: event.Flows, Key: "asked"}
	w.store.GivenRow(event.Row{RowKey: asked, Value: []byte{1}})
	code, err := w.Code(w.t.Context(), attempt, idp.Identity{
		Provider:  provider,
		Org:       p.Org,
		Epoch:     p.Data.Epoch,
		Version:   p.Data.Changer.Version,
		Issuer:    "https://up.test",
		Subject:   subject,
		FirstName: "New",
		LastName:  "Person",
		Email:     "new@x.test",
		UserName:  "new",
	}, asked)
	must(w.t, err)
	return Redeem{Client: w.client(), Token: started.Token, Code: code}
}

func TestForWhomAnApplicationsOwnPageCounts(t *testing.T) {
	vouched := func(roles access.Memberships) func(*world) {
		return func(w *world) { w.app(app.Vouched{By: "usr_x", Roles: roles}) }
	}
	promoted := func(scope string, role access.Role) func(*world) {
		return func(w *world) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_b", "", nil,
				user.MembershipSet{Scope: scope, Roles: []access.Role{role}})
		}
	}
	both := func(all ...func(*world)) func(*world) {
		return func(w *world) {
			for _, do := range all {
				do(w)
			}
		}
	}
	reasons := map[string]session.Reason{"somebody of another organization": session.WrongOrganization,
		"an inactive user": session.UserInactive, "a provider that is switched off": session.ProviderRefused,
		"a provider that was changed": session.ProviderRefused}
	for _, c := range []struct {
		name    string
		subject string
		given   func(*world) // before the code is used
		refusal *errs.Error
	}{
		{"somebody whom an owner of the installation covers", "b", func(*world) {}, nil},
		{"somebody whom an owner of the organization covers", "b", vouched(bOwner), nil},
		{"changed by somebody who may not set passwords", "b", vouched(settings), session.ErrSignInFailed},
		{"changed by an owner of another organization", "b", vouched(access.Memberships{"org_def": {access.OrgOwner}}),
			session.ErrSignInFailed},
		{"changed by nobody who had a role", "b", vouched(nil), session.ErrSignInFailed},
		{"somebody who was promoted in the organization", "b",
			both(vouched(bOwner), promoted("org_b", access.OrgOwner)), nil},
		{"somebody who was promoted above the changer", "b",
			both(vouched(bOwner), promoted(access.Installation, access.IAMOwner)), session.ErrSignInFailed},
		{"somebody who was promoted elsewhere, and an owner at home answers", "b",
			both(vouched(bOwner), promoted("org_def", access.OrgOwner)), nil},
		{"somebody who was promoted elsewhere, and no owner at home answers", "b",
			both(vouched(bManager), promoted("org_def", access.OrgOwner)), session.ErrSignInFailed},
		{"somebody without roles, and no owner at home answers", "b", vouched(bManager), nil},
		{"somebody of another organization", "def", func(*world) {}, session.ErrSignInFailed},
		{"switched off", "b", func(w *world) { w.app(app.OwnSignInSet{}) }, ErrNotAllowed},
		{"switched on again, and nobody answers for it", "b",
			func(w *world) { w.app(app.OwnSignInSet{}, app.OwnSignInSet{Allowed: true}) }, ErrNotAllowed},
		{"an inactive application", "b", func(w *world) { w.app(app.Deactivated{}) }, ErrClient},
		{"a secret that is gone", "b", func(w *world) { w.app(app.SecretRemoved{}) }, ErrClient},
		{"another way to authenticate", "b",
			func(w *world) { w.app(app.SettingsChanged{AuthMethod: new(app.PrivateKeyJWT)}) }, ErrClient},
		{"an inactive organization", "b",
			func(w *world) { eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.Deactivated{}) }, ErrClient},
		{"an inactive user", "b",
			func(w *world) { eventtest.Given(w.t, w.store, user.Kind, "usr_b", "", nil, user.Deactivated{}) },
			session.ErrSignInFailed},
		{"a provider that is switched off", "b",
			func(w *world) { eventtest.Given(w.t, w.store, idp.Kind, "idp_def", "", nil, idp.Deactivated{}) },
			session.ErrSignInFailed},
		{"a provider that was changed", "b", func(w *world) {
			eventtest.Given(w.t, w.store, idp.Kind, "idp_def", "", nil, idp.Vouched{By: "usr_admin", Roles: iamOwner})
		}, session.ErrSignInFailed},
		{"too late", "b", func(w *world) { w.store.Advance(codeLife) }, session.ErrSignInFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.code("idp_def", c.subject)
			c.given(w)
			mark, before := w.store.Mark(), w.store.Fingerprint()
			in, err := w.SignIn(t.Context(), r, &Registration{})
			if c.refusal != nil {
				eventtest.As(t, err, c.refusal)
				if why := reasons[c.name]; why != "" {
					w.store.Then(t, mark, eventtest.Fact{Object: session.IDFor("usr_" + c.subject),
						Type: "sign_in.failed.v1",
						Payload: `{"count":1,"by":[{"method":"fed","application":"app_b","reason":"` + string(why) +
							`","count":1}]}`,
						Personal: `{"address":"` + peer.String() + `"}`})
				} else if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			if in.UserID != "usr_"+c.subject {
				t.Errorf("signed in as %s", in.UserID)
			}
			_, err = w.SignIn(t.Context(), r, nil)
			eventtest.As(t, err, session.ErrSignInFailed)
		})
	}
}

func TestWhoIsRegisteredAndLinkedByAnApplicationsOwnPage(t *testing.T) {
	for _, c := range []struct {
		name   string
		roles  access.Memberships
		counts bool
	}{
		{"changed by an owner", bOwner, true},
		{"changed by somebody who may not set passwords", settings, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.app(app.Vouched{By: "usr_x", Roles: c.roles})
			r := w.code("idp_b", "new")
			_, err := w.SignIn(t.Context(), r, nil)
			eventtest.As(t, err, session.ErrNotLinked)
			before := w.store.Fingerprint()
			in, err := w.SignIn(t.Context(), r, &Registration{LastName: "Typed"})
			if !c.counts {
				eventtest.As(t, err, session.ErrSignInFailed)
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
			} else {
				must(t, err)
				if u := eventtest.State(t, w.store, user.Kind,
					in.UserID); u.Org != "org_b" || u.Data.UserName != "new" ||
					u.Data.Human.Profile.LastName != "Typed" || u.Data.Human.Profile.FirstName != "New" {
					t.Errorf("registered %+v", u.Data)
				}
			}
			r = w.code("idp_b", "another")
			for id, mine := range map[string]bool{"usr_def": false, "usr_b": c.counts} {
				_, err := w.Link(t.Context(), w.caller(id), r, session.From{})
				if mine {
					must(t, err)
				} else {
					eventtest.As(t, err, session.ErrSignInFailed)
				}
				if linked := len(eventtest.State(t, w.store, user.Kind, id).Data.Human.Links) == 2; linked != mine {
					t.Errorf("%s is linked: %t", id, linked)
				}
			}
			_, err = w.Link(t.Context(), w.caller("usr_b"), r, session.From{})
			eventtest.As(t, err, session.ErrSignInFailed)
		})
	}
}

// caller is somebody who has just signed in with a password.
func (w *world) caller(userID string) *access.Caller {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Session)
	u := eventtest.State(w.t, w.store, user.Kind, userID)
	now := event.Micros(w.store.Now())
	w.store.GivenToken(event.Token{
		ID:      event.NewID("ses"),
		Hash:    hash,
		Kind:    string(secret.Session),
		UserID:  userID,
		Epoch:   u.Data.SessionEpoch,
		Created: now,
		Expires: event.Micros(w.store.Now().Add(time.Hour)),
		Data:    `{"methods":["pwd"],"at":` + strconv.FormatInt(now, 10) + `}`,
	})
	c, err := w.Authenticate(w.t.Context(), text)
	must(w.t, err)
	return c
}

func TestWhichAttemptsGoOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(*world)
		text  func(*world, string) string
		goes  bool
	}{
		{"as it was started", nil, nil, true},
		{"at the end of its time", func(w *world) { w.store.Advance(attemptLife - time.Second) }, nil, true},
		{"after its time", func(w *world) { w.store.Advance(attemptLife) }, nil, false},
		{"before its time", func(w *world) { w.store.Advance(-time.Hour) }, nil, false},
		{"no return address any more",
			func(w *world) { w.app(app.SettingsChanged{RedirectURIs: &[]string{home + "/"}}) }, nil, false},
		{"switched off", func(w *world) { w.app(app.OwnSignInSet{}) }, nil, false},
		{"an inactive application", func(w *world) { w.app(app.Deactivated{}) }, nil, false},
		{"an inactive organization",
			func(w *world) {
				eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil,
					org.Deactivated{})
			}, nil, false},
		{"changed on the way", nil, func(_ *world, text string) string {
			other := byte('A') // and not by chance the same
			if text[20] == other {
				other = 'B'
			}
			return text[:20] + string(other) + text[21:]
		}, false},
		{"nothing", nil, func(*world, string) string { return "" }, false},
		{"something huge", nil, func(_ *world, text string) string { return strings.Repeat("A", maxAttempt+1) }, false},
		{"sealed for something else", nil, func(w *world, _ string) string {
			return "A" + string(w.Master.Wrap("another purpose", []byte(`{}`), nil))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			started, err := w.Start(t.Context(), Start{Client: w.client(), Provider: "idp_b", ReturnAddress: home})
			must(t, err)
			address, err := url.Parse(started.Address)
			must(t, err)
			text := address.Query().Get(Param)
			if c.text != nil {
				text = c.text(w, text)
			}
			if c.given != nil {
				c.given(w)
			}
			attempt, err := w.Open(t.Context(), "idp_b", text)
			if !c.goes {
				eventtest.As(t, err, ErrAttempt)
				return
			}
			must(t, err)
			if attempt.App != "app_b" || attempt.Return != home || strings.Contains(started.Address, started.Token) {
				t.Errorf("got %+v", attempt)
			}
			_, err = w.Open(t.Context(), "idp_def", text)
			eventtest.As(t, err, ErrAttempt)
		})
	}
}

func TestWhichProvidersAnApplicationCanStartWith(t *testing.T) {
	for _, c := range []struct {
		name, provider string
		given          func(*world)
		goes           bool
	}{
		{"one of its organization", "idp_b", nil, true},
		{"one of the default organization", "idp_def", nil, true},
		{"one of another organization", "idp_c", nil, false},
		{"one that is switched off", "idp_b",
			func(w *world) { eventtest.Given(w.t, w.store, idp.Kind, "idp_b", "", nil, idp.Deactivated{}) }, false},
		{"one that nobody answers for", "idp_old", nil, false},
		{"one that the organization does not allow", "idp_def", func(w *world) {
			o := eventtest.State(w.t, w.store, org.Kind, "org_b")
			eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil,
				org.PolicySet{Diff: o.Data.Policy.DiffTo(policy.Policy{SignIn: policy.SignIn{Providers: []string{"idp_b"}}})})
		}, false},
		{"none", "idp_none", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
			eventtest.Given(t, w.store, idp.Kind, "idp_c", "org_c", nil, idp.OIDCAdded{},
				idp.Vouched{By: "usr_admin", Roles: iamOwner})
			eventtest.Given(t, w.store, idp.Kind, "idp_old", "org_b", nil, idp.OIDCAdded{})
			if c.given != nil {
				c.given(w)
			}
			_, err := w.Start(t.Context(), Start{Client: w.client(), Provider: c.provider, ReturnAddress: home})
			if c.goes {
				must(t, err)
			} else {
				eventtest.As(t, err, idp.ErrNotFound)
			}
		})
	}
}

// Whatever is asked with a client id and a secret is counted for the network first.
func TestANetworkAsksSoOftenForApplications(t *testing.T) {
	w := newWorld(t)
	r := w.code("idp_b", "new")
	w.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 3, Clock: w.store.Now}
	wrong := w.client()
	wrong.Secret = "x"
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := w.Start(ctx, Start{Client: wrong}); return err },
		func(ctx context.Context) error { _, err := w.SignIn(ctx, Redeem{Client: wrong}, nil); return err },
		func(ctx context.Context) error {
			_, err := w.Link(ctx, w.caller("usr_b"), Redeem{Client: wrong}, session.From{})
			return err
		},
	} {
		eventtest.As(t, ask(t.Context()), ErrClient)
	}
	_, err := w.SignIn(t.Context(), r, &Registration{})
	if e, ours := err.(*errs.Error); !ours || e.Reason != ratelimit.NetworkThrottled {
		t.Errorf("got %v", err)
	}
}

func TestNothingOfAnAttemptIsStoredInTheClear(t *testing.T) {
	w := newWorld(t)
	r := w.code("idp_b", "a-subject")
	sum := sha256.Sum256([]byte(r.Token))
	for _, text := range []string{r.Token, r.Code, "a-subject", "new@x.test", string(sum[:])} {
		if w.store.Stored(t, text) {
			t.Errorf("%q is stored", text)
		}
	}
}

// What counts is what holds when the code is used up, not when it was looked at.
func TestWhatChangesWhileACodeIsUsed(t *testing.T) {
	for name, facts := range map[string][]event.Fact[app.App]{
		"switched off":           {app.OwnSignInSet{}},
		"deactivated":            {app.Deactivated{}},
		"the secret is gone":     {app.SecretRemoved{}},
		"changed by a manager":   {app.Vouched{By: "usr_m", Roles: settings}},
		"removed":                {app.WasRemoved{}},
		"another authentication": {app.SettingsChanged{AuthMethod: new(app.PrivateKeyJWT)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			who, by, err := w.redeem(t.Context(), w.code("idp_def", "b"))
			must(t, err)
			w.app(facts...)
			_, err = w.SignInThrough(t.Context(), who, federated.SignInRequest{OrgID: by.Org, By: by, Peer: peer})
			eventtest.As(t, err, session.ErrSignInFailed)
		})
	}
	w := newWorld(t)
	r := w.code("idp_def", "b")
	who, by, err := w.redeem(t.Context(), r)
	must(t, err)
	_, err = w.SignIn(t.Context(), r, nil)
	must(t, err)
	_, err = w.SignInThrough(t.Context(), who, federated.SignInRequest{OrgID: by.Org, By: by, Peer: peer})
	eventtest.As(t, err, session.ErrSignInFailed)
}

func TestACodeThatExpiresWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	who, by, err := w.redeem(t.Context(), w.code("idp_def", "b"))
	must(t, err)
	w.store.Advance(codeLife)
	_, err = w.SignInThrough(t.Context(), who, federated.SignInRequest{OrgID: by.Org, By: by, Peer: peer})
	eventtest.As(t, err, session.ErrSignInFailed)
}

// However much whoever answers for the application may do, it is for people of its own organization.
func TestNobodyOfAnotherOrganizationIsLinkedByAnApplicationsOwnPage(t *testing.T) {
	w := newWorld(t)
	_, err := w.Link(t.Context(), w.caller("usr_def"), w.code("idp_def", "another"), session.From{})
	eventtest.As(t, err, session.ErrSignInFailed)
	_, err = w.Link(t.Context(), w.caller("usr_b"), w.code("idp_def", "another"), session.From{})
	must(t, err)
}
