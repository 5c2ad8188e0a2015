// Package mail writes to people: codes that they asked for, and news about their account.
//
// It follows the log (package notify). A request for a code is an event without the code. This package makes the code
// when it sends the mail, and stores only a MAC of it. So nothing in the log or in a table lets anybody prove an
// address or reset a password. Codes go to the address that they are to prove, all other mails go to verified addresses
// only.
//
// Links are built from the external URL alone. Text that people chose never gets into a header or a link. In the body
// it is escaped, kept on one line, and never becomes a link.
package mail

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Kind is what a mail is about. Its texts are found by it.
type Kind string

// The kinds.
const (
	VerifyEmail     Kind = "verify_email"
	AccountCreated  Kind = "account_created" // VerifyEmail for somebody whose account others have made
	ResetPassword   Kind = "reset_password"
	PasswordChanged Kind = "password_changed"
	PasswordSet     Kind = "password_set" // PasswordChanged by an administrator
	NewSignIn       Kind = "new_sign_in"
	FactorAdded     Kind = "factor_added"
	FactorRemoved   Kind = "factor_removed"
	FactorGuessed   Kind = "factor_guessed"
	LinkAdded       Kind = "link_added"
	LinkedByEmail   Kind = "link_added_by_email" // LinkAdded that nobody but the address asked for
	LinkConfirmed   Kind = "link_confirmed"
	LinkRemoved     Kind = "link_removed"
	TokenAdded      Kind = "token_added"
	PhoneChanged    Kind = "phone_changed"
	EmailChanged    Kind = "email_changed"          // to the address before, with a link that undoes it
	EmailReplaced   Kind = "email_replaced"         // to the address before, about what an administrator did
	EmailRestored   Kind = "email_restored"         // to both addresses
	ResetDelayed    Kind = "reset_password_not_yet" // instead of ResetPassword
	NoPassword      Kind = "no_password"            // likewise, to who signs in in another way
	Invitation      Kind = "invitation"
	RolesOffered    Kind = "roles_offered"
	PasswordSetup   Kind = "password_setup" // an administrator wants the person to set a password
	OwnerLost       Kind = "owner_lost"     // an organization has no owner any more who can act
)

// Mail is a finished mail.
type Mail struct {
	Kind     Kind
	UserID   string
	To       string
	Language string
	Subject  string
	Text     string
	HTML     string

	Code, Link string // the code and the link in the text, for a Sender that logs mails instead of sending them
}

// Sender brings mails to people.
type Sender interface {
	Send(ctx context.Context, m Mail) error
}

// Paths of the pages that links lead to, with the user and the code in the query.
const (
	VerifyPath  = "/verify"
	ResetPath   = "/reset"
	RestorePath = "/restore" // takes an e-mail address back
)

// stale is how old an event may be to be written about: after a long time without mail nobody wants to hear of it.
const stale = 24 * time.Hour

// Mailer writes mails about events.
type Mailer struct {
	Store       event.Store
	Master      secret.MasterKey
	Clock       func() time.Time
	Sender      Sender
	ExternalURL string // https://id.example.org
}

// notices are the facts about a user that are told in a mail without a code.
var notices = map[event.Type]Kind{
	user.PasswordSet{}.EventType():     PasswordSet,
	user.PasswordChanged{}.EventType(): PasswordChanged,
	user.PasswordReset{}.EventType():   PasswordChanged,
	user.TOTPAdded{}.EventType():       FactorAdded,
	user.PasskeyAdded{}.EventType():    FactorAdded,
	user.FactorRemoved{}.EventType():   FactorRemoved,
	user.PhoneChanged{}.EventType():    PhoneChanged,
	user.PhoneRemoved{}.EventType():    PhoneChanged,
}

// FollowerName is the name of the follower, which never changes.
const FollowerName = "mail"

// Follower gives the follower that sends the mails.
func (m *Mailer) Follower() notify.Follower {
	types := []event.Type{user.HumanAdded{}.EventType(), user.EmailCodeRequested{}.EventType(),
		session.PasswordResetRequested{}.EventType(), session.Succeeded{}.EventType(),
		session.TokenIssued{}.EventType(), session.SecondFactorGuessed{}.EventType(),
		user.EmailChanged{}.EventType(), user.EmailRestored{}.EventType(),
		user.LinkAdded{}.EventType(), user.LinkConfirmed{}.EventType(), user.LinkRemoved{}.EventType(),
		invitation.Sent{}.EventType(), user.PasswordSetupSent{}.EventType(), org.OwnerLost{}.EventType(),
		member.OfferMade{}.EventType()}
	for t := range notices {
		types = append(types, t)
	}
	return notify.Follower{Name: FollowerName, Types: types, Handle: m.handle, Patience: user.RestoreLife}
}

