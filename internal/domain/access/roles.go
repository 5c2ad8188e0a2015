// Package access decides who may do what: roles, the permissions in them, and the proof that a check was made.
//
// A permission holds in a scope: one organization, or the installation, which means every organization. The roles of a
// user (Memberships) are part of the user's state, so one query at the start of a request is enough.
//
// Operations do not check permissions themselves. They take a Permit, and only Caller.In returns one: an operation
// without the check does not compile.
package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Permission is the right to one class of operations.
type Permission string

// The permissions. The proto names one for every RPC that needs one.
const (
	OrgSetup    Permission = "org.setup"
	OrgRead     Permission = "org.read"
	OrgWrite    Permission = "org.write"
	MemberRead  Permission = "member.read"
	MemberWrite Permission = "member.write"
	DomainRead  Permission = "domain.read"
	DomainWrite Permission = "domain.write"
	// taking a verified domain from an organization is for itself to say, and for the owners of everything
	DomainRelease   Permission = "domain.release"
	UserRead        Permission = "user.read"
	UserWrite       Permission = "user.write"
	CredentialWrite Permission = "user.credential.write"
	IDPRead         Permission = "idp.read"
	IDPWrite        Permission = "idp.write"
	AppRead         Permission = "app.read"
	AppWrite        Permission = "app.write"
	WebhookRead     Permission = "webhook.read"
	WebhookWrite    Permission = "webhook.write"
	PolicyRead      Permission = "policy.read"
	PolicyWrite     Permission = "policy.write"
	// what an application may do here is for the whole installation to say
	APIAccessWrite Permission = "app.api_access.write"
	AllOrgsWrite   Permission = "app.all_organizations.write"
	SystemRead     Permission = "installation.read"
	SystemWrite    Permission = "installation.write"
	SigningRead    Permission = "signing.read"
	SigningWrite   Permission = "signing.write"
	EventRead      Permission = "event.read"
	GroupRead      Permission = "group.read"
	// groups and who is in them; the roles that a group gives take the permission for those roles
	GroupWrite   Permission = "group.write"
	ProjectRead  Permission = "project.read"
	ProjectWrite Permission = "project.write"
	// giving the roles of applications to users and groups, and projects to organizations
	AppRoleWrite    Permission = "project.role.write"
	InvitationRead  Permission = "invitation.read"
	InvitationWrite Permission = "invitation.write"
	MetadataRead    Permission = "metadata.read"
	MetadataWrite   Permission = "metadata.write"

	// These open a part of what others open, see Permit.Uses: the sign-ins of people whom the caller may end sessions
	// of; events without what is personal in them, members by name, and the policy; finding people of all
	// organizations, and what gives nobody access to an account.
	SignInRead  Permission = "sign_in.read"
	AuditRead   Permission = "audit.read"
	UserSupport Permission = "user.support"
)

// Role is a set of permissions with a name.
type Role string

// The roles. Those that start with IAM hold in the installation, the others in one organization.
const (
	IAMOwner           Role = "IAM_OWNER"
	IAMOwnerViewer     Role = "IAM_OWNER_VIEWER"
	IAMOrgManager      Role = "IAM_ORG_MANAGER"
	IAMSupport         Role = "IAM_SUPPORT"
	OrgOwner           Role = "ORG_OWNER"
	OrgOwnerViewer     Role = "ORG_OWNER_VIEWER"
	OrgUserManager     Role = "ORG_USER_MANAGER"
	OrgSettingsManager Role = "ORG_SETTINGS_MANAGER"
	OrgAuditor         Role = "ORG_AUDITOR"
)

var (
	orgReads = []Permission{OrgRead, MemberRead, DomainRead, UserRead, IDPRead, AppRead, WebhookRead,
		PolicyRead, EventRead,
		GroupRead, ProjectRead, InvitationRead, MetadataRead, SignInRead, AuditRead}
	orgWrites = []Permission{OrgWrite, MemberWrite, DomainWrite, DomainRelease, UserWrite, CredentialWrite, IDPWrite,
		AppWrite, WebhookWrite, PolicyWrite,
		GroupWrite, ProjectWrite, AppRoleWrite, InvitationWrite, MetadataWrite}
)

