package group

import (
	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
)

// NotFound is the reason of ErrNotFound.
const NotFound errs.Reason = "GROUP_NOT_FOUND"

// ErrNotFound: there is no such group there.
var ErrNotFound = errs.New(errs.NotFound, NotFound, "there is no group with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")

// Within is a group the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[Group] {
	return event.Target[Group]{Kind: Kind, ID: id, Origin: permit.Origin(), Reach: func(g *event.Object[Group]) error {
		if g == nil || g.Data.State == Removed || !permit.Reaches(g.Org) {
			return ErrNotFound
		}
		return nil
	}}
}
