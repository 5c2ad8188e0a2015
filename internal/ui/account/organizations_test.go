package account_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/transport/pages"
)

func TestOrganizationsAreListedAndLeft(t *testing.T) {
	w := newSite(t)
	for _, id := range []string{"org_guest", "org_owned"} {
		eventtest.Given(t, w.store, org.Kind, id, id, nil, org.Added{Name: "<b>" + strings.TrimPrefix(id, "org_")})
	}
	eventtest.Given(t, w.store, group.Kind, "grp_1", "org_guest", []event.Claim{group.NameClaim("org_guest", "x")},
		group.Added{Name: "<i>Night shift", NameKey: "x"})
	eventtest.Given(t, w.store, group.Kind, "grp_gone", orgID, []event.Claim{group.NameClaim(orgID, "x")},
		group.Added{Name: "Gone", NameKey: "x"}, group.WasRemoved{})
	eventtest.Given(t, w.store, user.Kind, mara, "", nil, user.MembershipSet{Scope: "org_guest", Stays: true},
		user.GroupJoined{Org: "org_guest", Group: "grp_1", Roles: []access.Role{access.OrgOwnerViewer}},
		user.GroupJoined{Org: orgID, Group: "grp_gone"},
		user.MembershipSet{Scope: "org_owned", Roles: []access.Role{access.OrgOwner}},
		user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwnerViewer}})
	b := w.in("mara")
	page := b.open(pages.PathOrgs).says(200, "your organization", "&lt;b&gt;guest", "&lt;i&gt;Night shift",
		"Read access", "&lt;b&gt;owned", "Owner", "All organizations")
	if strings.Contains(page.text, "Gone") || page.lists(orgID) || !page.lists("org_guest") ||
		page.lists(access.Installation) {
		t.Errorf("shown: %s", page.text)
	}
	w.in("nils").open(pages.PathOrgs).says(200, "your organization", "You have no roles here.")

	// Only what a person is a guest in can be left, by the form alone.
	page.press(pages.DoLeave, "", pages.FieldID, orgID).says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "", pages.FieldID, "org_x").says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "", pages.FieldID, access.Installation).says(422, "This was changed elsewhere")
	b.post(pages.PathOrgs, map[string][]string{pages.FieldAccount: {b.session().Token.ID},
		pages.FieldID: {"org_guest"}}).says(200, "&lt;b&gt;guest")
	page.press(pages.DoLeave, "org_guest").leads("/account/organizations?done=organization").follow().says(200,
		"You have left the organization.")
	if u := w.user(mara); user.IsGuest(u, "org_guest") || len(u.Data.Groups["org_guest"]) != 0 ||
		!user.IsGuest(u, "org_owned") {
		t.Errorf("has %+v", u.Data)
	}
	page.press(pages.DoLeave, "org_guest").says(422, "This was changed elsewhere")
	page.press(pages.DoLeave, "org_owned").leads("/account/organizations?done=organization") // also by its last owner
	if user.IsGuest(w.user(mara), "org_owned") {
		t.Error("the last owner cannot leave")
	}
}

// Limits of groups are those of each organization: one with many does not hide those of another.
func TestGroupsOfEveryOrganizationAreShown(t *testing.T) {
	w := newSite(t)
	eventtest.Given(t, w.store, org.Kind, "org_guest", "org_guest", nil, org.Added{Name: "Host"})
	eventtest.Given(t, w.store, user.Kind, mara, "", nil, user.MembershipSet{Scope: "org_guest", Stays: true})
	for i := range user.MaxGroups {
		eventtest.Given(t, w.store, user.Kind, mara, "", nil,
			user.GroupJoined{Org: "org_guest", Group: fmt.Sprintf("grp_%03d", i)})
	}
	for id, of := range map[string]string{"grp_000": "org_guest", "grp_z": orgID} {
		eventtest.Given(t, w.store, group.Kind, id, of, []event.Claim{group.NameClaim(of, "x")},
			group.Added{Name: "Shift " + strings.TrimPrefix(id, "grp_"), NameKey: "x"})
	}
	eventtest.Given(t, w.store, user.Kind, mara, "", nil, user.GroupJoined{Org: orgID, Group: "grp_z"})
	w.in("mara").open(pages.PathOrgs).says(200, "Shift 000", "Shift z")
}

