package project_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

var kinds = []event.Definition{org.Kind, user.Kind, group.Kind, app.Kind, project.Kind, project.GrantKind,
	project.AccessKind}

// owner is the permit of an owner of an organization.
func owner(t testing.TB, orgID string) access.Permit {
	t.Helper()
	caller := &access.Caller{UserID: "usr_owner_of_" + orgID, OrgID: orgID,
		Memberships: access.Memberships{orgID: {access.OrgOwner}}}
	p, err := caller.In(orgID, access.AppRoleWrite)
	must(t, err)
	return p
}

var always event.IfMatch

// market is a vendor and two customers. The project prj_shop has the roles admin, reader and writer.
func market(t *testing.T, s event.Store) {
	t.Helper()
	for _, id := range []string{"org_vendor", "org_one", "org_two", "org_gone"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: "Name of " + id})
		who := "usr_of_" + strings.TrimPrefix(id, "org_")
		eventtest.Given(t, s, user.Kind, who, id, []event.Claim{user.NameClaim(id, "u")},
			user.HumanAdded{Personal: user.HumanFacts{UserNameKey: "u"}})
		g := "grp_of_" + strings.TrimPrefix(id, "org_")
		eventtest.Given(t, s, group.Kind, g, id, []event.Claim{group.NameClaim(id, "g")},
			group.Added{Name: "G", NameKey: "g"})
		eventtest.Given(t, s, user.Kind, who, "", nil, user.GroupJoined{Org: id, Group: g})
	}
	eventtest.Given(t, s, org.Kind, "org_gone", "", nil, org.WasRemoved{})
	eventtest.Given(t, s, project.Kind, "prj_shop", "org_vendor", nil, project.Added{Name: "Shop", NameKey: "shop"},
		project.RoleSet{Key: "admin", Name: "Administrator"}, project.RoleSet{Key: "reader"},
		project.RoleSet{Key: "writer"})
}

func newMarket(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, kinds...)
	market(t, s)
	return s
}

// sell grants roles of the project to an organization, which accepts.
func sell(t testing.TB, s event.Store, to string, keys ...string) (grant string) {
	t.Helper()
	made, err := project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop", to, keys)
	must(t, err)
	_, err = project.AcceptGrant(t.Context(), s, owner(t, to), made.ID, always)
	must(t, err)
	return made.ID
}

func give(t testing.TB, s event.Store, in string, keys ...string) error {
	t.Helper()
	_, err := project.SetUserRoles(t.Context(), s, owner(t, "org_"+in), "usr_of_"+in, "prj_shop", always, keys)
	return err
}

func giveGroup(t testing.TB, s event.Store, in string, keys ...string) error {
	t.Helper()
	_, err := project.SetGroupRoles(t.Context(), s, owner(t, "org_"+in), "grp_of_"+in, "prj_shop", always, keys)
	return err
}

// has lists the roles of the user of an organization there: those of groups with a + behind them.
func has(t testing.TB, r event.Reader, in string) (keys []string) {
	t.Helper()
	all, err := project.RolesOfUser(t.Context(), r, owner(t, "org_"+in), "usr_of_"+in)
	must(t, err)
	for _, given := range all {
		for _, role := range given.Roles {
			if role.Direct {
				keys = append(keys, role.Key)
			}
			if len(role.Groups) > 0 {
				keys = append(keys, role.Key+"+")
			}
		}
	}
	return keys
}

