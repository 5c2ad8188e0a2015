package api

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/session"
)

// expiring is a request for something that expires.
type expiring interface {
	proto.Message
	GetExpirationDate() *timestamppb.Timestamp
}

// notADate says that an expiry is no time that there is.
func notADate(r expiring) []errs.Violation {
	if r.GetExpirationDate() != nil && !r.GetExpirationDate().IsValid() {
		return []errs.Violation{{Field: "expirationDate", Message: "must be a time between the years 1 and 9999"}}
	}
	return nil
}

// expiry is the date of a request; nil where it has none.
func expiry(r expiring) *time.Time {
	if r.GetExpirationDate() == nil {
		return nil
	}
	t := r.GetExpirationDate().AsTime()
	return &t
}

func newToken(r interface {
	expiring
	GetName() string
}) session.NewToken {
	return session.NewToken{Name: r.GetName(), Expires: expiry(r)}
}

func newKey(r interface {
	expiring
	GetPublicKey() string
}) user.NewKey {
	return user.NewKey{PublicKey: r.GetPublicKey(), Expires: expiry(r)}
}
