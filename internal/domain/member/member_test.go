package member_test

import (
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// newInstallation is that of membertest.
func newInstallation(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, member.OfferKind)
	membertest.Given(t, s)
	return s
}

// inOrg gives the members of an organization to somebody who holds something.
func inOrg(t *testing.T, id string, holds access.Memberships) member.Members {
	t.Helper()
	permit, err := (&access.Caller{UserID: "usr_me", RequestID: "req_1", Memberships: holds}).In(id, access.MemberWrite)
	must(t, err)
	m, err := member.OfOrganization(permit)
	must(t, err)
	return m
}

var iam = access.Memberships{access.Installation: {access.IAMOwner}}

func inInstallation(t *testing.T) member.Members {
	t.Helper()
	permit, err := (&access.Caller{UserID: "usr_me", Memberships: iam}).In(access.Installation, access.SystemWrite)
	must(t, err)
	m, err := member.OfInstallation(permit)
	must(t, err)
	return m
}

func TestRolesReplaceThoseOfBeforeInTheirScopeOnly(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a",
		access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgUserManager}})
	membertest.User(t, s, "usr_keeps", "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	mark := s.Mark()
	m := inOrg(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	d, err := m.Set(t.Context(), s, "usr_a", event.IfMatch{},
		[]string{"ORG_USER_MANAGER", "ORG_OWNER_VIEWER", "ORG_USER_MANAGER"})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.membership_set.v1",
		Payload: `{"scope":"org_a","roles":["ORG_OWNER_VIEWER","ORG_USER_MANAGER"]}`})
	u := eventtest.State(t, s, user.Kind, "usr_a")
	if d.Details != u.Details() || !slices.Equal(u.Data.Memberships["org_b"], []access.Role{access.OrgUserManager}) {
		t.Errorf("details %+v, state %+v", d, u.Data)
	}

	mark = s.Mark()
	_, err = m.Remove(t.Context(), s, "usr_a", event.IfMatch{Set: true, Sequence: d.Sequence})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.membership_set.v1", Payload: `{"scope":"org_a"}`})
	_, err = m.Remove(t.Context(), s, "usr_a", event.IfMatch{})
	eventtest.As(t, err, member.ErrNotFound)
}

func TestWhoMayGiveAndTakeWhat(t *testing.T) {
	ownerOf := func(ids ...string) access.Memberships {
		m := access.Memberships{}
		for _, id := range ids {
			m[id] = []access.Role{access.OrgOwner}
		}
		return m
	}
	manager := access.Memberships{access.Installation: {access.IAMOrgManager}}
	for _, c := range []struct {
		name      string
		me        access.Memberships
		home      string // of the target
		held      []access.Role
		roles     []string // none: take away
		want      *errs.Error
		gone      bool // the target is removed
		orgGone   bool // the target's organization is removed
		scopeGone bool
	}{
		{name: "an owner makes a user of the organization one", me: ownerOf("org_a"), home: "org_a",
			roles: []string{"ORG_OWNER"}},
		{name: "a manager of organizations cannot give what it does not hold", me: manager, home: "org_a",
			roles: []string{"ORG_SETTINGS_MANAGER"}, want: member.ErrGrantsMore},
		{name: "who holds less cannot make an owner", me: manager, home: "org_a", roles: []string{"ORG_OWNER"},
			want: member.ErrGrantsMore},
		{name: "nor lower one", me: manager, home: "org_a", held: []access.Role{access.OrgOwner},
			roles: []string{"ORG_OWNER"}, want: member.ErrGrantsMore},
		{name: "nor take the roles of one away", me: manager, home: "org_a", held: []access.Role{access.OrgOwner},
			want: access.ErrTargetHoldsMore},
		{name: "a stranger cannot be made a member", me: ownerOf("org_a"), home: "org_b", roles: []string{"ORG_OWNER"},
			want: user.ErrNotFound},
		{name: "whoever sees users there can",
			me: access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgUserManager}}, home: "org_b",
			roles: []string{"ORG_OWNER"}},
		{name: "whoever sees members there can",
			me: access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwnerViewer}}, home: "org_b",
			roles: []string{"ORG_OWNER"}},
		{name: "whoever sees neither there cannot",
			me: access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgSettingsManager}}, home: "org_b",
			roles: []string{"ORG_OWNER"}, want: user.ErrNotFound},
		{name: "a member from elsewhere can be changed", me: ownerOf("org_a"), home: "org_b",
			held: []access.Role{access.OrgOwner}, roles: []string{"ORG_OWNER_VIEWER"}},
		{name: "and sent away", me: ownerOf("org_a"), home: "org_b", held: []access.Role{access.OrgOwner}},
		{name: "who is no member cannot be sent away", me: ownerOf("org_a"), home: "org_a", want: member.ErrNotFound},
		{name: "nor a stranger", me: ownerOf("org_a"), home: "org_b", want: member.ErrNotFound},
		{name: "a removed user is nobody", me: ownerOf("org_a"), home: "org_a", roles: []string{"ORG_OWNER"},
			gone: true, want: user.ErrNotFound},
		{name: "to be sent away either", me: ownerOf("org_a"), home: "org_a", gone: true, want: member.ErrNotFound},
		{name: "so is one of a removed organization", me: iam, home: "org_b", roles: []string{"ORG_OWNER"},
			orgGone: true, want: user.ErrNotFound},
		{name: "a removed organization has no members", me: iam, home: "org_b", roles: []string{"ORG_OWNER"},
			scopeGone: true, want: org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_t", c.home, access.Memberships{"org_a": c.held})
			membertest.User(t, s, "usr_keeps", "org_a", ownerOf("org_a"))
			if c.gone {
				eventtest.Given(t, s, user.Kind, "usr_t", c.home, nil, user.WasRemoved{})
			}
			if c.orgGone {
				eventtest.Given(t, s, org.Kind, c.home, c.home, nil, org.WasRemoved{})
			}
			if c.scopeGone {
				eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.WasRemoved{})
			}
			before := s.Fingerprint()
			m := inOrg(t, "org_a", c.me)
			var err error
			if len(c.roles) > 0 {
				_, err = m.Set(t.Context(), s, "usr_t", event.IfMatch{}, c.roles)
			} else {
				_, err = m.Remove(t.Context(), s, "usr_t", event.IfMatch{})
			}
			eventtest.As(t, err, c.want)
			if changed := s.Fingerprint() != before; changed != (c.want == nil) {
				t.Errorf("something was written: %t", changed)
			}
		})
	}
}

