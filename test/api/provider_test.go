package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
)

var (
	notJWT     = refused(codes.FailedPrecondition, "NOT_A_JWT_IDENTITY_PROVIDER")
	notOAuth   = refused(codes.FailedPrecondition, "NOT_AN_OAUTH_IDENTITY_PROVIDER")
	notOIDC    = refused(codes.FailedPrecondition, "NOT_AN_OIDC_IDENTITY_PROVIDER")
	idpInState = refused(codes.FailedPrecondition, "IDENTITY_PROVIDER_WRONG_STATE")
)

func addOIDC(name, clientSecret string) *signetv1.AddOIDCIdentityProviderRequest {
	return &signetv1.AddOIDCIdentityProviderRequest{Name: name, StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true,
		Issuer: "https://oidc.example", ClientId: "signet", ClientSecret: clientSecret, Scopes: []string{"groups", "email"}}
}

func modify(idp string, paths ...string) *signetv1.ModifyIdentityProviderRequest {
	return &signetv1.ModifyIdentityProviderRequest{IdpId: idp, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
}

// kept tells what secret of a provider is stored.
func (w *World) kept(t *testing.T, id string) string {
	t.Helper()
	row, err := w.server.Store().Row(t.Context(), idp.SecretRow(id))
	if err != nil {
		t.Fatal(err)
	}
	if row == nil {
		return ""
	}
	plain, err := w.server.Store().RootKey().Unwrap("idp client secret", row.Value, []byte(id))
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// oidcStory: a provider with a secret that is never shown.
func oidcStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	secret := c.w.secret("client")
	added := done[*signetv1.AddOIDCIdentityProviderResponse](t, c, s.owner, addOIDC("Corp", secret), header("idempotency-key", unique("key")))
	id := added.GetIdpId()
	got := c.idp(t, s.owner, id)
	sameMessage(t, "as added", got, &signetv1.IdentityProvider{IdpId: id, Details: added.GetDetails(), State: signetv1.IdentityProvider_STATE_ACTIVE, Name: "Corp",
		StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true, VouchedBy: s.owner.UserID, Offered: true, Config: &signetv1.IdentityProvider_Oidc{Oidc: &signetv1.IdentityProvider_OIDC{
			Issuer: "https://oidc.example", ClientId: "signet", HasClientSecret: true, Scopes: []string{"groups", "email"}}}})
	same(t, "the secret can be read back", c.w.kept(t, id), secret)

	// Updates of one half leave the other alone, and the JWT half is none of its.
	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner, &signetv1.UpdateIdentityProviderRequest{IdpId: id, Name: "n"})
	after := c.idp(t, s.owner, id)
	sameMessage(t, "the OpenID Connect half", after.GetOidc(), got.GetOidc())
	same(t, "the secret stays", c.w.kept(t, id), secret)
	c.refused(t, notJWT, s.owner, jwtConfig(id))

	// Another secret; then none.
	secret = c.w.secret("client")
	change := modify(id, "oidc.client_secret")
	change.Oidc = &signetv1.ModifyIdentityProviderRequest_OIDC{ClientSecret: secret}
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, change)
	same(t, "another secret", c.w.kept(t, id), secret)
	change = modify(id, "oidc")
	change.Oidc = &signetv1.ModifyIdentityProviderRequest_OIDC{Issuer: "https://other.example", ClientId: "c"}
	c.refused(t, invalid("oidc.clientSecret"), s.owner, change) // it would be sent there
	change.Oidc.Issuer = "https://oidc.example/realm"
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, change)
	sameMessage(t, "all but the secret", c.idp(t, s.owner, id).GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "https://oidc.example/realm", ClientId: "c", HasClientSecret: true})
	same(t, "the secret stays", c.w.kept(t, id), secret)
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, modify(id, "oidc.client_secret"))
	same(t, "has a secret", c.idp(t, s.owner, id).GetOidc().GetHasClientSecret(), false)
	same(t, "no secret", c.w.kept(t, id), "")

	// A provider that goes takes its secret along.
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, with(with(modify(id, "oidc.client_secret"), "oidc.clientSecret", secret), "name", nil))
	done[*signetv1.RemoveIdentityProviderResponse](t, c, s.owner, &signetv1.RemoveIdentityProviderRequest{IdpId: id})
	same(t, "the secret of a removed provider", c.w.kept(t, id), "")

	// Without a secret, at its least.
	least := done[*signetv1.AddOIDCIdentityProviderResponse](t, c, s.owner, &signetv1.AddOIDCIdentityProviderRequest{Name: "n", Issuer: "i", ClientId: "c"}).GetIdpId()
	sameMessage(t, "at its least", c.idp(t, s.owner, least).GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "i", ClientId: "c"})
}

