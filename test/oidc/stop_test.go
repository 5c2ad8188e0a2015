package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

// organization adds another one, without anybody in it.
func (w *world) organization() string {
	w.t.Helper()
	id := org.Kind.NewID()
	w.do(event.Command{Write: []event.Ref{org.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		_, err := org.Kind.Create(tx, id, id, org.Added{Name: "Another"})
		return err
	}})
	return id
}

// api does something as the owner of the installation, in an organization.
func (w *world) api(owner, method, path, body string) reply {
	w.t.Helper()
	headers := []string{"Authorization", "Bearer " + w.server.FirstAdmin.Token, "X-Service-Orgid", owner}
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	got := w.request(method, w.url+path, body, headers...)
	if got.status != http.StatusOK {
		w.t.Fatalf("%s %s: %+v", method, path, got)
	}
	return got
}

// Whoever switches off an application, or the organization that it is of, ends all that it holds: on every node, at
// once, and for good.
func TestWhatAnApplicationHoldsStopsWithItAndItsOrganization(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		last := nodes[len(nodes)-1]
		reader, readerSecret := w.application(app.API, app.SecretPost,
			func(s *app.Settings) { s.GrantTypes, s.RedirectURIs = nil, nil })
		for _, tt := range []struct{ name, method, off, on string }{
			{"an application that is switched off and on", "POST", "/v1/apps/{app}/_deactivate",
				"/v1/apps/{app}/_reactivate"},
			{"an application that is removed", "DELETE", "/v1/apps/{app}", ""},
			{"an organization that is switched off and on", "POST", "/v1/orgs/{org}/_deactivate",
				"/v1/orgs/{org}/_reactivate"},
			{"an organization that is removed", "DELETE", "/v1/orgs/{org}", ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				owner := w.organization()
				id, secret := w.applicationOf(owner, app.Web, app.SecretPost,
					func(s *app.Settings) { s.AllOrganizations = true })
				w.approve(reader, id, owner)
				party := func(scopes ...string) *party {
					p := w.party(id, secret, append(scopes, "urn:signet:app:"+reader+":aud")...)
					p.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
					return p
				}
				short, long := party().tokens(w.in), party("offline_access").tokens(w.in)
				code, verifier := party().code(w.in)
				post := func(path string, form url.Values) reply {
					return w.request("POST", last.url+path, form.Encode(), "Content-Type",
						"application/x-www-form-urlencoded")
				}
				own := func(pairs ...string) url.Values {
					form := url.Values{"client_id": {id}, "client_secret": {secret}}
					for i := 0; i < len(pairs); i += 2 {
						form.Set(pairs[i], pairs[i+1])
					}
					return form
				}
				alive := func(want bool) {
					t.Helper()
					for name, text := range map[string]string{"without offline access": short.AccessToken,
						"with offline access": long.AccessToken} {
						info := w.get(last.url+"/oauth/userinfo", "Authorization", "Bearer "+text)
						seen := post("/oauth/introspect",
							url.Values{"client_id": {reader}, "client_secret": {readerSecret}, "token": {text}})
						if (info.status == 200) != want || seen.status != 200 || seen.json["active"] != want {
							t.Errorf("a token %s: user info says %d, introspection %v", name, info.status, seen.json)
						}
					}
				}
				does := func(path, tell string) {
					t.Helper()
					if path == "" {
						return
					}
					body := ""
					if tell != "DELETE" {
						body = "{}"
					}
					w.api(owner, tell, strings.NewReplacer("{app}", id, "{org}", owner).Replace(path), body)
				}
				refused := func(want string) {
					t.Helper()
					for name, got := range map[string]reply{
						"a refresh token": post("/oauth/token",
							own("grant_type", "refresh_token", "refresh_token", long.RefreshToken)),
						"a code": post("/oauth/token",
							own("grant_type", "authorization_code", "code", code, "redirect_uri", callback,
								"code_verifier", verifier)),
					} {
						if got.status == 200 || got.json["error"] != want {
							t.Errorf("%s: got %+v", name, got)
						}
					}
				}
				alive(true)
				does(tt.off, tt.method)
				alive(false)
				refused("invalid_client")
				if got := post("/oauth/introspect", own("token", short.AccessToken)); got.status != 401 {
					t.Errorf("it still asks about tokens: %+v", got)
				}
				if got := w.get(party().oauth.AuthCodeURL("st")); got.status != 400 ||
					got.header.Get("Location") != "" {
					t.Errorf("people are still sent to sign in: %+v", got)
				}
				if tt.on == "" {
					return
				}
				does(tt.on, tt.method)
				alive(false)
				refused("invalid_grant")
				if again := party("offline_access").tokens(w.in); !w.active(again.AccessToken) {
					t.Error("nobody gets in any more")
				}
			})
		}
	})
}

