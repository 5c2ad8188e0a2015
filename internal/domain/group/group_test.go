package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

var (
	owner    = access.Memberships{"org_a": {access.OrgOwner}}
	manager  = access.Memberships{"org_a": {access.OrgUserManager}}
	iam      = access.Memberships{access.Installation: {access.IAMOwner}}
	settings = access.Memberships{"org_a": {access.OrgSettingsManager}}
)

// in gives a permit of org_a to somebody who holds something there.
func in(t testing.TB, holds access.Memberships) access.Permit {
	t.Helper()
	permit, err := (&access.Caller{UserID: "usr_me", OrgID: "org_a", RequestID: "req_1",
		Memberships: holds}).In("org_a", access.GroupWrite)
	must(t, err)
	return permit
}

// newInstallation has the group grp_g of org_a, and the users usr_a of it, usr_guest, who has accepted all roles there,
// and usr_stranger of org_b.
func newInstallation(t testing.TB, roles ...access.Role) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, model.Kinds...)
	membertest.Given(t, s)
	given(t, s, roles...)
	return s
}

func given(t testing.TB, s event.Store, roles ...access.Role) {
	t.Helper()
	membertest.User(t, s, "usr_a", "org_a", nil)
	membertest.User(t, s, "usr_keeps", "org_a", owner)
	membertest.User(t, s, "usr_guest", "org_b", nil, user.MembershipSet{Scope: "org_a", Stays: true},
		user.RolesAccepted{Scope: "org_a", Roles: access.RolesOf("org_a")})
	membertest.User(t, s, "usr_stranger", "org_b", nil)
	newGroup(t, s, "grp_g", "org_a", roles...)
}

func newGroup(t testing.TB, s event.Store, id, org string, roles ...access.Role) {
	t.Helper()
	facts := []event.Fact[group.Group]{group.Added{Name: id, NameKey: id}}
	if len(roles) > 0 {
		facts = append(facts, group.RolesSet{Roles: roles})
	}
	eventtest.Given(t, s, group.Kind, id, org, []event.Claim{group.NameClaim(org, id)}, facts...)
}

// join puts a user into the group grp_g, whoever may.
func join(t testing.TB, s event.Store, id string) {
	t.Helper()
	_, err := group.AddMember(t.Context(), s, in(t, iam), "grp_g", id, event.IfMatch{})
	must(t, err)
}

func holds(t testing.TB, s *eventtest.Store, id string, want ...access.Role) {
	t.Helper()
	if got := eventtest.State(t, s, user.Kind, id).Data.Memberships["org_a"]; !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", id, got, want)
	}
}

func TestGroupsHaveNamesOfTheirOwn(t *testing.T) {
	s := newInstallation(t)
	permit := in(t, owner)
	made, err := group.Add(t.Context(), s, permit,
		group.New{Name: "Engineering", Description: "Builds things"}, event.Once{})
	must(t, err)
	_, err = group.Add(t.Context(), s, permit, group.New{Name: "ENGINEERING"}, event.Once{})
	eventtest.As(t, err, group.ErrNameTaken)
	_, err = group.Change(t.Context(), s, permit, "grp_g", event.IfMatch{}, group.New{Name: "engineering"})
	eventtest.As(t, err, group.ErrNameTaken)
	_, err = group.Change(t.Context(), s, permit, made.ID, event.IfMatch{}, group.New{Name: "engineering"})
	must(t, err) // its own name in another spelling
	_, err = lifecycle.RemoveGroup(t.Context(), s, permit, made.ID, event.IfMatch{})
	must(t, err)
	_, err = group.Add(t.Context(), s, permit, group.New{Name: "Engineering"}, event.Once{})
	must(t, err)
	for _, wrong := range []struct{ name, description, field string }{
		{"", "", "name"}, {strings.Repeat("x", 201), "", "name"}, {"x", strings.Repeat("x", 501), "description"},
		{"a\x00", "", "name"},
	} {
		_, err = group.Add(t.Context(), s, permit,
			group.New{Name: wrong.name, Description: wrong.description}, event.Once{})
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, wrong.field)
	}
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.WasRemoved{})
	_, err = group.Add(t.Context(), s, permit, group.New{Name: "Late"}, event.Once{})
	eventtest.As(t, err, org.ErrNotFound)
}

