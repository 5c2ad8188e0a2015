package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
)

func TestACodeIsBoundToWhatItWasGivenFor(t *testing.T) {
	for name, use := range map[string]func(w *world, c *Code) *Client{
		"another client": func(w *world, _ *Code) *Client { return w.client("app_jwt") },
		"another redirect URI": func(w *world, c *Code) *Client {
			c.RedirectURI += "/"
			return w.client("app_spa")
		},
		"no redirect URI": func(w *world, c *Code) *Client { c.RedirectURI = ""; return w.client("app_spa") },
		"another verifier": func(w *world, c *Code) *Client {
			c.Verifier = strings.Repeat("v", 43)
			return w.client("app_spa")
		},
		"no verifier": func(w *world, c *Code) *Client { c.Verifier = ""; return w.client("app_spa") },
		"the challenge as verifier": func(w *world, c *Code) *Client {
			c.Verifier = challenge()
			return w.client("app_spa")
		},
		"a truncated code": func(w *world, c *Code) *Client {
			c.Text = c.Text[:len(c.Text)-1]
			return w.client("app_spa")
		},
		"a code of another kind": func(w *world, c *Code) *Client {
			c.Text, _ = secret.NewToken(secret.Refresh)
			return w.client("app_spa")
		},
		"an unknown code": func(w *world, c *Code) *Client {
			c.Text, _ = secret.NewToken(secret.Code)
			return w.client("app_spa")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text := w.code(ask("app_spa", "openid"), w.signIn("usr_a"))
			c := Code{Text: text, RedirectURI: callback, Verifier: verifier}
			_, err := w.Exchange(t.Context(), use(w, &c), c)
			wants(t, err, ErrInvalidGrant)
			// Whoever has only the code cannot use it up.
			_, err = w.exchange("app_spa", text)
			must(t, err)
		})
	}
}

func TestACodeStopsWithWhatItRestsOn(t *testing.T) {
	for name, change := range map[string]func(w *world, in *session.Bearer){
		"its minute": func(w *world, _ *session.Bearer) { w.store.Advance(codeLife) },
		"the session": func(w *world, in *session.Bearer) {
			must(w.t, w.Sessions.End(w.t.Context(), session.Own(in.Caller), in.Token.ID))
		},
		"all sessions":     func(w *world, _ *session.Bearer) { w.change("usr_a", user.SessionsEnded{}) },
		"the user":         func(w *world, _ *session.Bearer) { w.change("usr_a", user.Deactivated{}) },
		"the organization": func(w *world, _ *session.Bearer) { w.change("org_a", org.Deactivated{}) },
		"the user, who is back": func(w *world, _ *session.Bearer) {
			w.change("usr_a", user.Deactivated{})
			w.change("usr_a", user.Reactivated{})
		},
		"the application":                func(w *world, _ *session.Bearer) { w.change("app_all", app.Deactivated{}) },
		"the application's organization": func(w *world, _ *session.Bearer) { w.change("org_b", org.Deactivated{}) },
		"the application's organization, which is back": func(w *world, _ *session.Bearer) {
			w.change("org_b", org.Deactivated{})
			w.change("org_b", org.Reactivated{})
		},
		"the consent": func(w *world, in *session.Bearer) {
			must(w.t, w.Withdraw(w.t.Context(), in.Caller, "app_all"))
		},
	} {
		for _, scopes := range []string{"openid", "openid offline_access"} {
			t.Run(name+" "+scopes, func(t *testing.T) {
				w := newWorld(t)
				in := w.signIn("usr_a")
				code := w.code(ask("app_all", scopes), in)
				change(w, in)
				_, err := w.exchange("app_all", code)
				wants(t, err, ErrInvalidGrant)
			})
		}
	}
}

