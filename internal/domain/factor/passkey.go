package factor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// passkey is what is kept of a passkey.
type passkey struct {
	FactorID   string                            `json:"factorId"`
	ID         []byte                            `json:"id"` // what the authenticator calls it
	PublicKey  []byte                            `json:"publicKey"`
	Transports []protocol.AuthenticatorTransport `json:"transports,omitempty"`
	Flags      byte                              `json:"flags"`
	SignCount  uint32                            `json:"signCount,omitempty"`
	AAGUID     []byte                            `json:"aaguid,omitempty"`
}

func (p *passkey) credential() webauthn.Credential {
	return webauthn.Credential{ID: p.ID, PublicKey: p.PublicKey, Transport: p.Transports,
		Flags:         webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(p.Flags)),
		Authenticator: webauthn.Authenticator{AAGUID: p.AAGUID, SignCount: p.SignCount}}
}

// person is a user as the library wants to see one. The handle that authenticators keep is the user's identifier.
type person struct {
	id, name, displayName string
	credentials           []webauthn.Credential
}

func (p *person) WebAuthnID() []byte                         { return []byte(p.id) }
func (p *person) WebAuthnName() string                       { return p.name }
func (p *person) WebAuthnDisplayName() string                { return p.displayName }
func (p *person) WebAuthnCredentials() []webauthn.Credential { return p.credentials }

// who reads somebody with the passkeys they have.
func who(u *event.Object[user.User], row *event.Row) (*person, error) {
	k, err := parseKept(row)
	if err != nil {
		return nil, err
	}
	p := &person{id: u.ID, name: u.Data.UserName, displayName: u.Data.UserName}
	if u.Data.Human != nil {
		p.displayName = u.Data.Human.Profile.DisplayName
	}
	for i := range k.Passkeys {
		p.credentials = append(p.credentials, k.Passkeys[i].credential())
	}
	return p, nil
}

// use is what a challenge is for. It is good for nothing else.
type use string

const (
	toAdd    use = "add"     // a passkey, in a session
	toProve  use = "prove"   // a second factor, in a session
	toSignIn use = "sign in" // without anything else
	toJoin   use = "join"    // somebody who is no user yet: the first passkey
)

// challenge is what the row of one holds. A row is used up by the first answer. One for signing in has no row before it
// was used, see sealedChallenge.
type challenge struct {
	Use     use                   `json:"use"`
	UserID  string                `json:"userId,omitempty"`
	Session string                `json:"session,omitempty"`
	Data    *webauthn.SessionData `json:"data,omitempty"`
}

// challenges are found by what comes back with the answer.
var challenges = event.Flow[challenge]{Prefix: "challenge", Life: startLife}

// challengeID is the identifier of a row. The challenge itself is not stored as a key.
func challengeID(text string) string { return secret.Digest(text) }

// Started is a ceremony that a browser is to go through.
type Started struct {
	Options   string // JSON, as PublicKeyCredential.parse…OptionsFromJSON takes it
	challenge challenge
}

// Put remembers the challenge.
func (s *Started) Put(tx *event.Tx) {
	challenges.Put(tx, challengeID(s.challenge.Data.Challenge), &s.challenge)
}

func started(options any, c challenge) (*Started, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	return &Started{Options: string(text), challenge: c}, nil
}

// StartPasskey begins to add a passkey in a session. row is what user.FactorsRow leads to. Errors:
// ErrPasskeysUnavailable; user.ErrNotHuman; ErrTooMany.
func (f *Factors) StartPasskey(u *event.Object[user.User], row *event.Row, sessionID string) (*Started, error) {
	if f.party == nil {
		return nil, ErrPasskeysUnavailable
	}
	if err := room(u); err != nil {
		return nil, err
	}
	p, err := who(u, row)
	if err != nil {
		return nil, err
	}
	var known []protocol.CredentialDescriptor
	for i := range p.credentials {
		known = append(known, p.credentials[i].Descriptor())
	}
	options, data, err := f.party.BeginRegistration(p, webauthn.WithExclusions(known))
	if err != nil {
		return nil, err
	}
	return started(options.Response, challenge{Use: toAdd, UserID: u.ID, Session: sessionID, Data: data})
}

