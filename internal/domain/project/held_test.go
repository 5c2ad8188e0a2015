package project_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

// reads counts what is read.
type reads struct {
	event.Store
	records, holders atomic.Int64
}

func (r *reads) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	r.records.Add(1)
	return r.Store.Record(ctx, ref)
}

func (r *reads) Holder(ctx context.Context, c event.Claim) (string, error) {
	r.holders.Add(1)
	return r.Store.Holder(ctx, c)
}

// fair has a vendor (org_v) with the application app_p of the project prj_p, and two customers that have an access to
// it: org_1 may give admin and viewer, org_2 viewer only. There is a person in each (usr_v, usr_1, usr_2), and in
// org_x, which has nothing to do with it. grp_<org> are groups.
type fair struct {
	t *testing.T
	*eventtest.Store
}

func newFair(t *testing.T) *fair {
	t.Helper()
	m := &fair{t: t, Store: eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, group.Kind, project.Kind,
		project.GrantKind, project.AccessKind)}
	for _, id := range []string{"v", "1", "2", "x"} {
		eventtest.Given(t, m.Store, org.Kind, "org_"+id, "org_"+id, nil, org.Added{Name: id})
		eventtest.Given(t, m.Store, user.Kind, "usr_"+id, "org_"+id, []event.Claim{user.NameClaim("org_"+id, "jo")},
			user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo"}})
		eventtest.Given(t, m.Store, group.Kind, "grp_"+id, "org_"+id, []event.Claim{group.NameClaim("org_"+id, "g")},
			group.Added{Name: "g", NameKey: "g"})
	}
	eventtest.Given(t, m.Store, project.Kind, "prj_p", "org_v", nil, project.Added{Name: "p", NameKey: "p"},
		project.RoleSet{Key: "admin"}, project.RoleSet{Key: "viewer"})
	m.access("pac_1", "org_1", role("admin", 1), role("viewer", 2))
	m.access("pac_2", "org_2", role("viewer", 2))
	eventtest.Given(t, m.Store, app.Kind, "app_p", "org_v", nil, app.Added{Name: "p", NameKey: "p", Type: app.Web})
	return m
}

func role(key string, epoch int64) user.AppRole { return user.AppRole{Key: key, Epoch: epoch} }

func (m *fair) access(id, in string, roles ...user.AppRole) {
	m.t.Helper()
	eventtest.Given(m.t, m.Store, project.AccessKind, id, in, []event.Claim{project.AccessClaim("prj_p", in)},
		project.AccessAdded{Project: "prj_p", Owner: "org_v", Grant: "pgr_" + in, Roles: roles})
}

func change[S any](m *fair, kind *event.Objects[S], id string, facts ...event.Fact[S]) {
	m.t.Helper()
	eventtest.Given(m.t, m.Store, kind, id, "", nil, facts...)
}

// give gives somebody roles in a place.
func (m *fair) give(who, place, in string, roles ...user.AppRole) {
	m.t.Helper()
	change(m, user.Kind, who, user.AppRolesSet{Place: place, Project: "prj_p", Org: in, Roles: roles})
}

func (m *fair) settings(s app.RoleSettings) {
	m.t.Helper()
	s.Project = "prj_p"
	change(m, app.Kind, "app_p", app.RoleSettingsSet{RoleSettings: s})
}

func guest(in string) user.MembershipSet { return user.MembershipSet{Scope: in, Stays: true} }

// look finds the places of somebody, and tells how much was read.
func (m *fair) look(who, bound string) (p *project.Places, w project.Person, held project.Held, records, holders int64) {
	m.t.Helper()
	w = project.PersonOf(eventtest.State(m.t, m.Store, user.Kind, who))
	counted, c := &reads{Store: m.Store}, project.ClientOf(eventtest.State(m.t, m.Store, app.Kind, "app_p"))
	p, err := project.Look(m.t.Context(), counted, c, w, bound)
	testkit.Must(m.t, err)
	held, err = p.Held(m.t.Context(), counted, c, w)
	testkit.Must(m.t, err)
	return p, w, held, counted.records.Load(), counted.holders.Load()
}

