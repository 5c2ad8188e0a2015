package console

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// view is a view of the console with the objects that its address names.
type view struct {
	route string // as in routes.ts
	path  string
}

// views are all views, for an installation with one object of each kind.
func (o *objects) views() []view {
	fill := strings.NewReplacer(":org", o.org, ":user", o.user, ":app", o.app, ":project", o.project, ":provider",
		o.provider, ":group", o.group, ":grant", o.grant, ":webhook", o.webhook)
	var all []view
	for _, route := range routes(o.t) {
		path := fill.Replace(route)
		if strings.Contains(path, ":") {
			o.t.Fatalf("nothing fills %s", route)
		}
		all = append(all, view{route, path})
	}
	return append(all, o.more...)
}

// routes reads the addresses of all views from the sources.
func routes(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../web/console/src/views/*/routes.ts")
	must(t, err)
	named := regexp.MustCompile(`path: '([^']+)'`)
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return found
}

// objects are one of each kind in an organization.
type objects struct {
	t                                                        testing.TB
	org, user, app, project, provider, group, grant, webhook string
	more                                                     []view // besides one of every route
}

// fill adds one object of each kind to an organization, with names made of a text.
func (s *installation) fill(org, name string) *objects {
	s.t.Helper()
	o := &objects{t: s.t, org: org}
	id := func(answer map[string]any, field string) string { return answer[field].(string) }
	text := func(length int) string {
		long := []rune(strings.Repeat(name+" ", 200/len([]rune(name))+1))
		return strings.TrimSpace(string(long[:min(len(long), length)]))
	}
	if len([]rune(name)) < 20 {
		text = func(int) string { return name }
	}
	person := func(userName string) map[string]any {
		return map[string]any{
			"userName": userName,
			"password": password,
			"profile":  map[string]any{"firstName": text(200), "lastName": text(200), "displayName": text(200)},
			"email":    map[string]any{"email": userName + "@mail.test", "isEmailVerified": true},
			"phone":    map[string]any{"phone": "+41791234567"},
		}
	}
	o.user = id(s.in(org, "POST", "/v1/users/human", person("somebody")), "userId")
	service := id(s.in(org, "POST", "/v1/users/service",
		map[string]any{"userName": "robot", "name": text(200), "description": text(200)}), "userId")
	s.in(org, "POST", "/v1/users/"+service+"/tokens", map[string]any{"name": text(100)})
	s.rest("PUT", "/v1/orgs/"+org+"/members/"+o.user, map[string]any{"roles": []string{"ORG_USER_MANAGER"}})
	o.app = id(s.in(org, "POST", "/v1/apps",
		map[string]any{"name": text(200), "type": "APPLICATION_TYPE_WEB",
			"redirectUris": []string{"https://app.test/callback"}}), "appId")
	o.project = id(s.in(org, "POST", "/v1/projects", map[string]any{"name": text(200)}), "projectId")
	s.in(org, "PUT", "/v1/projects/"+o.project+"/roles/reader",
		map[string]any{"name": text(100), "description": text(200)})
	// Another organization grants a project of its own to this one.
	vendor := s.rest("POST", "/v1/orgs/_setup", map[string]any{
		"org": map[string]any{"name": text(200)},
		"human": map[string]any{"userName": "vendor",
			"profile": map[string]any{"firstName": text(200), "lastName": text(200)},
			"email":   map[string]any{"email": "vendor@mail.test", "isEmailVerified": true}, "password": password},
	})["orgId"].(string)
	granted := id(s.in(vendor, "POST", "/v1/projects", map[string]any{"name": text(200)}), "projectId")
	s.in(vendor, "PUT", "/v1/projects/"+granted+"/roles/reader", map[string]any{"name": text(100)})
	o.grant = id(s.in(vendor, "POST", "/v1/projects/"+granted+"/grants",
		map[string]any{"grantedOrgId": org, "roleKeys": []string{"reader"}}), "grantId")
	o.provider = id(s.in(org, "POST", "/v1/idps/jwt",
		map[string]any{"name": text(200), "jwtEndpoint": "https://idp.test/jwt", "issuer": "https://idp.test",
			"keysEndpoint": "https://idp.test/keys", "headerName": "x-token"}), "idpId")
	o.group = id(s.in(org, "POST", "/v1/groups",
		map[string]any{"name": text(200), "description": text(200)}), "groupId")
	s.in(org, "PUT", "/v1/groups/"+o.group+"/members/"+o.user, map[string]any{})
	s.in(org, "PUT", "/v1/users/"+o.user+"/metadata",
		map[string]any{"set": []map[string]string{{"key": "note", "value": text(200)}}})
	o.webhook = id(s.in(org, "POST", "/v1/webhooks",
		map[string]any{"name": text(200), "url": "https://hook.test/in"}), "webhookId")
	s.rest("POST", "/v1/orgs/"+org+"/invitations", map[string]any{"email": "guest@mail.test", "roles": []string{}})
	return o
}

// Every view can be opened by its address, says nothing in the browser's console, leaves axe nothing to find, and fits
// on a phone. The whole matrix of data, looks and languages is in make driving.
func TestEveryViewCanBeUsed(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	o := s.fill(s.admin.org, "Usual")
	w := s.signIn(t, b, s.admin)
	w.quiet()
	for _, v := range o.views() {
		t.Run(v.route, func(t *testing.T) {
			w := &window{Tab: w.Tab, t: t, s: s}
			made := w.requests(func() { w.visit(v.path) })
			// The first two are those of the frame: what one may, and the own name. The roles take two: those that there
			// are everywhere, and those of the organization.
			most := 8
			if v.route == "/o/:org/users/:user" {
				most = 9 // who it is, and in one go the factors, links, roles, sign-ins and the policy
			}
			if len(made) > most {
				t.Errorf("it takes %d calls: %v", len(made), made)
			}
			if w.Has("main .failure") {
				t.Errorf("it shows a failure: %s", w.Text("main .failure"))
			}
			if found := w.Axe(true); len(found) > 0 {
				t.Errorf("axe finds:\n%s", strings.Join(found, "\n"))
			}
			w.Look(browser.Narrow)
			if wide := w.Overflowing(); len(wide) > 0 {
				t.Errorf("it does not fit on a phone, in %d places:\n%s", len(wide),
					strings.Join(wide[:min(len(wide), 6)], "\n"))
			}
			w.Look(browser.Look{Width: 1280, Height: 900})
			w.quiet()
		})
	}
}
