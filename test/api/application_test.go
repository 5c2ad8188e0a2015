package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	appInState    = refused(codes.FailedPrecondition, "APPLICATION_WRONG_STATE")
	keepsNoSecret = refused(codes.FailedPrecondition, "APPLICATION_KEEPS_NO_SECRET")
	noAppSecret   = refused(codes.NotFound, "APPLICATION_SECRET_NOT_FOUND")
	noAppKey      = refused(codes.NotFound, "APPLICATION_KEY_NOT_FOUND")
	appKeyExists  = refused(codes.AlreadyExists, "APPLICATION_KEY_EXISTS")
	tooManyAppKey = refused(codes.FailedPrecondition, "APPLICATION_HAS_TOO_MANY_KEYS")
)

func addApp(name string) *signetv1.AddApplicationRequest {
	return &signetv1.AddApplicationRequest{
		Name:         name,
		Type:         signetv1.ApplicationType_APPLICATION_TYPE_WEB,
		AuthMethod:   signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC,
		RedirectUris: []string{"https://shop.example/cb"},
	}
}

// addAppOf adds an application that everybody can look into.
func addAppOf(typ signetv1.ApplicationType, uri string) *signetv1.AddApplicationRequest {
	return &signetv1.AddApplicationRequest{Name: "Public", Type: typ, RedirectUris: []string{uri}}
}

func modifyApp(id string, paths ...string) *signetv1.ModifyApplicationRequest {
	return &signetv1.ModifyApplicationRequest{AppId: id, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
}

// proves tells whether a secret is one that an application can use now.
func (w *World) proves(t *testing.T, id, text string) bool {
	t.Helper()
	client, err := w.server.Grants().Authenticate(t.Context(),
		oauth.Credentials{Method: app.SecretBasic, ClientID: id, Secret: text})
	if err != nil && !errors.Is(err, oauth.ErrInvalidClient) {
		t.Fatal(err)
	}
	return err == nil && client.ID() == id
}

// tokenFor gives an application of a user's organization a token of that user, as a sign-in would, and tells from then
// on whether it counts.
func (w *World) tokenFor(t *testing.T, as *Actor, client string) (counts func() bool) {
	t.Helper()
	token, hash := secret.NewToken(secret.Access)
	w.hide(token)
	w.command(t, event.Command{
		Read: []event.Ref{user.Kind.Ref(as.UserID), org.Kind.Ref(as.OrgID), app.Kind.Ref(client)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, as.UserID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, as.OrgID)
			if err != nil {
				return err
			}
			a, err := app.Kind.Get(tx, client)
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:       event.NewID("oat"),
				Hash:     hash,
				Kind:     string(secret.Access),
				UserID:   u.ID,
				Epoch:    u.Data.TokenEpoch,
				OrgEpoch: o.Data.Epoch,
				Created:  tx.Now(),
				Expires:  tx.Now() + time.Hour.Microseconds(),
				Client:   client,
				Data:     session.Given{ClientEpoch: a.Data.Epoch, ClientOrgEpoch: o.Data.Epoch}.Text(),
			})
			return nil
		},
	})
	sessions := &session.Sessions{Store: w.server.Store(), Master: w.master, Clock: time.Now,
		Standings: &session.Standings{}}
	return func() bool {
		t.Helper()
		_, err := sessions.Bearer(t.Context(), token)
		if err != nil && errs.KindOf(err) != errs.Unauthenticated {
			t.Fatal(err)
		}
		return err == nil
	}
}

