package program

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

// The owner of another organization makes twins of somebody, with the same address, verified in every way there is. The
// address leads to the person before and after, for signing in and for resets.
func TestAttackATwinInAnotherOrganizationTakesNobodysWayIn(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		sink := mailtest.Start(t)
		p := s.start(t, "--smtp-url", sink.URL, "--smtp-from", "no-reply@id.example")
		root := newClient(t, p, s.admin(t).Token)
		_, olga, prey := root.organization(t, "Acme", "olga@mail.example")
		org, _, _ := root.organization(t, "Mallory", "mallory@evil.example")
		mallory := newClient(t, p, "")
		// the installation's word counts everywhere
		mallory.token = mallory.signIn(t, "mallory@evil.example", herPassword)
		if at[string](t, mallory.want(t, 200, "GET", "/v1/users/me", nil), "user", "details", "resourceOwner") != org {
			t.Fatal("somebody else was signed in")
		}
		mallory.want(t, 403, "POST", "/v1/orgs/"+org+"/domains", object{"domain": "mail.example", "isVerified": true})
		mallory.want(t, 200, "POST", "/v1/orgs/"+org+"/domains", object{"domain": "mail.example"})
		mallory.person(t, "twin1", "olga@mail.example", true)
		mallory.want(t, 200, "PUT", "/v1/users/"+mallory.person(t, "twin2", "other@mail.example", false)+"/email",
			object{"email": "olga@mail.example", "isEmailVerified": true})
		// An address that nobody else has is no way in either, outside of Mallory's organization.
		mallory.person(t, "alone", "alone@mail.example", true)
		stranger := mallory.with("")
		stranger.want(t, 401, "POST", "/v1/sessions",
			object{"loginName": "alone@mail.example", "password": hisPassword})
		stranger.want(t, 200, "POST", "/v1/sessions",
			object{"loginName": "alone@mail.example", "password": hisPassword, "orgId": org})

		in := object{"loginName": "Olga@mail.example", "password": hisPassword}
		stranger.want(t, 401, "POST", "/v1/sessions", in)
		in["password"] = herPassword
		if got := stranger.want(t, 200, "POST", "/v1/sessions", in); got["userId"] != olga {
			t.Errorf("the address leads to %v", got)
		}
		stranger.want(t, 200, "POST", "/v1/users/_request_password_reset", object{"loginName": "olga@mail.example"})
		for {
			m := sink.Next(t)
			if m.To == "olga@mail.example" && strings.Contains(m.Text, "/reset?") {
				if !strings.Contains(m.Text, olga) {
					t.Errorf("the mail is for another account: %s", m.Text)
				}
				break
			}
		}
		p.stop(t)
		// Where the operator has switched it off, only the place counts.
		p = s.start(t, "--emails-per-organization")
		c := newClient(t, p, "")
		c.want(t, 401, "POST", "/v1/sessions", in)
		in["loginName"] = "owner@" + prey
		c.want(t, 200, "POST", "/v1/sessions", in)
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// Who owns an organization alone cannot leave it, in any way. The installation can, and is told.
func TestTheLastOwnerOfAnOrganizationLeavesByTheInstallation(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		org, owner, domain := root.organization(t, "Acme", "olga@mail.example")
		root.org = org
		me := newClient(t, p, "")
		me.token = me.signIn(t, "owner@"+domain, herPassword)
		member, user := "/v1/orgs/"+org+"/members/"+owner, "/v1/users/"+owner
		for path, method := range map[string]string{member: "DELETE", user: "DELETE", user + "/_lock": "POST",
			user + "/_deactivate": "POST"} {
			var body object
			if method == "POST" {
				body = object{}
			}
			if answer := me.want(t, 400, method, path, body); reasonOf(t, answer) != "LAST_ORGANIZATION_OWNER" ||
				!strings.Contains(at[string](t, answer, "message"), "grant ORG_OWNER to another") {
				t.Errorf("%s %s: %v", method, path, answer)
			}
		}
		told := func(answer object) int { return len(at[[]any](t, answer, "orgsWithoutOwner")) }
		if n := told(root.want(t, 200, "PUT", member, object{"roles": []string{"ORG_USER_MANAGER"}})); n != 1 {
			t.Errorf("told of %d organizations", n)
		}
		if n := told(root.want(t, 200, "PUT", member, object{"roles": []string{"ORG_OWNER"}})); n != 0 {
			t.Errorf("told of %d organizations", n)
		}
		if n := told(root.want(t, 200, "DELETE", user, nil)); n != 1 {
			t.Errorf("told of %d organizations", n)
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}
