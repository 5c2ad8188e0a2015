package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Reasons of this package.
const (
	NotFound      errs.Reason = "PROJECT_NOT_FOUND"
	RoleNotFound  errs.Reason = "PROJECT_ROLE_NOT_FOUND"
	TooManyRoles  errs.Reason = "PROJECT_HAS_TOO_MANY_ROLES"
	TooManyGroups errs.Reason = "PROJECT_HAS_TOO_MANY_GROUPS"
	TooManyPlaces errs.Reason = "TOO_MANY_APP_ROLES"

	GrantNotFound   errs.Reason = "PROJECT_GRANT_NOT_FOUND"
	GrantExists     errs.Reason = "PROJECT_GRANT_EXISTS"
	GrantWrongState errs.Reason = "PROJECT_GRANT_WRONG_STATE"
	TooManyWaiting  errs.Reason = "TOO_MANY_PENDING_GRANTS"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no project with this identifier in that organization, and none was granted to it: if it belongs to another one, name that one in x-service-orgid")
	// ErrRoleNotFound says the same of a role that the project has and did not grant: other roles are none of the other
	// organization's business.
	ErrRoleNotFound = errs.New(errs.NotFound, RoleNotFound,
		"the project has no role with this key, or has not granted it to that organization: list the roles of the project")
	ErrTooManyRoles = errs.New(errs.FailedPrecondition, TooManyRoles,
		"this project already has 100 roles: remove one that is no longer needed")
	ErrTooManyGroups = errs.New(errs.FailedPrecondition, TooManyGroups,
		"200 groups already have roles of this project there: take the roles of one that no longer needs them")
	ErrTooManyPlaces = errs.New(errs.FailedPrecondition, TooManyPlaces,
		"this user or group already has roles of 200 projects in this organization: take away those of one project first")

	ErrGrantNotFound = errs.New(errs.NotFound, GrantNotFound,
		"there is no grant with this identifier: it may have been withdrawn, declined or given back")
	ErrGrantExists = errs.New(errs.AlreadyExists, GrantExists,
		"the project is already granted to that organization: change the roles of that grant, or withdraw it first")
	ErrGrantWrongState = errs.New(errs.FailedPrecondition, GrantWrongState, "this grant has already been accepted")
	// ErrTooManyWaiting tells that grants wait there and not whether there is such an organization: they wait for
	// identifiers that nobody has, too.
	ErrTooManyWaiting = errs.New(errs.FailedPrecondition, TooManyWaiting,
		"too many grants already wait for that organization: withdraw one of yours, or wait until the organization has accepted or declined some")
)

// MaxRoleKey is how many characters a key of a role has at most.
const MaxRoleKey = 100

// RoleKey judges the key of a role: what tokens carry and addresses of the API name.
func RoleKey(key string) *errs.Problem {
	const grammar = "must be 1 to 100 of the characters a-z, A-Z, 0-9, '.', '_', ':' and '-', with a letter or a digit among them"
	alnum := false
	for _, c := range []byte(key) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			alnum = true
		case strings.IndexByte("._:-", c) < 0:
			return errs.Plain(grammar)
		}
	}
	if !alnum || len(key) > MaxRoleKey { // '..' could not stand in an address
		return errs.Plain(grammar)
	}
	return nil
}

// RoleKeyViolations lists what is wrong with a list of keys of roles.
func RoleKeyViolations(keys []string) (wrong errs.Violations) {
	if len(keys) > MaxRoles {
		wrong.Add("roleKeys", syntax.TooMany(MaxRoles, "elements"))
		return wrong
	}
	for i, key := range keys {
		wrong.Add(fmt.Sprintf("roleKeys[%d]", i), RoleKey(key))
	}
	return wrong
}

// Within is a project the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[Project] {
	return event.Target[Project]{
		Kind:   Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(p *event.Object[Project]) error {
			if p == nil || p.Data.State != Active || !permit.Reaches(p.Org) {
				return ErrNotFound
			}
			return nil
		},
	}
}

