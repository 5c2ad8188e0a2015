package user

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
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

// TakesAway is a user the permit reaches, for what only takes something away: sessions, tokens, links, being able to
// sign in; and for what support does, which gives nobody access. What the user holds in other organizations does not
// stand in the way. Errors: ErrNotFound; access.ErrTargetHoldsMore; access.ErrNotForSupport.
func TakesAway(permit access.Permit, id string) event.Target[User] {
	return Within(permit, id).And(func(u *User) error { return permit.MayTakeAway(u.Memberships, permit.Org()) })
}

// GivesAccess is a user the permit reaches, for what could be used to become that user. The organizations that have
// given the user roles read in their log that it was done. Errors: ErrNotFound; access.ErrTargetHoldsMore;
// access.ErrHasRolesElsewhere.
func GivesAccess(permit access.Permit, id string) event.Target[User] { return givesAccess(permit, id) }

// givesAccess is GivesAccess where the organizations also read of what is no event of the user.
func givesAccess(permit access.Permit, id string, also ...event.Type) event.Target[User] {
	return Within(permit, id).And(func(u *User) error { return permit.MayGiveAccess(id, u.Memberships, permit.Org()) }).
		Then(func(tx *event.Tx, u *event.Object[User]) error {
			if permit.Origin().Actor == id || !u.Data.Memberships.Elsewhere(u.Org) {
				return nil
			}
			return TellHosts(tx, u, append(u.Appended(), also...)...)
		})
}

// hostsTold is for how long the same about the same user is not told again: an organization cannot fill the log of
// another one.
const hostsTold = 10 * time.Minute

// TellHosts tells the organizations that have given a user roles what others have done about the user's credentials,
// inside a command that event.Do runs.
func TellHosts(tx *event.Tx, u *event.Object[User], done ...event.Type) error {
	hosts := u.Data.Memberships.Hosts(u.Org)
	if len(hosts) == 0 || len(done) == 0 {
		return nil
	}
	row := func(host string, t event.Type) event.RowKey {
		return event.RowKey{Table: event.Throttle, Key: "host_told/" + host + "/" + u.ID + "/" + string(t)}
	}
	var needs event.Command
	for _, host := range hosts {
		needs.Write = append(needs.Write, org.Kind.Ref(host))
		for _, t := range done {
			needs.Rows = append(needs.Rows, row(host, t))
		}
	}
	if err := tx.Require(needs); err != nil {
		return err
	}
	for _, host := range hosts {
		o, err := org.Kind.Get(tx, host)
		if err != nil {
			return err
		}
		if o == nil || o.Data.State == org.Removed {
			continue
		}
		o.ActedBy(u.Org)
		for _, t := range done {
			told, err := tx.Row(row(host, t))
			if err != nil {
				return err
			}
			if told != nil {
				continue
			}
			tx.PutRow(event.Row{RowKey: row(host, t), Expires: tx.Now() + hostsTold.Microseconds()})
			if err := o.Append(org.GuestCredentialSet{UserID: u.ID, Org: u.Org, Event: t}); err != nil {
				return err
			}
		}
	}
	return nil
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

// SetUserName gives a user of either type another name; the one before becomes free. Errors: InvalidArgument on
// userName; ErrNotFound; access.ErrTargetHoldsMore; ErrUserNameTaken; Aborted when match does not hold.
func SetUserName(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	userName string) (event.Details, error) {
	if err := errs.Wrong("userName", syntax.Name(userName)); err != nil {
		return event.Details{}, err
	}
	key := syntax.NameKey(userName)
	claim := event.Command{Claims: []event.Claim{NameClaim(permit.Org(), key)}}
	return GivesAccess(permit, id).Needs(claim).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
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

// ReplaceService replaces name and description of a service user. Errors: InvalidArgument with violations; ErrNotFound;
// ErrNotService; Aborted when match does not hold.
func ReplaceService(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	name, description string) (event.Details, error) {
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