func TestAnUnknownUserIsNobody(t *testing.T) {
	s := newInstallation(t)
	m := inOrg(t, "org_a", iam)
	_, err := m.Set(t.Context(), s, "usr_x", event.IfMatch{}, []string{"ORG_OWNER"})
	eventtest.As(t, err, user.ErrNotFound)
	_, err = m.Remove(t.Context(), s, "usr_x", event.IfMatch{})
	eventtest.As(t, err, member.ErrNotFound)
}

func TestRolesMustBeKnownInTheirScope(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	_, err := inOrg(t, "org_a", iam).Set(t.Context(), s, "usr_a", event.IfMatch{}, []string{"ORG_OWNER", "IAM_OWNER"})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[1]")
	_, err = inInstallation(t).Set(t.Context(), s, "usr_a", event.IfMatch{}, []string{"ORG_OWNER", "IAM_OWNER"})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[0]")
}

func TestIfMatchIsAboutTheUser(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	_, err := inOrg(t, "org_a", iam).Set(t.Context(), s, "usr_a", event.IfMatch{Set: true, Sequence: 7},
		[]string{"ORG_OWNER"})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	_, err = inInstallation(t).Set(t.Context(), s, "usr_a", event.IfMatch{Set: true, Sequence: 7},
		[]string{"IAM_OWNER"})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	if owners := eventtest.State(t, s, installation.Kind, installation.ID).Data.Owners; len(owners) != 1 {
		t.Errorf("owners %v", owners)
	}
}

func TestAPermitForTheInstallationIsNoneForAnOrganizationOfThatName(t *testing.T) {
	manager := &access.Caller{UserID: "usr_me",
		Memberships: access.Memberships{access.Installation: {access.IAMOrgManager}}}
	// what an organization called "installation" leads to
	permit, err := manager.In(access.Installation, access.MemberWrite)
	must(t, err)
	_, err = member.OfOrganization(permit)
	eventtest.As(t, err, org.ErrNotFound)
	_, err = member.OfOrganization(access.Permit{})
	eventtest.As(t, err, org.ErrNotFound)
	permit, err = manager.In("org_a", access.MemberWrite)
	must(t, err)
	_, err = member.OfInstallation(permit)
	eventtest.As(t, err, access.ErrDenied)
}

