// Tokens that other issuers have signed (RFC 7515, RFC 7519). Each check refuses alone, and says which it was.

package upstream

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/signin/assertion"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	maxLength = 16 << 10 // bytes of a token
	maxTries  = 4        // keys that are tried for one: each costs up to some milliseconds
	mostTries = 8        // likewise, of all sets: an assertion may fit several rules

	// clockSkew is how far the clock of an issuer may be off.
	clockSkew = time.Minute
	// maxTokenAge is how long ago a token may have been issued: it was just brought here.
	maxTokenAge = 10 * time.Minute
)

// signatureAlgorithms are those that count. None of them works with a key that is not secret.
var signatureAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256,
	jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// signedToken is a token that was read. What it claims counts only after Verify.
type signedToken struct {
	Claims    tokenClaims
	KeyID     string
	Algorithm string

	signed *jose.JSONWebSignature
	input  string // what the signature is of
	tried  int    // keys, by all calls of Verify
}

// readToken takes a token apart. Errors: *failure.Failure.
func readToken(text string, allowed []jose.SignatureAlgorithm) (*signedToken, error) {
	notOne := failure.New(failure.Token,
		"what was sent is not a signed token in the compact form: send header.payload.signature, at most 16 KiB")
	if len(text) > maxLength {
		return nil, notOne
	}
	end := strings.LastIndexByte(text, '.')
	head, _, found := strings.Cut(text, ".")
	if !found || end < 0 {
		return nil, notOne
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	plain, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || json.Unmarshal(plain, &header) != nil {
		return nil, notOne
	}
	if !slices.Contains(allowed, jose.SignatureAlgorithm(header.Algorithm)) {
		return nil, failure.New(failure.Algorithm,
			"the token is signed with an algorithm that is not accepted: use RS, PS, ES or EdDSA, and one that the provider advertises")
	}
	parsed, err := jose.ParseSignedCompact(text, allowed)
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, notOne
	}
	t := &signedToken{KeyID: parsed.Signatures[0].Header.KeyID, Algorithm: parsed.Signatures[0].Header.Algorithm,
		signed: parsed, input: text[:end]}
	if t.Claims, err = readClaims(parsed.UnsafePayloadWithoutVerification()); err != nil {
		return nil, notOne
	}
	return t, nil
}

// Verify tells whether one of these keys signed the token, with an algorithm of that key. Errors: *failure.Failure.
func (t *signedToken) Verify(keys []jose.JSONWebKey) error {
	named := slices.DeleteFunc(slices.Clone(keys),
		func(k jose.JSONWebKey) bool { return t.KeyID != "" && k.KeyID != t.KeyID })
	if len(named) == 0 {
		return failure.New(failure.Key,
			"the provider's key set has no key with the id that the token names: check that both are of the same server")
	}
	fitting := slices.DeleteFunc(named, func(k jose.JSONWebKey) bool { return !assertion.Fits(t.Algorithm, k) })
	if len(fitting) == 0 {
		return failure.New(failure.Algorithm, "the token is signed with an algorithm that the key is not for")
	}
	for _, k := range fitting[:min(len(fitting), maxTries)] {
		if t.tried++; t.tried > mostTries {
			break
		}
		if _, err := t.signed.Verify(k.Key); err == nil {
			return nil
		}
	}
	return failure.New(failure.Signature, "no key of the provider's key set has signed the token")
}

// Digest identifies a token. It leaves out the signature, because the holder of a token can often make another valid
// signature for it.
func (t *signedToken) Digest() [32]byte { return sha256.Sum256([]byte(t.input)) }

// expectedClaims is what a token has to say.
type expectedClaims struct {
	Issuer   string
	Audience string
	Now      time.Time
	MaxLife  time.Duration // between iat and exp; 0: any
	// NoSubject: the token is not about a person.
	NoSubject bool
}

// Check judges issuer, audience, times and subject. Errors: *failure.Failure.
func (c tokenClaims) Check(e expectedClaims) error {
	if issuer, ok := c.Text("iss"); !ok || issuer != e.Issuer {
		return failure.New(failure.Issuer,
			"the issuer (iss) of the token is not the one that is configured; both are compared as texts, so a slash at the end counts")
	}
	if e.Audience == "" || !slices.Contains(c.Texts("aud"), e.Audience) {
		return failure.New(failure.Audience,
			"the audience (aud) of the token does not contain the one that is configured")
	}
	issued, ok := c.Time("iat")
	if !ok || issued.After(e.Now.Add(clockSkew)) || issued.Before(e.Now.Add(-maxTokenAge-clockSkew)) {
		return failure.New(failure.IssuedAt,
			"the token has no time of issue (iat), or one in the future or more than 10 minutes ago: check the clocks of both servers")
	}
	expires, ok := c.Time("exp")
	switch {
	case !ok || !e.Now.Before(expires.Add(clockSkew)):
		return failure.New(failure.Expired,
			"the token has no expiry (exp), or has expired: check the clocks of both servers")
	case !expires.After(issued), e.MaxLife > 0 && expires.Sub(issued) > e.MaxLife:
		return failure.New(failure.Expired,
			"the token is valid for too long: it may expire at most 24 hours after its time of issue")
	}
	if _, there := c["nbf"]; there {
		if from, ok := c.Time("nbf"); !ok || from.After(e.Now.Add(clockSkew)) {
			return failure.New(failure.NotBefore, "the token is not valid yet (nbf): check the clocks of both servers")
		}
	}
	if e.NoSubject {
		return nil
	}
	_, err := c.Subject()
	return err
}

// readClaims reads a JSON object. Names are compared exactly, which encoding/json does not do for structs.
func readClaims(text []byte) (tokenClaims, error) {
	var c tokenClaims
	if !utf8.Valid(text) {
		return nil, failure.New(failure.Token, "the answer is not valid UTF-8")
	}
	if err := json.Unmarshal(text, &c); err != nil || c == nil {
		return nil, failure.New(failure.Token, "the answer is not a JSON object")
	}
	return c, nil
}
