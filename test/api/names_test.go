package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
)

// namesStory: names are told of what the caller may read, and of nothing else, wherever it is.
func namesStory(t *testing.T, c *Client) {
	s, home := c.w.newScene(t), c.w.newScene(t)
	ids := []string{s.user.UserID, s.org, s.app, s.idp, s.group(), s.project(), s.webhook(), s.robot().UserID}
	kinds := []string{"user", "org", "app", "idp", "group", "project", "webhook", "user"}
	told := func(as *Actor, ids ...string) (found []string) {
		t.Helper()
		for _, n := range done[*signetv1.LookUpNamesResponse](t, c, as,
			&signetv1.LookUpNamesRequest{Ids: ids}).GetNames() {
			found = append(found, n.GetId())
		}
		return found
	}
	others := []string{"usr_none", "nothing", "", "usr_", "org_none", strings.Repeat("x", 200), s.invitation()}
	for name, as := range map[string]*Actor{"the owner": s.owner, "an owner of the installation": c.w.root,
		"a reader of the installation": home.holder(t, iamViewer)} {
		names := done[*signetv1.LookUpNamesResponse](t, c, as,
			&signetv1.LookUpNamesRequest{Ids: slices.Concat(ids, others, ids)}).GetNames()
		if len(names) != len(ids) {
			t.Fatalf("%s is told %v", name, names)
		}
		for i, n := range names {
			sameMessage(t, "what "+name+" is told", n,
				&signetv1.LookUpNamesResponse_Name{Id: ids[i], Kind: kinds[i], Name: n.GetName(), OrgId: s.org})
			if n.GetName() == "" {
				t.Errorf("%s has no name", n)
			}
		}
	}
	same(t, "the name of a person",
		done[*signetv1.LookUpNamesResponse](t, c, s.owner,
			&signetv1.LookUpNamesRequest{Ids: ids[:1]}).GetNames()[0].GetName(), "Test Person")
	// Somebody of another organization learns nothing, whatever there is: the same answer.
	same(t, "of another organization", fmt.Sprint(told(home.owner, ids...)), fmt.Sprint(told(home.owner, others...)))
	same(t, "of both", fmt.Sprint(told(home.owner, s.user.UserID, home.user.UserID)),
		fmt.Sprint([]string{home.user.UserID}))
	same(t, "who holds nothing", fmt.Sprint(told(s.user, slices.Concat(ids, []string{s.owner.UserID})...)),
		fmt.Sprint([]string{s.user.UserID, s.org}))
	// Each kind takes the permission for it.
	same(t, "a manager of users", fmt.Sprint(told(s.holder(t, userManager), ids...)),
		fmt.Sprint([]string{ids[0], s.org, s.app, s.idp, s.group(), ids[7]}))
	same(t, "support", fmt.Sprint(told(home.holder(t, support), ids...)),
		fmt.Sprint([]string{ids[0], s.org, s.app, s.idp, ids[7]}))
	same(t, "a manager of settings", fmt.Sprint(told(s.holder(t, settingsManager), ids...)),
		fmt.Sprint([]string{s.org, s.app, s.idp, s.project()}))

	// What an organization asks of guests counts here, too.
	guest := c.w.addUser(t, person{Org: home.org, Domain: home.domain,
		Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner}}})
	session, old := c.w.signedIn(t, guest), c.w.oldSession(t, guest)
	same(t, "a guest", len(told(old, ids...)), len(ids))
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{GuestProofSeconds: 60}))
	same(t, "a guest whose proof is old",
		fmt.Sprint(told(old, slices.Concat(ids, []string{guest.UserID, home.org})...)),
		fmt.Sprint([]string{guest.UserID, home.org}))
	same(t, "a guest whose proof is new", len(told(session, ids...)), len(ids))

	c.w.changeUser(t, s.user.UserID, user.WasRemoved{})
	same(t, "somebody who is gone", len(told(s.owner, s.user.UserID)), 0)
	c.refused(t, invalid("ids"), s.owner, &signetv1.LookUpNamesRequest{})
	c.refused(t, invalid("ids"), s.owner, &signetv1.LookUpNamesRequest{Ids: slices.Repeat([]string{"x"}, 501)})
	c.refused(t, invalid("ids[1]"), s.owner, &signetv1.LookUpNamesRequest{Ids: []string{"x", strings.Repeat("x", 201)}})
}