func TestOffersAreAcceptedAndDeclined(t *testing.T) {
	w := newSite(t)
	giver := &access.Caller{UserID: "usr_giver", OrgID: "org_o",
		Memberships: access.Memberships{"org_o": {access.OrgOwner}, orgID: {access.OrgOwnerViewer}}}
	eventtest.Given(t, w.store, org.Kind, "org_o", "org_o", []event.Claim{org.DomainClaim("offer.example")},
		org.Added{Name: "<b>Offerers"}, org.DomainAdded{Domain: "offer.example", Verified: true, Primary: true})
	eventtest.Given(t, w.store, user.Kind, "usr_giver", "org_o", []event.Claim{user.NameClaim("org_o", "giver")},
		user.ServiceAdded{Personal: user.ServiceFacts{UserName: "giver", UserNameKey: "giver", Name: "Giver"}},
		user.MembershipSet{Scope: "org_o", Roles: giver.Memberships["org_o"]})
	offer := func(roles ...string) string {
		t.Helper()
		permit, err := giver.In("org_o", access.MemberWrite)
		must(t, err)
		members, err := member.OfOrganization(permit)
		must(t, err)
		set, err := members.Set(t.Context(), w.store, mara, event.IfMatch{}, roles)
		must(t, err)
		return set.Offer
	}
	b := w.in("mara")
	id := offer("ORG_USER_MANAGER")
	page := b.open(pages.PathOrgs).says(200, "&lt;b&gt;Offerers", "offer.example", "User management",
		"manage users, how they sign in", "sees who you are", "Somebody else has set your password",
		"/account/password")
	accept := func(b *browser) *shown {
		return b.post(pages.PathOrgs,
			map[string][]string{pages.FieldAccount: {b.session().Token.ID}, pages.FieldDo: {pages.DoAccept},
				pages.FieldID: {id}})
	}
	accept(b).says(422, "Choose a new one before you accept")
	if user.IsGuest(w.user(mara), "org_o") {
		t.Error("it counts already")
	}
	page.press(pages.DoDecline, id).leads("/account/organizations?done=declined").follow().says(200,
		"You have declined.")
	accept(b).says(422, "This was changed elsewhere")

	w.change(mara, user.PasswordChanged{})
	b = w.in("mara")
	id = offer("ORG_USER_MANAGER")
	accept(w.in("nils")).says(422, "This was changed elsewhere")
	page = b.open(pages.PathOrgs).says(200, "&lt;b&gt;Offerers")
	if strings.Contains(page.text, "Somebody else has set your password") {
		t.Error("it asks for another password")
	}
	page.press(pages.DoAccept, id).leads("/account/organizations?done=accepted").follow().says(200,
		"You have accepted.", "&lt;b&gt;Offerers")
	if got := w.user(mara).Data.Memberships["org_o"]; len(got) != 1 || got[0] != access.OrgUserManager {
		t.Errorf("holds %v", got)
	}

	// What a group gives beyond that waits for a click, on what was shown.
	w.change(mara, user.GroupJoined{Org: "org_o", Group: "grp_o", Roles: []access.Role{access.OrgSettingsManager}})
	page = b.open(pages.PathOrgs).says(200, "These roles count only once you accept them", "Management of settings")
	page.press(pages.DoAcceptRoles, "", pages.FieldID, "org_o", pages.FieldRoles, "ORG_USER_MANAGER").says(422,
		"This was changed elsewhere")
	page.press(pages.DoAcceptRoles, "org_o").leads("/account/organizations?done=accepted").follow().says(200,
		"You have accepted.")
	if got := w.user(mara).Data.Memberships["org_o"]; len(got) != 2 {
		t.Errorf("holds %v", got)
	}
}

func TestRolesFromBeforeAreListedAsNotAccepted(t *testing.T) {
	w := newSite(t)
	eventtest.Given(t, w.store, org.Kind, "org_o", "org_o", nil, org.Added{Name: "Old friends"})
	w.change(mara, user.PasswordChanged{})
	w.change(mara, user.MembershipSet{Scope: "org_o", Roles: []access.Role{access.OrgUserManager}})
	page := w.in("mara").open(pages.PathOrgs).says(200, "You were never asked about these roles.")
	page.press(pages.DoAcceptRoles, "org_o").leads("/account/organizations?done=accepted")
	if user.Unaccepted(w.user(mara), "org_o") {
		t.Error("they are not accepted")
	}
	page.press(pages.DoLeave, "org_o").leads("/account/organizations?done=organization")
}
