package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/assertion"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// checkDeadline is for all that Check fetches.
const checkDeadline = 30 * time.Second

// check is one judgement of a provider's configuration.
type check struct {
	*Federation
	p     *Provider
	found []idp.Problem
	late  bool // a server's clock was reported already
}

func (c *check) problem(check, message, hint string) {
	c.found = append(c.found, idp.Problem{Check: check, Message: message, Hint: hint})
}

func (c *check) warning(check, message, hint string) {
	c.found = append(c.found, idp.Problem{Check: check, Message: message, Hint: hint, Warning: true})
}

// Check tries all of a provider that can be tried without a person, as it is at this moment and not as it was kept, and
// tells everything that is wrong. None: an empty list.
func (f *Federation) Check(ctx context.Context, p *Provider) []idp.Problem {
	ctx, cancel := context.WithTimeout(ctx, checkDeadline)
	defer cancel()
	c := &check{Federation: f, p: p, found: []idp.Problem{}}
	switch p.Data.Type() {
	case idp.IsJWT:
		c.jwt(ctx, p.Data.JWT)
	case idp.IsOIDC:
		c.oidc(ctx, p.Data.OIDC)
	case idp.IsOAuth:
		c.oauth(ctx, p.Data.OAuth)
	default:
		c.problem(failure.Configuration, "the provider has no configuration", errNoType.Hint)
	}
	return c.found
}

func (c *check) jwt(ctx context.Context, j *idp.JWT) {
	c.forBrowsers("jwtEndpoint", j.Endpoint)
	if j.Issuer == "" {
		c.problem(failure.Issuer, "issuer is empty", "Set it to the iss that the tokens have.")
	}
	if j.HeaderName != "" && !httpguts.ValidHeaderFieldName(j.HeaderName) {
		c.problem(failure.Token, "headerName is not the name of a header",
			"Use letters, digits and hyphens, or leave it empty for authorization.")
	}
	c.keys(ctx, "keysEndpoint", j.KeysEndpoint, nil)
}

func (c *check) oidc(ctx context.Context, o *idp.OIDC) {
	c.secret(ctx, o.HasClientSecret, o)
	if len(o.Tenants) > 0 && !isMicrosoft(o) && !isGoogle(o) {
		c.problem(failure.Tenant, "tenants are set, but this provider has no claim for them: nobody can sign in",
			"Remove the tenants, or use the preset of Google or Microsoft.")
	}
	if template(o) != "" && len(o.Tenants) == 0 {
		c.warning(failure.Tenant, "people of every tenant of Microsoft can sign in",
			"List your tenants if that is not what you want.")
	}
	if u, err := outbound.Check(o.Issuer); err != nil || u.RawQuery != "" || strings.Contains(o.Issuer, "#") {
		c.problem(failure.Issuer, "issuer is not an https:// URL without a query",
			"Copy the issuer from the provider's metadata.")
		return
	}
	answer := c.get(ctx, failure.Discovery, "the metadata at the issuer", metadataAddress(o.Issuer))
	if answer == nil {
		return
	}
	m, err := readMetadata(answer)
	if err != nil {
		c.problem(failure.Discovery, err.Error(),
			"The issuer must be right to the letter: its metadata is expected at "+metadataAddress(o.Issuer)+".")
		return
	}
	c.issuer(o, m)
	c.forBrowsers("the authorization endpoint", m.AuthorizationEndpoint)
	c.algorithms(o, m)
	c.keys(ctx, "the key set of the metadata", m.KeySet, m.IDTokenAlgorithms)
	if m.UserInfoEndpoint != "" && c.Client.Accepts(m.UserInfoEndpoint) != nil {
		c.problem(failure.Address, "the userinfo endpoint of the metadata is not called", allowHint)
	}
	if !slices.Contains(m.ChallengeMethods, "S256") {
		c.warning("pkce", "the provider does not say that it supports PKCE with S256",
			"Signet sends it all the same. Ask the provider to switch it on.")
	}
	if m.ResponseModes != nil && postsForm(o) && !slices.Contains(m.ResponseModes, "form_post") {
		c.problem("response_mode", "the provider does not offer to post its answer", "Switch formPost off.")
	}
	c.client(ctx, c.oidcClient(o, m), m.TokenAuthMethods)
}

func (c *check) oauth(ctx context.Context, o *idp.OAuth) {
	c.secret(ctx, o.HasClientSecret, nil)
	c.forBrowsers("authorizationEndpoint", o.AuthorizationEndpoint)
	c.get(ctx, failure.UserInfo, "userEndpoint", o.UserEndpoint)
	if o.EmailsEndpoint != "" {
		c.get(ctx, failure.UserInfo, "emailsEndpoint", o.EmailsEndpoint)
	}
	c.client(ctx, client{id: o.ClientID, hasSecret: o.HasClientSecret, auth: o.ClientAuth, endpoint: o.TokenEndpoint,
		audience: o.TokenEndpoint}, nil)
}