// StartFirst begins to make the passkey of somebody who becomes a user, under an identifier that was made for them.
// flow is what lets them in: only who comes with the same one can finish it. Errors: ErrPasskeysUnavailable.
func (f *Factors) StartFirst(userID, name, displayName, flow string) (*Started, error) {
	if f.party == nil {
		return nil, ErrPasskeysUnavailable
	}
	options, data, err := f.party.BeginRegistration(&person{id: userID, name: name, displayName: displayName})
	if err != nil {
		return nil, err
	}
	return started(options.Response, challenge{Use: toJoin, UserID: userID, Session: flow, Data: data})
}

// StartProof begins to prove a passkey as a second factor in a session. Errors: ErrPasskeysUnavailable; ErrNoPasskey.
func (f *Factors) StartProof(u *event.Object[user.User], row *event.Row, sessionID string) (*Started, error) {
	if f.party == nil {
		return nil, ErrPasskeysUnavailable
	}
	p, err := who(u, row)
	if err != nil {
		return nil, err
	}
	if len(p.credentials) == 0 {
		return nil, ErrNoPasskey
	}
	// The password was right: that somebody has the device is all that is missing.
	options, data, err := f.party.BeginLogin(p, webauthn.WithUserVerification(protocol.VerificationPreferred))
	if err != nil {
		return nil, err
	}
	return started(options.Response, challenge{Use: toProve, UserID: u.ID, Session: sessionID, Data: data})
}

// StartSignIn begins a sign-in with nothing but a passkey, which has to have made sure that its owner uses it. Nothing
// has to be remembered. Errors: ErrPasskeysUnavailable.
func (f *Factors) StartSignIn(now time.Time) (options string, err error) {
	if f.party == nil {
		return "", ErrPasskeysUnavailable
	}
	shown, _, err := f.party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired),
		webauthn.WithChallenge(f.sealedChallenge(now)))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(shown.Response)
	return string(text), err
}

// Lengths of the parts of a challenge for signing in.
const (
	nonceLength = 32
	untilLength = 8
)

// sealedChallenge makes a challenge for signing in: a number that is used once, until when it counts, and a MAC over
// both. Everybody who looks at the page gets one, so a row for each would let strangers fill the database. What is
// stored instead is that it was used, once somebody has proven a passkey with it.
func (f *Factors) sealedChallenge(now time.Time) []byte {
	c := make([]byte, nonceLength, nonceLength+untilLength+sha256.Size)
	_, _ = rand.Read(c) // it never fails: crypto/rand ends the program instead
	c = binary.BigEndian.AppendUint64(c, uint64(event.Micros(now.Add(startLife))))
	return append(c, f.challengeMAC(c)...)
}

func (f *Factors) challengeMAC(c []byte) []byte { return f.master.MAC("sign-in challenge", c) }

// until tells until when a challenge for signing in counts; zero for what is none of ours. There is one way to write
// each.
func (f *Factors) until(text string) int64 {
	c, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(c) != nonceLength+untilLength+sha256.Size || base64.RawURLEncoding.EncodeToString(c) != text {
		return 0
	}
	c, mac := c[:nonceLength+untilLength], c[nonceLength+untilLength:]
	if !hmac.Equal(mac, f.challengeMAC(c)) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(c[nonceLength:]))
}

// find reads the challenge that an answer is to; nil where there is none for this use.
func find(ctx context.Context, r event.Reader, id string, what use, sessionID string) (*challenge, error) {
	c, err := challenges.Read(ctx, r, id)
	if err != nil || c == nil || c.Use != what || c.Session != sessionID {
		return nil, err
	}
	return c, nil
}

// NewPasskey is a passkey that a browser has made.
type NewPasskey struct {
	parsed    *protocol.ParsedCredentialCreationData
	challenge string // the identifier of its row
	made      *webauthn.Credential
}

// Row is the key of the challenge; a command that adds the passkey declares it.
func (n *NewPasskey) Row() event.RowKey { return challenges.Key(n.challenge) }

// ReadNewPasskey reads what a browser answers (RegistrationResponseJSON). Errors: InvalidArgument on credential.
func ReadNewPasskey(text string) (*NewPasskey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(text))
	if err != nil {
		return nil, errs.Invalid(errs.Violation{Field: "credential",
			Message: "is not a passkey credential: send the credential's toJSON() as text"}).Because(err)
	}
	return &NewPasskey{parsed: parsed, challenge: challengeID(parsed.Response.CollectedClientData.Challenge)}, nil
}

