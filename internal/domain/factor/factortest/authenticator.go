// Package factortest gives tests second factors in software: an authenticator that makes and uses passkeys, and the
// codes of an authenticator app.
package factortest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
)

// Authenticator is a device together with the browser it is used in. Its fields may be changed to let it misbehave.
type Authenticator struct {
	Origin     string // of the page that the browser shows
	Unverified bool   // it does not make sure that its owner uses it
	Absent     bool   // nobody touches it
	Packed     bool   // it attests with its own key; otherwise not at all
	Passkeys   []*Passkey
}

// Passkey is one of the keys in the device.
type Passkey struct {
	ID     []byte
	Party  string // the host name it is for
	Handle []byte // whose it is
	Count  uint32 // how often it was used; it stays where Still is set
	Still  bool
	key    *ecdsa.PrivateKey
}

// Of is a copy that says to be somebody else's.
func (p *Passkey) Of(handle string) *Passkey {
	c := *p
	c.Handle = []byte(handle)
	return &c
}

// flags of the authenticator's data.
const (
	present  = 1 << 0
	verified = 1 << 2
	attested = 1 << 6
)

type entity struct {
	ID string `json:"id"`
}

type binary64 []byte

func (b binary64) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

func (b *binary64) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.DecodeString(string(text))
	return err
}

// Create makes a passkey for what navigator.credentials.create is given, and answers as its result does in JSON.
func (a *Authenticator) Create(options string) (credential string, err error) {
	var o struct {
		Challenge string `json:"challenge"`
		RP        entity `json:"rp"`
		User      struct {
			ID binary64 `json:"id"`
		} `json:"user"`
		Exclude []struct {
			ID binary64 `json:"id"`
		} `json:"excludeCredentials"`
	}
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return "", err
	}
	for _, known := range o.Exclude {
		if a.find(known.ID) != nil {
			return "", errors.New("there is a passkey for this user already")
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	p := &Passkey{ID: []byte(rand.Text()), Party: o.RP.ID, Handle: o.User.ID, key: key}
	a.Passkeys = append(a.Passkeys, p)
	return a.attest(p, o.Challenge)
}

// Again answers another challenge to create with a passkey that exists already.
func (a *Authenticator) Again(p *Passkey, options string) (credential string, err error) {
	var o struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return "", err
	}
	return a.attest(p, o.Challenge)
}

func (a *Authenticator) attest(p *Passkey, challenge string) (string, error) {
	public, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return "", err
	}
	cose, err := webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: public[1:33], -3: public[33:]})
	if err != nil {
		return "", err
	}
	data := a.data(p, attested)
	data = append(data, make([]byte, 16)...) // of no known make
	data = binary.BigEndian.AppendUint16(data, uint16(len(p.ID)))
	data = slices.Concat(data, p.ID, cose)
	client := a.client("webauthn.create", challenge)
	format, statement := "none", map[string]any{}
	if a.Packed {
		signature, err := p.sign(data, client)
		if err != nil {
			return "", err
		}
		format, statement = "packed", map[string]any{"alg": -7, "sig": signature}
	}
	object, err := webauthncbor.Marshal(map[string]any{"fmt": format, "attStmt": statement, "authData": data})
	if err != nil {
		return "", err
	}
	return answer(p, map[string]any{"clientDataJSON": binary64(client), "attestationObject": binary64(object),
		"transports": []string{"internal"}})
}

// Get uses a passkey for what navigator.credentials.get is given, and answers as its result does in JSON.
func (a *Authenticator) Get(options string) (assertion string, err error) {
	var o struct {
		Challenge string `json:"challenge"`
		Party     string `json:"rpId"`
		Allow     []struct {
			ID binary64 `json:"id"`
		} `json:"allowCredentials"`
	}
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return "", err
	}
	for _, p := range slices.Backward(a.Passkeys) {
		allowed := len(o.Allow) == 0
		for _, one := range o.Allow {
			allowed = allowed || bytes.Equal(one.ID, p.ID)
		}
		if p.Party == o.Party && allowed {
			return a.Assert(p, o.Challenge)
		}
	}
	return "", errors.New("there is no passkey for this")
}

// Assert signs a challenge with a passkey.
func (a *Authenticator) Assert(p *Passkey, challenge string) (assertion string, err error) {
	if !p.Still {
		p.Count++
	}
	data, client := a.data(p, 0), a.client("webauthn.get", challenge)
	signature, err := p.sign(data, client)
	if err != nil {
		return "", err
	}
	return answer(p, map[string]any{"clientDataJSON": binary64(client), "authenticatorData": binary64(data),
		"signature": binary64(signature), "userHandle": binary64(p.Handle)})
}

func (a *Authenticator) find(id []byte) *Passkey {
	for _, p := range a.Passkeys {
		if bytes.Equal(p.ID, id) {
			return p
		}
	}
	return nil
}

// data is what every answer is about.
func (a *Authenticator) data(p *Passkey, flags byte) []byte {
	if !a.Absent {
		flags |= present
	}
	if !a.Unverified {
		flags |= verified
	}
	party := sha256.Sum256([]byte(p.Party))
	return binary.BigEndian.AppendUint32(append(party[:], flags), p.Count)
}

// client is what the browser adds.
func (a *Authenticator) client(what, challenge string) []byte {
	text, err := json.Marshal(map[string]any{"type": what, "challenge": challenge, "origin": a.Origin,
		"crossOrigin": false})
	if err != nil {
		panic(err)
	}
	return text
}

func (p *Passkey) sign(data, client []byte) ([]byte, error) {
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(slices.Concat(data, hash[:]))
	return ecdsa.SignASN1(rand.Reader, p.key, sum[:])
}

func answer(p *Passkey, response map[string]any) (string, error) {
	text, err := json.Marshal(map[string]any{
		"id":                      binary64(p.ID),
		"rawId":                   binary64(p.ID),
		"type":                    "public-key",
		"authenticatorAttachment": "platform",
		"clientExtensionResults":  map[string]any{},
		"response":                response,
	})
	return string(text), err
}
