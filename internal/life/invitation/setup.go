package invitation

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/session"
)

// An administrator who may set somebody's password can send a link by which the person chooses it instead. The link
// works once, and only while its sender still may set the password: so an old link cannot take over the account of a
// user who was promoted in the meantime.

// SetupPath is the path of the page that such links lead to.
const SetupPath = "/login/password"

// SetupAddress is the address of such a link.
func SetupAddress(externalURL, token string) string {
	return externalURL + SetupPath + "?" + url.Values{ParamToken: {token}}.Encode()
}

// LinkUnusable is the reason of a link that does not count.
const LinkUnusable errs.Reason = "PASSWORD_LINK_UNUSABLE"

// ErrSetupLink is the one answer to a link that does not count, whatever is wrong with it.
var ErrSetupLink = errs.New(errs.FailedPrecondition, LinkUnusable,
	"this link was used or replaced, or has expired, or whoever sent it may no longer set this password: ask your administrator for a new one")

// setup is what user.SetupRow holds.
type setup struct {
	By       string `json:"by"`             // who has sent it
	Hash     []byte `json:"hash,omitempty"` // of the link; empty: the mail has yet to be sent
	Shown    bool   `json:"shown,omitempty"`
	Version  int64  `json:"version"` // of the password that it replaces
	EmailKey string `json:"emailKey"`
	Sequence uint64 `json:"sequence"` // of the event that it is of
}

// setupLink is where it is kept whose a link is. It is no event.Flow: the row holds the plain identifier, not JSON.
func setupLink(hash []byte) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "password_setup/" + hex.EncodeToString(hash)}
}

func (p setup) put(tx *event.Tx, userID string, expires int64) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: user.SetupRow(userID), Value: value, Expires: expires})
	if p.Hash != nil {
		tx.PutRow(event.Row{RowKey: setupLink(p.Hash), Value: []byte(userID), Expires: expires})
	}
	return nil
}

// setups counts the mails to one user.
func setups(master secret.MasterKey, userID string) mailcount.Count {
	return mailcount.Of(master, "password setup", userID)
}

// mustBeActive refuses users who could not sign in.
func mustBeActive(u *user.User) error {
	if u.State != user.Active {
		return session.ErrUserNotActive
	}
	return nil
}

// SendSetup sends somebody of the permit's organization a link to set the password. It takes what setting the password
// takes. Errors: user.ErrNotFound; access.ErrTargetHoldsMore; user.ErrNotHuman; session.ErrUserNotActive;
// ResourceExhausted when there were too many mails; Aborted when match does not hold.
func (s Invitations) SendSetup(ctx context.Context, permit access.Permit, id string,
	match event.IfMatch) (Made, error) {
	count := setups(s.Master, id)
	token, hash := secret.NewToken(secret.Invitation)
	out := Made{ID: id}
	needs := event.Command{Rows: []event.RowKey{count.Row}}
	target := user.GivesAccess(permit, id).And(user.MustBeHuman).And(mustBeActive).Needs(needs)
	details, err := target.Change(ctx, s.Store, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		if s.Mail {
			wait, err := count.Take(tx)
			if err != nil {
				return err
			}
			if wait > 0 {
				return mailcount.TooMany(wait)
			}
		}
		expires := tx.Now() + DefaultLife.Microseconds()
		out.Expires = event.Time(expires)
		if err := u.Append(user.PasswordSetupSent{Shown: !s.Mail, Expires: expires}); err != nil {
			return err
		}
		p := setup{By: permit.Origin().Actor, Shown: !s.Mail, Version: u.Data.Password.Version,
			EmailKey: u.Data.Human.Email.Key, Sequence: u.Sequence}
		if p.Shown {
			p.Hash, out.Link = hash, SetupAddress(s.ExternalURL, token)
		}
		return p.put(tx, u.ID, expires)
	})
	out.Details = details
	if err != nil {
		return Made{}, err
	}
	return out, nil
}

// MailedSetup makes the link for a mail about user.PasswordSetupSent. Errors: ErrNothingToSend.
func MailedSetup(ctx context.Context, s event.Store, _ secret.MasterKey, e *event.Event) (d user.Delivery, err error) {
	token, hash := secret.NewToken(secret.Invitation)
	err = s.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Read:   []event.Ref{user.Kind.Ref(e.ObjectID)},
		Rows:   []event.RowKey{user.SetupRow(e.ObjectID)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, e.ObjectID)
			if err != nil {
				return err
			}
			p, row, err := readSetup(tx, e.ObjectID)
			if err != nil {
				return err
			}
			if row == nil || u == nil || u.Data.State != user.Active || u.Data.Human == nil ||
				p.Sequence != e.Sequence ||
				p.Shown || p.EmailKey != u.Data.Human.Email.Key {
				return ErrNothingToSend
			}
			p.Hash = hash
			h := u.Data.Human
			d = user.Delivery{
				Code:     user.Code{Text: token, Expires: event.Time(row.Expires)},
				UserID:   u.ID,
				By:       user.ByEmail,
				Address:  h.Email.Address,
				Name:     h.Profile.DisplayName,
				Language: h.Profile.PreferredLanguage,
			}
			return p.put(tx, u.ID, row.Expires)
		},
	})
	return d, err
}

func readSetup(tx *event.Tx, userID string) (p setup, row *event.Row, err error) {
	if row, err = tx.Row(user.SetupRow(userID)); err != nil || row == nil {
		return p, nil, err
	}
	return p, row, json.Unmarshal(row.Value, &p)
}

// SetPassword is the password that somebody chooses who has such a link.
type SetPassword struct {
	Token     string
	Password  string
	Peer      netip.Addr
	RequestID string
}

