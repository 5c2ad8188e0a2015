package group_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// givenPlaces lets the group give roles in a project of its organization, and in one that another organization has
// granted.
func givenPlaces(t testing.TB, s event.Store, roles []user.AppRole) {
	t.Helper()
	eventtest.Given(t, s, project.Kind, "prj_x", "org_a", nil, project.Added{Name: "x", NameKey: "x"},
		project.GroupRolesSet{Group: "grp_g", Roles: roles})
	eventtest.Given(t, s, project.AccessKind, "pac_x", "org_a", []event.Claim{project.AccessClaim("prj_y", "org_a")},
		project.AccessAdded{Project: "prj_y", Owner: "org_b", Grant: "pgr_x"},
		project.AccessGroupRolesSet{Group: "grp_g", Roles: roles})
	eventtest.Given(t, s, group.Kind, "grp_g", "", nil,
		group.AppRolesSet{Place: "prj_x", Project: "prj_x", Org: "org_a", Roles: roles},
		group.AppRolesSet{Place: "pac_x", Project: "prj_y", Org: "org_a", Roles: roles})
}

// Between the look at who is in the group and the command, somebody joins: before and after others, with and without
// roles.
func TestWhoJoinsWhileRolesAreGivenGetsThem(t *testing.T) {
	for name, roles := range map[string][]access.Role{"none before": nil, "others before": {access.OrgOwnerViewer}} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t, roles...)
			joined := 0
			meanwhile := &before{Store: s, happens: func() {
				if joined++; joined <= 2 { // before the group counts, and before it gives
					id := fmt.Sprint("usr_m", joined)
					membertest.User(t, s, id, "org_a", nil)
					join(t, s, id)
				}
			}}
			_, err := group.SetRoles(t.Context(), meanwhile, in(t, owner), "grp_g", event.IfMatch{},
				[]string{"ORG_USER_MANAGER"})
			must(t, err)
			holds(t, s, "usr_m1", access.OrgUserManager)
			holds(t, s, "usr_m2", access.OrgUserManager)
		})
	}
}

// Between the look at a group that gives nothing and the command that joins it, the group gets roles, and loses them
// again.
func TestWhoJoinsAGroupThatGetsRolesMeanwhileIsCounted(t *testing.T) {
	s := newInstallation(t)
	set := func(roles ...string) {
		_, err := group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{}, roles)
		must(t, err)
	}
	change := func(do func(event.Store) error, roles ...string) {
		t.Helper()
		once := sync.OnceFunc(func() { set(roles...) })
		must(t, do(&before{Store: s, happens: once}))
	}
	members := func(want int64) {
		t.Helper()
		if g := eventtest.State(t, s, group.Kind, "grp_g"); g.Data.Members != want {
			t.Errorf("the group counts %d members, not %d", g.Data.Members, want)
		}
	}
	add := func(s event.Store) error {
		_, err := group.AddMember(t.Context(), s, in(t, owner), "grp_g", "usr_a", event.IfMatch{})
		return err
	}
	remove := func(s event.Store) error {
		_, err := group.RemoveMember(t.Context(), s, in(t, owner), "grp_g", "usr_a", event.IfMatch{})
		return err
	}
	change(add, "ORG_USER_MANAGER")
	holds(t, s, "usr_a", access.OrgUserManager)
	members(1)
	change(remove)
	holds(t, s, "usr_a")
	members(0)
	must(t, add(s))
	change(remove, "ORG_USER_MANAGER")
	holds(t, s, "usr_a")
	members(0)
}

// Many join and leave a group on all nodes while its roles are given and taken. In the end all who are in it hold
// exactly what it gives, and nobody else does.
func TestRolesOfAGroupWhileManyJoinAndLeave(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, model.Kinds...)
		all := []*store.Store{nodes.Open(t)}
		if db.Engine == testdb.Postgres {
			all = append(all, nodes.Open(t))
		}
		membertest.Given(t, all[0])
		given(t, all[0])
		const many = 64
		for i := range many {
			membertest.User(t, all[0], fmt.Sprintf("usr_%02d", i), "org_a", nil)
		}
		permit := in(t, owner)
		var wait sync.WaitGroup
		for i := range many {
			wait.Go(func() {
				s, id := all[i%len(all)], fmt.Sprintf("usr_%02d", i)
				again(t, func() error {
					_, err := group.AddMember(t.Context(), s, permit, "grp_g", id, event.IfMatch{})
					return err
				})
				if i%3 == 0 {
					again(t, func() error {
						_, err := group.RemoveMember(t.Context(), s, permit, "grp_g", id, event.IfMatch{})
						return err
					})
				}
			})
		}
		for i, roles := range [][]string{{"ORG_OWNER_VIEWER"}, {}, {"ORG_USER_MANAGER"},
			{"ORG_OWNER_VIEWER", "ORG_USER_MANAGER"}, {}, {"ORG_OWNER_VIEWER"}} {
			wait.Go(func() {
				again(t, func() error {
					_, err := group.SetRoles(event.WritesMany(t.Context()), all[i%len(all)], permit, "grp_g",
						event.IfMatch{}, roles)
					return err
				})
			})
		}
		wait.Wait()
		g, err := group.Kind.Read(t.Context(), all[0], "grp_g")
		must(t, err)
		inside := int64(0)
		for i := range many {
			u, err := user.Kind.Read(t.Context(), all[len(all)-1], fmt.Sprintf("usr_%02d", i))
			must(t, err)
			var want []access.Role
			if i%3 != 0 {
				want = g.Data.Roles
				inside++
			}
			if u.Data.In("org_a", "grp_g") != (i%3 != 0) || !slices.Equal(u.Data.Memberships["org_a"], want) {
				t.Errorf("%s is in %v and holds %v, and the group gives %v", u.ID, u.Data.Groups,
					u.Data.Memberships, g.Data.Roles)
			}
		}
		if len(g.Data.Roles) > 0 && g.Data.Members != inside {
			t.Errorf("the group counts %d members of %d", g.Data.Members, inside)
		}
		report, err := all[0].RebuildCheck(t.Context())
		must(t, err)
		if len(report.Differences) > 0 {
			t.Errorf("different: %q", report.Differences)
		}
	})
}

