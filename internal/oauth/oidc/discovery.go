package oidc

import (
	"net/http"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
)

var errIssuer = errs.Invalid(errs.Violation{Message: "there is no issuer with this path: its discovery document is at " + openIDPath}).WithStatus(http.StatusNotFound)

// discovery says what there is, and nothing else. Clients that append the path of the issuer, which has none, may ask
// with a slash at the end.
func (p *Provider) discovery(r *endpointRequest) (any, error) {
	if path := strings.TrimSuffix(r.URL.Path, "/"); path != openIDPath && path != oauthPath {
		return nil, errIssuer
	}
	// A client without a secret needs nobody to tell it that it sends none; one with a secret takes "none" in this list
	// for leave to do without.
	methods := []app.AuthMethod{app.SecretBasic, app.SecretPost, app.PrivateKeyJWT}
	algorithms := []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
	return map[string]any{
		"issuer":                                p.issuer,
		"authorization_endpoint":                p.issuer + authorizePath,
		"token_endpoint":                        p.issuer + tokenPath,
		"introspection_endpoint":                p.issuer + introspectPath,
		"userinfo_endpoint":                     p.issuer + userinfoPath,
		"revocation_endpoint":                   p.issuer + revokePath,
		"end_session_endpoint":                  p.issuer + logoutPath,
		"device_authorization_endpoint":         p.issuer + devicePath,
		"jwks_uri":                              p.issuer + keysPath,
		"pushed_authorization_request_endpoint": p.issuer + pushPath,
		"require_pushed_authorization_requests": false, // applications are, one by one
		"scopes_supported":                      oauth.Scopes,
		"response_types_supported":              []string{"code"},
		"response_modes_supported":              request.Modes,
		"grant_types_supported":                 grantTypes,
		"acr_values_supported": []string{claimset.SingleFactor,
			claimset.MultiFactor},
		"subject_types_supported":                                  []string{"public"},
		"id_token_signing_alg_values_supported":                    []string{"ES256", "RS256"},
		"token_endpoint_auth_methods_supported":                    methods,
		"token_endpoint_auth_signing_alg_values_supported":         algorithms,
		"revocation_endpoint_auth_methods_supported":               methods,
		"revocation_endpoint_auth_signing_alg_values_supported":    algorithms,
		"introspection_endpoint_auth_methods_supported":            methods,
		"introspection_endpoint_auth_signing_alg_values_supported": algorithms,
		"claims_supported": slices.Concat([]string{"sub", "iss", "aud", "exp",
			"iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash"}, claimset.People,
			[]string{claimset.Roles, claimset.Groups, claimset.Metadata}),
		"dpop_signing_alg_values_supported": proofAlgorithms(),
		"claims_parameter_supported":        true,
		"prompt_values_supported": []string{"none", "login", "consent",
			"select_account", "create"},
		"code_challenge_methods_supported":               []string{"S256"},
		"request_uri_parameter_supported":                false, // where nothing is said, it is true
		"backchannel_logout_supported":                   true,
		"backchannel_logout_session_supported":           true,
		"authorization_response_iss_parameter_supported": true,
	}, nil
}