// appStory: applications of every type, as added and as read back.
func appStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	seconds := func(a *signetv1.Application) *signetv1.Application {
		a.State, a.TokenFormat, a.SigningAlgorithm = signetv1.Application_STATE_ACTIVE,
			signetv1.TokenFormat_TOKEN_FORMAT_OPAQUE, signetv1.SigningAlgorithm_SIGNING_ALGORITHM_ES256
		a.AccessTokenSeconds, a.RefreshTokenSeconds, a.IdTokenClaims = 3600, 30*24*3600,
			signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_MINIMAL
		if a.GetType() != signetv1.ApplicationType_APPLICATION_TYPE_API {
			a.SigningAlgorithm, a.IdTokenClaims = signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256,
				signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES
		}
		return a
	}
	code := []signetv1.GrantType{signetv1.GrantType_GRANT_TYPE_AUTHORIZATION_CODE}
	for name, x := range map[string]struct {
		req  *signetv1.AddApplicationRequest
		want *signetv1.Application
	}{
		"web": {&signetv1.AddApplicationRequest{Name: "Shop 𝕊", Type: signetv1.ApplicationType_APPLICATION_TYPE_WEB,
			RedirectUris: []string{"https://shop.example/cb"}},
			seconds(&signetv1.Application{
				Name:          "Shop 𝕊",
				Type:          signetv1.ApplicationType_APPLICATION_TYPE_WEB,
				AuthMethod:    signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC,
				GrantTypes:    code,
				RedirectUris:  []string{"https://shop.example/cb"},
				HasSecret:     true,
				SecretByOwner: true,
			})},
		"page": {addAppOf(signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE, "https://page.example/"),
			seconds(&signetv1.Application{
				Name:         "Public",
				Type:         signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE,
				AuthMethod:   signetv1.AuthMethod_AUTH_METHOD_NONE,
				GrantTypes:   code,
				RedirectUris: []string{"https://page.example/"},
			})},
		"phone": {addAppOf(signetv1.ApplicationType_APPLICATION_TYPE_NATIVE, "org.example.app:/cb"),
			seconds(&signetv1.Application{
				Name:         "Public",
				Type:         signetv1.ApplicationType_APPLICATION_TYPE_NATIVE,
				AuthMethod:   signetv1.AuthMethod_AUTH_METHOD_NONE,
				GrantTypes:   code,
				RedirectUris: []string{"org.example.app:/cb"},
			})},
		"api": {&signetv1.AddApplicationRequest{Name: "Api", Type: signetv1.ApplicationType_APPLICATION_TYPE_API},
			seconds(&signetv1.Application{Name: "Api", Type: signetv1.ApplicationType_APPLICATION_TYPE_API,
				AuthMethod: signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC, HasSecret: true, SecretByOwner: true})},
		"with everything": {&signetv1.AddApplicationRequest{
			Name:       "Full",
			Type:       signetv1.ApplicationType_APPLICATION_TYPE_WEB,
			AuthMethod: signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT,
			GrantTypes: []signetv1.GrantType{signetv1.GrantType_GRANT_TYPE_DEVICE_CODE,
				signetv1.GrantType_GRANT_TYPE_REFRESH_TOKEN, signetv1.GrantType_GRANT_TYPE_AUTHORIZATION_CODE},
			RedirectUris:         []string{"https://full.example/2", "https://full.example/1"},
			PostLogoutUris:       []string{"http://localhost:8080/out"},
			BackChannelLogoutUri: "https://full.example/b",
			KeySetUri:            "https://full.example/k",
			TokenFormat:          signetv1.TokenFormat_TOKEN_FORMAT_JWT,
			SigningAlgorithm:     signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256,
			AccessTokenSeconds:   300,
			RefreshTokenSeconds:  90 * 24 * 3600,
			ConsentRequired:      true,
			AllOrganizations:     true,
			ExactAuthMethod:      true,
			IdTokenClaims:        signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES,

			PushedRequestsRequired: true,
			DpopRequired:           true,
		},
			&signetv1.Application{
				State:      signetv1.Application_STATE_ACTIVE,
				Name:       "Full",
				Type:       signetv1.ApplicationType_APPLICATION_TYPE_WEB,
				AuthMethod: signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT,
				GrantTypes: []signetv1.GrantType{signetv1.GrantType_GRANT_TYPE_AUTHORIZATION_CODE,
					signetv1.GrantType_GRANT_TYPE_REFRESH_TOKEN, signetv1.GrantType_GRANT_TYPE_DEVICE_CODE},
				RedirectUris:         []string{"https://full.example/2", "https://full.example/1"},
				PostLogoutUris:       []string{"http://localhost:8080/out"},
				BackChannelLogoutUri: "https://full.example/b",
				KeySetUri:            "https://full.example/k",
				TokenFormat:          signetv1.TokenFormat_TOKEN_FORMAT_JWT,
				SigningAlgorithm:     signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256,
				AccessTokenSeconds:   300,
				RefreshTokenSeconds:  90 * 24 * 3600,
				ConsentRequired:      true,
				AllOrganizations:     true,
				ExactAuthMethod:      true,
				IdTokenClaims:        signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES,

				PushedRequestsRequired: true,
				DpopRequired:           true,
			}},
	} {
		// for all organizations, only the installation adds one
		added := done[*signetv1.AddApplicationResponse](t, c, c.w.root, x.req, header(orgID, s.org))
		x.want.AppId, x.want.Details = added.GetAppId(), added.GetDetails()
		sameMessage(t, name, c.app(t, s.owner, added.GetAppId()), x.want)
		same(t, name+" has a secret", added.GetClientSecret() != "", x.want.GetHasSecret())
		same(t, name+" proves itself", c.w.proves(t, added.GetAppId(), added.GetClientSecret()), x.want.GetHasSecret())
		same(t, name+" by its own secret only", c.w.proves(t, s.app, added.GetClientSecret()), false)
		same(t, "prefix", added.GetAppId()[:4], "app_")
		same(t, "owner", added.GetDetails().GetResourceOwner(), s.org)
	}
	// Names need not be unique, and a key for idempotency says nothing where a secret is answered.
	first := done[*signetv1.AddApplicationResponse](t, c, s.owner, addApp("Twin"), header("idempotency-key", "a b"))
	if again := done[*signetv1.AddApplicationResponse](t, c, s.owner, addApp("Twin"),
		header("idempotency-key", "a b")); again.GetAppId() == first.GetAppId() {
		t.Error("the same application was answered")
	}
}

