package upstream

import (
	"context"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// Assertion is what an outside issuer has signed for a workload (RFC 7523). Nobody signs in with it: package oauth knows
// whose it is. Nothing in it counts before Verify.
type Assertion struct{ *signedToken }

// ReadAssertion takes an assertion apart. Errors: *Failure.
func ReadAssertion(text string) (*Assertion, error) {
	token, err := readToken(text, signatureAlgorithms)
	if err != nil {
		return nil, err
	}
	return &Assertion{token}, nil
}

// IssuerKeys finds the keys that an issuer publishes under a key id, by its metadata. An organization has its share of
// the calls that this takes. Errors: *Failure.
func (f *Federation) IssuerKeys(ctx context.Context, org, issuer, keyID string) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	m, err := f.metadata.Get(ctx, org, metadataAddress(issuer), func(*metadata) bool { return true })
	if err != nil {
		return nil, called(err, failure.Discovery,
			"the metadata of the issuer cannot be fetched: "+wellKnown+" behind it must answer with it")
	}
	switch {
	case m.Issuer != issuer:
		return nil, failure.New(failure.Issuer,
			"the issuer calls itself by another name than the rule; both are compared as texts, so a slash at the end counts")
	case m.KeySet == "":
		return nil, failure.New(failure.Discovery, "the metadata of the issuer names no key set")
	}
	keys, err := f.Keys.Find(ctx, org, m.KeySet, keyID)
	if err != nil {
		return nil, called(err, failure.Keys,
			"the key set of the issuer cannot be fetched: check jwks_uri of its metadata")
	}
	return keys, nil
}
