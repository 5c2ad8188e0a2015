package access_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// matrix reads testdata/roles.txt: role -> scope word, role -> permission -> may.
func matrix(t *testing.T) (scopes map[access.Role]string, may map[access.Role]map[access.Permission]bool, permissions []access.Permission) {
	t.Helper()
	text, err := os.ReadFile("testdata/roles.txt")
	if err != nil {
		t.Fatal(err)
	}
	scopes, may = map[access.Role]string{}, map[access.Role]map[access.Permission]bool{}
	var roles []access.Role
	for line := range strings.Lines(string(text)) {
		cells := strings.Fields(line)
		if len(cells) == 0 || cells[0] == "#" {
			continue
		}
		if cells[0] == "permission" {
			for _, c := range cells[1:] {
				roles = append(roles, access.Role(c))
				may[access.Role(c)] = map[access.Permission]bool{}
			}
			continue
		}
		if len(cells) != len(roles)+1 {
			t.Fatalf("%d cells in %q", len(cells), line)
		}
		if cells[0] != "scope" {
			permissions = append(permissions, access.Permission(cells[0]))
		}
		for i, c := range cells[1:] {
			if cells[0] == "scope" {
				scopes[roles[i]] = c
			} else {
				may[roles[i]][access.Permission(cells[0])] = c == "x"
			}
		}
	}
	return scopes, may, permissions
}

func TestEveryRoleHoldsWhatTheTableSays(t *testing.T) {
	scopes, may, permissions := matrix(t)
	for role, scope := range scopes {
		for _, p := range permissions {
			held := scope
			if scope == "org" {
				held = "org_a"
			}
			m := access.Memberships{held: {role}}
			if got, want := m.Hold(p, "org_a"), may[role][p]; got != want {
				t.Errorf("%s holds %s in the organization: %t, want %t", role, p, got, want)
			}
			if got, want := m.Hold(p, "org_b"), may[role][p] && scope == access.Installation; got != want {
				t.Errorf("%s holds %s in another organization: %t, want %t", role, p, got, want)
			}
			if got, want := m.Hold(p, access.Installation), may[role][p] && scope == access.Installation; got != want {
				t.Errorf("%s holds %s in the installation: %t, want %t", role, p, got, want)
			}
		}
	}
}

func TestTheTableNamesEveryRoleAndEveryPermission(t *testing.T) {
	scopes, _, permissions := matrix(t)
	var all []access.Role
	for role := range scopes {
		all = append(all, role)
	}
	if declared := constants(t, "Role"); !slices.Equal(declared, sortedWords(all)) {
		t.Errorf("declared roles: %q\nin the table: %q", declared, sortedWords(all))
	}
	for role, scope := range scopes {
		for _, at := range []string{access.Installation, "org_a", ""} {
			wrong := access.RoleViolations(at, []string{string(role)})
			if known := len(wrong) == 0; known != ((scope == access.Installation) == (at == access.Installation)) {
				t.Errorf("%s is a role in %q: %t", role, at, known)
			}
		}
	}
	declared := constants(t, "Permission")
	if !slices.Equal(declared, sortedWords(permissions)) {
		t.Errorf("declared permissions: %q\nin the table: %q", declared, sortedWords(permissions))
	}
	for _, p := range permissions {
		if !access.IsPermission(p) {
			t.Errorf("%s is no permission", p)
		}
	}
	for _, p := range []access.Permission{"", "user", "user.reed", "IAM_OWNER"} {
		if access.IsPermission(p) {
			t.Errorf("%q is a permission", p)
		}
	}
}

// constants are the values of the constants of a type in this package.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "roles.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	slices.Sort(values)
	return values
}

func sortedWords[T ~string](words []T) []string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	slices.Sort(out)
	return out
}

