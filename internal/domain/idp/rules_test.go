package idp_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// privateKey is a key in PEM.
func privateKey(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func ecKey(t *testing.T, curve elliptic.Curve) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	return privateKey(t, key)
}

const tenant, otherTenant = "72f988bf-86f1-41af-91ab-2d7cd011db47", "9188040d-6c67-4c5b-b112-36a304b66dad"

func TestWhichOIDCConfigurationsAreRefused(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	plain := func(change func(*idp.OIDC)) idp.OIDC {
		o := idp.OIDC{Issuer: "https://i.example", ClientID: "c"}
		change(&o)
		return o
	}
	microsoft := func(issuer string, tenants ...string) idp.OIDC {
		return idp.OIDC{Preset: idp.MicrosoftPreset, Issuer: issuer, ClientID: "c", Tenants: tenants}
	}
	apple := idp.OIDC{Preset: idp.ApplePreset, ClientID: "c", TeamID: "T", KeyID: "K"}
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	parameters := func(n int) idp.Parameters {
		p := idp.Parameters{}
		for _, name := range many(n) {
			p["p"+name] = "v"
		}
		return p
	}
	type row struct {
		name   string
		oidc   idp.OIDC
		secret string
		want   []string
	}
	cases := []row{
		{"at its least", plain(func(*idp.OIDC) {}), "", nil},
		{"no issuer", idp.OIDC{ClientID: "c"}, "", []string{"issuer"}},
		{"no client", idp.OIDC{Issuer: "i"}, "", []string{"clientId"}},
		{"a long secret", plain(func(*idp.OIDC) {}), strings.Repeat("é", 201), []string{"clientSecret"}},
		{"the longest secret", plain(func(*idp.OIDC) {}), strings.Repeat("é", 200), nil},
		{"20 scopes", plain(func(o *idp.OIDC) { o.Scopes = many(20) }), "", nil},
		{"21 scopes", plain(func(o *idp.OIDC) { o.Scopes = many(21) }), "", []string{"scopes"}},
		{"an empty scope", plain(func(o *idp.OIDC) { o.Scopes = []string{"a", ""} }), "", []string{"scopes[1]"}},
		{"a long scope", plain(func(o *idp.OIDC) { o.Scopes = []string{strings.Repeat("x", 101)} }), "",
			[]string{"scopes[0]"}},
		{"20 parameters", plain(func(o *idp.OIDC) { o.Parameters = parameters(20) }), "", nil},
		{"21 parameters", plain(func(o *idp.OIDC) { o.Parameters = parameters(21) }), "", []string{"parameters"}},
		{"a parameter without a name", plain(func(o *idp.OIDC) { o.Parameters = idp.Parameters{"": "v"} }), "",
			[]string{"parameters"}},
		{"a parameter with a long name",
			plain(func(o *idp.OIDC) { o.Parameters = idp.Parameters{strings.Repeat("x", 101): "v"} }), "",
			[]string{"parameters"}},
		{"a parameter with an odd name", plain(func(o *idp.OIDC) { o.Parameters = idp.Parameters{"a&state": "v"} }), "",
			[]string{"parameters"}},
		{"a parameter with a long value",
			plain(func(o *idp.OIDC) { o.Parameters = idp.Parameters{"x": strings.Repeat("x", 201)} }), "",
			[]string{"parameters"}},
		{"a preset of OAuth", plain(func(o *idp.OIDC) { o.Preset = idp.GitHubPreset }), "", []string{"preset"}},
		{"an unknown preset", plain(func(o *idp.OIDC) { o.Preset = "x" }), "", []string{"preset"}},
		{"an unknown way to authenticate", plain(func(o *idp.OIDC) { o.ClientAuth = "none" }), "",
			[]string{"clientAuth"}},
		{"private_key_jwt needs no secret", plain(func(o *idp.OIDC) { o.ClientAuth = idp.PrivateKeyJWT }), "", nil},
		{"tenants of a provider that names none", plain(func(o *idp.OIDC) { o.Tenants = []string{"a.example"} }), "",
			[]string{"tenants"}},
		{"Google", idp.OIDC{Preset: idp.GooglePreset, ClientID: "c"}, "", nil},
		{"Google with tenants",
			idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Tenants: []string{"a.example"}}, "", nil},
		{"20 tenants", idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Tenants: many(20)}, "", nil},
		{"21 tenants", idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Tenants: many(21)}, "", []string{"tenants"}},
		{"an empty tenant", idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Tenants: []string{""}}, "",
			[]string{"tenants[0]"}},
		{"Microsoft for one tenant", microsoft("https://login.microsoftonline.com/" + tenant + "/v2.0"), "", nil},
		{"Microsoft without anything", microsoft(""), "", []string{"tenants"}},
		{"Microsoft, common", microsoft("https://login.microsoftonline.com/common/v2.0"), "", []string{"tenants"}},
		{"Microsoft, Common", microsoft("https://login.microsoftonline.com//Common/v2.0"), "", []string{"tenants"}},
		{"Microsoft, organizations", microsoft("https://login.microsoftonline.com/organizations/v2.0"), "",
			[]string{"tenants"}},
		{"Microsoft, consumers", microsoft("https://login.microsoftonline.com/consumers/v2.0"), "",
			[]string{"tenants"}},
		{"Microsoft, common, with tenants",
			microsoft("https://login.microsoftonline.com/common/v2.0", tenant), "", nil},
		{"Microsoft with the domain of a tenant", microsoft("", "corp.example"), "", []string{"tenants[0]"}},
		{"Microsoft with another spelling", microsoft("", strings.ToUpper(tenant)), "", []string{"tenants[0]"}},
		{"Apple", apple, key, nil},
		{"Apple, with blanks around the key", apple, "\n" + key + "\n", nil},
		{"Apple without a key", apple, "", []string{"clientSecret"}},
		{"Apple with a secret", apple, "hush", []string{"clientSecret"}},
		{"Apple with a key of another curve", apple, ecKey(t, elliptic.P384()), []string{"clientSecret"}},
		{"Apple with a key of another kind", apple, privateKey(t, ed), []string{"clientSecret"}},
		{"Apple with two keys", apple, key + key, []string{"clientSecret"}},
		{"Apple with half a key before the key", apple, "-----BEGIN PRIVATE KEY-----\nMIGH\n" + key,
			[]string{"clientSecret"}},
		{"Apple with something after the key", apple, key + "x", []string{"clientSecret"}},
		{"Apple with a long key", apple, key + strings.Repeat("\n", 2000), []string{"clientSecret"}},
		{"Apple without its identifiers", idp.OIDC{Preset: idp.ApplePreset, ClientID: "c"}, key,
			[]string{"teamId", "keyId"}},
		{"Apple with private_key_jwt",
			idp.OIDC{Preset: idp.ApplePreset, ClientID: "c", TeamID: "T", KeyID: "K", ClientAuth: idp.PrivateKeyJWT},
			key, []string{"clientAuth"}},
		{"what is Apple's elsewhere", plain(func(o *idp.OIDC) { o.TeamID, o.KeyID = "T", "K" }), "",
			[]string{"teamId", "keyId"}},
		{"a key for Apple elsewhere", plain(func(*idp.OIDC) {}), key, []string{"clientSecret"}},
	}
	for _, name := range []string{"client_id", "response_type", "redirect_uri", "scope", "state", "nonce",
		"code_challenge", "code_challenge_method", "response_mode", "request", "request_uri", "prompt",
		"max_age", "STATE"} {
		cases = append(cases, row{"the parameter " + name,
			plain(func(o *idp.OIDC) { o.Parameters = idp.Parameters{name: "v"} }), "", []string{"parameters"}})
	}
	for _, name := range []string{"iss", "sub", "aud", "exp", "iat", "nonce", "azp", "acr", "amr", "auth_time", "sid",
		"roles", "groups", "urn:signet:roles", "URN:signet:org", "email_verified", "Sub"} {
		cases = append(cases, row{"the claim " + name, plain(func(o *idp.OIDC) {
			o.Claims = idp.Claims{UserName: name, FirstName: name, LastName: name, NickName: name, Email: name,
				Language: name}
		}), "", []string{"claims.userName", "claims.firstName", "claims.lastName", "claims.nickName", "claims.email",
			"claims.language"}})
	}
	cases = append(cases, row{"a long claim", plain(func(o *idp.OIDC) { o.Claims.Email = strings.Repeat("x", 101) }),
		"", []string{"claims.email"}},
		row{"the longest claim", plain(func(o *idp.OIDC) { o.Claims.Email = strings.Repeat("x", 100) }), "", nil})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range idp.OIDCViolations(idp.General{Name: "n"}, c.oidc, c.secret) {
				if got = append(got, v.Field); v.Message == "" ||
					c.secret != "" && strings.Contains(v.Message, c.secret) {
					t.Errorf("%s: %q", v.Field, v.Message)
				}
			}
			if got = slices.Compact(got); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			s := world(t)
			_, err := idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, idp.General{Name: "n"},
				c.oidc, c.secret, false)
			if (err == nil) != (c.want == nil) {
				t.Errorf("added: %v", err)
			}
		})
	}
}

