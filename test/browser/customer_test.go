//go:build providers

package browser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testkit"
)

// product makes the installation's application one that the operator offers to all customers: its people need a role,
// nobody is asked for consent, and those who accept an invitation begin at its start address. It gives the project.
func (i *installation) product(operator string) (project string) {
	i.t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			q := r.URL.Query()
			if q.Get("iss") != i.url || q.Get("target_link_uri") != i.callback[:len(i.callback)-len("/callback")]+"/orders" {
				i.t.Errorf("the product is started with %v", q)
			}
			http.Redirect(w, r, i.ask("login_hint", q.Get("login_hint")), http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><title>Fieldbook</title><link rel="icon" href="data:,"><p id="arrived">Fieldbook</p></html>`)
	}))
	i.t.Cleanup(shop.Close)
	at := strings.Replace(shop.URL, "127.0.0.1", "localhost", 1)
	i.callback = at + "/callback"
	i.clientID = i.api("POST", "/v1/apps", values{"name": "Fieldbook", "type": "APPLICATION_TYPE_SINGLE_PAGE",
		"redirectUris": []string{i.callback}, "initiateLoginUri": at + "/start"})["appId"].(string)
	project = i.api("POST", "/v1/projects", values{"name": "Fieldbook"})["projectId"].(string)
	i.api("PUT", "/v1/projects/"+project+"/roles/viewer", values{"name": "Viewer"})
	i.api("PUT", "/v1/apps/"+i.clientID+"/role_settings",
		values{"projectId": project, "rolesInTokens": true, "roleRequired": true})
	i.api("PATCH", "/v1/apps/"+i.clientID, values{"allOrganizations": true, "updateMask": "allOrganizations"})
	app := i.api("GET", "/v1/apps/"+i.clientID, nil)["app"].(values)
	i.as(operator, "PUT", "/v1/apps/"+i.clientID+"/first_party", values{"firstParty": true},
		"if-match", app["details"].(values)["sequence"].(string))
	return project
}

// as calls the API with a token.
func (i *installation) as(token, method, path string, body any, header ...string) values {
	i.t.Helper()
	status, read := i.call(token, method, path, body, header...)
	if status != http.StatusOK {
		i.t.Fatalf("%s %s: %d %v", method, path, status, read)
	}
	return read
}

// session signs somebody in over the API.
func (i *installation) session(loginName, password string) string {
	i.t.Helper()
	return i.as("", "POST", "/v1/sessions", values{"loginName": loginName, "password": password})["token"].(string)
}

// operator is a person who owns the installation, with a session.
func (i *installation) operator() string {
	i.t.Helper()
	i.api("PUT", "/v1/members/"+i.person("operator"), values{"roles": []string{"IAM_OWNER"}})
	return i.session("operator", firstPassword)
}

func TestProvidersOfACustomerFromItsFirstDay(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	for _, routed := range []string{"by DNS", "by the operator's word"} {
		t.Run(routed, func(t *testing.T) {
			dns := &names{texts: map[string]string{}}
			i, sink := withMail(t, allowed, func(c *server.Config) { c.Resolver = dns })
			operator := i.operator()
			project := i.product(operator)
			i.as(operator, "PUT", "/v1/members/"+i.person("helper"), values{"roles": []string{"IAM_SUPPORT"}})
			helper := i.session("helper", firstPassword)

			// The operator invites the administrator, and nobody invents a password for anybody else.
			const domain = "acme.example"
			console := i.console(i.visitor(t, b))
			console.Open(console.Console + "/")
			console.v.name("operator")
			console.v.password(firstPassword)
			console.Visit("/organizations?add=organization")
			console.Type("Name of the organization", "Acme")
			console.Type("Domain", domain)
			console.Type("E-mail", "ada@"+domain)
			console.pictured("set-up")
			console.Press("Set up")
			org := console.shown("o")
			v := i.visitor(t, b)
			v.Open(mailTo(t, sink, "ada@"+domain))
			v.sees("main", "Acme")
			v.Submit(`a[href*="with=password"]`)
			v.names("Ada", "Admin")
			v.Fill("#newPassword", otherPassword)
			v.Fill("#repeatPassword", otherPassword)
			v.Submit("main form button.primary")
			v.WaitUntilAt(i.url + "/account")
			admin := i.session("ada@"+domain, otherPassword)
			grant := i.api("POST", "/v1/projects/"+project+"/grants",
				values{"grantedOrgId": org, "roleKeys": []string{"viewer"}})["grantId"].(string)
			i.as(admin, "POST", "/v1/granted_projects/"+grant+"/_accept", values{})

			// The administrator adds the provider. Nobody sees it before a check has passed.
			ada := i.console(v)
			ada.Visit("/o/" + org + "/providers?add=oidc")
			port := testkit.FreePort(t)
			ada.Type("Name", "Acme")
			ada.Type("Issuer", foreignAt(port))
			ada.Type("Client ID", foreignClient)
			ada.Type("Client secret", foreignSecret)
			ada.Click(ada.Labelled("The first sign-in creates a user"))
			ada.Press("Add")
			ada.Sees("This provider is a draft.")
			f := i.startForeign(port, ada.shown("providers"), nil)
			idp := func() values { return i.as(admin, "GET", "/v1/idps/"+f.idp, nil)["idp"].(values) }
			if got := idp(); got["state"] != "STATE_DRAFT" || got["offered"] == true {
				t.Errorf("%v", got)
			}
			ada.Press("Check now")
			ada.Sees("The check has passed")
			ada.Sees("Offered at sign-in")
			ada.pictured("provider")
			if got := idp(); got["offered"] != true {
				t.Errorf("%v", got)
			}

			// It becomes the only way. As long as no domain leads there, she reads so before she saves and afterwards.
			ada.Visit("/o/" + org + "/policy")
			ada.Press("Preview: Only our provider")
			ada.Sees("Nobody who types a login name is led to the identity provider")
			ada.pictured("policy")
			ada.Press("Save")
			ada.Sees("The policy was saved, but nobody who types a login name is led to the identity provider")
			ada.quiet()
			at := "/v1/orgs/" + org + "/domains"
			if routed == "by DNS" {
				ada.Visit("/o/" + org + "/domains")
				ada.Press("More actions: " + domain)
				ada.Press("Prove the domain by DNS")
				ada.pictured("domain")
				for _, d := range i.as(admin, "GET", at, nil)["domains"].([]any) {
					if d := d.(values); d["domain"] == domain {
						ada.Sees(d["verificationName"].(string))
						dns.set(d["verificationName"].(string), d["verificationValue"].(string))
					}
				}
				ada.Press("Check now")
				ada.Sees("Proven by DNS")
			} else {
				console.Visit("/o/" + org + "/domains")
				console.Press("More actions: " + domain)
				console.Press("Lead people to the identity provider")
				console.Sees("You vouch for it.")
				console.Press("Lead people to the identity provider")
				console.Sees("Leads to the provider, vouched for by")
			}
			policy := i.as(admin, "GET", "/v1/orgs/"+org+"/policy", nil)["policy"]
			said := i.as(admin, "POST", "/v1/orgs/"+org+"/policy/_preview", values{"policy": policy})
			if warnings, err := json.Marshal(said["warnings"]); err != nil || strings.Contains(string(warnings), "NO_ROUTED_DOMAIN") {
				t.Errorf("a domain leads to the provider, and saving warns of %s: %v", warnings, err)
			}

			// A colleague is invited to the product, comes through the provider, and lands in the product.
			start := strings.TrimSuffix(i.callback, "/callback") + "/orders"
			ada.Visit("/o/" + org + "/invitations?add=invitation")
			ada.Type("E-mail", "eve@"+domain)
			ada.Click(ada.Labelled("Fieldbook: Viewer"))
			ada.Pick("Application", "Field", "Fieldbook")
			ada.Type("Page of the application", start)
			ada.pictured("invite")
			ada.Press("Invite")
			ada.Sees("The invitation was sent.")
			v = i.visitor(t, b)
			v.Open(mailTo(t, sink, "eve@"+domain))
			v.sees("main", "Acme")
			if v.Has(`a[href*="with=password"]`) {
				t.Error("a password is offered where only the provider counts")
			}
			v.button(f.idp)
			f.at(v, "eve")
			v.creates()
			v.arrives()
			i.holds(v, org, "viewer")

			// In another browser: the name once, and one click. From then on none.
			v = i.visitor(t, b)
			v.Open(i.ask())
			v.name("eve@" + domain)
			f.at(v, "eve")
			v.arrives()
			person := i.holds(v, org, "viewer")
			i.as(admin, "DELETE", "/v1/users/"+person+"/sessions", nil)
			v.Open(i.ask("login_hint", "eve@"+domain))
			v.arrives()

			// A name that nobody has is led there, too; what comes back decides.
			v = i.visitor(t, b)
			v.Open(i.ask())
			v.name("nobody@" + domain)
			v.WaitFor("input[name=login]")
			if !strings.HasPrefix(v.At(), f.address) {
				t.Errorf("at %s", v.At())
			}

			// A third person comes through the provider and has no role.
			v = i.visitor(t, b)
			v.Open(i.ask())
			v.name("tom@" + domain)
			f.at(v, "tom")
			v.creates()
			v.sees("main", "no role")
			v.saysNothingBad("no role")
			i.finds(helper, org, "tom", "role_missing")
			support := i.console(i.visitor(t, b))
			support.Open(support.Console + "/")
			support.v.name("helper")
			support.v.password(firstPassword)
			support.Settle()
			support.Visit("/o/" + org + "/search?q=tom")
			support.Click(`main table a[href*="/users/usr_"]`)
			support.shown("users")
			const why = "The application is only for people with a role."
			support.Sees(why)
			support.Mark("the reason", fmt.Sprintf(`[...document.querySelectorAll('main td *')].find((e) => e.innerText.includes(%q))`, why))
			support.pictured("support")
			support.quiet()

			// Another customer's people go on with their passwords.
			made := i.as(operator, "POST", "/v1/orgs/_setup", values{
				"org": values{"name": "Umbrella", "domain": "umbrella.example"},
				"human": values{"userName": "owner", "password": firstPassword,
					"profile": values{"firstName": "O", "lastName": "W"},
					"email":   values{"email": "owner@umbrella.example", "isEmailVerified": true}},
			})
			other := made["orgId"].(string)
			theirs := i.session("owner@umbrella.example", firstPassword)
			grant = i.api("POST", "/v1/projects/"+project+"/grants",
				values{"grantedOrgId": other, "roleKeys": []string{"viewer"}})["grantId"].(string)
			i.as(theirs, "POST", "/v1/granted_projects/"+grant+"/_accept", values{})
			me := i.as(theirs, "GET", "/v1/users/me", nil)["user"].(values)["userId"].(string)
			i.as(theirs, "PUT", "/v1/users/"+me+"/app_roles/"+project, values{"roleKeys": []string{"viewer"}})
			v = i.visitor(t, b)
			v.Open(i.ask())
			v.name("owner@umbrella.example")
			v.password(firstPassword)
			v.arrives()
			i.holds(v, other, "viewer")

			// The provider is down: a known name and an unknown one see the same.
			i.as(admin, "PATCH", "/v1/idps/"+f.idp, values{"oidc": values{"issuer": "http://127.0.0.1:1",
				"clientSecret": "x"}, "updateMask": "oidc.issuer,oidc.clientSecret"})
			var seen []string
			for _, name := range []string{"eve", "nobody"} {
				v = i.visitor(t, b)
				v.Open(i.ask())
				v.name(name + "@" + domain)
				v.sees("main", "does not answer")
				v.saysNothingBad("the provider is down")
				text, _, _ := strings.Cut(v.Text("main"), "Request ID")
				seen = append(seen, text)
			}
			if seen[0] != seen[1] {
				t.Errorf("a known name sees %q, an unknown one %q", seen[0], seen[1])
			}
		})
	}
}

// person is somebody at the console.
type person struct {
	browser.Window
	v *visitor
}

func (i *installation) console(v *visitor) person {
	v.Look(browser.Look{Width: 1280, Height: 800})
	return person{browser.Window{Tab: v.Tab, Console: i.url + "/console"}, v}
}

// shown waits for the view of an object of a kind, and gives the object's identifier.
func (p person) shown(kind string) string {
	p.v.t.Helper()
	p.Until("an object is shown", fmt.Sprintf(`/\/%s\/\w+_\w+$/.test(location.pathname)`, kind))
	p.Settle()
	return p.At()[strings.LastIndex(p.At(), "/")+1:]
}

// quiet checks that the browser had nothing to complain about.
func (p person) quiet() { p.v.t.Helper(); p.v.quiet() }

// finds has somebody of the support look for a person of an organization, and for why they did not get in.
func (i *installation) finds(helper, org, name, reason string) {
	i.t.Helper()
	found := i.as(helper, "GET", "/v1/users/_search?allOrganizations=true&query="+name, nil)["results"].([]any)
	if len(found) != 1 {
		i.t.Fatalf("support finds %v", found)
	}
	id := found[0].(values)["user"].(values)["userId"].(string)
	events, err := json.Marshal(i.as(helper, "GET", "/v1/events?userId="+id, nil, "x-service-orgid", org))
	must(i.t, err)
	if !strings.Contains(string(events), `"reason":"`+reason+`"`) || !strings.Contains(string(events), i.clientID) {
		i.t.Errorf("support reads %s", events)
	}
}

// holds exchanges the code that a visitor has arrived with, and checks the roles that the product is told.
func (i *installation) holds(v *visitor, org, role string) (userID string) {
	i.t.Helper()
	at, err := url.Parse(v.At())
	must(i.t, err)
	resp, err := http.PostForm(i.direct+"/oauth/token", url.Values{"grant_type": {"authorization_code"},
		"code": {at.Query().Get("code")}, "client_id": {i.clientID}, "redirect_uri": {i.callback},
		"code_verifier": {strings.Repeat("v", 43)}})
	must(i.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(i.t, err)
	var tokens values
	must(i.t, json.Unmarshal(text, &tokens))
	token, _ := tokens["access_token"].(string)
	told := i.as(token, "GET", "/oauth/userinfo", nil)
	roles, err := json.Marshal(told["urn:signet:app_roles"])
	must(i.t, err)
	if !strings.Contains(string(roles), org) || !strings.Contains(string(roles), role) {
		i.t.Errorf("the product is told %v", told)
	}
	return told["sub"].(string)
}