// inCommand judges inside a command what was looked for before it.
func (m *fair) inCommand(p *project.Places, who string) (v project.Verdict, err error) {
	m.t.Helper()
	err = event.Do(m.t.Context(), m.Store, event.Command{
		Origin: event.Origin{Actor: event.System},
		Read:   append(p.Reads(), user.Kind.Ref(who), app.Kind.Ref("app_p")),
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, who)
			if err != nil {
				return err
			}
			a, err := app.Kind.Get(tx, "app_p")
			if err != nil {
				return err
			}
			v, _, err = p.JudgeIn(tx, project.ClientOf(a), project.PersonOf(u), "")
			return err
		},
	})
	return v, err
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	testkit.Must(t, err)
	return string(out)
}

func TestWhichRolesCount(t *testing.T) {
	both := []user.AppRole{role("admin", 1), role("viewer", 2)}
	for _, tt := range []struct {
		name  string
		who   string
		bound string
		given func(*fair)
		want  string
	}{
		{"none", "usr_v", "", func(*fair) {}, `{}`},
		{"in the own organization", "usr_v", "", func(m *fair) { m.give("usr_v", "prj_p", "org_v", both...) },
			`{"org_v":["admin","viewer"]}`},
		{"in an organization with an access", "usr_1", "", func(m *fair) { m.give("usr_1", "pac_1", "org_1", both...) },
			`{"org_1":["admin","viewer"]}`},
		{"more than was granted", "usr_2", "",
			func(m *fair) { m.give("usr_2", "pac_2", "org_2", role("admin", 1), role("viewer", 1)) },
			`{"org_2":["viewer"]}`},
		{"of another epoch", "usr_v", "", func(m *fair) { m.give("usr_v", "prj_p", "org_v", role("admin", 2)) }, `{}`},
		{"of another epoch in an access", "usr_1", "",
			func(m *fair) { m.give("usr_1", "pac_1", "org_1", role("admin", 3)) }, `{}`},
		{"in a place of another organization", "usr_2", "",
			func(m *fair) { m.give("usr_2", "pac_1", "org_2", both...) }, `{}`},
		{"in another organization's place under its name", "usr_2", "",
			func(m *fair) { m.give("usr_2", "pac_1", "org_1", both...) }, `{}`},
		{"in the project by somebody who is not there", "usr_1", "",
			func(m *fair) { m.give("usr_1", "prj_p", "org_v", both...) }, `{}`},
		{"in the project by a guest", "usr_1", "", func(m *fair) {
			change(m, user.Kind, "usr_1", guest("org_v"))
			m.give("usr_1", "prj_p", "org_v", both...)
		}, `{"org_v":["admin","viewer"]}`},
		{"without an access", "usr_x", "", func(m *fair) { m.give("usr_x", "pac_x", "org_x", both...) }, `{}`},
		{"through a group", "usr_1", "", func(m *fair) {
			change(m, user.Kind, "usr_1", user.GroupJoined{Org: "org_1", Group: "grp_1"})
			change(m, project.AccessKind, "pac_1", project.AccessGroupRolesSet{Group: "grp_1", Roles: both[:1]})
		}, `{"org_1":["admin"]}`},
		{"through a group of the own organization and directly", "usr_v", "", func(m *fair) {
			change(m, user.Kind, "usr_v", user.GroupJoined{Org: "org_v", Group: "grp_v"})
			change(m, project.Kind, "prj_p", project.GroupRolesSet{Group: "grp_v", Roles: both})
			m.give("usr_v", "prj_p", "org_v", both[0])
		}, `{"org_v":["admin","viewer"]}`},
		{"through a group of another organization", "usr_1", "", func(m *fair) {
			change(m, user.Kind, "usr_1", user.GroupJoined{Org: "org_1", Group: "grp_2"})
			change(m, project.AccessKind, "pac_2", project.AccessGroupRolesSet{Group: "grp_2", Roles: both})
		}, `{}`},
		{"through a group that somebody is not in", "usr_1", "", func(m *fair) {
			change(m, user.Kind, "usr_1", user.GroupJoined{Org: "org_1", Group: "grp_1"})
			change(m, project.AccessKind, "pac_1", project.AccessGroupRolesSet{Group: "grp_other", Roles: both})
		}, `{}`},
		{"of a project of another organization", "usr_v", "", func(m *fair) {
			eventtest.Given(m.t, m.Store, project.Kind, "prj_q", "org_x", nil, project.Added{Name: "q", NameKey: "q"},
				project.RoleSet{Key: "admin"})
			change(m, user.Kind, "usr_v", user.AppRolesSet{Place: "prj_q", Project: "prj_q", Org: "org_v", Roles: both})
			change(m, app.Kind, "app_p",
				app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_q", Roles: true}})
		}, `{}`},
		{"through a group that somebody left", "usr_1", "", func(m *fair) {
			change(m, user.Kind, "usr_1", user.GroupJoined{Org: "org_1", Group: "grp_1"},
				user.GroupLeft{Org: "org_1", Group: "grp_1"})
			change(m, project.AccessKind, "pac_1", project.AccessGroupRolesSet{Group: "grp_1", Roles: both})
		}, `{}`},
		{"in two organizations", "usr_1", "", inTwo, `{"org_1":["admin"],"org_2":["viewer"]}`},
		{"in two organizations, bound to one", "usr_1", "org_2", inTwo, `{"org_2":["viewer"]}`},
		{"in two organizations, bound to home", "usr_1", "org_1", inTwo, `{"org_1":["admin"]}`},
		{"in two organizations, bound to a third", "usr_1", "org_x", inTwo, `{}`},
		{"of a guest who left", "usr_1", "", func(m *fair) {
			inTwo(m)
			change(m, user.Kind, "usr_1", user.MembershipSet{Scope: "org_2"})
		}, `{"org_1":["admin"]}`},
		{"of a guest of an organization that is off", "usr_1", "", func(m *fair) {
			inTwo(m)
			change(m, org.Kind, "org_2", org.Deactivated{})
		}, `{"org_1":["admin"]}`},
		{"of a role that was removed", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			change(m, project.Kind, "prj_p", project.RoleRemoved{Key: "admin"})
		}, `{"org_1":["viewer"]}`},
		{"of a role that was removed and came again", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			m.give("usr_1", "prj_p", "org_v", both...)
			change(m, project.Kind, "prj_p", project.RoleRemoved{Key: "admin"}, project.RoleSet{Key: "admin"})
		}, `{"org_1":["viewer"]}`},
		{"of a role that was taken out of the access and came again", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			change(m, project.AccessKind, "pac_1", project.AccessRolesSet{Roles: both[1:]},
				project.AccessRolesSet{Roles: both})
		}, `{"org_1":["viewer"]}`},
		{"of a project that was removed", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			change(m, project.Kind, "prj_p", project.WasRemoved{})
		}, `{}`},
		{"of an access that was withdrawn", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			change(m, project.AccessKind, "pac_1", project.AccessRemoved{})
		}, `{}`},
		{"of an access that was withdrawn and granted again", "usr_1", "", func(m *fair) {
			m.give("usr_1", "pac_1", "org_1", both...)
			change(m, project.AccessKind, "pac_1", project.AccessRemoved{})
			m.access("pac_again", "org_1", both...)
		}, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(app.RoleSettings{Roles: true})
			tt.given(m)
			if _, _, held, _, _ := m.look(tt.who, tt.bound); text(t, held.Roles) != tt.want || held.Groups != nil {
				t.Errorf("got %s, and the groups %v", text(t, held.Roles), held.Groups)
			}
		})
	}
}

