package app_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// of is the permit of somebody with roles, for an organization.
func of(t *testing.T, where string, p access.Permission, holds access.Memberships) access.Permit {
	t.Helper()
	permit, err := (&access.Caller{UserID: "usr_x", Memberships: holds}).In(where, p)
	must(t, err)
	return permit
}

func TestOnlyTheInstallationOpensAnApplicationToAllOrganizations(t *testing.T) {
	uris := app.Settings{RedirectURIs: []string{"https://shop.example/cb"}}
	open := uris
	open.AllOrganizations = true
	for name, c := range map[string]struct {
		holds access.Memberships
		may   bool
	}{
		"an owner of the installation": {access.Memberships{access.Installation: {access.IAMOwner}}, true},
		"an owner of the organization": {access.Memberships{"org_a": {access.OrgOwner}}, false},
		"a settings manager of it":     {access.Memberships{"org_a": {access.OrgSettingsManager}}, false},
		"who owns it, and looks after organizations": {
			access.Memberships{"org_a": {access.OrgOwner},
				access.Installation: {access.IAMOrgManager, access.IAMOwnerViewer}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, permit := world(t), of(t, "org_a", access.AppWrite, c.holds)
			settle := func(what string, err error) {
				t.Helper()
				switch {
				case c.may:
					must(t, err)
				case !errors.Is(err, app.ErrInstallationDecides) || !strings.Contains(err.Error(), "IAM_OWNER"):
					t.Errorf("%s: got %v", what, err)
				}
			}
			_, err := app.Add(t.Context(), s, permit, app.New{Name: "Shop", Type: app.Web, Settings: open})
			settle("a new one", err)
			_, err = app.Add(t.Context(), s, permit, app.New{Name: "Shop", Type: app.Web, Settings: uris})
			must(t, err)
			_, err = app.Modify(t.Context(), s, permit, "app_spa", event.IfMatch{},
				app.SettingsChanged{Name: new("Spa"), AllOrganizations: new(true)})
			settle("one that was not", err)
			// One that is open stays so, whoever changes it, and its organization can close it.
			_, err = app.Modify(t.Context(), s, permit, "app_active", event.IfMatch{},
				app.SettingsChanged{Name: new("Shop 2"), AllOrganizations: new(true)})
			must(t, err)
			_, err = app.Modify(t.Context(), s, permit, "app_active", event.IfMatch{},
				app.SettingsChanged{Name: new("Shop 3")})
			must(t, err)
			if a := eventtest.State(t, s, app.Kind, "app_active").Data; !a.AllOrganizations || a.Epoch != 0 ||
				a.Name != "Shop 3" {
				t.Errorf("got %+v", a)
			}
			_, err = app.Modify(t.Context(), s, permit, "app_active", event.IfMatch{},
				app.SettingsChanged{AllOrganizations: new(false)})
			must(t, err)
			_, err = app.Modify(t.Context(), s, permit, "app_active", event.IfMatch{},
				app.SettingsChanged{AllOrganizations: new(true)})
			settle("one that was once", err)
		})
	}
}

func TestTheInstallationSeesWhichApplicationsAreOpen(t *testing.T) {
	s := world(t)
	installation := access.Memberships{access.Installation: {access.IAMOwnerViewer}}
	found, next, err := app.ListOpen(t.Context(), s, of(t, access.Installation, access.SystemRead, installation),
		event.Cursor{}, 10)
	must(t, err)
	// and not the one that was removed
	if got := ids(found); next != nil || got != "app_active app_foreign app_inactive app_off app_orphan" {
		t.Errorf("got %s", got)
	}
	if _, _, err := app.ListOpen(t.Context(), s, ownerA, event.Cursor{}, 10); !errors.Is(err, access.ErrDenied) {
		t.Errorf("with a permit for one organization: %v", err)
	}
}

func ids(found []*event.Object[app.App]) string {
	var all []string
	for _, a := range found {
		all = append(all, a.ID)
	}
	return strings.Join(all, " ")
}

