package upstream

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func (f *Federation) startOIDC(ctx context.Context, p *Provider, s *state, text, hint string) (string, error) {
	o := p.Data.OIDC
	m, err := f.discovered(ctx, p)
	if err != nil {
		return "", err
	}
	return f.address("the authorization endpoint", m.AuthorizationEndpoint, o.Parameters, func(q url.Values) {
		f.codeRequest(q, p, s, text, hint, o.ClientID)
		q.Set("scope", strings.Join(scopesOf(o), " "))
		q.Set("nonce", f.nonce(s))
		q.Del("response_mode")
		if postsForm(o) {
			q.Set("response_mode", "form_post")
		}
		prompt := "login"
		if isGoogle(o) { // it knows no login
			prompt = "select_account"
		}
		s.proof(q, prompt)
	})
}

// codeRequest sets what every request for a code has.
func (f *Federation) codeRequest(q url.Values, p *Provider, s *state, text, hint, clientID string) {
	q.Set("response_type", "code")
	q.Set("client_id", clientID)
	q.Set("redirect_uri", f.CallbackAddress(p.ID))
	q.Set("state", text)
	q.Set("code_challenge", challenge(f.verifier(s)))
	q.Set("code_challenge_method", "S256")
	if plain(hint, syntax.MaxName) {
		q.Set("login_hint", hint)
	}
}

func scopesOf(o *idp.OIDC) []string {
	more := o.Scopes
	if len(more) == 0 {
		more = []string{"profile", "email"}
		if o.Preset == idp.ApplePreset {
			more = []string{"name", "email"}
		}
	}
	return append([]string{"openid"},
		slices.DeleteFunc(slices.Clone(more), func(s string) bool { return s == "openid" })...)
}

// postsForm tells whether the answer is posted. Apple insists on that where it is to tell a name or an e-mail.
func postsForm(o *idp.OIDC) bool { return o.FormPost || o.Preset == idp.ApplePreset }

func (f *Federation) oidcClient(o *idp.OIDC, m *metadata) client {
	c := client{id: o.ClientID, hasSecret: o.HasClientSecret, auth: o.ClientAuth, endpoint: m.TokenEndpoint,
		audience: o.Issuer, algorithms: m.TokenAuthAlgorithms}
	if o.Preset == idp.ApplePreset {
		c.apple = o
	}
	return c
}