// forBrowsers judges an address that people are sent to.
func (c *check) forBrowsers(name, address string) {
	if _, err := c.address(name, address, nil, func(url.Values) {}); err != nil {
		c.problem(failure.Configuration, name+" is not an https:// URL", "Write it with https:// and a host.")
	}
}

// issuer compares what a provider calls itself with what is configured.
func (c *check) issuer(o *idp.OIDC, m *metadata) {
	if m.Issuer == o.Issuer || m.Issuer != "" && m.Issuer == template(o) {
		return
	}
	hint := "Copy the issuer from the provider's metadata, to the letter."
	switch {
	case strings.TrimSuffix(m.Issuer, "/") == strings.TrimSuffix(o.Issuer, "/"):
		hint = "They differ only in the slash at the end: add it, or remove it."
	case o.Preset != idp.MicrosoftPreset && strings.Contains(m.Issuer, tenantPlaceholder):
		hint = "This is Microsoft's address for several tenants: use the preset of Microsoft, or the address of your tenant."
	}
	c.problem(failure.Issuer, "the provider calls itself by another issuer than the one that is configured", hint)
}

func (c *check) algorithms(o *idp.OIDC, m *metadata) {
	if len(advertised(m.IDTokenAlgorithms)) == 0 {
		c.problem(failure.Algorithm, "the provider signs ID tokens with no algorithm that is accepted",
			"Have it use RS256, ES256 or EdDSA for this client.")
	}
	way := wayOf(o)
	offered := m.TokenAuthMethods
	switch {
	case offered == nil && way != "client_secret_basic" && o.Preset != idp.ApplePreset:
		c.warning(failure.Client, "the provider does not say that it supports "+way,
			"If sign-ins fail, send the secret in the header.")
	case way == "none": // a provider need not list it, see RFC 8414: client finds out
	case offered != nil && !slices.Contains(offered, way):
		c.problem(failure.Client, "the provider does not offer "+way+", by which this client proves who it is",
			"Choose a client authentication that the provider offers, and set a client secret if it needs one.")
	}
	if o.ClientAuth == idp.PrivateKeyJWT && m.TokenAuthAlgorithms != nil &&
		!slices.Contains(m.TokenAuthAlgorithms, "ES256") && !slices.Contains(m.TokenAuthAlgorithms, "RS256") {
		c.problem(failure.Client, "the provider takes neither ES256 nor RS256 for private_key_jwt",
			"Use a client secret.")
	}
}

// wayOf names how a client proves who it is, as metadata does.
func wayOf(o *idp.OIDC) string {
	switch {
	case o.ClientAuth == idp.PrivateKeyJWT:
		return "private_key_jwt"
	case !o.HasClientSecret:
		return "none"
	case o.ClientAuth == idp.SecretInBody, o.Preset == idp.ApplePreset:
		return "client_secret_post"
	}
	return "client_secret_basic"
}

// secret judges the client secret; apple is not nil where it may be a key.
func (c *check) secret(ctx context.Context, has bool, o *idp.OIDC) {
	apple := o != nil && o.Preset == idp.ApplePreset
	if !has {
		if apple {
			c.problem(failure.Client, "the private key of Apple is missing",
				"Send the text of the .p8 file as the client secret.")
		}
		return
	}
	text, err := idp.ReadSecret(ctx, c.Store, c.Master, c.p.ID)
	if err != nil || text == "" {
		c.problem(failure.Client, "the client secret cannot be read", "Set it again.")
		return
	}
	if !apple {
		return
	}
	if _, err := appleKey(text); err != nil {
		c.problem(failure.Client, "the client secret is not a private key of Apple",
			"Send the whole text of the .p8 file, with its first and its last line.")
	}
	if o.TeamID == "" || o.KeyID == "" {
		c.problem(failure.Client, "the team id or the key id of Apple is missing",
			"Both are ten characters; Apple shows them beside the key.")
	}
}

// keys fetches a key set and looks for a key that could sign.
func (c *check) keys(ctx context.Context, name, address string, algorithms []string) {
	answer := c.get(ctx, failure.Keys, name, address)
	if answer == nil {
		return
	}
	keys, err := outbound.ParseKeys(answer.Body)
	if answer.Status != http.StatusOK || err != nil {
		c.problem(failure.Keys,
			fmt.Sprintf("%s did not answer with a key set, but with status %d", name, answer.Status),
			"It must answer with a JSON Web Key Set (RFC 7517).")
		return
	}
	for _, key := range keys {
		for _, a := range advertised(algorithms) {
			if assertion.Fits(string(a), key) {
				return
			}
		}
	}
	if slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		return slices.ContainsFunc(advertised(nil),
			func(a jose.SignatureAlgorithm) bool { return assertion.Fits(string(a), k) })
	}) {
		if len(advertised(algorithms)) == 0 {
			return // which is the problem, and was told
		}
		c.problem(failure.Algorithm,
			name+" has keys, but none for an algorithm that the provider announces ("+
				strings.Join(algorithms, ", ")+")",
			"Have the provider announce the algorithm of its key in id_token_signing_alg_values_supported, or publish a key for one that it announces.")
		return
	}
	c.problem(failure.Keys, name+" has no usable key",
		"It needs a public key for signatures: RSA of 2048 to 8192 bits, EC of P-256, P-384 or P-521, or Ed25519.")
}

