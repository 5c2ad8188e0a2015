package role

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Reasons of this package.
const (
	NotFound       errs.Reason = "ROLE_NOT_FOUND"
	NameTaken      errs.Reason = "ROLE_NAME_TAKEN"
	TooMany        errs.Reason = "TOO_MANY_ROLES"
	TooManyHolders errs.Reason = "ROLE_HAS_TOO_MANY_HOLDERS"
	HoldsMore      errs.Reason = "ROLE_HOLDS_MORE"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no custom role with this identifier there: list the roles")
	ErrNameTaken = errs.New(errs.AlreadyExists, NameTaken,
		"there is a custom role with this name already: choose another one")
	ErrTooMany = errs.New(errs.FailedPrecondition, TooMany,
		"there are 50 custom roles already: remove one that is no longer needed")
	ErrTooManyHolders = errs.New(errs.FailedPrecondition, TooManyHolders,
		"a custom role has at most 1000 holders: take it from somebody first, or make another role")
	ErrHoldsMore = errs.New(errs.PermissionDenied, HoldsMore,
		"you cannot make or change a role with permissions that you do not have")
)

// Within is a role the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[Role] {
	return event.Target[Role]{Kind: Kind, ID: id, Origin: permit.Origin(), Reach: func(o *event.Object[Role]) error {
		if o == nil || o.Data.State == Removed || !permit.Reaches(o.Org) {
			return ErrNotFound
		}
		return nil
	}}
}

// New is a role to make, or what one becomes.
type New struct {
	Name        string
	Description string
	Permissions []string
}

// Violations lists what is wrong with it in a scope.
func (n New) Violations(scope string) (wrong errs.Violations) {
	wrong.Add("name", syntax.Name(n.Name))
	wrong.Add("description", syntax.Text(n.Description, syntax.MaxDescription))
	return append(wrong, access.PermissionViolations(scope, n.Permissions)...)
}

// Held are its permissions, sorted, each once.
func (n New) Held() []access.Permission {
	held := make([]access.Permission, len(n.Permissions))
	for i, name := range n.Permissions {
		held[i] = access.Permission(name)
	}
	slices.Sort(held)
	return slices.Compact(held)
}

// MayHave refuses who does not hold all permissions of a role. Errors: ErrHoldsMore.
func MayHave(permit access.Permit, permissions []access.Permission) error {
	role := access.Custom(access.CustomPrefix+"_", permissions)
	if permit.Covers(access.Memberships{permit.Org(): {role}}) != nil {
		return ErrHoldsMore
	}
	return nil
}

// Created is what a creation answers.
type Created struct {
	ID      string
	Details event.Details
}

// Add makes a role in the permit's scope that nobody holds. Errors: InvalidArgument with the violations of n;
// ErrHoldsMore; org.ErrNotFound; ErrNameTaken; ErrTooMany.
func Add(ctx context.Context, s event.Store, permit access.Permit, n New, once event.Once) (Created, error) {
	scope, key := permit.Org(), syntax.NameKey(n.Name)
	if err := n.Violations(scope).Err(); err != nil {
		return Created{}, err
	}
	if !permit.Reaches(scope) { // the zero permit
		return Created{}, access.ErrDenied
	}
	if err := MayHave(permit, n.Held()); err != nil {
		return Created{}, err
	}
	created := Created{ID: Kind.NewID()}
	id := created.ID
	c := event.Command{Origin: permit.Origin(), Create: []event.Ref{Kind.Ref(id)},
		Claims: []event.Claim{NameClaim(scope, key)}}
	for place := range Max {
		c.Claims = append(c.Claims, placeClaim(scope, place+1))
	}
	if scope != access.Installation {
		c.Read = []event.Ref{org.Kind.Ref(scope)}
	}
	c.Decide = func(tx *event.Tx) error {
		if scope != access.Installation {
			if _, err := org.In(tx, scope); err != nil {
				return err
			}
		}
		if err := Free(tx, scope, key, ""); err != nil {
			return err
		}
		place, err := freePlace(tx, scope)
		if err != nil {
			return err
		}
		o, err := Kind.Create(tx, id, scope, Added{Name: n.Name, NameKey: key, Description: n.Description,
			Permissions: n.Held(), Place: place})
		if err != nil {
			return err
		}
		created = Created{ID: id, Details: o.Details()}
		return nil
	}
	if err := s.Do(ctx, once.Wrap(c, &created)); err != nil {
		return Created{}, err
	}
	return created, nil
}