// before is a store in which something happens before every command.
type before struct {
	event.Store
	happens func()
}

func (b *before) Do(ctx context.Context, c event.Command) error {
	b.happens()
	return b.Store.Do(ctx, c)
}

// again tries until nobody is in the way.
func again(t *testing.T, try func() error) {
	for range 200 {
		err := try()
		if e, is := err.(*errs.Error); is && e.Reason == event.Contention {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("others are always in the way")
}

// While roles are changed, everybody in the group holds the old ones or everybody holds the new ones, on every node,
// also where the caller goes away in between.
func TestNobodySeesHalfOfAGroupWithNewRoles(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, model.Kinds...)
		writes := nodes.Open(t)
		reads := writes
		if db.Engine == testdb.Postgres {
			reads = nodes.Open(t)
		}
		membertest.Given(t, writes)
		given(t, writes)
		const many = event.MaxObjects + 8 // so that the command is long
		for i := range many {
			id := fmt.Sprintf("usr_%02d", i)
			membertest.User(t, writes, id, "org_a", nil)
			join(t, writes, id)
		}
		look := func() {
			users, _, err := user.Kind.List(t.Context(), reads,
				event.Query{Group: user.InGroupOf("grp_g"), Limit: 2 * many})
			must(t, err)
			for _, u := range users {
				if len(users) != many ||
					!slices.Equal(u.Data.Memberships["org_a"], users[0].Data.Memberships["org_a"]) {
					t.Fatalf("of %d, %s holds %v and %s holds %v", len(users), u.ID, u.Data.Memberships, users[0].ID,
						users[0].Data.Memberships)
				}
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i, roles := range [][]string{{"ORG_USER_MANAGER"}, {"ORG_OWNER_VIEWER"}, nil, {"ORG_SETTINGS_MANAGER"},
				{"ORG_USER_MANAGER"}} {
				ctx, cancel := context.WithCancel(t.Context())
				var s event.Store = writes
				if i == 3 {
					s = &before{Store: writes, happens: func() { go cancel() }} // somewhere in between
				}
				if _, err := group.SetRoles(event.WritesMany(ctx), s, in(t, owner), "grp_g", event.IfMatch{},
					roles); err != nil && i != 3 {
					t.Error(err)
				}
				cancel()
			}
		}()
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			look()
		}
		u, err := user.Kind.Read(t.Context(), reads, "usr_00")
		must(t, err)
		if got := u.Data.Memberships["org_a"]; !slices.Equal(got, []access.Role{access.OrgUserManager}) {
			t.Errorf("in the end they hold %v", got)
		}
	})
}

// The same roles again write nothing about the members, and what is written about each when they change is short.
func TestWhatARequestForRolesWrites(t *testing.T) {
	s := newInstallation(t)
	for i := range 3 {
		id := fmt.Sprint("usr_m", i)
		membertest.User(t, s, id, "org_a", nil)
		join(t, s, id)
	}
	set := func(roles ...string) {
		t.Helper()
		_, err := group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{}, roles)
		must(t, err)
	}
	set("ORG_USER_MANAGER")
	mark := s.Mark()
	set("ORG_USER_MANAGER")
	s.Then(t, mark)
	set("ORG_OWNER_VIEWER")
	short := `{"group":"grp_g","roles":["ORG_OWNER_VIEWER"]}`
	s.Then(t, mark,
		eventtest.Fact{Object: "grp_g", Type: "group.roles_set.v1",
			Payload: `{"roles":["ORG_OWNER_VIEWER"],"members":3}`},
		eventtest.Fact{Object: "usr_m0", Type: "user.group_roles_set.v1", Payload: short},
		eventtest.Fact{Object: "usr_m1", Type: "user.group_roles_set.v1", Payload: short},
		eventtest.Fact{Object: "usr_m2", Type: "user.group_roles_set.v1", Payload: short})
	holds(t, s, "usr_m1", access.OrgOwnerViewer)
}
