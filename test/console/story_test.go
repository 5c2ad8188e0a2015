package console

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// From the first start to somebody who is signed in to an application: all of it in the browser, as the README's reader
// does it.
func TestFromTheFirstStartToAnApplication(t *testing.T) { firstHour(t, testdb.SQLite) }

func firstHour(t *testing.T, engine string) {
	b := browser.Start(t)
	s := start(t, engine)
	w := &window{Tab: b.Tab(t), t: t, s: s}
	w.Look(browser.Look{Width: 1280, Height: 900})
	w.Open(s.url)
	w.enter(s.admin)
	w.settle()

	w.press("Users")
	w.settle()
	w.press("Add a user")
	w.fill("User name", "anna")
	w.fill("First name", "Anna")
	w.fill("Last name", "Arnold")
	w.fill("E-mail", "anna at mail.test")
	w.fill("Password", password)
	w.press("Add")
	w.until("the address is refused at its field",
		fmt.Sprintf(`document.querySelector(%q).getAttribute('aria-invalid') === 'true'`, w.labelled("E-mail")))
	w.fill("E-mail", "anna@mail.test")
	w.Click(w.labelled("Does not have to be changed at the first sign-in"))
	w.press("Add")
	w.sees("The user was added.")
	w.sees("Anna Arnold")

	address := "localhost:" + testkit.FreePort(t)
	w.press("Applications")
	w.settle()
	w.press("Add an application")
	w.Click(w.mark("web applications can be chosen",
		`[...top.querySelectorAll('a.kind')].find((a) => a.innerText.startsWith('Web application'))`))
	w.fill("Name", "Shop")
	w.fill("Redirect addresses", "http://"+address+"/callback")
	w.fill("Redirect addresses after signing out", "http://"+address+"/")
	w.press("Add")
	w.sees("The application was added.")
	var client struct{ ID, Secret string }
	w.Evaluate(fmt.Sprintf(`({ID: document.querySelector('[role="dialog"] dd .ends').textContent, Secret: document.querySelector(%q).value})`, w.labelled("Client secret")), &client)
	w.press("To the application")
	w.until("the application's page is there", fmt.Sprintf(`location.pathname.endsWith('/apps/%s')`, client.ID))
	w.settle()

	shop(t, address, "ISSUER="+s.url, "CLIENT_ID="+client.ID, "CLIENT_SECRET="+client.Secret)
	anna := b.Tab(t)
	anna.Open("http://" + address)
	anna.Click(`a[href="/sign-in"]`)
	(&window{Tab: anna, t: t, s: s}).enter(account{login: "anna@default.localhost", password: password})
	anna.WaitFor(`form[action="/sign-out"]`)
	if hello := anna.Text("h1"); !strings.HasPrefix(hello, "Hello, Anna") {
		t.Errorf("the application says %q", hello)
	}

	// What happened can be seen.
	w.press("Event log")
	w.settle()
	w.sees("The person signed in")
	w.sees("Anna Arnold")
	w.quiet()
}

// An operator sets up a customer with an e-mail address alone; the administrator follows the link and owns it.
func TestACustomerIsSetUpByInvitation(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	w := s.signIn(t, b, s.admin)
	w.visit("/organizations?add=organization")
	w.fill("Name of the organization", "Acme")
	// The other way keeps what was typed of the organization, and so does the way back.
	w.Click("[id='orgs.byPassword']")
	w.labelled("Password")
	w.until("the name is still there", fmt.Sprintf(`document.querySelector(%q).value === 'Acme'`,
		w.labelled("Name of the organization")))
	w.Click("[id='orgs.byInvitation']")
	w.fill("E-mail", "jo at acme.test")
	w.press("Set up")
	w.until("the address is refused at its field",
		fmt.Sprintf(`document.querySelector(%q).getAttribute('aria-invalid') === 'true'`, w.labelled("E-mail")))
	w.fill("E-mail", "jo@acme.test")
	w.press("Set up")
	w.sees("Give this link to the person")
	var link string
	w.Evaluate(fmt.Sprintf(`document.querySelector(%q).value`, w.labelled("Link for jo@acme.test")), &link)
	w.press("Done")
	w.sees("The organization was set up.")
	w.until("the console is at the organization", `/^\/console\/o\/org_\w+$/.test(location.pathname)`)
	w.settle()
	w.press("Invitations")
	w.settle()
	w.sees("jo@acme.test")
	w.sees("Owner")
	w.quiet()

	jo := b.Tab(t)
	jo.Open(link)
	jo.Click(`a[href*="with=password"]`)
	jo.WaitFor("#userName")
	var offered string
	jo.Evaluate(`document.querySelector('#userName').value`, &offered)
	if offered != "jo" {
		t.Errorf("the name %q is offered", offered)
	}
	for field, text := range map[string]string{"#firstName": "Jo", "#lastName": "Doe", "#newPassword": password,
		"#repeatPassword": password} {
		jo.Fill(field, text)
	}
	jo.Submit("button.primary")
	own := &window{Tab: jo, t: t, s: s}
	own.sees("jo@acme.localhost")
	jo.Open(s.url + "/console/")
	own.settle()
	own.sees("Acme")
}

