package oauth

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
)

func TestWhatAnApplicationMayAskOfClaims(t *testing.T) {
	for _, tt := range []struct {
		name, claims, hint string
		want               Request
		refused            *errs.Error
	}{
		{"nothing", "", "usr_a", Request{Subject: "usr_a"}, nil},
		{"an empty object", "{}", "", Request{}, nil},
		{"no particular way", `{"id_token":{"email":null,"name":{"essential":true}}}`, "",
			Request{Claims: []string{"name", "email"}}, nil},
		{"values", ` {"id_token":{"locale":{"value":"de"},"gender":{"values":["x",1,null]}}}`, "",
			Request{Claims: []string{"gender", "locale"}}, nil},
		{"members that are empty", `{"id_token":null,"userinfo":null}`, "", Request{}, nil},
		{"the user info alone", `{"userinfo":{"email":null,"x":{"essential":true}}}`, "", Request{}, nil},
		{"unknown claims and members",
			`{"id_token":{"shoe_size":null,"auth_time":{"essential":true},"iss":{"value":"x"}},"saml":[1]}`, "",
			Request{}, nil},
		{"a person", `{"id_token":{"sub":{"value":"usr_b"}}}`, "", Request{Subject: "usr_b"}, nil},
		{"the person of the hint", `{"id_token":{"sub":{"value":"usr_b"}}}`, "usr_b", Request{Subject: "usr_b"}, nil},
		{"any level", `{"id_token":{"acr":{"essential":true}}}`, "", Request{}, nil},
		{"a level that would be nice", `{"id_token":{"acr":{"values":["` + claimset.MultiFactor + `"]}}}`, "",
			Request{Prefers: true}, nil},
		{"another level that would be nice",
			`{"id_token":{"acr":{"values":["phr","` + claimset.SingleFactor + `","` + claimset.MultiFactor + `"]}}}`,
			"", Request{}, nil},
		{"the higher level", `{"id_token":{"acr":{"essential":true,"value":"` + claimset.MultiFactor + `"}}}`, "",
			Request{Factor: true}, nil},
		{"either level", `{"id_token":{"acr":{"essential":true,"values":["` + claimset.MultiFactor + `","` +
			claimset.SingleFactor + `"]}}}`, "", Request{}, nil},
		{"a level that there is not", `{"id_token":{"acr":{"essential":true,"values":["phr"]}}}`, "", Request{},
			ErrUnmetAuthentication},

		{"no JSON", "email", "", Request{}, errs.Invalid()},
		{"a list", "[]", "", Request{}, errs.Invalid()},
		{"null", "null", "", Request{}, errs.Invalid()},
		{"more after it", "{} {}", "", Request{}, errs.Invalid()},
		{"a member that is a list", `{"id_token":["email"]}`, "", Request{}, errs.Invalid()},
		{"a claim that is a text", `{"id_token":{"email":"yes"}}`, "", Request{}, errs.Invalid()},
		{"a claim of the user info that is a text", `{"userinfo":{"email":"yes"}}`, "", Request{}, errs.Invalid()},
		{"essential that is a text", `{"id_token":{"email":{"essential":"yes"}}}`, "", Request{}, errs.Invalid()},
		{"values that are none", `{"id_token":{"email":{"values":"a"}}}`, "", Request{}, errs.Invalid()},
		{"a person that is a number", `{"id_token":{"sub":{"value":1}}}`, "", Request{}, errs.Invalid()},
		{"no person", `{"id_token":{"sub":{"values":["usr_a","usr_b"]}}}`, "", Request{}, errs.Invalid()},
		{"another person than the hint", `{"id_token":{"sub":{"value":"usr_b"}}}`, "usr_a", Request{}, errs.Invalid()},
		{"a person with a long name", `{"id_token":{"sub":{"value":"` + strings.Repeat("x", maxID+1) + `"}}}`, "",
			Request{}, errs.Invalid()},
		{"as long as it may be", "{" + strings.Repeat(" ", request.MaxClaims-2) + "}", "", Request{}, nil},
		{"too long", "{" + strings.Repeat(" ", request.MaxClaims-1) + "}", "", Request{}, errs.Invalid()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Request{Subject: tt.hint}
			err := r.readClaims(tt.claims, nil)
			if tt.refused != nil {
				wants(t, err, tt.refused)
				return
			}
			must(t, err)
			if !slices.Equal(r.Claims, tt.want.Claims) || r.Subject != tt.want.Subject || r.Factor != tt.want.Factor ||
				r.Prefers != tt.want.Prefers {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestWhichLevelAnApplicationPrefers(t *testing.T) {
	for _, tt := range []struct {
		levels, prompt, claims string
		prefers, factor        bool
	}{
		{levels: claimset.MultiFactor, prefers: true},
		{levels: "phr " + claimset.MultiFactor + " " + claimset.SingleFactor, prefers: true},
		{levels: claimset.SingleFactor + " " + claimset.MultiFactor}, // is met by anything
		{levels: claimset.SingleFactor},
		{levels: "phr"},
		{levels: strings.ToUpper(claimset.MultiFactor)},
		{levels: claimset.MultiFactor, prompt: "none"}, // nobody can be asked
		{levels: claimset.MultiFactor, prompt: "login", prefers: true},
		{levels: claimset.SingleFactor, claims: `{"id_token":{"acr":{"value":"` + claimset.MultiFactor + `"}}}`},
		{levels: claimset.SingleFactor,
			claims: `{"id_token":{"acr":{"essential":true,"value":"` + claimset.MultiFactor + `"}}}`, factor: true},
	} {
		a := ask("app_spa", "openid")
		a.ACRValues, a.Prompt, a.Claims = tt.levels, tt.prompt, tt.claims
		r, err := read(&event.Object[app.App]{ID: "app_spa",
			Data: app.App{Settings: app.Settings{AuthMethod: app.NoAuth}}}, a)
		must(t, err)
		if r.Prefers != tt.prefers || r.Factor != tt.factor {
			t.Errorf("%+v: prefers %t, demands %t", tt, r.Prefers, r.Factor)
		}
	}
}

func TestARequestWithMalformedClaimsGoesBackToTheApplication(t *testing.T) {
	a := ask("app_spa", "openid")
	a.Claims = "{"
	began, err := newWorld(t).Begin(t.Context(), a)
	must(t, err)
	if q := parameters(t, began.Refused.Address); q.Get("error") != "invalid_request" ||
		!strings.Contains(q.Get("error_description"), "claims must be a JSON object") {
		t.Errorf("got %v", q)
	}
}

// claimsOf reads a token without checking it.
func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("it is no JWT: %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var claims map[string]any
	must(t, json.Unmarshal(text, &claims))
	return claims
}

// tells lists the claims of an ID token that tell about a person.
func tells(t *testing.T, token string) []string {
	t.Helper()
	claims := claimsOf(t, token)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(claims)),
		func(name string) bool { return !slices.Contains(claimset.People, name) })
}

func TestWhatIDTokensTellAboutAPerson(t *testing.T) {
	profile := []string{"family_name", "given_name", "locale", "name", "preferred_username", "updated_at"}
	email := []string{"email", "email_verified"}
	for _, tt := range []struct {
		name, scopes, claims string
		setting              app.IDTokenClaims
		want                 []string
	}{
		{"nothing by itself", "openid profile email", "", app.MinimalClaims, nil},
		{"nothing of an application from before there was a choice", "openid profile email", "", "", nil},
		{"the organization and the roles always", "openid profile urn:signet:org urn:signet:roles", "",
			app.MinimalClaims, []string{claimset.OrgScope, claimset.RolesScope}},
		{"all that was granted", "openid profile email urn:signet:roles", "", app.ScopeClaims,
			sorted(slices.Concat(email, profile, []string{claimset.RolesScope})...)},
		{"nothing that was not granted", "openid email", "", app.ScopeClaims, email},
		{"what was asked for", "openid profile email", `{"id_token":{"email":null,"name":{"essential":true}}}`,
			app.MinimalClaims, []string{"email", "name"}},
		{"nothing that was asked for and not granted", "openid profile",
			`{"id_token":{"email":{"essential":true},"name":null,"phone_number":null}}`, app.MinimalClaims,
			[]string{"name"}},
		{"nothing that was asked of the user info", "openid profile", `{"userinfo":{"name":null}}`,
			app.MinimalClaims, nil},
		{"not more than granted, whatever is asked for", "openid email", `{"id_token":{"name":null}}`,
			app.ScopeClaims, email},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.change("app_spa", app.SettingsChanged{IDTokenClaims: &tt.setting})
			a := ask("app_spa", tt.scopes+" offline_access")
			a.Claims = tt.claims
			made, err := w.exchange("app_spa", w.code(a, w.signIn("usr_a")))
			must(t, err)
			if got := tells(t, made.IDToken); !slices.Equal(got, tt.want) {
				t.Errorf("got %q", got)
			}
			// What was asked for counts as long as what was given, and never for more than the token at hand.
			made, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
			must(t, err)
			if got := tells(t, made.IDToken); !slices.Equal(got, tt.want) {
				t.Errorf("after a refresh, got %q", got)
			}
			made, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, []string{"openid"})
			must(t, err)
			if got := tells(t, made.IDToken); len(got) != 0 {
				t.Errorf("after a refresh for less, got %q", got)
			}
		})
	}
}

// The person decides what an application may know, whatever it asks for.
func TestAPersonWhoAgreesToLessIsToldOfLess(t *testing.T) {
	w := newWorld(t)
	setting := app.ScopeClaims
	w.change("app_asks", app.SettingsChanged{IDTokenClaims: &setting})
	a := ask("app_asks", "openid profile email")
	a.Claims = `{"id_token":{"name":{"essential":true},"email":null}}`
	to, err := w.Approve(t.Context(), w.begin(a), browser, w.signIn("usr_a"), []string{"openid", "email"})
	must(t, err)
	made, err := w.exchange("app_asks", parameters(t, to.Address).Get("code"))
	must(t, err)
	if got := tells(t, made.IDToken); !slices.Equal(got, []string{"email", "email_verified"}) {
		t.Errorf("got %q", got)
	}
}

func TestTokensOfSomebodyWhoIsGoneAreNotMade(t *testing.T) {
	w := newWorld(t)
	code := w.code(ask("app_spa", "openid"), w.signIn("usr_a"))
	w.change("usr_a", user.WasRemoved{})
	_, err := w.exchange("app_spa", code)
	wants(t, err, ErrInvalidGrant)
}
