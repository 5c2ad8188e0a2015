package session

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// Life of a session, unless the policy says otherwise.
const Life = policy.DefaultSessionLife

// Sessions lets people and programs in.
type Sessions struct {
	Store  event.Store
	Hasher *secret.Hasher
	Master secret.MasterKey
	Clock  func() time.Time
	// DefaultOrg is where names are looked for that lead to no other organization.
	DefaultOrg string
	// EmailsPerOrganization keeps e-mail addresses from being looked for in organizations other than the one that a
	// sign-in is at.
	EmailsPerOrganization bool
	Standings             *Standings
	// Audience is what an access token has to be meant for to be accepted by Signet's own API. Empty: none is.
	Audience string
	// Renewals extends sessions while they are used. If it is nil, a session is extended before the request that uses
	// it is answered.
	Renewals *Renewals
	// Factors checks second factors.
	Factors *factor.Factors
	// Tally counts sign-ins; nil: nobody does.
	Tally *tally.Tally
	// Unsaid holds the accounts whose failed sign-ins are to be recorded later; nil: they wait for the next attempt.
	Unsaid *Unsaid
	// NetworkLimiter bounds what those who have not signed in can begin from one network. Nil: it is not bounded.
	NetworkLimiter *ratelimit.NetworkLimiter
}

// find looks for the user of a login name, see NameFinder.Find.
func (s *Sessions) find(ctx context.Context, loginName string,
	at NameScope) (*event.Object[user.User], TypedName, error) {
	return NameFinder{Store: s.Store, DefaultOrg: s.DefaultOrg,
		EmailsPerOrganization: s.EmailsPerOrganization}.Find(ctx, loginName, at)
}

// Proof is what is known of how the person of a session was recognised. It is kept with the session's token.
type Proof struct {
	Methods      []Method `json:"methods,omitempty"` // in the order in which they were used
	At           int64    `json:"at,omitempty"`      // when the last of them was, in microseconds
	SecondFactor bool     `json:"secondFactor,omitempty"`

	// When each of the two factors was proven last, where the other one was since; zero: with At.
	FirstAt  int64 `json:"firstAt,omitempty"`
	FactorAt int64 `json:"factorAt,omitempty"`

	// Device is the remembered device that the session was opened on without a second factor; empty: none. It lets the
	// session act, and is no proof.
	Device string `json:"device,omitempty"`

	// Of a session that ends when it is not used: when it ends in any case, and how long it may stay unused, both in
	// microseconds. Zero: it ends when its token expires.
	Until int64 `json:"until,omitempty"`
	Idle  int64 `json:"idle,omitempty"`

	Upstream *Upstream `json:"upstream,omitempty"` // the provider that the session came through; nil: none
}

// Way is how the session was opened; empty where nothing is proven.
func (p Proof) Way() Method {
	if len(p.Methods) == 0 {
		return ""
	}
	return p.Methods[0]
}

func (p Proof) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return string(text)
}

// ProofOf reads the proof of a session. Sessions from before it was kept were opened by a password.
func ProofOf(t *event.Token) (Proof, error) {
	if t.Data == "" {
		return Proof{Methods: []Method{ByPassword}, At: t.Created}, nil
	}
	var p Proof
	if err := json.Unmarshal([]byte(t.Data), &p); err != nil {
		return Proof{}, fmt.Errorf("proof of %s: %w", t.ID, err)
	}
	return p, nil
}

// Given is what an application was given with an access token. It is kept with the token.
type Given struct {
	Scopes         []string `json:"scopes,omitempty"`
	Audience       []string `json:"audience,omitempty"`
	ClientEpoch    int64    `json:"clientEpoch,omitempty"`
	ClientOrgEpoch int64    `json:"clientOrgEpoch,omitempty"`
	APIEpoch       int64    `json:"apiEpoch,omitempty"` // of the application; it counts for scopes of Signet's API only
	Proof          Proof    `json:"proof,omitzero"`     // of the sign-in it came from
	Key            string   `json:"key,omitempty"`      // thumbprint of the key that it is bound to; empty: none
	Basis
}

// Text is what Token.Data holds of it.
func (g Given) Text() string {
	text, err := json.Marshal(g)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return string(text)
}

