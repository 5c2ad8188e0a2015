// Package registration lets people create their own accounts in organizations that allow it.
//
// A person types an e-mail address. Start stores it in one encrypted row until a node has handled it; then one row
// waits for an hour for the link in the mail. So a stranger gets the same answer after the same work, whether or not
// the address is known or allowed, and leaves nothing behind. The person who gets the mail opens the link and chooses
// names and a password or passkey. One command then uses up the row and creates the user.
package registration

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/session"
)

// What strangers may cost. A start counts as much as a request to reset a password: it may send somebody a mail.
const (
	life       = time.Hour
	starts     = 10     // that one start counts as for its network
	perOrg     = 600    // starts within a minute on one node, shared by networks
	perNode    = 3_000  // likewise, for all organizations together, shared by them
	maxWaiting = 10_000 // rows that wait for their mail; an organization has no more of them than are left to others

	maxEmail  = 254 // no mail goes to a longer one
	maxReturn = 200
)

// Reasons of refusals.
const (
	Off      errs.Reason = "REGISTRATION_OFF"
	NoMail   errs.Reason = "REGISTRATION_NEEDS_MAIL"
	LinkUsed errs.Reason = "REGISTRATION_NOT_FOUND"
	TooMany  errs.Reason = "REGISTRATION_THROTTLED"
)

// Errors.
var (
	// ErrOff says the same of an organization that is not there.
	ErrOff = errs.New(errs.FailedPrecondition, Off,
		"people cannot register in this organization: ask its administrator for an account")
	// ErrNoMail: nobody could prove an address.
	ErrNoMail = errs.New(errs.FailedPrecondition, NoMail,
		"people cannot register here, because this installation sends no mail: the operator has to set --smtp-url and --smtp-from")
	// ErrNotFound is about a link that is old, used or replaced by a newer one, and about one that was never made.
	ErrNotFound = errs.New(errs.NotFound, LinkUsed,
		"this registration has ended: it was finished, replaced or is older than an hour. Start again")
)

// Mailer writes to people who register.
type Mailer interface {
	// Register sends the link that leads to Finish.
	Register(ctx context.Context, to Receiver, token string) error
	// Registered tells somebody who has an account that there is one.
	Registered(ctx context.Context, to Receiver) error
}

// Receiver is who gets a mail.
type Receiver struct {
	Address      string
	Language     string
	Organization string // its name
}

// Registrations registers people.
type Registrations struct {
	Sessions *session.Sessions
	Mail     Mailer // nil: nobody can register

	orgs, node ratelimit.FairPool
	waiting    atomic.Pointer[waiting]
}

// waiting are the rows that waited at the last look, by organization.
type waiting struct {
	of  map[string]int
	all int
}

// New makes one.
func New(sessions *session.Sessions, mail Mailer) *Registrations {
	return &Registrations{Sessions: sessions, Mail: mail,
		orgs: ratelimit.FairPool{PerMinute: perOrg, Clock: sessions.Clock},
		node: ratelimit.FairPool{PerMinute: perNode, Clock: sessions.Clock}}
}

// admit counts one more start, unless others would have to do without theirs. Errors: ResourceExhausted
// (REGISTRATION_THROTTLED).
func (s *Registrations) admit(orgID string, peer netip.Addr) error {
	if w := s.waiting.Load(); w != nil && w.all > 0 && w.of[orgID] >= maxWaiting-w.all {
		return tooMany(pause) // the mail server is slower than people register
	}
	if wait := s.node.Wait("", orgID); wait > 0 {
		return tooMany(wait)
	}
	if wait := s.orgs.Take(orgID, ratelimit.NetworkName(peer)); wait > 0 {
		return tooMany(wait)
	}
	if wait := s.node.Take("", orgID); wait > 0 {
		return tooMany(wait)
	}
	return nil
}

func tooMany(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: TooMany, RetryAfter: wait,
		Message: "too many people register at the moment: try again in " + errs.Seconds(wait) + " s"}
}

// Start is somebody who wants an account.
type Start struct {
	OrgID    string
	Email    string
	Language string
	// Return is the application's request that the person came by; empty: none. It is worth something in the browser
	// that began it only.
	Return string

	Peer      netip.Addr
	RequestID string
}

// Violations lists what is wrong with it.
func (s *Start) Violations() (wrong errs.Violations) {
	_, problem := syntax.Email(s.Email)
	if problem == nil {
		problem = syntax.Text(s.Email, maxEmail)
	}
	wrong.Add("email", problem)
	wrong.Add("preferredLanguage", syntax.Text(s.Language, syntax.MaxLanguage))
	return wrong
}

