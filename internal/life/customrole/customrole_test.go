package customrole_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/customrole"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

var (
	owner   = access.Memberships{"org_a": {access.OrgOwner}}
	manager = access.Memberships{"org_a": {access.OrgUserManager, custom("role_e", access.MemberWrite)}}
	iam     = access.Memberships{access.Installation: {access.IAMOwner}}
)

func custom(id string, permissions ...access.Permission) access.Role {
	return access.Custom(id, permissions)
}

// in gives a permit for a scope to somebody who holds something.
func in(t testing.TB, scope string, holds access.Memberships) access.Permit {
	t.Helper()
	need := access.MemberWrite
	if scope == access.Installation {
		need = access.SystemWrite
	}
	permit, err := (&access.Caller{UserID: "usr_root", OrgID: "org_d", Memberships: holds}).In(scope, need)
	must(t, err)
	return permit
}

// newInstallation has usr_a of org_a, usr_owner who owns it, usr_b of org_b and usr_guest of org_b, who is a guest of
// org_a by acceptance.
func newInstallation(t testing.TB) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, model.Kinds...)
	given(t, s)
	return s
}

func given(t testing.TB, s event.Store) {
	t.Helper()
	membertest.Given(t, s)
	membertest.User(t, s, "usr_a", "org_a", nil)
	membertest.User(t, s, "usr_owner", "org_a", owner)
	membertest.User(t, s, "usr_b", "org_b", nil)
	membertest.User(t, s, "usr_guest", "org_b", nil, user.MembershipSet{Scope: "org_a", Stays: true},
		user.RolesAccepted{Scope: "org_a"})
}

func add(t testing.TB, s event.Store, scope, name string, permissions ...string) string {
	t.Helper()
	made, err := role.Add(t.Context(), s, in(t, scope, iam), role.New{Name: name, Permissions: permissions}, event.Once{})
	must(t, err)
	return made.ID
}

func change(t testing.TB, s event.Store, scope string, by access.Memberships, id string, permissions ...string) error {
	t.Helper()
	_, err := customrole.Change(t.Context(), s, in(t, scope, by), id, event.IfMatch{},
		role.New{Name: "r", Permissions: permissions})
	return err
}

// give gives roles in org_a, as an owner of it, who may see users of org_b.
func give(t testing.TB, s event.Store, userID string, roles ...string) (member.Set, error) {
	t.Helper()
	return giveIn(t, s, "org_a", access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwnerViewer}},
		userID, roles...)
}

func giveIn(t testing.TB, s event.Store, scope string, by access.Memberships, userID string,
	roles ...string) (member.Set, error) {
	t.Helper()
	members, err := member.OfOrganization(in(t, scope, by))
	if scope == access.Installation {
		members, err = member.OfInstallation(in(t, scope, by))
	}
	must(t, err)
	return members.Set(t.Context(), s, userID, event.IfMatch{}, roles)
}

// may checks which of some permissions somebody holds in a scope.
func may(t testing.TB, s *eventtest.Store, userID, scope string, want ...access.Permission) {
	t.Helper()
	held := eventtest.State(t, s, user.Kind, userID).Data.Memberships
	for _, p := range access.Permissions() {
		if held.Hold(p, scope) != slices.Contains(want, p) {
			t.Errorf("%s in %s: %s is %t, want %v", userID, scope, p, held.Hold(p, scope), want)
		}
	}
}

