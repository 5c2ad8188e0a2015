package program

import (
	"encoding/json"
	"testing"
)

// Attack: somebody who may only read a firm's users, and owns any other organization, makes every one of them an owner
// of it. The firm could then neither help nor lock out its own people. Nothing may happen to them that they have not
// accepted.
func TestAttackAReaderGivesNobodyRolesElsewhere(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		firm, _, domain := root.organization(t, "Firm", "olga@mail.example")
		evil, _, _ := root.organization(t, "Evil", "eve@mail.example")
		ofFirm := *root
		ofFirm.org = firm
		mallory := ofFirm.person(t, "mallory", "mallory@mail.example", false)
		vera := ofFirm.person(t, "vera", "vera@mail.example", false)
		ofFirm.want(t, 200, "PUT", "/v1/orgs/"+firm+"/members/"+mallory, object{"roles": []string{"ORG_OWNER_VIEWER"}})
		signedIn := func(name, password string) *client {
			c := newClient(t, p, "")
			return c.with(c.signIn(t, name+"@"+domain, password))
		}
		reason := func(answer object, want string) {
			t.Helper()
			if got := reasonOf(t, answer); got != want {
				t.Errorf("refused with %s, not %s", got, want)
			}
		}

		// Mallory gets the other organization, with a password of her own.
		accept := func(answer object) string {
			return "/v1/users/me/offers/" + at[string](t, answer, "offerId") + "/_accept"
		}
		me := signedIn("mallory", hisPassword)
		to := accept(root.want(t, 200, "PUT", "/v1/orgs/"+evil+"/members/"+mallory,
			object{"roles": []string{"ORG_OWNER"}}))
		reason(me.want(t, 400, "POST", to, object{}), "PASSWORD_SET_BY_ANOTHER")
		me.want(t, 200, "PUT", "/v1/users/me/password",
			object{"currentPassword": hisPassword, "newPassword": "a password of my own"})
		me = signedIn("mallory", "a password of my own")
		me.want(t, 200, "POST", to, object{})
		me.want(t, 200, "GET", "/v1/orgs/"+evil+"/members", nil)

		// What she gives to the firm's people stays an offer.
		before := at[object](t, ofFirm.want(t, 200, "GET", "/v1/users/"+vera, nil), "user", "details")["sequence"]
		var offer string
		for _, roles := range [][]string{{}, {"ORG_OWNER"}} {
			answer := me.want(t, 200, "PUT", "/v1/orgs/"+evil+"/members/"+vera, object{"roles": roles})
			if offer = at[string](t, answer, "offerId"); at[string](t, answer, "details", "resourceOwner") != evil {
				t.Errorf("answered %v", answer)
			}
		}
		group := "/v1/groups/" + at[string](t,
			in(me, evil).want(t, 200, "POST", "/v1/groups", object{"name": "Owners"}), "groupId")
		in(me, evil).want(t, 404, "PUT", group+"/members/"+vera, object{})
		if after := at[object](t, ofFirm.want(t, 200, "GET", "/v1/users/"+vera, nil), "user",
			"details")["sequence"]; after != before {
			t.Errorf("the person moved from %v to %v", before, after)
		}
		her := signedIn("vera", hisPassword)
		if held := her.want(t, 200, "GET", "/v1/users/me/memberships", nil)["memberships"]; held != nil &&
			len(held.([]any)) > 0 {
			t.Errorf("holds %v", held)
		}
		reason(me.want(t, 404, "POST", "/v1/users/me/offers/"+offer+"/_accept", object{}), "OFFER_NOT_FOUND")
		reason(her.want(t, 400, "POST", "/v1/users/me/offers/"+offer+"/_accept", object{}), "PASSWORD_SET_BY_ANOTHER")

		// The firm goes on as before, and the giver does not learn that she declines.
		seen := in(me, evil).want(t, 200, "GET", "/v1/orgs/"+evil+"/offers?state=STATE_OPEN", nil)
		her.want(t, 200, "POST", "/v1/users/me/offers/"+offer+"/_decline", object{})
		her.want(t, 400, "POST", "/v1/users/me/offers/"+offer+"/_accept", object{})
		now := in(me, evil).want(t, 200, "GET", "/v1/orgs/"+evil+"/offers?state=STATE_OPEN", nil)
		if len(at[[]any](t, now, "offers")) != 1 || text(t, seen) != text(t, now) {
			t.Errorf("the giver saw %v, then %v", seen, now)
		}
		ofFirm.want(t, 200, "POST", "/v1/users/"+vera+"/password", object{"password": "another kettle of fish"})
		ofFirm.want(t, 200, "POST", "/v1/users/"+vera+"/_lock", object{})

		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
		s.run(t, "verify").fine(t)
	})
}

// in is a client that names an organization.
func in(c *client, org string) *client {
	other := *c
	other.org = org
	return &other
}

// text is an answer as it is sent.
func text(t *testing.T, answer object) string {
	t.Helper()
	sent, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(sent)
}