func (m *Mailer) handle(ctx context.Context, e *event.Event) error {
	switch e.Type {
	case user.EmailChanged{}.EventType(): // never too late: the person may still undo the change
		return m.left(ctx, e)
	case user.EmailRestored{}.EventType():
		return m.restored(ctx, e)
	}
	if m.Clock().Sub(event.Time(e.Time)) > stale {
		return nil
	}
	switch e.Type {
	case user.HumanAdded{}.EventType():
		fact, err := user.Kind.Decode(e.Type, e.Payload, nil)
		if err != nil || fact.(user.HumanAdded).EmailVerified {
			return err
		}
		return m.verify(ctx, e, true, false)
	case user.EmailCodeRequested{}.EventType():
		fact, err := user.Kind.Decode(e.Type, e.Payload, nil)
		if err != nil {
			return err
		}
		return m.verify(ctx, e, false, fact.(user.EmailCodeRequested).Again)
	case session.PasswordResetRequested{}.EventType():
		return m.reset(ctx, e)
	case session.Succeeded{}.EventType():
		return m.signedIn(ctx, e)
	case session.SecondFactorGuessed{}.EventType():
		return m.guessed(ctx, e)
	case session.TokenIssued{}.EventType():
		return m.notice(ctx, e, session.UserOf(e.ObjectID), TokenAdded, content{})
	case user.LinkAdded{}.EventType(), user.LinkConfirmed{}.EventType(), user.LinkRemoved{}.EventType():
		return m.linked(ctx, e)
	case invitation.Sent{}.EventType():
		return m.invite(ctx, e)
	case user.PasswordSetupSent{}.EventType():
		return m.setUp(ctx, e)
	case org.OwnerLost{}.EventType():
		return m.ownerLost(ctx, e)
	case member.OfferMade{}.EventType():
		return m.offered(ctx, e)
	case user.PasswordChanged{}.EventType(), user.PasskeyAdded{}.EventType():
		if came, err := m.cameWithUser(ctx, e); err != nil || came {
			return err
		}
	case user.PasswordSet{}.EventType():
		if e.Sequence == 2 { // it came with the user, who knows
			return nil
		}
		if e.Actor == e.ObjectID { // an administrator's own
			return m.notice(ctx, e, e.ObjectID, PasswordChanged, content{})
		}
	}
	return m.notice(ctx, e, e.ObjectID, notices[e.Type], content{})
}

// cameWithUser tells whether a fact was recorded when its user was created: that is no news.
func (m *Mailer) cameWithUser(ctx context.Context, e *event.Event) (bool, error) {
	u, err := user.Kind.Read(ctx, m.Store, e.ObjectID)
	return u != nil && e.Time == event.Micros(u.Created), err
}

// linked tells a person of a link to an identity provider. One that came with the user is no news.
func (m *Mailer) linked(ctx context.Context, e *event.Event) error {
	fact, err := user.Kind.Decode(e.Type, e.Payload, nil)
	if err != nil {
		return err
	}
	u, err := user.Kind.Read(ctx, m.Store, e.ObjectID)
	if err != nil || u == nil {
		return err
	}
	kind, provider := LinkAdded, ""
	switch f := fact.(type) {
	case user.LinkAdded:
		if e.Time == event.Micros(u.Created) {
			return nil
		}
		if provider = f.Provider; f.ByEmail {
			kind = LinkedByEmail
		}
	case user.LinkRemoved:
		kind, provider = LinkRemoved, f.Provider
	case user.LinkConfirmed:
		kind = LinkConfirmed
		l, there := u.Data.Human.Link(f.LinkID)
		if !there {
			return nil // it was removed since, and that is told, too
		}
		provider = l.Provider
	}
	p, err := idp.Kind.Read(ctx, m.Store, provider)
	if err != nil {
		return err
	}
	if p != nil && p.Data.General.Name != "" {
		provider = p.Data.General.Name
	}
	return m.notice(ctx, e, e.ObjectID, kind, content{Provider: provider})
}

