// Package org holds the rules of organizations: what they are called, which domains are theirs, and whether their
// users may sign in. An organization owns itself and everything in it.
package org

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of an organization.
type State string

// ACTIVE <-> INACTIVE, either -> REMOVED.
const (
	Active   State = "active"
	Inactive State = "inactive"
	Removed  State = "removed"
)

// Org is the state of an organization.
type Org struct {
	Standing
	Name    string   `json:"name"`
	NameKey string   `json:"nameKey,omitempty"`
	Domains []Domain `json:"domains,omitempty"` // the primary one first
	Empty   bool     `json:"empty,omitempty"`   // removed, and nothing that belonged to it is left

	Policy policy.Policy `json:"policy,omitzero"` // what it asks for beyond the installation's

	Metadata map[string]string `json:"metadata,omitempty"` // what programs keep about it; replaced, never altered
}

// Standing is the part of an organization's state that decides about credentials. Every request reads it.
type Standing struct {
	State State `json:"state"`
	Epoch int64 `json:"epoch,omitempty"` // tokens of an older epoch are dead

	SecondFactorRequired bool `json:"secondFactorRequired,omitempty"`
}

// key is what the name is found by. States from before it was recorded have a plain one.
func (o *Org) key() string { return cmp.Or(o.NameKey, syntax.PlainKey(o.Name)) }

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Org]{
	Name: "org", Table: "orgs", Prefix: "org", Shape: 4,
	Facts: []event.Fact[Org]{Added{}, Renamed{}, DomainAdded{}, DomainVerified{}, PrimaryDomainSet{}, DomainRemoved{},
		DomainRoutingSet{},
		Deactivated{}, Reactivated{}, WasRemoved{}, Emptied{}, PolicySet{}, MetadataSet{}, OwnerLost{},
		GuestCredentialSet{}},
	Token:   event.TokenOrg,
	Columns: []string{event.Standing, event.State, "name"},
	Lookup: func(o *event.Object[Org]) []string {
		return []string{event.StandingOf(&o.Data.Standing), string(o.Data.State), event.LookupText(o.Data.key())}
	},
	Groups: func(o *event.Object[Org]) []string {
		if o.Data.State == Removed && !o.Data.Empty {
			return []string{Removing}
		}
		return nil
	},
	Claims: func(o *event.Object[Org]) []event.Claim {
		var claims []event.Claim
		for _, d := range o.Data.Domains {
			if d.Verified {
				claims = append(claims, DomainClaim(d.Name))
			}
			if d.Proven {
				claims = append(claims, ProvenClaim(d.Name))
			}
		}
		return claims
	},
	Copy: func(o *Org) Org {
		c := *o
		c.Domains = slices.Clone(o.Domains)
		return c
	},
})

// Removing is the group of the organizations that are removed while things that belonged to them are still left.
const Removing = "removing"

// Added records a new organization.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey,omitempty"` // missing in the first events
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "org.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(o *Org) { o.Name, o.NameKey, o.State = e.Name, e.NameKey, Active }

// Renamed records another name.
type Renamed struct {
	Name    *string `json:"name,omitempty"`
	NameKey *string `json:"nameKey,omitempty"`
}

// EventType implements event.Fact.
func (Renamed) EventType() event.Type { return "org.renamed.v1" }

// Apply implements event.Fact.
func (e Renamed) Apply(o *Org) {
	event.Set(&o.Name, e.Name)
	event.Set(&o.NameKey, e.NameKey)
}

// Deactivated records that nobody of the organization may sign in. Tokens made before stay dead for good.
type Deactivated struct{}

// EventType implements event.Fact.
func (Deactivated) EventType() event.Type { return "org.deactivated.v1" }

// Apply implements event.Fact.
func (Deactivated) Apply(o *Org) { o.State = Inactive; o.Epoch++ }

// Reactivated records that its users may sign in again.
type Reactivated struct{}

