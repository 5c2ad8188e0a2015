package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/guessing"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/network"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/policy"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/syntax"
	"github.com/signet-idm/signet/internal/user"
)

// SignInFailed is the reason of every failed sign-in.
const SignInFailed errs.Reason = "SIGN_IN_FAILED"

// ErrSignInFailed is the one answer to a failed sign-in, whatever was wrong.
var ErrSignInFailed = errs.New(errs.Unauthenticated, SignInFailed, "the login name or the password is wrong, or this user may not sign in")

// Attempt is somebody's try to sign in.
type Attempt struct {
	LoginName string
	Password  string
	OrgID     string // empty: the name decides, else the default organization
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

	// SecondFactorRequired restricts the session until Prove, or until the first factor is enrolled. Ways are those in which
	// the user can prove one; none where none is enrolled yet.
	SecondFactorRequired bool
	Ways                 []Method
}

func userRef(id string) event.Ref { return user.Kind.Ref(id) }

// SignIn opens a session. Errors: ErrSignInFailed after the same work whatever was wrong; ResourceExhausted when
// slowed down, before any work; Unavailable when too many passwords are being checked.
func (s *Sessions) SignIn(ctx context.Context, a Attempt) (SignedIn, error) {
	u, typed, err := s.find(ctx, a.LoginName, a.OrgID)
	if err != nil {
		return SignedIn{}, err
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return SignedIn{}, err
	}
	// How guessing is slowed down follows from the name as typed, or it would tell which names exist.
	leadsTo := typed[1]
	there, shareOf, err := org.LeadsTo(ctx, s.Store, leadsTo)
	if err != nil {
		return SignedIn{}, err
	}
	place := placeOf(a.Peer, a.UserAgent)
	origin := event.Origin{Actor: event.System, RequestID: a.RequestID}
	t := s.throttle(policy.Effective(everywhere, there), atPassword(u, typed), idOf(u), a.Peer, place)
	right, upgraded, err := s.try(ctx, s.Hasher.Public(shareOf, network.Name(a.Peer), len(a.LoginName)+len(a.OrgID)), t, origin, u, a.Password)
	if err != nil {
		return SignedIn{}, err
	}
	if !right {
		return SignedIn{}, ErrSignInFailed
	}
	origin.Actor = u.ID
	in, right, err := s.open(ctx, u, everywhere, t, origin, opening{proof: Proof{Methods: []Method{ByPassword}}, accept: func(tx *event.Tx, now *event.Object[user.User]) (bool, error) {
		// A password set meanwhile wins: the session belongs to the password it verified.
		if now.State.Password.Version != u.State.Password.Version {
			return false, nil
		}
		if upgraded != nil {
			tx.PutRow(event.Row{RowKey: user.PasswordRow(u.ID), Value: upgraded})
		}
		return true, nil
	}})
	if err == nil && !right {
		return SignedIn{}, ErrSignInFailed
	}
	return in, err
}

// opening is what a session is opened on.
type opening struct {
	proof  Proof          // At is filled in
	rows   []event.RowKey // that accept reads
	accept func(tx *event.Tx, u *event.Object[user.User]) (bool, error)
}

// open makes the session, unless the user changed while the credential was being checked. It lives as the policies say,
// everywhere and in the user's organization.
func (s *Sessions) open(ctx context.Context, u *event.Object[user.User], everywhere policy.Policy, t *throttle, origin event.Origin, on opening) (in SignedIn, right bool, err error) {
	token, hash := secret.NewToken(secret.Session)
	in = SignedIn{SessionID: event.NewID("ses"), Token: token, UserID: u.ID}
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
			i, err := installationStanding(tx)
			if err != nil {
				return err
			}
			if refused = now == nil || !maySignIn(&now.State, o); !refused {
				accepted, err := on.accept(tx, now)
				if err != nil {
					return err
				}
				refused = !accepted
			}
			if refused {
				return t.Failed(tx)
			}
			if err := t.Succeeded(tx); err != nil {
				return err
			}
			proof := on.proof
			proof.At = tx.Now()
			expires := proof.Live(tx.Now(), policy.Effective(everywhere, o.State.Policy))
			opened := event.Token{ID: in.SessionID, Hash: hash, Kind: string(secret.Session), Name: t.place.name(), UserID: u.ID,
				Epoch: now.State.SessionEpoch, OrgEpoch: o.State.Epoch, Created: tx.Now(), Expires: expires, Data: proof.text()}
			tx.PutToken(opened)
			in.Expires, in.ChangeRequired = event.Time(expires), now.State.Password.ChangeRequired
			if in.SecondFactorRequired, err = unproven(&opened, &now.State.Standing, &o.State.Standing, i); err != nil {
				return err
			}
			if in.Ways = nil; in.SecondFactorRequired {
				in.Ways = waysOf(now.State.Human)
			}
			return record(tx, u.ID, Succeeded{SessionID: in.SessionID, Personal: t.place})
		},
	})
	if err := s.Store.Do(ctx, command); err != nil {
		return SignedIn{}, false, s.withoutVerdict(ctx, t, origin, err)
	}
	if refused {
		return SignedIn{}, false, nil
	}
	return in, true, nil
}

