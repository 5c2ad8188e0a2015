// Package ownpage lets applications with their own sign-in pages send users to identity providers, and get a session
// for the user who comes back.
//
// The application's server starts an attempt and keeps its token. The browser goes to an address of Signet, to the
// provider, and back to Signet, which asks the user for confirmation; only then the browser brings a code to the
// application. An attacker who sees the browser's traffic has the code but no token, and one who has the token has no
// code. A session, a registration or a link needs both, from the application that started the attempt. Nothing is
// stored before the user has come back.
package ownpage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/session"
)

const (
	attemptLife = 20 * time.Minute // from the start to the code: the provider has 10 minutes of it
	codeLife    = 5 * time.Minute
	maxAttempt  = 3 << 10 // bytes of a sealed attempt

	purposeAttempt = "own sign-in attempt"
	purposeCode    = "own sign-in code"
)

// Reasons of this package.
const (
	ClientRefused   errs.Reason = "OWN_SIGN_IN_CLIENT_REFUSED"
	NotAllowed      errs.Reason = "OWN_SIGN_IN_NOT_ALLOWED"
	AttemptNotFound errs.Reason = "OWN_SIGN_IN_ATTEMPT_NOT_FOUND"
)

// Errors that the rules of this package refuse with.
var (
	ErrClient = errs.New(errs.Unauthenticated, ClientRefused,
		"there is no active application with this client id and secret: check both")
	ErrNotAllowed = errs.New(errs.PermissionDenied, NotAllowed,
		"this application may not have a sign-in page of its own: an owner of the installation (IAM_OWNER) allows it (SetApplicationOwnSignIn)")
	ErrAttempt = errs.New(errs.NotFound, AttemptNotFound,
		"this sign-in is not known, or has taken too long: start again at the application")
)

// Pages signs people in for applications. It is safe for concurrent use.
type Pages struct {
	federated.Sessions
	ExternalURL string // without a slash at the end
}

// Client is what an application says about itself.
type Client struct {
	ID, Secret string
	Peer       netip.Addr
	UserAgent  string
	RequestID  string
}

// application returns the application that makes the request. The limit for its network comes first, because the client
// has proven nothing yet. Errors: ErrClient; ErrNotAllowed; ResourceExhausted.
func (p Pages) application(ctx context.Context, c Client) (*event.Object[app.App], error) {
	if err := p.NetworkLimiter.Take(c.Peer, 1); err != nil {
		return nil, err
	}
	if len(c.ID) > event.MaxID {
		return nil, ErrClient
	}
	read, err := p.Store.ClientCredential(ctx, app.Kind.Ref(c.ID))
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, ErrClient
	}
	owner, err := org.Kind.Open(read.Org)
	if err != nil {
		return nil, err
	}
	a, err := app.Kind.Open(read.Object)
	if err != nil {
		return nil, err
	}
	if !app.SecretMatches(&a.Data, read.Secret, c.Secret, p.Clock()) || owner.Data.State != org.Active {
		return nil, ErrClient
	}
	if !a.Data.SignsInItself() {
		return nil, ErrNotAllowed
	}
	return a, nil
}

// Start is a sign-in to start.
type Start struct {
	Client
	Provider      string
	ReturnAddress string
	Again         bool
	Hint          string
}

// Started is a sign-in that was started.
type Started struct {
	Address string // where the browser goes
	Token   string // of the attempt, for the application's server alone
	Expires time.Time
}

// Attempt is a sign-in under way, as the browser carries it.
type Attempt struct {
	Provider string `json:"p"`
	App      string `json:"c"`
	Return   string `json:"r"`
	Token    []byte `json:"t"` // its hash
	Started  int64  `json:"s"`
	Again    bool   `json:"g,omitempty"`
	Hint     string `json:"h,omitempty"`

	Application *event.Object[app.App] `json:"-"` // as it is now
}