func TestAClientIsApprovedOnceAndWithdrawn(t *testing.T) {
	s := world(t)
	eventtest.Given(t, s, app.Kind, "app_theirs", "org_b", nil,
		app.Added{Name: "Theirs", NameKey: "theirs", Type: app.Web, Settings: shop})
	approve := func(client string) error {
		_, err := app.ApproveAudience(t.Context(), s, ownerA, "app_api", event.IfMatch{}, client)
		return err
	}
	withdraw := func(client string) error {
		_, err := app.WithdrawAudience(t.Context(), s, ownerA, "app_api", event.IfMatch{}, client)
		return err
	}
	takes := func(client, clientOrg string) bool {
		return app.Takes(eventtest.State(t, s, app.Kind, "app_api"), client, clientOrg)
	}
	if takes("app_foreign", "org_b") || !takes("app_active", "org_a") {
		t.Error("without an approval only clients of the own organization may")
	}
	mark := s.Mark()
	must(t, approve("app_foreign"))
	s.Then(t, mark, eventtest.Fact{Object: "app_api", Type: "app.audience_approved.v1",
		Payload: fmt.Sprintf(`{"clientId":"app_foreign","clientOrg":"org_b","at":%d}`, event.Micros(s.Now()))})
	if !takes("app_foreign", "org_b") || takes("app_theirs", "org_b") {
		t.Error("the client that was approved may, and no other one of its organization")
	}
	mark = s.Mark()
	for _, c := range []struct {
		what      string
		err, want error
	}{
		{"twice", approve("app_foreign"), app.ErrApprovalExists},
		{"one of the own", approve("app_active"), app.ErrApprovalNotNeeded},
		{"nobody", approve("app_nobody"), app.ErrClientNotFound},
		{"one that is gone", approve("app_gone"), app.ErrClientNotFound},
		{"never approved", withdraw("app_theirs"), app.ErrApprovalNotFound},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v", c.what, c.err)
		}
	}
	s.Then(t, mark)
	must(t, withdraw("app_foreign"))
	s.Then(t, mark, eventtest.Fact{Object: "app_api", Type: "app.audience_withdrawn.v1",
		Payload: `{"clientId":"app_foreign"}`})
	if takes("app_foreign", "org_b") || !errors.Is(withdraw("app_foreign"), app.ErrApprovalNotFound) {
		t.Error("it is still approved")
	}
}

func TestServiceUsersAreApprovedAndPeopleAreNot(t *testing.T) {
	s := eventtest.New(t, app.Kind, user.Kind)
	eventtest.Given(t, s, app.Kind, "app_api", "org_a", nil, app.Added{Name: "Api", NameKey: "api", Type: app.API})
	eventtest.Given(t, s, user.Kind, "usr_robot", "org_b", []event.Claim{user.NameClaim("org_b", "robot")},
		user.ServiceAdded{Personal: user.ServiceFacts{Name: "Robot", UserName: "robot", UserNameKey: "robot"}})
	eventtest.Given(t, s, user.Kind, "usr_jo", "org_b", []event.Claim{user.NameClaim("org_b", "jo")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo"}})
	_, err := app.ApproveAudience(t.Context(), s, ownerA, "app_api", event.IfMatch{}, "usr_robot")
	must(t, err)
	if _, err := app.ApproveAudience(t.Context(), s, ownerA, "app_api", event.IfMatch{}, "usr_jo"); !errors.Is(err,
		app.ErrClientNotFound) {
		t.Errorf("a person: %v", err)
	}
}

func TestApprovalsAreBounded(t *testing.T) {
	s := world(t)
	for i := range app.MaxApprovals {
		eventtest.Given(t, s, app.Kind, "app_api", "", nil,
			app.AudienceApproved{ClientID: fmt.Sprintf("app_%d", i), ClientOrg: "org_b"})
	}
	_, err := app.ApproveAudience(t.Context(), s, ownerA, "app_api", event.IfMatch{}, "app_foreign")
	if !errors.Is(err, app.ErrTooManyApprovals) {
		t.Errorf("got %v", err)
	}
}

func TestApprovalsAreSeenFromBothSides(t *testing.T) {
	s := world(t)
	for client, clientOrg := range map[string]string{"app_foreign": "org_b", "app_off": "org_off"} {
		eventtest.Given(t, s, app.Kind, "app_api", "", nil,
			app.AudienceApproved{ClientID: client, ClientOrg: clientOrg})
	}
	eventtest.Given(t, s, app.Kind, "app_off", "", nil,
		app.AudienceApproved{ClientID: "app_active", ClientOrg: "org_a"})
	clients := func(found []*event.Object[app.App], next *event.Cursor, err error) string {
		t.Helper()
		must(t, err)
		var all []string
		for _, a := range found {
			for _, given := range a.Data.Approvals {
				all = append(all, a.ID+"<"+given.Client)
			}
		}
		return strings.Join(slices.Sorted(slices.Values(all)), " ")
	}
	for _, c := range []struct{ org, given, got string }{
		{"org_a", "app_api<app_foreign app_api<app_off", "app_off<app_active"},
		{"org_b", "", "app_api<app_foreign"},
		{"org_off", "app_off<app_active", "app_api<app_off"},
	} {
		if got := clients(app.ListApproving(t.Context(), s, permit(c.org), event.Cursor{}, 10)); got != c.given {
			t.Errorf("%s has approved %q", c.org, got)
		}
		if got := clients(app.ListApproved(t.Context(), s, permit(c.org), event.Cursor{}, 10)); got != c.got {
			t.Errorf("%s was approved %q", c.org, got)
		}
	}
}
