package user

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// EmailChanged records another e-mail address, or another word on whether it is the person's.
type EmailChanged struct {
	Verified     *bool         `json:"verified,omitempty"`     // nil: as before
	Verification *Verification `json:"verification,omitempty"` // nil: as before, or none where it is not verified
	Personal     EmailFacts    `json:"-"`
}

// EmailFacts holds the new values; nil: as before.
type EmailFacts struct {
	Email    *string `json:"email,omitempty"`
	EmailKey *string `json:"emailKey,omitempty"`
}

// EventType implements event.Fact.
func (EmailChanged) EventType() event.Type { return "user.email_changed.v1" }

// Apply implements event.Fact.
func (e EmailChanged) Apply(u *User) {
	if u.Human == nil {
		return
	}
	event.Set(&u.Human.Email.Address, e.Personal.Email)
	event.Set(&u.Human.Email.Key, e.Personal.EmailKey)
	event.Set(&u.Human.Email.Verified, e.Verified)
	if event.Set(&u.Human.Email.Verification, e.Verification); !u.Human.Email.Verified {
		u.Human.Email.Verification = Verification{}
	}
}

// ApplyAt implements event.EventAware. Events that record on whose word an address is verified leave it out only where
// the verification stays.
func (e EmailChanged) ApplyAt(u *User, at *event.Event) {
	e.Apply(u)
	if u.Human != nil && e.Verification == nil && (e.Personal.EmailKey != nil || e.Verified != nil) {
		u.Human.Email.assume(VerifiedByAdministrator, at)
	}
}

// EmailVerified records that the e-mail address was proven by a code: by the person, unless somebody else was shown the
// code.
type EmailVerified struct {
	Verification *Verification `json:"verification,omitempty"` // missing in the first events
}

// EventType implements event.Fact.
func (EmailVerified) EventType() event.Type { return "user.email_verified.v1" }

// Apply implements event.Fact.
func (e EmailVerified) Apply(u *User) {
	if u.Human != nil {
		u.Human.Email.Verified = true
		event.Set(&u.Human.Email.Verification, e.Verification)
	}
}

// ApplyAt implements event.EventAware.
func (e EmailVerified) ApplyAt(u *User, at *event.Event) {
	if e.Apply(u); u.Human != nil && e.Verification == nil {
		u.Human.Email.assume(VerifiedByOwner, at)
	}
}

// PhoneChanged records another phone number, or another word on whether it is the person's.
type PhoneChanged struct {
	Verified *bool      `json:"verified,omitempty"` // nil: as before
	Personal PhoneFacts `json:"-"`
}

// PhoneFacts holds the new values; nil: as before.
type PhoneFacts struct {
	Phone       *string `json:"phone,omitempty"`
	PhoneNormal *string `json:"phoneNormal,omitempty"`
}

// EventType implements event.Fact.
func (PhoneChanged) EventType() event.Type { return "user.phone_changed.v1" }

// Apply implements event.Fact.
func (e PhoneChanged) Apply(u *User) {
	if u.Human == nil {
		return
	}
	if u.Human.Phone == nil {
		u.Human.Phone = &Phone{}
	}
	event.Set(&u.Human.Phone.Number, e.Personal.Phone)
	event.Set(&u.Human.Phone.Normal, e.Personal.PhoneNormal)
	event.Set(&u.Human.Phone.Verified, e.Verified)
}

// PhoneVerified records that the person proved the phone number.
type PhoneVerified struct{}

// EventType implements event.Fact.
func (PhoneVerified) EventType() event.Type { return "user.phone_verified.v1" }

// Apply implements event.Fact.
func (PhoneVerified) Apply(u *User) {
	if u.Human != nil && u.Human.Phone != nil {
		u.Human.Phone.Verified = true
	}
}

// PhoneRemoved records that there is no phone number any more.
type PhoneRemoved struct{}

// EventType implements event.Fact.
func (PhoneRemoved) EventType() event.Type { return "user.phone_removed.v1" }

// Apply implements event.Fact.
func (PhoneRemoved) Apply(u *User) {
	if u.Human != nil {
		u.Human.Phone = nil
	}
}

// SetEmail replaces a person's e-mail address, and says whether it is known to be theirs. Errors: InvalidArgument on
// email; ErrNotFound; access.ErrTargetHoldsMore; ErrNotHuman; Aborted when match does not hold.
func SetEmail(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, address string,
	verified bool) (event.Details, error) {
	return setEmail(ctx, s, GivesAccess(permit, id), match, address, VerifierOf(permit),
		func(bool) bool { return verified })
}