var installationRoles = map[Role][]Permission{
	IAMOwner: slices.Concat([]Permission{OrgSetup, SystemRead, SystemWrite, SigningRead, SigningWrite,
		APIAccessWrite, AllOrgsWrite, UserSupport}, orgReads, orgWrites),
	IAMOwnerViewer: slices.Concat([]Permission{SystemRead, SigningRead}, orgReads),
	IAMOrgManager:  {OrgSetup, OrgRead, OrgWrite, MemberRead, MemberWrite, DomainRead, DomainWrite},
	IAMSupport:     {OrgRead, UserSupport},
}

var orgRoles = map[Role][]Permission{
	OrgOwner:       slices.Concat(orgReads, orgWrites),
	OrgOwnerViewer: orgReads,
	OrgUserManager: {UserRead, UserWrite, CredentialWrite, GroupRead, GroupWrite, InvitationRead, InvitationWrite,
		SignInRead},
	OrgSettingsManager: {IDPRead, IDPWrite, DomainRead, DomainWrite, DomainRelease, AppRead, AppWrite,
		ProjectRead, ProjectWrite},
	OrgAuditor: {AuditRead},
}

// helperVersion is the version of facts from which on nodes know the roles of helpers. To a node of before they would
// be worth nothing: anybody could give access to the account of somebody who holds one.
const helperVersion = 6

// RolesSince is the version of facts that a node has to know for a fact that gives these roles.
func RolesSince(roles []Role) int {
	if slices.ContainsFunc(roles, func(r Role) bool { return r == IAMSupport || r == OrgAuditor }) {
		return helperVersion
	}
	return 0
}

// RoleViolations lists the names that are no roles in a scope, an organization (also one without a name) or
// Installation, as what is wrong with a field roles. It stops where nobody would be shown more.
func RoleViolations(scope string, names []string) []errs.Violation {
	return roleViolations(scope, names, func(string) bool { return false })
}

func roleViolations(scope string, names []string, also func(name string) bool) []errs.Violation {
	known, where := orgRoles, "organizations"
	if scope == Installation {
		known, where = installationRoles, "the installation"
	}
	var wrong []errs.Violation
	for i, name := range names {
		if _, ok := known[Role(name)]; ok || also(name) {
			continue
		}
		if len(wrong) == errs.MaxViolations {
			break
		}
		hint := "" // said once is enough
		if len(wrong) == 0 {
			hint = ": use one of " + namesOf(known)
		}
		wrong = append(wrong, errs.Violation{Field: fmt.Sprintf("roles[%d]", i),
			Message: fmt.Sprintf("%q is not a role of %s%s", clip(name), where, hint)})
	}
	return wrong
}

