package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// metadata is what a provider publishes about itself (OpenID Connect Discovery 1.0).
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	UserInfoEndpoint      string   `json:"userinfo_endpoint"`
	KeySet                string   `json:"jwks_uri"`
	ResponseModes         []string `json:"response_modes_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms   []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	IDTokenAlgorithms     []string `json:"id_token_signing_alg_values_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	SendsIss              bool     `json:"authorization_response_iss_parameter_supported"`
}

const wellKnown = "/.well-known/openid-configuration"

func metadataAddress(issuer string) string { return strings.TrimSuffix(issuer, "/") + wellKnown }

func (f *Federation) askMetadata(ctx context.Context, address string) (*metadata, time.Duration, error) {
	answer, err := f.Client.Get(ctx, address, maxAnswer)
	if err != nil {
		return nil, 0, err
	}
	m, err := readMetadata(answer)
	if err != nil {
		return nil, 0, outbound.ErrFailed.Because(err)
	}
	return m, outbound.AgeOf(answer.Header), nil
}

// readMetadata never quotes the answer.
func readMetadata(answer *outbound.Response) (*metadata, error) {
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("the request for the provider's metadata was answered with status %d", answer.Status)
	}
	m := new(metadata)
	if json.Unmarshal(answer.Body, m) != nil {
		return nil, errors.New("the answer is not the metadata of a provider")
	}
	return m, nil
}

// discovered gives what a provider publishes, once it is the configured one. Errors: *Failure.
func (f *Federation) discovered(ctx context.Context, p *Provider) (*metadata, error) {
	o := p.Data.OIDC
	if u, err := outbound.Check(o.Issuer); err != nil || u.RawQuery != "" || strings.Contains(o.Issuer, "#") {
		return nil, failure.New(failure.Configuration, "issuer must be an https:// URL without a query").Because(err)
	}
	m, err := f.metadata.Get(ctx, p.Org, metadataAddress(o.Issuer), func(*metadata) bool { return true })
	if err != nil {
		return nil, called(err, failure.Discovery,
			"the metadata of the provider cannot be fetched: "+wellKnown+" behind the issuer must answer with it")
	}
	if m.Issuer == "" || m.Issuer != o.Issuer && m.Issuer != template(o) {
		return nil, failure.New(failure.Issuer,
			"the provider calls itself by another issuer than the one that is configured; both are compared as texts, so a slash at the end counts")
	}
	if m.AuthorizationEndpoint == "" || m.TokenEndpoint == "" || m.KeySet == "" {
		return nil, failure.New(failure.Discovery,
			"the metadata of the provider names no authorization endpoint, token endpoint or key set")
	}
	return m, nil
}

const tenantPlaceholder = "{tenantid}"

// template is the issuer that Microsoft's addresses for several tenants publish: it has a placeholder where the tenant
// goes. Empty for everybody else.
func template(o *idp.OIDC) string {
	if o.Preset != idp.MicrosoftPreset {
		return ""
	}
	for _, shared := range []string{"/common/", "/organizations/"} {
		if before, after, found := strings.Cut(o.Issuer, shared); found {
			return before + "/" + tenantPlaceholder + "/" + after
		}
	}
	return ""
}

var tenantID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// issuerFor is the issuer that tokens of a tenant have; empty if there is none.
func (m *metadata) issuerFor(o *idp.OIDC, tenant string) string {
	if m.Issuer == o.Issuer {
		return m.Issuer
	}
	if !tenantID.MatchString(tenant) {
		return ""
	}
	return strings.Replace(m.Issuer, tenantPlaceholder, tenant, 1)
}

// fromIssuer tells whether an answer is of the provider (RFC 9207). An answer of another one would have us send its
// code to the wrong place.
func (m *metadata) fromIssuer(o *idp.OIDC, answer url.Values) error {
	iss, sent := answer["iss"]
	switch {
	case !sent && !m.SendsIss:
		return nil
	case sent && iss[0] == m.Issuer:
		return nil
	case sent && m.Issuer != o.Issuer:
		before, after, _ := strings.Cut(m.Issuer, tenantPlaceholder)
		if tenant, ok := strings.CutPrefix(iss[0], before); ok {
			if tenant, ok = strings.CutSuffix(tenant, after); ok && iss[0] == m.issuerFor(o, tenant) {
				return nil
			}
		}
	}
	return failure.New(failure.IssParameter,
		"the answer does not name the configured issuer (iss), although the provider promises to")
}