func TestARoleCountsOnlyWhereItBelongs(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     access.Memberships
		p     access.Permission
		scope string
		want  bool
	}{
		{"nobody holds nothing", nil, access.UserRead, "org_a", false},
		{"an installation's role in an organization is worth nothing", access.Memberships{"org_a": {access.IAMOwner}},
			access.UserRead, "org_a", false},
		{"an organization's role in the installation is worth nothing",
			access.Memberships{access.Installation: {access.OrgOwner}}, access.UserRead, "org_a", false},
		{"nor is it in the installation itself", access.Memberships{access.Installation: {access.OrgOwner}},
			access.UserRead, access.Installation, false},
		{"an unknown role is worth nothing", access.Memberships{"org_a": {"ORG_EMPEROR"}}, access.UserRead,
			"org_a", false},
		{"an empty scope is no organization", access.Memberships{"org_a": {access.OrgOwner}},
			access.UserRead, "", false},
		{"several roles add up", access.Memberships{"org_a": {access.OrgUserManager, access.OrgSettingsManager}},
			access.IDPWrite, "org_a", true},
		{"roles in a foreign organization count there", access.Memberships{"org_b": {access.OrgUserManager}},
			access.UserWrite, "org_b", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.m.Hold(c.p, c.scope); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCoverWantsEveryPermissionInEveryScope(t *testing.T) {
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	for _, c := range []struct {
		name         string
		mine, theirs access.Memberships
		want         bool
	}{
		{"whoever holds nothing is covered by anybody", nil, nil, true},
		{"equals cover each other", owner, owner, true},
		{"an owner covers a lesser role", owner,
			access.Memberships{"org_a": {access.OrgUserManager, access.OrgSettingsManager}}, true},
		{"a user manager does not cover an owner", access.Memberships{"org_a": {access.OrgUserManager}}, owner, false},
		{"a user manager does not cover a settings manager", access.Memberships{"org_a": {access.OrgUserManager}},
			access.Memberships{"org_a": {access.OrgSettingsManager}}, false},
		{"a user manager does not cover one who may read everything",
			access.Memberships{"org_a": {access.OrgUserManager}},
			access.Memberships{"org_a": {access.OrgOwnerViewer}}, false},
		{"two lesser roles together may cover a third",
			access.Memberships{"org_a": {access.OrgUserManager, access.OrgOwnerViewer}},
			access.Memberships{"org_a": {access.OrgOwnerViewer}}, true},
		{"an owner does not cover a role in another organization", owner,
			access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgUserManager}}, false},
		{"an owner does not cover the installation's viewer", owner,
			access.Memberships{access.Installation: {access.IAMOwnerViewer}}, false},
		{"an owner does not cover the installation's organization manager", owner,
			access.Memberships{access.Installation: {access.IAMOrgManager}}, false},
		{"an organization manager does not cover an owner",
			access.Memberships{access.Installation: {access.IAMOrgManager}}, owner, false},
		{"the installation's owner covers everybody", iam,
			access.Memberships{access.Installation: {access.IAMOwner}, "org_a": {access.OrgOwner},
				"org_b": {access.OrgOwner}}, true},
		{"a role nobody knows is worth nothing, so it is covered", nil,
			access.Memberships{"org_a": {"ORG_EMPEROR"}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.mine.Cover(c.theirs); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWrongRolesAreNamedAllAtOnce(t *testing.T) {
	wrong := access.RoleViolations(access.Installation,
		[]string{"IAM_OWNER", "ORG_OWNER", "", strings.Repeat("x", 1000)})
	if len(wrong) != 3 || wrong[0].Field != "roles[1]" || wrong[1].Field != "roles[2]" || wrong[2].Field != "roles[3]" {
		t.Fatalf("got %v", wrong)
	}
	if want := `"ORG_OWNER" is not a role of the installation: use one of IAM_ORG_MANAGER, IAM_OWNER, IAM_OWNER_VIEWER, IAM_SUPPORT`; wrong[0].Message != want {
		t.Errorf("got %s", wrong[0].Message)
	}
	if len(wrong[2].Message) > 200 {
		t.Errorf("the answer grows with the request: %s", wrong[2].Message)
	}
	if many := access.RoleViolations("org_a", make([]string, 1000)); len(many) != errs.MaxViolations {
		t.Errorf("%d violations", len(many))
	}
}

func TestWithReplacesTheRolesOfOneScope(t *testing.T) {
	before := access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgUserManager}}
	for _, c := range []struct {
		name  string
		scope string
		roles []access.Role
		want  access.Memberships
	}{
		{"others stay", "org_a", []access.Role{access.OrgOwnerViewer},
			access.Memberships{"org_a": {access.OrgOwnerViewer}, "org_b": {access.OrgUserManager}}},
		{"sorted and each once", "org_c", []access.Role{access.OrgUserManager, access.OrgOwner, access.OrgUserManager},
			access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgUserManager},
				"org_c": {access.OrgOwner, access.OrgUserManager}}},
		{"none ends the membership", "org_a", nil, access.Memberships{"org_b": {access.OrgUserManager}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := before.With(c.scope, c.roles); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if len(before) != 2 || before["org_a"][0] != access.OrgOwner {
		t.Errorf("the original changed: %v", before)
	}
}

func TestAPermitReachesOnlyTheScopeItWasGivenFor(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", RequestID: "req_1", OrgID: "org_a",
		Memberships: access.Memberships{"org_a": {access.OrgUserManager}}}
	permit, err := caller.In("org_a", access.UserRead)
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]bool{"org_a": true, "org_b": false, "": false, access.Installation: false} {
		if got := permit.Reaches(owner); got != want {
			t.Errorf("reaches %q: %t", owner, got)
		}
	}
	if permit.Org() != "org_a" {
		t.Errorf("given for %q", permit.Org())
	}
	if got := permit.Origin(); got != (event.Origin{Actor: "usr_a", RequestID: "req_1"}) {
		t.Errorf("origin %+v", got)
	}
	if err := permit.Covers(access.Memberships{"org_a": {access.OrgOwner}}); !errors.Is(err,
		access.ErrTargetHoldsMore) {
		t.Errorf("covers an owner: %v", err)
	}
	if err := permit.Covers(access.Memberships{"org_a": {access.OrgUserManager}}); err != nil {
		t.Errorf("does not cover its equal: %v", err)
	}
}

func TestWithoutThePermissionThereIsNoPermit(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", OrgID: "org_a",
		Memberships: access.Memberships{"org_a": {access.OrgUserManager}}}
	for _, c := range []struct {
		name  string
		scope string
		p     access.Permission
	}{
		{"another permission", "org_a", access.IDPWrite},
		{"another organization", "org_b", access.UserRead},
		{"the installation", access.Installation, access.UserRead},
		{"no organization", "", access.UserRead},
	} {
		t.Run(c.name, func(t *testing.T) {
			permit, err := caller.In(c.scope, c.p)
			if !errors.Is(err, access.ErrDenied) {
				t.Errorf("got %v", err)
			}
			if permit.Reaches(c.scope) || permit.Reaches("org_a") {
				t.Error("the permit of a refusal reaches something")
			}
		})
	}
}