func TestScopesOfTheAPIAreAnApplicationsByPermission(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, _ := w.application(app.SPA, app.NoAuth)
		in := w.signIn(w.person("ORG_OWNER"))
		const all = "signet.self signet.read signet.write"
		calls := func(access string) (self, read, write int) {
			with := []string{"Authorization", "Bearer " + access, "Content-Type", "application/json"}
			return w.get(w.url+"/v1/users/me", with[:2]...).status, w.get(w.url+"/v1/apps/"+id, with[:2]...).status,
				w.request("PATCH", w.url+"/v1/apps/"+id, `{"name":"Shop","updateMask":"name"}`, with...).status
		}
		var before *oauth2.Token
		for _, tt := range []struct {
			name, allow       string
			self, read, write int
			scope             string // given
		}{
			{"nothing is allowed at first", "", 401, 401, 401, "openid"},
			{"reading", `["signet.read"]`, 403, 200, 403, "openid signet.read"},
			{"everything", `["signet.self","signet.read","signet.write"]`, 200, 200, 200, "openid " + all},
			{"oneself", `["signet.self"]`, 200, 403, 403, "openid signet.self"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if tt.allow != "" {
					w.api(w.org, "PUT", "/v1/apps/"+id+"/api_access", `{"scopes":`+tt.allow+`}`)
				}
				if before != nil && w.active(before.AccessToken) {
					t.Error("a token outlives the decision that it was given by")
				}
				before = w.party(id, "", strings.Fields(all)...).tokens(in)
				if self, read, write := calls(before.AccessToken); self != tt.self || read != tt.read ||
					write != tt.write {
					t.Errorf("it gets %d, %d, %d", self, read, write)
				}
				if given, _ := before.Extra("scope").(string); len(strings.Fields(given)) != len(strings.Fields(tt.scope)) || !subset(given, tt.scope) {
					t.Errorf("it was given %q", given)
				}
			})
		}
	})
}

func TestScopesThatOpenWaysInAreAskedForByNameOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		id, _ := w.application(app.SPA, app.NoAuth) // it asks nobody otherwise
		w.api(w.org, "PUT", "/v1/apps/"+id+"/api_access", `{"scopes":["signet.write","signet.passwords"]}`)
		in := w.signIn(w.person("ORG_OWNER"))
		for _, tt := range []struct{ scopes, asked string }{
			{"signet.write", ""},
			{"signet.write signet.passwords", "allow"},
			{"signet.write signet.passwords", ""},
		} {
			p, v := w.party(id, "", strings.Fields(tt.scopes)...), w.with(in)
			ask := p.oauth.AuthCodeURL("st", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))
			if got := v.visit("GET", ask+"&prompt=none",
				nil).at.Query(); (got.Get("error") == "consent_required") != (tt.asked != "") ||
				(got.Get("code") == "") != (tt.asked != "") {
				t.Errorf("%s, without pages: %v", tt.scopes, got)
			}
			if page := v.visit("GET", ask, nil); tt.asked != "" &&
				!strings.Contains(page.body, "set other people’s passwords") {
				t.Errorf("%s: the page says %s", tt.scopes, page.body)
			}
			tokens := p.tokensFor(v)
			if given, _ := tokens.Extra("scope").(string); strings.Join(v.asked, " ") != tt.asked ||
				len(strings.Fields(given)) != len(strings.Fields(tt.scopes))+1 {
				t.Errorf("%s: asked for %q, given %q", tt.scopes, v.asked, given)
			}
		}
	})
}

func subset(part, whole string) bool {
	for _, s := range strings.Fields(part) {
		if !strings.Contains(" "+whole+" ", " "+s+" ") {
			return false
		}
	}
	return true
}