// placeClaim is the claim of one of the places that the roles of a scope have.
func placeClaim(scope string, place int) event.Claim {
	return event.Claim{Space: "role_place/" + scope, Key: strconv.Itoa(place)}
}

func freePlace(tx *event.Tx, scope string) (int, error) {
	for place := 1; place <= Max; place++ {
		if holder, err := tx.Holder(placeClaim(scope, place)); err != nil || holder == "" {
			return place, err
		}
	}
	return 0, ErrTooMany
}

// Free refuses a name that another role of the scope has.
func Free(tx *event.Tx, scope, key, id string) error {
	holder, err := tx.Holder(NameClaim(scope, key))
	if err == nil && holder != "" && holder != id {
		err = ErrNameTaken
	}
	return err
}

// Get reads a role of the permit's scope. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Role], error) {
	return Within(permit, id).Read(ctx, r)
}

// List reads a page of the roles of the permit's scope, the oldest first.
func List(ctx context.Context, r event.Reader, permit access.Permit, after event.Cursor,
	limit int) ([]*event.Object[Role], *event.Cursor, error) {
	if !permit.Reaches(permit.Org()) { // would be a query over all organizations
		return nil, nil, access.ErrDenied
	}
	return Kind.List(ctx, r, event.Query{Org: permit.Org(), After: after, Limit: limit})
}

// End ends a role whose organization is gone: nobody holds anything there any more. The command declared it for
// writing.
func End(_ *event.Tx, o *event.Object[Role]) error {
	if o.Data.State == Removed {
		return nil
	}
	return o.Append(WasRemoved{})
}

// maxSeen is how many roles of other organizations a caller who has them is shown.
const maxSeen = 100

// SeenBy reads the custom roles that a caller may see without naming a place: those that the caller has, those of the
// own organization and those of the installation, if the caller may read the members there.
func SeenBy(ctx context.Context, r event.Reader, caller *access.Caller) (all []*event.Object[Role], err error) {
	seen := map[string]bool{}
	for scope, read := range map[string]access.Permission{access.Installation: access.SystemRead,
		caller.OrgID: access.MemberRead} {
		permit, err := caller.In(scope, read)
		if err != nil || !permit.Holds(read, scope) { // Holds looks at the scopes of the token, too
			continue
		}
		found, _, err := List(ctx, r, permit, event.Cursor{}, Max)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			all, seen[o.ID] = append(all, o), true
		}
	}
	var refs []event.Ref
	for _, roles := range caller.Memberships {
		for _, held := range roles {
			if held.IsCustom() && !seen[held.Name()] {
				refs = append(refs, Kind.Ref(held.Name()))
			}
		}
	}
	slices.SortFunc(refs, func(a, b event.Ref) int { return strings.Compare(a.ID, b.ID) })
	records, err := r.Records(ctx, refs[:min(len(refs), maxSeen)])
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		o, err := Kind.Open(rec)
		if err != nil {
			return nil, err
		}
		if o.Data.State == Active {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *event.Object[Role]) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// NamesOf reads what the custom ones among roles are called, by their identifiers. Those that were removed have no name
// any more.
func NamesOf(ctx context.Context, r event.Reader, roles []access.Role) (map[string]string, error) {
	var refs []event.Ref
	for _, held := range roles {
		if held.IsCustom() {
			refs = append(refs, Kind.Ref(held.Name()))
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}
	records, err := r.Records(ctx, refs)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for ref, rec := range records {
		o, err := Kind.Open(rec)
		if err != nil {
			return nil, err
		}
		names[ref.ID] = o.Data.Name
	}
	return names, nil
}

// Show tells custom roles from fixed ones for people: it gives the names of the fixed ones, and calls custom with what
// a role is called, by names (see NamesOf), and with what it allows in a scope.
func Show(scope string, roles []access.Role, names map[string]string,
	custom func(name string, allows []string)) (fixed []string) {
	for _, r := range roles {
		if !r.IsCustom() {
			fixed = append(fixed, string(r))
			continue
		}
		var allows []string
		for _, p := range access.PermissionsOf(scope, []access.Role{r}) {
			allows = append(allows, string(p))
		}
		custom(names[r.Name()], allows)
	}
	return fixed
}
