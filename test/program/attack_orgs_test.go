package program

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attacked is what the attack across organizations is played with: an application of one organization, somebody of
// another who is signed in, and an API of theirs.
type attacked struct {
	t       *testing.T
	api     *client
	cookies map[string]string
	secrets map[string]string // of applications
}

const attackCallback = "https://attacker.example/cb"

// open opens a page of Signet, or sends a form there, and follows it to where it leads.
func (a *attacked) open(method, address string, form url.Values) (at *url.URL, body string) {
	a.t.Helper()
	plain := *a.api.http
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 10 {
		at, err := url.Parse(address)
		if err != nil {
			a.t.Fatal(err)
		}
		if !strings.HasPrefix(address, a.api.base+"/") {
			return at, ""
		}
		r, err := http.NewRequestWithContext(a.t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			a.t.Fatal(err)
		}
		if method == "POST" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", a.api.base)
		}
		for name, value := range a.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		resp, err := plain.Do(r)
		if err != nil {
			a.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			a.t.Fatal(err)
		}
		for _, c := range resp.Cookies() {
			a.cookies[c.Name] = c.Value
		}
		to := resp.Header.Get("Location")
		if to == "" {
			return at, string(text)
		}
		next, err := at.Parse(to)
		if err != nil {
			a.t.Fatal(err)
		}
		method, address, form = "GET", next.String(), nil
	}
	a.t.Fatalf("sent round in circles at %s", address)
	return nil, ""
}

// follow follows a link of the attacker's, and gives what came to the application, or the page that asks.
func (a *attacked) follow(app, scopes, prompt string) (told url.Values, page string, at *url.URL) {
	a.t.Helper()
	link := url.Values{"client_id": {app}, "redirect_uri": {attackCallback}, "response_type": {"code"},
		"scope": {scopes}}
	if prompt != "" {
		link.Set("prompt", prompt)
	}
	at, page = a.open("GET", a.api.base+"/oauth/authorize?"+link.Encode(), nil)
	return at.Query(), page, at
}

// silently is follow without a page: an error, or a code.
func (a *attacked) silently(app, scopes, want string) (code string) {
	a.t.Helper()
	told, page, at := a.follow(app, scopes, "none")
	if told.Get("error") != want || (told.Get("code") == "") != (want != "") {
		a.t.Fatalf("prompt=none for %q came to %s %s", scopes, at, page)
	}
	return told.Get("code")
}

var onward = regexp.MustCompile(`href="(` + regexp.QuoteMeta(attackCallback) + `\?[^"]+)"`)

// allows is follow by somebody who is asked and allows it.
func (a *attacked) allows(app, scopes, publisher string) (code string) {
	a.t.Helper()
	_, page, at := a.follow(app, scopes, "")
	if !strings.Contains(page, "belongs to another organization: <bdi>"+publisher) {
		a.t.Fatalf("nobody is told whose application it is: %s %s", at, page)
	}
	_, page = a.open("POST", at.String(), url.Values{"do": {"allow"}})
	found := onward.FindStringSubmatch(page)
	if found == nil {
		a.t.Fatalf("allowing came to %s", page)
	}
	to, err := url.Parse(html.UnescapeString(found[1]))
	if err != nil {
		a.t.Fatal(err)
	}
	return to.Query().Get("code")
}

// asks sends a form of an application, which proves who it is.
func (a *attacked) asks(app, path string, pairs ...string) (answer object) {
	a.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(a.t.Context(), "POST", a.api.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(app), url.QueryEscape(a.secrets[app]))
	resp, err := a.api.http.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		a.t.Fatal(err)
	}
	return answer
}

// exchange gives tokens for a code.
func (a *attacked) exchange(app, code string) object {
	a.t.Helper()
	got := a.asks(app, "/oauth/token", "grant_type", "authorization_code", "code", code, "redirect_uri", attackCallback)
	if got["access_token"] == nil {
		a.t.Fatalf("no tokens: %v", got)
	}
	return got
}

// active is what an API learns of a token.
func (a *attacked) active(app string, tokens object) bool {
	a.t.Helper()
	return at[bool](a.t, a.asks(app, "/oauth/introspect", "token", at[string](a.t, tokens, "access_token")), "active")
}

// add adds an application with a secret.
func (a *attacked) add(as *client, app object) (id string) {
	a.t.Helper()
	made := as.want(a.t, 200, "POST", "/v1/apps", app)
	id = at[string](a.t, made, "appId")
	a.secrets[id] = at[string](a.t, made, "clientSecret")
	return id
}