// modifyStory: what the mask names changes, and nothing else.
func modifyStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	id := done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, with(addJWT(), "audience", "first audience")).GetIdpId()
	want := c.idp(t, s.owner, id)
	same(t, "audience", want.GetJwt().GetAudience(), "first audience")
	step := func(req *signetv1.ModifyIdentityProviderRequest, then func(p *signetv1.IdentityProvider)) {
		t.Helper()
		d := done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, req).GetDetails()
		then(want)
		got := c.idp(t, s.owner, id)
		same(t, "sequence", d.GetSequence(), got.GetDetails().GetSequence())
		same(t, "it grows", d.GetSequence() > want.GetDetails().GetSequence(), true)
		want.Details = got.GetDetails()
		sameMessage(t, strings.Join(req.GetUpdateMask().GetPaths(), ","), got, want)
	}
	step(with(modify(id, "name"), "name", "other"), func(p *signetv1.IdentityProvider) { p.Name = "other" })
	step(with(modify(id, "name"), "name", "other"), func(*signetv1.IdentityProvider) {})
	step(modify(id, "auto_register", "styling_type"), func(p *signetv1.IdentityProvider) { p.AutoRegister, p.StylingType = false, 0 })
	step(with(modify(id, "jwt.audience"), "jwt.audience", "second"), func(p *signetv1.IdentityProvider) { p.GetJwt().Audience = "second" })
	step(with(with(modify(id, "name", "jwt.issuer"), "jwt.issuer", "i"), "name", "n"), func(p *signetv1.IdentityProvider) { p.Name, p.GetJwt().Issuer = "n", "i" })

	// The old updates have no field for the audience, and leave it alone.
	done[*signetv1.UpdateJWTIdentityProviderResponse](t, c, s.owner, jwtConfig(id))
	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner, general(id))
	want = c.idp(t, s.owner, id)
	same(t, "audience", want.GetJwt().GetAudience(), "second")
	whole := &signetv1.ModifyIdentityProviderRequest_JWT{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k"}
	step(&signetv1.ModifyIdentityProviderRequest{IdpId: id, Jwt: whole, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"jwt"}}}, func(p *signetv1.IdentityProvider) {
		p.Config = &signetv1.IdentityProvider_Jwt{Jwt: &signetv1.IdentityProvider_JWT{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k"}}
	})
	c.refused(t, sequenceMismatch, s.owner, modify(id, "auto_register"), stale)
	c.refused(t, notOIDC, s.owner, modify(id, "oidc.scopes"), stale)
	c.refused(t, notOIDC, s.owner, modify(id, "oidc.client_secret"))
	sameMessage(t, "after refusals", c.idp(t, s.owner, id), want)
	done[*signetv1.DeactivateIdentityProviderResponse](t, c, s.owner, &signetv1.DeactivateIdentityProviderRequest{IdpId: id})
	want.State, want.Offered = signetv1.IdentityProvider_STATE_INACTIVE, false
	step(with(modify(id, "name"), "name", "off"), func(p *signetv1.IdentityProvider) { p.Name = "off" })
}

