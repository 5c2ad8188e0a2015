package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
)

func TestWhatAnAuthorizationRequestMayBe(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	scopes := func(n int) string { return strings.Repeat("openid ", n) }
	for _, tt := range []struct {
		name   string
		change func(*request.Ask)
		want   string // the reason, and the parameter where one is named; or what is kept
	}{
		{"as it is", func(*request.Ask) {}, "prompt [], max age none, scopes [openid]"},
		{"a response mode", func(a *request.Ask) { a.ResponseMode = "query" },
			"prompt [], max age none, scopes [openid]"},
		{"another response mode", func(a *request.Ask) { a.ResponseMode = "web_message" },
			"INVALID_REQUEST response_mode"},
		{"no response type", func(a *request.Ask) { a.ResponseType = "" }, "UNSUPPORTED_RESPONSE_TYPE"},
		{"another response type", func(a *request.Ask) { a.ResponseType = "code token" }, "UNSUPPORTED_RESPONSE_TYPE"},
		{"a request object", func(a *request.Ask) { a.Request = "e30.e30." }, "REQUEST_NOT_SUPPORTED"},
		{"a request object elsewhere", func(a *request.Ask) { a.RequestURI = "https://shop.test/request" },
			"REQUEST_NOT_SUPPORTED"},
		{"a request object counts more than the rest",
			func(a *request.Ask) { a.Request, a.ResponseType = "e30.e30.", "token" }, "REQUEST_NOT_SUPPORTED"},

		{"the longest texts", func(a *request.Ask) {
			a.State, a.Nonce, a.LoginHint = long(request.MaxState), long(request.MaxNonce), long(request.MaxHint)
		}, "prompt [], max age none, scopes [openid]"},
		{"a long state", func(a *request.Ask) { a.State = long(request.MaxState + 1) }, "INVALID_REQUEST state"},
		{"a long nonce", func(a *request.Ask) { a.Nonce = long(request.MaxNonce + 1) }, "INVALID_REQUEST nonce"},
		{"a long hint", func(a *request.Ask) { a.LoginHint = long(request.MaxHint + 1) }, "INVALID_REQUEST login_hint"},

		{"no challenge", func(a *request.Ask) { a.CodeChallenge, a.CodeChallengeMethod = "", "" },
			"INVALID_REQUEST code_challenge"},
		{"a method of no challenge", func(a *request.Ask) { a.CodeChallenge = "" }, "INVALID_REQUEST code_challenge"},
		{"a challenge of no method", func(a *request.Ask) { a.CodeChallengeMethod = "" },
			"INVALID_REQUEST code_challenge_method"},
		{"a plain challenge", func(a *request.Ask) { a.CodeChallengeMethod = "plain" },
			"INVALID_REQUEST code_challenge_method"},
		{"a challenge with padding", func(a *request.Ask) { a.CodeChallenge += "=" }, "INVALID_REQUEST code_challenge"},
		{"a challenge that is too short", func(a *request.Ask) { a.CodeChallenge = a.CodeChallenge[:42] },
			"INVALID_REQUEST code_challenge"},

		{"all prompts", func(a *request.Ask) { a.Prompt = "select_account login consent" },
			"prompt [consent login select_account], max age none, scopes [openid]"},
		{"a prompt twice", func(a *request.Ask) { a.Prompt = "login login" },
			"prompt [login], max age none, scopes [openid]"},
		{"no prompt at all", func(a *request.Ask) { a.Prompt = "none" },
			"prompt [none], max age none, scopes [openid]"},
		{"no prompt and one", func(a *request.Ask) { a.Prompt = "none login" }, "INVALID_REQUEST prompt"},
		{"one and no prompt", func(a *request.Ask) { a.Prompt = "login none" }, "INVALID_REQUEST prompt"},
		{"no prompt, twice", func(a *request.Ask) { a.Prompt = "none none" }, "INVALID_REQUEST prompt"},
		{"a new account", func(a *request.Ask) { a.Prompt = "create" },
			"prompt [create], max age none, scopes [openid]"},
		{"a new account, and nobody is asked", func(a *request.Ask) { a.Prompt = "create none" },
			"INVALID_REQUEST prompt"},
		{"an unknown prompt", func(a *request.Ask) { a.Prompt = "login destroy" }, "INVALID_REQUEST prompt"},
		{"a prompt in another case", func(a *request.Ask) { a.Prompt = "Login" }, "INVALID_REQUEST prompt"},

		{"no age at all", func(a *request.Ask) { a.MaxAge = "0" }, "prompt [], max age 0, scopes [openid]"},
		{"the greatest age", func(a *request.Ask) { a.MaxAge = "2147483647" },
			"prompt [], max age 2147483647, scopes [openid]"},
		{"a greater age", func(a *request.Ask) { a.MaxAge = "2147483648" }, "INVALID_REQUEST max_age"},
		{"a negative age", func(a *request.Ask) { a.MaxAge = "-1" }, "INVALID_REQUEST max_age"},
		{"an age that is no number", func(a *request.Ask) { a.MaxAge = "1h" }, "INVALID_REQUEST max_age"},

		{"somebody who cannot be told any more", func(a *request.Ask) { a.Unknown = true },
			"prompt [], max age none, scopes [openid]"},
		{"somebody who cannot be told any more, and nobody may be asked",
			func(a *request.Ask) { a.Unknown, a.Prompt = true, "none" }, "LOGIN_REQUIRED"},

		{"no scopes", func(a *request.Ask) { a.Scope = "" }, "prompt [], max age none, scopes []"},
		{"as many scopes as there may be", func(a *request.Ask) { a.Scope = scopes(maxScopes) },
			"prompt [], max age none, scopes [openid]"},
		{"more scopes", func(a *request.Ask) { a.Scope = scopes(maxScopes + 1) }, "INVALID_SCOPE"},
		{"scopes that it may not have", func(a *request.Ask) { a.Scope = "openid offline_access signet.write" },
			"prompt [], max age none, scopes [openid]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ask("app_spa", "openid")
			tt.change(&a)
			r, err := read(&event.Object[app.App]{ID: "app_spa",
				Data: app.App{Settings: app.Settings{AuthMethod: app.NoAuth}}}, a)
			if got := readAs(r, err); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// readAs is how the tables write what became of a request.
func readAs(r *Request, err error) string {
	if e, refused := errors.AsType[*errs.Error](err); refused {
		text := string(e.Reason)
		for _, v := range e.Fields {
			text += " " + v.Field
		}
		return text
	}
	age := "none"
	if r.MaxAge != nil {
		age = fmt.Sprint(*r.MaxAge)
	}
	return fmt.Sprintf("prompt %v, max age %s, scopes %v", r.Prompt, age, r.Scopes)
}

func TestOnlyAClientWithACredentialMayLeaveTheChallengeOut(t *testing.T) {
	for method, fine := range map[app.AuthMethod]bool{app.NoAuth: false, app.SecretBasic: true, app.SecretPost: true,
		app.PrivateKeyJWT: true} {
		if err := (request.Ask{}).Challenge(method == app.NoAuth); (err == nil) != fine {
			t.Errorf("%s, none: %v", method, err)
		}
		for _, half := range []request.Ask{{CodeChallenge: challenge()}, {CodeChallengeMethod: "S256"},
			{CodeChallengeMethod: "plain"}} {
			if half.Challenge(method == app.NoAuth) == nil {
				t.Errorf("%s may send half of it: %+v", method, half)
			}
		}
		if err := (request.Ask{CodeChallenge: challenge(),
			CodeChallengeMethod: "S256"}).Challenge(method == app.NoAuth); err != nil {
			t.Errorf("%s, all of it: %v", method, err)
		}
	}
}

func TestWhatIsMissingBeforeAnApplicationIsApproved(t *testing.T) {
	const begun = int64(1_000_000_000)
	second := time.Second.Microseconds()
	age := func(seconds int64) *int64 { return &seconds }
	asked, unasked := Consent{Since: 1, Scopes: []string{"openid"}, Asked: true},
		Consent{Since: 1, Scopes: []string{"openid"}}
	elsewhere := func(a *app.App) { a.AllOrganizations = true }
	asks := func(a *app.App) { a.ConsentRequired = true }
	// factors are those of somebody who has two, and when each was proven; 0: not.
	factors := func(first, second int64) func(*session.Proof, *access.Caller) {
		return func(p *session.Proof, who *access.Caller) {
			who.SecondFactor, p.SecondFactor, p.At = true, second > 0, max(first, second)
			if second > first {
				p.FirstAt = first
			} else if second > 0 && first > second {
				p.FactorAt = second
			}
		}
	}
	for _, tt := range []struct {
		name  string
		app   func(*app.App)
		org   string // of the application; empty: that of the person
		asks  agreement
		proof int64 // when the person proved to be there; 0: when the application asked
		who   func(*session.Proof, *access.Caller)
		given Consent
		now   int64 // after the application asked
		want  Need
		err   error
	}{
		{name: "nothing"},
		{name: "an application that is switched off", app: func(a *app.App) { a.State = app.Inactive },
			err: ErrUnknownClient},

		{name: "the person that it means", asks: agreement{subject: "usr_a"}},
		{name: "another person", asks: agreement{subject: "usr_b"}, want: NeedsOtherPerson},
		{name: "the organization that it means", asks: agreement{org: "org_a"}},
		{name: "another organization", asks: agreement{org: "org_b"}, want: NeedsOtherAccount},
		{name: "another person of another organization", asks: agreement{subject: "usr_b", org: "org_b"},
			want: NeedsOtherPerson},
		{name: "an application of another organization", org: "org_b", err: ErrAccessDenied},
		{name: "another person, who might be of the organization", org: "org_b", asks: agreement{subject: "usr_b"},
			want: NeedsOtherPerson},
		{name: "another account, which might be of the organization", org: "org_b", asks: agreement{org: "org_b"},
			want: NeedsOtherAccount},
		{name: "an application of another organization, which wants a proof", org: "org_b",
			asks: agreement{since: begun}, proof: begun - 1, err: ErrAccessDenied},

		{name: "a proof since it asked", asks: agreement{since: begun}},
		{name: "a proof before it asked", asks: agreement{since: begun}, proof: begun - 1, want: NeedsSignIn},
		{name: "a proof that is just young enough", asks: agreement{maxAge: age(60)}, proof: begun - 50*second,
			now: 10 * second},
		{name: "a proof that is too old", asks: agreement{maxAge: age(60)}, proof: begun - 50*second,
			now: 10*second + 1, want: NeedsSignIn},
		{name: "a proof that has grown old on the way", asks: agreement{maxAge: age(0)}, now: 600 * second},
		{name: "an old proof, if no age is asked for", proof: 1},
		{name: "a proof that is young enough, but from before", asks: agreement{since: begun, maxAge: age(60)},
			proof: begun - 1, want: NeedsSignIn},
		{name: "another person, with a proof that is too old", asks: agreement{subject: "usr_b", since: begun},
			proof: begun - 1, want: NeedsOtherPerson},
		{name: "another account, with a proof that is too old", asks: agreement{org: "org_b", since: begun},
			proof: begun - 1, want: NeedsOtherAccount},

		{name: "a second factor since it asked", asks: agreement{since: begun}, who: factors(begun+1, begun+2)},
		{name: "a second factor from before", asks: agreement{since: begun}, who: factors(begun+1, begun-1),
			want: NeedsFactorAgain},
		{name: "a first factor from before", asks: agreement{since: begun}, who: factors(begun-1, begun+1),
			want: NeedsSignIn},
		{name: "both factors from before", asks: agreement{since: begun}, who: factors(begun-2, begun-1),
			want: NeedsSignIn},
		{name: "a second factor that was not proven", asks: agreement{since: begun}, who: factors(begun+1, 0),
			want: NeedsFactorAgain},
		{name: "a passkey that is both, since it asked", asks: agreement{since: begun}, who: factors(begun, begun)},
		{name: "a second factor that is too old", asks: agreement{maxAge: age(60)},
			who: factors(begun-10*second, begun-61*second), want: NeedsFactorAgain},
		{name: "a first factor that is too old", asks: agreement{maxAge: age(60)},
			who: factors(begun-61*second, begun-10*second), want: NeedsSignIn},
		{name: "both factors, young enough", asks: agreement{maxAge: age(60)},
			who: factors(begun-60*second, begun-10*second)},
		{name: "old factors, if no age is asked for", who: factors(1, 2)},
		{name: "a second factor that is demanded", asks: agreement{factor: true}, who: factors(1, 0),
			want: NeedsFactor},
		{name: "a second factor that is demanded of somebody who has none", asks: agreement{factor: true},
			want: NeedsFactor},
		{name: "a second factor that is preferred", asks: agreement{prefers: true}, who: factors(1, 0),
			want: NeedsFactor},
		{name: "a second factor that is preferred and proven", asks: agreement{prefers: true}, who: factors(1, 2)},
		{name: "a second factor that is preferred of somebody who has none", asks: agreement{prefers: true}},
		{name: "a second factor that nobody asks for", who: factors(1, 0)},

		{name: "a consent", app: asks, asks: agreement{scopes: []string{"openid"}}, want: NeedsConsent},
		{name: "a consent to nothing in particular", app: asks, want: NeedsConsent},
		{name: "a consent that was given", app: asks, asks: agreement{scopes: []string{"openid"}}, given: asked},
		{name: "a consent that nobody was asked for", app: asks, asks: agreement{scopes: []string{"openid"}},
			given: unasked, want: NeedsConsent},
		{name: "a consent to more", app: asks, asks: agreement{scopes: []string{"email", "openid"}}, given: asked,
			want: NeedsConsent},
		{name: "a consent that is asked for once more", asks: agreement{scopes: []string{"openid"}, ask: true},
			given: asked, want: NeedsConsent},
		{name: "a consent that has just been given", app: asks,
			asks: agreement{scopes: []string{"openid"}, ask: true, asked: true}},
		{name: "a consent across organizations", org: "org_b", app: elsewhere,
			asks: agreement{scopes: []string{"openid"}}, want: NeedsConsent},
		{name: "a consent across organizations that was given", org: "org_b", app: elsewhere,
			asks: agreement{scopes: []string{"openid"}}, given: asked},
		{name: "a consent to general scopes", asks: agreement{scopes: []string{"signet.self", "signet.write"}}},
		{name: "a consent to scopes that open ways in", asks: agreement{scopes: []string{"signet.passwords"}},
			want: NeedsConsent},
		{name: "a consent to claims about roles", app: asks,
			asks: agreement{scopes: []string{"openid"}, told: []string{claimset.Roles}}, given: asked,
			want: NeedsConsent},
		{name: "a consent to claims about roles across organizations", org: "org_b", app: elsewhere,
			asks: agreement{scopes: []string{"openid"}, told: []string{claimset.Roles}}, given: asked,
			want: NeedsConsent},
		{name: "a consent to claims about roles in one organization",
			asks: agreement{scopes: []string{"openid"}, told: []string{claimset.Roles}}},
		{name: "a consent and a proof", app: asks, asks: agreement{since: begun}, proof: begun - 1, want: NeedsSignIn},
		{name: "a proof that is too old, after a consent", app: asks, asks: agreement{since: begun, asked: true},
			proof: begun - 1, want: NeedsSignIn},
		{name: "another person, after a consent", asks: agreement{subject: "usr_b", asked: true},
			want: NeedsOtherPerson},
		{name: "an application of another organization, after a consent", org: "org_b", asks: agreement{asked: true},
			err: ErrAccessDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := &event.Object[app.App]{ID: "app_a", Org: "org_a",
				Data: app.App{Standing: app.Standing{State: app.Active}}}
			if tt.org != "" {
				client.Org = tt.org
			}
			if tt.app != nil {
				tt.app(&client.Data)
			}
			proof := session.Proof{At: begun}
			if tt.proof != 0 {
				proof.At = tt.proof
			}
			tt.asks.begun = begun
			who := &access.Caller{UserID: "usr_a", OrgID: "org_a"}
			if tt.who != nil {
				tt.who(&proof, who)
			}
			person := project.Person{Org: "org_a"}
			places, err := project.Look(t.Context(), nil, project.ClientOf(client), person, tt.asks.org)
			must(t, err)
			verdict, _ := places.Judge(person, "")
			unmet, err := tt.asks.unmet(client, who, verdict, proof, tt.given, begun+tt.now)
			need := unmet.Need()
			if need != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("it needs %q, %v", need, err)
			}
		})
	}
	if _, err := (agreement{}).unmet(nil, nil, project.Admitted, session.Proof{}, Consent{}, 0); !errors.Is(err,
		ErrUnknownClient) {
		t.Errorf("an application that is gone: %v", err)
	}
}

// Every client proves who it is in a way that its settings accept, and in no other, whatever else it could send.
func TestEveryWayToAuthenticateAgainstEveryClient(t *testing.T) {
	w := newWorld(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	methods := []app.AuthMethod{app.NoAuth, app.SecretBasic, app.SecretPost, app.PrivateKeyJWT}
	const strange app.AuthMethod = "tls_client_auth" // is not supported
	for _, m := range append([]app.AuthMethod{strange}, methods...) {
		eventtest.Given(t, w.store, app.Kind, "app_"+string(m), "org_a", nil,
			app.Added{Name: string(m), NameKey: string(m), Type: app.Web, Settings: app.Settings{AuthMethod: m}},
			app.SecretSet{}, app.KeyAdded{KeyID: "key_" + string(m), Public: publicPEM(t, key.Public())})
	}
	w.change("usr_robot", user.SecretSet{})
	w.change("usr_robot", user.KeyAdded{KeyID: "key_robot", PublicKey: publicPEM(t, key.Public())})
	either := []app.AuthMethod{app.SecretBasic, app.SecretPost}
	for _, m := range methods {
		eventtest.Given(t, w.store, app.Kind, "app_exact_"+string(m), "org_a", nil, app.Added{
			Name:     string(m),
			NameKey:  string(m),
			Type:     app.Web,
			Settings: app.Settings{AuthMethod: m, ExactAuthMethod: true},
		}, app.SecretSet{},
			app.KeyAdded{KeyID: "key_exact_" + string(m), Public: publicPEM(t, key.Public())})
	}
	takes := map[string][]app.AuthMethod{
		"usr_robot":              {app.SecretBasic, app.SecretPost, app.PrivateKeyJWT},
		"app_" + string(strange): nil,
		"usr_a":                  nil,
		"app_nobody":             nil,
		"usr_nobody":             nil,
	}
	for _, m := range methods {
		takes["app_"+string(m)], takes["app_exact_"+string(m)] = []app.AuthMethod{m}, []app.AuthMethod{m}
	}
	takes["app_client_secret_basic"], takes["app_client_secret_post"] = either, either
	used := 0
	sent := func(id string, method app.AuthMethod) Credentials {
		c := Credentials{Method: method, ClientID: id}
		switch method {
		case app.SecretBasic, app.SecretPost:
			text, hash := secret.NewToken(secret.Client)
			w.store.GivenRow(event.Row{RowKey: event.SecretOf(id), Value: hash})
			c.Secret = text
		case app.PrivateKeyJWT:
			used++
			now := w.store.Now()
			c.Assertion = signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: key}, "", map[string]any{
				"iss": id,
				"sub": id,
				"aud": issuer,
				"iat": now.Unix(),
				"exp": now.Add(time.Minute).Unix(),
				"jti": fmt.Sprint(used),
			})
		}
		return c
	}
	try := func(c Credentials, fine bool) {
		t.Helper()
		client, err := w.Authenticate(t.Context(), c)
		if fine != (err == nil) || err == nil && client.ID() != c.ClientID ||
			err != nil && !errors.Is(err, ErrInvalidClient) {
			t.Errorf("%s by %s: %v", c.ClientID, c.Method, err)
		}
	}
	for id, by := range takes {
		for _, method := range append([]app.AuthMethod{strange}, methods...) {
			try(sent(id, method), slices.Contains(by, method))
		}
	}
	// An assertion of one client does not prove another.
	c := sent("app_private_key_jwt", app.PrivateKeyJWT)
	for _, other := range []string{"usr_robot", "app_nobody", "app_client_secret_basic"} {
		c.ClientID = other
		try(c, false)
	}
	// A secret proves nothing where the client says that it has none.
	c = sent("usr_robot", app.SecretPost)
	c.Method = app.NoAuth
	try(c, false)
	// Neither does an assertion by another key.
	registered := key
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	try(sent("app_private_key_jwt", app.PrivateKeyJWT), false)
	try(sent("usr_robot", app.PrivateKeyJWT), false)
	key = registered
	// Long names are not looked up, and what is switched off is nobody.
	try(Credentials{Method: app.NoAuth, ClientID: "app_" + strings.Repeat("x", maxID)}, false)
	w.change("app_none", app.Deactivated{})
	w.change("usr_robot", user.Deactivated{})
	try(sent("app_none", app.NoAuth), false)
	try(sent("usr_robot", app.SecretBasic), false)
	try(sent("usr_robot", app.PrivateKeyJWT), false)
	w.change("org_a", org.Deactivated{})
	for _, m := range methods {
		try(sent("app_"+string(m), m), false)
	}
}