// modifyAppStory: what the mask names changes, and nothing else.
func modifyAppStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	add := addApp("First")
	add.PostLogoutUris, add.KeySetUri, add.AccessTokenSeconds, add.ConsentRequired, add.AllOrganizations = []string{"https://shop.example/"}, "https://shop.example/keys", 600, true, true
	added := done[*signetv1.AddApplicationResponse](t, c, c.w.root, add, header(orgID, s.org))
	id := added.GetAppId()
	want := c.app(t, s.owner, id)
	step := func(req *signetv1.ModifyApplicationRequest, then func(a *signetv1.Application)) {
		t.Helper()
		d := done[*signetv1.ModifyApplicationResponse](t, c, s.owner, req).GetDetails()
		then(want)
		got := c.app(t, s.owner, id)
		same(t, "sequence", d.GetSequence(), want.GetDetails().GetSequence()+1)
		same(t, "sequence", d.GetSequence(), got.GetDetails().GetSequence())
		want.Details = got.GetDetails()
		sameMessage(t, strings.Join(req.GetUpdateMask().GetPaths(), ","), got, want)
	}
	counts := c.w.tokenFor(t, s.user, id)
	step(with(modifyApp(id, "name"), "name", "other"), func(a *signetv1.Application) { a.Name = "other" })
	step(with(modifyApp(id, "name"), "name", "other"), func(*signetv1.Application) {})
	step(with(modifyApp(id, "redirect_uris"), "redirectUris", []string{"https://b.example/2", "https://b.example/1"}),
		func(a *signetv1.Application) {
			a.RedirectUris = []string{"https://b.example/2", "https://b.example/1"}
		})
	step(modifyApp(id, "post_logout_uris", "key_set_uri", "consent_required"), func(a *signetv1.Application) {
		a.PostLogoutUris, a.KeySetUri, a.ConsentRequired = nil, "", false
	})
	step(with(modifyApp(id, "auth_method"), "authMethod", int(signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT)),
		func(a *signetv1.Application) {
			a.AuthMethod = signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT
		})
	same(t, "the secret of another method", c.w.proves(t, id, added.GetClientSecret()), false)
	step(modifyApp(id, "auth_method", "access_token_seconds"), func(a *signetv1.Application) {
		a.AuthMethod, a.AccessTokenSeconds = signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC, 3600
	})
	same(t, "the secret of this method", c.w.proves(t, id, added.GetClientSecret()), true)
	same(t, "the token counts", counts(), true)
	step(with(modifyApp(id, "all_organizations"), "allOrganizations", true), func(*signetv1.Application) {})
	step(modifyApp(id, "all_organizations"), func(a *signetv1.Application) { a.AllOrganizations = false })
	step(modifyApp(id, "signing_algorithm"),
		func(a *signetv1.Application) { a.SigningAlgorithm = signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256 })
	step(with(modifyApp(id, "id_token_claims"), "idTokenClaims", int(signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_MINIMAL)),
		func(a *signetv1.Application) {
			a.IdTokenClaims = signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_MINIMAL
		})
	step(modifyApp(id, "id_token_claims"),
		func(a *signetv1.Application) { a.IdTokenClaims = signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES })
	step(with(modifyApp(id, "exact_auth_method"), "exactAuthMethod", true),
		func(a *signetv1.Application) { a.ExactAuthMethod = true })
	step(with(modifyApp(id, "pushed_requests_required"), "pushedRequestsRequired", true),
		func(a *signetv1.Application) { a.PushedRequestsRequired = true })
	step(with(modifyApp(id, "dpop_required"), "dpopRequired", true),
		func(a *signetv1.Application) { a.DpopRequired = true })
	same(t, "the token counts", counts(), false)
	c.refused(t, permissionDenied, s.owner, with(modifyApp(id, "all_organizations"), "allOrganizations", true))
	c.refused(t, permissionDenied, s.owner, with(addApp("Shop"), "allOrganizations", true))

	c.refused(t, sequenceMismatch, s.owner, modifyApp(id, "consent_required"), stale)
	c.refused(t, invalid("redirectUris"), s.owner, modifyApp(id, "redirect_uris"), stale)
	c.refused(t, invalid("authMethod"), s.owner,
		with(modifyApp(id, "auth_method"), "authMethod", int(signetv1.AuthMethod_AUTH_METHOD_NONE)))
	c.refused(t, invalid("redirectUris[0]"), s.owner,
		with(modifyApp(id, "redirect_uris"), "redirectUris", []string{"org.example.app:/cb"}))
	sameMessage(t, "after refusals", c.app(t, s.owner, id), want)
	done[*signetv1.DeactivateApplicationResponse](t, c, s.owner, &signetv1.DeactivateApplicationRequest{AppId: id})
	want.State = signetv1.Application_STATE_INACTIVE
	want.Details = c.app(t, s.owner, id).GetDetails()
	step(with(modifyApp(id, "name"), "name", "off"), func(a *signetv1.Application) { a.Name = "off" })
}