// SetMyEmail replaces the caller's e-mail address. It counts as unverified until a code has proven it. The very same
// text again is no other address: what was known about it stays. Errors: InvalidArgument on email; ErrNotHuman; Aborted
// when match does not hold.
func SetMyEmail(ctx context.Context, s event.Store, caller *access.Caller, match event.IfMatch,
	address string) (event.Details, error) {
	return setEmail(ctx, s, Mine(caller), match, address, VerifiedByOwner, func(known bool) bool { return known })
}

// setEmail replaces the address. verified tells whether the new one is, given whether the very same one was before.
func setEmail(ctx context.Context, s event.Store, who event.Target[User], match event.IfMatch, address string,
	by Verifier, verified func(known bool) bool) (event.Details, error) {
	key, problem := syntax.Email(address)
	if err := errs.Wrong("email", problem); err != nil {
		return event.Details{}, err
	}
	before := event.Command{Rows: []event.RowKey{BeforeRow(who.ID)}}
	return who.And(MustBeHuman).Needs(before).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		old := u.Data.Human.Email
		now := verified(old.Verified && old.Address == address)
		if now || old.Address != address {
			tx.DropRow(CodeRow(u.ID, ByEmail))
		}
		// the same, unverified, is what the next change would not tell
		if old.Address != address || old.Verified && !now {
			if err := leave(tx, u, who.Origin.Actor == u.ID); err != nil {
				return err
			}
		}
		return u.Append(EmailChanged{
			Verified:     event.Changed(old.Verified, now),
			Verification: saidOver(tx, old, key, now, by),
			Personal: EmailFacts{
				Email:    event.Changed(old.Address, address),
				EmailKey: event.Changed(old.Key, key),
			},
		})
	})
}

// SetPhone replaces a person's phone number, and says whether it is known to be theirs. Errors: InvalidArgument on
// phone; ErrNotFound; access.ErrTargetHoldsMore; ErrNotHuman; Aborted when match does not hold.
func SetPhone(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, number string,
	verified bool) (event.Details, error) {
	return setPhone(ctx, s, GivesAccess(permit, id), match, number, func(bool) bool { return verified })
}

// SetMyPhone replaces the caller's phone number, in the way of SetMyEmail. Errors: InvalidArgument on phone;
// ErrNotHuman; Aborted when match does not hold.
func SetMyPhone(ctx context.Context, s event.Store, caller *access.Caller, match event.IfMatch,
	number string) (event.Details, error) {
	return setPhone(ctx, s, Mine(caller), match, number, func(known bool) bool { return known })
}

func setPhone(ctx context.Context, s event.Store, who event.Target[User], match event.IfMatch, number string,
	verified func(known bool) bool) (event.Details, error) {
	normal, problem := parsePhone(number)
	if err := errs.Wrong("phone", problem); err != nil {
		return event.Details{}, err
	}
	return who.And(MustBeHuman).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		var old Phone
		if u.Data.Human.Phone != nil {
			old = *u.Data.Human.Phone
		}
		now := verified(old.Verified && old.Number == number)
		if now || old.Number != number {
			tx.DropRow(CodeRow(u.ID, ByPhone))
		}
		return u.Append(PhoneChanged{Verified: event.Changed(old.Verified, now), Personal: PhoneFacts{
			Phone:       event.Changed(old.Number, number),
			PhoneNormal: event.Changed(old.Normal, normal),
		}})
	})
}

// RemovePhone leaves a person without a phone number; who has none stays so. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotHuman; Aborted when match does not hold.
func RemovePhone(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return removePhone(ctx, s, GivesAccess(permit, id), match)
}

// RemoveMyPhone leaves the caller without a phone number. Errors: ErrNotHuman; Aborted when match does not hold.
func RemoveMyPhone(ctx context.Context, s event.Store, caller *access.Caller,
	match event.IfMatch) (event.Details, error) {
	return removePhone(ctx, s, Mine(caller), match)
}

func removePhone(ctx context.Context, s event.Store, who event.Target[User],
	match event.IfMatch) (event.Details, error) {
	return who.And(MustBeHuman).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		tx.DropRow(CodeRow(u.ID, ByPhone))
		return u.Append(PhoneRemoved{})
	})
}
