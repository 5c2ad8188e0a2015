package session

import (
	"context"
	"errors"
	"net/netip"
	"strconv"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/guessing"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// Answer is what somebody proves a second factor with. Exactly one field is set.
type Answer struct {
	TOTPCode     string
	RecoveryCode string
	Assertion    string // of a passkey, to the challenge of StartProof
}

// field is the name of what was sent, in the names of the API.
func (a Answer) field() string {
	switch {
	case a.TOTPCode != "":
		return "totpCode"
	case a.RecoveryCode != "":
		return "recoveryCode"
	}
	return "assertion"
}

func (a Answer) method() Method {
	switch {
	case a.TOTPCode != "":
		return ByTOTP
	case a.RecoveryCode != "":
		return ByRecovery
	}
	return ByPasskey
}

// StartProof begins to prove a passkey in the caller's session, and gives what the browser needs. Errors:
// PermissionDenied without a session; factor.ErrNoPasskey; factor.ErrPasskeysUnavailable.
func (s *Sessions) StartProof(ctx context.Context, caller *access.Caller) (options string, err error) {
	started, err := s.start(ctx, caller, func(*InSession) error { return nil }, s.Factors.StartProof)
	if err != nil {
		return "", err
	}
	return started.Options, nil
}

// start makes a challenge for the caller's session, where the session may have one.
func (s *Sessions) start(ctx context.Context, caller *access.Caller, may func(*InSession) error,
	begin func(u *event.Object[user.User], row *event.Row,
		sessionID string) (*factor.Started, error)) (started *factor.Started, err error) {
	row := user.FactorsRow(caller.UserID)
	_, err = s.Step(ctx, caller, From{}, false, event.Command{Rows: []event.RowKey{row}}, func(st *InSession) error {
		if err := may(st); err != nil {
			return err
		}
		kept, err := st.tx.Row(row)
		if err != nil {
			return err
		}
		if started, err = begin(st.user, kept, st.session.ID); err != nil {
			return err
		}
		started.Put(st.tx)
		return nil
	})
	return started, err
}

// Prove proves a second factor in the caller's session, which is a full one afterwards, with a proof that is recent.
// Errors: PermissionDenied without a session; InvalidArgument on what was sent, which counts like a failed sign-in;
// ResourceExhausted when slowed down, before anything is checked; access.ErrUnauthenticated when the session has ended
// meanwhile.
func (s *Sessions) Prove(ctx context.Context, caller *access.Caller, a Answer, from From) (Stepped, error) {
	if caller.TokenKind != string(secret.Session) {
		return Stepped{}, errSessionOnly // before it counts
	}
	var assertion *factor.Assertion
	rows := []event.RowKey{user.FactorsRow(caller.UserID)}
	if a.method() == ByPasskey {
		var err error
		if assertion, err = factor.ReadAssertion(a.field(), a.Assertion); err != nil {
			return Stepped{}, err
		}
		rows = append(rows, assertion.Row())
	}
	t, err := s.factorThrottle(ctx, caller, a.method(), from)
	if err != nil {
		return Stepped{}, err
	}
	if err := s.enter(ctx, t, caller.Origin()); err != nil {
		return Stepped{}, err
	}
	if assertion != nil {
		if err := s.verifyProof(ctx, caller, assertion); err != nil {
			return Stepped{}, s.withoutVerdict(ctx, t, caller.Origin(), err)
		}
	}
	right := false
	command := t.declare(event.Command{Rows: rows})
	// A recovery code that is spent is a fact about the user, the use of a factor is not.
	out, err := s.Step(ctx, caller, from, a.method() == ByRecovery, command, func(st *InSession) (err error) {
		switch a.method() {
		case ByTOTP:
			right, err = s.Factors.UseTOTP(st.tx, st.user.ID, a.TOTPCode)
		case ByRecovery:
			right, err = s.Factors.UseRecoveryCode(st.tx, st.user, a.RecoveryCode)
		default:
			right, err = s.Factors.Accept(st.tx, assertion, st.user.ID)
		}
		if err != nil {
			return err
		}
		if !right {
			return t.Failed(st.tx, WrongFactor)
		}
		if err := t.Succeeded(st.tx); err != nil {
			return err
		}
		if err := st.prove(a.method(), t.source); err != nil {
			return err
		}
		if st.passkeys && assertion != nil && assertion.Verified() {
			st.proof.FirstAt = 0 // as where somebody signs in with nothing else
			st.proof.known()
		}
		return nil
	})
	if err != nil {
		return Stepped{}, s.withoutVerdict(ctx, t, caller.Origin(), err)
	}
	if !right {
		return Stepped{}, errs.Invalid(errs.Violation{Field: a.field(), Message: "is wrong, already used or expired"})
	}
	return out, nil
}

// verifyProof checks the signature of an assertion outside of any command. What comes out is asked for by
// Factors.Accept.
func (s *Sessions) verifyProof(ctx context.Context, caller *access.Caller, a *factor.Assertion) error {
	me, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return err
	}
	_, err = s.Factors.VerifyProof(ctx, s.Store, a, me, caller.TokenID)
	return err
}

