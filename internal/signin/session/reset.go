package session

import (
	"context"
	"errors"
	"net/netip"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/guessing"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// resetCounts is how many starts asking for a reset counts as: it may send somebody a mail.
const resetCounts = 10

// ResetRequest is somebody who says to have forgotten the password.
type ResetRequest struct {
	LoginName string
	OrgID     string // as in Attempt
	AppOrg    string // likewise
	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// RequestReset has a mail sent to the user of a login name, if there is one. Nobody learns from it whether there is, or
// whether a mail goes out: not by the answer, and not by the work that is done before it, which is to store the
// request. Errors: ResourceExhausted where too much was begun from the network, whoever is named.
func (s *Sessions) RequestReset(ctx context.Context, r ResetRequest) error {
	if err := s.NetworkLimiter.Take(r.Peer, resetCounts); err != nil {
		return err
	}
	return s.await(ctx, r)
}

// Reset is a new password on the word of a code that was sent by mail.
type Reset struct {
	UserID    string
	Code      string
	Password  string
	Answer    Answer // a second factor, where it is asked for; a passkey answers a challenge of StartPasskeySignIn
	Peer      netip.Addr
	UserAgent string
	RequestID string

	kept bool // see keepsPassword
}

// Reset replaces a password and ends all sessions and tokens of the user. A second factor is needed after it as before.
// Errors: InvalidArgument on code, whatever is wrong with it, the user or the organization; ResourceExhausted when
// slowed down, before the code is looked at, or where too much was begun from the network; InvalidArgument on
// newPassword where a policy asks for more, which leaves the code as it is; PermissionDenied where a second factor is
// needed first, InvalidArgument on it where it is wrong; Unavailable when too many passwords are being hashed.
func (s *Sessions) Reset(ctx context.Context, r Reset) (event.Details, error) {
	if err := s.NetworkLimiter.Take(r.Peer, 1); err != nil {
		return event.Details{}, err
	}
	rules, err := org.Settings(ctx, s.Store, s.DefaultOrg) // the same for every user ID, also for an unknown one
	if err != nil {
		return event.Details{}, err
	}
	aim := guessing.At("reset", r.UserID)
	aim.Report = func(*event.Tx, guessing.Report) error { return nil } // wrong codes are no failed sign-ins
	t := s.throttle(rules, aim, "", r.Peer, RequestSourceOf(r.Peer, r.UserAgent))
	origin := event.Origin{Actor: event.System, RequestID: r.RequestID}
	orgID, held, err := s.tryReset(ctx, t, origin, &r)
	if err != nil {
		return event.Details{}, err
	}
	second, err := s.secondFactorOf(ctx, &r, orgID, held)
	if err != nil {
		return event.Details{}, s.withoutVerdict(ctx, t, origin, err)
	}
	undecided := func(err error) error {
		return s.withoutVerdict(ctx, t, origin, second.withoutVerdict(ctx, origin, err))
	}
	if rules, err = org.Settings(ctx, s.Store, orgID); err == nil {
		if wrong := rules.Chosen().Violations("newPassword", r.Password); len(wrong) > 0 {
			err = errs.Invalid(wrong...) // the code stays good for another try
		}
	}
	if err != nil {
		return event.Details{}, undecided(err)
	}
	hash, err := s.Hasher.Public(orgID, ratelimit.NetworkName(r.Peer), len(r.Password)).Hash(ctx, r.Password)
	if err != nil {
		return event.Details{}, undecided(err)
	}
	origin.Actor = r.UserID
	var details event.Details
	var right bool
	err = s.Store.Do(ctx, second.declare(event.Command{
		Origin: origin,
		Write:  []event.Ref{userRef(r.UserID)},
		Read:   []event.Ref{org.Kind.Ref(orgID)},
		Rows:   append(t.Rows(), user.ResetRow(r.UserID), user.BeforeRow(r.UserID)),
		Decide: func(tx *event.Tx) error {
			right = false
			u, held, err := s.rightReset(tx, &r, orgID)
			if err != nil {
				return err
			}
			if u == nil { // somebody else has used the code, or it has ended meanwhile
				return errors.Join(t.Throttle.Failed(tx), second.takenBack(tx))
			}
			proven, err := second.prove(tx, u, held)
			if err != nil {
				return err
			}
			if !proven { // the code stays good for another try
				return t.TakenBack(tx)
			}
			if err := t.Succeeded(tx); err != nil {
				return err
			}
			right = true
			tx.DropRow(user.ResetRow(u.ID))
			err = user.PutPassword(tx, u, hash, user.PasswordReset{})
			details = u.Details()
			return err
		},
	}))
	switch {
	case err != nil:
		return event.Details{}, undecided(err)
	case second.refused():
		return event.Details{}, second.refusal()
	case !right:
		return event.Details{}, user.ErrWrongCode()
	}
	return details, nil
}

// tryReset looks at the code before any password is hashed, and gives the user's organization. Every look counts, so
// that the tries of a code are all there are however many come at once.
func (s *Sessions) tryReset(ctx context.Context, t *throttle, origin event.Origin,
	r *Reset) (orgID string, held int64, err error) {
	known, err := user.Kind.Read(ctx, s.Store, r.UserID)
	if err != nil {
		return "", 0, err
	}
	if known != nil {
		orgID = known.Org
		if r.kept, err = s.keepsPassword(ctx, known); err != nil {
			return "", 0, err
		}
	}
	var refusal error
	command := event.Command{Origin: origin, Rows: append(t.Rows(), user.ResetRow(r.UserID), user.BeforeRow(r.UserID)),
		Read: []event.Ref{userRef(r.UserID)}}
	if orgID != "" {
		command.Read = append(command.Read, org.Kind.Ref(orgID))
	}
	command.Decide = func(tx *event.Tx) error {
		if refusal, err = t.Enter(tx); err != nil || refusal != nil {
			return err
		}
		var u *event.Object[user.User]
		if u, held, err = s.rightReset(tx, r, orgID); err != nil {
			return err
		}
		if u == nil {
			refusal = user.ErrWrongCode()
			return t.Throttle.Failed(tx)
		}
		return nil
	}
	if err := s.Store.Do(ctx, command); err != nil {
		return "", 0, err
	}
	return orgID, held, refusal
}

// rightReset gives the user if the code is right and the password can be reset; nil if not. held says that the code
// alone is not enough, as user.ResetDelay does.
func (s *Sessions) rightReset(tx *event.Tx, r *Reset,
	orgID string) (u *event.Object[user.User], held int64, err error) {
	if orgID == "" {
		return nil, 0, nil
	}
	o, err := org.Kind.Get(tx, orgID)
	if err != nil {
		return nil, 0, err
	}
	u, err = user.CheckResetCode(tx, s.Master, r.UserID, r.Code)
	if err != nil || u == nil || !MaySignIn(&u.Data, o) || !r.kept && !o.Data.Policy.Allows(policy.WithPassword) {
		return nil, 0, err
	}
	held, err = user.ResetDelay(tx, u.ID)
	return u, held, err
}
