package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

// CustomPrefix begins the identifiers of custom roles.
const CustomPrefix = "role"

// MaxPermissions is how many permissions a request for a custom role can name.
const MaxPermissions = 100

// Custom is a custom role: its identifier, and the permissions that it has at this moment. Wherever a role is held or
// recorded, its permissions stand beside its identifier (docs/decisions/0079). So nobody has to look for them, and what
// is recorded does not change with the role.
func Custom(id string, permissions []Permission) Role {
	return Role(id + ":" + join(slices.Compact(slices.Sorted(slices.Values(permissions))), ","))
}

func join(permissions []Permission, separator string) string {
	names := make([]string, len(permissions))
	for i, p := range permissions {
		names[i] = string(p)
	}
	return strings.Join(names, separator)
}

// IsCustom tells whether a role, or the name of one, is that of a custom role.
func (r Role) IsCustom() bool { return strings.HasPrefix(string(r), CustomPrefix+"_") }

// Name is what a role is called in requests and answers: the identifier of a custom one.
func (r Role) Name() string {
	if !r.IsCustom() {
		return string(r)
	}
	name, _, _ := strings.Cut(string(r), ":")
	return name
}

// Names are the names of roles, sorted, each once.
func Names(roles []Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name()
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Named finds the role with a name.
func Named(roles []Role, name string) (Role, bool) {
	i := slices.IndexFunc(roles, func(r Role) bool { return r.Name() == name })
	if i < 0 {
		return "", false
	}
	return roles[i], true
}

// Replaced gives roles in which a custom role is as it is now: the one with the same name becomes it, or is gone if it
// has no permissions. Nothing is altered; changed is false where the roles have no such role.
func Replaced(roles []Role, now Role) (out []Role, changed bool) {
	name := now.Name()
	if _, has := Named(roles, name); !has {
		return roles, false
	}
	for _, r := range roles {
		switch {
		case r.Name() != name:
			out = append(out, r)
		case len(now.listed()) > 0:
			out = append(out, now)
		}
	}
	slices.Sort(out)
	return out, true
}

// listed are the permissions that stand beside the identifier of a custom role.
func (r Role) listed() string {
	_, list, _ := strings.Cut(string(r), ":")
	return list
}

// Only is what is left of a role with no other permissions than these: the role itself, a custom role with some of
// its permissions, or false.
func (r Role) Only(permissions []Permission) (Role, bool) {
	var left []Permission
	for name := range strings.SplitSeq(r.listed(), ",") {
		if slices.Contains(permissions, Permission(name)) {
			left = append(left, Permission(name))
		}
	}
	return Custom(r.Name(), left), len(left) > 0
}

// permissions are those that the role brings in a scope. A custom role of an organization can hold no others, whatever
// was recorded.
func (r Role) permissions(scope string) (all []Permission) {
	if !r.IsCustom() {
		return rolesIn(scope)[r]
	}
	for name := range strings.SplitSeq(r.listed(), ",") {
		if r.brings(Permission(name), scope) {
			all = append(all, Permission(name))
		}
	}
	return all
}

// brings tells whether a role that is held in a scope brings a permission.
func (r Role) brings(p Permission, scope string) bool {
	if !r.IsCustom() {
		return slices.Contains(rolesIn(scope)[r], p)
	}
	if !slices.Contains(permissionsIn(scope), p) {
		return false
	}
	for name := range strings.SplitSeq(r.listed(), ",") {
		if name == string(p) {
			return true
		}
	}
	return false
}

// RolesFrom are the fixed roles of organizations that bring no other permissions than these, sorted.
func RolesFrom(permissions []Permission) []Role {
	return RolesWithin([]Role{Custom(CustomPrefix+"_", permissions)})
}

// orgPermissions are those that roles of organizations bring, sorted.
var orgPermissions = slices.Compact(slices.Sorted(func(yield func(Permission) bool) {
	for permissions := range maps.Values(orgRoles) {
		for _, p := range permissions {
			if !yield(p) {
				return
			}
		}
	}
}))

// allPermissions are all there are, sorted.
var allPermissions = slices.Sorted(slices.Values(installationRoles[IAMOwner]))

// permissionsIn are those that a custom role can hold in a scope: one of the installation any, one of an organization
// those of organizations only.
func permissionsIn(scope string) []Permission {
	if scope == Installation {
		return allPermissions
	}
	return orgPermissions
}

// OfOrganizations tells whether custom roles of organizations can hold a permission.
func OfOrganizations(p Permission) bool { return slices.Contains(orgPermissions, p) }

// together are permissions that a role has only with others: whoever says where events are sent reads them, and whom
// they are about.
var together = map[Permission][]Permission{WebhookWrite: {EventRead, UserRead}}

// PermissionViolations lists what is wrong with the permissions of a custom role in a scope.
func PermissionViolations(scope string, names []string) (wrong errs.Violations) {
	known, where := permissionsIn(scope), "organizations"
	if scope == Installation {
		where = "this API"
	}
	switch {
	case len(names) == 0:
		wrong.Add("permissions", errs.Plain("must have at least one permission"))
	case len(names) > MaxPermissions:
		wrong.Add("permissions", errs.Plain(fmt.Sprintf("must have at most %d elements", MaxPermissions)))
		return wrong
	}
	for i, name := range names {
		field := fmt.Sprintf("permissions[%d]", i)
		if !slices.Contains(known, Permission(name)) {
			hint := "" // said once is enough
			if len(wrong) == 0 {
				hint = ": use one of " + join(known, ", ")
			}
			wrong.Add(field, errs.Plain(fmt.Sprintf("%q is not a permission of %s%s", clip(name), where, hint)))
			continue
		}
		for _, p := range together[Permission(name)] {
			if !slices.Contains(names, string(p)) {
				wrong.Add(field, errs.Plain(name+" needs "+string(p)+" in the same role: add it"))
				break
			}
		}
	}
	return wrong
}

// GivenViolations is RoleViolations where custom roles can be given, too, by their identifiers. Whether there is such a
// role is for the command to find out.
func GivenViolations(scope string, names []string) []errs.Violation {
	return roleViolations(scope, names, func(name string) bool {
		const idLength = len(CustomPrefix) + 1 + 32
		return Role(name).IsCustom() && len(name) == idLength &&
			strings.Trim(name[len(CustomPrefix)+1:], "0123456789abcdef") == ""
	})
}