// refusedAppCases: what an application cannot be.
func refusedAppCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	add := func(name string, req proto.Message, want Want) {
		cases = append(cases, Case{Name: name, As: s.owner, Req: req, Want: want})
	}
	web, page, phone := signetv1.ApplicationType_APPLICATION_TYPE_WEB,
		signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE, signetv1.ApplicationType_APPLICATION_TYPE_NATIVE
	for name, uri := range map[string]string{
		"nothing": "", "a path": "/cb", "http": "http://shop.example/cb", "a fragment": "https://shop.example/#a",
		"a wildcard": "https://*.shop.example/", "a user": "https://a:b@shop.example/",
		"a script": "JavaScript:alert(1)", "data": "data:text/html,x", "a file": "file:///x",
		"a blob": "blob:https://shop.example/x", "vbscript": "vbscript:x", "a space": "https://shop.example/ ",
		"a backslash": `https://shop.example\@evil.example`, "another alphabet": "https://shöp.example/",
		"too long": "https://shop.example/" + strings.Repeat("x", 1980),
	} {
		for _, typ := range []signetv1.ApplicationType{web, page, phone} {
			add("redirect to "+name+" by "+typ.String(), addAppOf(typ, uri), invalid("redirectUris[0]"))
		}
		add("sign-out to "+name, with(addApp("n"), "postLogoutUris", []string{"https://shop.example", uri}),
			invalid("postLogoutUris[1]"))
		add("redirect changed to "+name, with(modifyApp(s.app, "redirect_uris"), "redirectUris", []string{uri}),
			invalid("redirectUris[0]"))
		if uri != "" {
			add("call to "+name, with(with(with(addApp("n"), "backChannelLogoutUri", uri), "initiateLoginUri", uri),
				"keySetUri", uri), invalid("backChannelLogoutUri", "initiateLoginUri", "keySetUri"))
		}
	}
	many := func(n int) (uris []string) {
		for range n {
			uris = append(uris, "https://shop.example/"+unique("x"))
		}
		return uris
	}
	add("20 addresses", with(with(addApp("n"), "redirectUris", many(20)), "postLogoutUris", many(20)), ok)
	add("21 addresses", with(with(addApp("n"), "redirectUris", many(21)), "postLogoutUris", many(21)),
		invalid("redirectUris", "postLogoutUris"))
	add("the longest address", addAppOf(phone, "https://shop.example/"+strings.Repeat("x", 1979)), ok)
	add("the same address twice",
		with(addApp("n"), "redirectUris", []string{"https://a.example", "https://b.example", "https://a.example"}),
		invalid("redirectUris[2]"))
	add("a scheme of its own on the web", addAppOf(web, "org.example.app:/cb"), invalid("redirectUris[0]"))
	add("a scheme of its own in a browser", addAppOf(page, "org.example.app:/cb"), invalid("redirectUris[0]"))
	add("no address", with(addApp("n"), "redirectUris", nil), invalid("redirectUris"))
	add("no type", with(addApp("n"), "type", nil), invalid("type"))
	add("a type that there is not", with(addApp("n"), "type", 5), invalid("type"))
	add("nothing at all", &signetv1.AddApplicationRequest{}, invalid("name", "type"))
	add("a page with a secret",
		with(addAppOf(page, "https://a.example"), "authMethod",
			int(signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_POST)), invalid("authMethod"))
	add("a server without a proof", with(addApp("n"), "authMethod", int(signetv1.AuthMethod_AUTH_METHOD_NONE)),
		invalid("authMethod"))
	add("an API with an address", with(addApp("n"), "type", int(signetv1.ApplicationType_APPLICATION_TYPE_API)),
		invalid("redirectUris"))
	for field, most := range map[string]int32{"accessTokenSeconds": 86400, "refreshTokenSeconds": 90 * 24 * 3600} {
		add(field+" at the least", with(addApp("n"), field, int32(300)), ok)
		add(field+" at the most", with(addApp("n"), field, most), ok)
		for _, n := range []int32{-1, 1, 299, most + 1} {
			add(field+" outside", with(addApp("n"), field, n), invalid(field))
		}
	}
	for field, number := range map[string]int{"authMethod": 5, "tokenFormat": 3, "signingAlgorithm": -1} {
		add(field+" that there is not", with(addApp("n"), field, number), invalid(field))
	}
	grants := func(g ...signetv1.GrantType) proto.Message {
		req := addApp("n")
		req.GrantTypes = g
		return req
	}
	add("a grant that there is not", grants(1, 9), invalid("grantTypes[1]"))
	add("a grant that is none", grants(1, 0), invalid("grantTypes[1]"))
	add("a grant that needs another", grants(2), invalid("grantTypes"))
	add("more grants than there are", grants(1, 2, 3, 1), invalid("grantTypes"))
	add("a mask of what cannot be set", modifyApp(s.app, "type"), invalid("updateMask"))
	add("a mask of a secret", modifyApp(s.app, "has_secret"), invalid("updateMask"))
	add("no mask", &signetv1.ModifyApplicationRequest{AppId: s.app, Name: "n"}, invalid("updateMask"))
	add("a value that is not named", with(with(modifyApp(s.app, "name"), "name", "n"), "consentRequired", true),
		invalid("consentRequired"))
	for _, n := range []int32{-1, 604801} {
		add("an old secret for ever", &signetv1.GenerateApplicationSecretRequest{AppId: s.app, KeepOldSeconds: n},
			invalid("keepOldSeconds"))
	}
	add("a key that is none", &signetv1.AddApplicationKeyRequest{AppId: s.app, PublicKey: "x"}, invalid("publicKey"))
	add("a key that is over", &signetv1.AddApplicationKeyRequest{AppId: s.app, PublicKey: newPublicKey(t),
		ExpirationDate: in(-time.Minute)}, invalid("expirationDate"))
	as := s.holder(t, iamOwner)
	for name, scopes := range map[string][]string{"openid": {"openid"}, "a wildcard": {"signet.*"}, "nothing": {""},
		"other case": {"Signet.self"}} {
		cases = append(cases, Case{Name: "API access to " + name, As: as,
			Req: &signetv1.SetApplicationAPIAccessRequest{AppId: s.app,
				Scopes: append([]string{"signet.self"}, scopes...)}, Want: invalid("scopes[1]")})
	}
	cases = append(cases, Case{Name: "what is wrong comes before who may", As: s.user, Req: addAppOf(web, "data:x"),
		Want: invalid("redirectUris[0]")},
		Case{Name: "API access by the organization's owner", As: s.owner,
			Req:  &signetv1.SetApplicationAPIAccessRequest{AppId: s.app, Scopes: []string{"signet.self"}},
			Want: permissionDenied})
	return cases
}