func TestTheInstallationKnowsItsOwners(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	m := inInstallation(t)
	set := func(roles ...string) {
		t.Helper()
		_, err := m.Set(t.Context(), s, "usr_a", event.IfMatch{}, roles)
		must(t, err)
	}
	told := func(want ...event.Type) {
		t.Helper()
		var got []event.Type
		for _, f := range s.Since(t, 0) {
			if f.Object == installation.ID && f.Payload == `{"userId":"usr_a"}` {
				got = append(got, f.Type)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the installation was told %q, want %q", got, want)
		}
	}
	const added, removed, other = "installation.owner_added.v1", "installation.owner_removed.v1", "installation.members_changed.v1"
	set("IAM_OWNER_VIEWER")
	told(other)
	set("IAM_OWNER")
	told(other, added)
	set("IAM_OWNER", "IAM_ORG_MANAGER")
	told(other, added, other)
	set("IAM_ORG_MANAGER")
	told(other, added, other, removed)
	set("IAM_OWNER")
	_, err := m.Remove(t.Context(), s, "usr_a", event.IfMatch{})
	must(t, err)
	told(other, added, other, removed, added, removed)
	if owners := eventtest.State(t, s, installation.Kind, installation.ID).Data.Owners; !slices.Equal(owners,
		[]string{"usr_root"}) {
		t.Errorf("owners %v", owners)
	}
}

func TestTheLastOwnerWhoCanActStaysOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(t *testing.T, s *eventtest.Store)
		want  *errs.Error
	}{
		{"nobody else", func(*testing.T, *eventtest.Store) {}, member.ErrLastOwner},
		{"another one", func(t *testing.T, s *eventtest.Store) { membertest.Owner(t, s, "usr_o", "org_a") }, nil},
		{"another one who is switched off", func(t *testing.T, s *eventtest.Store) {
			membertest.Owner(t, s, "usr_o", "org_a")
			eventtest.Given(t, s, user.Kind, "usr_o", "org_a", nil, user.Deactivated{})
		}, member.ErrLastOwner},
		{"another one who is locked", func(t *testing.T, s *eventtest.Store) {
			membertest.Owner(t, s, "usr_o", "org_a")
			eventtest.Given(t, s, user.Kind, "usr_o", "org_a", nil, user.WasLocked{})
		}, member.ErrLastOwner},
		{"another one whose organization is switched off", func(t *testing.T, s *eventtest.Store) {
			membertest.Owner(t, s, "usr_o", "org_a")
			eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Deactivated{})
		}, member.ErrLastOwner},
		{"one who only sees everything", func(t *testing.T, s *eventtest.Store) {
			membertest.User(t, s, "usr_o", "org_a", access.Memberships{access.Installation: {access.IAMOwnerViewer}})
		}, member.ErrLastOwner},
		{"many who cannot act, and one who can", func(t *testing.T, s *eventtest.Store) {
			for _, id := range []string{"usr_1", "usr_2", "usr_3", "usr_4"} {
				membertest.Owner(t, s, id, "org_a")
				eventtest.Given(t, s, user.Kind, id, "org_a", nil, user.WasLocked{})
			}
			membertest.Owner(t, s, "usr_5", "org_b")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, how := range []string{"demoted", "sent away"} {
				s := newInstallation(t)
				c.given(t, s)
				var err error
				if how == "demoted" {
					_, err = inInstallation(t).Set(t.Context(), s, "usr_root", event.IfMatch{},
						[]string{"IAM_OWNER_VIEWER"})
				} else {
					_, err = inInstallation(t).Remove(t.Context(), s, "usr_root", event.IfMatch{})
				}
				eventtest.As(t, err, c.want)
			}
			s := newInstallation(t)
			c.given(t, s)
			_, err := inInstallation(t).Set(t.Context(), s, "usr_root", event.IfMatch{},
				[]string{"IAM_OWNER", "IAM_ORG_MANAGER"})
			must(t, err) // still one
		})
	}
}

func TestMembersAreListedPageByPage(t *testing.T) {
	s := newInstallation(t)
	for _, id := range []string{"usr_1", "usr_2", "usr_3"} {
		membertest.User(t, s, id, "org_b", access.Memberships{"org_a": {access.OrgOwner}})
	}
	membertest.User(t, s, "usr_4", "org_a", nil)
	m := inOrg(t, "org_a", iam)
	var ids []string
	for after := (&event.Cursor{}); after != nil; {
		users, next, err := m.List(t.Context(), s, *after, 2)
		must(t, err)
		for _, u := range users {
			ids = append(ids, u.ID)
		}
		after = next
	}
	if !slices.Equal(ids, []string{"usr_1", "usr_2", "usr_3"}) {
		t.Errorf("members %v", ids)
	}
	users, _, err := inInstallation(t).List(t.Context(), s, event.Cursor{}, 10)
	must(t, err)
	if len(users) != 1 || users[0].ID != "usr_root" {
		t.Errorf("members of the installation: %v", users)
	}
}

