package idp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Bounds of this package. The definition of the API says the same.
const (
	MaxTenants    = 20
	MaxParameters = 20
	MaxClaim      = 100
	maxKey        = 2000 // of a private key where others have a secret
)

// violations lists what is wrong with single fields, in the names of the API, under a prefix. A type of provider has
// these presets, and secrets of so many characters.
func (e ClientChanged) violations(prefix string, secret *string, known []Preset, longest int, wrong *errs.Violations) {
	wrong.Add(prefix+"clientId", given(e.ClientID, syntax.Name))
	wrong.Add(prefix+"clientSecret", given(secret, func(s string) *errs.Problem { return syntax.Text(s, longest) }))
	if e.Scopes != nil {
		listed(prefix+"scopes", *e.Scopes, syntax.MaxScopes, syntax.MaxScope, wrong)
	}
	if e.Preset != nil && *e.Preset != "" && !slices.Contains(known, *e.Preset) {
		wrong.Add(prefix+"preset", errs.Plain("must be one of this type of provider: GitHub is OAuth 2.0, all others "+
			"are OpenID Connect"))
	}
	if e.ClientAuth != nil && !slices.Contains([]ClientAuth{SecretInHeader, SecretInBody, PrivateKeyJWT},
		*e.ClientAuth) {
		wrong.Add(prefix+"clientAuth", errs.Plain("must be left out, or be client_secret_post or private_key_jwt"))
	}
	if e.Parameters != nil {
		wrong.Add(prefix+"parameters", e.Parameters.problem())
	}
	if e.Claims != nil {
		e.Claims.violations(prefix+"claims.", wrong)
	}
}

// listed judges a list of texts that are not empty.
func listed(field string, list []string, most, length int, wrong *errs.Violations) {
	if len(list) > most {
		wrong.Add(field, syntax.TooMany(most, "elements"))
	}
	for i, text := range list {
		problem := syntax.Text(text, length)
		if text == "" {
			problem = syntax.Empty
		}
		wrong.Add(fmt.Sprintf("%s[%d]", field, i), problem)
	}
}

// violations lists what is wrong with single fields, in the names of the API, under a prefix.
func (e OIDCChanged) violations(prefix string, secret *string, wrong *errs.Violations) {
	wrong.Add(prefix+"issuer", given(e.Issuer, syntax.Name))
	e.ClientChanged.violations(prefix, secret,
		[]Preset{GooglePreset, MicrosoftPreset, ApplePreset, GitLabPreset}, maxKey, wrong)
	if e.Tenants != nil {
		listed(prefix+"tenants", *e.Tenants, MaxTenants, syntax.MaxName, wrong)
	}
	wrong.Add(prefix+"teamId", given(e.TeamID, optional))
	wrong.Add(prefix+"keyId", given(e.KeyID, optional))
}

// violations lists what is wrong with single fields, in the names of the API, under a prefix.
func (e OAuthChanged) violations(prefix string, secret *string, wrong *errs.Violations) {
	wrong.Add(prefix+"authorizationEndpoint", given(e.AuthorizationEndpoint, syntax.Name))
	wrong.Add(prefix+"tokenEndpoint", given(e.TokenEndpoint, syntax.Name))
	wrong.Add(prefix+"userEndpoint", given(e.UserEndpoint, syntax.Name))
	wrong.Add(prefix+"emailsEndpoint", given(e.EmailsEndpoint, optional))
	e.ClientChanged.violations(prefix, secret, []Preset{GitHubPreset}, syntax.MaxName, wrong)
	wrong.Add(prefix+"subject", given(e.Subject, subjectProblem))
}

// changing are fields that a person can change, and that somebody else can have afterwards.
var changing = []string{"email", "login", "name", "nickname", "preferred_username", "user_name", "username"}

func subjectProblem(field string) *errs.Problem {
	if slices.Contains(changing, strings.ToLower(field)) {
		return errs.Plain("must be a field that never changes for a person, such as id: somebody else can get this " +
			"name or address later")
	}
	return syntax.Text(field, MaxClaim)
}

// protocolOwned are the parameters that Signet sets itself.
var protocolOwned = []string{"client_id", "response_type", "redirect_uri", "scope", "state", "nonce", "code_challenge",
	"code_challenge_method", "response_mode",
	"request", "request_uri", "prompt", "max_age", "client_secret", "client_assertion", "client_assertion_type"}

