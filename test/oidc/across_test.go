package oidc_test

import (
	"net/url"
	"slices"
	"testing"

	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/test/testdb"
)

// viewer adds somebody who may read everything in the organization and in the installation.
func (w *world) viewer() string {
	w.t.Helper()
	id := w.person(access.OrgOwnerViewer)
	w.do(event.Command{Write: []event.Ref{user.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		return u.Append(user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwnerViewer}})
	}})
	return id
}

// An application of another organization gets what the person has agreed to on a page, is told no more of their roles
// than concerns it, and loses what it was once given without asking.
func TestAnApplicationOfAnotherOrganizationGetsWhatThePersonAgreedTo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		theirs := w.organization()
		for _, format := range []app.TokenFormat{app.Opaque, app.JWT} {
			t.Run(string(format), func(t *testing.T) {
				person := w.viewer()
				in := w.signIn(person)
				id, secret := w.applicationOf(theirs, app.Web, app.SecretPost,
					func(s *app.Settings) { s.AllOrganizations, s.TokenFormat = true, format })
				party := func(scopes ...string) *party {
					p := w.party(id, secret, append(scopes, "offline_access", claimset.RolesScope)...)
					p.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
					return p
				}
				silent := func(scopes ...string) url.Values {
					t.Helper()
					return w.with(in).signIn(party(scopes...).oauth.AuthCodeURL("st",
						oauth2.SetAuthURLParam("prompt", "none")))
				}
				if got := silent(); got.Get("error") != "consent_required" {
					t.Fatalf("nobody is asked: %v", got)
				}
				asked := w.with(in)
				tokens := party().tokensFor(asked)
				if !slices.Equal(asked.asked, []string{"allow"}) {
					t.Errorf("asked for %q", asked.asked)
				}
				if got := silent(); got.Get("code") == "" {
					t.Errorf("asked again: %v", got)
				}
				if got := silent("email"); got.Get("error") != "consent_required" {
					t.Errorf("nobody is asked for more: %v", got)
				}
				about := w.get(w.url+"/oauth/userinfo", "Authorization", "Bearer "+tokens.AccessToken)
				if told, _ := about.json[claimset.RolesScope].(map[string]any); len(told) != 1 || told[w.org] == nil {
					t.Errorf("told of %v", about.json)
				}

				// As it was recorded when nobody had to be asked.
				consents := oauth.Kind.Ref(oauth.IDFor(person))
				w.do(event.Command{Write: []event.Ref{consents}, Decide: func(tx *event.Tx) error {
					c, err := oauth.Kind.Get(tx, consents.ID)
					if err != nil {
						return err
					}
					return c.Append(oauth.Given{AppID: id, Scopes: c.Data.Apps[id].Scopes, At: tx.Now()})
				}})
				refresh := url.Values{"client_id": {id}, "client_secret": {secret}, "grant_type": {"refresh_token"},
					"refresh_token": {tokens.RefreshToken}}
				if got := w.post("/oauth/token", refresh); got.status != 400 || got.json["error"] != "invalid_grant" {
					t.Errorf("refreshed: %+v", got)
				}
				if got := w.get(w.url+"/oauth/userinfo", "Authorization",
					"Bearer "+tokens.AccessToken); got.status != 401 {
					t.Errorf("the access token beside it lives on: %+v", got)
				}
			})
		}
	})
}

// Whoever a token is meant for is told of the roles that concern it, whatever the client that was given the token may
// know.
func TestAnAudienceInAnotherOrganizationIsToldOfTheRolesThatConcernIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		theirs := w.organization()
		in := w.signIn(w.viewer())
		checks := func(s *app.Settings) { s.GrantTypes, s.RedirectURIs = nil, nil }
		own, ownSecret := w.application(app.API, app.SecretPost, checks)
		reader, readerSecret := w.applicationOf(theirs, app.API, app.SecretPost, checks)
		for _, format := range []app.TokenFormat{app.Opaque, app.JWT} {
			id, secret := w.application(app.Web, app.SecretPost, func(s *app.Settings) { s.TokenFormat = format })
			w.api(theirs, "POST", "/v1/apps/"+reader+"/audience_approvals", `{"clientId":"`+id+`"}`)
			p := w.party(id, secret, claimset.RolesScope, "urn:signet:app:"+own+":aud", "urn:signet:app:"+reader+":aud")
			p.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
			token := p.tokens(in).AccessToken
			for _, c := range []struct {
				name, id, secret string
				roles            int
			}{{"the client", id, secret, 2}, {"another of its organization", own, ownSecret, 2},
				{"one of another organization", reader, readerSecret, 1}} {
				got := w.post("/oauth/introspect",
					url.Values{"client_id": {c.id}, "client_secret": {c.secret}, "token": {token}})
				if told, _ := got.json[claimset.RolesScope].(map[string]any); len(told) != c.roles ||
					told[w.org] == nil {
					t.Errorf("%s, %s: told of %v", format, c.name, got.json)
				}
			}
		}
	})
}