// The last owner of an organization goes only by somebody with a role in the installation. Others who own it but cannot
// act do not count.
func TestTheLastOwnerOfAnOrganizationStays(t *testing.T) {
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	for _, c := range []struct {
		name  string
		me    access.Memberships
		other func(t *testing.T, s *eventtest.Store) // somebody else who owns it
		want  *errs.Error
	}{
		{"the last one", owner, nil, member.ErrLastOrgOwner},
		{"by the installation", iam, nil, nil},
		{"by an owner with a role in the installation",
			access.Memberships{"org_a": {access.OrgOwner}, access.Installation: {access.IAMOwnerViewer}}, nil, nil},
		{"one of two", owner, func(t *testing.T, s *eventtest.Store) {
			membertest.User(t, s, "usr_o", "org_a", owner)
		}, nil},
		{"one of two, the other from elsewhere", owner,
			func(t *testing.T, s *eventtest.Store) { membertest.User(t, s, "usr_o", "org_b", owner) }, nil},
		{"the other holds less", owner, func(t *testing.T, s *eventtest.Store) {
			membertest.User(t, s, "usr_o", "org_a",
				access.Memberships{"org_a": {access.OrgUserManager}, "org_b": {access.OrgOwner}})
		}, member.ErrLastOrgOwner},
		{"the other is locked", owner, func(t *testing.T, s *eventtest.Store) {
			membertest.User(t, s, "usr_o", "org_a", owner)
			eventtest.Given(t, s, user.Kind, "usr_o", "", nil, user.WasLocked{})
		}, member.ErrLastOrgOwner},
		{"the other's organization is inactive", owner, func(t *testing.T, s *eventtest.Store) {
			membertest.User(t, s, "usr_o", "org_b", owner)
			eventtest.Given(t, s, org.Kind, "org_b", "", nil, org.Deactivated{})
		}, member.ErrLastOrgOwner},
	} {
		for way, change := range map[string]func(t *testing.T, s *eventtest.Store, m member.Members) error{
			"removed": func(t *testing.T, s *eventtest.Store, m member.Members) error {
				_, err := m.Remove(t.Context(), s, "usr_t", event.IfMatch{})
				return err
			},
			"lowered": func(t *testing.T, s *eventtest.Store, m member.Members) error {
				_, err := m.Set(t.Context(), s, "usr_t", event.IfMatch{}, []string{"ORG_USER_MANAGER"})
				return err
			},
		} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				s := newInstallation(t)
				membertest.User(t, s, "usr_t", "org_a", owner)
				if c.other != nil {
					c.other(t, s)
				}
				before, mark := s.Fingerprint(), s.Mark()
				eventtest.As(t, change(t, s, inOrg(t, "org_a", c.me)), c.want)
				var told []eventtest.Fact
				for _, f := range s.Since(t, mark) {
					if f.Type == "org.owner_lost.v1" {
						told = append(told, f)
					}
				}
				lost := eventtest.Fact{Object: "org_a", Type: "org.owner_lost.v1",
					Payload: `{"userId":"usr_t","org":"org_a"}`}
				if isLost := c.want == nil && c.other == nil; isLost && (len(told) != 1 || told[0] != lost) ||
					!isLost && told != nil {
					t.Errorf("the organization reads %v", told)
				}
				if changed := s.Fingerprint() != before; changed != (c.want == nil) {
					t.Errorf("something was written: %t", changed)
				}
				ids, err := member.Ownerless(t.Context(), s, owner)
				if must(t, err); (len(ids) == 1) != (c.want == nil && c.other == nil) && c.other == nil {
					t.Errorf("without an owner: %v", ids)
				}
			})
		}
	}
}

func TestOfTheLastTwoOwnersOfAnOrganizationOneStays(t *testing.T) {
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	for range 20 {
		s := newInstallation(t)
		both := []string{"usr_1", "usr_2"}
		failed := make(chan error, len(both))
		for _, id := range both {
			membertest.User(t, s, id, "org_a", owner)
		}
		for _, id := range both {
			m := inOrg(t, "org_a", owner)
			go func() {
				_, err := m.Remove(t.Context(), s, id, event.IfMatch{})
				failed <- err
			}()
		}
		first, second := testkit.Receive(t, failed, "one is removed, or not"),
			testkit.Receive(t, failed, "the other, too")
		if first == nil {
			first = second
		} else if second != nil {
			t.Errorf("both fail: %v, %v", first, second)
		}
		eventtest.As(t, first, member.ErrLastOrgOwner)
	}
}