func TestWhoMakesARoleHasAllOfIt(t *testing.T) {
	for _, c := range []struct {
		name        string
		scope       string
		by          access.Memberships
		permissions []string
		reason      errs.Reason
		field       string
	}{
		{"an owner", "org_a", owner, []string{"user.read", "user.read", "org.write"}, "", ""},
		{"somebody who has it by a custom role", "org_a", manager, []string{"member.write", "user.read"}, "", ""},
		{"somebody who lacks one", "org_a", manager, []string{"user.read", "org.read"}, role.HoldsMore, ""},
		{"an owner of everything", access.Installation, iam, []string{"signing.write", "user.read"}, "", ""},
		{"an owner of everything, for an organization", "org_a", iam, []string{"user.read"}, "", ""},
		{"a permission of the installation", "org_a", iam, []string{"signing.write"}, errs.InvalidRequest, "permissions[0]"},
		{"an unknown one", "org_a", owner, []string{"user.read", "user.reed"}, errs.InvalidRequest, "permissions[1]"},
		{"none", "org_a", owner, nil, errs.InvalidRequest, "permissions"},
		{"several in one", "org_a", owner, []string{"user.read,org.write"}, errs.InvalidRequest, "permissions[0]"},
		{"events sent by somebody who may not read them", "org_a", owner, []string{"webhook.write", "user.read"},
			errs.InvalidRequest, "permissions[0]"},
		{"events sent by somebody who may read them", "org_a", owner,
			[]string{"webhook.write", "user.read", "event.read"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t)
			n := role.New{Name: "r", Permissions: c.permissions}
			made, err := role.Add(t.Context(), s, in(t, c.scope, c.by), n, event.Once{})
			_, changed := customrole.Change(t.Context(), s, in(t, c.scope, c.by), made.ID, event.IfMatch{}, n)
			for _, err := range []error{err, changed} {
				switch {
				case c.reason == "":
					must(t, err)
				case c.field != "":
					eventtest.Refused(t, err, errs.InvalidArgument, c.reason, c.field)
				default:
					eventtest.Refused(t, err, errs.PermissionDenied, c.reason)
				}
			}
		})
	}
	_, err := role.Add(t.Context(), newInstallation(t), access.Permit{}, role.New{Name: "r",
		Permissions: []string{"user.read"}}, event.Once{})
	eventtest.As(t, err, access.ErrDenied)
}

func TestRolesHaveNamesOfTheirOwnAndAreNotTooMany(t *testing.T) {
	s := newInstallation(t)
	first := add(t, s, "org_a", "Helpdesk", "user.read")
	for scope, want := range map[string]*errs.Error{"org_a": role.ErrNameTaken, "org_b": nil, access.Installation: nil} {
		_, err := role.Add(t.Context(), s, in(t, scope, iam),
			role.New{Name: "HELPDESK", Permissions: []string{"user.read"}}, event.Once{})
		if want != nil {
			eventtest.As(t, err, want)
		} else {
			must(t, err)
		}
	}
	for i := range role.Max - 1 {
		add(t, s, "org_a", fmt.Sprint("r", i), "user.read")
	}
	more := role.New{Name: "one more", Permissions: []string{"user.read"}}
	_, err := role.Add(t.Context(), s, in(t, "org_a", owner), more, event.Once{})
	eventtest.As(t, err, role.ErrTooMany)
	_, err = customrole.Remove(t.Context(), s, in(t, "org_a", owner), first, event.IfMatch{})
	must(t, err)
	made, err := role.Add(t.Context(), s, in(t, "org_a", owner), more, event.Once{})
	must(t, err)
	if made.ID == first {
		t.Error("an identifier is used again")
	}
}

func TestOnlyRolesOfTheScopeAreGiven(t *testing.T) {
	s := newInstallation(t)
	removed := add(t, s, "org_a", "removed", "user.read")
	_, err := customrole.Remove(t.Context(), s, in(t, "org_a", owner), removed, event.IfMatch{})
	must(t, err)
	here := add(t, s, "org_a", "here", "user.read")
	for name, id := range map[string]string{"of another organization": add(t, s, "org_b", "r", "user.read"),
		"of the installation": add(t, s, access.Installation, "r", "user.read"), "removed": removed,
		"unknown": "role_0198c0de00007000800000000000dead", "with permissions": here + ":org.write",
		"no identifier": "role_x", "in upper case": strings.ToUpper(here)} {
		t.Run(name, func(t *testing.T) {
			_, err := give(t, s, "usr_a", here, id)
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[1]")
			_, err = group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s), event.IfMatch{}, []string{id})
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[0]")
		})
	}
	_, err = giveIn(t, s, access.Installation, iam, "usr_a", here)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "roles[0]")
	wide := add(t, s, "org_a", "wide", "org.write")
	_, err = giveIn(t, s, "org_a", manager, "usr_a", wide)
	eventtest.As(t, err, member.ErrGrantsMore)
	_, err = group.SetRoles(t.Context(), s, in(t, "org_a", manager), newGroup(t, s), event.IfMatch{}, []string{wide})
	eventtest.As(t, err, member.ErrGrantsMore)
	may(t, s, "usr_a", "org_a")
}

var groups int