func TestTokensStopWithWhatTheyRestOn(t *testing.T) {
	for _, tt := range []struct {
		name        string
		change      func(w *world, in *session.Bearer)
		short, long bool // whether the tokens with and without offline access count afterwards
	}{
		{"nothing", func(*world, *session.Bearer) {}, true, true},
		{"the session", func(w *world, in *session.Bearer) {
			must(w.t, w.Sessions.End(w.t.Context(), session.Own(in.Caller), in.Token.ID))
		}, false, true},
		{"all sessions", func(w *world, _ *session.Bearer) { w.change("usr_a", user.SessionsEnded{}) }, false, true},
		{"the password, set by somebody",
			func(w *world, _ *session.Bearer) { w.change("usr_a", user.PasswordSet{}) }, false, false},
		{"the user", func(w *world, _ *session.Bearer) { w.change("usr_a", user.Deactivated{}) }, false, false},
		{"the user, who is back", func(w *world, _ *session.Bearer) {
			w.change("usr_a", user.Deactivated{})
			w.change("usr_a", user.Reactivated{})
		}, false, false},
		{"the organization, which is back", func(w *world, _ *session.Bearer) {
			w.change("org_a", org.Deactivated{})
			w.change("org_a", org.Reactivated{})
		}, false, false},
		{"the application, which is back", func(w *world, _ *session.Bearer) {
			w.change("app_all", app.Deactivated{})
			w.change("app_all", app.Reactivated{})
		}, false, false},
		{"the application's organization",
			func(w *world, _ *session.Bearer) { w.change("org_b", org.Deactivated{}) }, false, false},
		{"the application's organization, which is back", func(w *world, _ *session.Bearer) {
			w.change("org_b", org.Deactivated{})
			w.change("org_b", org.Reactivated{})
		}, false, false},
		{"the application's organization, for good",
			func(w *world, _ *session.Bearer) { w.change("org_b", org.WasRemoved{}) }, false, false},
		{"time", func(w *world, _ *session.Bearer) { w.store.Advance(time.Hour) }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn("usr_a")
			short, err := w.exchange("app_all", w.code(ask("app_all", "openid"), in))
			must(t, err)
			long, err := w.exchange("app_all", w.code(ask("app_all", "openid offline_access"), in))
			must(t, err)
			if short.Refresh != "" || long.Refresh == "" {
				t.Fatal("refresh tokens come with offline access, and only with it")
			}
			tt.change(w, in)
			if w.counts(short.Access) != tt.short || w.counts(long.Access) != tt.long {
				t.Errorf("without offline access %v, with it %v", w.counts(short.Access), w.counts(long.Access))
			}
			_, err = w.Refresh(t.Context(), w.client("app_all"), long.Refresh, nil)
			if fine := err == nil; fine != (tt.long || tt.name == "time") {
				t.Errorf("refreshed: %v", err)
			}
		})
	}
}

func TestACodeThatComesTwiceEndsWhatItLedTo(t *testing.T) {
	w := newWorld(t)
	code := w.code(ask("app_spa", "openid offline_access"), w.signIn("usr_a"))
	first, err := w.exchange("app_spa", code)
	must(t, err)
	// A stranger who shows it to another client changes nothing.
	_, err = w.exchange("app_jwt", code)
	wants(t, err, ErrInvalidGrant)
	if !w.counts(first.Access) {
		t.Fatal("another client ended the tokens")
	}
	mark := w.store.Mark()
	for range 3 { // recorded once
		_, err = w.exchange("app_spa", code)
		wants(t, err, ErrInvalidGrant)
	}
	if w.counts(first.Access) {
		t.Error("the access token lives on")
	}
	_, err = w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
	w.store.Then(t, mark, eventtest.Fact{Object: session.IDFor("usr_a"), Type: "sign_in.grant_reused.v1",
		Payload: `{"clientId":"app_spa","what":"code"}`})
}

