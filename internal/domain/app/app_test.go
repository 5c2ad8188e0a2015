package app_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	ownerA = permit("org_a")
	moved  = errs.New(errs.Aborted, event.SequenceMismatch, "")
	stale  = event.IfMatch{Set: true, Sequence: 99}
	shop   = app.Settings{
		AuthMethod:           app.SecretBasic,
		GrantTypes:           []app.GrantType{app.AuthorizationCode, app.RefreshToken},
		RedirectURIs:         []string{"https://shop.example/cb"},
		PostLogoutURIs:       []string{"https://shop.example/"},
		BackChannelLogoutURI: "https://shop.example/out",
		KeySetURI:            "https://shop.example/keys",
		TokenFormat:          app.JWT,
		SigningAlgorithm:     app.RS256,
		AccessTokenSeconds:   300,
		RefreshTokenSeconds:  400,
		ConsentRequired:      true,
		AllOrganizations:     true,
		ExactAuthMethod:      true,
		IDTokenClaims:        app.MinimalClaims,
		PushedRequired:       true,
		DPoPRequired:         true,
	}
)

// permit is that of an owner of the installation.
func permit(org string) access.Permit {
	caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	p, err := caller.In(org, access.AppWrite)
	if err != nil {
		panic(err)
	}
	return p
}

// world has an active, an inactive and a removed web application of org_a, one there of every other type, and one each
// in organizations that are another, switched off, and gone.
func world(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, org.Kind, app.Kind)
	for _, id := range []string{"org_a", "org_b", "org_off", "org_gone"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	for id, owner := range map[string]string{"app_active": "org_a", "app_inactive": "org_a", "app_gone": "org_a",
		"app_foreign": "org_b", "app_off": "org_off", "app_orphan": "org_gone"} {
		eventtest.Given(t, s, app.Kind, id, owner, nil,
			app.Added{Name: "Shop", NameKey: "shop", Type: app.Web, Settings: shop})
	}
	eventtest.Given(t, s, org.Kind, "org_off", "", nil, org.Deactivated{})
	eventtest.Given(t, s, org.Kind, "org_gone", "", nil, org.WasRemoved{})
	eventtest.Given(t, s, app.Kind, "app_inactive", "", nil, app.Deactivated{})
	eventtest.Given(t, s, app.Kind, "app_gone", "", nil, app.WasRemoved{})
	public := app.Settings{AuthMethod: app.NoAuth, GrantTypes: []app.GrantType{app.AuthorizationCode},
		RedirectURIs: []string{"https://shop.example/cb"}}
	eventtest.Given(t, s, app.Kind, "app_spa", "org_a", nil,
		app.Added{Name: "Page", NameKey: "page", Type: app.SPA, Settings: public})
	eventtest.Given(t, s, app.Kind, "app_native", "org_a", nil,
		app.Added{Name: "Phone", NameKey: "phone", Type: app.Native, Settings: public})
	eventtest.Given(t, s, app.Kind, "app_api", "org_a", nil,
		app.Added{Name: "Api", NameKey: "api", Type: app.API, Settings: app.Settings{AuthMethod: app.SecretPost}})
	return s
}

var must = testkit.Must

