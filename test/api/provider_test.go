package api_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/org"
)

var (
	notJWT     = refused(codes.FailedPrecondition, "NOT_A_JWT_IDENTITY_PROVIDER")
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
		StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true, Config: &signetv1.IdentityProvider_Oidc{Oidc: &signetv1.IdentityProvider_OIDC{
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
	change.Oidc = &signetv1.ModifyIdentityProviderRequest_OIDC{Issuer: "i", ClientId: "c"}
	done[*signetv1.ModifyIdentityProviderResponse](t, c, s.owner, change)
	sameMessage(t, "all but the secret", c.idp(t, s.owner, id).GetOidc(), &signetv1.IdentityProvider_OIDC{Issuer: "i", ClientId: "c", HasClientSecret: true})
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
	want.State = signetv1.IdentityProvider_STATE_INACTIVE
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
	c.refused(t, idpInState, s.owner, reactivate)
	c.refused(t, sequenceMismatch, s.owner, deactivate, stale)
	same(t, "sequence", done[*signetv1.DeactivateIdentityProviderResponse](t, c, s.owner, deactivate).GetDetails().GetSequence(), 2)
	same(t, "state", state(), signetv1.IdentityProvider_STATE_INACTIVE)
	c.refused(t, idpInState, s.owner, deactivate, stale)
	same(t, "inactive ones", list(s.owner, &signetv1.ListIdentityProvidersRequest{State: signetv1.IdentityProvider_STATE_INACTIVE}), a)
	same(t, "active ones", list(s.owner, &signetv1.ListIdentityProvidersRequest{State: signetv1.IdentityProvider_STATE_ACTIVE}), "Partner,"+b)
	c.refused(t, sequenceMismatch, s.owner, reactivate, stale)
	same(t, "sequence", done[*signetv1.ReactivateIdentityProviderResponse](t, c, s.owner, reactivate).GetDetails().GetSequence(), 3)
	same(t, "state", state(), signetv1.IdentityProvider_STATE_ACTIVE)
	c.refused(t, noIDP, c.w.root, deactivate) // it is not of that organization
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	same(t, "sequence", done[*signetv1.RemoveIdentityProviderResponse](t, c, s.owner, remove).GetDetails().GetSequence(), 4)
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