func namesOf(roles map[Role][]Permission) string {
	var names []string
	for _, r := range slices.Sorted(maps.Keys(roles)) {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// clip keeps an answer from growing with the request.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// IsPermission tells whether some role holds p, so that a typing error in the proto is found by a test.
func IsPermission(p Permission) bool { return slices.Contains(installationRoles[IAMOwner], p) }

// Permissions are all there are: an owner of the installation holds every one.
func Permissions() []Permission { return slices.Clone(installationRoles[IAMOwner]) }

// RolesOf are the roles that exist in a scope, sorted: Installation, or any organization, for which an empty scope
// stands, too.
func RolesOf(scope string) []Role { return slices.Sorted(maps.Keys(rolesIn(scope))) }

// PermissionsOf are the permissions that roles bring in their scope, sorted.
func PermissionsOf(scope string, roles []Role) (all []Permission) {
	for _, r := range roles {
		all = append(all, r.permissions(scope)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// RolesWithin are the roles of organizations that bring nothing beyond what these roles bring, sorted.
func RolesWithin(roles []Role) (within []Role) {
	held := Memberships{"": roles}
	for _, r := range RolesOf("") {
		if held.Cover(Memberships{"": {r}}) {
			within = append(within, r)
		}
	}
	return within
}

// rolesIn are the roles that count in a scope.
func rolesIn(scope string) map[Role][]Permission {
	if scope == Installation {
		return installationRoles
	}
	return orgRoles
}

// Installation is the scope that covers every organization.
const Installation = "installation"

// Memberships are the roles a user holds, by scope: an organization's id or Installation. What was given to others is
// never altered.
type Memberships map[string][]Role

// Hold tells whether they hold p in the organization (or Installation).
func (m Memberships) Hold(p Permission, scope string) bool {
	for _, r := range m[Installation] {
		if r.brings(p, Installation) {
			return true
		}
	}
	if scope == Installation {
		return false
	}
	for _, r := range m[scope] {
		if r.brings(p, scope) {
			return true
		}
	}
	return false
}

// HoldAnywhere tells whether a permission is held in the installation or in any organization at all.
func (m Memberships) HoldAnywhere(p Permission) bool {
	for scope := range m {
		if m.Hold(p, scope) {
			return true
		}
	}
	return false
}

// Cover tells whether they hold every permission that others hold, in every scope.
func (m Memberships) Cover(others Memberships) bool {
	for scope, roles := range others {
		for _, r := range roles {
			// Mostly it is the same role, and nobody has to go through what it brings.
			if !slices.Contains(m[scope], r) && !r.heldBy(m.Hold, scope) {
				return false
			}
		}
	}
	return true
}

// Equal tells whether they are the same roles in the same scopes.
func (m Memberships) Equal(others Memberships) bool {
	return maps.EqualFunc(m, others, func(x, y []Role) bool { return slices.Equal(x, y) })
}

// At are those of the roles that count when somebody's own organization takes something away from them: the ones there
// and in the installation.
func (m Memberships) At(home string) Memberships {
	if !m.Elsewhere(home) {
		return m
	}
	out := Memberships{}
	for scope, roles := range m {
		if scope == home || scope == Installation {
			out[scope] = roles
		}
	}
	return out
}

// Elsewhere tells whether there are roles in organizations other than home.
func (m Memberships) Elsewhere(home string) bool {
	for scope, roles := range m {
		if len(roles) > 0 && scope != home && scope != Installation {
			return true
		}
	}
	return false
}

// someEmpty tells whether there is a scope without roles in it, as there is of a member who has none.
func (m Memberships) someEmpty() bool {
	for _, roles := range m {
		if len(roles) == 0 {
			return true
		}
	}
	return false
}

// Hosts are the organizations other than home in which there are roles, sorted.
func (m Memberships) Hosts(home string) (ids []string) {
	for scope, roles := range m {
		if len(roles) > 0 && scope != home && scope != Installation {
			ids = append(ids, scope)
		}
	}
	slices.Sort(ids)
	return ids
}

// Worth is what somebody must hold to give others access to an account with these roles, or to answer for a way into
// it. Roles in other organizations are worth as much as owning the account's own one: an organization that gives roles
// to an account from elsewhere trusts the owners of the account's organization.
func (m Memberships) Worth(home string) Memberships {
	if !m.Elsewhere(home) {
		return m
	}
	out := m.At(home)
	return out.With(home, append(slices.Clone(out[home]), OrgOwner))
}

// heldBy tells whether somebody holds every permission in these roles.
func (m Memberships) heldBy(hold func(p Permission, scope string) bool) bool {
	for scope, roles := range m {
		for _, r := range roles {
			if !r.heldBy(hold, scope) {
				return false
			}
		}
	}
	return true
}

// heldBy tells whether somebody holds every permission that the role brings in a scope.
func (r Role) heldBy(hold func(p Permission, scope string) bool, scope string) bool {
	for _, p := range r.permissions(scope) {
		if !hold(p, scope) {
			return false
		}
	}
	return true
}

// With returns a copy in which the scope has exactly these roles, each once and sorted; none removes the scope.
func (m Memberships) With(scope string, roles []Role) Memberships {
	out := Memberships{}
	for s, r := range m {
		out[s] = r
	}
	delete(out, scope)
	if len(roles) > 0 {
		sorted := slices.Clone(roles)
		slices.Sort(sorted)
		out[scope] = slices.Compact(sorted)
	}
	return out
}

// Reasons of this package.
const (
	PermissionDenied errs.Reason = "PERMISSION_DENIED"
	TargetHoldsMore  errs.Reason = "TARGET_HOLDS_MORE"
	Unauthenticated  errs.Reason = "UNAUTHENTICATED"

	// Words of OAuth in upper case, about tokens that are bound to a key.
	InvalidProof errs.Reason = "INVALID_DPOP_PROOF"
	NonceNeeded  errs.Reason = "USE_DPOP_NONCE"

	TokenBound    errs.Reason = "TOKEN_BOUND_TO_KEY"
	TokenNotBound errs.Reason = "TOKEN_NOT_BOUND_TO_KEY"

	PasswordChangeRequired errs.Reason = "PASSWORD_CHANGE_REQUIRED"
	SecondFactorRequired   errs.Reason = "SECOND_FACTOR_REQUIRED"

	RecentProofRequired errs.Reason = "RECENT_PROOF_REQUIRED"

	ScopeRequired errs.Reason = "SCOPE_REQUIRED"
)

// What a session is refused with that may not do everything yet.
var (
	ErrPasswordChange = errs.New(errs.PermissionDenied, PasswordChangeRequired,
		"the password must be changed first: until then this session can only change it, or be ended")
	ErrSecondFactor = errs.New(errs.PermissionDenied, SecondFactorRequired,
		"this session needs a second factor: prove one, or add one if you have none. Until then it can do nothing else but end")
)

// These errors refuse a request without a valid credential. The client can see for itself whether the request has a
// token, and whether that has the form of one. The answer does not tell whether the token is unknown, expired or
// revoked.
var (
	ErrNoToken = errs.New(errs.Unauthenticated, Unauthenticated,
		"the request has no token: send one in the header authorization: Bearer <token>")
	ErrNotAToken = errs.New(errs.Unauthenticated, Unauthenticated,
		"this is not a token of Signet: send one header authorization: Bearer <token> with a token that was copied whole")
	ErrUnauthenticated = errs.New(errs.Unauthenticated, Unauthenticated,
		"the token is not valid: it has expired or was revoked, or belongs to another installation. Sign in again, or use a new token")
)

// An access token can be bound to a key (DPoP, RFC 9449). Then it counts only with a proof of the key.
var (
	ErrBound = errs.New(errs.Unauthenticated, TokenBound,
		"this access token is bound to a key: send it as authorization: DPoP <token>, with a proof in the header DPoP")
	ErrNotBound = errs.New(errs.Unauthenticated, TokenNotBound,
		"this token is bound to no key: send it as authorization: Bearer <token>")
)

// ErrDeniedInstallation is ErrDenied for what concerns the whole installation, or all organizations: it says whom to
// ask.
var ErrDeniedInstallation = errs.New(errs.PermissionDenied, PermissionDenied,
	"you do not have the permission for this in the installation: ask one of its owners (IAM_OWNER) for a role with it")

// ErrDenied is the only answer to a caller without the permission, whether or not the target exists.
var ErrDenied = errs.New(errs.PermissionDenied, PermissionDenied,
	"you do not have the permission for this in that organization: ask one of its owners for a role with it")

// ErrTargetHoldsMore protects users from administrators who hold less than they do, and from applications whose scopes
// allow less.
var ErrTargetHoldsMore = errs.New(errs.PermissionDenied, TargetHoldsMore,
	"this user has permissions that you do not have, or that the scopes of your access token do not cover: ask somebody who has all of them")

// ErrNotForSupport is ErrTargetHoldsMore for who supports people.
var ErrNotForSupport = errs.New(errs.PermissionDenied, TargetHoldsMore,
	"this user has a role in the installation: support cannot do this, ask an owner of the installation (IAM_OWNER)")

// ErrHasRolesElsewhere is ErrTargetHoldsMore where an owner of the user's organization may.
var ErrHasRolesElsewhere = errs.New(errs.PermissionDenied, TargetHoldsMore,
	"this user has roles in other organizations: only an owner (ORG_OWNER) of the user's own organization may do this, or an IAM_OWNER")

// ErrMoreScopes keeps applications from widening what they, or others that they could act as, may do.
var ErrMoreScopes = errs.New(errs.PermissionDenied, ScopeRequired,
	"an application cannot allow scopes that it does not have, nor take over an application that may request them: ask an owner of the installation")

// ErrNotForApplications is the answer to an access token where no scope helps.
var ErrNotForApplications = errs.New(errs.PermissionDenied, ScopeRequired,
	"applications cannot do this with any scope: the person must do it in a session")

// ErrScopes is the answer to an access token that lacks these scopes.
func ErrScopes(missing APIScopes) error {
	names := missing.Names()
	text, them := "this needs the scope "+names[0], "it"
	if len(names) > 1 {
		text, them = "this needs the scopes "+strings.Join(names[:len(names)-1],
			", ")+" and "+names[len(names)-1], "them"
	}
	return errs.New(errs.PermissionDenied, ScopeRequired,
		text+": request an access token with "+them+"; for an application, an owner of the installation allows "+them+
			" first (SetApplicationAPIAccess)")
}
