// Package org holds the rules of organizations: what they are called, which domains are theirs, and whether their
// users may sign in. An organization owns itself and everything in it.
package org

import (
	"cmp"
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
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
}

// Standing is the part of an organization's state that decides about credentials. Every request reads it.
type Standing struct {
	State State `json:"state"`
	Epoch int64 `json:"epoch,omitempty"` // tokens of an older epoch are dead
}

// Domain is a domain of an organization, in the form it is compared in.
type Domain struct {
	Name     string `json:"name"`
	Verified bool   `json:"verified,omitempty"`
}

// PrimaryDomain is the one login names are shown with; empty when there is none.
func (o *Org) PrimaryDomain() string {
	if len(o.Domains) == 0 {
		return ""
	}
	return o.Domains[0].Name
}

// LoginNames of a user with this user name: one for every verified domain, the primary one first.
func (o *Org) LoginNames(userName string) []string {
	var names []string
	for _, d := range o.Domains {
		if d.Verified {
			names = append(names, userName+"@"+d.Name)
		}
	}
	return names
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Org]{
	Name: "org", Table: "orgs", Prefix: "org", Shape: 2,
	Facts:   []event.Fact[Org]{Added{}, DomainAdded{}, Deactivated{}, Reactivated{}, WasRemoved{}, Emptied{}},
	Columns: []string{event.Standing, event.State, "name"},
	Lookup: func(o *event.Object[Org]) []string {
		return []string{event.StandingOf(&o.State.Standing), string(o.State.State), event.LookupText(cmp.Or(o.State.NameKey, syntax.PlainKey(o.State.Name)))}
	},
	Groups: func(o *event.Object[Org]) []string {
		if o.State.State == Removed && !o.State.Empty {
			return []string{Removing}
		}
		return nil
	},
	Claims: func(o *event.Object[Org]) []event.Claim {
		var claims []event.Claim
		for _, d := range o.State.Domains {
			if d.Verified {
				claims = append(claims, DomainClaim(d.Name))
			}
		}
		return claims
	},
})

// Removing is the group of the organizations that are removed while things that belonged to them are still left.
const Removing = "removing"

// DomainClaim is the claim of the organization that has verified a domain.
func DomainClaim(domain string) event.Claim { return event.Claim{Space: "domain", Key: domain} }

// Added records a new organization.
type Added struct {
	Name    string `json:"name"`
	NameKey string `json:"nameKey,omitempty"` // missing in the first events
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "org.added.v1" }

// Apply implements event.Fact.
func (e Added) Apply(o *Org) { o.Name, o.NameKey, o.State = e.Name, e.NameKey, Active }

// DomainAdded records a domain; Primary makes it the one login names are shown with.
type DomainAdded struct {
	Domain   string `json:"domain"`
	Verified bool   `json:"verified,omitempty"`
	Primary  bool   `json:"primary,omitempty"`
}

// EventType implements event.Fact.
func (DomainAdded) EventType() event.Type { return "org.domain_added.v1" }

// Apply implements event.Fact.
func (e DomainAdded) Apply(o *Org) {
	d := Domain{Name: e.Domain, Verified: e.Verified}
	if e.Primary {
		o.Domains = slices.Insert(o.Domains, 0, d)
	} else {
		o.Domains = append(o.Domains, d)
	}
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

// Reasons of this package.
const (
	NotFound    errs.Reason = "ORGANIZATION_NOT_FOUND"
	DomainTaken errs.Reason = "DOMAIN_TAKEN"
)

// ErrNotFound: there is no such organization.
var ErrNotFound = errs.New(errs.NotFound, NotFound, "there is no organization with this identifier")

// ErrDomainTaken: another organization has the domain.
var ErrDomainTaken = errs.New(errs.AlreadyExists, DomainTaken, "the domain belongs to another organization: choose another one, or leave it out to get one")

// Add creates an organization inside a command that declared it and the claims of its domains. The first free one of
// the candidates becomes the primary domain, verified. Errors: ErrDomainTaken when none is free.
func Add(tx *event.Tx, id, name string, candidates []string) (*event.Object[Org], error) {
	for _, domain := range candidates {
		holder, err := tx.Holder(DomainClaim(domain))
		if err != nil {
			return nil, err
		}
		if holder == "" {
			return Kind.Create(tx, id, id, Added{Name: name, NameKey: syntax.NameKey(name)}, DomainAdded{Domain: domain, Verified: true, Primary: true})
		}
	}
	return nil, ErrDomainTaken
}

// Get reads the organization of the permit. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit) (*event.Object[Org], error) {
	o, err := Kind.Read(ctx, r, permit.Org())
	if err == nil && (o == nil || o.State.State == Removed) {
		return nil, ErrNotFound
	}
	return o, err
}

// Exists refuses with ErrNotFound where there is no organization with this id.
func Exists(ctx context.Context, r event.Reader, id string) error {
	o, err := Kind.Read(ctx, r, id)
	if err == nil && (o == nil || o.State.State == Removed) {
		return ErrNotFound
	}
	return err
}

// Owning reads the organization that something belongs to; nil where there is none. What came with the caller's
// credential is not read again.
func Owning(ctx context.Context, r event.Reader, caller *access.Caller, id string) (*event.Object[Org], error) {
	if caller != nil && caller.Org != nil && caller.Org.ID == id {
		return Kind.Open(caller.Org)
	}
	return Kind.Read(ctx, r, id)
}