// Start starts a sign-in. Errors: ErrClient; ErrNotAllowed; ResourceExhausted; InvalidArgument on returnAddress;
// idp.ErrNotFound where the provider is not offered to people of the application's organization.
func (p Pages) Start(ctx context.Context, s Start) (Started, error) {
	a, err := p.application(ctx, s.Client)
	if err != nil {
		return Started{}, err
	}
	if !slices.Contains(a.Data.RedirectURIs, s.ReturnAddress) {
		return Started{}, errs.Invalid(errs.Violation{Field: "returnAddress",
			Message: "must be one of the application's redirectUris, exactly as registered"})
	}
	if err := p.offered(ctx, s.Provider, a.Org); err != nil {
		return Started{}, err
	}
	token, hash := secret.NewToken(secret.Code)
	t := Attempt{Provider: s.Provider, App: a.ID, Return: s.ReturnAddress, Token: hash,
		Started: event.Micros(p.Clock()), Again: s.Again, Hint: s.Hint}
	plain, err := json.Marshal(t)
	if err != nil {
		return Started{}, err
	}
	text := base64.RawURLEncoding.EncodeToString(p.Master.Wrap(purposeAttempt, plain, nil))
	if len(text) > maxAttempt {
		return Started{}, errs.Invalid(errs.Violation{Field: "loginHint",
			Message: "is too long together with the return address"})
	}
	address := p.ExternalURL + "/login/idp/" + url.PathEscape(s.Provider) + "?" + url.Values{Param: {text}}.Encode()
	return Started{Address: address, Token: token, Expires: event.Time(t.Started).Add(attemptLife)}, nil
}

// Param carries an attempt in an address of ours.
const Param = "attempt"

// offered refuses a provider that is not for people of an organization. Errors: idp.ErrNotFound.
func (p Pages) offered(ctx context.Context, id, orgID string) error {
	found, err := idp.Kind.Read(ctx, p.Store, id)
	if err != nil {
		return err
	}
	asked, _, err := org.ReadPolicy(ctx, p.Store, orgID)
	if err != nil {
		return err
	}
	if !session.ProviderUsable(found) || !session.ProviderReaches(found, orgID, p.DefaultOrg) ||
		!asked.AllowsProvider(id) {
		return idp.ErrNotFound
	}
	return nil
}

// Open reads an attempt, if it may go on. Errors: ErrAttempt.
func (p Pages) Open(ctx context.Context, provider, text string) (*Attempt, error) {
	t := p.read(text)
	now := p.Clock()
	if t == nil || t.Provider != provider || !now.Before(event.Time(t.Started).Add(attemptLife)) ||
		event.Time(t.Started).After(now.Add(time.Minute)) {
		return nil, ErrAttempt
	}
	a, err := app.InUse(ctx, p.Store, t.App)
	if err != nil {
		if e, ours := err.(*errs.Error); ours && e.Kind == errs.NotFound {
			return nil, ErrAttempt
		}
		return nil, err
	}
	if !a.Data.SignsInItself() || !slices.Contains(a.Data.RedirectURIs, t.Return) {
		return nil, ErrAttempt
	}
	t.Application = a
	return t, nil
}

// read opens an attempt; nil if it is not ours.
func (p Pages) read(text string) *Attempt {
	if text == "" || len(text) > maxAttempt {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	plain, err := p.Master.Unwrap(purposeAttempt, sealed, nil)
	if err != nil {
		return nil
	}
	t := new(Attempt)
	if json.Unmarshal(plain, t) != nil || len(t.Token) != sha256.Size {
		return nil
	}
	return t
}

// Back is the return address of an attempt with one more parameter.
func (t *Attempt) Back(name, value string) (string, error) {
	u, err := url.Parse(t.Return)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// codes are sealed so that only the holder of the attempt's token can read them: they contain names of people.
var codes = event.Flow[codePayload]{Prefix: "own_code", Life: codeLife, Purpose: purposeCode}

// attemptRow remembers that an attempt was used. It is no event.Flow: only its presence counts.
func attemptRow(hash []byte) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "own_attempt/" + hex.EncodeToString(hash)}
}

// codePayload is what a code leads to.
type codePayload struct {
	App     string       `json:"app"`
	Who     idp.Identity `json:"who"`
	Started int64        `json:"started"`
}