// appAdminStory: states through the API, how they are listed, and that tokens end for good.
func appAdminStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	word := unique("App")
	b, a := word+" B", strings.ToUpper(word)+" a"
	shop := done[*signetv1.AddApplicationResponse](t, c, s.owner, addApp(b))
	page := addAppOf(signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE, "https://page.example/")
	page.Name = a
	done[*signetv1.AddApplicationResponse](t, c, s.owner, page)
	list := func(as *Actor, req *signetv1.ListApplicationsRequest, h ...Header) string {
		t.Helper()
		var names []string
		for req = with(req, "pageSize", int32(1)); ; {
			found := done[*signetv1.ListApplicationsResponse](t, c, as, req, h...)
			for _, x := range found.GetApps() {
				names = append(names, x.GetName())
				sameMessage(t, "as listed", x, c.app(t, as, x.GetAppId(), h...))
			}
			if found.GetNextPageToken() == "" {
				return strings.Join(names, ",")
			}
			req = with(req, "pageToken", found.GetNextPageToken())
		}
	}
	same(t, "all, the oldest first", list(s.owner, &signetv1.ListApplicationsRequest{}), "Shop,"+b+","+a)
	same(t, "by name", list(s.owner, &signetv1.ListApplicationsRequest{Name: strings.ToLower(word)}), a+","+b)
	same(t, "pages", list(s.owner,
		&signetv1.ListApplicationsRequest{Type: signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE}), a)
	same(t, "seen from outside",
		list(c.w.root, &signetv1.ListApplicationsRequest{Name: word}, header(orgID, s.org)), a+","+b)
	same(t, "elsewhere", list(c.w.root, &signetv1.ListApplicationsRequest{Name: word}), "")

	id := shop.GetAppId()
	counts := c.w.tokenFor(t, s.user, id)
	works := func() bool { return c.w.proves(t, id, shop.GetClientSecret()) }
	deactivate, reactivate, remove := &signetv1.DeactivateApplicationRequest{AppId: id},
		&signetv1.ReactivateApplicationRequest{AppId: id}, &signetv1.RemoveApplicationRequest{AppId: id}
	state := func() signetv1.Application_State { return c.app(t, s.owner, id).GetState() }
	same(t, "the token counts", counts(), true)
	c.refused(t, appInState, s.owner, reactivate, stale)
	c.refused(t, sequenceMismatch, s.owner, deactivate, stale)
	same(t, "the token still counts", counts(), true)
	same(t, "sequence", done[*signetv1.DeactivateApplicationResponse](t, c, s.owner,
		deactivate).GetDetails().GetSequence(), 3)
	same(t, "state", state(), signetv1.Application_STATE_INACTIVE)
	same(t, "the token counts", counts(), false)
	same(t, "the secret works", works(), false)
	c.refused(t, appInState, s.owner, deactivate, stale)
	same(t, "inactive ones", list(s.owner,
		&signetv1.ListApplicationsRequest{State: signetv1.Application_STATE_INACTIVE}), b)
	same(t, "active ones", list(s.owner,
		&signetv1.ListApplicationsRequest{State: signetv1.Application_STATE_ACTIVE}), "Shop,"+a)
	c.refused(t, sequenceMismatch, s.owner, reactivate, stale)
	done[*signetv1.ReactivateApplicationResponse](t, c, s.owner, reactivate)
	same(t, "state", state(), signetv1.Application_STATE_ACTIVE)
	same(t, "the token counts again", counts(), false)
	same(t, "the secret works again", works(), true)
	counts = c.w.tokenFor(t, s.user, id)
	same(t, "a new token counts", counts(), true)
	c.refused(t, noApp, c.w.root, deactivate) // it is not of that organization
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	same(t, "sequence", done[*signetv1.RemoveApplicationResponse](t, c, s.owner, remove).GetDetails().GetSequence(), 5)
	same(t, "the token counts", counts(), false)
	same(t, "the secret works", works(), false)
	for _, req := range []proto.Message{deactivate, reactivate, remove, modifyApp(id, "consent_required"),
		&signetv1.GetApplicationRequest{AppId: id},
		&signetv1.GenerateApplicationSecretRequest{AppId: id},
		&signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t)}} {
		c.refused(t, noApp, s.owner, req)
	}
	same(t, "a removed one", list(s.owner, &signetv1.ListApplicationsRequest{}), "Shop,"+a)

	// What is left goes with the organization.
	c.carryOut(t, c.w.root, &signetv1.RemoveOrganizationRequest{OrgId: s.org})
	c.refused(t, noOrg, c.w.root, addApp("late"), header(orgID, s.org))
	testkit.Await(t, "its applications are gone", func() bool {
		left, err := app.Kind.Read(t.Context(), c.w.server.Store(), s.app)
		return err == nil && left.Data.State == app.Removed
	})
}