// Bearer is a token that counts, and whose it is.
type Bearer struct {
	Token  event.Token
	Caller *access.Caller
	Given  Given // of an access token; not to be altered
	// ClientOrg is the organization of whom an access token was given to: an application, or a service user for itself.
	ClientOrg string
	// Client is the application; the zero value for a service user.
	Client project.Client
	Places *project.Places          // what decided about whether the person may use it; nil: nothing did
	Person *event.Object[user.User] // who was read for that; nil: nobody
}

// Authenticate tells who calls Signet's own API with a token, in one query and with nothing remembered from earlier
// requests. A caller with a Key has to prove it yet. Errors: access.ErrUnauthenticated, whatever is wrong with the token.
func (s *Sessions) Authenticate(ctx context.Context, bearer string) (*access.Caller, error) {
	b, err := s.Bearer(ctx, bearer)
	if err != nil {
		return nil, err
	}
	if b.Token.Kind == string(secret.Access) && !slices.Contains(b.Given.Audience, s.Audience) {
		return nil, access.ErrUnauthenticated
	}
	return b.Caller, nil
}

// Bearer reads a session, a personal access token or an access token that counts, whatever it is meant for. Errors:
// access.ErrUnauthenticated.
func (s *Sessions) Bearer(ctx context.Context, bearer string) (*Bearer, error) {
	kind, hash, ok := secret.ParseToken(bearer)
	if !ok && strings.Count(bearer, ".") == 2 {
		// An access token may be a JWT. It is known by its hash like any other: no part of it decides by itself.
		sum := sha256.Sum256([]byte(bearer))
		kind, hash, ok = secret.Access, sum[:], true
	}
	if !ok {
		return nil, access.ErrNotAToken
	}
	var read *event.TokenContext
	var err error
	switch kind {
	case secret.Session, secret.PAT:
		read, err = s.Store.TokenContext(ctx, hash)
	case secret.Access:
		read, err = s.Store.AppTokenContext(ctx, hash)
	}
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, access.ErrUnauthenticated
	}
	b, err := s.judge(read, kind)
	if err != nil || kind != secret.Access {
		return b, err
	}
	return s.inUse(ctx, b)
}

// Session reads a session that counts, and nothing else. Errors: access.ErrUnauthenticated.
func (s *Sessions) Session(ctx context.Context, token string) (*Bearer, error) {
	if kind, _, ok := secret.ParseToken(token); !ok || kind != secret.Session {
		return nil, access.ErrUnauthenticated
	}
	return s.Bearer(ctx, token)
}

// SessionByHash reads a session that counts by the hash of its token. Errors: access.ErrUnauthenticated.
func (s *Sessions) SessionByHash(ctx context.Context, hash []byte) (*Bearer, error) {
	read, err := s.Store.TokenContext(ctx, hash)
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, access.ErrUnauthenticated
	}
	return s.judge(read, secret.Session)
}

// judge tells whose a token is that was read. Errors: access.ErrUnauthenticated where it does not count now.
func (s *Sessions) judge(read *event.TokenContext, kind secret.TokenKind) (*Bearer, error) {
	u, err := s.Standings.users.Read(read.UserStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", read.UserID, err)
	}
	o, err := s.Standings.orgs.Read(read.OrgStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", read.OrgID, err)
	}
	i, err := s.Standings.installations.Read(read.InstallationStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of the installation: %w", err)
	}
	p, err := s.Standings.providers.Read(read.ProviderStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", read.Token.Provider, err)
	}
	b := &Bearer{Token: read.Token, Caller: &access.Caller{
		UserID: read.UserID, OrgID: read.OrgID, Memberships: u.Memberships, TokenID: read.Token.ID,
		TokenKind: read.Token.Kind,
		User:      read.User, Org: read.Org, SessionEpoch: u.SessionEpoch, SecondFactor: u.SecondFactor,
	}}
	now := event.Micros(s.Clock())
	if kind == secret.Access {
		if err := s.judgeAccess(b, read, u, o, i, p, now); err != nil {
			return nil, err
		}
		return b, nil
	}
	if !alive(&read.Token, kind, u, o, p, now) {
		return nil, access.ErrUnauthenticated
	}
	if kind == secret.Session { // a token that does not prove the password is not held up by it
		b.Caller.Session = &b.Token
		b.Caller.Shown = func() (access.Shown, error) {
			proof, err := ProofOf(&b.Token)
			return proof.shown(u.SecondFactor), err
		}
		b.Caller.MustChangePassword = u.Password.ChangeRequired
		if b.Caller.MustProveSecondFactor, err = unproven(&read.Token, u, o, i); err != nil {
			return nil, err
		}
		b.Caller.Used, err = s.renewal(&read.Token, now)
	}
	return b, err
}