func TestGroupsAreFoundByTheBeginningOfTheirNames(t *testing.T) {
	s := newInstallation(t)
	permit := in(t, owner)
	for _, name := range []string{"Sales", "Salon", "Support"} {
		_, err := group.Add(t.Context(), s, permit, group.New{Name: name}, event.Once{})
		must(t, err)
	}
	newGroup(t, s, "grp_other", "org_b")
	names := func(prefix string) (all []string) {
		for after := (&event.Cursor{}); after != nil; {
			found, next, err := group.List(t.Context(), s, permit, prefix, *after, 1)
			must(t, err)
			for _, g := range found {
				all = append(all, g.Data.Name)
			}
			after = next
		}
		return all
	}
	for prefix, want := range map[string]string{"SAL": "Sales Salon", "": "Sales Salon Support grp_g", "x": ""} {
		if got := names(prefix); strings.Join(got, " ") != want {
			t.Errorf("%q finds %v", prefix, got)
		}
	}
	_, _, err := group.List(t.Context(), s, access.Permit{}, "", event.Cursor{}, 10)
	eventtest.As(t, err, access.ErrDenied)
}

// Who may put whom into which group, and take whom out: by what the group gives.
func TestWhoMayPutWhomIntoWhichGroup(t *testing.T) {
	apps := group.AppRolesSet{Place: "prj_x", Project: "prj_x", Org: "org_a",
		Roles: []user.AppRole{{Key: "admin", Epoch: 1}}}
	for _, c := range []struct {
		name  string
		me    access.Memberships
		gives []access.Role
		apps  bool
		who   string
		group string
		want  *errs.Error // of adding
		takes *errs.Error // of removing
	}{
		{name: "a user manager, into a group that gives nothing", me: manager, who: "usr_a"},
		{name: "a guest", me: manager, who: "usr_guest"},
		{name: "a user of another organization", me: manager, who: "usr_stranger", want: user.ErrNotFound,
			takes: user.ErrNotFound},
		{name: "by the installation, too", me: iam, who: "usr_stranger", want: user.ErrNotFound,
			takes: user.ErrNotFound},
		{name: "nobody", me: manager, who: "usr_x", want: user.ErrNotFound, takes: user.ErrNotFound},
		{name: "into a group of another organization", me: owner, who: "usr_a", group: "grp_other",
			want: group.ErrNotFound, takes: group.ErrNotFound},
		{name: "into no group", me: owner, who: "usr_a", group: "grp_x", want: group.ErrNotFound,
			takes: group.ErrNotFound},
		{name: "an owner, into a group that makes owners", me: owner,
			gives: []access.Role{access.OrgOwner}, who: "usr_a"},
		{name: "a user manager makes no owner by a group", me: manager, gives: []access.Role{access.OrgOwner},
			who: "usr_a", want: access.ErrDenied, takes: access.ErrDenied},
		{name: "nor somebody like itself", me: manager, gives: []access.Role{access.OrgUserManager}, who: "usr_a",
			want: access.ErrDenied, takes: access.ErrDenied},
		{
			name:  "who may give roles, but has less",
			me:    access.Memberships{"org_a": {access.OrgUserManager}, access.Installation: {access.IAMOrgManager}},
			gives: []access.Role{access.OrgOwnerViewer},
			who:   "usr_a",
			want:  member.ErrGrantsMore,
			takes: access.ErrTargetHoldsMore,
		},
		{name: "roles of applications take a permission of their own", me: manager, apps: true, who: "usr_a",
			want: access.ErrDenied},
		{name: "which owners have", me: owner, apps: true, who: "usr_a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t, c.gives...)
			newGroup(t, s, "grp_other", "org_b", c.gives...)
			if c.apps {
				eventtest.Given(t, s, group.Kind, "grp_g", "", nil, apps)
			}
			id := c.group
			if id == "" {
				id = "grp_g"
			}
			before := s.Fingerprint()
			_, err := group.AddMember(t.Context(), s, in(t, c.me), id, c.who, event.IfMatch{})
			eventtest.As(t, err, c.want)
			if changed := s.Fingerprint() != before; changed != (c.want == nil) {
				t.Errorf("something was written: %t", changed)
			}
			if c.want == nil {
				holds(t, s, c.who, c.gives...)
			} else if c.who == "usr_a" && c.group == "" {
				join(t, s, c.who)
			}
			before = s.Fingerprint()
			_, err = group.RemoveMember(t.Context(), s, in(t, c.me), id, c.who, event.IfMatch{})
			eventtest.As(t, err, c.takes)
			if changed := s.Fingerprint() != before; changed != (c.takes == nil) {
				t.Errorf("something was written: %t", changed)
			}
			if c.takes == nil {
				holds(t, s, c.who)
				_, err = group.RemoveMember(t.Context(), s, in(t, c.me), id, c.who, event.IfMatch{})
				eventtest.As(t, err, group.ErrMemberNotFound)
			}
		})
	}
}