// appSecretStory: one secret replaces the other, at once or after a while.
func appSecretStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	added := done[*signetv1.AddApplicationResponse](t, c, s.owner, addApp("Shop"))
	id := added.GetAppId()
	working := func(texts ...string) (n int) {
		for _, text := range texts {
			if c.w.proves(t, id, text) {
				n++
			}
		}
		return n
	}
	generate := &signetv1.GenerateApplicationSecretRequest{AppId: id, KeepOldSeconds: 604800}
	c.refused(t, sequenceMismatch, s.owner, generate, stale)
	c.refused(t, permissionDenied, s.user, generate)
	made := done[*signetv1.GenerateApplicationSecretResponse](t, c, s.owner, generate)
	same(t, "form", made.GetClientSecret()[:8], "sgn_sec_")
	same(t, "both work", working(added.GetClientSecret(), made.GetClientSecret()), 2)
	shown := c.app(t, s.owner, id)
	if left := time.Until(shown.GetOldSecretExpirationDate().AsTime()); left > 7*24*time.Hour ||
		left < 7*24*time.Hour-time.Minute {
		t.Errorf("the old one works for %v", left)
	}
	generate.KeepOldSeconds = 0
	last := done[*signetv1.GenerateApplicationSecretResponse](t, c, s.owner, generate)
	same(t, "earlier ones", working(added.GetClientSecret(), made.GetClientSecret()), 0)
	same(t, "the last one", working(last.GetClientSecret()), 1)
	same(t, "an old one is shown", c.app(t, s.owner, id).GetOldSecretExpirationDate() != nil, false)

	remove := &signetv1.RemoveApplicationSecretRequest{AppId: id}
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	done[*signetv1.RemoveApplicationSecretResponse](t, c, s.owner, remove)
	same(t, "has a secret", c.app(t, s.owner, id).GetHasSecret(), false)
	same(t, "a removed one", working(last.GetClientSecret()), 0)
	c.refused(t, noAppSecret, s.owner, remove, stale)
	made = done[*signetv1.GenerateApplicationSecretResponse](t, c, s.owner, generate)
	same(t, "a new one", working(made.GetClientSecret()), 1)

	page := done[*signetv1.AddApplicationResponse](t, c, s.owner,
		addAppOf(signetv1.ApplicationType_APPLICATION_TYPE_SINGLE_PAGE, "https://page.example/")).GetAppId()
	c.refused(t, keepsNoSecret, s.owner, &signetv1.GenerateApplicationSecretRequest{AppId: page}, stale)
	c.refused(t, keepsNoSecret, s.owner,
		&signetv1.AddApplicationKeyRequest{AppId: page, PublicKey: newPublicKey(t)}, stale)
	c.refused(t, noAppSecret, s.owner, &signetv1.RemoveApplicationSecretRequest{AppId: page})
}

// appSecretsAtOnce: of many new secrets at once, the last one works, and the one before as long as it is kept.
func appSecretsAtOnce(t *testing.T, w *World) {
	s := w.scene(t)
	texts := make([]string, 24)
	var wait sync.WaitGroup
	for i := range texts {
		wait.Go(func() {
			a := w.send(t, w.wires[i%len(w.wires)], s.owner,
				&signetv1.GenerateApplicationSecretRequest{AppId: s.app, KeepOldSeconds: 3600}, nil)
			if a.status != nil {
				t.Error(a.summary())
				return
			}
			texts[i] = a.message.(*signetv1.GenerateApplicationSecretResponse).GetClientSecret()
		})
	}
	wait.Wait()
	working := slices.DeleteFunc(texts, func(text string) bool { return !w.proves(t, s.app, text) })
	same(t, "secrets that work", len(working), 2)
}