// verify sends a code for the user's e-mail address, again for one that is verified. What nobody asked for is counted
// here.
func (m *Mailer) verify(ctx context.Context, e *event.Event, unasked, again bool) error {
	var count *mailcount.Count
	kind := VerifyEmail
	if unasked {
		kind = AccountCreated
		c := user.EmailCodes(m.Master, e.ObjectID).For(e.Time)
		count = &c
	}
	d, err := user.MailedCode(ctx, m.Store, m.Master, e.ObjectID, again, count)
	if err != nil {
		return unless(err, user.ErrNotFound, user.ErrNotHuman, user.ErrAlreadyVerified, user.ErrEmailNotVerified,
			mailcount.ErrTooMany)
	}
	return m.sendCode(ctx, kind, VerifyPath, d)
}

// reset sends a code that lets the password be reset.
func (m *Mailer) reset(ctx context.Context, e *event.Event) error {
	fact, err := session.Kind.FactOf(ctx, m.Store, m.Master, e)
	if err != nil {
		return err
	}
	if fact.(session.PasswordResetRequested).NoPassword {
		return m.otherWays(ctx, session.UserOf(e.ObjectID))
	}
	d, err := user.ResetCode(ctx, m.Store, m.Master, session.UserOf(e.ObjectID))
	if err != nil {
		return unless(err, user.ErrCannotReset)
	}
	if d.Delayed {
		return m.send(ctx, ResetDelayed, d.UserID, d.Address, d.Name, d.Language, content{At: d.Expires})
	}
	return m.sendCode(ctx, ResetPassword, ResetPath, d)
}

// otherWays tells a person who may not sign in with a password how else. Only the mailbox learns it.
func (m *Mailer) otherWays(ctx context.Context, userID string) error {
	u, err := user.Kind.Read(ctx, m.Store, userID)
	if err != nil || u == nil || !u.Data.MayReset() {
		return err
	}
	o, err := org.Kind.Read(ctx, m.Store, u.Org)
	if err != nil || o == nil {
		return err
	}
	inst, err := installation.Kind.Read(ctx, m.Store, installation.ID)
	if err != nil || inst == nil {
		return err
	}
	ways := o.Data.Policy.SignIn
	offers, err := idp.SignInProviders{Org: u.Org, DefaultOrg: inst.Data.DefaultOrg, Ways: ways}.Part(ctx, m.Store,
		idp.Part{})
	if err != nil {
		return err
	}
	h := u.Data.Human
	c := content{Provider: namesOf(offers.Providers, h.Links),
		Passkey: ways.Allows(policy.WithPasskey) && h.Has(user.Passkey)}
	return m.send(ctx, NoPassword, u.ID, h.Email.Address, h.Profile.DisplayName, h.Profile.PreferredLanguage, c)
}

// mostNamed is how many identity providers a mail names.
const mostNamed = 5

// namesOf are the names of identity providers: of those that a person is linked to, or else of the first ones.
func namesOf(offered []*event.Object[idp.Provider], linked []user.Link) string {
	var names, theirs []string
	for _, p := range offered {
		names = append(names, p.Data.General.Name)
		if slices.ContainsFunc(linked, func(l user.Link) bool { return l.Provider == p.ID }) {
			theirs = append(theirs, p.Data.General.Name)
		}
	}
	if theirs != nil {
		names = theirs
	}
	return strings.Join(names[:min(len(names), mostNamed)], ", ")
}

func (m *Mailer) sendCode(ctx context.Context, kind Kind, path string, d user.Delivery) error {
	link := m.ExternalURL + path + "?" + url.Values{"user": {d.UserID}, "code": {d.Text}}.Encode()
	return m.send(ctx, kind, d.UserID, d.Address, d.Name, d.Language, content{Code: d.Text, Link: link})
}

// notice tells a person something at their verified address, and at the address before a change that can still be
// undone: an attacker who takes over an account must not silence the mails about that by changing the address. The
// notice of a new sign-in goes only to the current address.
func (m *Mailer) notice(ctx context.Context, e *event.Event, userID string, kind Kind, c content) error {
	u, err := user.Kind.Read(ctx, m.Store, userID)
	if err != nil || u == nil || u.Data.Human == nil {
		return err
	}
	var to []string
	if email := u.Data.Human.Email; email.Verified {
		to = append(to, email.Address)
	}
	if kind != NewSignIn {
		before, err := user.AddressBefore(ctx, m.Store, userID, event.Micros(m.Clock()))
		if err != nil {
			return err
		}
		if before != "" && !slices.Contains(to, before) {
			to = append(to, before)
		}
	}
	if len(to) == 0 {
		return nil
	}
	count := mailcount.Of(m.Master, string(kind), userID).For(e.Time)
	if allowed, err := m.allowed(ctx, count); err != nil || !allowed {
		return err
	}
	return m.sendAll(ctx, e, kind, u, to, c)
}

