// Package newcomer makes users of people who were invited, or who register where an organization allows it. One command
// writes the user, the first password or passkey, the use of the invitation or registration, and the session. So of
// many attempts to use the same one at once, one makes a user.
package newcomer

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// Newcomers lets people in who were no users before.
type Newcomers struct{ *session.Sessions }

// Person is somebody who becomes a user. Exactly one of Password and Passkey is set.
type Person struct {
	OrgID       string
	UserName    string // empty: the e-mail address, if it is verified
	FirstName   string
	LastName    string
	NickName    string
	DisplayName string // empty: first and last name
	Language    string
	Email       string
	// Verification is on whose word the address counts; zero: it is not verified. Its time is filled in.
	Verification user.Verification

	Password string
	Passkey  *Passkey

	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// Passkey is a passkey that the browser of a newcomer has made.
type Passkey struct {
	Credential string // what the browser answers (RegistrationResponseJSON), to the options of StartPasskey
	Name       string // what the person calls it; may be empty
	Flow       string // as in StartPasskey
}

// Violations lists what is wrong with what the person has typed, except for the password: the rules for it are the
// organization's.
func (p *Person) Violations() errs.Violations {
	human := p.human()
	wrong := human.Violations("")
	wrong.Add("userName", user.ChosenName(human.UserName, human.Email, human.EmailVerified))
	return wrong
}

// human is what the person is created with.
func (p *Person) human() user.NewHuman {
	n := user.NewHuman{
		UserName:      p.UserName,
		Email:         p.Email,
		EmailVerified: p.Verification.By != "",
		VerifiedBy:    p.Verification.By,
		VerifierOrg:   p.Verification.Org,
		Profile: user.Profile{FirstName: p.FirstName, LastName: p.LastName, NickName: p.NickName,
			DisplayName: p.DisplayName, PreferredLanguage: p.Language},
	}
	if n.UserName == "" && n.EmailVerified {
		n.UserName = p.Email
	}
	return n
}

// StartPasskey begins to make the passkey of a person who becomes a user, and returns what the browser needs. flow is
// what lets the person in, such as the hash of a link: only a request with the same flow can finish the passkey. The
// caller has made sure that the flow exists, because StartPasskey stores a row. Errors: factor.ErrPasskeysUnavailable;
// ResourceExhausted where too much was begun from the network.
func (n Newcomers) StartPasskey(ctx context.Context, peer netip.Addr,
	userName, displayName, flow string) (options string, err error) {
	if err := n.NetworkLimiter.Take(peer, 1); err != nil {
		return "", err
	}
	started, err := n.Factors.StartFirst(user.Kind.NewID(), userName, displayName, flow)
	if err != nil {
		return "", err
	}
	err = n.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		started.Put(tx)
		return nil
	}})
	return started.Options, err
}

// first is the first credential of a person, ready to be put.
type first struct {
	id    string // of the person
	way   policy.Way
	proof session.Proof
	rows  []event.RowKey
	put   func(tx *event.Tx, u *event.Object[user.User]) error
}

