package factor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Browsers and password managers go on to offer passkeys that were removed here, under names that have changed. The
// Signal API of WebAuthn tells them: pages carry what to say as JSON, by the names of its methods.

// signal is what a page tells the browser.
type signal struct {
	Accepted *acceptedCredentials `json:"signalAllAcceptedCredentials,omitempty"`
	Details  *userDetails         `json:"signalCurrentUserDetails,omitempty"`
	Unknown  *unknownCredential   `json:"signalUnknownCredential,omitempty"`
}

type acceptedCredentials struct {
	RPID   string   `json:"rpId"`
	UserID string   `json:"userId"`
	IDs    []string `json:"allAcceptedCredentialIds"`
}

type userDetails struct {
	RPID        string `json:"rpId"`
	UserID      string `json:"userId"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

type unknownCredential struct {
	RPID string `json:"rpId"`
	ID   string `json:"credentialId"`
}

// inJSON is how JSON of WebAuthn writes bytes.
func inJSON(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s signal) text() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return text
}

// Signal is what to tell the browser of somebody who is signed in: which passkeys count, and under which names. Nothing
// where there can be none.
func (f *Factors) Signal(ctx context.Context, r event.Reader, u *event.Object[user.User]) ([]byte, error) {
	if f.party == nil {
		return nil, nil
	}
	row, err := r.Row(ctx, user.FactorsRow(u.ID))
	if err != nil {
		return nil, err
	}
	p, err := who(u, row)
	if err != nil {
		return nil, err
	}
	id, ids := inJSON(p.WebAuthnID()), []string{}
	for i := range p.credentials {
		ids = append(ids, inJSON(p.credentials[i].ID))
	}
	party := f.party.Config.RPID
	return signal{Accepted: &acceptedCredentials{party, id, ids},
		Details: &userDetails{party, id, p.name, p.displayName}}.text(), nil
}

// SignalRemoved is what to tell the browser of somebody who used a passkey that was removed, see WasRemoved.
func (f *Factors) SignalRemoved(a *Assertion) []byte {
	return signal{Unknown: &unknownCredential{f.party.Config.RPID, inJSON(a.parsed.RawID)}}.text()
}

// maxRemoved is how many passkeys of a user are known that were removed.
const maxRemoved = 20

// remove takes a passkey away and keeps its public key. So the server can tell a person who still uses the passkey, and
// nobody else, that it was removed: see WasRemoved.
func (k *kept) remove(id string) {
	k.Passkeys = slices.DeleteFunc(k.Passkeys, func(p passkey) bool {
		if p.FactorID == id {
			k.Removed = append(k.Removed, p)
		}
		return p.FactorID == id
	})
	k.Removed = k.Removed[max(0, len(k.Removed)-maxRemoved):]
}

// WasRemoved tells whether an assertion that did not let the user in was made with a passkey that the user had before.
// Only its owner can sign with it, so nobody else learns whose passkeys there are and were.
func (f *Factors) WasRemoved(ctx context.Context, r event.Reader, a *Assertion,
	u *event.Object[user.User]) (bool, error) {
	text := a.parsed.Response.CollectedClientData.Challenge
	if f.party == nil || f.until(text) == 0 {
		return false, nil
	}
	row, err := r.Row(ctx, user.FactorsRow(u.ID))
	if err != nil {
		return false, err
	}
	k, err := parseKept(row)
	if err != nil {
		return false, err
	}
	same := func(p passkey) bool { return bytes.Equal(p.ID, a.parsed.RawID) }
	i := slices.IndexFunc(k.Removed, same)
	if i < 0 || slices.ContainsFunc(k.Passkeys, same) {
		return false, nil
	}
	begun := webauthn.SessionData{Challenge: text, UserVerification: protocol.VerificationRequired}
	before := &person{id: u.ID, credentials: []webauthn.Credential{k.Removed[i].credential()}}
	_, err = f.party.ValidateDiscoverableLogin(func(_, _ []byte) (webauthn.User, error) { return before, nil },
		begun, a.parsed)
	return err == nil, nil
}