// refusedModificationCases: what a mask cannot mean.
func refusedModificationCases(t *testing.T, w *World) []Case {
	s := w.scene(t)
	secret := w.secret("unnamed")
	full := modify(s.idp, "name")
	full.Name, full.AutoRegister = "n", true
	full.Jwt = &signetv1.ModifyIdentityProviderRequest_JWT{Issuer: "i"}
	full.Oidc = &signetv1.ModifyIdentityProviderRequest_OIDC{ClientSecret: secret, Scopes: []string{"s"}}
	add := addOIDC("Corp", secret)
	settings := w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgSettingsManager}})
	return []Case{
		{Name: "no mask", As: s.owner, Req: &signetv1.ModifyIdentityProviderRequest{IdpId: s.idp, Name: "n"}, Want: invalid("updateMask")},
		{Name: "an empty mask", As: s.owner, Req: modify(s.idp), Want: invalid("updateMask")},
		{Name: "an unknown field", As: s.owner, Req: modify(s.idp, "state"), Want: invalid("updateMask")},
		{Name: "the identifier", As: s.owner, Req: modify(s.idp, "idp_id"), Want: invalid("updateMask")},
		{Name: "a secret that is there", As: s.owner, Req: modify(s.idp, "oidc.has_client_secret"), Want: invalid("updateMask")},
		{Name: "an empty name", As: s.owner, Req: modify(s.idp, "name"), Want: invalid("name")},
		{Name: "an empty configuration", As: s.owner, Req: modify(s.idp, "jwt"), Want: invalid("jwt.jwtEndpoint", "jwt.issuer", "jwt.keysEndpoint")},
		{Name: "values that are not named", As: s.owner, Req: full, Want: invalid("autoRegister", "jwt.issuer", "oidc.clientSecret", "oidc.scopes")},
		{Name: "a secret that only the whole names", As: s.owner, Want: invalid("oidc.clientSecret"),
			Req: with(with(with(modify(s.idp, "oidc"), "oidc.clientSecret", secret), "oidc.issuer", "i"), "oidc.clientId", "c")},
		{Name: "a value too long", As: s.owner, Req: with(modify(s.idp, "jwt.audience"), "jwt.audience", wide(201)), Want: invalid("jwt.audience")},
		{Name: "both kinds at once", As: s.owner, Req: modify(s.idp, "jwt.audience", "oidc.scopes"), Want: notOIDC},
		{Name: "an unknown provider", As: s.owner, Req: modify("idp_x", "auto_register"), Want: noIDP},
		{Name: "by a plain user", As: s.user, Req: modify(s.idp, "auto_register"), Want: permissionDenied},
		{Name: "OIDC without an issuer", As: s.owner, Req: with(add, "issuer", nil), Want: invalid("issuer")},
		{Name: "OIDC with too many scopes", As: s.owner, Req: with(add, "scopes", strings.Split(strings.Repeat("x,", 20)+"x", ",")), Want: invalid("scopes")},
		{Name: "OIDC with an empty scope", As: s.owner, Req: with(add, "scopes", []string{"a", ""}), Want: invalid("scopes[1]")},
		{Name: "OIDC with a parameter of the protocol", As: s.owner, Want: invalid("parameters"),
			Req: &signetv1.AddOIDCIdentityProviderRequest{Name: "n", Issuer: "i", ClientId: "c", Parameters: []*signetv1.IdentityProviderParameter{{Name: "redirect_uri", Value: "https://evil.example"}}}},
		{Name: "OIDC with a parameter twice", As: s.owner, Want: invalid("parameters[1].name"),
			Req: &signetv1.AddOIDCIdentityProviderRequest{Name: "n", Issuer: "i", ClientId: "c", Parameters: []*signetv1.IdentityProviderParameter{{Name: "a"}, {Name: "a"}}}},
		{Name: "OIDC with a parameter without a name", As: s.owner, Want: invalid("parameters"),
			Req: &signetv1.AddOIDCIdentityProviderRequest{Name: "n", Issuer: "i", ClientId: "c", Parameters: []*signetv1.IdentityProviderParameter{{Value: "a"}}}},
		{Name: "OIDC with a claim that is registered", As: s.owner, Req: with(add, "claims.email", "sub"), Want: invalid("claims.email")},
		{Name: "OIDC with GitHub", As: s.owner, Req: with(add, "preset", 5), Want: invalid("preset")},
		{Name: "OIDC with a preset that there is not", As: s.owner, Req: with(add, "preset", 6), Want: invalid("preset")},
		{Name: "Microsoft for all companies", As: s.owner, Req: with(with(add, "preset", 2), "issuer", "https://login.microsoftonline.com/common/v2.0"), Want: invalid("tenants")},
		{Name: "Apple without anything", As: s.owner, Want: invalid("teamId", "keyId", "clientSecret"), Req: &signetv1.AddOIDCIdentityProviderRequest{Name: "n", ClientId: "c", Preset: 3}},
		{Name: "OAuth without anything", As: s.owner, Req: &signetv1.AddOAuthIdentityProviderRequest{}, Want: invalid("name", "clientId", "authorizationEndpoint", "tokenEndpoint", "userEndpoint")},
		{Name: "OAuth with a subject that changes", As: s.owner, Req: with(addOAuth("n", ""), "subject", "email"), Want: invalid("subject")},
		{Name: "OAuth of a JWT provider", As: s.owner, Req: with(modify(s.idp, "oauth.subject"), "oauth.subject", "x"), Want: notOAuth},
		{Name: "no secret of OAuth of a JWT provider", As: s.owner, Req: modify(s.idp, "oauth.client_secret"), Want: notOAuth},
		{Name: "linking by e-mail without the permission", As: settings, Req: with(modify(s.idp, "link_by_email"), "linkByEmail", true), Want: permissionDenied},
		{Name: "linking by e-mail without the permission, in a new one", As: settings, Req: with(addJWT(), "linkByEmail", true), Want: permissionDenied},
		{Name: "no linking by e-mail, as it is", As: settings, Req: modify(s.idp, "link_by_email"), Want: ok},
		{Name: "a check by a plain user", As: s.user, Req: &signetv1.CheckIdentityProviderRequest{IdpId: s.idp}, Want: permissionDenied},
		{Name: "a check of an unknown provider", As: s.owner, Req: &signetv1.CheckIdentityProviderRequest{IdpId: "idp_x"}, Want: noIDP},
		{Name: "OIDC with a long secret", As: s.owner, Req: with(add, "clientSecret", wide(201)), Want: invalid("clientSecret")},
	}
}