func errNotMade(cause error) error {
	return errs.Invalid(errs.Violation{Field: "credential",
		Message: "does not match a challenge of this session, or is too late: start again"}).Because(cause)
}

// Check verifies a new passkey before the command that adds it. Errors: ErrPasskeysUnavailable; InvalidArgument on
// credential.
func (f *Factors) Check(ctx context.Context, r event.Reader, n *NewPasskey, userID, sessionID string) error {
	if f.party == nil {
		return ErrPasskeysUnavailable
	}
	c, err := find(ctx, r, n.challenge, toAdd, sessionID)
	if err != nil {
		return err
	}
	if c == nil || c.UserID != userID {
		return errNotMade(nil)
	}
	return f.created(n, c)
}

// CheckFirst is Check for a passkey of StartFirst. It gives the identifier that was made for its owner.
func (f *Factors) CheckFirst(ctx context.Context, r event.Reader, n *NewPasskey,
	flow string) (userID string, err error) {
	if f.party == nil {
		return "", ErrPasskeysUnavailable
	}
	c, err := find(ctx, r, n.challenge, toJoin, flow)
	if err != nil {
		return "", err
	}
	if c == nil {
		return "", errNotMade(nil)
	}
	return c.UserID, f.created(n, c)
}

func (f *Factors) created(n *NewPasskey, c *challenge) (err error) {
	if n.made, err = f.party.CreateCredential(&person{id: c.UserID}, *c.Data, n.parsed); err != nil {
		return errNotMade(err)
	}
	return nil
}

// AddPasskey adds a passkey that was checked. The command declared the user for writing, n.Row() and user.FactorsRow.
// Errors: user.ErrNotHuman; ErrTooMany; ErrPasskeyExists; InvalidArgument on credential.
func (f *Factors) AddPasskey(tx *event.Tx, u *event.Object[user.User], n *NewPasskey,
	name string) (id string, err error) {
	if err := room(u); err != nil {
		return "", err
	}
	used, err := challenges.Use(tx, n.challenge)
	if err != nil {
		return "", err
	}
	if used == nil {
		return "", errNotMade(nil)
	}
	k, err := load(tx, u.ID)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(k.Passkeys, func(p passkey) bool { return bytes.Equal(p.ID, n.made.ID) }) {
		return "", ErrPasskeyExists
	}
	k.Removed = slices.DeleteFunc(k.Removed, func(p passkey) bool { return bytes.Equal(p.ID, n.made.ID) })
	id = event.NewID("fac")
	k.Passkeys = append(k.Passkeys, passkey{
		FactorID:   id,
		ID:         n.made.ID,
		PublicKey:  n.made.PublicKey,
		Transports: n.made.Transport,
		Flags:      byte(n.made.Flags.ProtocolValue()),
		SignCount:  n.made.Authenticator.SignCount,
		AAGUID:     n.made.Authenticator.AAGUID,
	})
	if err := k.save(tx, u.ID); err != nil {
		return "", err
	}
	return id, u.Append(user.PasskeyAdded{FactorID: id, Created: tx.Now(), Personal: user.FactorFacts{Name: name}})
}

// Assertion is a passkey's answer to a challenge.
type Assertion struct {
	parsed    *protocol.ParsedCredentialAssertionData
	challenge string // the identifier of its row
	verified  []byte // the public key that the signature belongs to
	until     int64  // of a challenge for signing in; else zero
}

// Row is the key of the challenge; a command that accepts the assertion declares it.
func (a *Assertion) Row() event.RowKey { return challenges.Key(a.challenge) }

// useUp takes the challenge of an assertion, if nobody else has.
func (a *Assertion) useUp(tx *event.Tx) (bool, error) {
	if a.until == 0 {
		used, err := challenges.Use(tx, a.challenge)
		return used != nil, err
	}
	used, err := challenges.Get(tx, a.challenge)
	if err != nil || used != nil || tx.Now() >= a.until {
		return false, err
	}
	// It is remembered for longer than the challenge counts: the clock of another node may be behind.
	challenges.PutUntil(tx, a.challenge, &challenge{Use: toSignIn}, a.until+startLife.Microseconds())
	return true, nil
}

// ReadAssertion reads what a browser answers (AuthenticationResponseJSON). Errors: InvalidArgument on field.
func ReadAssertion(field, text string) (*Assertion, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(text))
	if err != nil {
		return nil, errs.Invalid(errs.Violation{Field: field,
			Message: "is not a passkey credential: send the credential's toJSON() as text"}).Because(err)
	}
	return &Assertion{parsed: parsed, challenge: challengeID(parsed.Response.CollectedClientData.Challenge)}, nil
}

