package upstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	assertionLife = time.Minute
	maxCode       = 4 << 10 // bytes
	appleAudience = "https://appleid.apple.com"
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// client is how Signet is known to a provider.
type client struct {
	id         string
	hasSecret  bool
	auth       idp.ClientAuth
	apple      *idp.OIDC // whose secret is a key
	endpoint   string    // where tokens are
	audience   string    // of what is signed for it
	algorithms []string  // that the provider takes for it
}

// exchange trades the code of an answer for tokens. Errors: *Failure.
func (f *Federation) exchange(ctx context.Context, p *Provider, c client, s *state,
	answer url.Values) (tokenClaims, error) {
	code := answer.Get("code")
	if code == "" || len(code) > maxCode {
		return nil, failure.New(failure.Code, "the answer carries no code")
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.CallbackAddress(p.ID)},
		"code_verifier": {f.verifier(s)}}
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
	if err := f.authenticate(ctx, p, c, form, header); err != nil {
		return nil, err
	}
	got, err := f.call(ctx, p, func(ctx context.Context) (*outbound.Response, error) {
		return f.Client.PostWith(ctx, c.endpoint, header, []byte(form.Encode()), maxAnswer)
	})
	if err != nil {
		return nil, err
	}
	return tokens(got)
}

// tokens reads what a token endpoint answered. Errors: *Failure.
func tokens(got *outbound.Response) (tokenClaims, error) {
	said, err := document(got)
	if err == nil {
		problem, _ := said.Text("error")
		switch problem {
		case "":
		case "invalid_grant", "bad_verification_code":
			return nil, failure.New(failure.Code,
				"the provider does not accept the code: it has expired, was used, or the callback address that is registered there differs")
		case "invalid_client", "unauthorized_client", "incorrect_client_credentials":
			return nil, failure.New(failure.Client,
				"the provider does not accept the client id or secret, or the way they are sent: check both")
		default:
			return nil, failure.New(failure.TokenAnswer, "the token endpoint refused the request")
		}
	}
	kind, _ := said.Text("token_type")
	switch {
	case got.Status == http.StatusUnauthorized:
		return nil, failure.New(failure.Client,
			"the provider does not accept the client id or secret, or the way they are sent: check both")
	case got.Status != http.StatusOK || err != nil:
		return nil, failure.New(failure.TokenAnswer,
			"the token endpoint did not answer with tokens in JSON: check its address")
	case !isBearer(kind):
		return nil, failure.New(failure.TokenAnswer,
			"the token endpoint answered with a token that is not of the type Bearer")
	}
	return said, nil
}

// authenticate adds to a request what proves that Signet is the client. Errors: *Failure; those of event.Reader.
func (f *Federation) authenticate(ctx context.Context, p *Provider, c client, form url.Values,
	header map[string]string) error {
	if c.auth == idp.PrivateKeyJWT {
		assertion, err := f.assertion(ctx, c)
		if err != nil {
			return err
		}
		form.Set("client_id", c.id)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
		return nil
	}
	if !c.hasSecret {
		form.Set("client_id", c.id) // PKCE alone
		return nil
	}
	secret, err := idp.ReadSecret(ctx, f.Store, f.Master, p.ID)
	if err != nil {
		return err
	}
	if secret == "" {
		return failure.New(failure.Configuration, "the client secret is missing: set it again")
	}
	if c.apple != nil {
		if secret, err = appleSecret(c.apple, secret, f.Clock()); err != nil {
			return failure.New(failure.Configuration,
				"the client secret must be the private key that Apple gave you, as the text of the .p8 file, with its team id and key id").Because(err)
		}
	}
	if c.auth == idp.SecretInBody || c.apple != nil {
		form.Set("client_id", c.id)
		form.Set("client_secret", secret)
		return nil
	}
	header["Authorization"] = "Basic " +
		base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.id)+":"+url.QueryEscape(secret)))
	return nil
}

// assertion proves who we are with the key that is in our key set (RFC 7523).
func (f *Federation) assertion(ctx context.Context, c client) (string, error) {
	alg := jose.RS256
	if slices.Contains(c.algorithms, string(jose.ES256)) {
		alg = jose.ES256
	}
	now := f.Clock()
	return f.Signing.Sign(ctx, string(alg), "JWT", map[string]any{
		"iss": c.id,
		"sub": c.id,
		"aud": c.audience,
		"jti": uuid.NewString(),
		"iat": now.Unix(),
		"exp": now.Add(assertionLife).Unix(),
	})
}

// appleKey reads the key that Apple hands out as a file.
func appleKey(text string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("no PKCS#8") // err could quote it
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("no key for ES256")
	}
	return key, nil
}

// appleSecret is what Apple takes as a client secret: a token that is signed with a key of its own.
func appleSecret(o *idp.OIDC, text string, now time.Time) (string, error) {
	key, err := appleKey(text)
	if err != nil {
		return "", err
	}
	if o.TeamID == "" || o.KeyID == "" {
		return "", errors.New("no team id or key id")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: key, KeyID: o.KeyID}}, nil)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(map[string]any{"iss": o.TeamID, "sub": o.ClientID, "aud": appleAudience,
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix()})
	if err != nil {
		return "", err
	}
	made, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return made.CompactSerialize()
}
