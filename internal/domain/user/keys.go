package user

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Key is a public key that a service user proves itself with.
type Key struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"` // canonical PEM
	Created   int64  `json:"created"`
	Expires   int64  `json:"expires,omitempty"` // 0: never
}

// KeyAdded records a new key.
type KeyAdded struct {
	KeyID     string `json:"keyId"`
	PublicKey string `json:"publicKey"`
	Created   int64  `json:"created"`
	Expires   int64  `json:"expires,omitempty"`
}

// EventType implements event.Fact.
func (KeyAdded) EventType() event.Type { return "user.key_added.v1" }

// Apply implements event.Fact.
func (e KeyAdded) Apply(u *User) {
	if u.Service != nil {
		u.Service.Keys = append(slices.Clip(u.Service.Keys),
			Key{ID: e.KeyID, PublicKey: e.PublicKey, Created: e.Created, Expires: e.Expires})
	}
}

// KeyRemoved records that a key does not count any more.
type KeyRemoved struct {
	KeyID string `json:"keyId"`
}

// EventType implements event.Fact.
func (KeyRemoved) EventType() event.Type { return "user.key_removed.v1" }

// Apply implements event.Fact.
func (e KeyRemoved) Apply(u *User) {
	if u.Service != nil {
		u.Service.Keys = slices.DeleteFunc(slices.Clone(u.Service.Keys), func(k Key) bool { return k.ID == e.KeyID })
	}
}

// GetService reads a service user within the permit's organization. Errors: ErrNotFound; ErrNotService.
func GetService(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[User], error) {
	return Within(permit, id).And(MustBeService).Read(ctx, r)
}