func TestWhoMayGiveAGroupWhichRoles(t *testing.T) {
	for _, c := range []struct {
		name        string
		me          access.Memberships
		before, now []access.Role
		group       string
		want        *errs.Error
	}{
		{name: "an owner", me: owner, now: []access.Role{access.OrgOwner}},
		{name: "an owner takes them back", me: owner, before: []access.Role{access.OrgOwner}},
		{name: "a user manager gives none", me: manager, now: []access.Role{access.OrgUserManager},
			want: access.ErrDenied},
		{
			name: "who may give roles, but has less",
			me:   access.Memberships{"org_a": {access.OrgUserManager}, access.Installation: {access.IAMOrgManager}},
			now:  []access.Role{access.OrgOwner},
			want: member.ErrGrantsMore,
		},
		{
			name:   "nor takes back what it does not have",
			me:     access.Memberships{"org_a": {access.OrgUserManager}, access.Installation: {access.IAMOrgManager}},
			before: []access.Role{access.OrgOwner},
			now:    []access.Role{access.OrgUserManager},
			want:   access.ErrTargetHoldsMore,
		},
		{name: "a group of another organization", me: owner, now: []access.Role{access.OrgOwner}, group: "grp_other",
			want: group.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t, c.before...)
			newGroup(t, s, "grp_other", "org_b", c.before...)
			join(t, s, "usr_a")
			join(t, s, "usr_guest")
			id := "grp_g"
			if c.group != "" {
				id = c.group
			}
			var names []string
			for _, r := range c.now {
				names = append(names, string(r))
			}
			before := s.Fingerprint()
			_, err := group.SetRoles(t.Context(), s, in(t, c.me), id, event.IfMatch{}, names)
			eventtest.As(t, err, c.want)
			if changed := s.Fingerprint() != before; changed != (c.want == nil) {
				t.Errorf("something was written: %t", changed)
			}
			want := c.now
			if c.want != nil {
				want = c.before
			}
			holds(t, s, "usr_a", want...)
			holds(t, s, "usr_guest", want...)
			if c.want != nil && len(c.before) > 0 {
				_, err = lifecycle.RemoveGroup(t.Context(), s, in(t, c.me), id, event.IfMatch{})
				eventtest.As(t, err, c.want)
			}
		})
	}
	if _, err := (&access.Caller{OrgID: "org_a", Memberships: settings}).In("org_a", access.GroupWrite); err == nil {
		t.Error("a settings manager changes groups")
	}
	s := newInstallation(t)
	_, err := group.SetRoles(t.Context(), s, in(t, iam), "grp_g", event.IfMatch{}, []string{"IAM_OWNER"})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[0]")
}