func TestWhichOAuthConfigurationsAreRefused(t *testing.T) {
	plain := func(change func(*idp.OAuth)) idp.OAuth {
		o := otherGitHub
		change(&o)
		return o
	}
	for _, c := range []struct {
		name   string
		oauth  idp.OAuth
		secret string
		want   []string
	}{
		{"at its least", plain(func(*idp.OAuth) {}), "", nil},
		{"GitHub", github, "hush", nil},
		{"nothing", idp.OAuth{}, "", []string{"authorizationEndpoint", "tokenEndpoint", "userEndpoint", "clientId"}},
		{"half a GitHub of one's own",
			idp.OAuth{Preset: idp.GitHubPreset, ClientID: "c", AuthorizationEndpoint: "https://git.example"}, "hush",
			[]string{"tokenEndpoint", "userEndpoint"}},
		{"long addresses", idp.OAuth{ClientID: "c", AuthorizationEndpoint: strings.Repeat("x", 201),
			TokenEndpoint: strings.Repeat("x", 201), UserEndpoint: strings.Repeat("x", 201),
			EmailsEndpoint: strings.Repeat("x", 201)}, "",
			[]string{"authorizationEndpoint", "tokenEndpoint", "userEndpoint", "emailsEndpoint"}},
		{"a preset of OpenID Connect", plain(func(o *idp.OAuth) { o.Preset = idp.GooglePreset }), "",
			[]string{"preset"}},
		{"a subject that changes", plain(func(o *idp.OAuth) { o.Subject = "Login" }), "", []string{"subject"}},
		{"an address as subject", plain(func(o *idp.OAuth) { o.Subject = "email" }), "", []string{"subject"}},
		{"a long subject", plain(func(o *idp.OAuth) { o.Subject = strings.Repeat("x", 101) }), "", []string{"subject"}},
		{"sub as subject", plain(func(o *idp.OAuth) { o.Subject = "sub" }), "", nil},
		{"a parameter of the protocol", plain(func(o *idp.OAuth) { o.Parameters = idp.Parameters{"state": "x"} }), "",
			[]string{"parameters"}},
		{"a claim about roles", plain(func(o *idp.OAuth) { o.Claims.NickName = "roles" }), "",
			[]string{"claims.nickName"}},
		{"a long secret", plain(func(*idp.OAuth) {}), strings.Repeat("x", 201), []string{"clientSecret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range idp.OAuthViolations(idp.General{Name: "n"}, c.oauth, c.secret) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			s := world(t)
			_, err := idp.AddOAuth(t.Context(), s, s.Master, ownerA, event.Once{}, idp.General{Name: "n"},
				c.oauth, c.secret, false)
			if (err == nil) != (c.want == nil) {
				t.Errorf("added: %v", err)
			}
		})
	}
}

