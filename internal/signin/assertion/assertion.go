// Package assertion reads the JWTs that clients authenticate with, and checks their signatures.
package assertion

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const maxLength = 8 << 10

// algorithms are all that a key of ours can have. None of them works with a key that is not secret.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// Assertion is a JWT by which somebody says who they are. Nothing in it counts before it was verified.
type Assertion struct {
	jwt.Claims
	// Scope is what golang.org/x/oauth2/jwt and Google's libraries ask for: they say it here and not in a parameter.
	// Other things than a text mean nothing.
	Scope  any `json:"scope"`
	signed *jose.JSONWebSignature
	text   string
}

// Read takes a JWT apart.
func Read(text string) (*Assertion, error) {
	if len(text) > maxLength {
		return nil, errors.New("the assertion is too long")
	}
	signed, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		return nil, err
	}
	a := &Assertion{signed: signed, text: text}
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), a); err != nil {
		return nil, err
	}
	return a, nil
}

// KeyID is what it says about the key that signed it; it may be empty.
func (a *Assertion) KeyID() string { return a.signed.Signatures[0].Header.KeyID }

// Signed is what the signature is over: header and payload. Somebody who sees an assertion can write the same bytes in
// base64 in other ways, or make another signature out of that of an elliptic curve, but cannot change this.
func (a *Assertion) Signed() string {
	header, _, _ := strings.Cut(a.text, ".")
	protected, _ := base64.RawURLEncoding.DecodeString(header) // Read has done it before
	return base64.RawURLEncoding.EncodeToString(protected) + "." +
		base64.RawURLEncoding.EncodeToString(a.signed.UnsafePayloadWithoutVerification())
}

// SignedBy tells whether one of these keys signed it, with an algorithm of that key. So many of them are tried at most.
func (a *Assertion) SignedBy(keys []jose.JSONWebKey, tries int) bool {
	header := a.signed.Signatures[0].Header
	return slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		if header.KeyID != "" && k.KeyID != header.KeyID || !Fits(header.Algorithm, k) || tries == 0 {
			return false
		}
		tries--
		_, err := a.signed.Verify(k.Key)
		return err == nil
	})
}

// Fits tells whether an algorithm is one of a key: what the key is decides, not what the header says.
func Fits(algorithm string, k jose.JSONWebKey) bool {
	if k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, algorithm)
	case *ecdsa.PublicKey:
		return algorithm == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// PublicKey reads a key that was registered as PEM; none if it cannot be read.
func PublicKey(id, text string) []jose.JSONWebKey {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil
	}
	return []jose.JSONWebKey{{KeyID: id, Key: key}}
}