func want(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

func TestWhatKeysOfRolesLookLike(t *testing.T) {
	for key, fine := range map[string]bool{
		"a":                      true,
		"0":                      true,
		"a.b_c:d-E9":             true,
		".a":                     true,
		strings.Repeat("x", 100): true,
		"":                       false,
		".":                      false,
		"..":                     false,
		"-_:":                    false,
		"a b":                    false,
		"a/b":                    false,
		"é":                      false,
		"a\x00":                  false,
		strings.Repeat("x", 101): false,
	} {
		if got := project.RoleKey(key) == nil; got != fine {
			t.Errorf("%q: %t", key, got)
		}
	}
}

func TestAProjectOfAnotherOrganizationIsNotThere(t *testing.T) {
	s := newMarket(t)
	eventtest.Given(t, s, app.Kind, "app_one", "org_one", nil, app.Added{Name: "A", Type: app.Web})
	stranger := owner(t, "org_one")
	for name, err := range map[string]error{
		"get":    second(project.Get(t.Context(), s, stranger, "prj_shop")),
		"rename": second(project.Rename(t.Context(), s, stranger, "prj_shop", always, "x")),
		"set":    second(project.SetRole(t.Context(), s, stranger, "prj_shop", always, "x", "", "")),
		"end":    second(project.RemoveRole(t.Context(), s, stranger, "prj_shop", always, "admin")),
		"remove": second(project.Remove(t.Context(), s, stranger, "prj_shop", always)),
		"grant":  second(project.AddGrant(t.Context(), s, stranger, event.Once{}, "prj_shop", "org_two", nil)),
		"give":   give(t, s, "one", "admin"),
		"group":  giveGroup(t, s, "one", "admin"),
		"app": second(project.SetRoleSettings(t.Context(), s, stranger, "app_one", always,
			app.RoleSettings{Project: "prj_shop"})),
		"users":  third(project.ListUsers(t.Context(), s, stranger, "prj_shop", event.Cursor{}, 10)),
		"groups": second(project.ListGroups(t.Context(), s, stranger, "prj_shop")),
		"grants": third(project.ListGrants(t.Context(), s, stranger, "prj_shop", event.Cursor{}, 10)),
	} {
		if !errors.Is(err, project.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// Security list 5.
func TestACustomerGivesNoRoleThatWasNotGranted(t *testing.T) {
	s := newMarket(t)
	sell(t, s, "org_one", "reader")
	for _, key := range []string{"admin", "writer", "nothing"} {
		eventtest.As(t, give(t, s, "one", key), project.ErrRoleNotFound)
		eventtest.As(t, give(t, s, "one", "reader", key), project.ErrRoleNotFound)
		eventtest.As(t, giveGroup(t, s, "one", key), project.ErrRoleNotFound)
	}
	want(t, has(t, s, "one"))
	must(t, give(t, s, "one", "reader"))
	must(t, giveGroup(t, s, "one", "reader"))
	want(t, has(t, s, "one"), "reader", "reader+")
	// What was granted to one is nothing to the other.
	eventtest.As(t, give(t, s, "two", "reader"), project.ErrNotFound)
	// And it is for the own people.
	_, err := project.SetUserRoles(t.Context(), s, owner(t, "org_one"), "usr_of_two", "prj_shop", always,
		[]string{"reader"})
	eventtest.As(t, err, user.ErrNotFound)
	_, err = project.SetGroupRoles(t.Context(), s, owner(t, "org_one"), "grp_of_two", "prj_shop", always,
		[]string{"reader"})
	eventtest.As(t, err, group.ErrNotFound)
}

// Security list 5.
func TestACustomerSeesNoGrantsOfOthers(t *testing.T) {
	s := newMarket(t)
	grants := map[string]string{"org_one": sell(t, s, "org_one", "reader"), "org_two": sell(t, s, "org_two", "admin")}
	for id, grant := range grants {
		found, _, err := project.ListGranted(t.Context(), s, owner(t, id), event.Cursor{}, 10)
		must(t, err)
		if len(found) != 1 || found[0].ID != grant || found[0].OwnerName != "Name of org_vendor" ||
			len(found[0].Roles) != 1 {
			t.Errorf("%s sees %+v", id, found)
		}
	}
	found, _, err := project.ListGranted(t.Context(), s, owner(t, "org_vendor"), event.Cursor{}, 10)
	must(t, err)
	if len(found) > 0 {
		t.Errorf("the vendor was granted %+v", found)
	}
	for _, stranger := range []string{"org_two", "org_vendor"} {
		eventtest.As(t, second(project.DeclineGrant(t.Context(), s, owner(t, stranger), grants["org_one"], always)),
			project.ErrGrantNotFound)
		eventtest.As(t, second(project.AcceptGrant(t.Context(), s, owner(t, stranger), grants["org_one"], always)),
			project.ErrGrantNotFound)
	}
	for _, stranger := range []string{"org_two", "org_one"} {
		eventtest.As(t, second(project.WithdrawGrant(t.Context(), s, owner(t, stranger), "prj_shop", grants["org_one"],
			always)), project.ErrGrantNotFound)
		eventtest.As(t, second(project.SetGrantRoles(t.Context(), s, owner(t, stranger), "prj_shop", grants["org_one"],
			always, nil)), project.ErrGrantNotFound)
	}
	eventtest.As(t, second(project.WithdrawGrant(t.Context(), s, owner(t, "org_vendor"), "prj_other", grants["org_one"],
		always)), project.ErrGrantNotFound)
	eventtest.As(t, second(project.AcceptGrant(t.Context(), s, owner(t, "org_one"), grants["org_one"], always)),
		project.ErrGrantWrongState)
}

// Security list 5: where a command is about objects of both, each has an event that names the other organization and
// nobody in it.
func TestNeitherSideLearnsWhoActsInTheOther(t *testing.T) {
	s := newMarket(t)
	mark := s.Mark()
	grant := sell(t, s, "org_one", "reader", "writer")
	must(t, give(t, s, "one", "reader"))
	must(t, giveGroup(t, s, "one", "writer"))
	_, err := project.SetGrantRoles(t.Context(), s, owner(t, "org_vendor"), "prj_shop", grant, always,
		[]string{"reader"})
	must(t, err)
	_, err = project.DeclineGrant(t.Context(), s, owner(t, "org_one"), grant, always)
	must(t, err)
	grant = sell(t, s, "org_one", "reader")
	_, err = project.WithdrawGrant(t.Context(), s, owner(t, "org_vendor"), "prj_shop", grant, always)
	must(t, err)
	events, err := s.Events(t.Context(), mark, 100)
	must(t, err)
	hidden := map[string][]string{"org_vendor": {"usr_owner_of_org_one", "usr_of_one", "grp_of_one"},
		"org_one": {"usr_owner_of_org_vendor"}}
	foreign := 0
	for _, e := range events {
		if e.Actor == "org_one" || e.Actor == "org_vendor" {
			if foreign++; e.Actor == e.Org {
				t.Errorf("%s hides who of its own organization did it", e.Type)
			}
		}
		for _, id := range hidden[e.Org] {
			if e.Actor == id || strings.Contains(string(e.Payload), id) {
				t.Errorf("%s of %s names %s: by %s, %s", e.Type, e.Org, id, e.Actor, e.Payload)
			}
		}
	}
	if foreign != 5 { // accepted twice, roles changed, declined, withdrawn
		t.Errorf("%d events by the other organization", foreign)
	}
}

// Security list 13.
func TestNothingThatHasEndedIsRevived(t *testing.T) {
	vendor, one := "org_vendor", "org_one"
	for name, again := range map[string]func(t *testing.T, s event.Store, grant string){
		"the grant is withdrawn and made again": func(t *testing.T, s event.Store, grant string) {
			must(t, second(project.WithdrawGrant(t.Context(), s, owner(t, vendor), "prj_shop", grant, always)))
			want(t, has(t, s, "one"))
			sell(t, s, one, "reader")
		},
		"the grant is given back and made again": func(t *testing.T, s event.Store, grant string) {
			must(t, second(project.DeclineGrant(t.Context(), s, owner(t, one), grant, always)))
			want(t, has(t, s, "one"))
			sell(t, s, one, "reader")
		},
		"the grant is narrowed and widened": func(t *testing.T, s event.Store, grant string) {
			must(t, second(project.SetGrantRoles(t.Context(), s, owner(t, vendor), "prj_shop", grant, always,
				[]string{"writer"})))
			want(t, has(t, s, "one"))
			must(t, second(project.SetGrantRoles(t.Context(), s, owner(t, vendor), "prj_shop", grant, always,
				[]string{"reader", "writer"})))
		},
		"the role is removed and declared again": func(t *testing.T, s event.Store, grant string) {
			must(t, second(project.RemoveRole(t.Context(), s, owner(t, vendor), "prj_shop", always, "reader")))
			want(t, has(t, s, "one"))
			must(t, second(project.SetRole(t.Context(), s, owner(t, vendor), "prj_shop", always, "reader", "", "")))
			eventtest.As(t, give(t, s, "one", "reader"), project.ErrRoleNotFound) // it was not granted again
			want(t, has(t, s, "one"))
			must(t, second(project.SetGrantRoles(t.Context(), s, owner(t, vendor), "prj_shop", grant, always,
				[]string{"reader"})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMarket(t)
			grant := sell(t, s, one, "reader")
			must(t, give(t, s, "one", "reader"))
			must(t, giveGroup(t, s, "one", "reader"))
			want(t, has(t, s, "one"), "reader", "reader+")
			again(t, s, grant)
			want(t, has(t, s, "one"))
			must(t, give(t, s, "one", "reader"))
			want(t, has(t, s, "one"), "reader")
		})
	}
	t.Run("in the project's own organization", func(t *testing.T) {
		s := newMarket(t)
		must(t, give(t, s, "vendor", "reader"))
		must(t, giveGroup(t, s, "vendor", "reader"))
		must(t, second(project.RemoveRole(t.Context(), s, owner(t, vendor), "prj_shop", always, "reader")))
		must(t, second(project.SetRole(t.Context(), s, owner(t, vendor), "prj_shop", always, "reader", "", "")))
		want(t, has(t, s, "vendor"))
	})
	t.Run("what stays goes on", func(t *testing.T) {
		s := newMarket(t)
		grant := sell(t, s, one, "reader")
		must(t, give(t, s, "one", "reader"))
		must(t, second(project.SetGrantRoles(t.Context(), s, owner(t, vendor), "prj_shop", grant, always,
			[]string{"reader", "admin"})))
		must(t, second(project.SetRole(t.Context(), s, owner(t, vendor), "prj_shop", always, "reader",
			"Another name", "")))
		want(t, has(t, s, "one"), "reader")
	})
}

// Security list 13: however much was derived from a project, it ends with it in one change of one object.
func TestRemovingAProjectEndsEverythingInOneChange(t *testing.T) {
	s := newMarket(t)
	grant := sell(t, s, "org_one", "reader")
	waiting, err := project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop", "org_two",
		[]string{"reader"})
	must(t, err)
	must(t, give(t, s, "one", "reader"))
	must(t, giveGroup(t, s, "one", "reader"))
	must(t, give(t, s, "vendor", "admin"))
	mark := s.Mark()
	must(t, second(project.Remove(t.Context(), s, owner(t, "org_vendor"), "prj_shop", always)))
	s.Then(t, mark, eventtest.Fact{Object: "prj_shop", Type: "project.removed.v1", Payload: `{}`})
	want(t, has(t, s, "one"))
	want(t, has(t, s, "vendor"))
	for name, err := range map[string]error{
		"give": give(t, s, "one", "reader"), "give at home": give(t, s, "vendor", "admin"),
		"group": giveGroup(t, s, "one", "reader"),
		"grant": second(project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop",
			"org_x", nil)),
		"change": second(project.SetGrantRoles(t.Context(), s, owner(t, "org_vendor"), "prj_shop", grant, always, nil)),
	} {
		if !errors.Is(err, project.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	eventtest.As(t, second(project.AcceptGrant(t.Context(), s, owner(t, "org_two"), waiting.ID, always)),
		project.ErrGrantNotFound)
	for _, id := range []string{"org_one", "org_two"} {
		found, _, err := project.ListGranted(t.Context(), s, owner(t, id), event.Cursor{}, 10)
		must(t, err)
		if len(found) > 0 {
			t.Errorf("%s still sees %+v", id, found)
		}
	}
	for _, left := range []bool{true, false} {
		got, err := project.EndGrants(t.Context(), s, project.GrantsOf("prj_shop"), 100)
		if must(t, err); got != left {
			t.Errorf("left: %t", got)
		}
	}
	for _, id := range []string{grant, waiting.ID} {
		if g := eventtest.State(t, s, project.GrantKind, id); g.Data.State != project.Removed {
			t.Errorf("the grant is %+v", g.Data)
		}
	}
}

func TestNobodyLearnsWhichOrganizationsThereAre(t *testing.T) {
	s := newMarket(t)
	iam := &access.Caller{UserID: "usr_iam", OrgID: "org_x",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	of, err := iam.In("org_vendor", access.AppRoleWrite)
	must(t, err)
	add := func(permit access.Permit, to string) error {
		return second(project.AddGrant(t.Context(), s, permit, event.Once{}, "prj_shop", to, nil))
	}
	for _, to := range []string{"org_none", "org_gone"} {
		eventtest.As(t, add(of, to), org.ErrNotFound)
	}
	for _, to := range []string{"org_none", "org_gone", "org_one"} {
		must(t, add(owner(t, "org_vendor"), to))
		eventtest.As(t, add(owner(t, "org_vendor"), to), project.ErrGrantExists)
	}
	must(t, add(of, "org_two"))
	eventtest.Refused(t, add(owner(t, "org_vendor"), "org_vendor"), errs.InvalidArgument, errs.InvalidRequest,
		"grantedOrgId")
	eventtest.Refused(t, add(owner(t, "org_vendor"), strings.Repeat("x", 101)), errs.InvalidArgument,
		errs.InvalidRequest, "grantedOrgId")
}

// interrupted is a store in which something happens just before the next command.
type interrupted struct {
	event.Store
	happens func()
}

func (i *interrupted) Do(ctx context.Context, c event.Command) error {
	if happens := i.happens; happens != nil {
		i.happens = nil
		happens()
	}
	return i.Store.Do(ctx, c)
}

// Security list 13: a change that was made from what has changed by now is made again.
func TestWhatHappensBetweenLookingAndDecidingCounts(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile, then func(t *testing.T, s event.Store, grant string) error
		want            error
	}{
		"accepted before it is withdrawn": {accept, withdraw, nil},
		"withdrawn before it is accepted": {withdraw, accept, project.ErrGrantNotFound},
		"accepted before it is declined":  {accept, decline, nil},
		"accepted before it is narrowed":  {accept, narrow, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMarket(t)
			made, err := project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop", "org_one",
				[]string{"reader"})
			must(t, err)
			between := &interrupted{Store: s, happens: func() { must(t, c.meanwhile(t, s, made.ID)) }}
			if err := c.then(t, between, made.ID); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if err := give(t, s, "one", "reader"); err == nil {
				t.Error("the role can still be given")
			}
		})
	}
	t.Run("withdrawn before a role is given", func(t *testing.T) {
		s := newMarket(t)
		grant := sell(t, s, "org_one", "reader")
		between := &interrupted{Store: s, happens: func() { must(t, withdraw(t, s, grant)) }}
		eventtest.As(t, give(t, between, "one", "reader"), project.ErrNotFound)
	})
	t.Run("withdrawn and granted again before a role is given", func(t *testing.T) {
		s := newMarket(t)
		grant := sell(t, s, "org_one", "reader")
		between := &interrupted{Store: s, happens: func() {
			must(t, withdraw(t, s, grant))
			sell(t, s, "org_one", "reader")
		}}
		must(t, give(t, between, "one", "reader"))
		want(t, has(t, s, "one"), "reader")
	})
}

func accept(t *testing.T, s event.Store, grant string) error {
	return second(project.AcceptGrant(t.Context(), s, owner(t, "org_one"), grant, always))
}

func decline(t *testing.T, s event.Store, grant string) error {
	return second(project.DeclineGrant(t.Context(), s, owner(t, "org_one"), grant, always))
}

func withdraw(t *testing.T, s event.Store, grant string) error {
	return second(project.WithdrawGrant(t.Context(), s, owner(t, "org_vendor"), "prj_shop", grant, always))
}

func narrow(t *testing.T, s event.Store, grant string) error {
	return second(project.SetGrantRoles(t.Context(), s, owner(t, "org_vendor"), "prj_shop", grant, always,
		[]string{"admin"}))
}

// Security list 13: of many who accept and withdraw on two nodes at once, one withdraws, and no access is left.
func TestAcceptingAndWithdrawingAtOnceLeavesNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := eventtest.NewNodes(db, kinds...)
		nodes := []event.Store{n.Open(t)}
		if nodes = append(nodes, nodes[0]); db.Engine == testdb.Postgres {
			nodes[1] = n.Open(t)
		}
		s := nodes[0]
		market(t, s)
		for round := range 5 {
			made, err := project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop", "org_one",
				[]string{"reader"})
			must(t, err)
			var wait sync.WaitGroup
			errors64 := make([]error, 64)
			start := make(chan struct{})
			for i := range errors64 {
				wait.Go(func() {
					<-start
					if i%2 == 0 {
						errors64[i] = accept(t, nodes[i/2%2], made.ID)
					} else {
						errors64[i] = withdraw(t, nodes[i/2%2], made.ID)
					}
				})
			}
			close(start)
			wait.Wait()
			accepted, withdrawn := 0, 0
			for i, err := range errors64 {
				switch {
				case err == nil && i%2 == 0:
					accepted++
				case err == nil:
					withdrawn++
				case !errors.Is(err, project.ErrGrantNotFound) && !errors.Is(err, project.ErrGrantWrongState) &&
					errs.KindOf(err) != errs.Aborted:
					t.Errorf("round %d: %v", round, err)
				}
			}
			if accepted > 1 || withdrawn != 1 {
				t.Errorf("round %d: accepted %d times, withdrawn %d times", round, accepted, withdrawn)
			}
			holder, err := s.Holder(t.Context(), project.AccessClaim("prj_shop", "org_one"))
			if must(t, err); holder != "" {
				t.Errorf("round %d: the access %s is left", round, holder)
			}
			accesses, _, err := project.AccessKind.List(t.Context(), s, event.Query{Org: "org_one", Limit: 10})
			if must(t, err); len(accesses) > 0 {
				t.Errorf("round %d: %+v is left", round, accesses[0].Data)
			}
		}
	})
}