// appKeyStory: public keys come and go.
func appKeyStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	id := done[*signetv1.AddApplicationResponse](t, c, s.owner, addApp("Shop")).GetAppId()
	text := newPublicKey(t)
	add := &signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: "\n" + strings.ReplaceAll(text, "\n", "\r\n")}
	c.refused(t, sequenceMismatch, s.owner, add, stale)
	made := done[*signetv1.AddApplicationKeyResponse](t, c, s.owner, add, header("if-match", "2"))
	sameMessage(t, "key", c.app(t, s.owner, id).GetKeys()[0],
		&signetv1.ApplicationKey{KeyId: made.GetKeyId(), PublicKey: text,
			CreationDate: made.GetDetails().GetChangeDate()})
	c.refused(t, appKeyExists, s.owner, with(add, "publicKey", text), stale)
	for range 19 {
		add = &signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t), ExpirationDate: in(time.Hour)}
		done[*signetv1.AddApplicationKeyResponse](t, c, s.owner, add)
	}
	all := c.app(t, s.owner, id).GetKeys()
	same(t, "keys", len(all), 20)
	same(t, "expiry", all[19].GetExpirationDate().AsTime(), add.GetExpirationDate().AsTime().Truncate(time.Microsecond))
	c.refused(t, tooManyAppKey, s.owner, with(add, "publicKey", newPublicKey(t)), stale)
	remove := &signetv1.RemoveApplicationKeyRequest{AppId: id, KeyId: made.GetKeyId()}
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	done[*signetv1.RemoveApplicationKeyResponse](t, c, s.owner, remove)
	c.refused(t, noAppKey, s.owner, remove, stale)
	same(t, "keys", len(c.app(t, s.owner, id).GetKeys()), 19)
}

// appAccessStory: only owners of the installation let an application use this API, and another decision ends its
// tokens.
func appAccessStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	id, here := s.app, header(orgID, s.org)
	counts := c.w.tokenFor(t, s.user, id)
	set := func(scopes ...string) *signetv1.SetApplicationAPIAccessRequest {
		return &signetv1.SetApplicationAPIAccessRequest{AppId: id, Scopes: scopes}
	}
	manager := c.w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgSettingsManager}})
	for _, lesser := range []*Actor{s.owner, manager, s.user} {
		c.refused(t, permissionDenied, lesser, set("signet.self"))
		c.refused(t, permissionDenied, lesser, set())
	}
	c.refused(t, noApp, c.w.root, set("signet.self")) // it is not of that organization
	c.refused(t, sequenceMismatch, c.w.root, set("signet.self"), merge([]Header{here, stale}))
	same(t, "the token counts", counts(), true)
	done[*signetv1.SetApplicationAPIAccessResponse](t, c, c.w.root,
		set("signet.write", "signet.self", "signet.write"), here)
	same(t, "scopes", strings.Join(c.app(t, manager, id).GetApiScopes(), " "), "signet.self signet.write")
	same(t, "the token counts", counts(), false)
	counts = c.w.tokenFor(t, s.user, id)
	done[*signetv1.SetApplicationAPIAccessResponse](t, c, c.w.root, set("signet.self", "signet.write"), here)
	same(t, "the token counts after the same again", counts(), true)
	// Who may change the application leaves alone what it may do here.
	done[*signetv1.ModifyApplicationResponse](t, c, manager, with(modifyApp(id, "name"), "name", "n"))
	same(t, "scopes", strings.Join(c.app(t, manager, id).GetApiScopes(), " "), "signet.self signet.write")
	// Nor does anybody of the organization get at what opens ways in.
	done[*signetv1.SetApplicationAPIAccessResponse](t, c, c.w.root, set("signet.passwords"), here)
	takeovers := []proto.Message{with(modifyApp(id, "redirect_uris"), "redirectUris",
		[]string{"https://attacker.example.com/"}), &signetv1.GenerateApplicationSecretRequest{AppId: id},
		&signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t)}}
	for _, lesser := range []*Actor{s.owner, manager} {
		for _, takeover := range takeovers {
			c.refused(t, permissionDenied, lesser, takeover)
		}
		done[*signetv1.ModifyApplicationResponse](t, c, lesser, with(modifyApp(id, "name"), "name", "n "+lesser.UserID))
	}
	done[*signetv1.GenerateApplicationSecretResponse](t, c, c.w.root, takeovers[1], here)
	done[*signetv1.SetApplicationAPIAccessResponse](t, c, c.w.root, set(), here)
	same(t, "scopes", len(c.app(t, manager, id).GetApiScopes()), 0)
	same(t, "the token counts", counts(), false)
}