func TestTheZeroPermitProvesNothing(t *testing.T) {
	var zero access.Permit
	if zero.Reaches("") || zero.Reaches("org_a") || zero.Reaches(access.Installation) {
		t.Error("it reaches something")
	}
	if err := zero.Covers(access.Memberships{"org_a": {access.OrgUserManager}}); err == nil {
		t.Error("it covers somebody")
	}
}

func TestAnInstallationRoleWithoutAnOrganizationReachesNothing(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	permit, err := caller.In("", access.UserRead)
	if err == nil && permit.Reaches("") {
		t.Error("objects without an owner are within reach")
	}
}

func TestAPermitThatWasNotMadeForARequestRenewsToItself(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", RequestID: "req_1",
		Memberships: access.Memberships{"org_a": {access.OrgUserManager}}}
	permit, err := caller.In("org_a", access.UserWrite)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := permit.Renew(t.Context())
	if err != nil || !reflect.DeepEqual(renewed, permit) {
		t.Errorf("got %+v, %v", renewed, err)
	}
	if zero, err := (access.Permit{}).Renew(t.Context()); err != nil || zero.Reaches("org_a") {
		t.Errorf("nothing became %+v, %v", zero, err)
	}
}

func TestARenewedPermitIsWhatTheCheckFindsNow(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	first, err := caller.In("org_a", access.UserWrite)
	if err != nil {
		t.Fatal(err)
	}
	permit := first.Renewing(func(context.Context) (access.Permit, error) {
		return caller.In("org_a", access.UserWrite)
	})
	caller.Memberships = access.Memberships{"org_a": {access.OrgUserManager}}
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	if err := permit.Covers(owner); err != nil {
		t.Errorf("before: %v", err)
	}
	if permit, err = permit.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := permit.Covers(owner); !errors.Is(err, access.ErrTargetHoldsMore) {
		t.Errorf("it still covers what the caller no longer holds: %v", err)
	}
	caller.Memberships = nil
	if permit, err = permit.Renew(t.Context()); !errors.Is(err, access.ErrDenied) || permit.Reaches("org_a") {
		t.Errorf("the second renewal: %v", err)
	}
}

