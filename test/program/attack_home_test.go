package program

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

// guests are two organizations with an owner each: a firm, and a host that gives people of the firm roles.
type guests struct {
	p              *process
	root           *client
	firm, host     string
	owner, hosting *client // the owners of the two
}

func newGuests(t *testing.T, s *site, p *process) *guests {
	t.Helper()
	g := &guests{p: p, root: newClient(t, p, s.admin(t).Token)}
	open := func(name string) (string, *client) {
		id, _, domain := g.root.organization(t, name, strings.ToLower(name)+"@mail.example")
		c := newClient(t, p, "")
		c.token = c.signIn(t, "owner@"+domain, herPassword)
		return id, c
	}
	g.firm, g.owner = open("Firm")
	g.host, g.hosting = open("Host")
	return g
}

// gives has the host give somebody of the firm roles, which that person accepts.
func (g *guests) gives(t *testing.T, to *client, userID string, roles ...string) {
	t.Helper()
	offer := at[string](t, g.root.want(t, 200, "PUT", "/v1/orgs/"+g.host+"/members/"+userID,
		object{"roles": roles}), "offerId")
	to.want(t, 200, "POST", "/v1/users/me/offers/"+offer+"/_accept", object{})
}

// person signs somebody of the firm in who has a password that somebody else has set, and has them choose one of their
// own.
func (g *guests) person(t *testing.T, name string) *client {
	t.Helper()
	c := newClient(t, g.p, "")
	c.token = at[string](t, c.want(t, 200, "POST", "/v1/sessions",
		object{"loginName": name, "password": hisPassword, "orgId": g.firm}), "token")
	c.want(t, 200, "PUT", "/v1/users/me/password",
		object{"currentPassword": hisPassword, "newPassword": "a password of my own"})
	return c
}