var parameterName = regexp.MustCompile(`^[A-Za-z0-9_.~:-]+$`)

func (p Parameters) problem() *errs.Problem {
	if len(p) > MaxParameters {
		return syntax.TooMany(MaxParameters, "elements")
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		switch problem := syntax.Text(p[name], syntax.MaxName); {
		case len(name) > MaxClaim || !parameterName.MatchString(name):
			return errs.Plain("must have names of 1 to 100 letters, digits and the characters _ . ~ : -")
		case slices.Contains(protocolOwned, strings.ToLower(name)):
			return errs.Plain("must not have " + name + ": Signet sets it itself")
		case problem != nil:
			return errs.Plain("has " + name + ", whose value " + problem.Message)
		}
	}
	return nil
}

// notMapped are the claims that say more than what a person is called: who the token is of and for, what was proven,
// what somebody may do.
var notMapped = []string{"iss", "sub", "aud", "exp", "iat", "nbf", "jti", "nonce", "azp", "acr", "amr", "auth_time",
	"sid", "at_hash", "c_hash", "s_hash", "events", "cnf", "act",
	"scope", "scp", "role", "roles", "group", "groups", "permissions", "entitlements", "email_verified",
	"phone_number_verified", "verified", "xms_edov"}

// ours begins the names of Signet's own claims.
const ours = "urn:signet:"

func claimProblem(name string) *errs.Problem {
	lower := strings.ToLower(name)
	if slices.Contains(notMapped, lower) || strings.HasPrefix(lower, ours) {
		return errs.Plain("must not be a registered claim, a claim about roles, or one that says what is verified: " +
			"name a claim about the person")
	}
	return syntax.Text(name, MaxClaim)
}

func (e *ClaimsChanged) violations(prefix string, wrong *errs.Violations) {
	wrong.Add(prefix+"userName", given(e.UserName, claimProblem))
	wrong.Add(prefix+"firstName", given(e.FirstName, claimProblem))
	wrong.Add(prefix+"lastName", given(e.LastName, claimProblem))
	wrong.Add(prefix+"nickName", given(e.NickName, claimProblem))
	wrong.Add(prefix+"email", given(e.Email, claimProblem))
	wrong.Add(prefix+"language", given(e.Language, claimProblem))
}

// conflicts lists what does not go together in a configuration that a change leads to. before is the provider without
// the change, nil for a new one; secret is what is set, nil where it stays.
func (p *Provider) conflicts(before *Provider, secret *string, prefix string, wrong *errs.Violations) {
	if o := p.OIDC; o != nil {
		o.tenantConflicts(prefix, wrong)
		o.appleConflicts(before, secret, prefix, wrong)
	}
	if before != nil && secret == nil && before.hasSecret() &&
		origin(before.secretGoesTo()) != origin(p.secretGoesTo()) {
		wrong.Add(prefix+"clientSecret", errs.Plain("must be sent again: the address that it goes to is at another "+
			"host now, and whoever changes that must know the secret. To store none, send an empty one"))
	}
	if p.General.LinkByEmail && p.forEverybody() {
		wrong.Add("linkByEmail", errs.Plain("is not possible at a provider where everybody can have an account: "+
			"Google and Microsoft need tenants for it, and others do not have them"))
	}
}

func (p *Provider) hasSecret() bool {
	c := p.client()
	return c != nil && *c.hasSecret
}

// secretGoesTo is the address that decides where the client secret is sent.
func (p *Provider) secretGoesTo() string {
	switch {
	case p.OIDC != nil:
		return p.OIDC.Issuer
	case p.OAuth != nil:
		return p.OAuth.TokenEndpoint
	}
	return ""
}

