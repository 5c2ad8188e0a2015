package member_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var ownerOfA = access.Memberships{"org_a": {access.OrgOwner}}

func TestAGuestIsInAnOrganizationWithoutRoles(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_g", "org_b", nil)
	membertest.User(t, s, "usr_own", "org_a", nil)
	m := inOrg(t, "org_a", iam)
	membertest.Owner(t, s, "usr_me", "org_d")
	mark := s.Mark()
	offered, err := m.Set(t.Context(), s, "usr_g", event.IfMatch{}, nil)
	must(t, err)
	_, err = member.AcceptOffer(t.Context(), s, &access.Caller{UserID: "usr_g", OrgID: "org_b"}, offered.Offer,
		event.IfMatch{})
	must(t, err)
	if facts := s.Since(t, mark); len(facts) != 4 || string(facts[1].Type) != "user.roles_accepted.v1" ||
		string(facts[2].Type) != "user.membership_set.v1" ||
		string(facts[2].Payload) != `{"scope":"org_a","stays":true}` {
		t.Errorf("recorded %v", facts)
	}
	if u := eventtest.State(t, s, user.Kind, "usr_g"); !user.IsGuest(u, "org_a") ||
		u.Data.Memberships.HoldAnywhere(access.OrgRead) {
		t.Errorf("the guest has %v", u.Data.Memberships)
	}
	users, _, err := m.List(t.Context(), s, event.Cursor{}, 10)
	must(t, err)
	if len(users) != 1 || users[0].ID != "usr_g" {
		t.Errorf("members: %v", users)
	}
	before := s.Fingerprint()
	_, err = m.Set(t.Context(), s, "usr_own", event.IfMatch{}, nil)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles")
	_, err = inInstallation(t).Set(t.Context(), s, "usr_own", event.IfMatch{}, nil)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles")
	_, err = inOrg(t, "org_a", ownerOfA).Set(t.Context(), s, "usr_x", event.IfMatch{}, nil)
	eventtest.As(t, err, user.ErrNotFound)
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
	mark = s.Mark()
	_, err = inOrg(t, "org_a", ownerOfA).Remove(t.Context(), s, "usr_g", event.IfMatch{})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_g", Type: "user.org_left.v1", Payload: `{"org":"org_a"}`})
	_, err = inOrg(t, "org_a", ownerOfA).Remove(t.Context(), s, "usr_g", event.IfMatch{})
	eventtest.As(t, err, member.ErrNotFound)
}

// Roles that were given directly come and go; what groups give stays.
func TestRolesGivenDirectlyLeaveThoseOfGroupsAlone(t *testing.T) {
	joined := user.GroupJoined{Org: "org_a", Group: "grp_g", Roles: []access.Role{access.OrgOwner}}
	for _, c := range []struct {
		name  string
		home  string
		facts []event.Fact[user.User]
		roles []string // none: removed
		want  *errs.Error
		after []access.Role
	}{
		{"a role beside the group's", "org_a", nil, []string{"ORG_USER_MANAGER"}, nil,
			[]access.Role{access.OrgOwner, access.OrgUserManager}},
		{"taken away again", "org_a",
			[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgUserManager}}},
			nil, nil, []access.Role{access.OrgOwner}},
		{"the last owner, who stays one through the group", "org_a",
			[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}}, nil,
			nil, []access.Role{access.OrgOwner}},
		{"nothing was given directly", "org_a", nil, nil, member.ErrNotFound, []access.Role{access.OrgOwner}},
		{"a guest leaves the groups, too, and may be the last owner", "org_b",
			[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a", Stays: true}}, nil, member.ErrLastOrgOwner,
			[]access.Role{access.OrgOwner}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_t", c.home, nil, append(c.facts, joined)...)
			m := inOrg(t, "org_a", ownerOfA)
			var err error
			if len(c.roles) > 0 {
				_, err = m.Set(t.Context(), s, "usr_t", event.IfMatch{}, c.roles)
			} else {
				_, err = m.Remove(t.Context(), s, "usr_t", event.IfMatch{})
			}
			eventtest.As(t, err, c.want)
			u := eventtest.State(t, s, user.Kind, "usr_t")
			if got := u.Data.Memberships["org_a"]; len(got) != len(c.after) ||
				!u.Data.Memberships.Cover(access.Memberships{"org_a": c.after}) {
				t.Errorf("holds %v", got)
			}
		})
	}
	t.Run("who holds less takes nothing from an owner through a group", func(t *testing.T) {
		s := newInstallation(t)
		membertest.User(t, s, "usr_t", "org_a", nil,
			user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgUserManager}}, joined)
		_, err := inOrg(t, "org_a",
			access.Memberships{"org_a": {access.OrgUserManager},
				access.Installation: {access.IAMOrgManager}}).Remove(t.Context(), s, "usr_t", event.IfMatch{})
		eventtest.As(t, err, access.ErrTargetHoldsMore)
	})
}