// Mallory has a friend make her an owner of another organization, so that her own one cannot end her account.
func TestAttackAGuestCannotBeOffboarded(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		sink := mailtest.Start(t)
		p := s.start(t, "--smtp-url", sink.URL, "--smtp-from", "no-reply@id.example")
		g := newGuests(t, s, p)
		manager := g.owner.person(t, "manager", "manager@mail.example", true)
		g.owner.want(t, 200, "PUT", "/v1/orgs/"+g.firm+"/members/"+manager,
			object{"roles": []string{"ORG_USER_MANAGER"}})
		m := newClient(t, p, "")
		m.token = at[string](t,
			m.want(t, 200, "POST", "/v1/sessions",
				object{"loginName": "manager", "password": hisPassword, "orgId": g.firm}), "token")

		id := g.owner.person(t, "mallory", "mallory@mail.example", false)
		user := "/v1/users/" + id
		g.gives(t, g.person(t, "mallory"), id, "ORG_OWNER")
		// Who gives access to the account must own the firm.
		for _, path := range []string{"/password", "/email", "/user_name"} {
			body := map[string]object{"/password": {"password": hisPassword}, "/email": {"email": "other@mail.example"},
				"/user_name": {"userName": "other"}}[path]
			method := map[bool]string{true: "POST", false: "PUT"}[path == "/password"]
			if refused := m.want(t, 403, method, user+path, body); reasonOf(t, refused) != "TARGET_HOLDS_MORE" {
				t.Errorf("%s: %v", path, refused)
			}
			g.owner.want(t, 200, method, user+path, body)
		}
		// The host reads that it was done.
		read, _ := g.hosting.want(t, 200, "GET", "/v1/events?types=org.guest_credential_set.v1", nil)["events"].([]any)
		if len(read) != 3 {
			t.Errorf("the host reads %v", read)
		}
		// She is the only one who can act there.
		auditor := g.hosting.person(t, "auditor", "auditor@mail.example", true)
		g.hosting.want(t, 200, "PUT", "/v1/orgs/"+g.host+"/members/"+auditor,
			object{"roles": []string{"ORG_OWNER_VIEWER"}})
		g.root.org = g.host
		owner := at[string](t, g.hosting.want(t, 200, "GET", "/v1/users/me", nil), "user", "userId")
		g.hosting.want(t, 200, "DELETE", "/v1/orgs/"+g.host+"/members/"+owner, nil)
		// Taking away is for who manages the firm's users.
		m.want(t, 200, "DELETE", user+"/sessions", nil)
		m.want(t, 200, "POST", user+"/_lock", nil)
		if refused := m.want(t, 403, "POST", user+"/_unlock", nil); reasonOf(t, refused) != "TARGET_HOLDS_MORE" {
			t.Errorf("unlock: %v", refused)
		}
		g.owner.want(t, 200, "POST", user+"/_unlock", nil)
		m.want(t, 200, "POST", user+"/_deactivate", nil)
		m.want(t, 200, "DELETE", user, nil)
		// The host is told that it has no owner any more: once when she was locked, and once when she was deactivated.
		read, _ = g.root.want(t, 200, "GET", "/v1/events?types=org.owner_lost.v1", nil)["events"].([]any)
		if len(read) != 2 {
			t.Errorf("the host reads %v", read)
		}
		for told := false; !told; {
			mail := sink.Next(t)
			told = mail.To == "auditor@mail.example" && strings.Contains(mail.Text, "Host") &&
				strings.Contains(mail.Text, "ORG_OWNER")
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// A host gives a guest roles, and puts her into as many groups as it can, to keep her from the single sign-on of her
// own organization and that one from managing her.
func TestAttackAHostTakesAGuestAwayFromHome(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, "--outbound-allow", "127.0.0.0/8,::1/128")
		g := newGuests(t, s, p)
		sso := newSilent(t)
		sso.says("vera", nil)
		base := strings.Replace(p.url, "127.0.0.1", "localhost", 1)
		way := base + "/login/idp/" + sso.at(t, g.owner, "Firm", object{"autoRegister": true}) + "?to=/account"
		newcomer := newBrowser(t, base)
		newcomer.creates(newcomer.press(newcomer.get(way)))
		signsIn := func() {
			t.Helper()
			b := newBrowser(t, base)
			if b.press(b.get(way)); b.session() == "" || !strings.HasPrefix(b.at, base+"/account") {
				t.Errorf("vera comes to %s", b.at)
			}
		}
		vera := ""
		users, _ := g.owner.want(t, 200, "GET", "/v1/users", nil)["users"].([]any)
		for _, u := range users {
			if id := at[string](t, u.(object),
				"userId"); id != at[string](t, g.owner.want(t, 200, "GET", "/v1/users/me", nil), "user", "userId") {
				vera = id
			}
		}
		name := at[string](t, g.owner.want(t, 200, "GET", "/v1/users/"+vera, nil), "user", "userName")
		g.owner.want(t, 200, "POST", "/v1/users/"+vera+"/password",
			object{"password": hisPassword, "noChangeRequired": true})
		her := g.person(t, name)
		g.gives(t, her, vera) // a guest without roles
		signsIn()
		for i := range 200 {
			group := at[string](t,
				g.hosting.want(t, 200, "POST", "/v1/groups", object{"name": fmt.Sprint("group ", i)}), "groupId")
			g.hosting.want(t, 200, "PUT", "/v1/groups/"+group+"/members/"+vera, nil)
		}
		g.gives(t, her, vera, "ORG_OWNER")
		signsIn()
		links, _ := g.owner.want(t, 200, "GET", "/v1/users/"+vera+"/links", nil)["links"].([]any)
		if len(links) != 1 || at[bool](t, links[0].(object), "suspended") {
			t.Errorf("her links are %v", links)
		}
		// Home still manages her.
		group := at[string](t, g.owner.want(t, 200, "POST", "/v1/groups", object{"name": "Ours"}), "groupId")
		g.owner.want(t, 200, "PUT", "/v1/groups/"+group+"/members/"+vera, nil)
		g.owner.want(t, 200, "POST", "/v1/users/"+vera+"/password",
			object{"password": hisPassword, "noChangeRequired": true})
		// The host's owner drops the own roles. She leaves all the same.
		owner := at[string](t, g.hosting.want(t, 200, "GET", "/v1/users/me", nil), "user", "userId")
		g.hosting.want(t, 200, "DELETE", "/v1/orgs/"+g.host+"/members/"+owner, nil)
		c := newClient(t, p, "")
		c.token = at[string](t,
			c.want(t, 200, "POST", "/v1/sessions",
				object{"loginName": name, "password": hisPassword, "orgId": g.firm}), "token")
		c.want(t, 200, "POST", "/v1/users/me/orgs/"+g.host+"/_leave", nil)
		g.root.org = g.host
		read, _ := g.root.want(t, 200, "GET", "/v1/events?types=org.owner_lost.v1", nil)["events"].([]any)
		if len(read) != 1 {
			t.Errorf("the host reads %v", read)
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// Mallory has very many organizations give somebody of her firm roles, so that nobody can stop that account any more,
// and so that the log fills with errors of the server.
func TestAttackAGuestOfVeryManyOrganizations(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		id := at[string](t, root.want(t, 200, "POST", "/v1/users/human", object{
			"userName": "guest",
			"profile":  object{"firstName": "Jo", "lastName": "Doe"},
			"email":    object{"email": "guest@example.com", "isEmailVerified": true},
		}), "userId")
		for i := range event.MaxObjects + 1 {
			made := root.want(t, 200, "POST", "/v1/orgs/_setup", newOrg(fmt.Sprint("Host ", i), herPassword))
			members := "/v1/orgs/" + at[string](t, made, "orgId") + "/members/"
			root.want(t, 200, "PUT", members+id, object{"roles": []string{"ORG_OWNER"}})
			root.want(t, 200, "DELETE", members+at[string](t, made, "userId"), nil)
		}
		user := "/v1/users/" + id
		root.want(t, 200, "POST", user+"/password", object{"password": hisPassword})
		for _, do := range []string{"_lock", "_unlock", "_deactivate", "_reactivate"} {
			root.want(t, 200, "POST", user+"/"+do, nil)
		}
		root.want(t, 200, "DELETE", user, nil)
		p.stop(t)
		text, _ := p.stderr.state()
		for candidate := range strings.Lines(text) {
			if l, ok := parseLine(candidate); !ok || l.Level == "ERROR" {
				t.Errorf("the log says %s", candidate)
			}
		}
	})
}