// client tries whether the token endpoint knows us, with a code that nobody has made. offered are the ways to prove who
// one is that the provider says it takes; nil: it does not say.
func (c *check) client(ctx context.Context, by client, offered []string) {
	public := !by.hasSecret && by.auth != idp.PrivateKeyJWT
	unlisted := public && offered != nil && !slices.Contains(offered, "none")
	if c.Client.Accepts(by.endpoint) != nil {
		c.problem(failure.Address, "the token endpoint is not called", allowHint)
		return
	}
	_, err := c.exchange(ctx, c.p, by, &state{Provider: c.p.ID, Attempt: []byte("check")},
		url.Values{"code": {"signet-check"}})
	failed, ok := errors.AsType[*Failure](err)
	refused := ok && failed.Check == failure.Client
	if unlisted && !refused {
		c.warning(failure.Client, "the provider does not say that it supports clients without a secret",
			"If sign-ins fail, set a client secret, or register a public client with the provider.")
	}
	switch {
	case unlisted && refused:
		c.problem(failed.Check, "no client secret is set, and the provider requires one",
			"Set the client secret that the provider gave you, or register a public client with it.")
	case public && refused:
		c.problem(failed.Check, "the provider does not accept the client id without a client secret",
			"Check the client id, and set the client secret if the provider gave you one.")
	case refused:
		c.problem(failed.Check, "the provider does not accept the client id or secret",
			"Check both, and how the secret is sent.")
	case !ok, failed.Check == failure.Code, failed.Check == failure.Configuration: // of which secret has spoken
	case failed.Check == failure.TokenAnswer:
		c.warning(failed.Check, "the token endpoint refused a code that does not exist in an unusual way",
			"If sign-ins fail, check its address.")
	default:
		message, hint := reason(failed)
		c.problem(failed.Check, "the token endpoint "+message, hint)
	}
}

// get fetches something; nil where that failed, which is noted.
func (c *check) get(ctx context.Context, check, name, address string) (answer *outbound.Response) {
	if _, err := outbound.Check(address); err != nil {
		c.problem(check, name+" is not an https:// URL", "Write it with https:// and a host.")
		return nil
	}
	err := c.Calls.Do(ctx, fairqueue.Claim{Org: c.p.Org}, func() (err error) {
		// The first request follows no redirect, to tell whether there is one.
		if answer, err = c.Client.GetWith(ctx, address, map[string]string{"Accept": "application/json"},
			maxAnswer); err != nil || answer.Status < 300 || answer.Status > 399 {
			return err
		}
		c.warning("redirect", name+" redirects", "Configure the address that it leads to.")
		answer, err = c.Client.Get(ctx, address, maxAnswer)
		return err
	})
	if err != nil {
		message, hint := reason(err)
		c.problem(check, name+" "+message, hint)
		return nil
	}
	c.clock(name, answer.Header)
	return answer
}

// clock compares the clock of a server with ours.
func (c *check) clock(name string, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if off := c.Clock().Sub(date).Abs(); err == nil && off > clockSkew && header.Get("Age") == "" && !c.late {
		c.late = true
		c.warning("clock", fmt.Sprintf("the clock of the server of %s differs from ours by %s", name,
			off.Round(time.Second)), "Set both clocks by NTP: tokens are refused if they differ by more than a minute.")
	}
}

// reason says why a call failed. Where a name leads inside is not told.
func reason(err error) (message, hint string) {
	switch outbound.TroubleOf(err) {
	case outbound.NotCalled:
		return "is at an address that this server does not call", allowHint
	case outbound.Untrusted:
		return "has no valid TLS certificate", "Install a certificate for that host name, with its whole chain."
	case outbound.NoTLS:
		return "does not speak TLS, or no version that is accepted", "Check the port. TLS 1.2 and newer are accepted."
	case outbound.UnknownName:
		return "has a host name that cannot be resolved", "Check how it is written."
	case outbound.Closed, outbound.NoRoute:
		return "refused the connection, or its network cannot be reached",
			"Check the host and the port, that the server works, and that no firewall is in between."
	case outbound.Late:
		return "did not answer in time", "Check that the server works, and that no firewall is in between."
	}
	if errors.Is(err, fairqueue.ErrUsedUp) || errors.Is(err, fairqueue.ErrBusy) {
		return "was not asked: too many calls are under way", "Try again shortly."
	}
	return "could not be fetched", "Check the address, and that the server answers with a small document."
}
