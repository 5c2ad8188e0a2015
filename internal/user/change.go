package user

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
)

// Mine is the caller's own user. Errors: ErrNotFound when it was removed meanwhile.
func Mine(caller *access.Caller) event.Target[User] {
	return event.Target[User]{Kind: Kind, ID: caller.UserID, Origin: caller.Origin(), Reach: present}
}

// Within is a user the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[User] {
	return event.Target[User]{Kind: Kind, ID: id, Origin: permit.Origin(), Reach: func(o *event.Object[User]) error {
		if o == nil || o.Data.State == Removed || !permit.Reaches(o.Org) {
			return ErrNotFound
		}
		return nil
	}}
}

// Covered is a user the permit reaches and who holds no more than the caller: for what could be used to become that user. Errors: ErrNotFound;
// access.ErrTargetHoldsMore.
func Covered(permit access.Permit, id string) event.Target[User] {
	return Within(permit, id).And(func(u *User) error { return permit.Covers(u.Memberships) })
}

func present(o *event.Object[User]) error {
	if o == nil || o.Data.State == Removed {
		return ErrNotFound
	}
	return nil
}

// MustBeHuman refuses service users.
func MustBeHuman(u *User) error {
	if u.Human == nil {
		return ErrNotHuman
	}
	return nil
}

// MustBeService refuses people.
func MustBeService(u *User) error {
	if u.Service == nil {
		return ErrNotService
	}
	return nil
}

// UserNameChanged records another user name.
type UserNameChanged struct {
	Personal UserNameFacts `json:"-"`
}

// UserNameFacts holds the new values; nil: as before.
type UserNameFacts struct {
	UserName    *string `json:"userName,omitempty"`
	UserNameKey *string `json:"userNameKey,omitempty"`
}

// EventType implements event.Fact.
func (UserNameChanged) EventType() event.Type { return "user.user_name_changed.v1" }

// Apply implements event.Fact.
func (e UserNameChanged) Apply(u *User) {
	event.Set(&u.UserName, e.Personal.UserName)
	event.Set(&u.UserNameKey, e.Personal.UserNameKey)
}

// SetUserName gives a user of either type another name; the one before becomes free. Errors: InvalidArgument on userName; ErrNotFound;
// access.ErrTargetHoldsMore; ErrUserNameTaken; Aborted when match does not hold.
func SetUserName(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, userName string) (event.Details, error) {
	if err := errs.Wrong("userName", syntax.Name(userName)); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(userName)
	claim := event.Command{Claims: []event.Claim{NameClaim(permit.Org(), key)}}
	return Covered(permit, id).Needs(claim).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		holder, err := tx.Holder(NameClaim(u.Org, key))
		if err != nil {
			return err
		}
		if holder != "" && holder != u.ID { // the same name in another spelling is the user's own
			return ErrUserNameTaken
		}
		return u.Append(UserNameChanged{Personal: UserNameFacts{
			UserName:    event.Changed(u.Data.UserName, userName),
			UserNameKey: event.Changed(u.Data.UserNameKey, key),
		}})
	})
}

// ServiceChanged records which parts of the description of a service user are different now.
type ServiceChanged struct {
	Personal ServiceChanges `json:"-"`
}

// ServiceChanges holds the new values; nil: as before.
type ServiceChanges struct {
	Name        *string `json:"name,omitempty"`
	NameKey     *string `json:"nameKey,omitempty"`
	Description *string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (ServiceChanged) EventType() event.Type { return "user.service_changed.v1" }

// Apply implements event.Fact.
func (e ServiceChanged) Apply(u *User) {
	if u.Service == nil {
		return
	}
	event.Set(&u.Service.Name, e.Personal.Name)
	event.Set(&u.Service.NameKey, e.Personal.NameKey)
	event.Set(&u.Service.Description, e.Personal.Description)
}

// ReplaceService replaces name and description of a service user. Errors: InvalidArgument with violations; ErrNotFound; ErrNotService; Aborted when match
// does not hold.
func ReplaceService(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, name, description string) (event.Details, error) {
	if err := serviceViolations(name, description).Err(); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(name)
	return Within(permit, id).And(MustBeService).Change(ctx, s, match, func(_ *event.Tx, u *event.Object[User]) error {
		old := u.Data.Service
		return u.Append(ServiceChanged{Personal: ServiceChanges{
			Name:        event.Changed(old.Name, name),
			NameKey:     event.Changed(old.NameKey, key),
			Description: event.Changed(old.Description, description),
		}})
	})
}