func TestPresetsFillInWhatIsLeftOut(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	scopes := []string{"profile", "email"}
	for _, c := range []struct {
		name   string
		in     idp.OIDC
		secret string
		style  idp.Styling
		want   idp.OIDC
	}{
		{"none", idp.OIDC{Issuer: "i", ClientID: "c"}, "", "", idp.OIDC{Issuer: "i", ClientID: "c"}},
		{"Google", idp.OIDC{Preset: idp.GooglePreset, ClientID: "c"}, "", idp.Google,
			idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Issuer: "https://accounts.google.com", Scopes: scopes}},
		{"what is given stays",
			idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Issuer: "https://i.example", Scopes: []string{"email"}},
			"", idp.Google,
			idp.OIDC{Preset: idp.GooglePreset, ClientID: "c", Issuer: "https://i.example", Scopes: []string{"email"}}},
		{"Microsoft, one tenant",
			idp.OIDC{Preset: idp.MicrosoftPreset, ClientID: "c", Tenants: []string{tenant}}, "", "",
			idp.OIDC{Preset: idp.MicrosoftPreset, ClientID: "c", Tenants: []string{tenant},
				Issuer: "https://login.microsoftonline.com/" + tenant + "/v2.0", Scopes: scopes}},
		{"Microsoft, two tenants",
			idp.OIDC{Preset: idp.MicrosoftPreset, ClientID: "c", Tenants: []string{tenant, otherTenant}}, "", "",
			idp.OIDC{Preset: idp.MicrosoftPreset, ClientID: "c", Tenants: []string{tenant, otherTenant},
				Issuer: "https://login.microsoftonline.com/organizations/v2.0", Scopes: scopes}},
		{"Apple", idp.OIDC{Preset: idp.ApplePreset, ClientID: "c", TeamID: "T", KeyID: "K"}, key, "", idp.OIDC{
			Preset:          idp.ApplePreset,
			ClientID:        "c",
			TeamID:          "T",
			KeyID:           "K",
			HasClientSecret: true,
			Issuer:          "https://appleid.apple.com",
			Scopes:          []string{"name", "email"},
			FormPost:        true,
			ClientAuth:      idp.SecretInBody,
		}},
		{"GitLab", idp.OIDC{Preset: idp.GitLabPreset, ClientID: "c"}, "", "",
			idp.OIDC{Preset: idp.GitLabPreset, ClientID: "c", Issuer: "https://gitlab.com", Scopes: scopes}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			added, err := idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, idp.General{Name: "n"},
				c.in, c.secret, false)
			must(t, err)
			p := eventtest.State(t, s, idp.Kind, added.ID).Data
			if !reflect.DeepEqual(*p.OIDC, c.want) || p.General.Styling != c.style {
				t.Errorf("got %+v, style %q", *p.OIDC, p.General.Styling)
			}
			if c.secret != "" && (s.Stored(t, c.secret) || storedSecret(t, s, added.ID) != c.secret) {
				t.Error("the private key is not sealed")
			}
		})
	}
	s := world(t)
	added, err := idp.AddOAuth(t.Context(), s, s.Master, ownerA, event.Once{}, idp.General{Name: "n"},
		github, "hush hush", false)
	must(t, err)
	want := idp.OAuth{
		Preset:                idp.GitHubPreset,
		ClientID:              "signet",
		HasClientSecret:       true,
		AuthorizationEndpoint: "https://github.com/login/oauth/authorize",
		TokenEndpoint:         "https://github.com/login/oauth/access_token",
		UserEndpoint:          "https://api.github.com/user",
		EmailsEndpoint:        "https://api.github.com/user/emails",
		Scopes:                []string{"read:user", "user:email"},
		ClientAuth:            idp.SecretInBody,
		Subject:               "id",
		Claims:                idp.Claims{UserName: "login"},
	}
	p := eventtest.State(t, s, idp.Kind, added.ID).Data
	if !reflect.DeepEqual(*p.OAuth, want) || p.Type() != idp.IsOAuth || p.Changer == nil {
		t.Errorf("got %+v", p)
	}
	if s.Stored(t, "hush hush") || storedSecret(t, s, added.ID) != "hush hush" {
		t.Error("the secret is not sealed")
	}
}