func newGroup(t testing.TB, s event.Store, members ...string) string {
	t.Helper()
	groups++
	made, err := group.Add(t.Context(), s, in(t, "org_a", owner), group.New{Name: fmt.Sprint("g", groups)}, event.Once{})
	must(t, err)
	for _, id := range members {
		_, err := group.AddMember(t.Context(), s, in(t, "org_a", owner), made.ID, id, event.IfMatch{})
		must(t, err)
	}
	return made.ID
}

func TestHoldersGetWhatTheRoleGets(t *testing.T) {
	for name, given := range map[string]func(t *testing.T, s event.Store, id string){
		"directly": func(t *testing.T, s event.Store, id string) {
			_, err := give(t, s, "usr_a", id)
			must(t, err)
		},
		"by a group": func(t *testing.T, s event.Store, id string) {
			_, err := group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s, "usr_a"), event.IfMatch{},
				[]string{id})
			must(t, err)
		},
		"by joining a group": func(t *testing.T, s event.Store, id string) {
			g := newGroup(t, s)
			_, err := group.SetRoles(t.Context(), s, in(t, "org_a", owner), g, event.IfMatch{}, []string{id})
			must(t, err)
			_, err = group.AddMember(t.Context(), s, in(t, "org_a", owner), g, "usr_a", event.IfMatch{})
			must(t, err)
		},
		"in both ways": func(t *testing.T, s event.Store, id string) {
			_, err := give(t, s, "usr_a", id)
			must(t, err)
			_, err = group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s, "usr_a"), event.IfMatch{},
				[]string{id})
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			id := add(t, s, "org_a", "r", "user.read")
			given(t, s, id)
			may(t, s, "usr_a", "org_a", access.UserRead)
			may(t, s, "usr_a", "org_b")
			may(t, s, "usr_a", access.Installation)
			must(t, change(t, s, "org_a", owner, id, "user.read", "org.read"))
			may(t, s, "usr_a", "org_a", access.UserRead, access.OrgRead)
			must(t, change(t, s, "org_a", owner, id, "org.read"))
			may(t, s, "usr_a", "org_a", access.OrgRead)
			_, err := customrole.Remove(t.Context(), s, in(t, "org_a", owner), id, event.IfMatch{})
			must(t, err)
			may(t, s, "usr_a", "org_a")
			if u := eventtest.State(t, s, user.Kind, "usr_a"); u.Data.HasRole("org_a", id) {
				t.Errorf("%+v", u.Data)
			}
			_, err = role.Get(t.Context(), s, in(t, "org_a", owner), id)
			eventtest.As(t, err, role.ErrNotFound)
			eventtest.As(t, change(t, s, "org_a", owner, id, "user.read"), role.ErrNotFound)
		})
	}
}

// A role of the installation counts in every organization, and what its holders may do moves the installation: the end
// of an organization depends on it.
func TestARoleOfTheInstallationCountsEverywhere(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, access.Installation, "r", "user.read", "signing.read")
	_, err := giveIn(t, s, access.Installation, iam, "usr_a", id)
	must(t, err)
	for _, scope := range []string{"org_a", "org_b", access.Installation} {
		may(t, s, "usr_a", scope, access.UserRead, access.SigningRead)
	}
	mark := s.Mark()
	must(t, change(t, s, access.Installation, iam, id, "user.read"))
	for _, scope := range []string{"org_a", access.Installation} {
		may(t, s, "usr_a", scope, access.UserRead)
	}
	moved := slices.ContainsFunc(s.Since(t, mark),
		func(f eventtest.Fact) bool { return f.Type == "installation.members_changed.v1" })
	if !moved {
		t.Errorf("the installation has not moved: %v", s.Since(t, mark))
	}
}