// factorThrottle slows down who guesses second factors of the caller, each kind for itself. A code of six digits is
// soon guessed at the rate that passwords may be tried at: codes have an allowance for the day besides. Only who knows
// the password comes this far, so the account may be held up for as long as the network; a new password starts afresh.
// A network is known where a second factor of any kind was proven: the password alone makes none known.
func (s *Sessions) factorThrottle(ctx context.Context, caller *access.Caller, method Method,
	from From) (*throttle, error) {
	rules, err := org.Settings(ctx, s.Store, caller.OrgID)
	if err != nil {
		return nil, err
	}
	me, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return nil, err
	}
	a := guessing.At("second factor", string(method), me.ID, round(&me.Data))
	a.Trusted = trustedFactor(me.ID)
	var t *throttle
	a.Report = func(tx *event.Tx, r guessing.Report) error {
		if r.Guessed > 0 {
			return recordBy(tx, event.System, me.ID,
				SecondFactorGuessed{Method: method, Count: r.Guessed, Personal: t.source})
		}
		return t.record(tx, r)
	}
	t = s.throttle(rules, a, me.ID, from.Peer, from.Source()).tries(method, Purpose{Application: from.App})
	t.Limits.Account.Ceiling = t.Limits.Network.Ceiling
	if method != ByPasskey { // which nobody guesses
		// Who clears the throttle gives back no guesses of the day.
		t.ByTheDay(s.Master, guessing.At("second factor", string(method), me.ID,
			strconv.FormatInt(me.Data.Password.Version, 10)))
	}
	return t, nil
}

// trustedFactor is what a network is remembered for where a user has proven a second factor.
func trustedFactor(userID string) []string { return []string{"second factor", userID} }

// Reauthenticate takes the password of the caller once more, so that the proof of the session is recent. Errors:
// PermissionDenied without a session; ErrMethodNotAllowed; InvalidArgument on password, which counts like a failed
// sign-in; ResourceExhausted when slowed down; Unavailable when too many passwords are being checked;
// access.ErrUnauthenticated when the session has ended meanwhile.
func (s *Sessions) Reauthenticate(ctx context.Context, caller *access.Caller, password string,
	from From) (Stepped, error) {
	me, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return Stepped{}, err
	}
	if me.Data.Human == nil {
		return Stepped{}, user.ErrNotHuman
	}
	if err := s.mayUsePassword(ctx, me); err != nil {
		return Stepped{}, err
	}
	if _, err := s.Step(ctx, caller, From{}, false, event.Command{},
		func(*InSession) error { return nil }); err != nil {
		return Stepped{}, err // hashing is only for those who are in a session
	}
	rules, err := org.Settings(ctx, s.Store, me.Org)
	if err != nil {
		return Stepped{}, err
	}
	t := s.throttle(rules, atOwnPassword(me), me.ID, from.Peer,
		from.Source()).tries(ByPassword, Purpose{Application: from.App})
	right, upgraded, err := s.try(ctx, s.Hasher.For(caller.OrgID), t, caller.Origin(), me, password, WrongPassword)
	if err != nil {
		return Stepped{}, err
	}
	if !right {
		return Stepped{}, errWrongPassword()
	}
	out, err := s.Step(ctx, caller, from, false, t.declare(event.Command{}), func(st *InSession) error {
		if right = st.user.Data.Password.Version == me.Data.Password.Version; !right {
			return t.Failed(st.tx, WrongPassword)
		}
		if err := t.Succeeded(st.tx); err != nil {
			return err
		}
		if upgraded != nil {
			st.tx.PutRow(event.Row{RowKey: user.PasswordRow(me.ID), Value: upgraded})
		}
		return st.prove(ByPassword, t.source)
	})
	if err != nil {
		return Stepped{}, s.withoutVerdict(ctx, t, caller.Origin(), err)
	}
	if !right {
		return Stepped{}, errWrongPassword()
	}
	return out, nil
}