func TestPlacesOfAUserAreBoundedAndThoseThatAreGoneMakeRoom(t *testing.T) {
	s := newMarket(t)
	fill := func(id string, state event.Fact[project.Project]) {
		eventtest.Given(t, s, project.Kind, id, "org_vendor", nil, project.Added{Name: id}, project.RoleSet{Key: "r"})
		if state != nil {
			eventtest.Given(t, s, project.Kind, id, "", nil, state)
		}
		eventtest.Given(t, s, user.Kind, "usr_of_vendor", "", nil,
			user.AppRolesSet{Place: id, Project: id, Org: "org_vendor", Roles: []user.AppRole{{Key: "r", Epoch: 1}}})
		eventtest.Given(t, s, group.Kind, "grp_of_vendor", "", nil,
			group.AppRolesSet{Place: id, Project: id, Org: "org_vendor", Roles: []user.AppRole{{Key: "r", Epoch: 1}}})
	}
	for i := range user.MaxAppRoles { // what another organization gives takes no place away
		id := fmt.Sprint("acc_", i)
		eventtest.Given(t, s, user.Kind, "usr_of_vendor", "", nil,
			user.AppRolesSet{Place: id, Project: id, Org: "org_other", Roles: []user.AppRole{{Key: "r", Epoch: 1}}})
	}
	must(t, give(t, s, "vendor", "reader"))
	must(t, give(t, s, "vendor"))
	eventtest.Given(t, s, user.Kind, "usr_of_vendor", "", nil, user.OrgLeft{Org: "org_other"})
	for i := range user.MaxAppRoles {
		fill(fmt.Sprint("prj_", i), nil)
	}
	eventtest.As(t, give(t, s, "vendor", "reader"), project.ErrTooManyPlaces)
	eventtest.As(t, giveGroup(t, s, "vendor", "reader"), project.ErrTooManyPlaces)
	// Those that are there already can change.
	must(t, second(project.SetUserRoles(t.Context(), s, owner(t, "org_vendor"), "usr_of_vendor", "prj_0", always, nil)))
	must(t, give(t, s, "vendor", "reader"))
	must(t, give(t, s, "vendor", "admin"))
	eventtest.As(t, second(project.SetUserRoles(t.Context(), s, owner(t, "org_vendor"), "usr_of_vendor", "prj_0",
		always, []string{"r"})), project.ErrTooManyPlaces)
	for _, id := range []string{"prj_3", "prj_4"} {
		must(t, second(project.Remove(t.Context(), s, owner(t, "org_vendor"), id, always)))
	}
	must(t, second(project.SetUserRoles(t.Context(), s, owner(t, "org_vendor"), "usr_of_vendor", "prj_0", always,
		[]string{"r"})))
	must(t, giveGroup(t, s, "vendor", "reader"))
	if u := eventtest.State(t, s, user.Kind, "usr_of_vendor"); len(u.Data.AppRoles) != user.MaxAppRoles-1 {
		t.Errorf("the user has roles in %d places", len(u.Data.AppRoles))
	}
	if g := eventtest.State(t, s, group.Kind, "grp_of_vendor"); len(g.Data.AppRoles) != user.MaxAppRoles-1 {
		t.Errorf("the group has roles in %d places", len(g.Data.AppRoles))
	}
}