func TestAChangeIsAGrantToEachHolder(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, "org_a", "r", "user.read")
	for _, userID := range []string{"usr_a", "usr_owner"} {
		held := []string{id}
		if userID == "usr_owner" {
			held = append(held, "ORG_OWNER")
		}
		_, err := give(t, s, userID, held...)
		must(t, err)
	}
	reader := access.Memberships{"org_a": {access.OrgUserManager, custom("role_e", access.MemberWrite, access.MemberRead)}}
	for name, c := range map[string]struct {
		by   access.Memberships
		then []string
		says string
	}{
		"wider":                    {reader, []string{"user.read", "user.write"}, "usr_owner"},
		"another":                  {reader, []string{"user.write"}, "usr_owner"},
		"who may not read members": {manager, []string{"user.read", "user.write"}, "1 of its holders"},
	} {
		t.Run(name, func(t *testing.T) {
			err := change(t, s, "org_a", c.by, id, c.then...)
			eventtest.Refused(t, err, errs.PermissionDenied, customrole.HoldersHoldMore)
			if says := err.Error(); !strings.Contains(says, c.says) || strings.Contains(says, "usr_a") {
				t.Error(says)
			}
		})
	}
	_, err := customrole.Remove(t.Context(), s, in(t, "org_a", reader), id, event.IfMatch{})
	eventtest.Refused(t, err, errs.PermissionDenied, customrole.HoldersHoldMore)
	eventtest.As(t, change(t, s, "org_a", reader, id, "user.read", "org.read"), role.ErrHoldsMore)
	must(t, change(t, s, "org_a", owner, id, "user.read", "org.read"))
	eventtest.As(t, change(t, s, "org_a", reader, id, "user.read"), role.ErrHoldsMore) // what it has had
	may(t, s, "usr_a", "org_a", access.UserRead, access.OrgRead)
}

// guest is somebody of another organization who was given a role and has accepted it.
func guest(t *testing.T, s *eventtest.Store, id string) {
	t.Helper()
	set, err := give(t, s, "usr_guest", id)
	must(t, err)
	may(t, s, "usr_guest", "org_a")
	_, err = member.AcceptOffer(t.Context(), s, person(), set.Offer, event.IfMatch{})
	must(t, err)
}

func person() *access.Caller { return &access.Caller{UserID: "usr_guest", OrgID: "org_b"} }

func TestAGuestAcceptsWhatARoleGets(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, "org_a", "r", "user.read")
	guest(t, s, id)
	may(t, s, "usr_guest", "org_a", access.UserRead)
	must(t, change(t, s, "org_a", owner, id, "user.read", "org.read"))
	may(t, s, "usr_guest", "org_a", access.UserRead)

	accept := func(permissions ...string) error {
		_, err := member.AcceptRoles(t.Context(), s, person(), "org_a", event.IfMatch{}, []string{id}, permissions)
		return err
	}
	for _, stale := range [][]string{nil, {"user.read"}, {"org.read"}, {"user.read", "org.read", "org.write"}} {
		eventtest.As(t, accept(stale...), member.ErrRolesChanged)
	}
	// what is given beside it takes nothing away
	_, err := give(t, s, "usr_guest", id, "ORG_OWNER_VIEWER")
	must(t, err)
	may(t, s, "usr_guest", "org_a", access.UserRead)
	must(t, accept("org.read", "user.read"))
	may(t, s, "usr_guest", "org_a", access.UserRead, access.OrgRead)

	must(t, change(t, s, "org_a", owner, id, "org.read"))
	may(t, s, "usr_guest", "org_a", access.OrgRead)
	must(t, change(t, s, "org_a", owner, id, "org.read", "user.read")) // it was accepted
	may(t, s, "usr_guest", "org_a", access.UserRead, access.OrgRead)
	_, err = customrole.Remove(t.Context(), s, in(t, "org_a", owner), id, event.IfMatch{})
	must(t, err)
	may(t, s, "usr_guest", "org_a")
	if u := eventtest.State(t, s, user.Kind, "usr_guest"); !user.IsGuest(u, "org_a") {
		t.Error("a guest without roles is one no longer")
	}
}

func TestWhatAGroupGivesAGuestWaits(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, "org_a", "r", "user.read")
	g := newGroup(t, s, "usr_guest")
	_, err := group.SetRoles(t.Context(), s, in(t, "org_a", owner), g, event.IfMatch{}, []string{id})
	must(t, err)
	may(t, s, "usr_guest", "org_a")
	_, err = member.AcceptRoles(t.Context(), s, person(), "org_a", event.IfMatch{}, []string{id}, []string{"user.read"})
	must(t, err)
	may(t, s, "usr_guest", "org_a", access.UserRead)
	must(t, change(t, s, "org_a", owner, id, "user.read", "org.read"))
	may(t, s, "usr_guest", "org_a", access.UserRead)
	other := add(t, s, "org_a", "within", "user.read")
	_, err = give(t, s, "usr_guest", other) // nothing beyond what was accepted
	must(t, err)
	u := eventtest.State(t, s, user.Kind, "usr_guest")
	if got := u.Data.Waiting("org_a"); !slices.Equal(got, []access.Role{custom(id, access.OrgRead, access.UserRead)}) {
		t.Errorf("waiting: %v", got)
	}
}