// installationStanding reads the part of the installation that decides about credentials, in a command that declared it.
func installationStanding(tx *event.Tx) (*installation.Standing, error) {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil || i == nil { // nil before the first start
		return &installation.Standing{}, err
	}
	return &i.State.Standing, nil
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

func maySignIn(u *user.User, o *event.Object[org.Org]) bool {
	return u.State == user.Active && u.Human != nil && o != nil && o.State.State == org.Active
}

// verify checks a password with the same work whether or not there is somebody to check it for.
func (s *Sessions) verify(ctx context.Context, hasher *secret.Hasher, u *event.Object[user.User], password string) (right bool, upgraded []byte, err error) {
	stored, err := s.Store.Row(ctx, user.PasswordRow(cmp.Or(idOf(u), nobodyID)))
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

// try checks a password where the throttle lets it, and counts what comes out. A wrong password counts even when the
// caller has hung up. An attempt that came to no verdict is not held against anybody. A right one is still to be settled:
// by succeeded or withoutVerdict.
func (s *Sessions) try(ctx context.Context, hasher *secret.Hasher, t *throttle, origin event.Origin, u *event.Object[user.User], password string) (right bool, upgraded []byte, err error) {
	if err := s.enter(ctx, t, origin); err != nil {
		return false, nil, err
	}
	right, upgraded, err = s.verify(ctx, hasher, u, password)
	if err != nil {
		return false, nil, s.withoutVerdict(ctx, t, origin, err)
	}
	if !right {
		err = s.settle(ctx, t, origin, t.Failed)
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

// settle counts what came out of an attempt, whether or not its caller is still there.
func (s *Sessions) settle(ctx context.Context, t *throttle, origin event.Origin, decide func(*event.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.Store.Do(ctx, t.declare(event.Command{Origin: origin, Decide: decide}))
}

// atPassword is an attempt at a password under a name as typed, in the form that find gives. u is nil where nobody has it.
func atPassword(u *event.Object[user.User], typed []string) guessing.Aim {
	account, version := typed, "0"
	if u != nil {
		version = strconv.FormatInt(u.State.Password.Version, 10)
		account = []string{"user", u.ID, version}
	}
	return guessing.Aim{Typed: append(slices.Clip(typed), version), Account: account, Trusted: account}
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
	return atPassword(u, typedName(u.Org, u.State.UserNameKey))
}

func placeOf(peer netip.Addr, userAgent string) Place {
	const most = 200
	if len(userAgent) > most {
		userAgent = strings.ToValidUTF8(userAgent[:most], "")
	}
	p := Place{UserAgent: userAgent}
	if peer.IsValid() {
		p.Address = peer.String()
	}
	return p
}

// find looks for the user of a login name; nil when there is none. The first that finds somebody wins: a user name
// with a verified domain; a bare user name, then a verified e-mail address, in the organization named or else in the default
// one. Of several with the same address it is whose was verified first, see user.Verification. Where an organization is named, only its users are found.
//
// typed is what the throttle counts the name under, whether or not somebody has it: the same for every way to write it, and
// nothing in it follows from which users there are. So everything is looked up by one folded form. Its second
// part is the organization that the name leads to, or what stands for one that cannot be. What is looked up follows from the name alone, too (see firstOf).
func (s *Sessions) find(ctx context.Context, loginName, orgID string) (u *event.Object[user.User], typed []string, err error) {
	if len(orgID) > event.MaxID { // nobody is there, and nothing keeps all of it
		sum := sha256.Sum256([]byte(orgID))
		orgID = hex.EncodeToString(sum[:])
	}
	in := orgID
	if in == "" {
		in = s.DefaultOrg
	}
	if syntax.TooLong(loginName) {
		sum := sha256.Sum256([]byte(loginName))
		return nil, []string{"long name", in, hex.EncodeToString(sum[:])}, nil
	}
	key := syntax.NameKey(loginName)
	typed = typedName(in, key)
	names := []string{key}
	var steps []lookup
	owner, name, domain, err := s.domainOf(ctx, loginName, key)
	if err != nil {
		return nil, nil, err
	}
	if owner != "" && (orgID == "" || orgID == owner) {
		typed = typedName(owner, name)
		steps = append(steps, s.named(owner, name))
		// A domain has more spellings than a name: what is counted as one must be found as one.
		if plain := name + "@" + domain; plain != key {
			names = append(names, plain)
		}
	}
	for _, name := range names {
		steps = append(steps, s.named(in, name))
	}
	if email, problem := syntax.Email(names[len(names)-1]); problem == "" {
		steps = append(steps, s.withEmail(in, email))
	}
	u, err = s.firstOf(ctx, steps)
	return u, typed, err
}

// domainOf takes a login name apart at its last @, of any width, and tells which organization has the domain; owner is
// empty where there is none. name and domain are folded. The domain counts as it was typed, then as it is folded, which
// differs where IDNA tells apart what names do not: ß and ss.
func (s *Sessions) domainOf(ctx context.Context, loginName, key string) (owner, name, domain string, err error) {
	at, keyAt := strings.LastIndexAny(loginName, "@\uFE6B\uFF20"), strings.LastIndexByte(key, '@')
	if at < 0 || keyAt < 0 {
		return "", "", "", nil
	}
	_, size := utf8.DecodeRuneInString(loginName[at:])
	tried := ""
	for _, text := range []string{loginName[at+size:], key[keyAt+1:]} {
		if len(text) >= syntax.MaxTypedDomain {
			continue
		}
		form, problem := syntax.Domain(text)
		if problem != "" || form == tried {
			continue
		}
		tried = form
		if owner, err = s.Store.Holder(ctx, org.DomainClaim(form)); owner != "" || err != nil {
			return owner, key[:keyAt], syntax.NameKey(form), err
		}
	}
	return "", "", "", nil
}

// ChangePassword is a person's own change of the password.
type ChangePassword struct {
	Current, New string
	EndTokens    bool // personal access tokens and what applications were given, too
	IfMatch      event.IfMatch
	Peer         netip.Addr
	UserAgent    string
}

// ChangePassword replaces the caller's password and ends all sessions but the one it came by, and tokens where that is asked for. Errors:
// user.ErrNotHuman; InvalidArgument on newPassword when the policy does not allow it; InvalidArgument on currentPassword,
// which counts like a failed sign-in; ResourceExhausted when slowed down; Aborted when IfMatch does not hold or the password was set meanwhile.
func (s *Sessions) ChangePassword(ctx context.Context, caller *access.Caller, p ChangePassword) (event.Details, error) {
	u, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return event.Details{}, err
	}
	if u.State.Human == nil {
		return event.Details{}, user.ErrNotHuman
	}
	rules, err := org.Settings(ctx, s.Store, u.Org)
	if err != nil {
		return event.Details{}, err
	}
	if wrong := rules.PasswordViolations("newPassword", p.New); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	version := u.State.Password.Version
	place := placeOf(p.Peer, p.UserAgent)
	t := s.throttle(rules, atOwnPassword(u), u.ID, p.Peer, place)
	after := *u
	after.State.Password.Version++
	renewed := s.throttle(rules, atOwnPassword(&after), u.ID, p.Peer, place)
	right, _, err := s.try(ctx, s.Hasher.For(caller.OrgID), t, caller.Origin(), u, p.Current)
	if err != nil {
		return event.Details{}, err
	}
	if !right {
		return event.Details{}, errs.Invalid(errs.Violation{Field: "currentPassword", Message: "is not your current password"})
	}
	hash, err := s.Hasher.For(caller.OrgID).Hash(ctx, p.New)
	if err != nil {
		return event.Details{}, s.withoutVerdict(ctx, t, caller.Origin(), err)
	}
	var details event.Details
	err = s.Store.Do(ctx, event.Command{
		Origin: caller.Origin(),
		Write:  []event.Ref{userRef(u.ID), Kind.Ref(IDFor(u.ID))},
		Rows:   t.Rows(),
		Decide: func(tx *event.Tx) error {
			now, err := user.Kind.Get(tx, u.ID)
			if err != nil {
				return err
			}
			if now == nil || now.State.State != user.Active {
				return user.ErrNotFound
			}
			if now.State.Password.Version != version || now.State.SessionEpoch != u.State.SessionEpoch {
				return errPasswordMoved
			}
			if err := p.IfMatch.Check(now.Sequence); err != nil {
				return err
			}
			if err := errors.Join(t.Succeeded(tx), renewed.MarkGood(tx)); err != nil {
				return err
			}
			if err := user.PutPassword(tx, now, hash, user.PasswordChanged{EndTokens: p.EndTokens}); err != nil {
				return err
			}
			if caller.TokenKind == string(secret.Session) {
				tx.AdvanceToken(caller.TokenID, now.State.SessionEpoch-1, now.State.SessionEpoch)
			}
			details = now.Details()
			return nil
		},
	})
	if err != nil {
		return event.Details{}, s.withoutVerdict(ctx, t, caller.Origin(), err) // the password was right
	}
	return details, nil
}

// ChangePasswordHere is ChangePassword in a browser: the session it came by has another token afterwards, so that a copy of the
// cookie from before ends like all other sessions. Errors: those of ChangePassword.
func (s *Sessions) ChangePasswordHere(ctx context.Context, caller *access.Caller, p ChangePassword) (Stepped, error) {
	if _, err := s.ChangePassword(ctx, caller, p); err != nil {
		return Stepped{}, err
	}
	from := From{Peer: p.Peer, UserAgent: p.UserAgent, Rotate: true}
	return s.step(ctx, caller, from, false, event.Command{}, func(st *state) error { return st.prove(ByPassword, from.place()) })
}

// errPasswordMoved: somebody set the password while the current one was being checked.
var errPasswordMoved = errs.New(errs.Aborted, event.Contention, "your password was changed at the same moment: sign in again")
