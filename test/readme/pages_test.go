package readme

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// free is a port that nobody uses, on the name by which pages call this machine.
func free(t *testing.T) string {
	t.Helper()
	return "localhost:" + testkit.FreePort(t)
}

// sit gives somebody a desk in a copy of the repository. Ports and databases of the pages become those of this test.
func sit(t *testing.T, dir string, databases ...string) *desk {
	t.Helper()
	server, example, company := free(t), free(t), free(t)
	replace := append([]string{"localhost:8080", server, "127.0.0.1:8080", server, "localhost:3000",
		example, "localhost:8090", company}, databases...)
	d := &desk{t: t, dir: dir, say: strings.NewReplacer(replace...),
		env: []string{"SIGNET_LISTEN=" + server, "ISSUER=http://" + server, "LISTEN=" + example, "GOFLAGS=-trimpath"}}
	t.Cleanup(d.stop)
	d.open()
	return d
}

// follow does what a page says from top to bottom. A page that does not start a server takes up where the README has
// started one.
func (d *desk) follow(page string, visit func(line string)) (answers []string) {
	d.t.Helper()
	all := blocks(d.t, d.dir, page)
	if len(all) < 2 {
		d.t.Fatalf("%s has %d blocks of commands", page, len(all))
	}
	if !slices.ContainsFunc(all, starts) {
		d.start("go run ./cmd/signet start")
	}
	for _, block := range all {
		switch {
		case starts(block):
			d.start(block)
			continue
		case strings.Contains(block, "signet move"):
			d.stop()
		case strings.Contains(block, "make test"): // this is it
			continue
		}
		answer := d.paste(block, visit)
		refused := strings.Contains(answer, `"code":`) || strings.Contains(answer, `"error":`)
		if mistake := strings.Contains(block, `lastNam"`); refused != mistake {
			d.t.Errorf("%s: this block answered %s\n%s", page, answer, block)
		}
		answers = append(answers, answer)
	}
	return answers
}

// starts tells whether a block is for the first terminal. What is sent to the background stays in the second.
func starts(block string) bool {
	return strings.Contains(block, "signet start") && !strings.Contains(block, "&\n")
}

// person is somebody with a browser, who knows the first administrator's password.
type person struct {
	*desk
	tab *browser.Tab
}

func (p *person) signIn() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "signet-data", "first-admin.json"))
	must(p.t, err)
	var first struct{ LoginName, Password string }
	must(p.t, json.Unmarshal(text, &first))
	p.tab.Fill("#loginName", first.LoginName)
	p.tab.Submit("button.primary")
	p.tab.Fill("#password", first.Password)
	p.tab.Submit("button.primary")
}

// toTheConsole signs in as the page says, and looks at the account from there.
func (p *person) toTheConsole(line string) {
	address, name, password := toOpen(p.t, line)
	if name != "admin@default.localhost" || password == "" {
		p.t.Errorf("the page names %q and %q", name, password)
	}
	p.tab.Open(address)
	p.signIn()
	p.tab.WaitFor("main h1")
	if at := p.tab.At(); !strings.HasPrefix(at, address+"/console/") {
		p.t.Errorf("the address leads to %s", at)
	}
	p.tab.Open(address + "/account")
	p.tab.WaitFor(`a[href="/account/security"]`)
}

// toTheWebApplication signs in there, and out again.
func (p *person) toTheWebApplication(line string) {
	address, _, _ := toOpen(p.t, line)
	p.tab.Open(address)
	p.tab.Click(`a[href="/sign-in"]`)
	if p.tab.WaitFor("h1"); p.tab.Has("#loginName") {
		p.signIn()
	}
	p.tab.WaitFor(`form[action="/sign-out"]`)
	if hello := p.tab.Text("h1"); !strings.HasPrefix(hello, "Hello, ") {
		p.t.Errorf("the application says %q", hello)
	}
	p.tab.Click("button")
	p.tab.WaitUntilAt(address + "/")
	p.tab.WaitFor(`a[href="/sign-in"]`)
}

func (p *person) toTheSinglePage(line string) {
	address, _, _ := toOpen(p.t, line)
	p.tab.Open(address)
	p.tab.Click("#sign-in")
	p.tab.WaitFor("#loginName")
	p.signIn()
	p.tab.WaitFor("#hello.signed-in")
	if hello := p.tab.Text("#hello"); !strings.HasPrefix(hello, "Hello, ") {
		p.t.Errorf("the application says %q", hello)
	}
}

// toTheProgram signs in for the program, and afterwards, in the same browser, for the device.
func (p *person) toTheProgram(line string) {
	address, name, _ := toOpen(p.t, line)
	p.tab.Open(address)
	if name == "" {
		p.signIn()
		p.tab.WaitFor("pre") // "You can close this page.", as Chromium shows text
		return
	}
	p.tab.Submit(`button[value="allow"]`) // the page shows the same code as the device
}