// inTwo has usr_1 be admin at home and viewer as a guest.
func inTwo(m *fair) {
	m.give("usr_1", "pac_1", "org_1", role("admin", 1))
	change(m, user.Kind, "usr_1", guest("org_2"))
	m.give("usr_1", "pac_2", "org_2", role("viewer", 1))
}

func TestWhoMayUseAnApplicationOfAProject(t *testing.T) {
	withRole := func(m *fair) { m.settings(app.RoleSettings{Required: true}) }
	for _, tt := range []struct {
		name  string
		who   string
		bound string
		given func(*fair)
		want  project.Verdict
	}{
		{"people of its organization", "usr_v", "", func(*fair) {}, project.Admitted},
		{"people of an organization with an access", "usr_1", "", func(*fair) {}, project.Admitted},
		{"people of an organization without one", "usr_x", "", func(*fair) {}, project.NotForThem},
		{"people of an organization without one, where it is open", "usr_x", "", open, project.Admitted},
		{"guests of an organization with an access", "usr_x", "",
			func(m *fair) { change(m, user.Kind, "usr_x", guest("org_1")) }, project.Admitted},
		{"guests of an organization with an access that is off", "usr_x", "", func(m *fair) {
			change(m, user.Kind, "usr_x", guest("org_1"))
			change(m, org.Kind, "org_1", org.Deactivated{})
		}, project.NotForThem},
		{"guests of its organization", "usr_x", "", func(m *fair) { change(m, user.Kind, "usr_x", guest("org_v")) },
			project.Admitted},
		{"guests of its organization, where it has no project", "usr_x", "", func(m *fair) {
			change(m, user.Kind, "usr_x", guest("org_v"))
			change(m, app.Kind, "app_p", app.RoleSettingsSet{})
		}, project.NotForThem},
		{"owners of the installation", "usr_x", "", func(m *fair) {
			change(m, user.Kind, "usr_x",
				user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}})
		}, project.NotForThem},
		{"people whose access was withdrawn", "usr_1", "",
			func(m *fair) { change(m, project.AccessKind, "pac_1", project.AccessRemoved{}) }, project.NotForThem},
		{"people whose access is to another project", "usr_x", "", func(m *fair) {
			eventtest.Given(m.t, m.Store, project.AccessKind, "pac_x", "org_x",
				[]event.Claim{project.AccessClaim("prj_q", "org_x")},
				project.AccessAdded{Project: "prj_q", Owner: "org_v"})
		}, project.NotForThem},
		{"people whose access is to a project that was removed", "usr_1", "",
			func(m *fair) { change(m, project.Kind, "prj_p", project.WasRemoved{}) }, project.NotForThem},
		{"people whose access is to a project of a third organization", "usr_1", "", func(m *fair) {
			eventtest.Given(m.t, m.Store, project.Kind, "prj_q", "org_x", nil, project.Added{Name: "q", NameKey: "q"})
			eventtest.Given(m.t, m.Store, project.AccessKind, "pac_q", "org_1",
				[]event.Claim{project.AccessClaim("prj_q", "org_1")},
				project.AccessAdded{Project: "prj_q", Owner: "org_x"})
			change(m, app.Kind, "app_p", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_q"}})
		}, project.NotForThem},

		{"bound to home", "usr_1", "org_1", func(*fair) {}, project.Admitted},
		{"bound to home without an access", "usr_x", "org_x", func(*fair) {}, project.NotForThem},
		{"bound to another organization", "usr_1", "org_2", func(*fair) {}, project.OtherOrg},
		{"bound to another organization, where it is open", "usr_1", "org_x", open, project.OtherOrg},
		{"bound to the application's organization", "usr_1", "org_v", func(*fair) {}, project.OtherOrg},
		{"bound as a guest", "usr_x", "org_1", func(m *fair) { change(m, user.Kind, "usr_x", guest("org_1")) },
			project.Admitted},
		{"bound as a guest of the application's organization", "usr_x", "org_v",
			func(m *fair) { change(m, user.Kind, "usr_x", guest("org_v")) }, project.Admitted},
		{"bound as a guest of the vendor's people", "usr_v", "org_1",
			func(m *fair) { change(m, user.Kind, "usr_v", guest("org_1")) }, project.Admitted},
		{"bound as a guest of an organization without an access", "usr_1", "org_x",
			func(m *fair) { change(m, user.Kind, "usr_1", guest("org_x")) }, project.OtherOrg},
		{"bound as a guest of an organization without an access, where it is open", "usr_1", "org_x", func(m *fair) {
			open(m)
			change(m, user.Kind, "usr_1", guest("org_x"))
		}, project.OtherOrg},
		{"bound to home, though only another organization has an access", "usr_x", "org_x",
			func(m *fair) { change(m, user.Kind, "usr_x", guest("org_1")) }, project.NotForThem},

		{"a role is required and there is none", "usr_v", "", withRole, project.NoRole},
		{"a role is required", "usr_v", "", func(m *fair) {
			withRole(m)
			m.give("usr_v", "prj_p", "org_v", role("viewer", 2))
		}, project.Admitted},
		{"a role is required, and it is dead", "usr_v", "", func(m *fair) {
			withRole(m)
			m.give("usr_v", "prj_p", "org_v", role("viewer", 7))
		}, project.NoRole},
		{"a role is required, and it was given in another organization than the sign-in is bound to", "usr_1", "org_1",
			func(m *fair) {
				withRole(m)
				inTwo(m)
				m.give("usr_1", "pac_1", "org_1")
			}, project.NoRole},
		{"a role is required where it is open", "usr_x", "", func(m *fair) {
			withRole(m)
			open(m)
		}, project.NoRole},
		{"a role is required and there is no project", "usr_v", "", func(m *fair) {
			m.give("usr_v", "prj_p", "org_v", role("viewer", 2))
			change(m, app.Kind, "app_p", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Required: true}})
		}, project.NoRole},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(app.RoleSettings{})
			tt.given(m)
			p, w, _, _, _ := m.look(tt.who, tt.bound)
			if got, _ := p.Judge(w, ""); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if got, err := m.inCommand(p, tt.who); err != nil || got != tt.want {
				t.Errorf("in a command: %v, %v", got, err)
			}
		})
	}
}

