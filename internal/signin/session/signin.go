package session

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/guessing"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// SignInFailed is the reason of every failed sign-in.
const SignInFailed errs.Reason = "SIGN_IN_FAILED"

// ErrSignInFailed is the one answer to a failed sign-in, whatever was wrong.
var ErrSignInFailed = errs.New(errs.Unauthenticated, SignInFailed,
	"the login name or the password is wrong, or this user may not sign in")

// Attempt is somebody's try to sign in.
type Attempt struct {
	LoginName string
	Password  string
	OrgID     string // only its users are found; empty: none was named
	// the organization of the application that it is for; empty: there is none, or it is for all organizations
	AppOrg    string
	App       string // the application that it is for; empty: none that is known
	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// SignedIn is a new session. Token is shown this once.
type SignedIn struct {
	SessionID      string
	Token          string
	Expires        time.Time
	UserID         string
	ChangeRequired bool

	// SecondFactorRequired restricts the session until Prove, or until the first factor is enrolled. Ways are those in
	// which the user can prove one; none where none is enrolled yet.
	SecondFactorRequired bool
	Ways                 []Method
}

func userRef(id string) event.Ref { return user.Kind.Ref(id) }

// SignIn opens a session. Errors: ErrSignInFailed after the same work whatever was wrong; ResourceExhausted when
// slowed down, before any work; Unavailable when too many passwords are being checked.
func (s *Sessions) SignIn(ctx context.Context, a Attempt) (in SignedIn, err error) {
	u, typed, err := s.find(ctx, a.LoginName, NameScope{Org: a.OrgID, App: a.AppOrg})
	if err != nil {
		return SignedIn{}, err
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return SignedIn{}, err
	}
	// Throttling depends on the name as typed; otherwise it would reveal which names exist. All organizations that do
	// not exist have one share of the hashing together: otherwise an attacker who makes up organizations would have as
	// many shares as they like.
	there, shareOf, err := org.ReadPolicy(ctx, s.Store, typed.OrgID)
	if err != nil {
		return SignedIn{}, err
	}
	// So do the counts of failures: administrators read those of their organization, and would learn who is in another
	// one.
	at := shareOf
	defer func() { s.Tally.Outcome(at, tally.Password, err) }()
	source := RequestSourceOf(a.Peer, a.UserAgent)
	origin := event.Origin{Actor: event.System, RequestID: a.RequestID}
	purpose := Purpose{Application: a.App, Org: a.OrgID}
	t := s.throttle(policy.Effective(everywhere, there), atPassword(u, typed), idOf(u), a.Peer,
		source).tries(ByPassword, purpose)
	right, upgraded, err := s.try(ctx,
		s.Hasher.Public(shareOf, ratelimit.NetworkName(a.Peer), len(a.LoginName)+len(a.OrgID)), t,
		origin, u, a.Password, whyNoPassword(u, there, shareOf))
	if err != nil {
		return SignedIn{}, err
	}
	if !right {
		return SignedIn{}, ErrSignInFailed
	}
	kept, err := s.keepsPassword(ctx, u)
	if err != nil {
		return SignedIn{}, s.withoutVerdict(ctx, t, origin, err)
	}
	origin.Actor = u.ID
	in, right, err = s.open(ctx, u, everywhere, t, origin, opening{
		way:     policy.WithPassword,
		kept:    kept,
		proof:   Proof{Methods: []Method{ByPassword}},
		refusal: WrongPassword,
		accept: func(tx *event.Tx, now *event.Object[user.User]) (bool, error) {
			// A password set meanwhile wins: the session belongs to the password it verified.
			if now.Data.Password.Version != u.Data.Password.Version {
				return false, nil
			}
			if upgraded != nil {
				tx.PutRow(event.Row{RowKey: user.PasswordRow(u.ID), Value: upgraded})
			}
			return true, nil
		},
	})
	if err == nil && !right {
		return SignedIn{}, ErrSignInFailed
	}
	at = u.Org
	return in, err
}

// opening is what a session is opened on.
type opening struct {
	way    policy.Way
	kept   bool           // the way is open to the user whatever the policy says, see keepsPassword
	proof  Proof          // At is filled in
	rows   []event.RowKey // that accept reads
	accept func(tx *event.Tx, u *event.Object[user.User]) (bool, error)
	// refusal is the reason where accept says no.
	refusal Reason
}

// open makes the session, unless the user changed while the credential was being checked. It lives as the policies say,
// everywhere and in the user's organization.
func (s *Sessions) open(ctx context.Context, u *event.Object[user.User], everywhere policy.Policy, t *throttle,
	origin event.Origin, on opening) (in SignedIn, right bool, err error) {
	made := PrepareSession(u.ID, t.purpose)
	var refused bool
	command := t.declare(event.Command{
		Origin: origin,
		Read:   []event.Ref{org.Kind.Ref(u.Org), installation.Ref},
		Rows:   on.rows,
		Decide: func(tx *event.Tx) error {
			refused = false
			now, err := user.Kind.Get(tx, u.ID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, u.Org)
			if err != nil {
				return err
			}
			why := on.whyNot(now, o)
			if why == "" {
				accepted, err := on.accept(tx, now)
				if err != nil {
					return err
				}
				if !accepted {
					why = on.refusal
				}
			}
			if refused = why != ""; refused {
				return t.Failed(tx, why)
			}
			if err := t.Succeeded(tx); err != nil {
				return err
			}
			return made.Open(tx, now, o, everywhere, on.proof, t.source)
		},
	})
	if err := s.Store.Do(ctx, command); err != nil {
		return SignedIn{}, false, s.withoutVerdict(ctx, t, origin, err)
	}
	if refused {
		return SignedIn{}, false, nil
	}
	return made.SignedIn, true, nil
}

// whyNot tells what keeps somebody out whatever the credential is; empty: nothing does.
func (on *opening) whyNot(u *event.Object[user.User], o *event.Object[org.Org]) Reason {
	switch {
	case u == nil:
		return UserInactive
	case !MaySignIn(&u.Data, o):
		return cmp.Or(WhyNot(&u.Data, o), OrgInactive)
	case !on.kept && !o.Data.Policy.Allows(on.way):
		return WayNotAllowed
	}
	return ""
}

// NewSession is a session that is about to be opened. It counts once its command has.
type NewSession struct {
	SignedIn
	hash    []byte
	purpose Purpose
}

// PrepareSession makes one.
func PrepareSession(userID string, p Purpose) *NewSession {
	token, hash := secret.NewToken(secret.Session)
	return &NewSession{SignedIn{SessionID: event.NewID("ses"), Token: token, UserID: userID}, hash, p}
}

// Open opens it for a user who may sign in, with a proof whose time is filled in. The command declared the user, the
// organization and the installation for reading, and the user's Companion for writing.
func (n *NewSession) Open(tx *event.Tx, u *event.Object[user.User], o *event.Object[org.Org], everywhere policy.Policy,
	proof Proof, source RequestSource) error {
	i, err := installationStanding(tx)
	if err != nil {
		return err
	}
	proof.At = tx.Now()
	expires := proof.Live(tx.Now(), policy.Effective(everywhere, o.Data.Policy))
	opened := event.Token{
		ID:       n.SessionID,
		Hash:     n.hash,
		Kind:     string(secret.Session),
		Name:     nameOf(source),
		UserID:   u.ID,
		Epoch:    u.Data.SessionEpoch,
		OrgEpoch: o.Data.Epoch,
		Created:  tx.Now(),
		Expires:  expires,
		Data:     proof.text(),
		Provider: proof.Upstream.Of(),
	}
	tx.PutToken(opened)
	n.Expires, n.ChangeRequired = event.Time(expires), u.Data.Password.ChangeRequired
	if n.SecondFactorRequired, err = unproven(&opened, &u.Data.Standing, &o.Data.Standing, i); err != nil {
		return err
	}
	if n.Ways = nil; n.SecondFactorRequired {
		n.Ways = waysOf(u.Data.Human)
	}
	return record(tx, u.ID, Succeeded{SessionID: n.SessionID, Method: proof.Way(), Provider: proof.Upstream.Of(),
		Application: n.purpose.Application, BoundTo: n.purpose.Org, Personal: source})
}

// installationStanding reads the part of the installation that decides about credentials, in a command that declared
// it.
func installationStanding(tx *event.Tx) (*installation.Standing, error) {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil || i == nil { // nil before the first start
		return &installation.Standing{}, err
	}
	return &i.Data.Standing, nil
}

// waysOf are the ways in which somebody can prove a second factor.
func waysOf(h *user.Human) (ways []Method) {
	if h.Has(user.TOTP) {
		ways = append(ways, ByTOTP)
	}
	if h.Has(user.Passkey) {
		ways = append(ways, ByPasskey)
	}
	if h != nil && h.RecoveryCodes > 0 {
		ways = append(ways, ByRecovery)
	}
	return ways
}

// MaySignIn tells whether a person may sign in at all.
func MaySignIn(u *user.User, o *event.Object[org.Org]) bool {
	return u.State == user.Active && u.Human != nil && o != nil && o.Data.State == org.Active
}

// verify checks a password with the same work whether or not there is somebody to check it for.
func (s *Sessions) verify(ctx context.Context, hasher *secret.Hasher, u *event.Object[user.User],
	password string) (right bool, upgraded []byte, err error) {
	stored, err := s.Store.Row(ctx, user.PasswordRow(cmp.Or(idOf(u), NobodyID)))
	if err != nil {
		return false, nil, err
	}
	if stored == nil {
		return false, nil, hasher.VerifyNothing(ctx, password)
	}
	right, upgraded, err = hasher.Verify(ctx, stored.Value, password)
	if errors.Is(err, secret.ErrUnusableHash) {
		return false, nil, nil
	}
	return right, upgraded, err
}

// try checks a password where the throttle lets it, and counts what comes out: why is the reason if it is wrong. A wrong
// password counts even when the caller has hung up. An attempt that came to no verdict is not held against anybody. A
// right one is still to be settled: by succeeded or withoutVerdict.
func (s *Sessions) try(ctx context.Context, hasher *secret.Hasher, t *throttle, origin event.Origin,
	u *event.Object[user.User], password string, why Reason) (right bool, upgraded []byte, err error) {
	if err := s.enter(ctx, t, origin); err != nil {
		return false, nil, err
	}
	right, upgraded, err = s.verify(ctx, hasher, u, password)
	if err != nil {
		return false, nil, s.withoutVerdict(ctx, t, origin, err)
	}
	if !right {
		err = s.settle(ctx, t, origin, t.failed(why))
	}
	return right, upgraded, err
}

// enter counts an attempt that is about to be made. Errors: ResourceExhausted when slowed down.
func (s *Sessions) enter(ctx context.Context, t *throttle, origin event.Origin) error {
	var refusal error
	err := s.Store.Do(ctx, event.Command{Origin: origin, Rows: t.Rows(), Decide: func(tx *event.Tx) (err error) {
		refusal, err = t.Enter(tx)
		return err
	}})
	if err != nil {
		return err
	}
	return refusal
}

// withoutVerdict takes back an attempt that err kept from being decided, and returns err.
func (s *Sessions) withoutVerdict(ctx context.Context, t *throttle, origin event.Origin, err error) error {
	if also := s.settle(ctx, t, origin, t.TakenBack); also != nil {
		return errors.Join(err, also)
	}
	return err
}

const settleTime = 10 * time.Second // to write down what came out of an attempt

// settle counts what came out of an attempt, whether or not its caller is still there.
func (s *Sessions) settle(ctx context.Context, t *throttle, origin event.Origin, decide func(*event.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return s.Store.Do(ctx, t.declare(event.Command{Origin: origin, Decide: decide}))
}

// atPassword is an attempt at a password under a name as typed, in the form that find gives. u is nil where nobody has
// it.
func atPassword(u *event.Object[user.User], typed TypedName) guessing.Aim {
	account, version := typed.Parts(), "0"
	trusted := account
	if u != nil {
		trusted = []string{"user", u.ID, strconv.FormatInt(u.Data.Password.Version, 10)}
		version = round(&u.Data)
		account = []string{"user", u.ID, version}
	}
	return guessing.Aim{Typed: append(typed.Parts(), version), Account: account, Trusted: trusted}
}

// round is what attempts at a user's credentials count in: another password, and somebody who clears the throttle, start
// another one.
func round(u *user.User) string {
	version := strconv.FormatInt(u.Password.Version, 10)
	if u.Password.Cleared > 0 {
		version += "." + strconv.FormatInt(u.Password.Cleared, 10)
	}
	return version
}

// idOf is the id of a user; empty where there is none.
func idOf(u *event.Object[user.User]) string {
	if u == nil {
		return ""
	}
	return u.ID
}

// atOwnPassword is an attempt by somebody who is signed in. It counts like one to sign in with the user name.
func atOwnPassword(u *event.Object[user.User]) guessing.Aim {
	return atPassword(u, typedNameIn(u.Org, u.Data.UserNameKey))
}

// RequestSourceOf is where a request came from.
func RequestSourceOf(peer netip.Addr, userAgent string) RequestSource {
	const most = 200
	if len(userAgent) > most {
		userAgent = strings.ToValidUTF8(userAgent[:most], "")
	}
	p := RequestSource{UserAgent: userAgent}
	if peer.IsValid() {
		p.Address = peer.String()
	}
	return p
}

// ChangePassword is a person's own change of the password. Without Current, see ReplacesWithoutCurrent.
type ChangePassword struct {
	Current, New string
	EndTokens    bool // personal access tokens and what applications were given, too
	Peer         netip.Addr
	UserAgent    string
}

// ChangePassword replaces the caller's password and ends all sessions but the one it came by, and tokens where that is
// asked for. Errors: user.ErrNotHuman; InvalidArgument on newPassword when the policy does not allow it;
// InvalidArgument on currentPassword, which counts like a failed sign-in; ResourceExhausted when slowed down; Aborted
// when match does not hold or the password was set meanwhile.
func (s *Sessions) ChangePassword(ctx context.Context, caller *access.Caller, match event.IfMatch,
	p ChangePassword) (event.Details, error) {
	u, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return event.Details{}, err
	}
	if u.Data.Human == nil {
		return event.Details{}, user.ErrNotHuman
	}
	rules, err := org.Settings(ctx, s.Store, u.Org)
	if err != nil {
		return event.Details{}, err
	}
	if wrong := rules.Chosen().Violations("newPassword", p.New); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	version := u.Data.Password.Version
	source := RequestSourceOf(p.Peer, p.UserAgent)
	t := s.throttle(rules, atOwnPassword(u), u.ID, p.Peer, source).tries(ByPassword, Purpose{})
	after := *u
	after.Data.Password = user.Password{Version: version + 1}
	renewed := s.throttle(rules, atOwnPassword(&after), u.ID, p.Peer, source)
	if err := s.checkCurrent(ctx, caller, t, u, p); err != nil {
		return event.Details{}, err
	}
	hash, err := s.Hasher.For(caller.OrgID).Hash(ctx, p.New)
	if err != nil {
		return event.Details{}, s.withoutVerdict(ctx, t, caller.Origin(), err)
	}
	needs := event.Command{Write: []event.Ref{Kind.Ref(IDFor(u.ID))}, Rows: t.rows()}
	details, err := user.Mine(caller).And(mustBeActive).Needs(needs).Change(ctx, s.Store, match,
		func(tx *event.Tx, now *event.Object[user.User]) error {
			if now.Data.Password.Version != version || now.Data.SessionEpoch != u.Data.SessionEpoch {
				return errPasswordMoved
			}
			if caller.TokenKind == string(secret.Session) {
				tx.AdvanceToken(caller.TokenID, now.Data.SessionEpoch, now.Data.SessionEpoch+1)
			}
			renewed.MarkGood(tx)
			return errors.Join(t.Succeeded(tx),
				user.PutPassword(tx, now, hash, user.PasswordChanged{EndTokens: p.EndTokens}))
		})
	if err != nil {
		return event.Details{}, s.withoutVerdict(ctx, t, caller.Origin(), err) // the password was right
	}
	return details, nil
}

// UnchangedPassword says that somebody who has to replace a password keeps it.
const UnchangedPassword errs.ProblemReason = "PASSWORD_UNCHANGED"

// ReplacesWithoutCurrent tells whether a caller need not type the current password to change it: only who has to
// replace one that somebody else chose, in a session that has proven it a short while ago. Such a session can do
// nothing else.
func ReplacesWithoutCurrent(caller *access.Caller, now time.Time) bool {
	if !caller.MustChangePassword || !Recent(caller, now) {
		return false
	}
	proof, err := ProofOf(caller.Session)
	return err == nil && slices.Contains(proof.Methods, ByPassword) // a passkey says nothing about it
}

// checkCurrent refuses a caller who does not know the current password. A caller who need not type it has just signed
// in with it, and has to choose another one.
func (s *Sessions) checkCurrent(ctx context.Context, caller *access.Caller, t *throttle, u *event.Object[user.User],
	p ChangePassword) error {
	hasher := s.Hasher.For(caller.OrgID)
	if p.Current == "" && ReplacesWithoutCurrent(caller, s.Clock()) {
		if err := s.enter(ctx, t, caller.Origin()); err != nil {
			return err
		}
		same, _, err := s.verify(ctx, hasher, u, p.New)
		if err == nil && same {
			err = errs.Invalid(errs.Violation{Field: "newPassword", Reason: UnchangedPassword,
				Message: "is the password that you have to replace: choose another one"})
		}
		if err != nil {
			return s.withoutVerdict(ctx, t, caller.Origin(), err)
		}
		return nil
	}
	right, _, err := s.try(ctx, hasher, t, caller.Origin(), u, p.Current, WrongPassword)
	if err == nil && !right {
		err = errs.Invalid(errs.Violation{Field: "currentPassword", Message: "is not your current password"})
	}
	return err
}

// mustBeActive refuses a caller who is not there any more, or not for now.
func mustBeActive(u *user.User) error {
	if u.State != user.Active {
		return user.ErrNotFound
	}
	return nil
}

// ChangePasswordHere is ChangePassword in a browser: the session it came by has another token afterwards, so that a
// copy of the cookie from before ends like all other sessions. Errors: those of ChangePassword.
func (s *Sessions) ChangePasswordHere(ctx context.Context, caller *access.Caller, p ChangePassword) (Stepped, error) {
	if _, err := s.ChangePassword(ctx, caller, event.IfMatch{}, p); err != nil {
		return Stepped{}, err
	}
	from := From{Peer: p.Peer, UserAgent: p.UserAgent, Rotate: true}
	return s.Step(ctx, caller, from, false, event.Command{},
		func(st *InSession) error { return st.prove(ByPassword, from.Source()) })
}

// errPasswordMoved: somebody set the password while the current one was being checked.
var errPasswordMoved = errs.New(errs.Aborted, event.Contention,
	"your password was changed at the same time: sign in again")