// pending is a registration that waits, first for its mail to be sent and then for the person to open the link.
type pending struct {
	OrgID     string `json:"orgId"`
	Email     string `json:"email"`
	Language  string `json:"language,omitempty"`
	Return    string `json:"return,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	At        int64  `json:"at"`

	// While the mail is being sent:
	Token string `json:"token,omitempty"`
	Known bool   `json:"known,omitempty"` // there is somebody with this address
	Next  int64  `json:"next,omitempty"`  // another node may send it from then on

	// Afterwards:
	Hash []byte `json:"hash,omitempty"` // of the token
}

// Start has a mail sent to an address, so that its owner can go on. Nobody learns from it whether there is an account
// with this address, or whether the organization takes it: not by the answer, and not by the work that is done before
// it, which is to store the request. Errors: InvalidArgument; ErrNoMail; ErrOff; ResourceExhausted where too much was
// begun from the network, or too many register at once.
func (s *Registrations) Start(ctx context.Context, r Start) error {
	if err := s.Sessions.NetworkLimiter.Take(r.Peer, starts); err != nil {
		return err
	}
	if err := r.Violations().Err(); err != nil {
		return err
	}
	if _, err := s.Open(ctx, r.OrgID); err != nil {
		return err
	}
	if err := s.admit(r.OrgID, r.Peer); err != nil {
		return err
	}
	if len(r.Return) > maxReturn {
		r.Return = ""
	}
	row := event.RowKey{Table: event.Deliveries, Key: waitingPrefix + s.registrationID(r.OrgID, r.Email)}
	return s.Sessions.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: r.RequestID},
		Decide: func(tx *event.Tx) error {
			return s.put(tx, row, &pending{OrgID: r.OrgID, Email: r.Email, Language: r.Language, Return: r.Return,
				RequestID: r.RequestID, At: tx.Now()}, 0)
		},
	})
}

// Open gives the organization, if people can register there. Errors: ErrNoMail; ErrOff.
func (s *Registrations) Open(ctx context.Context, orgID string) (*event.Object[org.Org], error) {
	if s.Mail == nil {
		return nil, ErrNoMail
	}
	if len(orgID) > event.MaxID {
		return nil, ErrOff
	}
	o, err := org.Kind.Read(ctx, s.Sessions.Store, orgID)
	if err != nil {
		return nil, err
	}
	return o, open(o)
}

// open refuses an organization that registers nobody: people must be able to sign in with what they get.
func open(o *event.Object[org.Org]) error {
	if o == nil || o.Data.State != org.Active || o.Data.Policy.Registration == policy.ToNobody ||
		!o.Data.Policy.Allows(policy.WithPassword) && !o.Data.Policy.Allows(policy.WithPasskey) {
		return ErrOff
	}
	return nil
}

// takes tells whether an organization takes an address. prover is the organization that has proven the address's
// domain.
func takes(o *event.Object[org.Org], prover string) bool {
	return o.Data.Policy.Registration == policy.ToAll ||
		o.Data.Policy.Registration == policy.ToDomains && prover == o.ID
}

// registrationID is that of the registration of an address in an organization. The same address, however it is written,
// has one.
func (s *Registrations) registrationID(orgID, email string) string {
	key, _ := syntax.Email(email)
	return hex.EncodeToString(s.Sessions.Master.MAC("registration", []byte(orgID), []byte(key))[:16])
}

const purpose = "registration"

// put writes a registration. It is no event.Flow: the rows of event.Deliveries have the same form.
func (s *Registrations) put(tx *event.Tx, row event.RowKey, p *pending, expires int64) error {
	plain, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: row, Value: s.Sessions.Master.Wrap(purpose, plain, []byte(row.Key)), Expires: expires})
	return nil
}

func (s *Registrations) read(row *event.Row) (*pending, error) {
	plain, err := s.Sessions.Master.Unwrap(purpose, row.Value, []byte(row.Key))
	if err != nil {
		return nil, err
	}
	p := &pending{}
	return p, json.Unmarshal(plain, p)
}

// rowAt is the key of a registration that waits for the person to open the link.
func rowAt(id string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "registration/" + id}
}

// What is in the link: a token, and the id of its registration.
const dot = "."

func linkOf(token, id string) string {
	raw, _ := hex.DecodeString(id) // we have made it
	return token + dot + base64.RawURLEncoding.EncodeToString(raw)
}

// parse takes the text of a link apart. There is one way to write each.
func parse(text string) (hash []byte, row event.RowKey, ok bool) {
	token, at, _ := strings.Cut(text, dot)
	kind, hash, ok := secret.ParseToken(token)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(at)
	if !ok || kind != secret.Registration || err != nil || len(raw) != 16 {
		return nil, event.RowKey{}, false
	}
	return hash, rowAt(hex.EncodeToString(raw)), true
}

// IsLink tells whether a text has the form of what is in the links.
func IsLink(text string) bool {
	_, _, ok := parse(text)
	return ok
}

// opens tells whether a row is what a link leads to.
func (s *Registrations) opens(row *event.Row, hash []byte) (*pending, error) {
	if row == nil {
		return nil, ErrNotFound
	}
	p, err := s.read(row)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(p.Hash, hash) {
		return nil, ErrNotFound
	}
	return p, nil
}