func open(m *fair) {
	change(m, app.Kind, "app_p", app.SettingsChanged{AllOrganizations: new(true)})
}

// A command sees what has changed since the places were looked for.
func TestACommandJudgesByItsOwnMoment(t *testing.T) {
	for _, tt := range []struct {
		name      string
		before    app.RoleSettings
		meanwhile func(*fair)
		want      project.Verdict
	}{
		{"nothing", app.RoleSettings{Required: true}, func(*fair) {}, project.Admitted},
		{"the access is withdrawn", app.RoleSettings{},
			func(m *fair) { change(m, project.AccessKind, "pac_1", project.AccessRemoved{}) },
			project.NotForThem},
		{"the project is removed", app.RoleSettings{},
			func(m *fair) { change(m, project.Kind, "prj_p", project.WasRemoved{}) }, project.NotForThem},
		{"the role is taken away", app.RoleSettings{Required: true},
			func(m *fair) { m.give("usr_1", "pac_1", "org_1") }, project.NoRole},
		{"the role is removed", app.RoleSettings{Required: true},
			func(m *fair) { change(m, project.Kind, "prj_p", project.RoleRemoved{Key: "admin"}) },
			project.NoRole},
		{"roles are required from now on", app.RoleSettings{}, func(m *fair) {
			m.give("usr_1", "pac_1", "org_1")
			m.settings(app.RoleSettings{Required: true})
		}, project.NoRole},
		{"the application gets another project", app.RoleSettings{}, func(m *fair) {
			change(m, app.Kind, "app_p", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_q"}})
		}, project.NotForThem},
		{"the application gets another project, which the organization may use", app.RoleSettings{Required: true},
			func(m *fair) {
				eventtest.Given(m.t, m.Store, project.Kind, "prj_q", "org_v", nil,
					project.Added{Name: "q", NameKey: "q"}, project.RoleSet{Key: "admin"})
				eventtest.Given(m.t, m.Store, project.AccessKind, "pac_q", "org_1",
					[]event.Claim{project.AccessClaim("prj_q", "org_1")}, project.AccessAdded{Project: "prj_q",
						Owner: "org_v", Grant: "pgr_q", Roles: []user.AppRole{role("admin", 1)}})
				change(m, user.Kind, "usr_1", user.AppRolesSet{Place: "pac_q", Project: "prj_q", Org: "org_1",
					Roles: []user.AppRole{role("admin", 1)}})
				change(m, app.Kind, "app_p",
					app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_q", Required: true}})
			}, project.Admitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(tt.before)
			m.give("usr_1", "pac_1", "org_1", role("admin", 1))
			p, _, _, _, _ := m.look("usr_1", "")
			tt.meanwhile(m)
			got, err := m.inCommand(p, "usr_1")
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	t.Run("roles are required of the own people from now on", func(t *testing.T) {
		for given, want := range map[string]project.Verdict{"admin": project.Admitted, "": project.NoRole} {
			m := newFair(t)
			m.settings(app.RoleSettings{})
			if given != "" {
				m.give("usr_v", "prj_p", "org_v", role(given, 1))
			}
			p, _, _, _, _ := m.look("usr_v", "")
			m.settings(app.RoleSettings{Required: true})
			if got, err := m.inCommand(p, "usr_v"); err != nil || got != want {
				t.Errorf("with %q: %v, %v", given, got, err)
			}
		}
	})
}

func TestWhichGroupsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name, who, bound string
		given            func(*fair)
		want             string
	}{
		{"none", "usr_v", "", func(*fair) {}, `{}`},
		{"of the own organization and of one with an access", "usr_v", "", everywhere("usr_v"),
			`{"org_1":["grp_1"],"org_v":["grp_v"]}`},
		{"bound to one", "usr_v", "org_1", everywhere("usr_v"), `{"org_1":["grp_1"]}`},
		{"bound to one without an access", "usr_v", "org_x", everywhere("usr_v"), `{}`},
		{"of an organization whose access was withdrawn", "usr_v", "", func(m *fair) {
			everywhere("usr_v")(m)
			change(m, project.AccessKind, "pac_1", project.AccessRemoved{})
		}, `{"org_v":["grp_v"]}`},
		{"one that was removed", "usr_v", "", func(m *fair) {
			everywhere("usr_v")(m)
			change(m, group.Kind, "grp_1", group.WasRemoved{})
		}, `{"org_v":["grp_v"]}`},
		{"one of another organization than it says", "usr_v", "", func(m *fair) {
			change(m, user.Kind, "usr_v", user.GroupJoined{Org: "org_v", Group: "grp_1"})
		}, `{}`},
		{"of somebody who is a guest no longer", "usr_x", "", func(m *fair) {
			everywhere("usr_x")(m)
			change(m, user.Kind, "usr_x", user.MembershipSet{Scope: "org_v"})
		}, `{"org_1":["grp_1"]}`},
		{"without a project", "usr_v", "", func(m *fair) {
			everywhere("usr_v")(m)
			change(m, app.Kind, "app_p", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Groups: true}})
		}, `{"org_v":["grp_v"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(app.RoleSettings{Groups: true})
			tt.given(m)
			if _, _, held, _, _ := m.look(tt.who, tt.bound); text(t, held.Groups) != tt.want || held.Roles != nil {
				t.Errorf("got %s, and the roles %v", text(t, held.Groups), held.Roles)
			}
		})
	}
}

func judged(p *project.Places, w project.Person) project.Verdict {
	v, _ := p.Judge(w, "")
	return v
}

// What rests on an access ends with it, also where the organization gets another one.
func TestAnAccessThatIsGrantedAgainIsAnotherOne(t *testing.T) {
	for _, tt := range []struct {
		name, who, bound, place, again string
	}{
		{"at home", "usr_1", "", "pac_1", "pac_again"},
		{"at home, bound", "usr_1", "org_1", "pac_1", "pac_again"},
		{"as a guest", "usr_x", "", "pac_1", "pac_again"},
		{"as a guest, bound", "usr_x", "org_1", "pac_1", "pac_again"},
		{"the vendor's people as guests, bound", "usr_v", "org_1", "pac_1", "pac_again"},
		{"the vendor's people", "usr_v", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(app.RoleSettings{})
			for _, who := range []string{"usr_x", "usr_v"} {
				change(m, user.Kind, who, guest("org_1"))
			}
			p, w, _, _, _ := m.look(tt.who, tt.bound)
			if v, place := p.Judge(w, ""); v != project.Admitted || place != tt.place {
				t.Fatalf("got %v through %q", v, place)
			}
			if v, place := p.Judge(w, tt.place); v != project.Admitted || place != tt.place {
				t.Errorf("it does not go on: %v through %q", v, place)
			}
			change(m, project.AccessKind, "pac_1", project.AccessRemoved{})
			m.access("pac_again", "org_1")
			p, w, _, _, _ = m.look(tt.who, tt.bound)
			if v, place := p.Judge(w, ""); v != project.Admitted || place != tt.again {
				t.Errorf("somebody new: %v through %q", v, place)
			}
			if v, _ := p.Judge(w, tt.place); (v == project.Admitted) != (tt.place == "") {
				t.Errorf("what rests on the access before: %v", v)
			}
		})
	}
}

// everywhere has somebody be in a group of the vendor, of a customer, and of an organization without an access.
func everywhere(who string) func(*fair) {
	return func(m *fair) {
		for _, id := range []string{"v", "1", "x"} {
			change(m, user.Kind, who, guest("org_"+id), user.GroupJoined{Org: "org_" + id, Group: "grp_" + id})
		}
	}
}

// What a token or an introspection costs besides what it did before.
func TestHowMuchIsRead(t *testing.T) {
	crowd := func(m *fair) {
		for i := range user.MaxGroups {
			change(m, user.Kind, "usr_v", user.GroupJoined{Org: "org_v", Group: fmt.Sprintf("grp_%d", i+100)})
		}
	}
	for _, tt := range []struct {
		name             string
		who              string
		settings         app.RoleSettings
		given            func(*fair)
		records, holders int64
	}{
		{"nothing is switched on", "usr_v", app.RoleSettings{}, func(*fair) {}, 0, 0},
		{"nothing is switched on, in 200 groups", "usr_v", app.RoleSettings{}, crowd, 0, 0},
		{"roles, at home", "usr_v", app.RoleSettings{Roles: true}, func(*fair) {}, 1, 0},
		{"roles, at home, in 200 groups", "usr_v", app.RoleSettings{Roles: true}, crowd, 1, 0},
		{"a role is required, at home", "usr_v", app.RoleSettings{Required: true}, crowd, 1, 0},
		{"an access", "usr_1", app.RoleSettings{}, func(*fair) {}, 2, 1},
		{"an access, and a role in the installation", "usr_1", app.RoleSettings{}, func(m *fair) {
			change(m, user.Kind, "usr_1",
				user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}})
		}, 2, 1},
		{"an access and roles", "usr_1", app.RoleSettings{Roles: true, Required: true}, func(*fair) {}, 2, 1},
		{"an access and a guest's", "usr_1", app.RoleSettings{Roles: true}, inTwo, 4, 2},
		{"a guest who has nothing there", "usr_v", app.RoleSettings{Roles: true},
			func(m *fair) { change(m, user.Kind, "usr_v", guest("org_x")) }, 1, 0},
		{"groups, in 200", "usr_v", app.RoleSettings{Groups: true}, crowd, 1 + user.MaxGroups, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFair(t)
			m.settings(tt.settings)
			tt.given(m)
			if _, _, _, records, holders := m.look(tt.who, ""); records != tt.records || holders != tt.holders {
				t.Errorf("%d objects and %d claims were read", records, holders)
			}
		})
	}
	t.Run("a guest of very many organizations", func(t *testing.T) {
		m := newFair(t)
		m.settings(app.RoleSettings{})
		w := project.Person{Org: "org_x", Memberships: access.Memberships{"org_1": nil}}
		for i := range 1000 {
			w.Memberships[fmt.Sprintf("org_many_%d", i)] = nil
		}
		counted := &reads{Store: m.Store}
		p, err := project.Look(t.Context(), counted,
			project.ClientOf(eventtest.State(t, m.Store, app.Kind, "app_p")), w, "")
		testkit.Must(t, err)
		if n := counted.holders.Load(); n > 101 || judged(p, w) != project.Admitted {
			t.Errorf("%d claims were read", n)
		}
		if slices.ContainsFunc(p.Reads(), func(r event.Ref) bool { return r.ID == "" }) {
			t.Error("a command would read nothing")
		}
	})
}