func TestWhoSpeaksForTheInstallation(t *testing.T) {
	needs := map[access.Permission]access.APIScopes{access.UserWrite: access.WriteScope | access.ContactsScope}
	for _, c := range []struct {
		name   string
		holds  access.Memberships
		scopes []string
		want   bool
	}{
		{"an owner of everything", access.Memberships{access.Installation: {access.IAMOwner}}, nil, true},
		{"somebody of the organization with any role in the installation",
			access.Memberships{access.Installation: {access.IAMOwnerViewer},
				"org_a": {access.OrgUserManager}}, nil, true},
		{"somebody of the organization who supports people",
			access.Memberships{access.Installation: {access.IAMSupport}, "org_a": {access.OrgOwner}}, nil, false},
		{"somebody of the organization with a custom role in the installation", access.Memberships{
			access.Installation: {access.Custom("role_1", []access.Permission{access.UserRead})},
			"org_a":             {access.OrgOwner}}, nil, false},
		{"somebody with a custom role in the installation that has it", access.Memberships{
			access.Installation: {access.Custom("role_1", []access.Permission{access.UserWrite})},
			"org_a":             {access.OrgOwner}}, nil, true},
		{"somebody of the organization", access.Memberships{"org_a": {access.OrgOwner}}, nil, false},
		{"an owner of another organization",
			access.Memberships{"org_a": {access.OrgUserManager}, "org_b": {access.OrgOwner}}, nil, false},
		{"an application that may do all of it for an owner of everything",
			access.Memberships{access.Installation: {access.IAMOwner}},
			[]string{"signet.write", "signet.contacts"}, true},
		{"an application that may do a part of it", access.Memberships{access.Installation: {access.IAMOwner}},
			[]string{"signet.contacts"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			permit, err := (&access.Caller{Memberships: c.holds, Scopes: c.scopes, Needs: needs}).In("org_a",
				access.UserWrite)
			if err != nil {
				t.Fatal(err)
			}
			if got := permit.ForInstallation(access.UserWrite); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A webhook sends events to an address that somebody chose. Whoever may choose it may read the events and the people in
// them anyway, in the same place.
func TestWhoeverSendsEventsSomewhereMayReadThem(t *testing.T) {
	for _, scope := range []string{"org_a", access.Installation} {
		for _, role := range access.RolesIn(scope) {
			m := access.Memberships{scope: {role}}
			if m.Hold(access.WebhookWrite, scope) &&
				(!m.Hold(access.EventRead, scope) || !m.Hold(access.UserRead, scope)) {
				t.Errorf("%s redirects events that it may not read", role)
			}
		}
	}
}

func TestTheFirstPermissionThatIsHeldCounts(t *testing.T) {
	permissions := []access.Permission{access.UserWrite, access.UserSupport}
	support := access.Memberships{access.Installation: {access.IAMSupport}}
	for _, c := range []struct {
		name  string
		holds access.Memberships
		want  access.Permission // empty: none
	}{
		{"the first", access.Memberships{"org_a": {access.OrgUserManager}}, access.UserWrite},
		{"both", support.With("org_a", []access.Role{access.OrgUserManager}), access.UserWrite},
		{"the first elsewhere", support.With("org_b", []access.Role{access.OrgUserManager}), access.UserSupport},
		{"the second", support, access.UserSupport},
		{"none", access.Memberships{"org_a": {access.OrgAuditor}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			permit, err := (&access.Caller{Memberships: c.holds}).InBy("org_a", permissions)
			if (err == nil) != (c.want != "") || permit.Uses() != c.want || permit.Reaches("org_a") != (err == nil) {
				t.Errorf("uses %q, %v", permit.Uses(), err)
			}
		})
	}
}

// Support covers nobody, and needs not: what it does gives nobody access. But it reaches nobody of the installation.
func TestWhomSupportReaches(t *testing.T) {
	caller := &access.Caller{UserID: "usr_a", Memberships: access.Memberships{access.Installation: {access.IAMSupport},
		"org_b": {access.OrgOwner}}}
	for _, c := range []struct {
		name     string
		uses     access.Permission
		target   access.Memberships
		takeAway bool
	}{
		{"nobody's roles", access.UserSupport, nil, true},
		{"an owner", access.UserSupport, access.Memberships{"org_a": {access.OrgOwner}}, true},
		{"an owner elsewhere", access.UserSupport, access.Memberships{"org_c": {access.OrgOwner}}, true},
		{"somebody else of support", access.UserSupport,
			access.Memberships{access.Installation: {access.IAMSupport}}, false},
		{"the viewer of the installation", access.UserSupport,
			access.Memberships{access.Installation: {access.IAMOwnerViewer}}, false},
		{"by another permission, who holds nothing", access.OrgRead, nil, true},
		{"by another permission, an owner", access.OrgRead, access.Memberships{"org_a": {access.OrgOwner}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			permit, err := caller.In("org_a", c.uses)
			if err != nil {
				t.Fatal(err)
			}
			if err := permit.MayTakeAway(c.target, "org_a"); (err == nil) != c.takeAway {
				t.Errorf("takes away: %v", err)
			}
			for _, userID := range []string{"usr_a", "usr_b"} {
				if err := permit.MayGiveAccess(userID, c.target, "org_a"); c.uses == access.UserSupport && err == nil {
					t.Errorf("gives access to the account of %s", userID)
				}
			}
		})
	}
}
