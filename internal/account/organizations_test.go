package account_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/event/eventtest"
	"github.com/signet-idm/signet/internal/group"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/user"
)

func TestOrganizationsAreListedAndLeft(t *testing.T) {
	w := newSite(t)
	for _, id := range []string{"org_guest", "org_owned"} {
		eventtest.Given(t, w.store, org.Kind, id, id, nil, org.Added{Name: "<b>" + id})
	}
	eventtest.Given(t, w.store, group.Kind, "grp_1", "org_guest", []event.Claim{group.NameClaim("org_guest", "x")}, group.Added{Name: "<i>Night shift", NameKey: "x"})
	eventtest.Given(t, w.store, group.Kind, "grp_gone", orgID, []event.Claim{group.NameClaim(orgID, "x")}, group.Added{Name: "Gone", NameKey: "x"}, group.WasRemoved{})
	eventtest.Given(t, w.store, user.Kind, mara, "", nil, user.MembershipSet{Scope: "org_guest", Stays: true}, user.GroupJoined{Org: "org_guest", Group: "grp_1", Roles: []access.Role{access.OrgOwnerViewer}},
		user.GroupJoined{Org: orgID, Group: "grp_gone"}, user.MembershipSet{Scope: "org_owned", Roles: []access.Role{access.OrgOwner}},
		user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwnerViewer}})
	b := w.in("mara")
	page := b.open(pages.PathOrgs).says(200, "your organization", "&lt;b&gt;org_guest", "&lt;i&gt;Night shift", "Read access", "&lt;b&gt;org_owned", "Owner", "All organizations")
	if strings.Contains(page.text, "Gone") || page.lists(orgID) || !page.lists("org_guest") || page.lists(access.Installation) {
		t.Errorf("shown: %s", page.text)
	}
	w.in("nils").open(pages.PathOrgs).says(200, "your organization", "You have no roles here.")

	// Only what a person is a guest in can be left, by the form alone.
	page.press(pages.DoLeave, "", pages.FieldID, orgID).says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "", pages.FieldID, "org_x").says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "", pages.FieldID, access.Installation).says(422, "This was changed elsewhere")
	b.post(pages.PathOrgs, map[string][]string{pages.FieldAccount: {b.session().Token.ID}, pages.FieldID: {"org_guest"}}).says(200, "&lt;b&gt;org_guest")
	page.press(pages.DoLeave, "org_guest").leads("/account/organizations?done=organization").follow().says(200, "You have left the organization.")
	if u := w.user(mara); user.IsGuest(u, "org_guest") || len(u.Data.Groups["org_guest"]) != 0 || !user.IsGuest(u, "org_owned") {
		t.Errorf("has %+v", u.Data)
	}
	page.press(pages.DoLeave, "org_guest").says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "org_owned").leads("/account/organizations?done=organization") // also by its last owner
	if user.IsGuest(w.user(mara), "org_owned") {
		t.Error("the last owner cannot leave")
	}
}
