//go:build joining

package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
)

// elsewhere sets up another organization with an owner, and gives the owner's token and the organization.
func (i *installation) elsewhere(name string) (org, token string) {
	i.t.Helper()
	made := i.api("POST", "/v1/orgs/_setup", map[string]any{
		"org": map[string]any{"name": name},
		"human": map[string]any{"userName": "owner", "password": firstPassword,
			"profile": map[string]any{"firstName": "O", "lastName": "W"},
			"email":   map[string]any{"email": "owner@" + strings.ToLower(name) + ".test", "isEmailVerified": true}},
	})
	org = made["orgId"].(string)
	status, in := i.call("", "POST", "/v1/sessions",
		map[string]any{"loginName": "owner", "password": firstPassword, "orgId": org})
	if status != http.StatusOK {
		i.t.Fatalf("%v", in)
	}
	token = in["token"].(string)
	if in["passwordChangeRequired"] == true {
		if status, read := i.call(token, "PUT", "/v1/users/me/password",
			map[string]any{"currentPassword": firstPassword, "newPassword": otherPassword}); status != http.StatusOK {
			i.t.Fatalf("%v", read)
		}
	}
	return org, token
}

func (i *installation) state(id string) map[string]any {
	i.t.Helper()
	return i.api("GET", "/v1/orgs/"+i.org+"/invitations/"+id, nil)["invitation"].(map[string]any)
}

func TestJoiningWithAPasskey(t *testing.T) {
	browser.NeedAxe(t)
	i, sink := withMail(t)
	v := i.visitor(t, browser.Start(t))
	v.Authenticator(true)
	id := i.invite("pia@mail.test", nil)
	v.Open(mailTo(t, sink, "pia@mail.test"))
	v.Submit(`a[href*="with=passkey"]`)
	v.names("Pia", "Passkey")
	v.Submit("main form button.primary")
	v.saysNothingBad("passkey")
	v.Submit(".passkey button")
	v.WaitUntilAt(i.url + "/account")
	v.sees("main", "pia@mail.test")
	v.quiet()
	if got := i.state(id); got["state"] != "STATE_ACCEPTED" {
		t.Errorf("%v", got)
	}
	v.Open(i.url + "/account/security")
	v.sees("main", "Passkey")
}