// Whoever may make the keys of a service user decides about what other organizations offer it, and sees what waits
// there.
func TestOffersToAServiceUser(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	home, wanted, unwanted := s.newOrganization("Home"), s.newOrganization("Wanted"), s.newOrganization("Unwanted")
	robot := s.in(home, "POST", "/v1/users/service",
		map[string]any{"userName": "robot", "name": "Robot"})["userId"].(string)
	for _, host := range []string{wanted, unwanted} {
		s.rest("PUT", "/v1/orgs/"+host+"/members/"+robot, map[string]any{"roles": []string{"ORG_OWNER_VIEWER"}})
	}
	roles := func() string {
		return fmt.Sprint(s.in(home, "GET", "/v1/users/"+robot+"/memberships", nil)["memberships"],
			s.rest("GET", "/v1/orgs/"+wanted+"/members", nil)["members"],
			s.rest("GET", "/v1/orgs/"+unwanted+"/members", nil)["members"])
	}
	if strings.Contains(roles(), robot) {
		t.Fatalf("roles count before anybody has accepted: %s", roles())
	}
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + home + "/users/" + robot + "/access")
	w.press("Accept: Wanted")
	w.sees("The service user gets these roles in “Wanted”: Viewer.")
	w.press("Accept")
	w.sees("The offer was accepted.")
	w.until("the list is read anew", `document.querySelector('[aria-label="Accept: Wanted"]') === null`)
	w.press("Decline: Unwanted")
	w.sees("“Unwanted” is not told.")
	w.press("Decline")
	w.sees("The offer was declined.")
	w.until("no offer is left", `!document.body.innerText.includes('Offers of other organizations')`)
	if found := roles(); strings.Count(found, robot) != 1 {
		t.Errorf("afterwards: %s", found)
	}

	// What a group gives beyond that waits.
	group := s.in(wanted, "POST", "/v1/groups", map[string]any{"name": "More"})["groupId"].(string)
	s.in(wanted, "PUT", "/v1/groups/"+group+"/roles", map[string]any{"roles": []string{"ORG_OWNER"}})
	s.in(wanted, "PUT", "/v1/groups/"+group+"/members/"+robot, map[string]any{})
	w.visit("/o/" + home + "/users/" + robot + "/access")
	w.sees("Roles elsewhere that nobody has accepted")
	w.sees("(not accepted yet)")
	w.quiet()
}

// shop runs the example of a web application.
func shop(t *testing.T, address string, environment ...string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-o", binary,
		"github.com/signet-idm/signet/examples/web").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), append(environment, "LISTEN="+address)...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "Open ") {
		t.Fatalf("the application says %q: %v", line, err)
	}
}

func TestADomainLeadsToTheProvider(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	domain := s.rest("GET", "/v1/orgs/"+org+"/domains", nil)["domains"].([]any)[0].(map[string]any)
	name := domain["domain"].(string)
	routed := func() any {
		found := s.rest("GET", "/v1/orgs/"+org+"/domains", nil)["domains"].([]any)[0].(map[string]any)
		return found["isRouted"] == true
	}
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/domains")
	w.press("More actions: " + name)
	w.press("Lead people to the identity provider")
	w.sees("is led to the identity provider of this organization, although DNS has not proven the domain. You vouch for it.")
	w.press("Lead people to the identity provider")
	w.sees("Leads to the provider, vouched for by")
	if routed() != true {
		t.Error("the domain is not routed")
	}
	w.press("More actions: " + name)
	w.press("Stop leading people to the identity provider")
	w.sees("are asked for a password again")
	w.press("Stop leading people to the identity provider")
	w.until("nobody vouches for it any more", `!document.body.innerText.includes('vouched for by')`)
	if routed() != false {
		t.Error("the domain is still routed")
	}
	w.quiet()
}

// An owner of the installation sees what stands there and what stops counting before the mark is set.
func TestTheOperatorsOwnApplicationIsMarked(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	vendor := s.newOrganization("Vendor")
	app := s.in(vendor, "POST", "/v1/apps", map[string]any{"name": "Fieldbook", "type": "APPLICATION_TYPE_WEB",
		"redirectUris": []string{"https://fieldbook.example/callback"}})["appId"].(string)
	marked := func() bool {
		found := s.in(vendor, "GET", "/v1/apps/"+app, nil)["app"].(map[string]any)
		return found["firstParty"] != nil
	}
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + vendor + "/apps/" + app + "/access")
	w.sees("Operator’s own application")
	w.sees("Not marked")
	w.press("Mark")
	w.sees("Mark as the operator’s own?")
	w.fill("To confirm, type", "Fieldbook")
	w.press("Mark")
	w.sees("Marked by")
	if !marked() {
		t.Error("it is not marked")
	}
	w.until("the dialog is gone, and the page is still", `document.querySelector('dialog[open]') === null`)
	w.settle()
	w.press("Remove mark")
	w.sees("All tokens of this application end.")
	w.press("Remove mark")
	w.sees("Not marked")
	if marked() {
		t.Error("it is marked still")
	}
	w.quiet()
}