// An organization's settings manager wants people of another organization to hand over who they are by following one
// link, and tokens for that organization's API with it.
func TestAttackAcrossOrganizations(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, "")
		root.base, root.token = s.admin(t).URL, s.admin(t).Token // as browsers know it
		organization := func(name, role string) (id string, session *client) {
			body := newOrg(name, "a long password")
			body["roles"] = []string{role}
			id = at[string](t, root.want(t, 200, "POST", "/v1/orgs/_setup", body), "orgId")
			in := root.with("").want(t, 200, "POST", "/v1/sessions",
				object{"loginName": "owner", "password": "a long password", "orgId": id})
			return id, root.with(at[string](t, in, "token"))
		}
		theirs, manager := organization("Attackers", "ORG_SETTINGS_MANAGER")
		ours, victim := organization("Victims", "ORG_OWNER")
		a := &attacked{t: t, api: root, cookies: map[string]string{"__Host-signet": victim.token},
			secrets: map[string]string{}}

		// They cannot open an application to all organizations, neither a new one nor one they have.
		app := object{"name": "Survey", "type": "APPLICATION_TYPE_WEB", "redirectUris": []string{attackCallback},
			"grantTypes": []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"}}
		open := object{"allOrganizations": true}
		for name, value := range app {
			open[name] = value
		}
		refused := manager.want(t, 403, "POST", "/v1/apps", open)
		if message := at[string](t, refused, "message"); !strings.Contains(message, "IAM_OWNER") {
			t.Errorf("nobody is told who can: %s", message)
		}
		own := a.add(manager, app)
		manager.want(t, 403, "PATCH", "/v1/apps/"+own,
			object{"allOrganizations": true, "updateMask": "allOrganizations"})
		manager.want(t, 403, "GET", "/v1/apps/_all_organizations", nil)
		a.silently(own, "openid", "login_required")

		// With one that the installation has opened, nothing is handed over unasked.
		elsewhere := *root
		elsewhere.org = theirs
		survey := a.add(&elsewhere, open)
		lists := func(root *client) {
			t.Helper()
			listed := at[[]any](t, root.want(t, 200, "GET", "/v1/apps/_all_organizations", nil), "apps")
			if len(listed) != 1 || at[string](t, listed[0].(object), "appId") != survey {
				t.Errorf("the installation sees %v", listed)
			}
		}
		lists(root)
		manager.want(t, 200, "PATCH", "/v1/apps/"+survey,
			object{"name": "Prize draw", "allOrganizations": true, "updateMask": "name,allOrganizations"})
		const all = "openid profile email offline_access urn:signet:roles"
		for _, scopes := range []string{all, "openid", ""} {
			a.silently(survey, scopes, "consent_required")
		}
		tokens := a.exchange(survey, a.allows(survey, "openid email offline_access", "Attackers"))
		a.exchange(survey, a.silently(survey, "openid email", ""))
		a.silently(survey, all, "consent_required")

		// Their tokens do not count at an API of the others before these approve, and not after they have changed their
		// mind.
		api := a.add(victim, object{"name": "Ledger", "type": "APPLICATION_TYPE_API"})
		audience := "urn:signet:app:" + api + ":aud"
		unapproved := a.exchange(survey, a.silently(survey, "openid email "+audience, ""))
		if scope := at[string](t, unapproved, "scope"); strings.Contains(scope, audience) ||
			a.active(api, unapproved) || a.active(api, tokens) {
			t.Errorf("unapproved tokens count: %s", scope)
		}
		approvals := "/v1/apps/" + api + "/audience_approvals"
		manager.want(t, 404, "POST", approvals, object{"clientId": survey})
		into := *manager
		into.org = ours
		into.want(t, 403, "POST", approvals, object{"clientId": survey})
		victim.want(t, 200, "POST", approvals, object{"clientId": survey})
		for side, list := range map[string]object{"given": victim.want(t, 200, "GET", "/v1/audience_approvals", nil),
			"got": manager.want(t, 200, "GET", "/v1/audience_approvals?received=true", nil)} {
			if found := at[[]any](t, list, "approvals"); len(found) != 1 ||
				at[string](t, found[0].(object), "appId") != api {
				t.Errorf("%s: %v", side, found)
			}
		}
		scopes := "openid email offline_access " + audience
		a.silently(survey, scopes, "consent_required") // nobody was asked about that
		approved := a.exchange(survey, a.allows(survey, scopes, "Attackers"))
		if !a.active(api, approved) || a.active(api, unapproved) {
			t.Error("the tokens that were approved count, and no others")
		}
		victim.want(t, 200, "DELETE", approvals+"/"+survey, nil)
		if a.active(api, approved) || !a.active(survey, approved) {
			t.Error("a token counts at the API after the withdrawal, or not for its application any more")
		}
		again := a.asks(survey, "/oauth/token", "grant_type", "refresh_token", "refresh_token",
			at[string](t, approved, "refresh_token"))
		if scope := strings.Fields(at[string](t, again, "scope")); slices.Contains(scope, audience) ||
			!slices.Contains(scope, "email") || a.active(api, again) {
			t.Errorf("after the refresh: %v", again)
		}

		// Applications that were open before the installation had to do it are listed as well.
		p.stop(t)
		s.tamper(t, "DELETE FROM groupings WHERE name LIKE 'apps/%'")
		s.tamper(t, "UPDATE apps SET shape = 1")
		lists(newClient(t, s.start(t), root.token))
		s.run(t, "rebuild", "--check").fine(t)
	})
}