func TestARoleThatChangesBeforeItsOfferIsAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, s event.Store, id string)
		err     *errs.Error
		want    []access.Permission
	}{
		"nothing": {func(*testing.T, event.Store, string) {}, nil, []access.Permission{access.UserRead, access.OrgRead}},
		"wider": {func(t *testing.T, s event.Store, id string) {
			must(t, change(t, s, "org_a", owner, id, "user.read", "org.read", "org.write"))
		}, nil, []access.Permission{access.UserRead, access.OrgRead}},
		"narrower": {func(t *testing.T, s event.Store, id string) {
			must(t, change(t, s, "org_a", owner, id, "org.read"))
		}, nil, []access.Permission{access.OrgRead}},
		"removed": {func(t *testing.T, s event.Store, id string) {
			_, err := customrole.Remove(t.Context(), s, in(t, "org_a", owner), id, event.IfMatch{})
			must(t, err)
		}, member.ErrGiverMayNot, nil},
		"wider than the giver": {func(t *testing.T, s event.Store, id string) {
			must(t, change(t, s, "org_a", owner, id, "user.read", "org.read", "org.write"))
			eventtest.Given(t, s, user.Kind, "usr_root", "", nil, user.MembershipSet{Scope: access.Installation},
				user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwnerViewer,
					custom("role_e", access.MemberWrite)}})
		}, member.ErrGiverMayNot, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			id := add(t, s, "org_a", "r", "user.read", "org.read")
			set, err := give(t, s, "usr_b", id)
			must(t, err)
			c.happens(t, s, id)
			_, err = member.AcceptOffer(t.Context(), s, &access.Caller{UserID: "usr_b", OrgID: "org_b"}, set.Offer,
				event.IfMatch{})
			if c.err != nil {
				eventtest.As(t, err, c.err)
			} else {
				must(t, err)
			}
			may(t, s, "usr_b", "org_a", c.want...)
		})
	}
}

// What is recorded of somebody holds what the role had then, whatever becomes of it.
func TestWhatIsRecordedStaysAsItWas(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, "org_a", "r", "user.credential.write")
	_, err := give(t, s, "usr_a", id)
	must(t, err)
	recorded := eventtest.State(t, s, user.Kind, "usr_a").Data.Memberships
	must(t, change(t, s, "org_a", owner, id, "user.credential.write", "org.read"))
	now := eventtest.State(t, s, user.Kind, "usr_a").Data.Memberships
	if recorded.Cover(now) || !now.Cover(recorded) || recorded.Equal(now) || recorded.Hold(access.OrgRead, "org_a") {
		t.Errorf("recorded %v, now %v", recorded, now)
	}
	_, err = customrole.Remove(t.Context(), s, in(t, "org_a", owner), id, event.IfMatch{})
	must(t, err)
	if !recorded.Hold(access.CredentialWrite, "org_a") {
		t.Error("the record went with the role")
	}
}

func TestARoleHasAtMostAThousandHolders(t *testing.T) {
	s := newInstallation(t)
	id := add(t, s, "org_a", "r", "user.read")
	full := role.HoldersCounted{Holders: role.MaxHolders}
	eventtest.Given(t, s, role.Kind, id, "", nil, full)
	_, err := give(t, s, "usr_a", id) // nobody really holds it: it is counted again
	must(t, err)
	if o := eventtest.State(t, s, role.Kind, id); o.Data.Holders != 1 {
		t.Errorf("%d holders", o.Data.Holders)
	}
	holds := access.Memberships{"org_a": {custom(id, access.UserRead)}}
	for i := range role.MaxHolders - 1 {
		membertest.User(t, s, fmt.Sprint("usr_", i), "org_a", holds)
	}
	eventtest.Given(t, s, role.Kind, id, "", nil, full)
	membertest.User(t, s, "usr_more", "org_a", nil)
	_, err = give(t, s, "usr_more", id)
	eventtest.Refused(t, err, errs.FailedPrecondition, "ROLE_HAS_TOO_MANY_HOLDERS")
	_, err = group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s), event.IfMatch{}, []string{id})
	eventtest.Refused(t, err, errs.FailedPrecondition, "ROLE_HAS_TOO_MANY_HOLDERS")
	must(t, change(t, s, "org_a", owner, id, "org.read")) // all of them
	may(t, s, "usr_a", "org_a", access.OrgRead)
	may(t, s, "usr_998", "org_a", access.OrgRead)
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

