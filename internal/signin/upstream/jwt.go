package upstream

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// maxJWTLife is how long a token of a portal may be valid: each is remembered until it has expired.
const maxJWTLife = 24 * time.Hour

func (f *Federation) startJWT(p *Provider, s *state, text string) (string, error) {
	return f.address("jwtEndpoint", p.Data.JWT.Endpoint, nil, func(q url.Values) {
		q.Set("state", text)
		q.Set("return_to", f.CallbackAddress(p.ID))
		s.proof(q, "login")
	})
}

func (f *Federation) finishJWT(ctx context.Context, p *Provider, s *state, header http.Header,
	answer url.Values) (*idp.Identity, error) {
	if err := answeredError(answer); err != nil {
		return nil, err
	}
	text, err := carried(header, p.Data.JWT.HeaderName)
	if err != nil {
		return nil, err
	}
	token, err := readToken(text, signatureAlgorithms)
	if err != nil {
		return nil, err
	}
	if err := f.verify(ctx, p, p.Data.JWT.KeysEndpoint, token); err != nil {
		return nil, err
	}
	c := token.Claims
	if err := c.Check(expectedClaims{Issuer: p.Data.JWT.Issuer, Audience: audienceOf(p), Now: f.Clock(),
		MaxLife: maxJWTLife}); err != nil {
		return nil, err
	}
	expires, _ := c.Time("exp")
	digest := token.Digest()
	err = f.once(ctx, "idp_token/"+p.ID+"/"+hex.EncodeToString(digest[:]), expires.Add(2*clockSkew),
		failure.New(failure.Replayed, "this token was used before: make a new one for every sign-in"))
	if err != nil {
		return nil, err
	}
	who := &idp.Identity{Issuer: p.Data.JWT.Issuer}
	who.Subject, _ = c.Subject()
	person(who, idp.Claims{}, c)
	who.EmailVerified = who.Email != "" && c.True("email_verified")
	f.aboutSignIn(who, c, s)
	return who, nil
}

func audienceOf(p *Provider) string {
	if p.Data.JWT.Audience != "" {
		return p.Data.JWT.Audience
	}
	return p.ID
}

// carried gives the token in a header: with or without the scheme that most proxies put in front.
func carried(header http.Header, name string) (string, error) {
	if name == "" {
		name = "Authorization"
	}
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", failure.New(failure.Token,
			"the request must carry the token in the configured header, once: check headerName and the proxy that sets it")
	}
	text := strings.TrimSpace(values[0])
	if scheme, rest, found := strings.Cut(text, " "); found && strings.EqualFold(scheme, "bearer") {
		text = strings.TrimSpace(rest)
	}
	return text, nil
}

// verify finds the key that a token names at an address, and checks the signature. Errors: *Failure.
func (f *Federation) verify(ctx context.Context, p *Provider, address string, token *signedToken) error {
	keys, err := f.Keys.Find(ctx, p.Org, address, token.KeyID)
	if err != nil {
		return called(err, failure.Keys,
			"the key set of the provider cannot be fetched: check its address, and that it answers with a JSON Web Key Set")
	}
	return token.Verify(keys)
}

// aboutSignIn takes over what a token says about how somebody signed in at the provider.
func (f *Federation) aboutSignIn(who *idp.Identity, c tokenClaims, s *state) {
	for _, method := range c.Texts("amr") {
		if plain(method, maxMethod) && !slices.Contains(who.Methods, method) {
			who.Methods = append(who.Methods, method)
		}
	}
	if sid, ok := c.Text("sid"); ok && plain(sid, maxSession) {
		who.Session = sid
	}
	at, ok := c.Time("auth_time")
	if now := f.Clock(); ok && !at.After(now.Add(clockSkew)) && at.Unix() > 0 {
		who.Proven = min(event.Micros(at), event.Micros(now))
	}
	// A provider that was asked to let the person prove it anew and says that they did, did so after it was asked,
	// whatever its clock says.
	if started := event.Time(s.Started); s.Again && who.Proven != 0 && !at.Before(started.Add(-clockSkew)) {
		who.Fresh, who.Proven = true, max(who.Proven, s.Started)
	}
}

// advertised are the algorithms that a provider says it signs with, as far as they count.
func advertised(names []string) []jose.SignatureAlgorithm {
	if names == nil {
		return signatureAlgorithms
	}
	return slices.DeleteFunc(slices.Clone(signatureAlgorithms),
		func(a jose.SignatureAlgorithm) bool { return !slices.Contains(names, string(a)) })
}