// Code makes a code for the application, once the person has agreed. used is the row that the person's answer came
// from: it is used up.
func (p Pages) Code(ctx context.Context, t *Attempt, who idp.Identity, used event.RowKey) (string, error) {
	code, hash := secret.NewToken(secret.Code)
	err := p.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{used},
		Decide: func(tx *event.Tx) error {
			row, err := tx.Row(used)
			if err != nil {
				return err
			}
			if row == nil {
				return ErrAttempt
			}
			tx.DropRow(used)
			codes.For(p.Master, string(t.Token)).Put(tx, hex.EncodeToString(hash),
				&codePayload{App: t.App, Who: who, Started: t.Started})
			return nil
		},
	})
	return code, err
}

// Redeem is what an application brings for somebody who has come back.
type Redeem struct {
	Client
	Token string // of the attempt
	Code  string
}

// redeem finds out who has come back. Errors: ErrClient; ErrNotAllowed; ResourceExhausted; session.ErrSignInFailed
// where token and code are not of one attempt of this application, or were used.
func (p Pages) redeem(ctx context.Context, r Redeem) (idp.Identity, *federated.ByCode, error) {
	var nobody idp.Identity
	a, err := p.application(ctx, r.Client)
	if err != nil {
		return nobody, nil, err
	}
	tokenKind, token, ok := secret.ParseToken(r.Token)
	codeKind, code, also := secret.ParseToken(r.Code)
	if !ok || !also || tokenKind != secret.Code || codeKind != secret.Code {
		return nobody, nil, session.ErrSignInFailed
	}
	id := hex.EncodeToString(code)
	from, err := codes.For(p.Master, string(token)).Read(ctx, p.Store, id)
	if err != nil {
		return nobody, nil, err
	}
	if from == nil || from.App != a.ID {
		return nobody, nil, session.ErrSignInFailed
	}
	until := event.Micros(event.Time(from.Started).Add(attemptLife + codeLife + time.Minute))
	return from.Who, &federated.ByCode{App: a.ID, Org: a.Org, Code: codes.Key(id), Attempt: attemptRow(token),
		Until: until}, nil
}

// Registration is what a new user is registered with. Empty fields are filled in with what the provider says.
type Registration struct{ UserName, FirstName, LastName, NickName, Language, Email, AcceptedTerms string }

// SignIn opens a session for who has come back, and registers them first where that is wanted and nobody is linked.
// Errors: those of redeem; of federated.Sessions.SignInThrough and, with a registration, of RegisterThrough. After
// session.ErrNotLinked, and after what is wrong with a registration, the code can be used still.
func (p Pages) SignIn(ctx context.Context, r Redeem, register *Registration) (session.SignedIn, error) {
	who, by, err := p.redeem(ctx, r)
	if err != nil {
		return session.SignedIn{}, err
	}
	in, err := p.SignInThrough(ctx, who,
		federated.SignInRequest{OrgID: by.Org, App: by.App, By: by,
			Peer: r.Peer, UserAgent: r.UserAgent, RequestID: r.RequestID})
	if register == nil || err != session.ErrNotLinked { //nolint:errorlint // it is this very one, with nothing around it
		return in, err
	}
	return p.RegisterThrough(ctx, who, register.of(who, by, r))
}

func (n *Registration) of(who idp.Identity, by *federated.ByCode, r Redeem) federated.Registration {
	out := federated.Registration{OrgID: by.Org, UserName: n.UserName, FirstName: n.FirstName, LastName: n.LastName,
		NickName: n.NickName, Language: n.Language, Email: n.Email, AcceptedTerms: n.AcceptedTerms,
		By: by, App: by.App, Peer: r.Peer, UserAgent: r.UserAgent, RequestID: r.RequestID}
	for _, f := range []struct {
		to   *string
		said string
	}{{&out.UserName, who.UserName}, {&out.FirstName, who.FirstName}, {&out.LastName, who.LastName},
		{&out.NickName, who.NickName}, {&out.Language, who.Language}, {&out.Email, who.Email}} {
		if *f.to == "" {
			*f.to = f.said
		}
	}
	out.EmailFromProvider = out.Email == who.Email
	return out
}

// Link links the account of the caller with that at the provider. Errors: those of redeem, and of
// federated.Sessions.Link.
func (p Pages) Link(ctx context.Context, caller *access.Caller, r Redeem, from session.From) (federated.Linked, error) {
	who, by, err := p.redeem(ctx, r)
	if err != nil {
		return federated.Linked{}, err
	}
	return p.LinkBy(ctx, caller, who, by, from)
}
