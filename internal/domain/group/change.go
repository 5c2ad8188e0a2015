package group

import (
	"context"
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
	NotFound       errs.Reason = "GROUP_NOT_FOUND"
	NameTaken      errs.Reason = "GROUP_NAME_TAKEN"
	TooLarge       errs.Reason = "GROUP_TOO_LARGE"
	MemberNotFound errs.Reason = "GROUP_MEMBER_NOT_FOUND"
	TooManyGroups  errs.Reason = "TOO_MANY_GROUPS"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no group with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")
	ErrNameTaken = errs.New(errs.AlreadyExists, NameTaken,
		"the organization has a group with this name: choose another one")
	ErrTooLarge = errs.New(errs.FailedPrecondition, TooLarge,
		"a group that gives roles of this API has at most 1000 members: give the roles to a smaller group")
	ErrMemberNotFound = errs.New(errs.NotFound, MemberNotFound, "the user is not in this group")
	ErrTooManyGroups  = errs.New(errs.FailedPrecondition, TooManyGroups,
		"a user can be in at most 200 groups of one organization: remove the user from another one first")
)

// Within is a group the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[Group] {
	return event.Target[Group]{Kind: Kind, ID: id, Origin: permit.Origin(), Reach: func(o *event.Object[Group]) error {
		if o == nil || o.Data.State == Removed || !permit.Reaches(o.Org) {
			return ErrNotFound
		}
		return nil
	}}
}

// New is a group to create.
type New struct {
	Name        string
	Description string
}

// Violations lists what is wrong with it.
func (n New) Violations() (wrong errs.Violations) {
	wrong.Add("name", syntax.Name(n.Name))
	wrong.Add("description", syntax.Text(n.Description, syntax.MaxDescription))
	return wrong
}

// Created is what a creation answers.
type Created struct {
	ID      string
	Details event.Details
}

// Add creates a group without members in the permit's organization. Errors: InvalidArgument with the violations of n;
// org.ErrNotFound; ErrNameTaken.
func Add(ctx context.Context, s event.Store, permit access.Permit, n New, once event.Once) (Created, error) {
	if err := n.Violations().Err(); err != nil {
		return Created{}, err
	}
	owner, key := permit.Org(), syntax.NameKey(n.Name)
	created := Created{ID: Kind.NewID()}
	id := created.ID
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Claims: []event.Claim{NameClaim(owner, key)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			if err := free(tx, owner, key, ""); err != nil {
				return err
			}
			g, err := Kind.Create(tx, id, owner, Added{Name: n.Name, NameKey: key, Description: n.Description})
			if err != nil {
				return err
			}
			created = Created{ID: id, Details: g.Details()}
			return nil
		},
	}, &created))
	if err != nil {
		return Created{}, err
	}
	return created, nil
}

// free refuses a name that another group of the organization has.
func free(tx *event.Tx, org, key, id string) error {
	holder, err := tx.Holder(NameClaim(org, key))
	if err == nil && holder != "" && holder != id {
		err = ErrNameTaken
	}
	return err
}

// Get reads a group of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Group], error) {
	return Within(permit, id).Read(ctx, r)
}

// List reads a page of the groups of the permit's organization: the oldest first, or those whose name begins with a
// text, whatever its case, in the order of names.
func List(ctx context.Context, r event.Reader, permit access.Permit, name string, after event.Cursor,
	limit int) ([]*event.Object[Group], *event.Cursor, error) {
	if permit.Org() == "" { // would be a query over all organizations
		return nil, nil, access.ErrDenied
	}
	key := syntax.NameKey(name)
	found, next, err := Kind.List(ctx, r,
		event.Query{Org: permit.Org(), After: after, Limit: limit}.Beginning("name", key))
	if key != event.LookupText(key) { // more was asked for than the column holds
		found = slices.DeleteFunc(found,
			func(o *event.Object[Group]) bool { return !strings.HasPrefix(o.Data.NameKey, key) })
	}
	return found, next, err
}

// Change gives a group another name and description. Errors: InvalidArgument with the violations of n; ErrNotFound;
// ErrNameTaken; Aborted when match does not hold.
func Change(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	n New) (event.Details, error) {
	if err := n.Violations().Err(); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(n.Name)
	claim := event.Command{Claims: []event.Claim{NameClaim(permit.Org(), key)}}
	return Within(permit, id).Needs(claim).Change(ctx, s, match, func(tx *event.Tx, g *event.Object[Group]) error {
		if err := free(tx, g.Org, key, g.ID); err != nil {
			return err
		}
		return g.Append(Changed{
			Name:        event.Changed(g.Data.Name, n.Name),
			NameKey:     event.Changed(g.Data.NameKey, key),
			Description: event.Changed(g.Data.Description, n.Description),
		})
	})
}