func TestGroupsInAPlaceAreBoundedAndThoseThatAreGoneMakeRoom(t *testing.T) {
	s := newMarket(t)
	grant := sell(t, s, "org_one", "reader")
	set := func(id string) error {
		return second(project.SetGroupRoles(t.Context(), s, owner(t, "org_one"), id, "prj_shop", always,
			[]string{"reader"}))
	}
	for i := range project.MaxGroupRoles + 1 {
		id := fmt.Sprint("grp_", i)
		eventtest.Given(t, s, group.Kind, id, "org_one", []event.Claim{group.NameClaim("org_one", id)},
			group.Added{Name: id, NameKey: id})
		if i < project.MaxGroupRoles {
			must(t, set(id))
		}
	}
	eventtest.As(t, set("grp_of_one"), project.ErrTooManyGroups)
	must(t, set("grp_7")) // it has them
	eventtest.Given(t, s, group.Kind, "grp_5", "", nil, group.WasRemoved{})
	listed, err := project.ListGroups(t.Context(), s, owner(t, "org_one"), "prj_shop")
	if must(t, err); len(listed) != project.MaxGroupRoles-1 {
		t.Errorf("%d groups are listed", len(listed))
	}
	must(t, set("grp_of_one"))
	want(t, has(t, s, "one"), "reader+")
	eventtest.As(t, set(fmt.Sprint("grp_", project.MaxGroupRoles)), project.ErrTooManyGroups)
	access := eventtest.State(t, s, project.GrantKind, grant).Data.Access
	if a := eventtest.State(t, s, project.AccessKind, access); len(a.Data.GroupRoles) != project.MaxGroupRoles {
		t.Errorf("%d groups stand in the access", len(a.Data.GroupRoles))
	}
}