// toTheDevice signs in as somebody to connect a device.
func (p *person) toTheDevice(line string) {
	address, name, password := toOpen(p.t, line)
	p.tab.Open(address)
	p.tab.Fill("#loginName", name)
	p.tab.Submit("button.primary")
	p.tab.Fill("#password", password)
	p.tab.Submit("button.primary")
	p.tab.Submit(`button[value="allow"]`)
}

// toTheCompany accepts an invitation by signing in at the company, and ends in the product.
func (p *person) toTheCompany(line string) {
	address, name, password := toOpen(p.t, line)
	p.tab.Open(address)
	p.tab.Click(`form[action*="/login/idp/"] button`)
	p.tab.Fill("#loginName", name)
	p.tab.Submit("button.primary")
	p.tab.Fill("#password", password)
	p.tab.Submit("button.primary")
	p.tab.WaitFor("#firstName")
	p.tab.Submit("button.primary")
	p.tab.WaitFor(`form[action="/sign-out"]`)
	if hello := p.tab.Text("h1"); hello != "Hello, Eve Evans" {
		p.t.Errorf("the product says %q", hello)
	}
}

func TestTheReadmePastedFromTopToBottom(t *testing.T) {
	fresh, moved := testdb.New(t, testdb.Postgres).URL, testdb.New(t, testdb.Postgres).URL
	d := sit(t, checkout(t), "postgres://signet@db.example.org:5432/signet_moved", moved,
		"postgres://signet@db.example.org:5432/signet", fresh)
	p := &person{desk: d, tab: browser.Start(t).Tab(t)}
	visits := []func(string){p.toTheConsole, p.toTheWebApplication}
	answers := d.follow("README.md", func(line string) {
		visits[0](line)
		visits = visits[1:]
	})
	if len(visits) != 0 {
		t.Errorf("%d times nobody signed in", len(visits))
	}
	if last := answers[len(answers)-1]; !strings.Contains(last, `"userName":"anna"`) {
		t.Errorf("after the move: %s", last)
	}
}

// guides are what has to show at the end of each.
var guides = map[string]struct {
	visit func(p *person) func(line string)
	shown string
}{
	"web-application.md": {visit: func(p *person) func(string) { return p.toTheWebApplication },
		shown: `"clientSecret":"`},
	"single-page.md": {visit: func(p *person) func(string) { return p.toTheSinglePage },
		shown: "the client id is app_"},
	"native.md":             {visit: func(p *person) func(string) { return p.toTheProgram }, shown: `"given_name":`},
	"service-to-service.md": {shown: `"active":true`},
	"github-actions.md":     {shown: `"issuer":"https://token.actions.githubusercontent.com"`},
	"gitlab-ci.md":          {shown: `"issuer":"https://gitlab.com"`},
	"kubernetes.md":         {shown: `"userName":"deployer"`},
	"webhooks.md":           {shown: `"delivered":true`},
	"identity-providers.md": {shown: `"ok":true`},
	"nginx.md":              {shown: `"status":"ok"`},
	"first-business-customer.md": {visit: func(p *person) func(string) { return p.toTheCompany },
		shown: `"state":"STATE_ACCEPTED"`},
	"vendor-and-customers.md": {visit: func(p *person) func(string) { return p.toTheDevice },
		shown: `"urn:signet:app_roles":{"org_`},
	"claims.md": {visit: func(p *person) func(string) { return p.toTheDevice }, shown: `"groups":["k8s-admins"]`},
	"caddy.md":  {shown: `"status":"ok"`},
	"apache.md": {shown: `"status":"ok"`},
}

func TestTheGuidesPastedFromTopToBottom(t *testing.T) {
	dir := checkout(t)
	pages, err := filepath.Glob(filepath.Join(dir, "docs/guides/*.md"))
	must(t, err)
	for _, path := range pages {
		page := filepath.Base(path)
		if page == "README.md" {
			continue
		}
		t.Run(page, func(t *testing.T) {
			guide, known := guides[page]
			if !known {
				t.Fatal("say in the table what this guide has to show")
			}
			must(t, os.RemoveAll(filepath.Join(dir, "signet-data")))
			p := &person{desk: sit(t, dir)}
			visit := func(line string) { t.Errorf("nobody opens %q", line) }
			if guide.visit != nil {
				p.tab = browser.Start(t).Tab(t)
				visit = guide.visit(p)
			}
			answers := strings.Join(p.follow("docs/guides/"+page, visit), "\n")
			if !strings.Contains(answers, guide.shown) {
				t.Errorf("%s does not show %s", answers, guide.shown)
			}
			if page == "webhooks.md" && !strings.Contains(answers, "Received user.") {
				p.read("Received user.", func(string) {})
			}
		})
	}
}

var opens = regexp.MustCompile(`^Open (\S+)(?: and sign in as (\S+) with: (.+))?$`)

func toOpen(t *testing.T, line string) (address, name, password string) {
	t.Helper()
	m := opens.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("nobody knows what to do with %q", line)
	}
	return m[1], m[2], m[3]
}
