package syntax

import (
	"crypto/rsa"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Bounds of a key set that somebody registers. Strangers make the server check signatures with its keys.
const (
	maxSetExponent = 65537

	MaxKeySet     = 8000 // characters
	MaxKeysOfASet = 10
)

var (
	setNotJSON = errs.Plain(`must be a JSON Web Key Set (RFC 7517): an object with the list "keys"`)
	setKeys    = errs.Plain(atMost(MaxKeysOfASet, "keys") + ", and at least one")
	setRSA     = errs.Plain("must have RSA keys with an exponent of at most 65537: others cost too much to check")
	setUse     = errs.Plain(`must have keys for signatures only: leave out keys with another "use" than "sig"`)
)

// KeySet returns the canonical text of a JSON Web Key Set: public keys as PublicKey takes them, each with its kid, alg
// and use and nothing else. The form reads as itself.
func KeySet(text string) (form string, problem *errs.Problem) {
	if problem := Text(text, MaxKeySet); problem != nil {
		return "", problem
	}
	var sent struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal([]byte(text), &sent) != nil || sent.Keys == nil {
		return "", setNotJSON
	}
	if len(sent.Keys) == 0 || len(sent.Keys) > MaxKeysOfASet {
		return "", setKeys
	}
	var set jose.JSONWebKeySet
	for _, raw := range sent.Keys {
		var private struct {
			D any `json:"d"` // however broken the rest is: it may have leaked
		}
		var key jose.JSONWebKey
		switch err := json.Unmarshal(raw, &key); {
		case json.Unmarshal(raw, &private) == nil && private.D != nil:
			return "", keyPrivate
		case err != nil || !key.Valid():
			return "", keyUnusable
		case key.Use != "" && key.Use != "sig":
			return "", setUse
		}
		if problem := keyProblem(key.Key); problem != nil {
			return "", problem
		}
		if k, ok := key.Key.(*rsa.PublicKey); ok && k.E > maxSetExponent {
			return "", setRSA
		}
		set.Keys = append(set.Keys,
			jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID, Algorithm: key.Algorithm, Use: key.Use})
	}
	out, err := json.Marshal(set)
	if err != nil {
		return "", keyUnusable
	}
	return string(out), nil
}
