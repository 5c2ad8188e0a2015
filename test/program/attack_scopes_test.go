package program

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// grantee is an application in a browser that an owner of the installation signs in to, with all that the pages ask
// for.
type grantee struct {
	t       *testing.T
	issuer  string
	appID   string
	owner   firstAdmin
	root    *client // who allows it what
	browser *http.Client
	cookies map[string]string
	agreed  bool // the last sign-in asked for consent
}

const granteeCallback = "https://grantee.example.com/callback"

func newGrantee(t *testing.T, s *site, p *process) *grantee {
	t.Helper()
	owner := s.admin(t)
	root := newClient(t, p, owner.Token)
	made := root.want(t, 200, "POST", "/v1/apps",
		object{"name": "Grantee", "type": "APPLICATION_TYPE_SINGLE_PAGE", "redirectUris": []string{granteeCallback}})
	browser := &http.Client{Transport: root.http.Transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &grantee{t: t, issuer: p.await(t, "ready").URL, appID: at[string](t, made, "appId"), owner: owner,
		root: root, browser: browser, cookies: map[string]string{}}
}

// allowed gives a client of the API with a token for these scopes: allowed to the application, and agreed to by the
// owner.
func (g *grantee) allowed(scopes ...string) *client {
	g.t.Helper()
	g.root.want(g.t, 200, "PUT", "/v1/apps/"+g.appID+"/api_access", object{"scopes": scopes})
	verifier := strings.Repeat("v", 43)
	challenge := sha256.Sum256([]byte(verifier))
	back := g.signIn(g.issuer + "/oauth/authorize?" + url.Values{
		"client_id":             {g.appID},
		"response_type":         {"code"},
		"redirect_uri":          {granteeCallback},
		"scope":                 {"openid " + strings.Join(scopes, " ")},
		"state":                 {"s"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
	}.Encode())
	resp, err := g.browser.PostForm(g.issuer+"/oauth/token", url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {g.appID},
		"code":          {back.Get("code")},
		"redirect_uri":  {granteeCallback},
		"code_verifier": {verifier},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	var tokens struct {
		AccessToken string `json:"access_token"`
		Scope       string `json:"scope"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&tokens); err != nil || tokens.AccessToken == "" ||
		len(strings.Fields(tokens.Scope)) != len(scopes)+1 {
		g.t.Fatalf("asked for %q, sent back %v, given %q: %v", scopes, back, tokens.Scope, err)
	}
	return g.root.with(tokens.AccessToken)
}

// signIn does what the pages ask for until they send the browser back to the application.
func (g *grantee) signIn(address string) url.Values {
	g.t.Helper()
	g.agreed = false
	method, form := http.MethodGet, url.Values(nil)
	for range 20 {
		if strings.HasPrefix(address, granteeCallback) {
			back, err := url.Parse(address)
			if err != nil {
				g.t.Fatal(err)
			}
			return back.Query()
		}
		r, err := http.NewRequestWithContext(g.t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			g.t.Fatal(err)
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", g.issuer)
		}
		for name, value := range g.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		resp, err := g.browser.Do(r)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, c := range resp.Cookies() {
			g.cookies[c.Name] = c.Value
		}
		page, err := html.Parse(resp.Body)
		resp.Body.Close()
		if err != nil {
			g.t.Fatal(err)
		}
		next := resp.Header.Get("Location")
		if method, form = http.MethodGet, nil; next == "" {
			if next, form = offered(page); form != nil {
				next, method = "", http.MethodPost
				g.fill(form)
			}
		}
		to, err := r.URL.Parse(next)
		if err != nil || next == "" && form == nil {
			g.t.Fatalf("%s leads nowhere: %d", address, resp.StatusCode)
		}
		address = to.String()
	}
	g.t.Fatalf("the pages come to no end at %s", address)
	return nil
}

// fill answers what a form asks for, and presses its first button.
func (g *grantee) fill(form url.Values) {
	if form.Has(pages.FieldLoginName) {
		form.Set(pages.FieldLoginName, g.owner.LoginName)
	}
	if form.Has(pages.FieldPassword) {
		form.Set(pages.FieldPassword, g.owner.Password)
	}
	g.agreed = g.agreed || form.Get(pages.FieldDo) == "allow"
}

// offered finds the first form of a page, or else where its button leads.
func offered(page *html.Node) (link string, form url.Values) {
	for n := range page.Descendants() {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		switch {
		case n.Data == "a" && attr["class"] == "button":
			link = attr["href"]
		case n.Data == "form" && form != nil:
			return link, form
		case n.Data == "form":
			form = url.Values{}
		case form != nil && (n.Data == "input" || n.Data == "button") && attr["name"] != "" && !form.Has(attr["name"]):
			form.Set(attr["name"], attr["value"])
		}
	}
	return link, form
}

// refusal gives the reason and the message of an answer that refuses.
func refusal(answer object) (reason, message string) {
	message, _ = answer["message"].(string)
	details, _ := answer["details"].([]any)
	for _, d := range details {
		if d, _ := d.(object); strings.HasSuffix(d["@type"].(string), "ErrorInfo") {
			reason, _ = d["reason"].(string)
		}
	}
	return reason, message
}

func TestAnApplicationOfAnOwnerGetsNoFurtherThanItsScopes(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		g := newGrantee(t, s, p)
		root := g.root
		human := func(name string, more object) object {
			made := object{"userName": name, "profile": object{"firstName": "Jo", "lastName": "Doe"},
				"email": object{"email": name + "@example.com"}}
			for k, v := range more {
				made[k] = v
			}
			return made
		}
		victim := at[string](t, root.want(t, 200, "POST", "/v1/users/human", human("victim", nil)), "userId")
		mate := at[string](t, root.want(t, 200, "POST", "/v1/users/human", human("mate", nil)), "userId")
		greater := at[string](t, root.want(t, 200, "POST", "/v1/users/human", human("greater", nil)), "userId")
		root.want(t, 200, "PUT", "/v1/orgs/"+g.owner.OrgID+"/members/"+greater, object{"roles": []string{"ORG_OWNER"}})
		other := root.want(t, 200, "POST", "/v1/apps",
			object{"name": "Other", "type": "APPLICATION_TYPE_WEB",
				"redirectUris": []string{"https://other.example.com/callback"}})
		otherApp := "/v1/apps/" + at[string](t, other, "appId")
		change := func(field string, value any) object { return object{field: value, "updateMask": field} }
		verified := object{"email": "attacker@example.com", "isEmailVerified": true}
		every := access.APIScopeNames
		general := []string{"signet.self", "signet.read", "signet.write"}

		attacks := []struct {
			name, method, path string
			body               object
			needs              []string // besides the general scopes
			despite            string   // the reason it is refused for all the same with the first of them alone
		}{
			{"a user with a password", "POST", "/v1/users/human", human("one", object{"password": "An attacker's 1st"}),
				[]string{"signet.contacts", "signet.passwords"}, "SCOPE_REQUIRED"},
			{"a user who is sent a mail", "POST", "/v1/users/human", human("sent", nil),
				[]string{"signet.contacts"}, ""},
			{"a user with a verified address", "POST", "/v1/users/human", human("two", object{"email": verified}),
				[]string{"signet.contacts"}, ""},
			{"hashes", "POST", "/v1/users/_import", object{
				"users": []object{{
					"userName":     "three",
					"profile":      object{"firstName": "Jo", "lastName": "Doe"},
					"email":        object{"address": "three@example.com"},
					"passwordHash": "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
				}},
			},
				[]string{"signet.passwords"}, ""},
			{"somebody's address", "PUT", "/v1/users/" + victim + "/email", verified, []string{"signet.contacts"}, ""},
			{"somebody's password", "POST", "/v1/users/" + victim + "/password",
				object{"password": "An attacker's 2nd"}, []string{"signet.passwords"}, ""},
			{"an owner of the installation", "PUT", "/v1/members/" + mate, object{"roles": []string{"IAM_OWNER"}},
				slices.Concat([]string{"signet.roles"}, every), "GRANTS_MORE"},
			{"a token of the owner's service user", "POST", "/v1/users/" + g.owner.ServiceUserID + "/tokens", object{},
				slices.Concat([]string{"signet.credentials"}, every), "TARGET_HOLDS_MORE"},
			{"an organization with an owner", "POST", "/v1/orgs/_setup", newOrg("Attacker", "An attacker's 3rd"),
				[]string{"signet.roles", "signet.passwords"}, "SCOPE_REQUIRED"},
			{"another application's secret", "POST", otherApp + "/secret", object{},
				[]string{"signet.app_credentials"}, ""},
			{"another application's addresses", "PATCH", otherApp,
				change("redirectUris", []string{"https://attacker.example.com/"}), []string{"signet.redirects"}, ""},
			{"another application for everybody", "PATCH", otherApp, change("allOrganizations", true),
				[]string{"signet.all_organizations"}, ""},
			{"an application that asks nobody", "PATCH", otherApp, object{"updateMask": "consentRequired"},
				[]string{"signet.approvals"}, ""},
			{"an application with a secret and an address", "POST", "/v1/apps",
				object{"name": "New", "type": "APPLICATION_TYPE_WEB",
					"redirectUris": []string{"https://attacker.example.com/"}},
				[]string{"signet.app_credentials", "signet.redirects"}, "SCOPE_REQUIRED"},
			{"more for itself", "PUT", "/v1/apps/" + g.appID + "/api_access", object{"scopes": every},
				slices.Concat([]string{"signet.api_access"}, every), "SCOPE_REQUIRED"},
			{"a provider with a secret", "POST", "/v1/idps/oidc",
				object{"name": "Attacker", "issuer": "https://attacker.example.com", "clientId": "a",
					"clientSecret": "b"}, []string{"signet.providers"}, ""},
			{"a webhook", "POST", "/v1/webhooks", object{"name": "Attacker", "url": "https://attacker.example.com/"},
				[]string{"signet.webhooks"}, ""},
			{"no second factors", "PUT", "/v1/policy", object{"policy": object{}}, []string{"signet.policies"}, ""},
			{"a domain", "POST", "/v1/orgs/" + g.owner.OrgID + "/domains",
				object{"domain": "attacker.example.com", "isVerified": true}, []string{"signet.domains"}, ""},
			{"other signing keys", "POST", "/v1/signing_keys/_rotate", object{}, []string{"signet.signing_keys"}, ""},
		}
		bound := g.allowed(general...)
		before := s.events(t)
		for _, a := range attacks {
			status, answer, err := bound.do(t.Context(), a.method, a.path, a.body)
			if err != nil {
				t.Fatal(err)
			}
			if reason, message := refusal(answer); status != 403 || reason != "SCOPE_REQUIRED" ||
				!strings.Contains(message, a.needs[0]) {
				t.Errorf("%s: status %d, %s: %s", a.name, status, reason, message)
			}
		}
		for name, path := range map[string]string{"locks": "_lock", "switches off": "_deactivate"} {
			_, answer, err := bound.do(t.Context(), "POST", "/v1/users/"+greater+"/"+path, object{})
			if reason, _ := refusal(answer); err != nil || reason != "TARGET_HOLDS_MORE" {
				t.Errorf("it %s somebody who holds more: %v, %v", name, answer, err)
			}
		}
		_, answer, err := bound.do(t.Context(), "DELETE", "/v1/users/"+greater, nil)
		if reason, _ := refusal(answer); err != nil || reason != "TARGET_HOLDS_MORE" {
			t.Errorf("it removes somebody who holds more: %v, %v", answer, err)
		}
		for name, body := range map[string]object{"email": {"email": "attacker@example.com"},
			"password": {"currentPassword": g.owner.Password, "newPassword": "An attacker's 4th"}} {
			_, answer, err := bound.do(t.Context(), "PUT", "/v1/users/me/"+name, body)
			if reason, _ := refusal(answer); err != nil || reason != "SCOPE_REQUIRED" {
				t.Errorf("it changes how the owner signs in: %v, %v", answer, err)
			}
		}
		if after := s.events(t); after != before {
			t.Errorf("%d events came of it", after-before)
		}
		bound.want(t, 200, "POST", "/v1/users/service", object{"userName": "harmless", "name": "Harmless"})
		bound.want(t, 200, "PATCH", otherApp, change("name", "Renamed"))
		bound.want(t, 200, "POST", "/v1/users/"+victim+"/_lock", object{})
		if g.agreed {
			t.Error("consent was asked for general scopes")
		}

		// With the scopes that it lacked, allowed and agreed to, it does what the owner may.
		g.allowed(append(slices.Clone(general), "signet.passwords")...)
		if !g.agreed {
			t.Error("nobody was asked whether it may set passwords")
		}
		for _, a := range attacks {
			if a.despite != "" {
				_, answer, err := g.allowed(append(slices.Clone(general), a.needs[0])...).do(t.Context(), a.method,
					a.path, a.body)
				if reason, _ := refusal(answer); err != nil || reason != a.despite {
					t.Errorf("%s, with %s alone: %v, %v", a.name, a.needs[0], answer, err)
				}
			}
			scopes := slices.Compact(slices.Sorted(slices.Values(slices.Concat(general, a.needs))))
			if status, answer, err := g.allowed(scopes...).do(t.Context(), a.method, a.path, a.body); err != nil ||
				status != 200 {
				t.Errorf("%s, with %q: status %d, %v, %v", a.name, a.needs, status, answer, err)
			}
		}
		g.allowed(every...).want(t, 200, "DELETE", "/v1/users/"+greater, nil)
	})
}