// providerAdminStory: states through the API, and how they are listed.
func providerAdminStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	word := unique("Idp")
	jwt := done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, with(addJWT(), "name", word+" B")).GetIdpId()
	oidc := done[*signetv1.AddOIDCIdentityProviderResponse](t, c, s.owner, addOIDC(strings.ToUpper(word)+" a", "")).GetIdpId()
	list := func(as *Actor, req *signetv1.ListIdentityProvidersRequest, h ...Header) string {
		t.Helper()
		var names []string
		for req = with(req, "pageSize", int32(1)); ; {
			page := done[*signetv1.ListIdentityProvidersResponse](t, c, as, req, h...)
			for _, p := range page.GetIdps() {
				names = append(names, p.GetName())
				sameMessage(t, "as listed", p, c.idp(t, as, p.GetIdpId(), h...))
			}
			if page.GetNextPageToken() == "" {
				return strings.Join(names, ",")
			}
			req = with(req, "pageToken", page.GetNextPageToken())
		}
	}
	b, a := word+" B", strings.ToUpper(word)+" a"
	same(t, "all, the oldest first", list(s.owner, &signetv1.ListIdentityProvidersRequest{}), "Partner,"+b+","+a)
	same(t, "by name", list(s.owner, &signetv1.ListIdentityProvidersRequest{Name: strings.ToLower(word)}), a+","+b)
	same(t, "JWT", list(s.owner, &signetv1.ListIdentityProvidersRequest{Type: signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_JWT}), "Partner,"+b)
	same(t, "OpenID Connect", list(s.owner, &signetv1.ListIdentityProvidersRequest{Type: signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_OIDC}), a)
	same(t, "seen from outside", list(c.w.root, &signetv1.ListIdentityProvidersRequest{Name: word}, header(orgID, s.org)), a+","+b)
	same(t, "elsewhere", list(c.w.root, &signetv1.ListIdentityProvidersRequest{Name: word}), "")
	c.refused(t, permissionDenied, s.user, &signetv1.ListIdentityProvidersRequest{})

	deactivate, reactivate := &signetv1.DeactivateIdentityProviderRequest{IdpId: oidc}, &signetv1.ReactivateIdentityProviderRequest{IdpId: oidc}
	remove := &signetv1.RemoveIdentityProviderRequest{IdpId: oidc}
	state := func() signetv1.IdentityProvider_State { return c.idp(t, s.owner, oidc).GetState() }
	// Without a secret it begins as a draft, until somebody says otherwise.
	same(t, "state", state(), signetv1.IdentityProvider_STATE_DRAFT)
	same(t, "offered", c.idp(t, s.owner, oidc).GetOffered(), false)
	same(t, "drafts", list(s.owner, &signetv1.ListIdentityProvidersRequest{State: signetv1.IdentityProvider_STATE_DRAFT}), a)
	c.refused(t, idpInState, s.owner, deactivate, stale)
	c.refused(t, sequenceMismatch, s.owner, reactivate, stale)
	c.refused(t, permissionDenied, s.user, reactivate)
	same(t, "sequence", done[*signetv1.ReactivateIdentityProviderResponse](t, c, s.owner, reactivate).GetDetails().GetSequence(), 3)
	same(t, "offered", c.idp(t, s.owner, oidc).GetOffered(), true)
	asked := done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, with(addJWT(), "draft", true)).GetIdpId()
	same(t, "asked for", c.idp(t, s.owner, asked).GetState(), signetv1.IdentityProvider_STATE_DRAFT)
	done[*signetv1.RemoveIdentityProviderResponse](t, c, s.owner, &signetv1.RemoveIdentityProviderRequest{IdpId: asked})

	c.refused(t, idpInState, s.owner, reactivate)
	c.refused(t, sequenceMismatch, s.owner, deactivate, stale)
	same(t, "sequence", done[*signetv1.DeactivateIdentityProviderResponse](t, c, s.owner, deactivate).GetDetails().GetSequence(), 4)
	same(t, "state", state(), signetv1.IdentityProvider_STATE_INACTIVE)
	c.refused(t, idpInState, s.owner, deactivate, stale)
	same(t, "inactive ones", list(s.owner, &signetv1.ListIdentityProvidersRequest{State: signetv1.IdentityProvider_STATE_INACTIVE}), a)
	same(t, "active ones", list(s.owner, &signetv1.ListIdentityProvidersRequest{State: signetv1.IdentityProvider_STATE_ACTIVE}), "Partner,"+b)
	c.refused(t, sequenceMismatch, s.owner, reactivate, stale)
	same(t, "sequence", done[*signetv1.ReactivateIdentityProviderResponse](t, c, s.owner, reactivate).GetDetails().GetSequence(), 5)
	same(t, "state", state(), signetv1.IdentityProvider_STATE_ACTIVE)
	c.refused(t, noIDP, c.w.root, deactivate) // it is not of that organization
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	same(t, "sequence", done[*signetv1.RemoveIdentityProviderResponse](t, c, s.owner, remove).GetDetails().GetSequence(), 6)
	for _, req := range []proto.Message{deactivate, reactivate, remove, modify(oidc, "auto_register"), general(oidc), &signetv1.GetIdentityProviderRequest{IdpId: oidc}} {
		c.refused(t, noIDP, s.owner, req)
	}
	same(t, "a removed one", list(s.owner, &signetv1.ListIdentityProvidersRequest{}), "Partner,"+b)
	same(t, "the other", c.idp(t, s.owner, jwt).GetState(), signetv1.IdentityProvider_STATE_ACTIVE)
}