func TestRefreshTokensAreReplacedAndNeverComeTwice(t *testing.T) {
	w := newWorld(t)
	refresh := func(text string, scopes ...string) (*Tokens, error) {
		return w.Refresh(t.Context(), w.client("app_spa"), text, scopes)
	}
	first := w.tokens("app_spa", "usr_a", "openid email offline_access")
	second, err := refresh(first.Refresh)
	must(t, err)
	if second.Refresh == first.Refresh || !w.counts(second.Access) || !slices.Equal(second.Scopes, first.Scopes) {
		t.Errorf("got %+v", second)
	}
	// Scopes can be fewer, never more; and fewer ones are not for good.
	narrow, err := refresh(second.Refresh, "openid")
	must(t, err)
	if !slices.Equal(narrow.Scopes, []string{"openid"}) {
		t.Errorf("given %q", narrow.Scopes)
	}
	_, err = refresh(narrow.Refresh, "openid", "phone")
	wants(t, err, ErrInvalidScope)
	wide, err := refresh(narrow.Refresh, "openid", "email")
	must(t, err)

	// They are the client's own.
	_, err = w.Refresh(t.Context(), w.client("app_jwt"), wide.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
	for _, bad := range []string{"", wide.Refresh[:len(wide.Refresh)-1], wide.Access} {
		_, err = refresh(bad)
		wants(t, err, ErrInvalidGrant)
	}

	// One that was replaced ends them all.
	mark := w.store.Mark()
	_, err = refresh(second.Refresh)
	wants(t, err, ErrInvalidGrant)
	_, err = refresh(wide.Refresh)
	wants(t, err, ErrInvalidGrant)
	if w.counts(wide.Access) || w.counts(first.Access) {
		t.Error("an access token of the family lives on")
	}
	w.store.Then(t, mark, eventtest.Fact{Object: session.IDFor("usr_a"), Type: "sign_in.grant_reused.v1",
		Payload: `{"clientId":"app_spa","what":"refresh_token"}`})
}

func TestRefreshTokensExpireWhenTheyAreNotUsed(t *testing.T) {
	w := newWorld(t)
	made := w.tokens("app_spa", "usr_a", "openid offline_access")
	for range 3 {
		w.store.Advance(23 * time.Hour)
		next, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
		must(t, err)
		made = next
	}
	// A failed attempt renews nothing.
	w.store.Advance(23 * time.Hour)
	_, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, []string{"phone"})
	wants(t, err, ErrInvalidScope)
	w.store.Advance(time.Hour)
	_, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
}

func TestJWTAccessTokens(t *testing.T) {
	w := newWorld(t)
	made := w.tokens("app_jwt", "usr_a", "openid urn:signet:org urn:signet:roles urn:signet:app:app_web:aud")
	parts := strings.Split(made.Access, ".")
	if len(parts) != 3 {
		t.Fatalf("got %s", made.Access)
	}
	var header, claims map[string]any
	for i, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		must(t, err)
		must(t, json.Unmarshal(text, into))
	}
	now := float64(w.store.Now().Unix())
	if header["typ"] != "at+jwt" || claims["iss"] != issuer || claims["sub"] != "usr_a" ||
		claims["client_id"] != "app_jwt" || claims["exp"] != now+3600 ||
		claims["iat"] != now || fmt.Sprint(claims["aud"]) != "[app_jwt app_web]" ||
		claims["acr"] != claimset.SingleFactor || fmt.Sprint(claims["amr"]) != "[pwd]" ||
		fmt.Sprint(claims["urn:signet:org"]) != "map[id:org_a name:a primary_domain:a.test]" ||
		claims["urn:signet:roles"] == nil || claims["jti"] == "" {
		t.Errorf("got %v %v", header, claims)
	}
	if !w.counts(made.Access) || w.counts(made.Access[:len(made.Access)-1]) || w.counts(parts[0]+"."+parts[1]+".") {
		t.Error("it counts as it is, and in no other form")
	}
	must(t, w.Revoke(t.Context(), w.client("app_jwt"), made.Access))
	if w.counts(made.Access) {
		t.Error("it was revoked")
	}
}