func TestRolesComeAndGoForAllMembersInOneCommand(t *testing.T) {
	s := newInstallation(t)
	join(t, s, "usr_a")
	join(t, s, "usr_guest")
	mark := s.Mark()
	_, err := group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{},
		[]string{"ORG_USER_MANAGER", "ORG_OWNER_VIEWER", "ORG_USER_MANAGER"})
	must(t, err)
	s.Then(t, mark,
		eventtest.Fact{Object: "grp_g", Type: "group.members_counted.v1", Payload: `{"members":2}`},
		eventtest.Fact{Object: "grp_g", Type: "group.roles_set.v1",
			Payload: `{"roles":["ORG_OWNER_VIEWER","ORG_USER_MANAGER"],"members":2}`},
		eventtest.Fact{Object: "usr_a", Type: "user.group_roles_set.v1",
			Payload: `{"group":"grp_g","roles":["ORG_OWNER_VIEWER","ORG_USER_MANAGER"]}`},
		eventtest.Fact{Object: "usr_guest", Type: "user.group_roles_set.v1",
			Payload: `{"org":"org_a","group":"grp_g","roles":["ORG_OWNER_VIEWER","ORG_USER_MANAGER"]}`})
	membertest.User(t, s, "usr_late", "org_a", nil)
	join(t, s, "usr_late")
	holds(t, s, "usr_late", access.OrgOwnerViewer, access.OrgUserManager)
	if g := eventtest.State(t, s, group.Kind, "grp_g"); g.Data.Members != 3 {
		t.Errorf("%d members", g.Data.Members)
	}
	mark = s.Mark()
	_, err = lifecycle.RemoveGroup(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{})
	must(t, err)
	if facts := s.Since(t, mark); len(facts) != 4 {
		t.Errorf("removing a group of three: %v", facts)
	}
	for _, id := range []string{"usr_a", "usr_guest", "usr_late"} {
		holds(t, s, id)
		if groups := eventtest.State(t, s, user.Kind, id).Data.Groups; len(groups) != 0 {
			t.Errorf("%s is in %v", id, groups)
		}
	}
}

// A group without roles has any number of members, and adding one writes nothing but the user.
func TestAGroupThatGivesNothingIsNotWrittenByItsMembers(t *testing.T) {
	s := newInstallation(t)
	mark := s.Mark()
	join(t, s, "usr_a")
	s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.group_joined.v1",
		Payload: `{"org":"org_a","group":"grp_g"}`})
	mark = s.Mark()
	join(t, s, "usr_a") // again
	s.Then(t, mark)
	_, err := group.AddMember(t.Context(), s, in(t, owner), "grp_g", "usr_a", event.IfMatch{Set: true, Sequence: 77})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	_, err = lifecycle.RemoveGroup(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{})
	must(t, err)
	u := eventtest.State(t, s, user.Kind, "usr_a")
	if !u.Data.In("org_a", "grp_g") {
		t.Error("the removal of a group that gives nothing wrote its members")
	}
	if groups, _, err := group.OfUser(t.Context(), s, &u.Data, "", event.Cursor{}, 10); err != nil || len(groups) != 0 {
		t.Errorf("a group that is gone is shown: %v, %v", groups, err)
	}
}

func TestAGroupThatGivesRolesIsBounded(t *testing.T) {
	s := newInstallation(t, access.OrgOwnerViewer)
	add := func(from, to int, facts ...event.Fact[user.User]) {
		for i := from; i < to; i++ {
			membertest.User(t, s, fmt.Sprintf("usr_%04d", i), "org_a", nil, facts...)
		}
	}
	// As many as there can be, of which the group has seen all, and one was removed without it.
	add(0, group.MaxRoleMembers-1,
		user.GroupJoined{Org: "org_a", Group: "grp_g", Roles: []access.Role{access.OrgOwnerViewer}})
	eventtest.Given(t, s, group.Kind, "grp_g", "", nil, group.MembersCounted{Members: group.MaxRoleMembers})
	mark := s.Mark()
	join(t, s, "usr_a")
	s.Then(t, mark,
		eventtest.Fact{Object: "usr_a", Type: "user.group_joined.v1",
			Payload: `{"org":"org_a","group":"grp_g","roles":["ORG_OWNER_VIEWER"]}`},
		eventtest.Fact{Object: "grp_g", Type: "group.members_counted.v1", Payload: `{"members":999}`},
		eventtest.Fact{Object: "grp_g", Type: "group.member_added.v1", Payload: `{"userId":"usr_a"}`})
	_, err := group.AddMember(t.Context(), s, in(t, owner), "grp_g", "usr_guest", event.IfMatch{})
	eventtest.As(t, err, group.ErrTooLarge)

	// Without roles it may grow, but then it gets none.
	_, err = group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{}, nil)
	must(t, err)
	holds(t, s, "usr_0007")
	join(t, s, "usr_guest")
	_, err = group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{}, []string{"ORG_OWNER_VIEWER"})
	eventtest.As(t, err, group.ErrTooLarge)
	holds(t, s, "usr_a")
}

