package grant

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
)

// How far an assertion's times may be from now.
const (
	maxAssertionLife = time.Hour
	clockSkew        = time.Minute
	maxAssertion     = 8 << 10
	maxAssertionID   = 255         // bytes
	maxTried         = app.MaxKeys // keys that a signature is checked with: an application may publish more, and each costs up to some milliseconds
)

// assertionAlgorithms are all that a key of ours can have. None of them works with a key that is not secret.
var assertionAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// assertion is a JWT by which somebody says who they are. Nothing in it counts before verify.
type assertion struct {
	jwt.Claims
	signed *jose.JSONWebSignature
}

func readAssertion(text string) (*assertion, error) {
	if len(text) > maxAssertion {
		return nil, errors.New("the assertion is too long")
	}
	signed, err := jose.ParseSignedCompact(text, assertionAlgorithms)
	if err != nil {
		return nil, err
	}
	a := &assertion{signed: signed}
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &a.Claims); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *assertion) keyID() string { return a.signed.Signatures[0].Header.KeyID }

// verify judges an assertion of somebody: signed by one of their keys with an algorithm of that key, about themselves,
// meant for us, short-lived, and used for the first time, which its id tells. Errors: refused.
func (g *Grants) verify(ctx context.Context, a *assertion, id string, keys []jose.JSONWebKey, refused *errs.Error) error {
	header := a.signed.Signatures[0].Header
	tried := 0
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		if header.KeyID != "" && k.KeyID != header.KeyID || !fits(header.Algorithm, k) || tried == maxTried {
			return false
		}
		tried++
		_, err := a.signed.Verify(k.Key)
		return err == nil
	}) {
		return refused
	}
	now := g.Clock()
	switch {
	case a.Issuer != id || a.Subject != id,
		!a.Audience.Contains(g.Issuer) && !a.Audience.Contains(g.TokenEndpoint()),
		a.Expiry == nil || !now.Before(a.Expiry.Time()) || a.Expiry.Time().After(now.Add(maxAssertionLife+clockSkew)),
		a.IssuedAt == nil || a.IssuedAt.Time().After(now.Add(clockSkew)) || a.IssuedAt.Time().Before(now.Add(-maxAssertionLife-clockSkew)),
		a.NotBefore != nil && a.NotBefore.Time().After(now.Add(clockSkew)):
		return refused
	}
	// Whoever gets here holds a key: they are told what to mend.
	switch {
	case a.ID == "":
		return refusedFor(refused, "the assertion has no jti: put an identifier into that claim that no other assertion of yours has")
	case len(a.ID) > maxAssertionID:
		return refusedFor(refused, "the jti of the assertion is too long: it may have 255 bytes")
	}
	row := flow("assertion", digest(id+"\x00"+a.ID))
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: id}, Rows: []event.RowKey{row}, Decide: func(tx *event.Tx) error {
		used, err := tx.Row(row)
		if err != nil {
			return err
		}
		if used != nil {
			return refusedFor(refused, "the assertion has been used already: make a new one, with another jti, for every request")
		}
		tx.PutRow(event.Row{RowKey: row, Expires: event.Micros(a.Expiry.Time().Add(clockSkew))})
		return nil
	}})
}

// refusedFor is the same refusal with other words.
func refusedFor(refused *errs.Error, message string) *errs.Error {
	return errs.New(refused.Kind, refused.Reason, message)
}

// fits tells whether an algorithm is one of a key: what the key is decides, not what the header says.
func fits(algorithm string, k jose.JSONWebKey) bool {
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

// publicKey reads a key that was registered as PEM; none if it cannot be read.
func publicKey(id, text string) []jose.JSONWebKey {
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