// firstPartyStory: a person who owns the installation marks an application as it stands. What the organization made that
// nobody can look at stops counting, and from then on only the installation turns it.
func firstPartyStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	id, here := s.app, header(orgID, s.org)
	set := func(marked bool) *signetv1.SetApplicationFirstPartyRequest {
		return &signetv1.SetApplicationFirstPartyRequest{AppId: id, FirstParty: marked}
	}
	operator := c.w.signedIn(t, c.w.elsewhere(t).holder(t, iamOwner))
	theirs := done[*signetv1.AddApplicationKeyResponse](t, c, s.owner,
		&signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t)}).GetKeyId()
	done[*signetv1.GenerateApplicationSecretResponse](t, c, s.owner,
		&signetv1.GenerateApplicationSecretRequest{AppId: id})
	ours := done[*signetv1.AddApplicationKeyResponse](t, c, operator,
		&signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t)}, here).GetKeyId()
	before := c.app(t, s.owner, id)
	same(t, "the secret is of an owner of the installation", before.GetSecretByOwner(), false)
	c.refused(t, noApp, operator, set(true)) // it is not of that organization
	c.refused(t, sequenceMismatch, operator, set(true), merge([]Header{here, stale}))
	c.refused(t, permissionDenied, c.w.signedIn(t, s.owner), set(true))
	done[*signetv1.SetApplicationFirstPartyResponse](t, c, operator, set(true), here)

	after := c.app(t, s.owner, id)
	same(t, "who marked it", after.GetFirstParty().GetUserId(), operator.UserID)
	same(t, "it is said when", after.GetFirstParty().GetMarkDate().IsValid(), true)
	same(t, "has a secret", after.GetHasSecret(), false)
	same(t, "keys", len(after.GetKeys()), 1)
	same(t, "the key that counts", after.GetKeys()[0].GetKeyId(), ours)
	same(t, "it is of an owner of the installation", after.GetKeys()[0].GetByOwner(), true)
	c.refused(t, refused(codes.NotFound, "APPLICATION_KEY_NOT_FOUND"), s.owner,
		&signetv1.RemoveApplicationKeyRequest{AppId: id, KeyId: theirs})

	turn := with(modifyApp(id, "redirect_uris"), "redirectUris", []string{"https://attacker.example.com/"})
	for _, takeover := range []proto.Message{turn, &signetv1.GenerateApplicationSecretRequest{AppId: id},
		&signetv1.AddApplicationKeyRequest{AppId: id, PublicKey: newPublicKey(t)}} {
		c.refused(t, permissionDenied, s.owner, takeover)
	}
	for _, lesser := range []*Actor{s.owner, c.w.signedIn(t, s.owner)} {
		done[*signetv1.ModifyApplicationResponse](t, c, lesser, with(modifyApp(id, "name"), "name", "n "+unique("n")))
	}
	c.refused(t, permissionDenied, c.w.signedIn(t, s.owner), set(false))
	done[*signetv1.GenerateApplicationSecretResponse](t, c, c.w.root,
		&signetv1.GenerateApplicationSecretRequest{AppId: id}, here)
	same(t, "a secret of the installation", c.app(t, s.owner, id).GetSecretByOwner(), true)
	done[*signetv1.SetApplicationFirstPartyResponse](t, c, operator, set(false), here)
	same(t, "it is marked", c.app(t, s.owner, id).GetFirstParty() != nil, false)
	done[*signetv1.ModifyApplicationResponse](t, c, s.owner, turn)
	done[*signetv1.RemoveApplicationResponse](t, c, s.owner, &signetv1.RemoveApplicationRequest{AppId: id})
}

// What strangers cause at an application is read by its people, and the stranger learns nothing.
func refusalStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	read := func(who *Actor) *signetv1.ListApplicationRefusalsResponse {
		t.Helper()
		return done[*signetv1.ListApplicationRefusalsResponse](t, c, who,
			&signetv1.ListApplicationRefusalsRequest{AppId: s.app})
	}
	before := read(s.owner)
	same(t, "the node counts since", before.GetSince().IsValid(), true)
	same(t, "refusals before", len(before.GetRefusals())+len(before.GetCounts()), 0)
	for range 2 {
		resp, err := client.Get("http://" + c.w.address + "/oauth/authorize?" + url.Values{"client_id": {s.app},
			"redirect_uri": {"https://me:hush@x.test/<b>?code=hush#hush"}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		same(t, "the status", resp.StatusCode, http.StatusBadRequest)
	}
	after := read(s.owner)
	same(t, "refusals", len(after.GetRefusals()), 1)
	one := after.GetRefusals()[0]
	sameMessage(t, "the refusal", one, &signetv1.ApplicationRefusal{Cause: "redirect_uri",
		Address: "https://x.test/%3Cb%3E?…#…", Count: 2, LastDate: one.GetLastDate()})
	sameMessage(t, "the count", after.GetCounts()[0], &signetv1.ApplicationRefusalCount{Cause: "redirect_uri", Count: 2})
	c.refused(t, permissionDenied, s.user, &signetv1.ListApplicationRefusalsRequest{AppId: s.app})
}