// orphanProviderStory: a provider goes with its organization.
func orphanProviderStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	guest := c.w.addUser(t, person{Org: c.w.there.org, Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner}}})
	done[*signetv1.UpdateIdentityProviderResponse](t, c, guest, general(s.idp))
	c.w.changeOrg(t, s.org, org.WasRemoved{})
	c.refused(t, noIDP, c.w.root, general(s.idp))
	c.refused(t, noOrg, c.w.root, modify(s.idp, "auto_register"), header(orgID, s.org))
	c.refused(t, permissionDenied, guest, general(s.idp))
	c.refused(t, unauthenticated, s.owner, general(s.idp))
}

func addOAuth(name, clientSecret string) *signetv1.AddOAuthIdentityProviderRequest {
	return &signetv1.AddOAuthIdentityProviderRequest{Name: name, AuthorizationEndpoint: "https://oauth.example/authorize", TokenEndpoint: "https://oauth.example/token",
		UserEndpoint: "https://oauth.example/user", ClientId: "signet", ClientSecret: clientSecret}
}

// oauthStory: a provider that does not speak OpenID Connect, and what a preset knows.
func oauthStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	secret := c.w.secret("client")
	github := signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GITHUB
	inBody := signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_CLIENT_SECRET_POST
	added := done[*signetv1.AddOAuthIdentityProviderResponse](t, c, s.owner, &signetv1.AddOAuthIdentityProviderRequest{Name: "GitHub", ClientId: "signet", ClientSecret: secret, Preset: github})
	id := added.GetIdpId()
	want := &signetv1.IdentityProvider{IdpId: id, Details: added.GetDetails(), State: signetv1.IdentityProvider_STATE_ACTIVE, Name: "GitHub", VouchedBy: s.owner.UserID, Offered: true,
		Config: &signetv1.IdentityProvider_Oauth{Oauth: &signetv1.IdentityProvider_OAuth{AuthorizationEndpoint: "https://github.com/login/oauth/authorize", TokenEndpoint: "https://github.com/login/oauth/access_token",
			UserEndpoint: "https://api.github.com/user", EmailsEndpoint: "https://api.github.com/user/emails", ClientId: "signet", HasClientSecret: true, Scopes: []string{"read:user", "user:email"},
			Preset: github, ClientAuth: inBody, Subject: "id", Claims: &signetv1.IdentityProviderClaims{UserName: "login"}}}}
	sameMessage(t, "as added", c.idp(t, s.owner, id), want)
	same(t, "the secret can be read back", c.w.kept(t, id), secret)

	change := modify(id, "name", "oauth.emails_endpoint", "oauth.parameters", "oauth.claims.email", "oauth.claims.user_name", "oauth.client_secret")
	secret = c.w.secret("client")
	change.Name = "Git"
	change.Oauth = &signetv1.ModifyIdentityProviderRequest_OAuth{ClientSecret: secret, Parameters: []*signetv1.IdentityProviderParameter{{Name: "login", Value: "x"}, {Name: "allow_signup", Value: "false"}},
		Claims: &signetv1.IdentityProviderClaims{Email: "mail"}}
	want.Details = c.w.admin(t, c, s, change)
	want.Name, want.VouchedBy = "Git", c.w.root.UserID
	oauth := want.GetOauth()
	oauth.EmailsEndpoint, oauth.Claims = "", &signetv1.IdentityProviderClaims{Email: "mail"}
	oauth.Parameters = []*signetv1.IdentityProviderParameter{{Name: "allow_signup", Value: "false"}, {Name: "login", Value: "x"}}
	got := c.idp(t, s.owner, id)
	want.Details.CreationDate = got.GetDetails().GetCreationDate()
	want.Unconfirmed = []*signetv1.UnconfirmedSettings{{UserId: s.owner.UserID, Roles: []string{"ORG_OWNER"}, Settings: []string{"oauth.authorizationEndpoint", "oauth.clientAuth", "oauth.clientId",
		"oauth.preset", "oauth.scopes", "oauth.subject", "oauth.tokenEndpoint", "oauth.userEndpoint"}}} // the installation has not looked at these
	sameMessage(t, "as changed, by somebody else", got, want)
	same(t, "another secret", c.w.kept(t, id), secret)

	// Names are nobody's to answer for, and neither is what was there already.
	again := modify(id, "name", "oauth.subject")
	again.Name, again.Oauth = "Again", &signetv1.ModifyIdentityProviderRequest_OAuth{Subject: "id"}
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, again)
	same(t, "who answers for it", c.idp(t, s.owner, id).GetVouchedBy(), c.w.root.UserID)
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, with(modify(id, "oauth.subject"), "oauth.subject", "node_id"))
	same(t, "who answers for it", c.idp(t, s.owner, id).GetVouchedBy(), s.owner.UserID)

	c.refused(t, notJWT, s.owner, jwtConfig(id))
	c.refused(t, notOIDC, s.owner, modify(id, "oidc.scopes"))
	c.refused(t, invalid("linkByEmail"), s.owner, with(modify(id, "link_by_email"), "linkByEmail", true))
	same(t, "by type", len(done[*signetv1.ListIdentityProvidersResponse](t, c, s.owner, &signetv1.ListIdentityProvidersRequest{Type: signetv1.IdentityProviderType_IDENTITY_PROVIDER_TYPE_OAUTH}).GetIdps()) > 0, true)
	done[*signetv1.RemoveIdentityProviderResponse](t, c, s.owner, &signetv1.RemoveIdentityProviderRequest{IdpId: id})
	same(t, "the secret of a removed provider", c.w.kept(t, id), "")
}

