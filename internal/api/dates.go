package api

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/user"
)

// Checker is Check for requests whose rules depend on the time, too.
type Checker struct{ Clock func() time.Time }

// Check lists what is wrong with a request beyond the field rules of the definition.
func (c Checker) Check(req proto.Message) []errs.Violation {
	found := Check(req)
	if r, dated := req.(expiring); dated && r.GetExpirationDate() != nil && !r.GetExpirationDate().IsValid() {
		found = append(found, errs.Violation{Field: "expirationDate", Message: "must be a time between the years 1 and 9999"})
	}
	switch r := req.(type) {
	case *signetv1.CreateMyTokenRequest:
		found = append(found, newToken(r).Violations(c.Clock())...)
	case *signetv1.CreateUserTokenRequest:
		found = append(found, newToken(r).Violations(c.Clock())...)
	case *signetv1.AddServiceKeyRequest:
		found = append(found, newKey(r).Violations(c.Clock())...)
	}
	return found
}

// expiring is a request for something that expires.
type expiring interface {
	proto.Message
	GetExpirationDate() *timestamppb.Timestamp
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

func newKey(r *signetv1.AddServiceKeyRequest) user.NewKey {
	return user.NewKey{PublicKey: r.GetPublicKey(), Expires: expiry(r)}
}