func TestWhoSeesAndEndsTokens(t *testing.T) {
	w := newWorld(t)
	made := w.tokens("app_spa", "usr_a", "openid offline_access urn:signet:app:app_web:aud")
	sees := func(client string) bool {
		b, err := w.Introspect(t.Context(), made.Access, w.proven(client))
		must(t, err)
		return b != nil
	}
	if !sees("app_spa") || !sees("app_web") || sees("app_jwt") || sees("app_all") {
		t.Error("a token is seen by whom it was given to, and by whom it is meant for")
	}
	for _, text := range []string{made.Access, made.Refresh, "nonsense", ""} {
		must(t, w.Revoke(t.Context(), w.client("app_web"), text))
	}
	if !w.counts(made.Access) {
		t.Fatal("somebody else revoked it")
	}
	next, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
	must(t, err)
	must(t, w.Revoke(t.Context(), w.client("app_spa"), next.Refresh))
	if w.counts(made.Access) || w.counts(next.Access) {
		t.Error("access tokens live on without their refresh token")
	}
	_, err = w.Refresh(t.Context(), w.client("app_spa"), next.Refresh, nil)
	wants(t, err, ErrInvalidGrant)

	in := w.signIn("usr_a")
	b, err := w.Introspect(t.Context(), "sgn_ses_"+in.Token.ID, w.proven("app_spa"))
	if b != nil || err != nil {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestTheApplicationsOfASession(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	for _, client := range []string{"app_spa", "app_jwt", "app_spa"} {
		_, err := w.exchange(client, w.code(ask(client, "openid"), in))
		must(t, err)
	}
	other := w.signIn("usr_a")
	_, err := w.exchange("app_spa", w.code(ask("app_spa", "openid"), other))
	must(t, err)
	left := func(want ...string) {
		t.Helper()
		visited, err := w.Visits().Left(t.Context(), "usr_a")
		must(t, err)
		var got []string
		for _, v := range visited {
			for _, client := range v.Clients {
				got = append(got, v.SessionID+" "+client)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	left() // nothing has ended
	first := in.Token.ID
	must(t, w.Sessions.End(t.Context(), session.Own(in.Caller), first))
	left(first+" app_spa", first+" app_jwt")
	must(t, w.Visits().Told(t.Context(), "usr_a", first, "app_spa"))
	left(first + " app_jwt")
	w.change("usr_a", user.SessionsEnded{})
	left(first+" app_jwt", other.Token.ID+" app_spa")
	must(t, w.Visits().Told(t.Context(), "usr_a", first, "app_jwt"))
	must(t, w.Visits().Told(t.Context(), "usr_a", other.Token.ID, "app_spa"))
	left()
	if known, err := w.Visits().Known(t.Context(), "usr_a"); err != nil || known != nil {
		t.Errorf("what nobody has to be told is kept: %v, %v", known, err)
	}

	// A session that ends by itself is over as well, and is forgotten in the end.
	_, err = w.exchange("app_spa", w.code(ask("app_spa", "openid"), w.signIn("usr_a")))
	must(t, err)
	w.store.Advance(13 * time.Hour)
	if visited, err := w.Visits().Left(t.Context(), "usr_a"); err != nil || len(visited) != 1 {
		t.Errorf("got %v, %v", visited, err)
	}
	w.store.Advance(24 * time.Hour)
	left()
}

func TestClaims(t *testing.T) {
	w := newWorld(t)
	for scope, want := range map[string]string{
		"":      `{"sub":"usr_a"}`,
		"email": `{"email":"jo@a.test","email_verified":true,"sub":"usr_a"}`,
		"phone": `{"sub":"usr_a"}`,
		"profile": fmt.Sprintf(`{"family_name":"Doe","given_name":"Jo","locale":"de","name":"Jo Doe","preferred_username":"jo","sub":"usr_a","updated_at":%d}`,
			eventtest.Start.Unix()),
		"urn:signet:org":   `{"sub":"usr_a","urn:signet:org":{"id":"org_a","name":"a","primary_domain":"a.test"}}`,
		"urn:signet:roles": `{"sub":"usr_a","urn:signet:roles":{}}`,
	} {
		who, err := w.whose(t.Context(), w.client("app_spa").App, &terms{UserID: "usr_a"})
		must(t, err)
		claims := claimset.New(false)
		claims.AddPerson(who.user, who.org, []string{scope}, "org_a")
		if got, _ := json.Marshal(claims.Values); string(got) != want {
			t.Errorf("%s: got %s", scope, got)
		}
	}
}

func TestASessionThatEndsMeanwhileGivesNothing(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	id := w.begin(ask("app_spa", "openid"))
	w.Store = &eventtest.Meanwhile{Store: w.store,
		Happens: func() { must(t, w.Sessions.End(t.Context(), session.Own(in.Caller), in.Token.ID)) }}
	if _, err := w.Approve(t.Context(), id, browser, in, nil); err == nil {
		t.Error("a session that was ended meanwhile approved")
	}

	// A sign-in meanwhile is no obstacle.
	in = w.signIn("usr_a")
	other := w.signIn("usr_a")
	w.Store = &eventtest.Meanwhile{Store: w.store,
		Happens: func() { must(t, w.Sessions.End(t.Context(), session.Own(in.Caller), other.Token.ID)) }}
	to, err := w.Approve(t.Context(), id, browser, in, nil)
	must(t, err)

	// Nor is it one for the code that came of it.
	other = w.signIn("usr_a")
	w.Store = &eventtest.Meanwhile{Store: w.store,
		Happens: func() { must(t, w.Sessions.End(t.Context(), session.Own(in.Caller), other.Token.ID)) }}
	made, err := w.exchange("app_spa", parameters(t, to.Address).Get("code"))
	must(t, err)
	if !w.counts(made.Access) {
		t.Error("it does not count")
	}
	w.Store = w.store
	code := w.code(ask("app_spa", "openid offline_access"), in)
	w.Store = &eventtest.Meanwhile{Store: w.store,
		Happens: func() { must(t, w.Sessions.End(t.Context(), session.Own(in.Caller), in.Token.ID)) }}
	_, err = w.exchange("app_spa", code)
	wants(t, err, ErrInvalidGrant)
}

func TestASessionThatIsRestrictedMeanwhileGivesNothing(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	id, code := w.begin(ask("app_spa", "openid")), w.code(ask("app_spa", "openid"), in)
	required := true
	w.change("org_a", org.PolicySet{Diff: policy.Diff{SecondFactorRequired: &required}})
	_, err := w.Approve(t.Context(), id, browser, in, nil)
	wants(t, err, access.ErrUnauthenticated)
	_, err = w.exchange("app_spa", code)
	wants(t, err, ErrInvalidGrant)

	w.change("usr_b", user.PasswordSet{ChangeRequired: true})
	in = w.signIn("usr_b")
	in.Caller.MustChangePassword = false // as if it was not so when the request came
	_, err = w.Approve(t.Context(), w.begin(ask("app_all", "openid")), browser, in, []string{"openid"})
	wants(t, err, access.ErrUnauthenticated)
}

func TestVerifiers(t *testing.T) {
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return base64.RawURLEncoding.EncodeToString(h[:])
	}
	long := strings.Repeat("x", 128)
	for _, tt := range []struct {
		challenge, verifier string
		want                bool
	}{
		{"", "", true}, {challenge(), verifier, true}, {sum(long), long, true},
		{challenge(), "", false}, {"", verifier, false}, {challenge(), verifier + "x", false},
		{sum("short"), "short", false}, {sum(long + "x"), long + "x", false},
		{verifier, verifier, false},
	} {
		if got := request.Verified(tt.challenge, tt.verifier); got != tt.want {
			t.Errorf("%q %q: %v", tt.challenge, tt.verifier, got)
		}
	}
}