// Between the look at who holds a role and the command that changes it, somebody gets it.
func TestWhoGetsARoleWhileItChangesHasItAsItIsThen(t *testing.T) {
	for name, gets := range map[string]func(t *testing.T, s event.Store, id, userID string){
		"directly": func(t *testing.T, s event.Store, id, userID string) {
			_, err := give(t, s, userID, id)
			must(t, err)
		},
		"by a group": func(t *testing.T, s event.Store, id, userID string) {
			_, err := group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s, userID), event.IfMatch{},
				[]string{id})
			must(t, err)
		},
		"by a group that somebody joins later": func(t *testing.T, s event.Store, id, userID string) {
			_, err := group.SetRoles(t.Context(), s, in(t, "org_a", owner), newGroup(t, s), event.IfMatch{}, []string{id})
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			id := add(t, s, "org_a", "r", "user.read")
			_, err := give(t, s, "usr_a", id)
			must(t, err)
			n := 0
			meanwhile := &before{Store: s, happens: func() {
				if n++; n == 2 {
					membertest.User(t, s, "usr_m", "org_a", nil)
					gets(t, s, id, "usr_m")
				}
			}}
			_, err = customrole.Change(t.Context(), meanwhile, in(t, "org_a", owner), id, event.IfMatch{},
				role.New{Name: "r", Permissions: []string{"org.read"}})
			must(t, err)
			if n < 3 {
				t.Fatalf("%d commands", n)
			}
			may(t, s, "usr_a", "org_a", access.OrgRead)
			given, _, err := group.Kind.List(t.Context(), s, event.Query{Group: group.GivingRole(id), Limit: 10})
			must(t, err)
			for _, g := range given {
				if !slices.Equal(g.Data.Roles, []access.Role{custom(id, access.OrgRead)}) {
					t.Errorf("a group gives %v", g.Data.Roles)
				}
			}
			if u := eventtest.State(t, s, user.Kind, "usr_m"); u.Data.HasRole("org_a", id) {
				may(t, s, "usr_m", "org_a", access.OrgRead)
			}
		})
	}
}

// On several nodes, roles are changed and given at once: in the end everybody holds what the role says, and nothing
// differs from the log.
func TestRolesChangeOnSeveralNodes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, model.Kinds...)
		all := []*store.Store{nodes.Open(t)}
		if db.Engine == testdb.Postgres {
			all = append(all, nodes.Open(t))
		}
		given(t, all[0])
		id := add(t, all[0], "org_a", "r", "user.read")
		g := newGroup(t, all[0])
		var work sync.WaitGroup
		for i := range 12 {
			membertest.User(t, all[0], fmt.Sprint("usr_", i), "org_a", nil)
			work.Go(func() {
				s := all[i%len(all)]
				again(t, func() error {
					if i%2 == 0 {
						_, err := give(t, s, fmt.Sprint("usr_", i), id)
						return err
					}
					_, err := group.AddMember(t.Context(), s, in(t, "org_a", owner), g, fmt.Sprint("usr_", i),
						event.IfMatch{})
					return err
				})
			})
		}
		work.Go(func() {
			again(t, func() error {
				_, err := group.SetRoles(t.Context(), all[0], in(t, "org_a", owner), g, event.IfMatch{}, []string{id})
				return err
			})
		})
		for i, permissions := range [][]string{{"user.read", "org.read"}, {"org.read"}, {"org.read", "app.read"}} {
			work.Go(func() {
				again(t, func() error { return change(t, all[i%len(all)], "org_a", owner, id, permissions...) })
			})
		}
		work.Wait()
		must(t, change(t, all[len(all)-1], "org_a", owner, id, "event.read"))
		for i := range 12 {
			u, err := user.Kind.Read(t.Context(), all[0], fmt.Sprint("usr_", i))
			must(t, err)
			if got := u.Data.Memberships["org_a"]; !slices.Equal(got, []access.Role{custom(id, access.EventRead)}) {
				t.Errorf("%s holds %v", u.ID, got)
			}
		}
		report, err := all[0].RebuildCheck(t.Context())
		must(t, err)
		if len(report.Differences) > 0 {
			t.Errorf("different: %q", report.Differences)
		}
	})
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