func (f *Federation) finishOIDC(ctx context.Context, p *Provider, s *state, answer url.Values) (*idp.Identity, error) {
	o := p.Data.OIDC
	m, err := f.discovered(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := m.fromIssuer(o, answer); err != nil {
		return nil, err
	}
	if err := answeredError(answer); err != nil {
		return nil, err
	}
	got, err := f.exchange(ctx, p, f.oidcClient(o, m), s, answer)
	if err != nil {
		return nil, err
	}
	access, _ := got.Text("access_token")
	c, err := f.idToken(ctx, p, m, s, got, access)
	if err != nil {
		return nil, err
	}
	who := &idp.Identity{}
	who.Issuer, _ = c.Text("iss")
	who.Subject, _ = c.Subject()
	if iss := answer.Get("iss"); iss != "" && iss != who.Issuer && iss != m.Issuer {
		return nil, failure.New(failure.IssParameter, "the answer and the token name different issuers")
	}
	if who.Tenant, err = tenant(o, c); err != nil {
		return nil, err
	}
	documents := []tokenClaims{c}
	if m.UserInfoEndpoint != "" && access != "" && !complete(o.Claims, c) {
		more, err := f.userInfo(ctx, p, m.UserInfoEndpoint, access, who.Subject)
		if err != nil {
			return nil, err
		}
		documents = append(documents, more)
	}
	person(who, o.Claims, documents...)
	who.EmailVerified = verified(who, o.Claims, documents...)
	if isMicrosoft(o) { // whose administrators write any address they like
		who.EmailVerified = who.Email != "" && o.Claims.Email == "" && c.True("xms_edov")
	}
	if o.Preset == idp.ApplePreset {
		appleName(who, answer.Get("user"))
	}
	f.aboutSignIn(who, c, s)
	return who, nil
}

// idToken checks the ID token of an answer (OpenID Connect Core 1.0, 3.1.3.7). Errors: *Failure.
func (f *Federation) idToken(ctx context.Context, p *Provider, m *metadata, s *state, got tokenClaims,
	access string) (tokenClaims, error) {
	o := p.Data.OIDC
	text, ok := got.Text("id_token")
	if !ok {
		return nil, failure.New(failure.Token,
			"the provider sent no ID token: it must speak OpenID Connect, not only OAuth 2.0")
	}
	token, err := readToken(text, advertised(m.IDTokenAlgorithms))
	if err != nil {
		return nil, err
	}
	if err := f.verify(ctx, p, m.KeySet, token); err != nil {
		return nil, err
	}
	c := token.Claims
	ofTenant, _ := c.Text("tid")
	issuer := m.issuerFor(o, ofTenant)
	if issuer == "" {
		return nil, failure.New(failure.Issuer, "the token names no tenant (tid) that its issuer could be of")
	}
	if err := c.Check(expectedClaims{Issuer: issuer, Audience: o.ClientID, Now: f.Clock()}); err != nil {
		return nil, err
	}
	party, _ := c.Text("azp")
	if _, said := c["azp"]; (said || len(c.Texts("aud")) > 1) && party != o.ClientID {
		return nil, failure.New(failure.AuthorizedParty, "the token was issued to another client (azp)")
	}
	if nonce, _ := c.Text("nonce"); !hmac.Equal([]byte(nonce), []byte(f.nonce(s))) {
		return nil, failure.New(failure.Nonce,
			"the token has no nonce, or that of another sign-in: the provider must repeat the one that was sent")
	}
	if _, said := c["at_hash"]; said {
		if hash, _ := c.Text("at_hash"); access == "" || hash != accessTokenHash(token.Algorithm, access) {
			return nil, failure.New(failure.AccessTokenHash, "the token belongs to another access token (at_hash)")
		}
	}
	return c, nil
}

func accessTokenHash(algorithm, access string) string {
	var sum []byte
	switch {
	case strings.HasSuffix(algorithm, "256"):
		h := sha256.Sum256([]byte(access))
		sum = h[:]
	case strings.HasSuffix(algorithm, "384"):
		h := sha512.Sum384([]byte(access))
		sum = h[:]
	default: // 512, and Ed25519, which hashes with it
		h := sha512.Sum512([]byte(access))
		sum = h[:]
	}
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// userInfo asks for what the ID token does not say. Only an answer about the same person counts. Errors: *Failure.
func (f *Federation) userInfo(ctx context.Context, p *Provider, address, access, subject string) (tokenClaims, error) {
	c, err := f.read(ctx, p, address, access, "the userinfo endpoint")
	if err != nil {
		return nil, err
	}
	if about, err := c.Subject(); err != nil || about != subject {
		return nil, failure.New(failure.UserInfoSubject,
			"the userinfo endpoint answered about somebody else: its sub must be that of the ID token")
	}
	return c, nil
}

// read fetches a JSON object with an access token. Errors: *Failure.
func (f *Federation) read(ctx context.Context, p *Provider, address, access, name string) (tokenClaims, error) {
	answer, err := f.fetch(ctx, p, address, access)
	if err != nil {
		return nil, err
	}
	if c, err := document(answer); err == nil && answer.Status == http.StatusOK {
		return c, nil
	}
	return nil, failure.New(failure.UserInfo,
		name+" did not answer with a JSON object about the person: check the scopes that the client may use")
}

func (f *Federation) fetch(ctx context.Context, p *Provider, address, access string) (*outbound.Response, error) {
	return f.call(ctx, p, func(ctx context.Context) (*outbound.Response, error) {
		return f.Client.GetWith(ctx, address,
			map[string]string{"Authorization": "Bearer " + access, "Accept": "application/json"}, maxAnswer)
	})
}

// tenant is the company of a person, at providers that many share. Errors: *Failure.
func tenant(o *idp.OIDC, c tokenClaims) (string, error) {
	name := ""
	switch {
	case isMicrosoft(o):
		name = "tid"
	case isGoogle(o):
		name = "hd"
	}
	of, ok := c.Text(name)
	if name == "" || !ok || !plain(of, maxTenant) {
		of = ""
	}
	if len(o.Tenants) > 0 && (of == "" || !slices.Contains(o.Tenants, of)) {
		return "", failure.New(failure.Tenant, "the person belongs to none of the tenants that are configured")
	}
	return of, nil
}

func isGoogle(o *idp.OIDC) bool {
	return o.Preset == idp.GooglePreset || o.Issuer == "https://accounts.google.com"
}

// isMicrosoft tells whether a provider is Microsoft's, whatever its preset says.
func isMicrosoft(o *idp.OIDC) bool {
	if o.Preset == idp.MicrosoftPreset {
		return true
	}
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc([]string{"login.microsoftonline.com", "login.microsoft.com", "sts.windows.net",
		"login.windows.net", "login.microsoftonline.us", "login.partner.microsoftonline.cn"},
		func(of string) bool { return host == of }) || strings.HasSuffix(host, ".ciamlogin.com")
}

// appleName takes the name that Apple tells once, through the browser: the person can write anything there, as they
// could in a form of ours.
func appleName(who *idp.Identity, user string) {
	var said struct {
		Name struct {
			First string `json:"firstName"`
			Last  string `json:"lastName"`
		} `json:"name"`
	}
	if len(user) > maxCode || json.Unmarshal([]byte(user), &said) != nil {
		return
	}
	if who.FirstName == "" && plain(said.Name.First, syntax.MaxName) {
		who.FirstName = said.Name.First
	}
	if who.LastName == "" && plain(said.Name.Last, syntax.MaxName) {
		who.LastName = said.Name.Last
	}
}