// Setup is a link to set a password, as somebody comes to it.
type Setup struct {
	User *event.Object[user.User]
	hash []byte
	by   *event.Object[user.User]
}

// OpenSetup reads whom a link is for. Errors: ErrSetupLink.
func (s Invitations) OpenSetup(ctx context.Context, token string) (*Setup, error) {
	kind, hash, ok := secret.ParseToken(token)
	if !ok || kind != secret.Invitation {
		return nil, ErrSetupLink
	}
	link, err := s.Store.Row(ctx, setupLink(hash))
	if err != nil {
		return nil, err
	}
	if link == nil {
		return nil, ErrSetupLink
	}
	row, err := s.Store.Row(ctx, user.SetupRow(string(link.Value)))
	if err != nil {
		return nil, err
	}
	var p setup
	if row == nil {
		return nil, ErrSetupLink
	}
	if err := json.Unmarshal(row.Value, &p); err != nil {
		return nil, err
	}
	out := &Setup{hash: hash}
	if out.User, err = user.Kind.Read(ctx, s.Store, string(link.Value)); err != nil {
		return nil, err
	}
	if out.by, err = user.Kind.Read(ctx, s.Store, p.By); err != nil {
		return nil, err
	}
	if out.User == nil || out.by == nil || string(p.Hash) != string(hash) {
		return nil, ErrSetupLink
	}
	return out, nil
}

// mayStillSet tells whether the sender of a link may set the user's password now.
func mayStillSet(by *event.Object[user.User], home *event.Object[org.Org], u *event.Object[user.User]) bool {
	return by != nil && by.Data.State == user.Active && home != nil && home.Data.State == org.Active &&
		by.Data.Memberships.Hold(access.CredentialWrite, u.Org) &&
		by.Data.Memberships.Cover(u.Data.Memberships.Worth(u.Org))
}

// UseSetup sets a password by a link, which is used up, and ends all sessions and tokens of the user. A link that came
// by mail proves the address. Errors: ErrSetupLink; session.ErrMethodNotAllowed; InvalidArgument on password where the
// policy asks for more, which leaves the link as it is; Unavailable when too many passwords are being hashed;
// ResourceExhausted where too much was begun from the network.
func (s Invitations) UseSetup(ctx context.Context, sessions *session.Sessions,
	n SetPassword) (details event.Details, err error) {
	if err := sessions.NetworkLimiter.Take(n.Peer, 1); err != nil {
		return event.Details{}, err
	}
	known, err := s.OpenSetup(ctx, n.Token)
	if err != nil {
		return event.Details{}, err
	}
	rules, err := org.Settings(ctx, s.Store, known.User.Org)
	if err != nil {
		return event.Details{}, err
	}
	if wrong := rules.Chosen().Violations("password", n.Password); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	hash, err := sessions.Hasher.Public(known.User.Org, ratelimit.NetworkName(n.Peer),
		len(n.Password)).Hash(ctx, n.Password)
	if err != nil {
		return event.Details{}, err
	}
	err = event.Do(ctx, s.Store, event.Command{
		Origin: event.Origin{Actor: known.User.ID, RequestID: n.RequestID},
		Write:  []event.Ref{user.Kind.Ref(known.User.ID)},
		Read:   []event.Ref{org.Kind.Ref(known.User.Org), user.Kind.Ref(known.by.ID), org.Kind.Ref(known.by.Org)},
		Rows:   []event.RowKey{user.SetupRow(known.User.ID)},
		Decide: func(tx *event.Tx) error {
			u, err := s.rightSetup(tx, known)
			if err != nil {
				return err
			}
			p, _, err := readSetup(tx, u.ID)
			if err != nil {
				return err
			}
			tx.DropRow(user.SetupRow(u.ID))
			tx.DropRow(setupLink(known.hash))
			fact := event.Fact[user.User](user.PasswordReset{})
			if p.Shown { // the sender saw the link and may have chosen the password
				fact = user.PasswordSet{}
			}
			if err := user.PutPassword(tx, u, hash, fact); err != nil {
				return err
			}
			if email := u.Data.Human.Email; !p.Shown && !email.Verified {
				err = u.Append(user.EmailVerified{Verification: &user.Verification{By: user.VerifiedByOwner,
					At: tx.Now()}})
			}
			if details = u.Details(); err != nil || !p.Shown || p.By == u.ID {
				return err
			}
			return user.TellHosts(tx, u, fact.EventType()) // roles elsewhere may have come after the link
		},
	})
	if err != nil {
		return event.Details{}, err
	}
	return details, nil
}

// rightSetup gives the user of a link that counts. Errors: ErrSetupLink; session.ErrMethodNotAllowed.
func (s Invitations) rightSetup(tx *event.Tx, known *Setup) (*event.Object[user.User], error) {
	u, err := user.Kind.Get(tx, known.User.ID)
	if err != nil {
		return nil, err
	}
	o, err := org.Kind.Get(tx, known.User.Org)
	if err != nil {
		return nil, err
	}
	by, err := user.Kind.Get(tx, known.by.ID)
	if err != nil {
		return nil, err
	}
	home, err := org.Kind.Get(tx, known.by.Org)
	if err != nil {
		return nil, err
	}
	p, row, err := readSetup(tx, known.User.ID)
	switch {
	case err != nil:
		return nil, err
	case row == nil || u == nil || !session.MaySignIn(&u.Data, o),
		string(p.Hash) != string(known.hash) || p.By != known.by.ID,
		p.Version != u.Data.Password.Version || p.EmailKey != u.Data.Human.Email.Key:
		return nil, ErrSetupLink
	case !mayStillSet(by, home, u):
		return nil, ErrSetupLink
	case !o.Data.Policy.Allows(policy.WithPassword):
		return nil, session.ErrMethodNotAllowed
	}
	return u, nil
}