// sendAll tells several addresses of a user the same. One that the mail server refuses keeps nothing from the others,
// and when the mail is tried again, those that have it do not get it twice.
func (m *Mailer) sendAll(ctx context.Context, e *event.Event, kind Kind, u *event.Object[user.User], to []string,
	c content) error {
	c.At = event.Time(e.Time)
	profile := u.Data.Human.Profile
	var refused *notify.Refusal
	for _, address := range to {
		row := m.sentRow(e, address)
		sent, err := m.Store.Row(ctx, row)
		if err != nil {
			return err
		}
		if sent != nil {
			continue
		}
		if err := m.send(ctx, kind, u.ID, address, profile.DisplayName, profile.PreferredLanguage, c); err != nil {
			refusal, ok := errors.AsType[*notify.Refusal](err)
			if !ok {
				return err
			}
			if refused == nil || refused.ForGood {
				refused = refusal // another try helps if it helps one of them
			}
			continue
		}
		if len(to) > 1 {
			if err := m.markSent(ctx, row); err != nil {
				return err
			}
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

// sentRow is there once a mail about an event was sent to an address.
func (m *Mailer) sentRow(e *event.Event, address string) event.RowKey {
	mac := m.Master.MAC("mail sent", []byte(strconv.FormatInt(e.Position, 10)), []byte(address))
	return event.RowKey{Table: event.Throttle, Key: hex.EncodeToString(mac)}
}

func (m *Mailer) markSent(ctx context.Context, row event.RowKey) error {
	return m.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			tx.PutRow(event.Row{RowKey: row, Value: []byte{1}, Expires: tx.Now() + user.RestoreLife.Microseconds()})
			return nil
		},
	})
}

// allowed counts a mail, unless there were too many like it.
func (m *Mailer) allowed(ctx context.Context, count mailcount.Count) (bool, error) {
	var wait time.Duration
	err := m.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{count.Row},
		Decide: func(tx *event.Tx) (err error) {
			wait, err = count.Take(tx)
			return err
		},
	})
	return wait == 0, err
}

func (m *Mailer) send(ctx context.Context, kind Kind, userID, to, name, language string, c content) error {
	external, err := url.Parse(m.ExternalURL)
	if err != nil {
		return err
	}
	c.Name, c.Site = greetable(name), external.Host
	if c.LoginName, c.Organization, err = m.account(ctx, userID); err != nil {
		return err
	}
	out, err := write(kind, language, c)
	if err != nil {
		return err
	}
	out.UserID, out.To = userID, to
	return m.Sender.Send(ctx, out)
}

// account says which account a mail is about. What would let a stranger write into our mails is left out.
func (m *Mailer) account(ctx context.Context, userID string) (loginName, organization string, err error) {
	u, err := user.Kind.Read(ctx, m.Store, userID)
	if err != nil || u == nil {
		return "", "", err
	}
	o, err := org.Kind.Read(ctx, m.Store, u.Org)
	if err != nil || o == nil {
		return "", "", err
	}
	if plainName().MatchString(u.Data.UserName) {
		loginName = o.Data.LoginName(u.Data.UserName)
	}
	return loginName, greetable(o.Data.Name), nil
}

// unless gives err, or nothing where it only says that there is no mail to send.
func unless(err error, these ...error) error {
	for _, e := range these {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// Log shows codes to a developer instead of sending them.
type Log struct{ Log *slog.Logger }

// Send implements Sender.
func (l Log) Send(ctx context.Context, m Mail) error {
	if m.Code == "" {
		l.Log.InfoContext(ctx, "development: mail", "user", m.UserID, "kind", string(m.Kind), "to", m.To, "subject",
			m.Subject, "link", m.Link)
		return nil
	}
	message := "development: verification code"
	if m.Kind == ResetPassword {
		message = "development: password reset code"
	}
	l.Log.InfoContext(ctx, message, "user", m.UserID, "by", string(user.ByEmail), "to", m.To, "code", m.Code,
		"link", m.Link)
	return nil
}