func TestAUserIsInSoManyGroups(t *testing.T) {
	s := newInstallation(t)
	var facts []event.Fact[user.User]
	for i := range user.MaxGroups {
		id := fmt.Sprintf("grp_%03d", i)
		newGroup(t, s, id, "org_a")
		facts = append(facts, user.GroupJoined{Org: "org_a", Group: id})
	}
	// What another organization gives takes no place away.
	var others []event.Fact[user.User]
	for i := range user.MaxGroups {
		others = append(others, user.GroupJoined{Org: "org_b", Group: fmt.Sprintf("grp_b%03d", i)})
	}
	membertest.User(t, s, "usr_elsewhere", "org_a", nil, others...)
	join(t, s, "usr_elsewhere")

	membertest.User(t, s, "usr_busy", "org_a", nil, facts...)
	_, err := group.AddMember(t.Context(), s, in(t, owner), "grp_g", "usr_busy", event.IfMatch{})
	eventtest.As(t, err, group.ErrTooManyGroups)
	_, err = lifecycle.RemoveGroup(t.Context(), s, in(t, owner), "grp_007", event.IfMatch{})
	must(t, err)
	mark := s.Mark()
	join(t, s, "usr_busy") // groups that are gone do not count
	s.Then(t, mark,
		eventtest.Fact{Object: "usr_busy", Type: "user.group_left.v1", Payload: `{"org":"org_a","group":"grp_007"}`},
		eventtest.Fact{Object: "usr_busy", Type: "user.group_joined.v1", Payload: `{"org":"org_a","group":"grp_g"}`})
	u := eventtest.State(t, s, user.Kind, "usr_busy")
	ids := eventtest.IDs(t, func(after event.Cursor) ([]*event.Object[group.Group], *event.Cursor, error) {
		return group.OfUser(t.Context(), s, &u.Data, "org_a", after, 7)
	})
	if len(ids) != user.MaxGroups {
		t.Errorf("%d groups are listed", len(ids))
	}
}