func TestGrantsThatWaitAreBounded(t *testing.T) {
	s := newMarket(t)
	offer := func(from, of string) error {
		return second(project.AddGrant(t.Context(), s, owner(t, from), event.Once{}, of, "org_none", nil))
	}
	add := func(from, of string) {
		eventtest.Given(t, s, project.Kind, of, from, nil, project.Added{Name: of, NameKey: of})
	}
	for i := range project.MaxWaitingFrom + 1 {
		add("org_one", fmt.Sprint("prj_", i))
	}
	for i := range project.MaxWaitingFrom {
		must(t, offer("org_one", fmt.Sprint("prj_", i)))
	}
	last := fmt.Sprint("prj_", project.MaxWaitingFrom)
	eventtest.As(t, offer("org_one", last), project.ErrTooManyWaiting)
	eventtest.As(t, offer("org_one", "prj_0"), project.ErrGrantExists)
	// The grants of a project that is gone wait for nobody.
	must(t, second(project.Remove(t.Context(), s, owner(t, "org_one"), "prj_0", always)))
	must(t, offer("org_one", last))
	// Others are kept out by all together only.
	for i := range project.MaxWaiting - project.MaxWaitingFrom - 1 {
		from, of := fmt.Sprint("org_from_", i), fmt.Sprint("prj_of_", i)
		eventtest.Given(t, s, org.Kind, from, from, nil, org.Added{Name: from})
		add(from, of)
		must(t, offer(from, of))
	}
	must(t, offer("org_vendor", "prj_shop"))
	add("org_two", "prj_two")
	eventtest.As(t, offer("org_two", "prj_two"), project.ErrTooManyWaiting)
}