func TestLeavingAnOrganization(t *testing.T) {
	guest := user.MembershipSet{Scope: "org_a", Stays: true}
	owns := user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}
	for _, c := range []struct {
		name   string
		facts  []event.Fact[user.User]
		org    string
		others bool // somebody else owns it
		want   *errs.Error
		fact   string
	}{
		{"a guest", []event.Fact[user.User]{guest}, "org_a", false, nil, "user.org_left.v1"},
		{"with a group and roles of applications",
			[]event.Fact[user.User]{guest, user.GroupJoined{Org: "org_a", Group: "grp_g"},
				user.AppRolesSet{Place: "prj_a", Project: "prj_a", Org: "org_a",
					Roles: []user.AppRole{{Key: "x", Epoch: 1}}}}, "org_a", false, nil, "user.org_left.v1"},
		{"one of the owners", []event.Fact[user.User]{owns}, "org_a", true, nil, "user.membership_set.v1"},
		{"the last owner", []event.Fact[user.User]{owns}, "org_a", false, nil,
			"org.owner_lost.v1 user.membership_set.v1"},
		{"the last owner through a group",
			[]event.Fact[user.User]{guest,
				user.GroupJoined{Org: "org_a", Group: "grp_g", Roles: []access.Role{access.OrgOwner}}}, "org_a", false,
			nil, "org.owner_lost.v1 user.org_left.v1"},
		{"the own organization", nil, "org_b", false, member.ErrOwnOrganization, ""},
		{"one that the person is not in", nil, "org_a", false, member.ErrNotFound, ""},
		{"one that does not exist", nil, "org_x", false, member.ErrNotFound, ""},
		{"the installation", []event.Fact[user.User]{user.MembershipSet{Scope: access.Installation,
			Roles: []access.Role{access.IAMOwnerViewer}}}, access.Installation, false, member.ErrNotFound, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_me", "org_b", nil, c.facts...)
			if c.others {
				membertest.User(t, s, "usr_o", "org_a", ownerOfA)
			}
			before, mark := s.Fingerprint(), s.Mark()
			_, err := member.Leave(t.Context(), s, &access.Caller{UserID: "usr_me", OrgID: "org_b"}, c.org,
				event.IfMatch{})
			eventtest.As(t, err, c.want)
			if c.want != nil {
				if s.Fingerprint() != before {
					t.Error("something was written")
				}
				return
			}
			var types []string
			for _, f := range s.Since(t, mark) {
				types = append(types, string(f.Type))
			}
			slices.Sort(types)
			if got := strings.Join(types, " "); got != c.fact {
				t.Errorf("recorded %s", got)
			}
			if u := eventtest.State(t, s, user.Kind, "usr_me"); user.IsGuest(u, "org_a") || u.Data.Groups != nil ||
				u.Data.AppRoles != nil {
				t.Errorf("has %+v", u.Data)
			}
		})
	}
}

func TestWhereRolesComeFrom(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_t", "org_b",
		access.Memberships{"org_a": {access.OrgOwnerViewer}, access.Installation: {access.IAMOwnerViewer},
			"org_gone": {access.OrgOwner}},
		user.GroupJoined{Org: "org_a", Group: "grp_2",
			Roles: []access.Role{access.OrgOwnerViewer, access.OrgUserManager}},
		user.GroupJoined{Org: "org_a", Group: "grp_1"},
		user.GroupJoined{Org: "org_b", Group: "grp_b"})
	all, err := member.Of(t.Context(), s, eventtest.State(t, s, user.Kind, "usr_t"))
	must(t, err)
	if len(all) != 3 || all[0].Org != "" || all[1].Org != "org_a" || !all[1].Guest || all[1].Name != "org_a" ||
		all[2].Org != "org_b" || all[2].Guest {
		t.Fatalf("got %+v", all)
	}
	roles := all[1].Roles
	if len(roles) != 2 || !roles[0].Direct || len(roles[0].Groups) != 1 || roles[1].Role != access.OrgUserManager ||
		roles[1].Direct || roles[1].Groups[0] != "grp_2" || len(all[1].Groups) != 2 {
		t.Errorf("got %+v", all[1])
	}
}