func errWrongPassword() error {
	return errs.Invalid(errs.Violation{Field: "password", Message: "is not your password"})
}

// errPasskeyFailed is the one answer to a failed sign-in with a passkey, whatever was wrong.
var errPasskeyFailed = errs.New(errs.Unauthenticated, SignInFailed,
	"this passkey is unknown, its challenge is used or expired, or this user may not sign in")

// PasskeyRemoved is the reason of ErrPasskeyRemoved.
const PasskeyRemoved errs.Reason = "PASSKEY_REMOVED"

// ErrPasskeyRemoved is the answer to the owner of a passkey that counts no more: only who holds it gets it.
var ErrPasskeyRemoved = errs.New(errs.Unauthenticated, PasskeyRemoved,
	"this passkey was removed from its account: sign in in another way, and delete it from your device")

// PasskeyAttempt is somebody's try to sign in with nothing but a passkey.
type PasskeyAttempt struct {
	Assertion string // to the challenge of StartPasskeySignIn
	OrgID     string // empty: any
	App       string // the application that it is for; empty: none that is known
	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// StartPasskeySignIn begins a sign-in without a login name, and gives what the browser needs. Nothing is stored for it.
// Errors: factor.ErrPasskeysUnavailable.
func (s *Sessions) StartPasskeySignIn() (options string, err error) {
	return s.Factors.StartSignIn(s.Clock())
}

// SignInWithPasskey opens a session for the owner of a passkey, who has proven both factors by it. Errors:
// InvalidArgument where the assertion cannot be read; Unauthenticated whatever else is wrong; ResourceExhausted when
// slowed down, or where too much was begun from the network.
func (s *Sessions) SignInWithPasskey(ctx context.Context, a PasskeyAttempt) (in SignedIn, err error) {
	if err := s.NetworkLimiter.Take(a.Peer, 1); err != nil {
		return SignedIn{}, err
	}
	assertion, err := factor.ReadAssertion("assertion", a.Assertion)
	if err != nil {
		return SignedIn{}, err
	}
	u, err := user.Kind.Read(ctx, s.Store, assertion.UserID())
	if err != nil {
		return SignedIn{}, err
	}
	if u != nil && (u.Data.State == user.Removed || a.OrgID != "" && u.Org != a.OrgID) {
		u = nil
	}
	userID, at := "", ""
	if u != nil {
		userID, at = u.ID, u.Org
	}
	defer func() { s.Tally.Outcome(at, tally.Passkey, err) }()
	origin := event.Origin{Actor: event.System, RequestID: a.RequestID}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return SignedIn{}, err
	}
	// Whose policy slows down must not tell which users there are.
	passkey := guessing.At("passkey", assertion.UserID())
	passkey.Trusted = trustedFactor(assertion.UserID())
	t := s.throttle(policy.Effective(everywhere, policy.Policy{}), passkey, userID, a.Peer,
		RequestSourceOf(a.Peer, a.UserAgent)).tries(ByPasskey, Purpose{Application: a.App, Org: a.OrgID})
	if err := s.enter(ctx, t, origin); err != nil {
		return SignedIn{}, err
	}
	right := false
	if u != nil {
		if right, err = s.Factors.VerifySignIn(ctx, s.Store, assertion, u); err != nil {
			return SignedIn{}, s.withoutVerdict(ctx, t, origin, err)
		}
	}
	if !right {
		removed, why := false, PasskeyRefused
		if u != nil {
			removed, err = s.Factors.WasRemoved(ctx, s.Store, assertion, u)
		}
		if removed {
			why = PasskeyIsRemoved
		}
		if err := errors.Join(s.settle(ctx, t, origin, t.failed(why)), err); err != nil {
			return SignedIn{}, err
		}
		if removed {
			return SignedIn{}, ErrPasskeyRemoved
		}
		return SignedIn{}, errPasskeyFailed
	}
	origin.Actor = userID
	in, right, err = s.open(ctx, u, everywhere, t, origin, opening{
		way:     policy.WithPasskey,
		refusal: PasskeyRefused,
		proof:   Proof{Methods: []Method{ByPasskey}, SecondFactor: true},
		rows:    []event.RowKey{assertion.Row(), user.FactorsRow(userID)},
		accept: func(tx *event.Tx, now *event.Object[user.User]) (bool, error) {
			return s.Factors.Accept(tx, assertion, now.ID)
		},
	})
	if err == nil && !right {
		return SignedIn{}, errPasskeyFailed
	}
	return in, err
}