func TestRolesOfAProjectAreBounded(t *testing.T) {
	s := newMarket(t)
	set := func(key string) error {
		return second(project.SetRole(t.Context(), s, owner(t, "org_vendor"), "prj_shop", always, key, "", ""))
	}
	for i := range project.MaxRoles - 3 {
		must(t, set(fmt.Sprint("r", i)))
	}
	eventtest.As(t, set("more"), project.ErrTooManyRoles)
	must(t, set("r0"))
	must(t, second(project.RemoveRole(t.Context(), s, owner(t, "org_vendor"), "prj_shop", always, "r0")))
	must(t, set("more"))
}

// Security list 5: an organization sees what its people and guests have there, and nothing that they have elsewhere.
func TestRolesAreSeenWhereTheyWereGiven(t *testing.T) {
	s := newMarket(t)
	grant := sell(t, s, "org_one", "reader")
	place := eventtest.State(t, s, project.GrantKind, grant).Data.Access
	eventtest.Given(t, s, user.Kind, "usr_of_vendor", "", nil, user.MembershipSet{Scope: "org_one", Stays: true})
	set := func(in string, keys ...string) error {
		return second(project.SetUserRoles(t.Context(), s, owner(t, in), "usr_of_vendor", "prj_shop", always, keys))
	}
	must(t, set("org_vendor", "admin"))
	must(t, set("org_one", "reader"))
	want(t, has(t, s, "vendor"), "admin")
	in := func(orgID string) (keys []string) {
		all, err := project.RolesOfUser(t.Context(), s, owner(t, orgID), "usr_of_vendor")
		must(t, err)
		for _, given := range all {
			for _, r := range given.Roles {
				keys = append(keys, given.Org+" "+r.Key)
			}
		}
		return keys
	}
	want(t, in("org_one"), "org_one reader")
	want(t, in("org_vendor"), "org_vendor admin")
	mine, err := project.MyRoles(t.Context(), s, &access.Caller{UserID: "usr_of_vendor", OrgID: "org_vendor"})
	if must(t, err); len(mine) != 2 || mine[0].Org != "org_one" || mine[1].Org != "org_vendor" {
		t.Errorf("the user sees %+v", mine)
	}
	// Whoever is no guest any more has nothing there, in whatever way that came to be.
	eventtest.Given(t, s, user.Kind, "usr_of_vendor", "", nil, user.MembershipSet{Scope: "org_one"})
	if u := eventtest.State(t, s, user.Kind, "usr_of_vendor"); len(u.Data.AppRoles) != 2 {
		t.Fatalf("the roles are gone from the user: %+v", u.Data.AppRoles)
	}
	mine, err = project.MyRoles(t.Context(), s, &access.Caller{UserID: "usr_of_vendor", OrgID: "org_vendor"})
	if must(t, err); len(mine) != 1 || mine[0].Org != "org_vendor" {
		t.Errorf("a guest who left sees %+v", mine)
	}
	users, _, err := project.ListUsers(t.Context(), s, owner(t, "org_one"), "prj_shop", event.Cursor{}, 10)
	if must(t, err); len(users) > 0 {
		t.Errorf("%s lists a guest who left", place)
	}
	eventtest.As(t, set("org_one", "reader"), user.ErrNotFound)
}

