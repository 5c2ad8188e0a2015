package idp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	// PerPage is how many providers a page shows at once.
	PerPage = 20
	// maxLooks bounds how many pages of a list are read for one page, where few of the providers in it can be used.
	maxLooks = 5
)

// SignInProviders are those that people of an organization can sign in through: its own and those of the default
// organization, whose providers everybody may use, as far as its policy allows.
type SignInProviders struct {
	Org, DefaultOrg string
	Ways            policy.SignIn
}

// Part says which part of SignInProviders is wanted. The zero value: the first one.
type Part struct {
	Begins string // what the name begins with
	After  string // the id of the provider behind which it begins
	Skip   func(*event.Object[Provider]) bool
}

// Offers are a part of SignInProviders.
type Offers struct {
	Providers []*event.Object[Provider]
	More      string // the Part.After of the next part; empty: this was all
}

// Offered finds one provider that people of the organization can sign in through, however many there are; nil where it
// is not offered.
func (p SignInProviders) Offered(ctx context.Context, r event.Reader, id string) (*event.Object[Provider], error) {
	if id == "" || !p.Ways.AllowsProvider(id) {
		return nil, nil
	}
	found, err := Kind.Read(ctx, r, id)
	if err != nil || found == nil || !p.offers(found) {
		return nil, err
	}
	return found, nil
}

// offers tells whether a provider that the policy allows can be used.
func (p SignInProviders) offers(found *event.Object[Provider]) bool {
	return found.Data.Offered() && slices.Contains(p.owners(), found.Org)
}

// owners are the organizations whose providers are offered, in order.
func (p SignInProviders) owners() []string {
	// empty would mean all of them
	return slices.Compact(slices.DeleteFunc([]string{p.Org, p.DefaultOrg}, func(id string) bool { return id == "" }))
}

// Part reads a part of them: those of the organization and then those of the default organization, the oldest first; or
// by their names where names are searched for. What the policy does not allow, and what nobody can sign in through, is
// left out and does not fill a part. The cost does not depend on how many there are.
func (p SignInProviders) Part(ctx context.Context, r event.Reader, part Part) (Offers, error) {
	switch {
	case !p.Ways.Allows(policy.WithProvider):
		return Offers{}, nil
	case len(p.Ways.Providers) > 0:
		return p.named(ctx, r, part)
	}
	owners, begin, after, err := p.begin(ctx, r, part)
	if err != nil {
		return Offers{}, err
	}
	var o Offers
	looks := 0
	for _, owner := range owners[begin:] {
		for more := true; more; looks++ {
			if looks == maxLooks {
				o.More = after.ID
				return o, nil
			}
			q := event.Query{Org: owner, After: after, Limit: PerPage + 1,
				Where: event.Where(event.State, string(Active))}
			found, next, err := Kind.List(ctx, r, q.Beginning("name", syntax.NameKey(part.Begins)))
			if err != nil {
				return Offers{}, err
			}
			for _, f := range found {
				if p.offers(f) && !o.add(f, part) {
					return o, nil
				}
			}
			if more = next != nil; more {
				after = *next
			}
		}
		after = event.Cursor{}
	}
	return o, nil
}

// begin finds where a part begins.
func (p SignInProviders) begin(ctx context.Context, r event.Reader,
	part Part) (owners []string, begin int, after event.Cursor, err error) {
	owners = p.owners()
	if part.After == "" {
		return owners, 0, after, nil
	}
	last, err := Kind.Read(ctx, r, part.After)
	if err != nil || last == nil || !slices.Contains(owners, last.Org) {
		return owners, 0, after, err
	}
	after.ID = last.ID
	if part.Begins != "" {
		after.Value = event.LookupText(last.Data.nameKey())
	}
	return owners, slices.Index(owners, last.Org), after, nil
}

// named reads those that the policy names, in the order of their identifiers.
func (p SignInProviders) named(ctx context.Context, r event.Reader, part Part) (Offers, error) {
	var refs []event.Ref
	for _, id := range slices.Compact(slices.Sorted(slices.Values(p.Ways.Providers))) {
		if id > part.After {
			refs = append(refs, Kind.Ref(id))
		}
	}
	records, err := r.Records(ctx, refs)
	if err != nil {
		return Offers{}, err
	}
	var o Offers
	for _, ref := range refs {
		if records[ref] == nil {
			continue
		}
		found, err := Kind.Open(records[ref])
		if err != nil {
			return Offers{}, err
		}
		if p.offers(found) && strings.HasPrefix(found.Data.nameKey(), syntax.NameKey(part.Begins)) &&
			!o.add(found, part) {
			break
		}
	}
	return o, nil
}

// add takes a provider; false where there is no room for it any more, and the next part begins.
func (o *Offers) add(p *event.Object[Provider], part Part) bool {
	if part.Skip != nil && part.Skip(p) {
		return true
	}
	if len(o.Providers) == PerPage {
		o.More = o.Providers[PerPage-1].ID
		return false
	}
	o.Providers = append(o.Providers, p)
	return true
}

// nameKey is what its name is compared by.
func (p *Provider) nameKey() string {
	return cmp.Or(p.General.NameKey, syntax.PlainKey(p.General.Name))
}
