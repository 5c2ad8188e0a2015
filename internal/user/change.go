package user

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/syntax"
)

// subject is the user that a command is about, and on whose word.
type subject struct {
	id     string
	origin event.Origin
	check  func(o *event.Object[User], err error) (*event.Object[User], error) // refuses whom it may not touch
}

// mine is the caller's own user.
func mine(caller *access.Caller) subject {
	return subject{caller.UserID, caller.Origin(), present}
}

// within is a user the permit reaches.
func within(permit access.Permit, id string) subject {
	return subject{id, permit.Origin(), func(o *event.Object[User], err error) (*event.Object[User], error) {
		if err != nil {
			return nil, err
		}
		return Reachable(o, permit)
	}}
}

// covered is a user the permit reaches and who holds no more than the caller: for what could be used to become that user.
func covered(permit access.Permit, id string) subject {
	who := within(permit, id)
	return subject{id, who.origin, func(o *event.Object[User], err error) (*event.Object[User], error) {
		if o, err = who.check(o, err); err != nil {
			return nil, err
		}
		return o, permit.Covers(o.State.Memberships)
	}}
}

// get gives the subject inside a command that declared it. must says of which type it has to be; nil: of any.
func (s subject) get(tx *event.Tx, must func(*User) error) (*event.Object[User], error) {
	u, err := s.check(Kind.Get(tx, s.id))
	if err != nil || must == nil {
		return u, err
	}
	return u, must(&u.State)
}

func isHuman(u *User) error {
	if u.Human == nil {
		return ErrNotHuman
	}
	return nil
}

func isService(u *User) error {
	if u.Service == nil {
		return ErrNotService
	}
	return nil
}

// change records one fact about the subject. c declares what deciding needs besides the subject.
func (s subject) change(ctx context.Context, store event.Store, c event.Command, must func(*User) error, match event.IfMatch,
	decide func(*event.Tx, *event.Object[User]) (event.Fact[User], error)) (event.Details, error) {
	var details event.Details
	c.Origin, c.Write = s.origin, []event.Ref{Kind.Ref(s.id)}
	c.Decide = func(tx *event.Tx) error {
		u, err := s.get(tx, must)
		if err != nil {
			return err
		}
		if err := match.Check(u.Sequence); err != nil {
			return err
		}
		fact, err := decide(tx, u)
		if err != nil {
			return err
		}
		err = u.Append(fact)
		details = u.Details()
		return err
	}
	err := store.Do(ctx, c)
	return details, err
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

// SetUserName gives a user of either type another name; the one before becomes free. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; Aborted when match does not hold; ErrUserNameTaken.
func SetUserName(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, userName string) (event.Details, error) {
	key := syntax.NameKey(userName)
	c := event.Command{Claims: []event.Claim{NameClaim(permit.Org(), key)}}
	return covered(permit, id).change(ctx, s, c, nil, match, func(tx *event.Tx, u *event.Object[User]) (event.Fact[User], error) {
		holder, err := tx.Holder(NameClaim(u.Org, key))
		if err != nil {
			return nil, err
		}
		if holder != "" && holder != u.ID { // the same name in another spelling is the user's own
			return nil, ErrUserNameTaken
		}
		return UserNameChanged{Personal: UserNameFacts{
			UserName:    event.Changed(u.State.UserName, userName),
			UserNameKey: event.Changed(u.State.UserNameKey, key),
		}}, nil
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

// ReplaceService replaces name and description of a service user. Errors: ErrNotFound; ErrNotService; Aborted when match
// does not hold.
func ReplaceService(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, name, description string) (event.Details, error) {
	key := syntax.NameKey(name)
	return within(permit, id).change(ctx, s, event.Command{}, isService, match, func(_ *event.Tx, u *event.Object[User]) (event.Fact[User], error) {
		old := u.State.Service
		return ServiceChanged{Personal: ServiceChanges{
			Name:        event.Changed(old.Name, name),
			NameKey:     event.Changed(old.NameKey, key),
			Description: event.Changed(old.Description, description),
		}}, nil
	})
}
