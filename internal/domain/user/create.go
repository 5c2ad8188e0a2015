package user

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Added is what the creation of a user answers.
type Added struct {
	ID      string
	Details event.Details
}

// CreateHuman is a person to be created in the permit's organization.
type CreateHuman struct {
	NewHuman
	Password       string // empty: none
	ChangeRequired bool   // whether the first sign-in has to replace it
}

// Do creates the person. A password takes the permission to set one. Errors: InvalidArgument with violations;
// access.ErrDenied; org.ErrNotFound; ErrUserNameTaken; those of once; Unavailable when too many passwords are being
// hashed; those of permit.Renew when the caller may no longer once the password is hashed.
func (p CreateHuman) Do(ctx context.Context, s event.Store, hasher *secret.Hasher, permit access.Permit,
	once event.Once) (Added, error) {
	if err := p.Violations("").Err(); err != nil {
		return Added{}, err
	}
	p.VerifiedBy = VerifierOf(permit)
	var hash []byte
	if p.Password != "" {
		if !MayGivePasswords(permit) {
			return Added{}, access.ErrDenied
		}
		rules, err := org.Settings(ctx, s, permit.Org())
		if err != nil {
			return Added{}, err
		}
		if wrong := rules.Given().Violations("password", p.Password); len(wrong) > 0 {
			// A repetition still gets the first answer: the policy may have been another one then.
			return create(ctx, s, permit, once, p.UserName,
				func(*event.Tx, string) (*event.Object[User], error) { return nil, errs.Invalid(wrong...) })
		}
		if hash, permit, err = p.hash(ctx, hasher, permit); err != nil {
			return Added{}, err
		}
	}
	return create(ctx, s, permit, once, p.UserName, func(tx *event.Tx, id string) (*event.Object[User], error) {
		u, err := AddHuman(tx, id, permit.Org(), &p.NewHuman)
		if err != nil || hash == nil {
			return u, err
		}
		return u, PutPassword(tx, u, hash, PasswordSet{ChangeRequired: p.ChangeRequired})
	})
}

// hash is done for those who may, and they must still be allowed to when it is done: the queue may have been long.
func (p CreateHuman) hash(ctx context.Context, hasher *secret.Hasher,
	permit access.Permit) ([]byte, access.Permit, error) {
	hash, err := hasher.Hash(ctx, p.Password)
	if err != nil {
		return nil, permit, err
	}
	if permit, err = permit.Renew(ctx); err != nil {
		return nil, permit, err
	}
	if !MayGivePasswords(permit) {
		return nil, permit, access.ErrDenied
	}
	return hash, permit, nil
}

// MayGivePasswords: who sets a password, or the hash of one, needs the permission for it also where the operation has
// another one.
func MayGivePasswords(permit access.Permit) bool {
	return permit.HoldsFor(access.PasswordsScope, access.CredentialWrite, permit.Org())
}

// CreateService is a service user to be created in the permit's organization.
type CreateService struct {
	UserName    string
	Name        string
	Description string
}

// Do creates the service user. Errors: org.ErrNotFound; InvalidArgument with violations; ErrUserNameTaken; those of
// once.
func (p CreateService) Do(ctx context.Context, s event.Store, permit access.Permit, once event.Once) (Added, error) {
	return create(ctx, s, permit, once, p.UserName, func(tx *event.Tx, id string) (*event.Object[User], error) {
		return AddService(tx, id, permit.Org(), p.UserName, p.Name, p.Description)
	})
}

// create runs add for a new identifier, in an organization that is there.
func create(ctx context.Context, s event.Store, permit access.Permit, once event.Once, userName string,
	add func(tx *event.Tx, id string) (*event.Object[User], error)) (Added, error) {
	id, owner := Kind.NewID(), permit.Org()
	var added Added
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Claims: []event.Claim{NameClaim(owner, syntax.NameKey(userName))},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			u, err := add(tx, id)
			if err != nil {
				return err
			}
			added = Added{ID: id, Details: u.Details()}
			return nil
		},
	}, &added))
	return added, err
}
