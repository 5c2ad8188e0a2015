package syntax

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

var (
	keyNotPEM = errs.Plain("must be one public key in PEM format, starting with -----BEGIN PUBLIC KEY-----, " +
		"with nothing before or after it")
	keyPrivate = errs.Plain("must be a public key, not a private one: replace the private key, because it may have " +
		"leaked")
	keyRSA = errs.Plain("must be an RSA key of 2048 to 8192 bits with an odd modulus and an odd exponent of at " +
		"least 3")
	keyCurve    = errs.Plain("must be an ECDSA key on P-256, P-384 or P-521")
	keyUnusable = errs.Plain("must be an RSA, ECDSA or Ed25519 key")
)

const (
	minRSA = 2048
	maxRSA = 8192
)

// PublicKey returns the canonical PEM of a public key (SubjectPublicKeyInfo): RSA of 2048 to 8192 bits, ECDSA on P-256,
// P-384 or P-521, or Ed25519. Two texts have the same form if and only if they are the same key, and the form reads as
// itself. There may be white space around the block, but nothing else, and no second block.
func PublicKey(text string) (form string, problem *errs.Problem) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "PRIVATE KEY-----") {
		return "", keyPrivate
	}
	// A decoder skips what it cannot read and takes the next block: here there is only one to take.
	if !strings.HasPrefix(text, "-----BEGIN PUBLIC KEY-----") || strings.Count(text, "-----BEGIN") != 1 {
		return "", keyNotPEM
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" || len(block.Headers) > 0 || strings.TrimSpace(string(rest)) != "" {
		return "", keyNotPEM
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return "", keyUnusable
	}
	if problem := keyProblem(key); problem != nil {
		return "", problem
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", keyUnusable
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

func keyProblem(key any) *errs.Problem {
	switch key := key.(type) {
	case *rsa.PublicKey:
		// With an exponent of 1 everybody can sign; an even one or an even modulus is no RSA key at all.
		if n := key.N.BitLen(); n < minRSA || n > maxRSA || key.N.Bit(0) == 0 || key.E < 3 || key.E%2 == 0 ||
			key.E > 1<<31-1 {
			return keyRSA
		}
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() && key.Curve != elliptic.P521() {
			return keyCurve
		}
	case ed25519.PublicKey:
	default:
		return keyUnusable
	}
	return nil
}
