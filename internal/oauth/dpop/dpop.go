// Package dpop judges proofs that the sender of a request has a key (DPoP, RFC 9449): a JWT in the header DPoP, signed
// by that key for this one request. It stores nothing: who takes a proof remembers its identifier.
package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/signin/assertion"
)

// Algorithms are those that proofs are signed with.
var Algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.PS256}

// Bounds of what strangers send, before anything is computed of it.
const (
	maxLength  = 4 << 10 // of a proof
	maxID      = 255
	minRSABits = 2048
	maxRSABits = 4096
)

// clockSkew is how far the clock of a client may be off. How old a proof can be is told by its nonce.
const clockSkew = 5 * time.Minute

// Proof is what a key has signed. Nothing in it counts before Fits.
type Proof struct {
	Key   string // the thumbprint of the key (RFC 7638)
	ID    string // jti
	Nonce string

	method, address, token string
	issued                 time.Time
}

// claims of a proof.
type claims struct {
	ID      string   `json:"jti"`
	Method  string   `json:"htm"`
	Address string   `json:"htu"`
	Issued  *float64 `json:"iat"`
	Token   string   `json:"ath"`
	Nonce   string   `json:"nonce"`
}

// Read takes a proof apart and checks its signature. Its errors say to the client what to mend.
func Read(text string) (*Proof, error) {
	if len(text) > maxLength {
		return nil, errors.New("is too long")
	}
	signed, err := jose.ParseSignedCompact(text, Algorithms)
	if err != nil {
		return nil, errors.New("is not a JWT that is signed with ES256, EdDSA or PS256 and has the public key as jwk")
	}
	header := signed.Signatures[0].Protected
	if header.ExtraHeaders[jose.HeaderType] != "dpop+jwt" {
		return nil, errors.New("does not have the typ dpop+jwt")
	}
	key := header.JSONWebKey
	if key == nil || !key.IsPublic() || !taken(key.Key) || !assertion.Fits(header.Algorithm, *key) {
		return nil, errors.New("has no public key as jwk that fits its alg: on P-256, Ed25519, or RSA of 2048 to 4096 bits")
	}
	payload, err := signed.Verify(key.Key)
	if err != nil {
		return nil, errors.New("is not signed by the key in its jwk")
	}
	var said claims
	if json.Unmarshal(payload, &said) != nil {
		return nil, errors.New("has claims of a wrong type")
	}
	switch {
	case said.ID == "" || len(said.ID) > maxID:
		return nil, errors.New("has no jti of 1 to 255 bytes")
	case said.Issued == nil:
		return nil, errors.New("has no iat")
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, errors.New("has a key without a thumbprint")
	}
	return &Proof{Key: base64.RawURLEncoding.EncodeToString(sum), ID: said.ID, Nonce: said.Nonce, method: said.Method,
		address: said.Address, token: said.Token, issued: at(*said.Issued)}, nil
}

// taken tells whether a key is one that we compute with: nothing of another size, and nothing that is not secret.
func taken(key any) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize == 256
	case ed25519.PublicKey:
		return len(key) == ed25519.PublicKeySize
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		return minRSABits <= bits && bits <= maxRSABits
	}
	return false
}

// at is a NumericDate; the zero time for one that no clock shows.
func at(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// Request is what a proof has to be for.
type Request struct {
	Method  string
	Address string // without query and fragment
	Token   string // the access token that is sent along; empty: none is
	Now     time.Time
}

// Fits tells whether a proof is for a request. Its errors say to the client what to mend.
func (p *Proof) Fits(r Request) error {
	switch {
	case p.method != r.Method:
		return errors.New("is for another method: htm")
	case !same(p.address, r.Address):
		return errors.New("is for another address: htu must be that of the request, without query and fragment")
	case p.issued.Before(r.Now.Add(-clockSkew)) || p.issued.After(r.Now.Add(clockSkew)):
		return errors.New("has an iat that is more than 5 minutes away: check the clock")
	case r.Token == "":
		return nil
	case p.token != hash(r.Token):
		return errors.New("is for another access token: ath must be its SHA-256 in base64url without padding")
	}
	return nil
}

// same compares addresses after what RFC 3986 calls normalization by syntax and scheme, as far as it concerns scheme and
// host. Paths are taken literally.
func same(a, b string) bool {
	x, xErr := url.Parse(a)
	y, yErr := url.Parse(b)
	return xErr == nil && yErr == nil && x.User == nil && strings.EqualFold(x.Scheme, y.Scheme) && host(x) == host(y) &&
		x.EscapedPath() == y.EscapedPath()
}

// host is that of an address in lower case, without the port that the scheme has anyway.
func host(u *url.URL) string {
	name := strings.ToLower(u.Host)
	switch strings.ToLower(u.Scheme) {
	case "https":
		name = strings.TrimSuffix(name, ":443")
	case "http":
		name = strings.TrimSuffix(name, ":80")
	}
	return name
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsThumbprint tells whether a text could be the thumbprint of a key.
func IsThumbprint(text string) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}