// admin sends a request of an owner of the installation about the organization of a scene.
func (w *World) admin(t *testing.T, c *Client, s *scene, req *signetv1.ModifyIdentityProviderRequest) *signetv1.Details {
	t.Helper()
	return done[*signetv1.ModifyIdentityProviderResponse](t, c, w.root, req, header(orgID, s.org)).GetDetails()
}

// presetStory: what is known of a provider need not be sent.
func presetStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	read := func(req *signetv1.AddOIDCIdentityProviderRequest) *signetv1.IdentityProvider {
		t.Helper()
		return c.idp(t, s.owner, done[*signetv1.AddOIDCIdentityProviderResponse](t, c, s.owner, req).GetIdpId())
	}
	google := signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GOOGLE
	got := read(&signetv1.AddOIDCIdentityProviderRequest{Name: "Google", ClientId: "c", Preset: google, Tenants: []string{"corp.example"}, LinkByEmail: true})
	same(t, "style", got.GetStylingType(), signetv1.StylingType_STYLING_TYPE_GOOGLE)
	same(t, "linking by e-mail", got.GetLinkByEmail(), true)
	sameMessage(t, "Google", got.GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "https://accounts.google.com", ClientId: "c", Preset: google, Scopes: []string{"profile", "email"}, Tenants: []string{"corp.example"}})

	const tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47"
	microsoft := signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_MICROSOFT
	got = read(&signetv1.AddOIDCIdentityProviderRequest{Name: "Microsoft", ClientId: "c", Preset: microsoft, Tenants: []string{tenant},
		ClientAuth: signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_PRIVATE_KEY_JWT})
	sameMessage(t, "Microsoft", got.GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "https://login.microsoftonline.com/" + tenant + "/v2.0", ClientId: "c", Preset: microsoft, Scopes: []string{"profile", "email"},
		Tenants: []string{tenant}, ClientAuth: signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_PRIVATE_KEY_JWT})

	key := c.w.appleKey(t)
	apple := signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_APPLE
	got = read(&signetv1.AddOIDCIdentityProviderRequest{Name: "Apple", ClientId: "c", Preset: apple, TeamId: "TEAM", KeyId: "KEY", ClientSecret: key})
	sameMessage(t, "Apple", got.GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "https://appleid.apple.com", ClientId: "c", Preset: apple, HasClientSecret: true, Scopes: []string{"name", "email"}, FormPost: true,
		ClientAuth: signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_CLIENT_SECRET_POST, TeamId: "TEAM", KeyId: "KEY"})
	same(t, "the private key can be read back", c.w.kept(t, got.GetIdpId()), key)
	c.refused(t, invalid("oidc.clientSecret"), s.owner, with(modify(got.GetIdpId(), "oidc.client_secret"), "oidc.clientSecret", c.w.secret("apple")))
	same(t, "it stays", c.w.kept(t, got.GetIdpId()), key)
}

// appleKey is a private key such as Apple gives out. It is looked for like every other secret.
func (w *World) appleKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	w.hide(strings.Split(text, "\n")[1])
	return text
}