// Create makes a user of a person and opens a session, in one command with what also does. needs is what also reads and
// writes besides the user; also is called with the user, before the session is opened, and may refuse. Passwords are
// hashed before the command, so the caller has made sure that the person has something that lets them in. Errors:
// InvalidArgument with violations, on userName, profile.…, email.email, password and credential; those of also;
// session.ErrMethodNotAllowed where the organization does not allow the way; session.ErrSignInFailed where it is not
// active; user.ErrUserNameTaken; Unavailable when too many passwords are being hashed; ResourceExhausted where too much
// was begun from the network.
func (n Newcomers) Create(ctx context.Context, p Person, needs event.Command,
	also func(tx *event.Tx, u *event.Object[user.User]) error) (session.SignedIn, error) {
	if err := n.NetworkLimiter.Take(p.Peer, 1); err != nil {
		return session.SignedIn{}, err
	}
	human := p.human()
	if err := p.Violations().Err(); err != nil {
		return session.SignedIn{}, err
	}
	everywhere, err := installation.ReadPolicy(ctx, n.Store)
	if err != nil {
		return session.SignedIn{}, err
	}
	with, err := n.first(ctx, &p)
	if err != nil {
		return session.SignedIn{}, err
	}
	made := session.PrepareSession(with.id, session.Purpose{Org: p.OrgID})
	err = event.Do(ctx, n.Store, needs.With(event.Command{
		Origin: event.Origin{Actor: with.id, RequestID: p.RequestID},
		Create: []event.Ref{user.Kind.Ref(with.id)},
		Write:  []event.Ref{session.Companion(with.id)},
		Read:   []event.Ref{org.Kind.Ref(p.OrgID), installation.Ref},
		Claims: []event.Claim{user.NameClaim(p.OrgID, syntax.NameKey(human.UserName))},
		Rows:   with.rows,
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, p.OrgID)
			switch {
			case err != nil:
				return err
			case o == nil || o.Data.State != org.Active:
				return session.ErrSignInFailed
			case !o.Data.Policy.Allows(with.way):
				return session.ErrMethodNotAllowed
			}
			u, err := user.AddHuman(tx, with.id, p.OrgID, &human)
			if err != nil {
				return err
			}
			if err := with.put(tx, u); err != nil {
				return err
			}
			if err := also(tx, u); err != nil {
				return err
			}
			return made.Open(tx, u, o, everywhere, with.proof, session.RequestSourceOf(p.Peer, p.UserAgent))
		},
	}))
	if err != nil {
		return session.SignedIn{}, err
	}
	way := tally.Password
	if p.Passkey != nil {
		way = tally.Passkey
	}
	n.Tally.Outcome(p.OrgID, way, nil)
	return made.SignedIn, nil
}

// first makes the credential that a person begins with.
func (n Newcomers) first(ctx context.Context, p *Person) (*first, error) {
	if p.Passkey != nil {
		return n.passkey(ctx, p.Passkey)
	}
	rules, err := org.Settings(ctx, n.Store, p.OrgID)
	if err != nil {
		return nil, err
	}
	if wrong := rules.Chosen().Violations("password", p.Password); len(wrong) > 0 {
		return nil, errs.Invalid(wrong...)
	}
	hash, err := n.Hasher.Public(p.OrgID, ratelimit.NetworkName(p.Peer), len(p.Password)).Hash(ctx, p.Password)
	if err != nil {
		return nil, err
	}
	return &first{
		id:    user.Kind.NewID(),
		way:   policy.WithPassword,
		proof: session.Proof{Methods: []session.Method{session.ByPassword}},
		put: func(tx *event.Tx, u *event.Object[user.User]) error {
			return user.PutPassword(tx, u, hash, user.PasswordChanged{}) // by nobody else: it need not be replaced
		},
	}, nil
}

// passkey checks the passkey that somebody begins with. It has made sure that its owner uses it, so both factors are
// proven.
func (n Newcomers) passkey(ctx context.Context, p *Passkey) (*first, error) {
	if err := errs.Wrong("passkeyName", syntax.Text(p.Name, syntax.MaxName)); err != nil {
		return nil, err
	}
	made, err := factor.ReadNewPasskey(p.Credential)
	if err != nil {
		return nil, err
	}
	id, err := n.Factors.CheckFirst(ctx, n.Store, made, p.Flow)
	if err != nil {
		return nil, err
	}
	return &first{
		id:    id,
		way:   policy.WithPasskey,
		proof: session.Proof{Methods: []session.Method{session.ByPasskey}, SecondFactor: true},
		rows:  []event.RowKey{made.Row(), user.FactorsRow(id)},
		put: func(tx *event.Tx, u *event.Object[user.User]) error {
			_, err := n.Factors.AddPasskey(tx, u, made, cmp.Or(p.Name, "Passkey"))
			return err
		},
	}, nil
}
