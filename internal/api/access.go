package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const mostOrganizations = 1000 // organizations that are told

// Access implements AccessService.
type Access struct {
	Store event.Reader
	Clock func() time.Time
	// DefaultOrg is the identifier of the default organization.
	DefaultOrg string

	table func() *permissionTable
}

var _ signetv1connect.AccessServiceHandler = Access{}

// NewAccess makes the service. It reads the definition of the API when it is first asked.
func NewAccess(r event.Reader, clock func() time.Time, defaultOrg string) Access {
	return Access{Store: r, Clock: clock, DefaultOrg: defaultOrg, table: sync.OnceValue(readPermissionTable)}
}

// GetMyAccess tells what the caller may do.
func (s Access) GetMyAccess(ctx context.Context,
	r *signetv1.GetMyAccessRequest) (*signetv1.GetMyAccessResponse, error) {
	caller := call.From(ctx).Caller
	out := &signetv1.GetMyAccessResponse{
		InstallationPermissions: s.held(caller, access.Installation),
		InstallationRoles:       access.Names(caller.Memberships[access.Installation]),
		LimitedToScopes:         caller.Scopes != nil,
		Scopes:                  access.ScopesGiven(caller.Scopes).Names(),
		Session:                 caller.TokenKind == string(secret.Session),
	}
	ids, more := organizationsOf(caller)
	out.More = more
	if len(out.InstallationRoles) > 0 || slices.Contains(ids, s.DefaultOrg) {
		out.DefaultOrgId = s.DefaultOrg
	}
	found, err := org.OwningAll(ctx, s.Store, caller, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		o := found[id]
		if o == nil {
			continue
		}
		shown, err := s.show(caller, o)
		if err != nil {
			return nil, err
		}
		out.Organizations = append(out.Organizations, shown)
	}
	if r.GetUserId() != "" {
		over, atHome, err := s.over(ctx, caller, r.GetUserId())
		if err != nil {
			return nil, err
		}
		out.OverUser, out.OverUserAtHome = proto.Bool(over), proto.Bool(atHome)
	}
	return out, nil
}

// ListRoles tells what roles and permissions allow, with the custom roles that the caller may see.
func (s Access) ListRoles(ctx context.Context, _ *signetv1.ListRolesRequest) (*signetv1.ListRolesResponse, error) {
	out := s.table().render()
	custom, err := role.SeenBy(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	for _, r := range custom {
		shown := &signetv1.Role{Name: r.ID, DisplayName: r.Data.Name, OrgId: r.Org,
			Permissions: permissionNames(r.Data.Permissions)}
		if r.Org == access.Installation {
			shown.Installation, shown.OrgId = true, ""
		}
		out.Roles = append(out.Roles, shown)
	}
	return out, nil
}

// held are the permissions that the caller has by roles in a scope and can do something with. A token that is bound by
// scopes can use a permission if it can call one of the operations that need it.
func (s Access) held(caller *access.Caller, scope string) (names []string) {
	given := access.ScopesGiven(caller.Scopes)
	for _, p := range access.PermissionsOf(scope, caller.Memberships[scope]) {
		if caller.Scopes == nil || s.table().usable(p, given) {
			names = append(names, string(p))
		}
	}
	return names
}

// organizationsOf are the identifiers of the organizations that a caller is in, the own one first. The bound keeps an
// answer small; somebody with so many is better served by lists.
func organizationsOf(caller *access.Caller) (ids []string, more bool) {
	for _, id := range slices.Sorted(maps.Keys(caller.Memberships)) {
		if id != access.Installation && id != caller.OrgID {
			ids = append(ids, id)
		}
	}
	ids = slices.Insert(ids, 0, caller.OrgID)
	if len(ids) > mostOrganizations {
		return ids[:mostOrganizations], true
	}
	return ids, false
}

func (s Access) show(caller *access.Caller, o *event.Object[org.Org]) (*signetv1.OrganizationAccess, error) {
	needs, err := needsOf(org.AdmitsGuest(o, caller, s.Clock()))
	return &signetv1.OrganizationAccess{
		OrgId:       o.ID,
		Name:        o.Data.Name,
		State:       orgStates.number(o.Data.State),
		Permissions: s.held(caller, o.ID),
		Roles:       access.Names(caller.Memberships[o.ID]),
		Needs:       needs,
	}, err
}

// needsOf names what an organization refuses a sign-in for.
func needsOf(refusal error) (signetv1.OrganizationAccess_Need, error) {
	e, ours := errors.AsType[*errs.Error](refusal)
	switch {
	case refusal == nil:
		return signetv1.OrganizationAccess_NEED_UNSPECIFIED, nil
	case ours && e.Reason == access.SecondFactorRequired:
		return signetv1.OrganizationAccess_NEED_SECOND_FACTOR, nil
	case ours && e.Reason == access.RecentProofRequired:
		return signetv1.OrganizationAccess_NEED_RECENT_PROOF, nil
	}
	return 0, refusal
}

// readsUsers are the permissions by which somebody reads users.
var readsUsers = []access.Permission{access.UserRead, access.UserSupport}

// errNobody does not name the organization: the request is not about one.
var errNobody = errs.New(errs.NotFound, user.NotFound,
	"there is no user with this identifier, or you may not see this user")

// over tells whether the caller may give access to a user's account, and take away from it. Errors: errNobody, also
// where the caller may not read the user: nobody learns here who exists.
func (s Access) over(ctx context.Context, caller *access.Caller, id string) (giveAccess, takeAway bool, err error) {
	u, err := user.Kind.Read(ctx, s.Store, id)
	if err != nil {
		return false, false, err
	}
	if u == nil || u.Data.State == user.Removed {
		return false, false, errNobody
	}
	var permit access.Permit
	if id != caller.UserID {
		permit, err = caller.InBy(u.Org, readsUsers)
	}
	if err == nil && id != caller.UserID && u.Org != caller.OrgID {
		err = org.Enter(ctx, s.Store, caller, u.Org, permit.Uses(), s.Clock())
	}
	if e, ours := errors.AsType[*errs.Error](err); ours &&
		(e.Kind == errs.PermissionDenied || e.Kind == errs.NotFound) {
		return false, false, errNobody
	}
	if err != nil {
		return false, false, err
	}
	if permit.Supports() {
		return false, permit.MayTakeAway(u.Data.Memberships, u.Org) == nil, nil
	}
	giveAccess, takeAway = caller.Over(id, u.Data.Memberships, u.Org)
	return giveAccess, takeAway, nil
}

func byName[T interface{ GetName() string }](a, b T) int {
	return cmp.Compare(a.GetName(), b.GetName())
}