func TestAGroupThatIsGoneGivesNothing(t *testing.T) {
	s := newMarket(t)
	must(t, giveGroup(t, s, "vendor", "reader"))
	want(t, has(t, s, "vendor"), "reader+")
	eventtest.Given(t, s, group.Kind, "grp_of_vendor", "", nil, group.WasRemoved{})
	want(t, has(t, s, "vendor"))
	listed, err := project.ListGroups(t.Context(), s, owner(t, "org_vendor"), "prj_shop")
	if must(t, err); len(listed) > 0 {
		t.Errorf("%+v is listed", listed[0].Group)
	}
	eventtest.As(t, giveGroup(t, s, "vendor", "reader"), group.ErrNotFound)
}

func TestNothingIsGivenInAnOrganizationThatIsGone(t *testing.T) {
	s := newMarket(t)
	made, err := project.AddGrant(t.Context(), s, owner(t, "org_vendor"), event.Once{}, "prj_shop", "org_two",
		[]string{"reader"})
	must(t, err)
	sell(t, s, "org_one", "reader")
	for _, id := range []string{"org_one", "org_two"} {
		eventtest.Given(t, s, org.Kind, id, "", nil, org.WasRemoved{})
	}
	eventtest.As(t, give(t, s, "one", "reader"), org.ErrNotFound)
	eventtest.As(t, giveGroup(t, s, "one", "reader"), org.ErrNotFound)
	eventtest.As(t, second(project.AcceptGrant(t.Context(), s, owner(t, "org_two"), made.ID, always)), org.ErrNotFound)
	eventtest.As(t, second(project.Add(t.Context(), s, owner(t, "org_two"), event.Once{}, "New")), org.ErrNotFound)
}