// Created is a new project or grant.
type Created struct {
	ID      string
	Details event.Details
}

// Add creates a project without roles in the permit's organization. Errors: InvalidArgument on name; org.ErrNotFound;
// those of once.
func Add(ctx context.Context, s event.Store, permit access.Permit, once event.Once, name string) (Created, error) {
	if err := errs.Wrong("name", syntax.Name(name)); err != nil {
		return Created{}, err
	}
	created, owner, id := Created{}, permit.Org(), Kind.NewID()
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(), Create: []event.Ref{Kind.Ref(id)}, Read: []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			p, err := Kind.Create(tx, id, owner, Added{Name: name, NameKey: syntax.NameKey(name)})
			if err != nil {
				return err
			}
			created = Created{ID: id, Details: p.Details()}
			return nil
		},
	}, &created))
	if err != nil {
		return Created{}, err
	}
	return created, nil
}

// Get reads a project of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Project], error) {
	return Within(permit, id).Read(ctx, r)
}

// List reads a page of the projects of the permit's organization: the oldest first, or in the order of names where the
// beginning of one is given.
func List(ctx context.Context, r event.Reader, permit access.Permit, name string, after event.Cursor,
	limit int) ([]*event.Object[Project], *event.Cursor, error) {
	if permit.Org() == "" {
		return nil, nil, access.ErrDenied // no organization would mean all of them
	}
	return Kind.List(ctx, r, event.Query{Org: permit.Org(), After: after, Limit: limit}.Beginning("name",
		syntax.NameKey(name)))
}

// Rename gives a project another name. Errors: InvalidArgument on name; ErrNotFound; Aborted when match does not hold.
func Rename(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	name string) (event.Details, error) {
	if err := errs.Wrong("name", syntax.Name(name)); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(name)
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Project]) error {
		return p.Append(Renamed{Name: event.Changed(p.Data.Name, name), NameKey: event.Changed(p.Data.NameKey, key)})
	})
}

// RoleViolations lists what is wrong with a role to declare.
func RoleViolations(key, name, description string) (wrong errs.Violations) {
	wrong.Add("key", RoleKey(key))
	wrong.Add("name", syntax.Text(name, syntax.MaxName))
	wrong.Add("description", syntax.Text(description, syntax.MaxDescription))
	return wrong
}

// SetRole declares a role of a project, or gives one that it has another name and description. Errors: InvalidArgument
// with RoleViolations; ErrNotFound; ErrTooManyRoles; Aborted when match does not hold.
func SetRole(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	key, name, description string) (event.Details, error) {
	if err := RoleViolations(key, name, description).Err(); err != nil {
		return event.Details{}, err
	}
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Project]) error {
		role, has := p.Data.role(key)
		switch {
		case has && role.Name == name && role.Description == description:
			return nil
		case !has && len(p.Data.Roles) >= MaxRoles:
			return ErrTooManyRoles
		}
		return p.Append(RoleSet{Key: key, Name: name, Description: description})
	})
}

// RemoveRole ends a role of a project, and it ends for everybody who has it. Declared again, it is another one. Errors:
// ErrNotFound; ErrRoleNotFound; Aborted when match does not hold.
func RemoveRole(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	key string) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Project]) error {
		if _, has := p.Data.role(key); !has {
			return ErrRoleNotFound
		}
		return p.Append(RoleRemoved{Key: key})
	})
}

// Remove ends a project. Everything that was given or granted of it counts no longer, because the project does not: it
// costs the same however much that is. The Cleaner removes the grants and accesses later. Errors: ErrNotFound; Aborted
// when match does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match,
		func(_ *event.Tx, p *event.Object[Project]) error { return p.Append(WasRemoved{}) })
}

// role finds a role that the project has.
func (p *Project) role(key string) (Role, bool) {
	i := slices.IndexFunc(p.Roles, func(r Role) bool { return r.Key == key })
	if i < 0 {
		return Role{}, false
	}
	return p.Roles[i], true
}