// judgeAccess decides about an access token. One that lives with a session counts only while that session counts in
// full, and its person has not ended the tokens alone.
func (s *Sessions) judgeAccess(b *Bearer, read *event.TokenContext, u *user.Standing, o *org.Standing,
	i *installation.Standing, p *idp.Standing, now int64) error {
	t := &read.Token
	if t.Data == "" {
		return access.ErrUnauthenticated
	}
	given, err := s.Standings.given.Read(t.Data)
	if err != nil {
		return fmt.Errorf("what %s was given: %w", t.ID, err)
	}
	b.Given, b.ClientOrg = *given, read.OrgID
	if t.Client != "" {
		client, err := s.Standings.apps.Read(read.ClientStanding)
		if err != nil {
			return fmt.Errorf("standing of %s: %w", t.Client, err)
		}
		b.ClientOrg = read.ClientOrgID
		b.Client = project.Client{Org: b.ClientOrg, RoleSettings: client.RoleSettings, Open: client.Open,
			Mapped: client.Mapped}
		owner, err := s.Standings.orgs.Read(read.ClientOrgStanding)
		if err != nil {
			return fmt.Errorf("standing of %s: %w", read.ClientOrgID, err)
		}
		if client.State != app.Active || client.Epoch != b.Given.ClientEpoch || owner.State != org.Active ||
			owner.Epoch != b.Given.ClientOrgEpoch ||
			client.APIEpoch != b.Given.APIEpoch && slices.ContainsFunc(b.Given.Scopes, access.IsAPIScope) {
			return access.ErrUnauthenticated
		}
	}
	if t.Session == "" {
		if !alive(t, secret.Access, u, o, p, now) {
			return access.ErrUnauthenticated
		}
	} else {
		l := read.Session
		if l == nil || l.UserID != t.UserID || !alive(l, secret.Session, u, o, p, now) ||
			t.Kind != string(secret.Access) || now >= t.Expires || t.Epoch != u.TokenEpoch ||
			t.Provider != l.Provider {
			return access.ErrUnauthenticated
		}
		restricted, err := unproven(l, u, o, i)
		if err != nil {
			return err
		}
		if restricted || u.Password.ChangeRequired {
			return access.ErrUnauthenticated
		}
	}
	b.Caller.Client, b.Caller.Scopes, b.Caller.Key = t.Client, b.Given.Scopes, b.Given.Key
	if t.Client != "" {
		b.Caller.Shown = func() (access.Shown, error) { return given.Proof.shown(u.SecondFactor), nil }
	}
	if b.Caller.Scopes == nil {
		b.Caller.Scopes = []string{} // none at all, which is less than no restriction
	}
	return nil
}

// unproven tells whether a session has a second factor still to prove.
func unproven(session *event.Token, u *user.Standing, o *org.Standing, i *installation.Standing) (bool, error) {
	if !u.SecondFactor && !o.SecondFactorRequired && !i.SecondFactorRequired {
		return false, nil
	}
	proof, err := ProofOf(session)
	return !proof.SecondFactor && proof.Device == "", err
}

// alive tells whether a token counts now. Sessions and remembered devices end with the epoch of sessions, everything
// else with that of tokens. p is the provider that it came through; nil where there is none.
func alive(t *event.Token, kind secret.TokenKind, u *user.Standing, o *org.Standing, p *idp.Standing, now int64) bool {
	epoch := u.TokenEpoch
	if kind == secret.Session || kind == secret.Device {
		epoch = u.SessionEpoch
	}
	return t.Kind == string(kind) && now < t.Expires && u.State == user.Active && o.State == org.Active &&
		t.Epoch == epoch && t.OrgEpoch == o.Epoch && provided(t, u, p)
}