func TestWhoMayNotReadMetadataSendsNoneToAnApplication(t *testing.T) {
	s := newMarket(t)
	eventtest.Given(t, s, app.Kind, "app_shop", "org_vendor", nil, app.Added{Name: "A", Type: app.Web})
	caller := &access.Caller{UserID: "usr_settings", OrgID: "org_vendor",
		Memberships: access.Memberships{"org_vendor": {access.OrgSettingsManager}}}
	settings, err := caller.In("org_vendor", access.AppWrite)
	must(t, err)
	set := func(permit access.Permit, keys ...string) error {
		return second(project.SetRoleSettings(t.Context(), s, permit, "app_shop", always,
			app.RoleSettings{Project: "prj_shop", Metadata: keys}))
	}
	must(t, set(settings))
	eventtest.As(t, set(settings, "key"), project.ErrMetadataDenied)
	must(t, set(owner(t, "org_vendor"), "b", "a", "b"))
	must(t, set(settings, "b"))
	eventtest.As(t, set(settings, "a", "b"), project.ErrMetadataDenied)
	if a := eventtest.State(t, s, app.Kind, "app_shop"); !slices.Equal(a.Data.RoleSettings.Metadata, []string{"b"}) {
		t.Errorf("it has %q", a.Data.RoleSettings.Metadata)
	}
	eventtest.Given(t, s, app.Kind, "app_shop", "", nil, app.APIAccessSet{Scopes: []string{"signet.passwords"}})
	caller = &access.Caller{UserID: "usr_owner", OrgID: "org_vendor",
		Memberships: access.Memberships{"org_vendor": {access.OrgOwner}}, Client: "app_other",
		Scopes: []string{"signet.app_roles"}}
	weak, err := caller.In("org_vendor", access.AppWrite)
	must(t, err)
	eventtest.As(t, set(weak), access.ErrMoreScopes)
}
