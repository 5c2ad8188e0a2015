// Package call carries the description of a request, apart from its message, from the chain in front of the operations
// (package rpc) to the operations (package api). It is the same for all protocols.
package call

import (
	"context"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Info describes one request. The chain fills it before the operation runs.
type Info struct {
	RequestID      string
	Procedure      string         // signet.v1.UserService/GetUser
	Peer           netip.Addr     // the client, behind trusted proxies
	UserAgent      string         //
	Caller         *access.Caller // nil on public operations
	Permit         access.Permit  // for operations whose permission does not depend on the target
	OrgHeader      string         // x-service-orgid as sent
	IfMatch        event.IfMatch
	IdempotencyKey string // empty when not sent or not honoured

	Check Rules // for elements of lists that the operation has to look at itself
}

// Org is the organization that the request is sent from, whichever it is about; empty on public operations.
func (i *Info) Org() string {
	if i.Caller == nil {
		return ""
	}
	return i.Caller.OrgID
}

// Rules lists what is wrong with an element of a list in a request by the field rules of the definition. An error is a
// bug.
type Rules func(element proto.Message) ([]errs.Violation, error)

type key struct{}

// With puts the description into the context.
func With(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, key{}, info)
}

// From gives the description of the request that ctx belongs to. Outside one it is empty.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(key{}).(*Info); ok {
		return info
	}
	return &Info{}
}
