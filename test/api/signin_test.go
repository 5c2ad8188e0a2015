package api_test

import (
	"strings"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
)

// signInNameStory: which user a name finds, in the order of the contract.
func signInNameStory(t *testing.T, c *Client) {
	w, a, b := c.w, c.w.scene(t), c.w.elsewhere(t)
	home := w.first.OrgID // the default organization
	finds := func(want *Actor, name, orgID string) {
		t.Helper()
		in := c.send(t, nil, &signetv1.CreateSessionRequest{LoginName: name, Password: w.password, OrgId: orgID})
		if want == nil {
			in.mustBe(t, signInFailed)
			return
		}
		in.mustBe(t, ok)
		if in.status == nil {
			same(t, "user found by "+name, in.message.(*signetv1.CreateSessionResponse).GetUserId(), want.UserID)
		}
	}
	name := unique("Jo")
	inA := w.addUser(t, person{Org: a.org, Domain: a.domain, UserName: name, Email: name + "@mail.example",
		EmailVerified: true})
	inB := w.addUser(t, person{Org: b.org, Domain: b.domain, UserName: name, Email: name + "@mail.example"})

	// A verified domain leads to its organization, however it is written.
	finds(inA, name+"@"+a.domain, "")
	finds(inB, strings.ToUpper(name)+"@"+strings.ToUpper(b.domain), "")
	finds(inA, name+"@"+a.domain, a.org)
	// Where an organization is named, only its users are found.
	finds(nil, name+"@"+b.domain, a.org)
	finds(nil, name+"@"+a.domain, "org_unknown")
	// A bare name means the organization named, else the default one.
	finds(inA, name, a.org)
	finds(inB, name, b.org)
	finds(nil, name, "")
	atHome := w.addUser(t, person{Org: home, UserName: name, Email: name + "@home.example", EmailVerified: true})
	finds(atHome, name, "")
	// So does a verified address; an unverified one finds nobody.
	finds(inA, strings.ToUpper(name)+"@MAIL.example", a.org)
	finds(nil, name+"@mail.example", b.org)
	finds(nil, name+"@mail.example", "")
	finds(atHome, name+"@home.example", "")
	// An address that two users have finds whom it was verified for first.
	w.addUser(t, person{Org: a.org, Email: name + "@MAIL.example", EmailVerified: true})
	finds(inA, name+"@mail.example", a.org)
	// A user name goes before somebody else's address, and a domain goes before a user name.
	named := w.addUser(t, person{Org: home, UserName: name + "@home.example"})
	finds(named, name+"@home.example", "")
	shadow := w.addUser(t, person{Org: home, UserName: name + "2@" + a.domain})
	finds(shadow, name+"2@"+a.domain, "")
	second := w.addUser(t, person{Org: a.org, UserName: name + "2"})
	finds(second, name+"2@"+a.domain, "")
	// Names are compared by their folded form.
	wideName := w.addUser(t, person{Org: a.org, UserName: "Straße " + name})
	finds(wideName, "ＳＴＲＡＳＳＥ "+name, a.org)
}

// failedSignInCases fail for all reasons there are, with one answer.
func failedSignInCases(t *testing.T, w *World) (cases []Case) {
	s, shut := w.scene(t), w.newScene(t)
	wrong := w.secret("wrong")
	make := func(facts ...func(id string)) *Actor {
		a := w.addUser(t, person{Org: s.org, Domain: s.domain})
		for _, f := range facts {
			f(a.UserID)
		}
		return a
	}
	robot := w.addUser(t, person{Org: s.org, Domain: s.domain, Service: true})
	inactive := make(func(id string) { w.changeUser(t, id, user.Deactivated{}) })
	locked := make(func(id string) { w.changeUser(t, id, user.WasLocked{}) })
	removed := make(func(id string) { w.changeUser(t, id, user.WasRemoved{}) })
	w.changeOrg(t, shut.org, org.Deactivated{})
	typed := w.secret("typed as a name") // people do that
	var message string
	for _, x := range []struct{ name, login, password, org string }{
		{"wrong password", make().LoginName, wrong, ""},
		{"almost the password", make().LoginName, w.password[:len(w.password)-1], ""},
		{"unknown user", unique("nobody") + "@" + s.domain, wrong, ""},
		{"unknown domain", "founder@" + unique("nowhere") + ".example", wrong, ""},
		{"unknown organization", make().LoginName, w.password, "org_unknown"},
		{"organization malformed", make().LoginName, w.password, "' OR ''='"},
		{"another organization", make().LoginName, w.password, shut.org},
		{"a service user", robot.LoginName, wrong, ""},
		{"inactive user", inactive.LoginName, w.password, ""},
		{"locked user", locked.LoginName, w.password, ""},
		{"removed user", removed.LoginName, w.password, ""},
		{"inactive organization", shut.user.LoginName, w.password, ""},
		{"inactive organization by name", shut.owner.LoginName, shut.owner.Password, shut.org},
		{"a password typed as name", typed, wrong, ""},
		{"nothing but an at sign", "@", wrong, ""},
		{"an at sign too many", "a@b@c@", wrong, ""},
		{"a very long name", strings.Repeat("x", 20000) + "@" + strings.Repeat("y.", 20000), wrong, ""},
		{"SQL", "' OR '1'='1' --", wrong, ""},
		{"a user's id", s.user.UserID, w.password, ""},
	} {
		cases = append(cases, Case{
			Name: x.name,
			Req:  &signetv1.CreateSessionRequest{LoginName: x.login, Password: x.password, OrgId: x.org},
			Want: signInFailed,
			Check: func(t *testing.T, a *Answer) {
				if message == "" {
					message = a.status.GetMessage()
				}
				same(t, "message", a.status.GetMessage(), message)
			},
		})
	}
	return cases
}