func TestJoiningThroughAProvider(t *testing.T) {
	browser.NeedAxe(t)
	u := another(t)
	i, sink := withMail(t, func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8"} })
	b := browser.Start(t)
	i.provider(u, map[string]any{"scopes": []string{"profile", "email"}}) // it registers nobody by itself
	u.person("ana")
	id := i.invite("ana.invited@mail.test", map[string]any{"roles": []string{"ORG_OWNER_VIEWER"}})
	link := mailTo(t, sink, "ana.invited@mail.test")
	v := i.visitor(t, b)
	v.Open(link)
	v.through("ana")
	v.sees("main", "ana.invited@mail.test")
	v.creates()
	v.sees("h1", "Welcome")
	v.saysNothingBad("joined")
	got := i.state(id)
	if got["state"] != "STATE_ACCEPTED" {
		t.Fatalf("%v", got)
	}
	person := i.api("GET", "/v1/users/"+got["userId"].(string), nil)["user"].(map[string]any)["human"].(map[string]any)
	if person["email"] != "ana.invited@mail.test" || person["isEmailVerified"] != true {
		t.Errorf("%v", person)
	}
	v = i.visitor(t, b)
	v.Open(i.ask())
	v.through("ana")
	v.arrives()

	// Without the invitation nobody is registered.
	u.person("bob")
	v = i.visitor(t, b)
	v.Open(i.ask())
	v.through("bob")
	v.sees("main", "not known here")
}

// ownPassword is one that a person has chosen in place of firstPassword.
const ownPassword = "a word of my own 42"

func TestJoiningWithAnAccountElsewhere(t *testing.T) {
	browser.NeedAxe(t)
	i, sink := withMail(t)
	b := browser.Start(t)
	org, token := i.elsewhere("Customer")
	i.person("bea") // of the default organization, on the word of the installation
	status, made := i.call(token, "POST", "/v1/orgs/"+org+"/invitations",
		map[string]any{"email": "bea@mail.test", "roles": []string{"ORG_USER_MANAGER"}})
	if status != http.StatusOK {
		t.Fatalf("%v", made)
	}
	link := mailTo(t, sink, "bea@mail.test")
	i.person("kim")

	v := i.visitor(t, b)
	v.Open(i.ask())
	v.name("kim")
	v.password(firstPassword)
	v.arrives()
	v.Open(link) // signed in as somebody else: which account is meant?
	v.sees("main", "You are signed in as kim")
	v.saysNothingBad("which account")
	v.Submit("main a.button")
	v.sees("main", "not the confirmed")
	v.saysNothingBad("mismatch")
	v.Submit("main a.button")
	v.name("bea")
	v.password(firstPassword)
	v.sees("main", "will join Customer")
	v.sees("main", "bea")
	v.sees("main", "User management")
	v.sees("main", "Somebody else has set your password") // who made the account
	v.saysNothingBad("another password first")
	_, in := i.call("", "POST", "/v1/sessions", map[string]any{"loginName": "bea", "password": firstPassword})
	if status, answer := i.call(in["token"].(string), "PUT", "/v1/users/me/password",
		map[string]any{"currentPassword": firstPassword, "newPassword": ownPassword}); status != http.StatusOK {
		t.Fatalf("%v", answer)
	}
	v.Open(link)
	v.Submit("main p.aside a")
	v.name("bea")
	v.password(ownPassword)
	v.sees("main", "will join Customer")
	v.saysNothingBad("confirm")
	v.Submit("button[value=allow]")
	v.sees("h1", "Welcome")
	v.quiet()
	_, in = i.call("", "POST", "/v1/sessions", map[string]any{"loginName": "bea", "password": ownPassword})
	_, held := i.call(in["token"].(string), "GET", "/v1/users/me/memberships", nil)
	if !strings.Contains(fmt.Sprint(held), org) || !strings.Contains(fmt.Sprint(held), "ORG_USER_MANAGER") {
		t.Errorf("%v", held)
	}
}

func TestJoiningByLinksThatLeadNowhere(t *testing.T) {
	browser.NeedAxe(t)
	i, sink := withMail(t)
	b := browser.Start(t)
	i.person("ivy")
	ivy := i.api("GET", "/v1/users?userName=ivy", nil)["users"].([]any)[0].(map[string]any)["userId"].(string)
	i.api("PUT", "/v1/orgs/"+i.org+"/members/"+ivy, map[string]any{"roles": []string{"ORG_OWNER"}})
	_, in := i.call("", "POST", "/v1/sessions", map[string]any{"loginName": "ivy", "password": firstPassword})
	for _, c := range []struct {
		name, says string
		spoil      func(id string)
	}{
		{"withdrawn", "withdrawn", func(id string) {
			i.api("POST", "/v1/orgs/"+i.org+"/invitations/"+id+"/_withdraw", map[string]any{})
		}},
		{"expired", "has expired", func(id string) {
			store := i.server.Store()
			err := store.Do(t.Context(), event.Command{
				Origin: event.Origin{Actor: event.System},
				Write:  []event.Ref{invitation.Kind.Ref(id)},
				Decide: func(tx *event.Tx) error {
					o, err := invitation.Kind.Get(tx, id)
					if err != nil {
						return err
					}
					sent := invitation.Sent{Link: o.Data.Link, Life: o.Data.Life,
						Expires: tx.Now() - time.Second.Microseconds(), Inviter: o.Data.Inviter}
					return o.Append(sent, invitation.HasExpired{})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"inviter", "no longer valid", func(string) {
			i.api("PUT", "/v1/orgs/"+i.org+"/members/"+ivy, map[string]any{"roles": []string{"ORG_OWNER_VIEWER"}})
		}},
	} {
		email := c.name + "@gone.test"
		status, made := i.call(in["token"].(string), "POST", "/v1/orgs/"+i.org+"/invitations",
			map[string]any{"email": email, "roles": []string{"ORG_OWNER_VIEWER"}})
		if status != http.StatusOK {
			t.Fatalf("%v", made)
		}
		link := mailTo(t, sink, email)
		v := i.visitor(t, b)
		v.Open(link)
		v.Submit(`a[href*="with=password"]`)
		c.spoil(made["invitationId"].(string))
		v.names("Too", "Late")
		v.Fill("#newPassword", otherPassword)
		v.Fill("#repeatPassword", otherPassword)
		v.Submit("main form button.primary")
		v.sees("h1", c.says)
		v.saysNothingBad(c.name)
		v.Open(link)
		v.sees("h1", c.says)
	}
}

func TestJoiningByALinkThatWasShown(t *testing.T) {
	browser.NeedAxe(t)
	i, b := installed(t), browser.Start(t)
	made := i.api("POST", "/v1/orgs/"+i.org+"/invitations", map[string]any{"email": "boss@mail.test"})
	link := made["link"].(string)
	v := i.visitor(t, b)
	v.Open(link)
	v.Submit(`a[href*="with=password"]`)
	v.names("Not", "Boss")
	for _, name := range []string{"boss@mail.test", "boss＠mail.test"} {
		v.Fill("#userName", name)
		v.Fill("#newPassword", otherPassword)
		v.Fill("#repeatPassword", otherPassword)
		v.Submit("main form button.primary")
		v.sees("main", "own confirmed")
	}
	v.Fill("#userName", "notboss")
	v.Fill("#newPassword", otherPassword)
	v.Fill("#repeatPassword", otherPassword)
	v.Submit("main form button.primary")
	v.WaitUntilAt(i.url + "/account")
	got := i.state(made["invitationId"].(string))
	person := i.api("GET", "/v1/users/"+got["userId"].(string), nil)["user"].(map[string]any)["human"].(map[string]any)
	if person["email"] != "boss@mail.test" || person["isEmailVerified"] == true {
		t.Errorf("%v", person)
	}

	// The link to set a password is shown, too, and works once.
	id := i.person("rob")
	link = i.api("POST", "/v1/users/"+id+"/_send_password_setup", map[string]any{})["link"].(string)
	v = i.visitor(t, b)
	v.Open(link)
	v.saysNothingBad("set password")
	v.Fill("#newPassword", otherPassword)
	v.Fill("#repeatPassword", otherPassword)
	v.Submit("main form button.primary")
	v.sees("main", "You can now sign in")
	v = i.visitor(t, b)
	v.Open(i.ask())
	v.name("rob")
	v.password(otherPassword)
	v.arrives()
	v.Open(link)
	v.sees("h1", "no longer works")
}

// 64 people with the same link, at two nodes: one joins.
func TestJoiningAtOnceAtTwoNodes(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	key := string(secret.NewMasterKey().Text())
	config := server.Config{Data: server.Data{Database: db.URL, MasterKey: key}, ExternalURL: "http://localhost:1",
		StartsPerMinute: 1_000_000}
	var nodes []*installation
	for range 2 {
		s := servertest.Start(t, config, testWriter{t})
		n := &installation{server: s, t: t, url: s.URL(), direct: "http://" + s.Addr().String()}
		if s.FirstAdmin != nil {
			n.org, n.token = s.FirstAdmin.OrgID, s.FirstAdmin.Token
		}
		nodes = append(nodes, n)
	}
	made := nodes[0].api("POST", "/v1/orgs/"+nodes[0].org+"/invitations",
		map[string]any{"email": "many@mail.test", "roles": []string{"ORG_OWNER"}})
	token := made["link"].(string)[strings.Index(made["link"].(string), "token=")+len("token="):]
	var all sync.WaitGroup
	answers := make([]string, 64)
	for n := range answers {
		all.Go(func() {
			for { // a server that is busy says so
				status, read := nodes[n%2].call("", "POST", "/v1/invitations/_accept", map[string]any{
					"invitationToken": token,
					"userName":        fmt.Sprintf("many%d", n),
					"firstName":       "F",
					"lastName":        "L",
					"password":        otherPassword,
				})
				if status != http.StatusServiceUnavailable {
					answers[n] = fmt.Sprint(status, read["details"])
					return
				}
			}
		})
	}
	all.Wait()
	joined := 0
	for _, a := range answers {
		switch {
		case strings.HasPrefix(a, "200"):
			joined++
		case !strings.Contains(a, "INVITATION_USED"):
			t.Error(a)
		}
	}
	if joined != 1 {
		t.Errorf("%d have joined", joined)
	}
	users := nodes[1].call
	_, read := users(nodes[0].token, "GET", "/v1/users?userName=many", nil)
	if found, _ := read["users"].([]any); len(found) != 1 {
		t.Errorf("%d users: %v", len(found), read)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) { return len(p), nil }