func TestANewApplicationGetsWhatItsTypeNeeds(t *testing.T) {
	const settled = `"tokenFormat":"opaque","signingAlgorithm":"ES256","accessTokenSeconds":3600,"refreshTokenSeconds":2592000,"idTokenClaims":"minimal"}`
	const settledWeb = `"tokenFormat":"opaque","signingAlgorithm":"RS256","accessTokenSeconds":3600,"refreshTokenSeconds":2592000,"idTokenClaims":"scopes"}`
	uris := app.Settings{RedirectURIs: []string{"https://shop.example/cb"}}
	for _, c := range []struct {
		name    string
		n       app.New
		payload string
		secret  bool
	}{
		{"on a server", app.New{Name: "Shop", Type: app.Web, Settings: uris},
			`{"name":"Shop","nameKey":"shop","type":"web","authMethod":"client_secret_basic","grantTypes":["authorization_code"],"redirectUris":["https://shop.example/cb"],` + settledWeb, true},
		{"in a browser", app.New{Name: "Ärzte", Type: app.SPA, Settings: uris},
			`{"name":"Ärzte","nameKey":"ärzte","type":"spa","authMethod":"none","grantTypes":["authorization_code"],"redirectUris":["https://shop.example/cb"],` + settledWeb, false},
		{"on a television", app.New{Name: "TV", Type: app.Native,
			Settings: app.Settings{GrantTypes: []app.GrantType{app.DeviceCode}}},
			`{"name":"TV","nameKey":"tv","type":"native","authMethod":"none","grantTypes":["urn:ietf:params:oauth:grant-type:device_code"],` + settledWeb, false},
		{"that checks tokens", app.New{Name: "Api", Type: app.API},
			`{"name":"Api","nameKey":"api","type":"api","authMethod":"client_secret_basic",` + settled, true},
		{"with a key of its own",
			app.New{Name: "Api", Type: app.API, Settings: app.Settings{AuthMethod: app.PrivateKeyJWT}},
			`{"name":"Api","nameKey":"api","type":"api","authMethod":"private_key_jwt",` + settled, false},
		{"with everything", app.New{Name: "Shop", Type: app.Web, Settings: shop},
			`{"name":"Shop","nameKey":"shop","type":"web","authMethod":"client_secret_basic",` +
				`"grantTypes":["authorization_code","refresh_token"],"redirectUris":["https://shop.example/cb"],"postLogoutUris":["https://shop.example/"],` +
				`"backChannelLogoutUri":"https://shop.example/out","keySetUri":"https://shop.example/keys","tokenFormat":"jwt","signingAlgorithm":"RS256",` +
				`"accessTokenSeconds":300,"refreshTokenSeconds":400,"consentRequired":true,"allOrganizations":true,"exactAuthMethod":true,"idTokenClaims":"minimal","pushedRequired":true,"dpopRequired":true}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			mark := s.Mark()
			created, err := app.Add(t.Context(), s, ownerA, c.n)
			must(t, err)
			want := []eventtest.Fact{{Object: created.ID, Type: "app.added.v1", Payload: c.payload}}
			if c.secret {
				want = append(want, eventtest.Fact{Object: created.ID, Type: "app.secret_set.v1", Payload: `{"byOwner":true}`})
			}
			s.Then(t, mark, want...)
			a, err := app.Get(t.Context(), s, ownerA, created.ID)
			must(t, err)
			if a.Data.State != app.Active || a.Org != "org_a" || created.Details != a.Details() ||
				a.Data.HasSecret != c.secret || !strings.HasPrefix(a.ID, "app_") {
				t.Errorf("got %+v, details %+v", a, created.Details)
			}
			if proves(t, s, created.ID, created.Secret) != c.secret || (created.Secret != "") != c.secret {
				t.Errorf("the secret %q does not count, or there should be none", created.Secret)
			}
			if c.secret && s.Stored(t, created.Secret) {
				t.Error("the secret is stored in the clear")
			}
		})
	}
	for _, id := range []string{"org_x", "org_gone"} {
		s := world(t)
		mark := s.Mark()
		created, err := app.Add(t.Context(), s, permit(id), app.New{Name: "x", Type: app.API})
		eventtest.As(t, err, org.ErrNotFound)
		if created != (app.Created{}) {
			t.Error("a refusal shows a secret")
		}
		s.Then(t, mark)
	}
	_, err := app.Add(t.Context(), world(t), ownerA, app.New{Name: "x", Type: app.Web})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "redirectUris")
}

func TestWhichSettingsGoTogether(t *testing.T) {
	type grants = []app.GrantType
	uris := []string{"https://shop.example/cb"}
	for _, c := range []struct {
		name     string
		typ      app.Type
		settings app.Settings
		wrong    []string
	}{
		{"a server by a secret in the header", app.Web,
			app.Settings{AuthMethod: app.SecretBasic, RedirectURIs: uris}, nil},
		{"a server by a secret in the body", app.Web,
			app.Settings{AuthMethod: app.SecretPost, RedirectURIs: uris}, nil},
		{"a server by its key", app.Web, app.Settings{AuthMethod: app.PrivateKeyJWT, RedirectURIs: uris}, nil},
		{"a server without a proof", app.Web, app.Settings{AuthMethod: app.NoAuth, RedirectURIs: uris},
			[]string{"authMethod"}},
		{"a page with a secret", app.SPA, app.Settings{AuthMethod: app.SecretBasic, RedirectURIs: uris},
			[]string{"authMethod"}},
		{"a page with a key", app.SPA, app.Settings{AuthMethod: app.PrivateKeyJWT, RedirectURIs: uris},
			[]string{"authMethod"}},
		{"a page without a proof", app.SPA, app.Settings{AuthMethod: app.NoAuth, RedirectURIs: uris}, nil},
		{"a phone with a secret", app.Native, app.Settings{AuthMethod: app.SecretPost, RedirectURIs: uris},
			[]string{"authMethod"}},
		{"an API by its key", app.API,
			app.Settings{AuthMethod: app.PrivateKeyJWT, KeySetURI: "https://api.example/keys"}, nil},
		{"an API without a proof", app.API, app.Settings{AuthMethod: app.NoAuth}, []string{"authMethod"}},
		{"an API that signs people in", app.API,
			app.Settings{GrantTypes: grants{app.AuthorizationCode}, RedirectURIs: uris, PostLogoutURIs: uris,
				BackChannelLogoutURI: uris[0], InitiateLoginURI: uris[0], PushedRequired: true, DPoPRequired: true},
			[]string{"grantTypes", "redirectUris", "postLogoutUris", "backChannelLogoutUri", "initiateLoginUri",
				"pushedRequestsRequired", "dpopRequired"}},
		{"a code without an address", app.Web, app.Settings{GrantTypes: grants{app.AuthorizationCode}},
			[]string{"redirectUris"}},
		{"a code by default without an address", app.SPA, app.Settings{}, []string{"redirectUris"}},
		{"a device without an address", app.Native,
			app.Settings{GrantTypes: grants{app.RefreshToken, app.DeviceCode}}, nil},
		{"nothing to refresh", app.Web, app.Settings{GrantTypes: grants{app.RefreshToken}, RedirectURIs: uris},
			[]string{"grantTypes"}},
		{"a grant that there is not", app.Web,
			app.Settings{GrantTypes: grants{app.AuthorizationCode, ""}, RedirectURIs: uris}, []string{"grantTypes[1]"}},
		{"the shortest lives", app.Web,
			app.Settings{RedirectURIs: uris, AccessTokenSeconds: 300, RefreshTokenSeconds: 300}, nil},
		{"the longest lives", app.Web,
			app.Settings{RedirectURIs: uris, AccessTokenSeconds: 86400, RefreshTokenSeconds: 7776000}, nil},
		{"lives too short", app.Web, app.Settings{RedirectURIs: uris, AccessTokenSeconds: 299, RefreshTokenSeconds: 1},
			[]string{"accessTokenSeconds", "refreshTokenSeconds"}},
		{"lives too long", app.Web,
			app.Settings{RedirectURIs: uris, AccessTokenSeconds: 86401, RefreshTokenSeconds: 7776001},
			[]string{"accessTokenSeconds", "refreshTokenSeconds"}},
		{"lives that are over before they begin", app.Web,
			app.Settings{RedirectURIs: uris, AccessTokenSeconds: -1, RefreshTokenSeconds: -300},
			[]string{"accessTokenSeconds", "refreshTokenSeconds"}},
		{"an address twice", app.Web,
			app.Settings{RedirectURIs: append(uris, "https://b.example", uris[0]),
				PostLogoutURIs: append(uris, uris[0])}, []string{"redirectUris[2]", "postLogoutUris[1]"}},
		{"addresses of its own", app.Native,
			app.Settings{RedirectURIs: []string{"app.example:/cb"}, PostLogoutURIs: []string{"app.example:/out"}}, nil},
		{"addresses of its own on the web", app.Web,
			app.Settings{RedirectURIs: []string{"app.example:/cb"}, PostLogoutURIs: []string{"app.example:/out"}},
			[]string{"redirectUris[0]", "postLogoutUris[0]"}},
		{"calls without protection", app.Web,
			app.Settings{RedirectURIs: uris, BackChannelLogoutURI: "http://shop.example/out",
				InitiateLoginURI: "http://shop.example/start", KeySetURI: "http://shop.example/keys"},
			[]string{"backChannelLogoutUri", "initiateLoginUri", "keySetUri"}},
		{"calls to itself", app.Web,
			app.Settings{RedirectURIs: uris, BackChannelLogoutURI: "http://localhost:1/out",
				InitiateLoginURI: "http://127.0.0.1:1/start", KeySetURI: "http://[::1]/keys"}, nil},
		{"calls to a program", app.Native,
			app.Settings{RedirectURIs: uris, BackChannelLogoutURI: "app.example:/out",
				InitiateLoginURI: "app.example:/start", KeySetURI: "app.example:/keys"},
			[]string{"backChannelLogoutUri", "initiateLoginUri", "keySetUri"}},
		{"what no type may have", "",
			app.Settings{RedirectURIs: []string{"data:x"}, PostLogoutURIs: []string{"http://shop.example"},
				KeySetURI: "x", AccessTokenSeconds: 1},
			[]string{"redirectUris[0]", "postLogoutUris[0]", "keySetUri", "accessTokenSeconds"}},
		{"what some type may have", "",
			app.Settings{AuthMethod: app.NoAuth, RedirectURIs: []string{"app.example:/cb"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range c.settings.Violations(c.typ) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, c.wrong) {
				t.Errorf("got %q, want %q", got, c.wrong)
			}
		})
	}
}

// Today's defaults are for new applications. What an existing one has was agreed with those who use it.
func TestAnExistingApplicationKeepsWhatItsTokensAreLike(t *testing.T) {
	s := world(t)
	old := app.Settings{
		AuthMethod:          app.SecretBasic,
		GrantTypes:          []app.GrantType{app.AuthorizationCode},
		RedirectURIs:        []string{"https://shop.example/cb"},
		TokenFormat:         app.Opaque,
		SigningAlgorithm:    app.ES256,
		AccessTokenSeconds:  3600,
		RefreshTokenSeconds: 3600,
	}
	eventtest.Given(t, s, app.Kind, "app_old", "org_a", nil,
		app.Added{Name: "Old", NameKey: "old", Type: app.Web, Settings: old})
	mark := s.Mark()
	_, err := app.Modify(t.Context(), s, ownerA, "app_old", event.IfMatch{}, app.SettingsChanged{Name: new("Older")})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "app_old", Type: "app.settings_changed.v1",
		Payload: `{"name":"Older","nameKey":"older"}`})
	if a := eventtest.State(t, s, app.Kind, "app_old").Data; a.SigningAlgorithm != app.ES256 ||
		a.IDTokenClaims != app.MinimalClaims {
		t.Errorf("got %+v", a.Settings)
	}
}

func TestAModificationRecordsWhatDiffersAndLeavesTheRest(t *testing.T) {
	for _, c := range []struct {
		name    string
		m       app.SettingsChanged
		payload string
		state   func(a *app.App)
	}{
		{"the name", app.SettingsChanged{Name: new("Ärzte")}, `{"name":"Ärzte","nameKey":"ärzte"}`,
			func(a *app.App) { a.Name, a.NameKey = "Ärzte", "ärzte" }},
		{"a key without a name does not count", app.SettingsChanged{NameKey: new("x"), ConsentRequired: new(false)},
			`{"consentRequired":false}`,
			func(a *app.App) { a.ConsentRequired = false }},
		{"nothing differs: an event without content", app.SettingsChanged{
			Name:               new("Shop"),
			GrantTypes:         &[]app.GrantType{app.RefreshToken, app.AuthorizationCode, app.RefreshToken},
			AccessTokenSeconds: new(int64(300)),
		}, `{}`, func(*app.App) {}},
		{"the addresses", app.SettingsChanged{RedirectURIs: &[]string{"https://b.example/1", "https://b.example/2"},
			PostLogoutURIs: new([]string(nil))},
			`{"redirectUris":["https://b.example/1","https://b.example/2"],"postLogoutUris":[]}`,
			func(a *app.App) {
				a.RedirectURIs, a.PostLogoutURIs = []string{"https://b.example/1", "https://b.example/2"}, nil
			}},
		{"a way that needs no address, and no address",
			app.SettingsChanged{RedirectURIs: &[]string{}, GrantTypes: &[]app.GrantType{app.DeviceCode}},
			`{"grantTypes":["urn:ietf:params:oauth:grant-type:device_code"],"redirectUris":[]}`,
			func(a *app.App) { a.RedirectURIs, a.GrantTypes = nil, []app.GrantType{app.DeviceCode} }},
		{"the method", app.SettingsChanged{AuthMethod: new(app.PrivateKeyJWT)}, `{"authMethod":"private_key_jwt"}`,
			func(a *app.App) { a.AuthMethod = app.PrivateKeyJWT }},
		{"that its secret may be sent in either way", app.SettingsChanged{ExactAuthMethod: new(false)},
			`{"exactAuthMethod":false}`, func(a *app.App) { a.ExactAuthMethod = false }},
		{"that its requests need not be pushed", app.SettingsChanged{PushedRequired: new(false)},
			`{"pushedRequired":false}`, func(a *app.App) { a.PushedRequired = false }},
		{"that it needs no key", app.SettingsChanged{DPoPRequired: new(false)},
			`{"dpopRequired":false}`, func(a *app.App) { a.DPoPRequired = false }},
		{"the claims of ID tokens", app.SettingsChanged{IDTokenClaims: new(app.ScopeClaims)},
			`{"idTokenClaims":"scopes"}`, func(a *app.App) { a.IDTokenClaims = app.ScopeClaims }},
		{"the algorithm", app.SettingsChanged{SigningAlgorithm: new(app.ES256)}, `{"signingAlgorithm":"ES256"}`,
			func(a *app.App) { a.SigningAlgorithm = app.ES256 }},
		{"people of other organizations, whose tokens end", app.SettingsChanged{AllOrganizations: new(false)},
			`{"allOrganizations":false}`,
			func(a *app.App) { a.AllOrganizations, a.Epoch = false, 1 }},
		{"what is empty goes back to its default", app.SettingsChanged{
			AuthMethod:           new(app.AuthMethod("")),
			GrantTypes:           new([]app.GrantType(nil)),
			TokenFormat:          new(app.TokenFormat("")),
			IDTokenClaims:        new(app.IDTokenClaims("")),
			AccessTokenSeconds:   new(int64(0)),
			RefreshTokenSeconds:  new(int64(0)),
			BackChannelLogoutURI: new(""),
			KeySetURI:            new(""),
		},
			`{"grantTypes":["authorization_code"],"backChannelLogoutUri":"","keySetUri":"","tokenFormat":"opaque","accessTokenSeconds":3600,"refreshTokenSeconds":2592000,"idTokenClaims":"scopes"}`,
			func(a *app.App) {
				a.GrantTypes, a.BackChannelLogoutURI, a.KeySetURI, a.TokenFormat, a.IDTokenClaims = []app.GrantType{app.AuthorizationCode}, "", "", app.Opaque, app.ScopeClaims
				a.AccessTokenSeconds, a.RefreshTokenSeconds = 3600, 2592000
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			want := eventtest.State(t, s, app.Kind, "app_active").Data
			mark := s.Mark()
			d, err := app.Modify(t.Context(), s, ownerA, "app_active", event.IfMatch{Set: true, Sequence: 1}, c.m)
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: "app.settings_changed.v1", Payload: c.payload})
			c.state(&want)
			a := eventtest.State(t, s, app.Kind, "app_active")
			if !reflect.DeepEqual(a.Data, want) || d != a.Details() {
				t.Errorf("got  %+v\nwant %+v", a.Data, want)
			}
		})
	}
	// Allowing more people ends nothing.
	s := world(t)
	_, err := app.Modify(t.Context(), s, ownerA, "app_spa", event.IfMatch{},
		app.SettingsChanged{AllOrganizations: new(true)})
	must(t, err)
	if a := eventtest.State(t, s, app.Kind, "app_spa").Data; a.Epoch != 0 || !a.AllOrganizations {
		t.Errorf("got %+v", a)
	}
}

func TestWhatAModificationCannotLeaveBehind(t *testing.T) {
	for _, c := range []struct {
		name, id string
		m        app.SettingsChanged
		wrong    []string
	}{
		{"no address for a code", "app_active", app.SettingsChanged{RedirectURIs: &[]string{}},
			[]string{"redirectUris"}},
		{"no proof", "app_active", app.SettingsChanged{AuthMethod: new(app.NoAuth)}, []string{"authMethod"}},
		{"a secret in a page", "app_spa", app.SettingsChanged{AuthMethod: new(app.SecretBasic)},
			[]string{"authMethod"}},
		{"a scheme of its own in a page", "app_spa", app.SettingsChanged{RedirectURIs: &[]string{"app.example:/cb"}},
			[]string{"redirectUris[0]"}},
		{"people who sign in to an API", "app_api",
			app.SettingsChanged{RedirectURIs: &[]string{"https://a.example"},
				GrantTypes: &[]app.GrantType{app.AuthorizationCode}},
			[]string{"grantTypes", "redirectUris"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, err := app.Modify(t.Context(), s, ownerA, c.id, stale, c.m)
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, c.wrong...)
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
	s := world(t)
	_, err := app.Modify(t.Context(), s, ownerA, "app_native", event.IfMatch{},
		app.SettingsChanged{RedirectURIs: &[]string{"app.example:/cb"}})
	must(t, err)
}

func TestAnAddressThatNobodyCouldRegisterTodayIsInTheWayOfNothingElse(t *testing.T) {
	s := world(t)
	old := []string{"myapp:/cb", "https://shop.example/cb"}
	eventtest.Given(t, s, app.Kind, "app_native", "", nil,
		app.SettingsChanged{RedirectURIs: &old, PostLogoutURIs: &old})
	_, err := app.Modify(t.Context(), s, ownerA, "app_native", event.IfMatch{}, app.SettingsChanged{Name: new("Other")})
	must(t, err)
	for field, m := range map[string]app.SettingsChanged{"redirectUris[0]": {RedirectURIs: &old},
		"postLogoutUris[0]": {PostLogoutURIs: &old}} {
		_, err := app.Modify(t.Context(), s, ownerA, "app_native", event.IfMatch{}, m)
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, field)
	}
	if got := eventtest.State(t, s, app.Kind, "app_native").Data; got.Name != "Other" ||
		!slices.Equal(got.RedirectURIs, old) {
		t.Errorf("got %+v", got)
	}
}

// changes are all of them, on an application that has a secret and a key.
func changes(t *testing.T, s *eventtest.Store) map[string]func(access.Permit, string,
	event.IfMatch) (event.Details, error) {
	t.Helper()
	return map[string]func(access.Permit, string, event.IfMatch) (event.Details, error){
		"modify": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.Modify(t.Context(), s, p, id, m, app.SettingsChanged{Name: new("n")})
		},
		"deactivate": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.Deactivate(t.Context(), s, p, id, m)
		},
		"reactivate": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.Reactivate(t.Context(), s, p, id, m)
		},
		"remove": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.Remove(t.Context(), s, p, id, m)
		},
		"set API access": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.SetAPIAccess(t.Context(), s, p, id, m, []string{"signet.self"})
		},
		"set claim mappings": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			d, _, err := app.SetClaimMappings(t.Context(), s, p, id, m, []app.ClaimMapping{mapping(app.FromEmail, nil)})
			return d, err
		},
		"approve a client": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.ApproveAudience(t.Context(), s, p, id, m, "app_off")
		},
		"withdraw an approval": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.WithdrawAudience(t.Context(), s, p, id, m, "app_1")
		},
		"generate a secret": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			d, text, err := app.GenerateSecret(t.Context(), s, p, id, m, 0)
			if (text == "") != (err != nil) {
				t.Errorf("%q with %v", text, err)
			}
			return d, err
		},
		"remove the secret": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.RemoveSecret(t.Context(), s, p, id, m)
		},
		"add a key": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			d, _, err := app.AddKey(t.Context(), s, p, id, m, newKey(t))
			return d, err
		},
		"remove a key": func(p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return app.RemoveKey(t.Context(), s, p, id, m, "pky_1")
		},
	}
}

func TestWhichApplicationsCanBeChanged(t *testing.T) {
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		match   event.IfMatch
		refusal *errs.Error
	}{
		{"one at the sequence last seen", ownerA, "app_active", event.IfMatch{Set: true, Sequence: 4}, nil},
		{"not at another sequence", ownerA, "app_active", stale, moved},
		{"not a removed one", ownerA, "app_gone", event.IfMatch{}, app.ErrNotFound},
		{"not one of another organization", ownerA, "app_foreign", event.IfMatch{}, app.ErrNotFound},
		{"not an unknown one", ownerA, "app_x", event.IfMatch{}, app.ErrNotFound},
		{"not without a permit", access.Permit{}, "app_active", event.IfMatch{}, app.ErrNotFound},
		{"what there is not comes before the sequence", ownerA, "app_x", stale, app.ErrNotFound},
	} {
		for what := range changes(t, nil) {
			t.Run(c.name+"/"+what, func(t *testing.T) {
				s := world(t)
				for _, id := range []string{"app_active", "app_foreign"} {
					eventtest.Given(t, s, app.Kind, id, "", nil, app.SecretSet{},
						app.KeyAdded{KeyID: "pky_1", Public: "x"},
						app.AudienceApproved{ClientID: "app_1", ClientOrg: "org_b"})
				}
				// the first fact of a version raises that of the store
				eventtest.Given(t, s, app.Kind, "app_spa", "", nil, app.APIConsentsEnded{})
				match := c.match
				if what == "reactivate" {
					eventtest.Given(t, s, app.Kind, "app_active", "", nil, app.Deactivated{})
					if match.Sequence == 4 {
						match.Sequence++
					}
				}
				before := s.Fingerprint()
				d, err := changes(t, s)[what](c.permit, c.id, match)
				eventtest.As(t, err, c.refusal)
				if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
					t.Errorf("wrote: %t", wrote)
				}
				if c.refusal == nil && d != eventtest.State(t, s, app.Kind, c.id).Details() {
					t.Errorf("details %+v", d)
				}
			})
		}
	}
}

func TestStatesOfAnApplication(t *testing.T) {
	s := world(t)
	step := func(what string, refusal *errs.Error, typ event.Type, state app.State, epoch int64) {
		t.Helper()
		mark := s.Mark()
		match := event.IfMatch{}
		if refusal != nil {
			match = stale // the state comes before the sequence
		}
		_, err := changes(t, s)[what](ownerA, "app_active", match)
		eventtest.As(t, err, refusal)
		if refusal == nil {
			s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: typ, Payload: `{}`})
		} else {
			s.Then(t, mark)
		}
		if a := eventtest.State(t, s, app.Kind, "app_active").Data; a.State != state || a.Epoch != epoch {
			t.Errorf("%s: state %s, epoch %d", what, a.State, a.Epoch)
		}
	}
	s.GivenRow(event.Row{RowKey: app.SecretRow("app_active"), Value: []byte("x")})
	step("reactivate", app.ErrNotInactive, "", app.Active, 0)
	step("deactivate", nil, "app.deactivated.v1", app.Inactive, 1)
	step("deactivate", app.ErrNotActive, "", app.Inactive, 1)
	step("reactivate", nil, "app.reactivated.v1", app.Active, 1) // tokens from before stay dead
	step("deactivate", nil, "app.deactivated.v1", app.Inactive, 2)
	step("remove", nil, "app.removed.v1", app.Removed, 3)
	if row, _ := s.Row(t.Context(), app.SecretRow("app_active")); row != nil {
		t.Error("its secret is still there")
	}
	if a := eventtest.State(t, s, app.Kind, "app_active").Data; !reflect.DeepEqual(a,
		app.App{Standing: app.Standing{State: app.Removed, Epoch: 3}}) {
		t.Errorf("left: %+v", a)
	}
}

func TestAnotherAPIAccessEndsTheTokens(t *testing.T) {
	s := world(t)
	for _, c := range []struct {
		name    string
		scopes  []string
		payload string
		epoch   int64
		asks    bool // consents to scopes from before do not count
	}{
		{"some", []string{"signet.self", "signet.read", "signet.self"},
			`{"scopes":["signet.read","signet.self"]}`, 1, true},
		{"the same in another order", []string{"signet.read", "signet.self"},
			`{"scopes":["signet.read","signet.self"]}`, 1, false},
		{"more", []string{"signet.read", "signet.self", "signet.write"},
			`{"scopes":["signet.read","signet.self","signet.write"]}`, 2, false},
		{"none", nil, `{"scopes":[]}`, 3, false},
		{"still none", nil, `{"scopes":[]}`, 3, false},
		{"again", []string{"signet.read"}, `{"scopes":["signet.read"]}`, 4, true},
	} {
		mark := s.Mark()
		_, err := app.SetAPIAccess(t.Context(), s, ownerA, "app_active", event.IfMatch{}, c.scopes)
		must(t, err)
		want := []eventtest.Fact{{Object: "app_active", Type: "app.api_access_set.v1", Payload: c.payload}}
		if c.asks {
			want = append(want, eventtest.Fact{Object: "app_active", Type: "app.api_consents_ended.v1", Payload: "{}"})
		}
		s.Then(t, mark, want...)
		if a := eventtest.State(t, s, app.Kind, "app_active").Data; a.Epoch != c.epoch {
			t.Errorf("%s: epoch %d, want %d", c.name, a.Epoch, c.epoch)
		}
	}
	_, err := app.SetAPIAccess(t.Context(), s, ownerA, "app_active", event.IfMatch{},
		[]string{"signet.self", "openid", "signet.*", ""})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "scopes[1]", "scopes[2]", "scopes[3]")
}

func TestWhichApplicationsAreReadAndInUse(t *testing.T) {
	s := world(t)
	for _, c := range []struct {
		id         string
		get, inUse *errs.Error
	}{
		{"app_active", nil, nil},
		{"app_inactive", nil, app.ErrNotFound},
		{"app_gone", app.ErrNotFound, app.ErrNotFound},
		{"app_foreign", app.ErrNotFound, nil},
		{"app_off", app.ErrNotFound, app.ErrNotFound},
		{"app_orphan", app.ErrNotFound, app.ErrNotFound},
		{"app_x", app.ErrNotFound, app.ErrNotFound},
	} {
		t.Run(c.id, func(t *testing.T) {
			_, err := app.Get(t.Context(), s, ownerA, c.id)
			eventtest.As(t, err, c.get)
			_, err = app.InUse(t.Context(), s, c.id)
			eventtest.As(t, err, c.inUse)
		})
	}
}

func TestApplicationsAreListedByNameStateAndType(t *testing.T) {
	s := world(t)
	for id, name := range map[string]string{"app_1": "Alpha", "app_2": "ALPINE"} {
		eventtest.Given(t, s, app.Kind, id, "org_b", nil, app.Added{Name: name, Type: app.SPA})
	}
	eventtest.Given(t, s, app.Kind, "app_0", "org_b", nil, app.Added{Name: "alps", NameKey: "alps", Type: app.API},
		app.Deactivated{})
	for _, c := range []struct {
		name   string
		org    string
		filter app.Filter
		want   []string
	}{
		{"all of an organization, the oldest first", "org_b", app.Filter{},
			[]string{"app_0", "app_1", "app_2", "app_foreign"}},
		{"none that is removed", "org_a", app.Filter{Type: app.Web}, []string{"app_active", "app_inactive"}},
		{"by the beginning of the name, in its order", "org_b", app.Filter{Name: "AlP"},
			[]string{"app_1", "app_2", "app_0"}},
		{"by state", "org_b", app.Filter{State: app.Inactive}, []string{"app_0"}},
		{"by type", "org_a", app.Filter{Type: app.Native}, []string{"app_native"}},
		{"by all of them", "org_b", app.Filter{Name: "al", State: app.Active, Type: app.SPA},
			[]string{"app_1", "app_2"}},
		{"by what does not come together", "org_b", app.Filter{Name: "al", State: app.Active, Type: app.API}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := eventtest.IDs(t, func(after event.Cursor) ([]*event.Object[app.App], *event.Cursor, error) {
				return app.List(t.Context(), s, permit(c.org), c.filter, after, 2)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, _, err := app.List(t.Context(), s, access.Permit{}, app.Filter{}, event.Cursor{}, 10)
	eventtest.As(t, err, access.ErrDenied)
}
