package login

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

func TestThePageThatComesNext(t *testing.T) {
	for _, tt := range []struct {
		name   string
		facts  facts
		want   step
		silent *errs.Error // the answer to an application that wants nobody to be asked; nil: it gets what it wants
	}{
		// Who is there.
		{"nobody is signed in", facts{}, loginName{}, oauth.ErrLoginRequired},
		{"some are signed in", facts{able: true}, chooseAccount{}, oauth.ErrSelectionRequired},
		{"the person is somebody else", facts{able: true, other: true}, loginName{}, oauth.ErrLoginRequired},
		{"the person is somebody else, and nobody is signed in", facts{other: true}, loginName{},
			oauth.ErrLoginRequired},
		{"nobody was chosen, and a recent proof is needed", facts{able: true, again: true}, chooseAccount{},
			oauth.ErrSelectionRequired},
		{"an account was chosen", facts{chosen: true, able: true}, finished{}, nil},
		{"an account was chosen after all", facts{chosen: true, able: true, other: true}, finished{}, nil},
		{"an account was chosen that is not able to go on",
			facts{chosen: true, application: true, unmet: oauth.UnmetOrg}, loginName{}, oauth.ErrLoginRequired},

		// The second factor.
		{"a factor is missing", facts{chosen: true, mustProve: true, enrolled: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"a factor is missing, right after the password",
			facts{chosen: true, mustProve: true, enrolled: true, recent: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"a factor has to be added", facts{chosen: true, mustProve: true, recent: true}, enrol{},
			oauth.ErrInteractionRequired},
		{"a factor has to be added, long after the password", facts{chosen: true, mustProve: true}, password{},
			oauth.ErrLoginRequired},
		{"a factor is there and was proven", facts{chosen: true, enrolled: true}, finished{}, nil},

		// The password.
		{"the password has to be changed", facts{chosen: true, mustChangePassword: true}, newPassword{},
			oauth.ErrInteractionRequired},
		{"a factor is missing before the password is changed",
			facts{chosen: true, mustProve: true, enrolled: true, mustChangePassword: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"a factor has to be added before the password is changed",
			facts{chosen: true, mustProve: true, recent: true, mustChangePassword: true}, enrol{},
			oauth.ErrInteractionRequired},
		{"the password has to be changed before a page", facts{chosen: true, mustChangePassword: true, again: true},
			newPassword{}, oauth.ErrInteractionRequired},
		{"the password has to be changed before an application",
			facts{chosen: true, mustChangePassword: true, application: true, unmet: oauth.UnmetConsentSetting},
			newPassword{}, oauth.ErrInteractionRequired},

		// Whom a provider has brought.
		{"nobody chose to come", facts{brought: true, ask: true, register: true}, confirmArrival{},
			oauth.ErrLoginRequired},
		{"a new one", facts{brought: true, register: true}, register{}, oauth.ErrLoginRequired},
		{"a proof anew, through the provider",
			facts{chosen: true, application: true, passwordless: true, linked: true, unmet: oauth.UnmetPrompt},
			proveAtProvider{}, oauth.ErrLoginRequired},
		{"a proof anew that the provider could not give",
			facts{chosen: true, application: true, passwordless: true, linked: true, tried: true,
				unmet: oauth.UnmetPrompt}, refused{oauth.ErrUnmetAuthentication}, oauth.ErrUnmetAuthentication},
		{"a proof anew that the provider could not give, with a second factor",
			facts{chosen: true, application: true, passwordless: true, linked: true, enrolled: true, tried: true,
				unmet: oauth.UnmetPrompt}, secondFactor{again: true}, oauth.ErrLoginRequired},
		{"a proof anew that the provider could not give, with a password",
			facts{chosen: true, application: true, linked: true, tried: true, unmet: oauth.UnmetPrompt}, password{},
			oauth.ErrLoginRequired},

		// A page of ours that needs a recent proof.
		{"a proof is too old", facts{chosen: true, again: true}, password{}, oauth.ErrLoginRequired},
		{"a proof is too old, and there is a factor", facts{chosen: true, again: true, enrolled: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"a proof is recent", facts{chosen: true, again: true, recent: true}, finished{}, nil},
		{"a proof is too old for a page that does not care", facts{chosen: true}, finished{}, nil},
		{"an application has its own rules for that", facts{chosen: true, again: true, application: true},
			finished{}, nil},
		{"a factor is missing, and has to be added first",
			facts{chosen: true, mustProve: true, recent: true, again: true}, enrol{}, oauth.ErrInteractionRequired},

		// Somebody whom a provider has brought, and who is linked to nobody yet.
		{"somebody new", facts{brought: true, register: true}, register{}, oauth.ErrLoginRequired},
		{"somebody new, where others are signed in", facts{brought: true, register: true, able: true}, register{},
			oauth.ErrLoginRequired},
		{"somebody whom nobody registers", facts{brought: true}, unlinked{}, oauth.ErrLoginRequired},
		{"somebody who wants to link", facts{brought: true, register: true, linking: true}, loginName{},
			oauth.ErrLoginRequired},
		{"somebody who has signed in to link", facts{brought: true, linking: true, chosen: true, recent: true},
			confirmLink{}, oauth.ErrInteractionRequired},
		{"somebody who has signed in to link, for an application",
			facts{brought: true, linking: true, chosen: true, recent: true, application: true,
				unmet: oauth.UnmetConsentSetting},
			confirmLink{}, oauth.ErrInteractionRequired},
		{"a link needs a recent proof", facts{brought: true, linking: true, chosen: true}, password{},
			oauth.ErrLoginRequired},
		{"a link needs the second factor first",
			facts{brought: true, linking: true, chosen: true, recent: true, mustProve: true, enrolled: true},
			secondFactor{}, oauth.ErrInteractionRequired},
		{"a link needs the new password first",
			facts{brought: true, linking: true, chosen: true, recent: true, mustChangePassword: true}, newPassword{},
			oauth.ErrInteractionRequired},

		// Somebody without a password, who came through a provider.
		{"a proof is too old, and there is no password",
			facts{chosen: true, again: true, passwordless: true, linked: true}, proveAtProvider{},
			oauth.ErrLoginRequired},
		{"a proof is too old, and there is no password but a factor",
			facts{chosen: true, again: true, passwordless: true, enrolled: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"an application wants a proof, and there is no password",
			facts{chosen: true, application: true, unmet: oauth.UnmetPrompt, passwordless: true, linked: true},
			proveAtProvider{}, oauth.ErrLoginRequired},
		{"a factor has to be added, and there is no password",
			facts{chosen: true, mustProve: true, passwordless: true, linked: true}, proveAtProvider{},
			oauth.ErrLoginRequired},

		// An application.
		{"nothing is missing", facts{chosen: true, application: true}, finished{}, nil},
		{"it is not for the organization", facts{chosen: true, application: true, denied: true}, notAllowed{},
			oauth.ErrAccessDenied},
		{"it wants a role", facts{chosen: true, application: true, unmet: oauth.UnmetRole}, noRole{}, oauth.ErrNoRole},
		{"it means somebody else", facts{chosen: true, application: true, unmet: oauth.UnmetSubject},
			refused{oauth.ErrLoginRequired}, oauth.ErrLoginRequired},
		{"it wants a proof", facts{chosen: true, application: true, unmet: oauth.UnmetPrompt}, password{},
			oauth.ErrLoginRequired},
		{"it wants a proof of somebody with a factor",
			facts{chosen: true, application: true, unmet: oauth.UnmetPrompt, enrolled: true}, password{},
			oauth.ErrLoginRequired},
		{"it wants the factor, too",
			facts{chosen: true, application: true, unmet: oauth.UnmetFactorPrompt, enrolled: true},
			secondFactor{again: true}, oauth.ErrLoginRequired},
		{"it wants a proof of somebody with nothing but passkeys",
			facts{chosen: true, application: true, unmet: oauth.UnmetPrompt, enrolled: true, passwordless: true},
			secondFactor{again: true}, oauth.ErrLoginRequired},
		{"it wants a factor", facts{chosen: true, application: true, unmet: oauth.UnmetFactor},
			refused{oauth.ErrUnmetAuthentication}, oauth.ErrUnmetAuthentication},
		{"it wants a factor that there is",
			facts{chosen: true, application: true, unmet: oauth.UnmetFactor, enrolled: true}, secondFactor{},
			oauth.ErrInteractionRequired},
		{"it wants a consent", facts{chosen: true, application: true, unmet: oauth.UnmetConsentSetting}, consent{},
			oauth.ErrConsentRequired},
		{"a factor is missing before it is known that it is not for the organization",
			facts{chosen: true, application: true, mustProve: true, enrolled: true, denied: true},
			secondFactor{}, oauth.ErrInteractionRequired},
		{"the password has to be changed before it is known that it is not for the organization",
			facts{chosen: true, application: true, mustChangePassword: true, denied: true},
			newPassword{}, oauth.ErrInteractionRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.facts.next(); got != tt.want {
				t.Errorf("got %T", got)
			}
			tt.facts.silent = true
			want := tt.want
			if tt.silent != nil {
				want = refused{tt.silent}
			}
			if got := tt.facts.next(); got != want {
				t.Errorf("when nobody is to be asked, got %+v", got)
			}
		})
	}
}

// signedIn are sessions of a browser: pairs of a user and an organization. Their ids are those of the users.
func signedIn(pairs ...string) *Accounts {
	a := &Accounts{}
	for i := 0; i < len(pairs); i += 2 {
		a.all = append(a.all, account{bearer: &session.Bearer{Token: event.Token{ID: "ses_" + pairs[i]},
			Caller: &access.Caller{UserID: "usr_" + pairs[i], OrgID: "org_" + pairs[i+1]}}})
	}
	return a
}

func TestTheAccountThatASignInIsAbout(t *testing.T) {
	one, two, far := signedIn("a", "x"), signedIn("a", "x", "b", "x"), signedIn("a", "x", "b", "y")
	for _, tt := range []struct {
		name     string
		accounts *Accounts
		query    string
		request  *oauth.Request // of an application
		want     string
		able     string // the accounts that could go on
	}{
		{"nobody", signedIn(), "", nil, "", ""},
		{"the only one", one, "", nil, "ses_a", "ses_a"},
		{"the only one, but it is another person", one, "other=1", nil, "", "ses_a"},
		{"one of two", two, "", nil, "", "ses_a ses_b"},
		{"one of two that was picked", two, "account=ses_b", nil, "ses_b", "ses_a ses_b"},
		{"one that was picked, whatever was said before", two, "account=ses_b&other=1", nil, "ses_b", "ses_a ses_b"},
		{"one that is not there any more", two, "account=ses_c", nil, "", "ses_a ses_b"},
		{"the only one, after one that is not there any more", one, "account=ses_c", nil, "ses_a", "ses_a"},

		{"the only one, for an application", one, "", &oauth.Request{}, "ses_a", "ses_a"},
		{"the only one, which has to be picked", one, "",
			&oauth.Request{Prompt: []string{"select_account"}}, "", "ses_a"},
		{"the only one, which was picked", one, "account=ses_a", &oauth.Request{Prompt: []string{"select_account"}},
			"ses_a", "ses_a"},
		{"the only one of the organization", far, "", &oauth.Request{Org: "org_y"}, "ses_b", "ses_b"},
		{"none of the organization", far, "", &oauth.Request{Org: "org_z"}, "", ""},
		{"the one that the application means", two, "", &oauth.Request{Subject: "usr_b"}, "ses_b", "ses_b"},
		{"none that the application means", two, "", &oauth.Request{Subject: "usr_c"}, "", ""},
		{"one that the application means, of another organization", far, "",
			&oauth.Request{Subject: "usr_b", Org: "org_x"}, "", ""},
		{"one that was picked, of another organization", far, "account=ses_a", &oauth.Request{Org: "org_y"},
			"ses_a", "ses_b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			query, err := url.ParseQuery(tt.query)
			testkit.Must(t, err)
			v := &signIn{browserRequest: browserRequest{accounts: tt.accounts}, address: readAddress(query)}
			if tt.request != nil {
				v.pending = &oauth.Pending{Request: tt.request}
			}
			got := ""
			if b := v.choose(); b != nil {
				got = b.Token.ID
			}
			var able []string
			for _, b := range v.able() {
				able = append(able, b.Token.ID)
			}
			if got != tt.want || strings.Join(able, " ") != tt.able {
				t.Errorf("got %q of %q", got, able)
			}
		})
	}
}

func TestWhoMayLinkWhatAProviderHasBrought(t *testing.T) {
	for _, tt := range []struct {
		name    string
		arrival *Arrival
		created int64
		want    bool
	}{
		{"nobody was brought", nil, 1, true},
		{"a session from before", &Arrival{At: 5}, 4, false},
		{"a session from since", &Arrival{At: 5}, 5, true},
		{"the session that wanted to link", &Arrival{At: 5, Linking: "ses_a"}, 4, true},
		{"another session than that", &Arrival{At: 5, Linking: "ses_b"}, 9, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			accounts := signedIn("a", "x")
			accounts.all[0].bearer.Token.Created = tt.created
			v := &signIn{browserRequest: browserRequest{accounts: accounts}, address: address{account: "ses_a"},
				arrival: tt.arrival}
			if got := v.choose() != nil; got != tt.want || len(v.able()) > 0 != tt.want {
				t.Errorf("got %t, able: %d", got, len(v.able()))
			}
		})
	}
}

func TestPagesThatASignInMayLeadTo(t *testing.T) {
	for to, want := range map[string]string{
		"/account": "/account", "/account/security": "/account/security",
		"/account/security?full=1":    "/account/security?full=1",
		"/device?user_code=BCDF-GHJK": "/device?user_code=BCDF-GHJK", "/verify?code=1": "/verify?code=1",
		"": "", "/": "", "/login": "", "/accounts": "", "account": "", "/oauth/authorize": "",
		"https://evil.test/account": "", "//evil.test/account": "", "https:/account": "", "https:account": "",
		"//jo@/account": "", "/account#x": "",
		"/account/": "", "/account/../login": "", "/account//x": "", "/account/./x": "",
		"/account/\\x": "", "/account?x=\\": "", "/account/%5c": "/account/%5c", "/account\tx": "", "/account\r\nx": "",
		"/account%": "",
		"/console/": "/console/", "/console/users?x=y": "/console/users?x=y", "/console/users/": "/console/users/",
		"/console/orgs/org_1?q=%22%3Cb%3E%26&page=2": "/console/orgs/org_1?q=%22%3Cb%3E%26&page=2",
		"/console/a%20b?next=//evil.test":            "/console/a%20b?next=//evil.test",
		"/console/%5c%5cevil.test":                   "/console/%5c%5cevil.test", "/console/?": "/console/?",
		"/console": "", "/consoles/": "", "//evil.test/console/": "", "///evil.test/console/": "",
		"https://evil.test/console/": "", "/\\evil.test/console/": "", "\\\\evil.test/console/": "",
		"/console\\..\\..\\evil": "", "/console//evil.test": "", "/console/%2f%2fevil.test": "",
		"/console/../account/../login": "", "/console/%2e%2e/login": "", "/console/./x": "",
		"javascript:/console/": "", "javascript:alert(1)//console/": "", "/console/#x": "", "/console/\tx": "",
		"/console/\nx": "", "console/": "", "%2fconsole/": "", "/%63onsole/x": "", "%2faccount": "",
		"@evil.test/console/": "",
	} {
		if got := ownPage(to); got != want {
			t.Errorf("%q leads to %q", to, got)
		}
	}
}

const (
	callback  = "https://shop.test/callback"
	challenge = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // of a verifier that nobody needs
)

// world has the organizations org_a and org_b with a person each, usr_a and usr_b, and the applications app_a and
// app_asks of org_a; app_asks needs consent.
type world struct {
	*Login
	t     *testing.T
	store *eventtest.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, org.Kind, user.Kind, session.Kind, app.Kind, oauth.Kind, project.Kind, project.AccessKind)
	for _, id := range []string{"a", "b"} {
		eventtest.Given(t, s, org.Kind, "org_"+id, "org_"+id, nil, org.Added{Name: id})
		eventtest.Given(t, s, user.Kind, "usr_"+id, "org_"+id, []event.Claim{user.NameClaim("org_"+id, "jo")},
			user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo"}})
	}
	for id, asks := range map[string]bool{"app_a": false, "app_asks": true} {
		eventtest.Given(t, s, app.Kind, id, "org_a", nil, app.Added{
			Name:    id,
			NameKey: id,
			Type:    app.SPA,
			Settings: app.Settings{AuthMethod: app.NoAuth,
				GrantTypes: []app.GrantType{app.AuthorizationCode}, RedirectURIs: []string{callback},
				TokenFormat: app.Opaque, ConsentRequired: asks},
		})
	}
	sessions := &session.Sessions{Store: s, Master: s.Master, Clock: s.Now, DefaultOrg: "org_a",
		Standings: &session.Standings{}}
	return &world{
		t:     t,
		store: s,
		Login: &Login{Store: s, Sessions: sessions, Clock: s.Now, Browsers: Browsers{Sessions: sessions, Clock: s.Now},
			Grants: &oauth.Grants{Store: s, Sessions: sessions, Master: s.Master, Clock: s.Now,
				Issuer: "https://id.test"}},
	}
}

// signIn opens a session of a person and gives its token.
func (w *world) signIn(userID string) string {
	text, hash := secret.NewToken(secret.Session)
	u := eventtest.State(w.t, w.store, user.Kind, userID)
	now := event.Micros(w.store.Now())
	w.store.GivenToken(event.Token{
		ID:      "ses_" + userID,
		Hash:    hash,
		Kind:    string(secret.Session),
		UserID:  userID,
		Epoch:   u.Data.SessionEpoch,
		Created: now,
		Expires: now + (12 * time.Hour).Microseconds(),
	})
	return text
}

// at reads a request to the sign-in from a browser that has these sessions, and finds the page that comes next. ask is
// what an application asked for before; nil for a page of ours.
func (w *world) at(query string, ask *request.Ask, tokens ...string) step {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, Path, nil)
	recorder := httptest.NewRecorder()
	browser := web.Browser(recorder, r)
	for _, c := range append(recorder.Result().Cookies(),
		pages.Cookie(cookie, strings.Join(tokens, separator), time.Hour)) {
		r.AddCookie(c)
	}
	parameters, err := url.ParseQuery(query)
	testkit.Must(w.t, err)
	if ask != nil {
		ask.Browser, ask.RedirectURI, ask.ResponseType, ask.CodeChallenge, ask.CodeChallengeMethod = browser, callback,
			"code", challenge, "S256"
		began, err := w.Grants.Begin(w.t.Context(), *ask)
		testkit.Must(w.t, err)
		parameters.Set(paramRequest, began.ID)
	}
	v, err := w.openSignIn(recorder, r, readAddress(parameters))
	testkit.Must(w.t, err)
	f, err := v.facts()
	testkit.Must(w.t, err)
	return f.next()
}

func TestTheFactsAreReadAnewWithEveryRequest(t *testing.T) {
	required := true
	requireFactor := func(w *world) {
		eventtest.Given(w.t, w.store, org.Kind, "org_a", "", nil,
			org.PolicySet{Diff: policy.Diff{SecondFactorRequired: &required}})
	}
	withProject := func(w *world) {
		eventtest.Given(w.t, w.store, app.Kind, "app_a", "", nil,
			app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_a"}})
	}
	addFactor := func(w *world) {
		eventtest.Given(w.t, w.store, user.Kind, "usr_a", "", nil, user.TOTPAdded{FactorID: "fac_a"})
	}
	setPassword := func(w *world) {
		eventtest.Given(w.t, w.store, user.Kind, "usr_a", "", nil, user.PasswordSet{ChangeRequired: true})
	}
	for _, tt := range []struct {
		name   string
		people []string // who sign in
		given  []func(*world)
		after  time.Duration // since they did
		query  string
		ask    *request.Ask
		want   step
	}{
		{"nobody", nil, nil, 0, "", nil, loginName{}},
		{"one person", []string{"usr_a"}, nil, 0, "", nil, finished{}},
		{"two people", []string{"usr_a", "usr_b"}, nil, 0, "", nil, chooseAccount{}},
		{"two people, or another one", []string{"usr_a", "usr_b"}, nil, 0, "other=1", nil, loginName{}},
		{"one of two people", []string{"usr_a", "usr_b"}, nil, 0, "account=ses_usr_b", nil, finished{}},
		{"a password that somebody else chose", []string{"usr_a"}, []func(*world){setPassword}, 0, "", nil,
			newPassword{}},
		{"a password that somebody else chose, before an application", []string{"usr_a"}, []func(*world){setPassword},
			0, "", &request.Ask{ClientID: "app_a"}, newPassword{}},
		{"a factor", []string{"usr_a"}, []func(*world){addFactor}, 0, "", nil, secondFactor{}},
		{"a factor, before an application", []string{"usr_a"}, []func(*world){addFactor}, 0, "",
			&request.Ask{ClientID: "app_a"}, secondFactor{}},
		{"a factor that is required", []string{"usr_a"}, []func(*world){requireFactor}, 0, "", nil, enrol{}},
		{"a factor that is required later", []string{"usr_a"}, []func(*world){requireFactor}, time.Hour, "",
			nil, password{}},
		{"a recent proof", []string{"usr_a"}, nil, 0, "again=1", nil, finished{}},
		{"an old proof", []string{"usr_a"}, nil, time.Hour, "again=1", nil, password{}},
		{"an old proof that is good enough", []string{"usr_a"}, nil, time.Hour, "", nil, finished{}},
		{"an application", []string{"usr_a"}, nil, time.Hour, "", &request.Ask{ClientID: "app_a"}, finished{}},
		{"an application, which has its own rules for proofs", []string{"usr_a"}, nil, time.Hour, "again=1",
			&request.Ask{ClientID: "app_a"}, finished{}},
		{"an application that wants a proof", []string{"usr_a"}, nil, time.Hour, "",
			&request.Ask{ClientID: "app_a", Prompt: "login"}, password{}},
		{"an application that wants a recent proof", []string{"usr_a"}, nil, time.Hour, "",
			&request.Ask{ClientID: "app_a", MaxAge: "60"}, password{}},
		{"an application that wants a choice", []string{"usr_a"}, nil, 0, "",
			&request.Ask{ClientID: "app_a", Prompt: "select_account"}, chooseAccount{}},
		{"an application that asks", []string{"usr_a"}, nil, 0, "", &request.Ask{ClientID: "app_asks"}, consent{}},
		{"an application of another organization", []string{"usr_b"}, nil, 0, "",
			&request.Ask{ClientID: "app_a"}, loginName{}},
		{"an application with a project that is not for the organization", []string{"usr_b"},
			[]func(*world){withProject}, 0, "", &request.Ask{ClientID: "app_a"}, notAllowed{}},
		{"an application that means somebody else", []string{"usr_a"}, nil, 0, "",
			&request.Ask{ClientID: "app_a", Subject: "usr_b"}, loginName{}},
		{"an application that means somebody else than was chosen", []string{"usr_a"}, nil, 0, "account=ses_usr_a",
			&request.Ask{ClientID: "app_a", Subject: "usr_b"},
			refused{oauth.ErrLoginRequired}},
		{"an application for another organization", []string{"usr_a"}, nil, 0, "",
			&request.Ask{ClientID: "app_a", Scope: "urn:signet:org:id:org_b"}, loginName{}},
		{"an application for another organization than that of the chosen account", []string{"usr_a"}, nil, 0,
			"account=ses_usr_a",
			&request.Ask{ClientID: "app_a", Scope: "urn:signet:org:id:org_b"}, loginName{}},
		{"an application that wants nobody to be asked", []string{"usr_a"}, nil, 0, "",
			&request.Ask{ClientID: "app_a", Prompt: "none"}, finished{}},
		{"an application that wants nobody to be asked, but has to", []string{"usr_a"}, nil, 0, "",
			&request.Ask{ClientID: "app_asks", Prompt: "none"}, refused{oauth.ErrConsentRequired}},
		{"an application of another organization that wants nobody to be asked", []string{"usr_b"}, nil, 0, "",
			&request.Ask{ClientID: "app_a", Prompt: "none"}, refused{oauth.ErrLoginRequired}},
		{"an application with a project that is not for the organization, and nobody is to be asked", []string{"usr_b"},
			[]func(*world){withProject}, 0, "", &request.Ask{ClientID: "app_a", Prompt: "none"},
			refused{oauth.ErrAccessDenied}},
		{"an application that wants nobody to be asked, and nobody is there", nil, nil, 0, "",
			&request.Ask{ClientID: "app_a", Prompt: "none"}, refused{oauth.ErrLoginRequired}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			for _, change := range tt.given {
				change(w)
			}
			var tokens []string
			for _, id := range tt.people {
				tokens = append(tokens, w.signIn(id))
			}
			w.store.Advance(tt.after)
			if got := w.at(tt.query, tt.ask, tokens...); got != tt.want {
				t.Errorf("got %T %+v", got, got)
			}
		})
	}
}