// EventType implements event.Fact.
func (Reactivated) EventType() event.Type { return "org.reactivated.v1" }

// Apply implements event.Fact.
func (Reactivated) Apply(o *Org) { o.State = Active }

// WasRemoved records the end of the organization. Its domains become free.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "org.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(o *Org) { *o = Org{Standing: Standing{State: Removed, Epoch: o.Epoch + 1}} }

// Emptied records that nothing is left of what belonged to a removed organization.
type Emptied struct{}

// EventType implements event.Fact.
func (Emptied) EventType() event.Type { return "org.emptied.v1" }

// Apply implements event.Fact.
func (Emptied) Apply(o *Org) { o.Empty = true }

// OwnerLost records that no owner of the organization can act any more, because the last one has left, has ended where
// the owner belongs, or the installation took the role. It is news for others and changes nothing: a role that is given
// later needs no fact of its own here.
type OwnerLost struct {
	UserID string `json:"userId,omitempty"` // empty: all users of Org, or several of a group of the organization itself
	Org    string `json:"org"`              // that the owner belongs to
}

// EventType implements event.Fact.
func (OwnerLost) EventType() event.Type { return "org.owner_lost.v1" }

// Apply implements event.Fact.
func (OwnerLost) Apply(*Org) {}

// GuestCredentialSet records that somebody with roles in the organization got a credential, or a way to one, from the
// organization that the user belongs to.
type GuestCredentialSet struct {
	UserID string     `json:"userId"`
	Org    string     `json:"org"`   // that the user belongs to
	Event  event.Type `json:"event"` // what was recorded there, or will be with a code that was shown
}

// EventType implements event.Fact.
func (GuestCredentialSet) EventType() event.Type { return "org.guest_credential_set.v1" }

// Apply implements event.Fact.
func (GuestCredentialSet) Apply(*Org) {}

// NotFound is the reason of ErrNotFound.
const NotFound errs.Reason = "ORGANIZATION_NOT_FOUND"

// ErrNotFound: there is no such organization.
var ErrNotFound = errs.New(errs.NotFound, NotFound, "there is no organization with this identifier")

// Add creates an organization inside a command that declared it and the claims of its domains. The first free one of
// the candidates becomes the primary domain, verified. Errors: InvalidArgument on name; ErrDomainTaken when none is
// free.
func Add(tx *event.Tx, id, name string, candidates []string) (*event.Object[Org], error) {
	if err := errs.Wrong("name", syntax.Name(name)); err != nil {
		return nil, err
	}
	for _, domain := range candidates {
		holder, err := tx.Holder(DomainClaim(domain))
		if err != nil {
			return nil, err
		}
		if holder == "" {
			return Kind.Create(tx, id, id, Added{Name: name, NameKey: syntax.NameKey(name)},
				DomainAdded{Domain: domain, Verified: true, Primary: true})
		}
	}
	return nil, ErrDomainTaken
}

// Get reads the organization of the permit. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit) (*event.Object[Org], error) {
	return Of(permit).Read(ctx, r)
}

// Of is the permit's organization. Errors: ErrNotFound.
func Of(permit access.Permit) event.Target[Org] {
	return event.Target[Org]{Kind: Kind, ID: permit.Org(), Origin: permit.Origin(), Reach: present}
}

// Exists refuses with ErrNotFound where there is no organization with this id.
func Exists(ctx context.Context, r event.Reader, id string) error {
	_, err := mustExist(Kind.Read(ctx, r, id))
	return err
}

// In gives an organization inside a command that declared it. Errors: ErrNotFound.
func In(tx *event.Tx, id string) (*event.Object[Org], error) { return mustExist(Kind.Get(tx, id)) }

// Owning reads the organization that something belongs to; nil where there is none. What came with the caller's
// credential is not read again.
func Owning(ctx context.Context, r event.Reader, caller *access.Caller, id string) (*event.Object[Org], error) {
	if caller != nil && caller.Org != nil && caller.Org.ID == id {
		return Kind.Open(caller.Org)
	}
	return Kind.Read(ctx, r, id)
}

