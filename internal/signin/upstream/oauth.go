package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func (f *Federation) startOAuth(p *Provider, s *state, text, hint string) (string, error) {
	o := p.Data.OAuth
	return f.address("authorizationEndpoint", o.AuthorizationEndpoint, o.Parameters, func(q url.Values) {
		f.codeRequest(q, p, s, text, hint, o.ClientID)
		if len(o.Scopes) > 0 {
			q.Set("scope", strings.Join(o.Scopes, " "))
		}
	})
}

func (f *Federation) finishOAuth(ctx context.Context, p *Provider, s *state, answer url.Values) (*idp.Identity, error) {
	o := p.Data.OAuth
	if err := answeredError(answer); err != nil {
		return nil, err
	}
	got, err := f.exchange(ctx, p,
		client{id: o.ClientID, hasSecret: o.HasClientSecret, auth: o.ClientAuth, endpoint: o.TokenEndpoint,
			audience: o.TokenEndpoint}, s, answer)
	if err != nil {
		return nil, err
	}
	access, ok := got.Text("access_token")
	if !ok || access == "" {
		return nil, failure.New(failure.TokenAnswer, "the token endpoint answered without an access token")
	}
	c, err := f.read(ctx, p, o.UserEndpoint, access, "the user endpoint")
	if err != nil {
		return nil, err
	}
	who := &idp.Identity{}
	if who.Issuer, err = origin(o.TokenEndpoint); err != nil {
		return nil, err
	}
	if who.Subject, err = c.SubjectIn(cmp.Or(o.Subject, "id"), true); err != nil {
		return nil, err
	}
	names := o.Claims
	if o.Preset == idp.GitHubPreset {
		names.UserName = cmp.Or(names.UserName, "login")
	}
	person(who, names, c)
	if o.EmailsEndpoint != "" {
		if who.Email, err = f.verifiedEmail(ctx, p, access); err != nil {
			return nil, err
		}
		who.EmailVerified = who.Email != ""
	}
	return who, nil
}

// origin is what stands for the issuer of a provider that has none: scheme and host of the endpoint that its tokens
// come from.
func origin(address string) (string, error) {
	u, err := outbound.Check(address)
	if err != nil {
		return "", failure.New(failure.Configuration, "tokenEndpoint must be an https:// URL").Because(err)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// verifiedEmail is the one address of a list that is both the person's main one and verified; empty where there is
// none. Errors: *Failure.
func (f *Federation) verifiedEmail(ctx context.Context, p *Provider, access string) (string, error) {
	answer, err := f.fetch(ctx, p, p.Data.OAuth.EmailsEndpoint, access)
	if err != nil {
		return "", err
	}
	var list []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &list) != nil {
		return "", failure.New(failure.UserInfo,
			"the e-mails endpoint did not answer with a list of addresses: check the scopes that the client may use")
	}
	for _, one := range list {
		if _, problem := syntax.Email(one.Email); one.Primary && one.Verified && problem == nil &&
			plain(one.Email, syntax.MaxName) {
			return one.Email, nil
		}
	}
	return "", nil
}