// The last owner of an organization stays, also where the ownership comes from a group.
func TestTheLastOwnerThroughAGroupStays(t *testing.T) {
	ends := map[string]func(t *testing.T, s *eventtest.Store, me access.Memberships) error{
		"out of the group": func(t *testing.T, s *eventtest.Store, me access.Memberships) error {
			_, err := group.RemoveMember(t.Context(), s, in(t, me), "grp_g", "usr_a", event.IfMatch{})
			return err
		},
		"the group gives less": func(t *testing.T, s *eventtest.Store, me access.Memberships) error {
			_, err := group.SetRoles(t.Context(), s, in(t, me), "grp_g", event.IfMatch{}, []string{"ORG_OWNER_VIEWER"})
			return err
		},
		"the group is removed": func(t *testing.T, s *eventtest.Store, me access.Memberships) error {
			_, err := lifecycle.RemoveGroup(t.Context(), s, in(t, me), "grp_g", event.IfMatch{})
			return err
		},
	}
	for name, end := range ends {
		for _, c := range []struct {
			name  string
			me    access.Memberships
			facts []event.Fact[user.User] // of another user of the organization
			want  *errs.Error
		}{
			{"nobody else", owner, nil, member.ErrLastOrgOwner},
			{"by the installation", iam, nil, nil},
			{"another owner", owner,
				[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a",
					Roles: []access.Role{access.OrgOwner}}}, nil},
			{"another one through another group", owner,
				[]event.Fact[user.User]{user.GroupJoined{Org: "org_a", Group: "grp_2",
					Roles: []access.Role{access.OrgOwner}}}, nil},
			{"another one who is locked", owner,
				[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}},
					user.WasLocked{}}, member.ErrLastOrgOwner},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s := newInstallation(t, access.OrgOwner)
				eventtest.Given(t, s, user.Kind, "usr_keeps", "", nil, user.MembershipSet{Scope: "org_a"})
				join(t, s, "usr_a")
				if c.facts != nil {
					membertest.User(t, s, "usr_other", "org_a", nil, c.facts...)
				}
				before, mark := s.Fingerprint(), s.Mark()
				eventtest.As(t, end(t, s, c.me), c.want)
				if told, lost := ownerLost(t, s, mark),
					c.want == nil && c.facts == nil; lost && told != `{"userId":"usr_a","org":"org_a"}` ||
					!lost && told != "" {
					t.Errorf("the organization reads %q", told)
				}
				if changed := s.Fingerprint() != before; changed != (c.want == nil) {
					t.Errorf("something was written: %t", changed)
				}
			})
		}
		// Of two who own it through the same group, one stays where the other alone is taken out, but not where the
		// group gives it no longer.
		t.Run(name+"/two in the group", func(t *testing.T) {
			s := newInstallation(t, access.OrgOwner)
			eventtest.Given(t, s, user.Kind, "usr_keeps", "", nil, user.MembershipSet{Scope: "org_a"})
			join(t, s, "usr_a")
			join(t, s, "usr_guest")
			want := member.ErrLastOrgOwner
			if name == "out of the group" {
				want = nil
			}
			eventtest.As(t, end(t, s, owner), want)
			if want == nil {
				return
			}
			mark := s.Mark()
			must(t, end(t, s, iam))
			if told := ownerLost(t, s, mark); told != `{"org":"org_a"}` {
				t.Errorf("the organization reads %q", told)
			}
		})
		t.Run(name+"/who could not act", func(t *testing.T) {
			s := newInstallation(t, access.OrgOwner)
			eventtest.Given(t, s, user.Kind, "usr_keeps", "", nil, user.MembershipSet{Scope: "org_a"})
			join(t, s, "usr_a")
			eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.WasLocked{})
			mark := s.Mark()
			must(t, end(t, s, iam))
			if told := ownerLost(t, s, mark); told != "" {
				t.Errorf("the organization reads %q, which was so before", told)
			}
		})
	}
}

// ownerLost is what the organization was told of its owners; empty: nothing.
func ownerLost(t *testing.T, s *eventtest.Store, mark int64) (told string) {
	t.Helper()
	for _, f := range s.Since(t, mark) {
		if f.Type == "org.owner_lost.v1" {
			told += f.Payload
		}
	}
	return told
}

// What a person holds through a group protects the person as what is given directly does.
func TestWhoOwnsThroughAGroupIsProtected(t *testing.T) {
	s := newInstallation(t, access.OrgOwner)
	join(t, s, "usr_a")
	permit, err := (&access.Caller{UserID: "usr_me", OrgID: "org_a", Memberships: manager}).In("org_a",
		access.UserWrite)
	must(t, err)
	_, err = user.SetUserName(t.Context(), s, permit, "usr_a", event.IfMatch{}, "mine")
	eventtest.As(t, err, access.ErrTargetHoldsMore)
	_, err = lifecycle.DeactivateUser(t.Context(), s, permit, "usr_a", event.IfMatch{})
	eventtest.As(t, err, access.ErrTargetHoldsMore)
	_, err = lifecycle.RemoveUser(t.Context(), s, permit, "usr_a", event.IfMatch{})
	eventtest.As(t, err, access.ErrTargetHoldsMore)
}

func TestARemovedGroupGivesNothingInApplications(t *testing.T) {
	s := newInstallation(t)
	roles := []user.AppRole{{Key: "admin", Epoch: 1}}
	givenPlaces(t, s, roles)
	mark := s.Mark()
	_, err := lifecycle.RemoveGroup(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{})
	must(t, err)
	s.Then(t, mark,
		eventtest.Fact{Object: "grp_g", Type: "group.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "prj_x", Type: "project.group_roles_set.v1", Payload: `{"group":"grp_g"}`},
		eventtest.Fact{Object: "pac_x", Type: "project_access.group_roles_set.v1", Payload: `{"group":"grp_g"}`})
}