// What does not go together is refused of what a change leads to, not only of what it names.
func TestWhatDoesNotGoTogetherIsRefusedInChangesToo(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	preset := func(p idp.Preset) idp.ClientChanged { return idp.ClientChanged{Preset: &p} }
	linked := idp.General{Name: "n", LinkByEmail: true}
	for _, c := range []struct {
		name string
		id   string
		m    idp.Modification
		want string
	}{
		{"tenants taken from Microsoft's shared issuer", "idp_ms",
			idp.Modification{OIDC: &idp.OIDCChanged{Tenants: &[]string{}}}, "oidc.tenants"},
		{"the tenant's own issuer instead", "idp_ms",
			idp.Modification{OIDC: &idp.OIDCChanged{Tenants: &[]string{},
				Issuer: new("https://login.microsoftonline.com/" + tenant + "/v2.0")}}, ""},
		{"a preset taken from tenants", "idp_ms", idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset("")}},
			"oidc.tenants"},
		{"Apple's key taken away", "idp_apple", idp.Modification{OIDCSecret: new("")}, "oidc.clientSecret"},
		{"a secret for Apple", "idp_apple", idp.Modification{OIDCSecret: new("hush")}, "oidc.clientSecret"},
		{"another key for Apple", "idp_apple", idp.Modification{OIDCSecret: &key}, ""},
		{"another identifier at Apple", "idp_apple", idp.Modification{OIDC: &idp.OIDCChanged{KeyID: new("L")}}, ""},
		{"Apple's key for somebody else", "idp_apple",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset(""), TeamID: new(""), KeyID: new("")}},
			"oidc.clientSecret"},
		{"somebody else with a secret of their own", "idp_apple",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset(""), TeamID: new(""), KeyID: new("")},
				OIDCSecret: new("hush")}, ""},
		{"somebody else without a secret", "idp_apple",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset(""), TeamID: new(""), KeyID: new("")},
				OIDCSecret: new("")}, ""},
		{"Apple with somebody else's secret", "idp_oidc",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset(idp.ApplePreset), TeamID: new("T"),
				KeyID: new("K")}}, "oidc.clientSecret"},
		{"Apple with its key", "idp_oidc",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: preset(idp.ApplePreset), TeamID: new("T"),
				KeyID: new("K")}, OIDCSecret: &key}, ""},
		{"a long secret", "idp_oidc", idp.Modification{OIDCSecret: new(strings.Repeat("x", 201))}, "oidc.clientSecret"},
		{"a long secret of OAuth", "idp_gh", idp.Modification{OAuthSecret: new(strings.Repeat("x", 201))},
			"oauth.clientSecret"},
		{"linking by e-mail at a company's own", "idp_oidc",
			idp.Modification{General: idp.Changed{LinkByEmail: new(true)}}, ""},
		{"linking by e-mail at GitHub", "idp_gh", idp.Modification{General: idp.Changed{LinkByEmail: new(true)}},
			"linkByEmail"},
		{"linking by e-mail at Google", "idp_google", idp.Modification{General: idp.Changed{LinkByEmail: new(true)}},
			"linkByEmail"},
		{"linking by e-mail at Google with tenants", "idp_google",
			idp.Modification{General: idp.Changed{LinkByEmail: new(true)},
				OIDC: &idp.OIDCChanged{Tenants: &[]string{"a.example"}}}, ""},
		{"linking by e-mail at Google without its preset", "idp_google",
			idp.Modification{General: idp.Changed{LinkByEmail: new(true)},
				OIDC: &idp.OIDCChanged{ClientChanged: preset("")}}, "linkByEmail"},
		{"linking by e-mail at Apple", "idp_apple", idp.Modification{General: idp.Changed{LinkByEmail: new(true)}},
			"linkByEmail"},
		{"linking by e-mail at Microsoft with tenants", "idp_ms",
			idp.Modification{General: idp.Changed{LinkByEmail: new(true)}}, ""},
		{"tenants taken while linking by e-mail", "idp_linked",
			idp.Modification{OIDC: &idp.OIDCChanged{Tenants: &[]string{}}}, "linkByEmail"},
		{"an issuer for everybody while linking by e-mail", "idp_corp",
			idp.Modification{OIDC: &idp.OIDCChanged{Issuer: new("https://gitlab.com")}, OIDCSecret: new("hush")},
			"linkByEmail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			for id, o := range map[string]idp.OIDC{
				"idp_ms": {Preset: idp.MicrosoftPreset, Issuer: "https://login.microsoftonline.com/common/v2.0",
					ClientID: "c", Tenants: []string{tenant}},
				"idp_apple": {Preset: idp.ApplePreset, Issuer: "https://appleid.apple.com", ClientID: "c", TeamID: "T",
					KeyID: "K", HasClientSecret: true},
				"idp_google": {Preset: idp.GooglePreset, Issuer: "https://accounts.google.com", ClientID: "c"},
			} {
				eventtest.Given(t, s, idp.Kind, id, "org_a", nil,
					idp.OIDCAdded{General: idp.General{Name: "n"}, OIDC: o})
			}
			eventtest.Given(t, s, idp.Kind, "idp_linked", "org_a", nil,
				idp.OIDCAdded{General: linked,
					OIDC: idp.OIDC{Preset: idp.GooglePreset, Issuer: "https://accounts.google.com", ClientID: "c",
						Tenants: []string{"a.example"}}})
			eventtest.Given(t, s, idp.Kind, "idp_corp", "org_a", nil, idp.OIDCAdded{General: linked, OIDC: oidc})
			eventtest.Given(t, s, idp.Kind, "idp_gh", "org_a", nil,
				idp.OAuthAdded{General: idp.General{Name: "n"},
					OAuth: idp.OAuth{Preset: idp.GitHubPreset, UserEndpoint: "https://api.github.com/user"}})
			before := s.Fingerprint()
			_, err := idp.Modify(t.Context(), s, s.Master, ownerA, c.id, event.IfMatch{}, c.m)
			if c.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
	for id, refused := range map[string]error{"idp_active": idp.ErrNotOAuth, "idp_oidc": idp.ErrNotOAuth} {
		s := world(t)
		for _, m := range []idp.Modification{{OAuth: &idp.OAuthChanged{Subject: new("x")}}, {OAuthSecret: new("")}} {
			if _, err := idp.Modify(t.Context(), s, s.Master, ownerA, id, event.IfMatch{}, m); err != refused {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}

// Somebody who may change providers and does not know a secret must not have it sent to a server of theirs.
func TestAStoredSecretIsNotSentToAnotherHost(t *testing.T) {
	issuer := func(to string) *idp.OIDCChanged { return &idp.OIDCChanged{Issuer: &to} }
	tokens := func(to string) *idp.OAuthChanged { return &idp.OAuthChanged{TokenEndpoint: &to} }
	for _, c := range []struct {
		name string
		id   string
		m    idp.Modification
		want string
	}{
		{"another host", "idp_oidc", idp.Modification{OIDC: issuer("https://evil.example")}, "oidc.clientSecret"},
		{"a host below", "idp_oidc", idp.Modification{OIDC: issuer("https://a.oidc.example")}, "oidc.clientSecret"},
		{"a host that only begins the same", "idp_oidc",
			idp.Modification{OIDC: issuer("https://oidc.example.evil.example")}, "oidc.clientSecret"},
		{"the host as a name before another one", "idp_oidc",
			idp.Modification{OIDC: issuer("https://oidc.example@evil.example")}, "oidc.clientSecret"},
		{"another port", "idp_oidc", idp.Modification{OIDC: issuer("https://oidc.example:8443")}, "oidc.clientSecret"},
		{"in the clear", "idp_oidc", idp.Modification{OIDC: issuer("http://oidc.example")}, "oidc.clientSecret"},
		{"in the clear, on the same port", "idp_oidc", idp.Modification{OIDC: issuer("http://oidc.example:443")},
			"oidc.clientSecret"},
		{"no address", "idp_oidc", idp.Modification{OIDC: issuer("i")}, "oidc.clientSecret"},
		{"another client authentication at once", "idp_oidc",
			idp.Modification{OIDC: &idp.OIDCChanged{Issuer: new("https://evil.example"),
				ClientChanged: idp.ClientChanged{ClientAuth: new(idp.PrivateKeyJWT)}}}, "oidc.clientSecret"},
		{"another path", "idp_oidc", idp.Modification{OIDC: issuer("https://oidc.example/realm")}, ""},
		{"the same host, written in another way", "idp_oidc",
			idp.Modification{OIDC: issuer("https://OIDC.example:443")}, ""},
		{"the same", "idp_oidc", idp.Modification{OIDC: issuer("https://oidc.example")}, ""},
		{"with the secret", "idp_oidc",
			idp.Modification{OIDC: issuer("https://new.example"), OIDCSecret: new("hush")}, ""},
		{"without one from now on", "idp_oidc",
			idp.Modification{OIDC: issuer("https://new.example"), OIDCSecret: new("")}, ""},
		{"where none is stored", "idp_public", idp.Modification{OIDC: issuer("https://new.example")}, ""},
		{"another token endpoint", "idp_gh", idp.Modification{OAuth: tokens("https://evil.example/token")},
			"oauth.clientSecret"},
		{"another token endpoint at the same host", "idp_gh",
			idp.Modification{OAuth: tokens("https://github.com/token")}, ""},
		{"another token endpoint with the secret", "idp_gh",
			idp.Modification{OAuth: tokens("https://git.example/token"), OAuthSecret: new("hush")}, ""},
		{"another endpoint that never sees it", "idp_gh",
			idp.Modification{OAuth: &idp.OAuthChanged{UserEndpoint: new("https://git.example/user")}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, idp.Kind, "idp_public", "org_a", nil,
				idp.OIDCAdded{General: general, OIDC: idp.OIDC{Issuer: "https://oidc.example", ClientID: "c"}})
			eventtest.Given(t, s, idp.Kind, "idp_gh", "org_a", nil, idp.OAuthAdded{
				General: general,
				OAuth: idp.OAuth{Preset: idp.GitHubPreset, ClientID: "c", HasClientSecret: true,
					TokenEndpoint: "https://github.com/login/oauth/access_token",
					UserEndpoint:  "https://api.github.com/user"},
			})
			before := s.Fingerprint()
			_, err := idp.Modify(t.Context(), s, s.Master, ownerA, c.id, event.IfMatch{}, c.m)
			if c.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "must be sent again") {
				t.Errorf("got %v", err)
			}
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
}