// A token is the business of the client that it was given to, and of the applications that it is meant for. Only the
// first may end it.
func TestWhoReadsAndEndsAnAccessToken(t *testing.T) {
	application := func(id, org string, approves ...string) *Client {
		a := &event.Object[app.App]{ID: id, Org: org}
		for _, client := range approves {
			a.Data.Approvals = append(a.Data.Approvals, app.Approval{Client: client})
		}
		return &Client{App: a}
	}
	service := func(id string) *Client { return &Client{Service: &event.Object[user.User]{ID: id, Org: "org_a"}} }
	ofApp := func(audience ...string) *session.Bearer {
		return &session.Bearer{Token: event.Token{Client: "app_a", UserID: "usr_a"},
			Given: session.Given{Audience: append([]string{"app_a"}, audience...)}, ClientOrg: "org_a"}
	}
	ofService := func(audience ...string) *session.Bearer {
		return &session.Bearer{Token: event.Token{UserID: "usr_robot"},
			Given: session.Given{Audience: append([]string{"usr_robot"}, audience...)}, ClientOrg: "org_a"}
	}
	for _, tt := range []struct {
		name        string
		token       *session.Bearer
		client      *Client
		reads, ends bool
	}{
		{"the application that it was given to", ofApp(), application("app_a", "org_a"), true, true},
		{"another application", ofApp(), application("app_b", "org_a"), false, false},
		{"an application that it is meant for", ofApp("app_b"), application("app_b", "org_a"), true, false},
		{"the application that it was given to, beside another", ofApp("app_b"),
			application("app_a", "org_a"), true, true},
		{"an application of another organization that it is meant for", ofApp("app_b"),
			application("app_b", "org_b", "app_a"), true, false},
		{"an application that has taken its approval back", ofApp("app_b"),
			application("app_b", "org_b"), false, false},
		{"an application that has approved another client", ofApp("app_b"),
			application("app_b", "org_b", "app_c", "usr_a"), false, false},
		{"an application that has approved it, for which it is not meant", ofApp(),
			application("app_b", "org_b", "app_a"), false, false},
		{"the service user whose token an application has", ofApp(), service("usr_a"), false, false},
		{"a service user", ofApp(), service("usr_robot"), false, false},

		{"the service user itself", ofService(), service("usr_robot"), true, true},
		{"another service user", ofService(), service("usr_other"), false, false},
		{"an application that a service user means", ofService("app_b"), application("app_b", "org_a"), true, false},
		{"an application that does not concern a service user", ofService(),
			application("app_b", "org_a"), false, false},
		{"an application that has approved the service user", ofService("app_b"),
			application("app_b", "org_b", "usr_robot"), true, false},
		{"an application that has not", ofService("app_b"), application("app_b", "org_b"), false, false},
	} {
		if reads, ends := tt.client.reads(tt.token), tt.client.owns(&tt.token.Token); reads != tt.reads ||
			ends != tt.ends {
			t.Errorf("%s: reads %t, ends %t", tt.name, reads, ends)
		}
	}
}