// UserID is whose passkey it says to be; empty where it does not say, or says what is no identifier.
func (a *Assertion) UserID() string {
	for _, c := range a.parsed.Response.UserHandle {
		if c != '_' && !('0' <= c && c <= '9') && !('a' <= c && c <= 'z') {
			return ""
		}
	}
	return string(a.parsed.Response.UserHandle)
}

// Verified tells whether the authenticator made sure that its owner uses it.
func (a *Assertion) Verified() bool {
	return a.parsed.Response.AuthenticatorData.Flags.HasUserVerified()
}

// VerifyProof tells whether an assertion proves a passkey of the user in a session, before the command that accepts it:
// the signature is work that should not hold up others.
func (f *Factors) VerifyProof(ctx context.Context, r event.Reader, a *Assertion, u *event.Object[user.User],
	sessionID string) (right bool, err error) {
	if f.party == nil {
		return false, nil
	}
	c, err := find(ctx, r, a.challenge, toProve, sessionID)
	if err != nil || c == nil || c.UserID != u.ID {
		return false, err
	}
	return f.verify(ctx, r, a, u,
		func(p *person) (*webauthn.Credential, error) { return f.party.ValidateLogin(p, *c.Data, a.parsed) })
}

// VerifySignIn tells the same of an assertion that is to sign the user in.
func (f *Factors) VerifySignIn(ctx context.Context, r event.Reader, a *Assertion,
	u *event.Object[user.User]) (right bool, err error) {
	if f.party == nil {
		return false, nil
	}
	text := a.parsed.Response.CollectedClientData.Challenge
	if a.until = f.until(text); a.until == 0 {
		return false, nil
	}
	begun := webauthn.SessionData{Challenge: text, UserVerification: protocol.VerificationRequired}
	return f.verify(ctx, r, a, u, func(p *person) (*webauthn.Credential, error) {
		return f.party.ValidateDiscoverableLogin(func(_, _ []byte) (webauthn.User, error) { return p, nil },
			begun, a.parsed)
	})
}

func (f *Factors) verify(ctx context.Context, r event.Reader, a *Assertion, u *event.Object[user.User],
	validate func(*person) (*webauthn.Credential, error)) (right bool, err error) {
	row, err := r.Row(ctx, user.FactorsRow(u.ID))
	if err != nil {
		return false, err
	}
	p, err := who(u, row)
	if err != nil {
		return false, err
	}
	used, err := validate(p)
	if err != nil { // whatever is wrong with it
		return false, nil
	}
	a.verified = used.PublicKey
	return true, nil
}

// Accept takes an assertion that was verified. The challenge is used up in any case. A passkey that was removed
// meanwhile is refused, and so is one that counts no further than before: there is a copy of it. The command declared
// a.Row() and user.FactorsRow.
func (f *Factors) Accept(tx *event.Tx, a *Assertion, userID string) (right bool, err error) {
	return f.accept(tx, a, userID, func(string) bool { return true })
}

// AcceptOlder is Accept for a passkey that was added before a moment. The command declared the user too.
func (f *Factors) AcceptOlder(tx *event.Tx, a *Assertion, u *event.Object[user.User],
	before int64) (right bool, err error) {
	return f.accept(tx, a, u.ID, func(id string) bool { return u.Data.Human.HadFactor(id, before) })
}

func (f *Factors) accept(tx *event.Tx, a *Assertion, userID string,
	usable func(id string) bool) (right bool, err error) {
	if used, err := a.useUp(tx); err != nil || !used {
		return false, err
	}
	k, err := load(tx, userID)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(k.Passkeys, func(p passkey) bool {
		return bytes.Equal(p.ID, a.parsed.RawID) && bytes.Equal(p.PublicKey, a.verified) && usable(p.FactorID)
	})
	if i < 0 {
		return false, nil
	}
	data := &a.parsed.Response.AuthenticatorData
	counted := webauthn.Authenticator{SignCount: k.Passkeys[i].SignCount}
	if counted.UpdateCounter(data.Counter); counted.CloneWarning {
		return false, nil
	}
	k.Passkeys[i].SignCount = counted.SignCount
	return true, k.save(tx, userID)
}
