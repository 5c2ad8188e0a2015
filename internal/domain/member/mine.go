package member

import (
	"context"
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Membership is what a user is and holds in one organization, or in the installation.
type Membership struct {
	Org    string   // empty: the installation
	Name   string   // of the organization
	Guest  bool     // the user belongs to another one
	Roles  []Source // sorted by role; none: a guest without roles, or somebody who is only in groups
	Groups []string // ids of the organization's groups that the user is in, sorted

	Accepted bool          // a guest has agreed to it; false where nobody was asked: the roles are from before
	Waiting  []access.Role // that a guest was given and has not accepted yet, sorted
}

// Source is a role and where it comes from.
type Source struct {
	Role   access.Role
	Direct bool
	Groups []string // ids of those that give it, sorted
}

// Of reads what a user is and holds everywhere, the installation first. Organizations that were removed are not among
// it.
func Of(ctx context.Context, r event.Reader, u *event.Object[user.User]) (all []Membership, err error) {
	if roles := u.Data.Memberships[access.Installation]; len(roles) > 0 {
		all = append(all, Membership{Roles: sources(&u.Data, access.Installation)})
	}
	in := map[string]bool{}
	for scope := range u.Data.Memberships {
		in[scope] = true
	}
	for scope := range u.Data.Groups {
		in[scope] = true
	}
	delete(in, access.Installation)
	for _, scope := range slices.Sorted(maps.Keys(in)) {
		o, err := org.Kind.Read(ctx, r, scope)
		if err != nil {
			return nil, err
		}
		if o == nil || o.Data.State == org.Removed {
			continue
		}
		m := Membership{Org: scope, Name: o.Data.Name, Guest: u.Org != scope, Roles: sources(&u.Data, scope),
			Accepted: user.IsGuest(u, scope) && !user.Unaccepted(u, scope), Waiting: u.Data.Waiting(scope)}
		for _, g := range u.Data.Groups[scope] {
			m.Groups = append(m.Groups, g.ID)
		}
		slices.Sort(m.Groups)
		all = append(all, m)
	}
	return all, nil
}

// sources are the roles that a user has in a scope, and where they come from.
func sources(u *user.User, scope string) (all []Source) {
	for _, role := range u.Memberships[scope] {
		_, direct := access.Named(u.Direct()[scope], role.Name())
		s := Source{Role: role, Direct: direct}
		for _, g := range u.Groups[scope] {
			if _, gives := access.Named(g.Roles, role.Name()); gives {
				s.Groups = append(s.Groups, g.ID)
			}
		}
		slices.Sort(s.Groups)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Source) int {
		if a.Role < b.Role {
			return -1
		}
		return 1
	})
	return all
}
