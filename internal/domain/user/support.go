package user

import (
	"context"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/limit/stored"
)

// What support does about users gives nobody access to their accounts: it works like something that only takes away
// (TakesAway). What is sent goes to addresses that are verified already.

// clearsADay is how often the throttle of a user can be cleared within a day: each time, as many guesses are free again.
const (
	clearsADay = 3
	clearedDay = 24 * time.Hour
)

// Reasons around support.
const (
	ClearedTooOften    errs.Reason = "THROTTLE_CLEARED_TOO_OFTEN"
	EmailNotVerified   errs.Reason = "EMAIL_NOT_VERIFIED"
	NotLockedBySupport errs.Reason = "NOT_LOCKED_BY_SUPPORT"
)

// Errors around support.
var (
	ErrEmailNotVerified = errs.New(errs.FailedPrecondition, EmailNotVerified,
		"the e-mail address of this user is not verified: such mails only go to verified addresses")
	ErrNotLockedBySupport = errs.New(errs.FailedPrecondition, NotLockedBySupport,
		"support can only unlock users whom support has locked: ask an administrator of the user's organization")
)

func errClearedTooOften(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: ClearedTooOften, RetryAfter: wait,
		Message: "the throttle of this user was cleared " + strconv.Itoa(clearsADay) + " times within a day: wait " +
			errs.Seconds(wait) + " s, or let the user reset the password"}
}

// ThrottleCleared records that failed attempts at the user's credentials no longer count.
type ThrottleCleared struct{}

// EventType implements event.Fact.
func (ThrottleCleared) EventType() event.Type { return "user.throttle_cleared.v1" }

// Apply implements event.Fact.
func (ThrottleCleared) Apply(u *User) { u.Password.Cleared++ }

// ClearThrottle lets failed attempts at a user's credentials no longer count. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; access.ErrNotForSupport; ResourceExhausted when it was done too often; Aborted when match
// does not hold.
func ClearThrottle(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	count := stored.Of[stored.Window](master, "throttle cleared", id)
	needs := event.Command{Rows: []event.RowKey{count.Row}}
	return TakesAway(permit, id).Needs(needs).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[User]) error {
		cleared, err := count.Get(tx)
		if err != nil {
			return err
		}
		cleared = cleared.Since(tx.Now(), clearedDay)
		if wait := cleared.Wait(tx.Now(), clearsADay, clearedDay); wait > 0 {
			return errClearedTooOften(wait)
		}
		count.Put(tx, append(cleared, tx.Now()), clearedDay)
		return u.Append(ThrottleCleared{})
	})
}

// SendVerification records that a person is to prove the e-mail address once more, which is verified already; the
// mailer makes the code, see MailedCode. mail: this installation sends mail. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; access.ErrNotForSupport; ErrNotHuman; ErrEmailNotVerified; ErrDeliveryNotConfigured;
// ResourceExhausted when there were too many mails.
func SendVerification(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit,
	id string, mail bool) error {
	count := EmailCodes(master, id)
	who := TakesAway(permit, id).And(MustBeHuman).Needs(event.Command{Rows: []event.RowKey{count.Row}})
	_, err := who.Change(ctx, s, event.IfMatch{}, func(tx *event.Tx, u *event.Object[User]) error {
		switch {
		case !u.Data.Human.Email.Verified:
			return ErrEmailNotVerified
		case !mail:
			return ErrDeliveryNotConfigured
		}
		wait, err := count.Take(tx)
		if err != nil {
			return err
		}
		if wait > 0 {
			return mailcount.TooMany(wait)
		}
		return u.Append(EmailCodeRequested{Again: true})
	})
	return err
}
