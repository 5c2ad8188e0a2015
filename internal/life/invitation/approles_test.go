package invitation

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// withProjects adds prj_1 of org_a with the roles admin and reader; prj_2 of org_def, of which org_a may give reader;
// and prj_3 of org_def.
func (w *world) withProjects() {
	w.t.Helper()
	for id, owner := range map[string]string{"prj_1": "org_a", "prj_2": "org_def", "prj_3": "org_def"} {
		eventtest.Given(w.t, w.store, project.Kind, id, owner, nil,
			project.Added{Name: id, NameKey: id}, project.RoleSet{Key: "admin"}, project.RoleSet{Key: "reader"})
	}
	eventtest.Given(w.t, w.store, project.AccessKind, "pac_1", "org_a",
		[]event.Claim{project.AccessClaim("prj_2", "org_a")}, project.AccessAdded{Project: "prj_2", Owner: "org_def",
			Grant: "pgr_1", Roles: []user.AppRole{{Key: "reader", Epoch: 2}}})
}

func of(id string, keys ...string) AppRoles { return AppRoles{Project: id, Keys: keys} }

func TestWhichRolesInApplicationsAnInvitationCanGive(t *testing.T) {
	many := make([]AppRoles, MaxProjects+1)
	for name, c := range map[string]struct {
		by      string
		roles   []AppRoles
		refusal errs.Kind
		field   string
	}{
		"of an own project":           {"usr_owner", []AppRoles{of("prj_1", "reader", "admin", "reader")}, 0, ""},
		"of a granted one":            {"usr_owner", []AppRoles{of("prj_2", "reader"), of("prj_1", "admin")}, 0, ""},
		"by who may not give any":     {"usr_manager", []AppRoles{of("prj_1", "reader")}, errs.PermissionDenied, ""},
		"a role that was not granted": {"usr_owner", []AppRoles{of("prj_2", "admin")}, errs.InvalidArgument, "appRoles[0].roleKeys"},
		"a role that does not exist":  {"usr_owner", []AppRoles{of("prj_1", "other")}, errs.InvalidArgument, "appRoles[0].roleKeys"},
		"of a project of others": {"usr_owner", []AppRoles{of("prj_1", "admin"), of("prj_3", "reader")},
			errs.InvalidArgument, "appRoles[1].projectId"},
		"of no project":      {"usr_owner", []AppRoles{of("prj_x", "reader")}, errs.InvalidArgument, "appRoles[0].projectId"},
		"of a project twice": {"usr_owner", []AppRoles{of("prj_1", "admin"), of("prj_1", "reader")}, errs.InvalidArgument, "appRoles[1].projectId"},
		"none of a project":  {"usr_owner", []AppRoles{of("prj_1")}, errs.InvalidArgument, "appRoles[0].roleKeys"},
		"a key that is none": {"usr_owner", []AppRoles{of("prj_1", "a b")}, errs.InvalidArgument, "appRoles[0].roleKeys[0]"},
		"of too many":        {"usr_owner", many, errs.InvalidArgument, "appRoles"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			w.withProjects()
			before := w.store.Fingerprint()
			_, err := w.Create(t.Context(), w.permit(c.by), New{Email: "new@b.test", AppRoles: c.roles})
			if c.refusal == 0 {
				must(t, err)
				return
			}
			got, is := errors.AsType[*errs.Error](err)
			if !is || got.Kind != c.refusal || c.field != "" && got.Fields[0].Field != c.field {
				t.Errorf("got %+v", err)
			}
			if w.store.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
}

func TestWhoAcceptsGetsTheRolesInApplicationsThatAreStillThere(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *world)
		want      []string
		refusal   *errs.Error
	}{
		"all": {func(*world) {}, []string{"prj_1 admin 1", "prj_1 reader 2", "pac_1 reader 1"}, nil},
		"without one that was removed, also if there is another of its name": {func(w *world) {
			eventtest.Given(w.t, w.store, project.Kind, "prj_1", "", nil, project.RoleRemoved{Key: "admin"},
				project.RoleSet{Key: "admin"})
		}, []string{"prj_1 reader 2", "pac_1 reader 1"}, nil},
		"without a project that is gone": {func(w *world) {
			eventtest.Given(w.t, w.store, project.Kind, "prj_1", "", nil, project.WasRemoved{})
		}, []string{"pac_1 reader 1"}, nil},
		"without a grant that is gone": {func(w *world) {
			eventtest.Given(w.t, w.store, project.AccessKind, "pac_1", "",
				[]event.Claim{project.AccessClaim("prj_2", "org_a")}, project.AccessRemoved{})
		}, []string{"prj_1 admin 1", "prj_1 reader 2"}, nil},
		"not from who may not give them any more": {func(w *world) {
			w.user("usr_owner", user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgUserManager}})
		}, nil, ErrInviterMayNot},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			w.withProjects()
			_, token := w.invite(New{Email: "new@b.test",
				AppRoles: []AppRoles{of("prj_1", "admin", "reader"), of("prj_2", "reader")}})
			c.meanwhile(w)
			in, err := w.accept(token)
			if c.refusal != nil {
				eventtest.As(t, err, c.refusal)
				return
			}
			must(t, err)
			var got []string
			for _, r := range eventtest.State(t, w.store, user.Kind, in.UserID).Data.AppRoles {
				for _, role := range r.Roles {
					got = append(got, fmt.Sprintf("%s %s %d", r.Place, role.Key, role.Epoch))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Roles that somebody has already stay, and a guest gets those of the place that invites.
func TestRolesInApplicationsOfAnInvitationComeBesideThoseThereAre(t *testing.T) {
	w := newWorld(t, true)
	w.withProjects()
	w.person("usr_guest", "org_def", "guest@b.test", user.VerifiedByOwner)
	_, token := w.invite(New{Email: "guest@b.test", AppRoles: []AppRoles{of("prj_1", "admin")}})
	_, err := w.acceptMine("usr_guest", token)
	must(t, err)
	w.store.Advance(2 * time.Minute)
	_, token = w.invite(New{Email: "guest@b.test", AppRoles: []AppRoles{of("prj_1", "reader")}})
	_, err = w.acceptMine("usr_guest", token)
	must(t, err)
	got := eventtest.State(t, w.store, user.Kind, "usr_guest").Data.AppRoles
	want := []user.AppRoles{{Place: "prj_1", Project: "prj_1", Org: "org_a",
		Roles: []user.AppRole{{Key: "admin", Epoch: 1}, {Key: "reader", Epoch: 2}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// The application of an invitation can be one of another organization, as long as its project is granted.
func TestAnInvitationNamesAnApplicationOfAGrantedProject(t *testing.T) {
	w := newWorld(t, true)
	w.withProjects()
	for id, of := range map[string]string{"app_granted": "prj_2", "app_other": "prj_3", "app_none": ""} {
		eventtest.Given(t, w.store, app.Kind, id, "org_def", nil, app.Added{Type: app.Web},
			app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: of}})
	}
	for id, ok := range map[string]bool{"app_granted": true, "app_other": false, "app_none": false, "app_x": false} {
		_, err := w.Create(t.Context(), w.permit("usr_owner"), New{Email: id + "@b.test", App: id})
		if got, is := errors.AsType[*errs.Error](err); ok != (err == nil) ||
			!ok && (!is || len(got.Fields) != 1 || got.Fields[0].Field != "appId") {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, token := w.invite(New{Email: "new@b.test", App: "app_granted"})
	l, err := w.Open(t.Context(), token)
	must(t, err)
	if l.App == nil {
		t.Error("the application is not named")
	}
	eventtest.Given(t, w.store, project.AccessKind, "pac_1", "",
		[]event.Claim{project.AccessClaim("prj_2", "org_a")}, project.AccessRemoved{})
	l, err = w.Open(t.Context(), token)
	must(t, err)
	if l.App != nil {
		t.Error("an application is named whose project is not granted any more")
	}
}