// origin is the scheme, host and port of an address: who listens there. What is no such address is only like itself.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// tenantID is what Microsoft's claim tid holds.
var tenantID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func (o *OIDC) tenantConflicts(prefix string, wrong *errs.Violations) {
	switch {
	case o.Preset == MicrosoftPreset:
		for i, tenant := range o.Tenants {
			if !tenantID.MatchString(tenant) {
				wrong.Add(fmt.Sprintf("%stenants[%d]", prefix, i), errs.Plain("must be the identifier of a tenant: a "+
					"GUID in lower case, as in the claim tid"))
			}
		}
		if len(o.Tenants) == 0 && o.sharedIssuer() {
			wrong.Add(prefix+"tenants", errs.Plain("must name the tenants that may sign in: this issuer is shared by "+
				"all companies at Microsoft. For one company, you can use its own issuer instead, https://login.microsoftonline.com/<tenant>/v2.0"))
		}
	case len(o.Tenants) > 0 && o.Preset != GooglePreset:
		wrong.Add(prefix+"tenants", errs.Plain("go with the presets of Google and Microsoft only: tokens of other "+
			"providers do not name a tenant"))
	}
}

// sharedIssuer tells whether tokens of many of Microsoft's tenants are accepted there.
func (o *OIDC) sharedIssuer() bool {
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return true // it is nobody's
	}
	tenant, _, _ := strings.Cut(strings.TrimLeft(u.Path, "/"), "/")
	return slices.Contains([]string{"", "common", "organizations", "consumers"}, strings.ToLower(tenant))
}

func (o *OIDC) appleConflicts(before *Provider, secret *string, prefix string, wrong *errs.Violations) {
	was := before != nil && before.OIDC != nil && before.OIDC.Preset == ApplePreset
	if o.Preset != ApplePreset {
		notApple := errs.Plain("goes with the preset of Apple only")
		wrong.Add(prefix+"clientSecret", given(secret, optional)) // only a private key is longer
		if o.TeamID != "" {
			wrong.Add(prefix+"teamId", notApple)
		}
		if o.KeyID != "" {
			wrong.Add(prefix+"keyId", notApple)
		}
		if was && secret == nil { // or the private key would be sent to somebody as a secret
			wrong.Add(prefix+"clientSecret", errs.Plain("must be set or removed together with the preset: the one "+
				"that is stored is a private key for Apple"))
		}
		return
	}
	if o.TeamID == "" {
		wrong.Add(prefix+"teamId", errs.Plain("must not be empty: it is at the top right of your account at "+
			"developer.apple.com"))
	}
	if o.KeyID == "" {
		wrong.Add(prefix+"keyId", errs.Plain("must not be empty: Apple shows it with the private key"))
	}
	if o.ClientAuth == PrivateKeyJWT {
		wrong.Add(prefix+"clientAuth", errs.Plain("must not be private_key_jwt: Apple has a way of its own, with the "+
			"private key in clientSecret"))
	}
	if secret != nil || !was { // what is stored for Apple was judged when it was set
		wrong.Add(prefix+"clientSecret", errs.Plain(appleKeyProblem(orEmpty(secret))))
	}
}

// appleKeyProblem judges the private key that Apple gives out. It is never quoted.
func appleKeyProblem(text string) string {
	const problem = "must be the private key that Apple gives out as a file .p8: PEM, starting with -----BEGIN PRIVATE KEY-----, of an ECDSA key on P-256, with nothing before or after it"
	text = strings.TrimSpace(text)
	if len(text) > 4*maxKey || !strings.HasPrefix(text, "-----BEGIN PRIVATE KEY-----") ||
		strings.Count(text, "-----BEGIN") != 1 {
		return problem
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(block.Headers) > 0 || strings.TrimSpace(string(rest)) != "" {
		return problem
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return problem
	}
	if key, is := parsed.(*ecdsa.PrivateKey); !is || key.Curve != elliptic.P256() {
		return problem
	}
	return ""
}

// forEverybody tells whether anybody can have an account at the provider, and nothing says of which company they are.
// An address there proves less than at a company's own provider.
func (p *Provider) forEverybody() bool {
	switch {
	case p.OIDC != nil && len(p.OIDC.Tenants) == 0:
		o := p.OIDC
		return o.Preset == GooglePreset || o.Preset == ApplePreset ||
			atHost(o.Issuer, "accounts.google.com", "appleid.apple.com", "gitlab.com") ||
			atHost(o.Issuer, "login.microsoftonline.com") && o.sharedIssuer()
	case p.OAuth != nil:
		return atHost(p.OAuth.UserEndpoint, "api.github.com", "github.com")
	}
	return false
}

func atHost(address string, hosts ...string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains(hosts, strings.ToLower(u.Hostname()))
}