// OwningAll is Owning for several, by identifier. Organizations that do not exist or were removed are left out.
func OwningAll(ctx context.Context, r event.Reader, caller *access.Caller,
	ids []string) (map[string]*event.Object[Org], error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var refs []event.Ref
	for _, id := range ids {
		if caller.Org == nil || caller.Org.ID != id {
			refs = append(refs, Kind.Ref(id))
		}
	}
	records, err := r.Records(ctx, refs)
	if err != nil {
		return nil, err
	}
	if len(refs) < len(ids) {
		records[Kind.Ref(caller.Org.ID)] = caller.Org
	}
	all := make(map[string]*event.Object[Org], len(records))
	for _, record := range records {
		o, err := Kind.Open(record)
		if err != nil {
			return nil, err
		}
		if present(o) == nil {
			all[o.ID] = o
		}
	}
	return all, nil
}

// Home is Owning where there must be one. Errors: ErrNotFound.
func Home(ctx context.Context, r event.Reader, caller *access.Caller, id string) (*event.Object[Org], error) {
	return mustExist(Owning(ctx, r, caller, id))
}

// Mine reads the caller's own organization. Errors: ErrNotFound.
func Mine(ctx context.Context, r event.Reader, caller *access.Caller) (*event.Object[Org], error) {
	return Home(ctx, r, caller, caller.OrgID)
}

// present refuses an organization that there is not, or not any more.
func present(o *event.Object[Org]) error {
	if o == nil || o.Data.State == Removed {
		return ErrNotFound
	}
	return nil
}

// mustExist is present for what was just read.
func mustExist(o *event.Object[Org], err error) (*event.Object[Org], error) {
	if err == nil {
		err = present(o)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Filter says which organizations to list; empty fields do not restrict.
type Filter struct {
	Name   string // what the name begins with, whatever its case
	Domain string // a verified domain, in whatever spelling
	State  State
}

// List reads a page of the installation's organizations: the oldest first, or in the order of names where a beginning
// is given. The permit must be for the installation.
func List(ctx context.Context, r event.Reader, permit access.Permit, f Filter, after event.Cursor,
	limit int) ([]*event.Object[Org], *event.Cursor, error) {
	if !permit.Reaches(access.Installation) {
		return nil, nil, access.ErrDenied
	}
	prefix := event.LookupText(syntax.NameKey(f.Name))
	if f.Domain != "" {
		o, err := holding(ctx, r, f.Domain)
		if err != nil || o == nil || f.State != "" && o.Data.State != f.State ||
			!strings.HasPrefix(event.LookupText(o.Data.key()), prefix) {
			return nil, nil, err
		}
		return []*event.Object[Org]{o}, nil, nil
	}
	q := event.Query{After: after, Limit: limit, Where: event.Where(event.State, string(f.State))}
	return Kind.List(ctx, r, q.Beginning("name", prefix))
}

// holding finds the organization that has verified a domain; nil where none has.
func holding(ctx context.Context, r event.Reader, domain string) (*event.Object[Org], error) {
	name, problem := syntax.Domain(domain)
	if problem != nil {
		return nil, nil
	}
	id, err := r.Holder(ctx, DomainClaim(name))
	if err != nil || id == "" {
		return nil, err
	}
	return Kind.Read(ctx, r, id)
}

// Rename gives the permit's organization another name. Errors: InvalidArgument on name; ErrNotFound; Aborted when match
// does not hold.
func Rename(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	name string) (event.Details, error) {
	if err := errs.Wrong("name", syntax.Name(name)); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(name)
	return Of(permit).Change(ctx, s, match, func(_ *event.Tx, o *event.Object[Org]) error {
		return o.Append(Renamed{Name: event.Changed(o.Data.Name, name), NameKey: event.Changed(o.Data.NameKey, key)})
	})
}
