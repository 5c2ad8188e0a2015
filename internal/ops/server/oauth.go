package server

import (
	"context"
	"net/http"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/login"
)

// newKeys are the keys that sign tokens.
func newKeys(ctx context.Context, b *base) *signing.Keys {
	keys := signing.New(b.store, b.master, b.config.Clock)
	if err := keys.Tend(ctx); err != nil { // tried again in the background
		b.log.Warn("updating the signing keys", "error", err)
	}
	return keys
}

// newGrants decides what applications get.
func newGrants(b *base, s *session.Sessions, keys *signing.Keys, sets *outbound.KeySets,
	issuers oauth.Issuers) *oauth.Grants {

	return &oauth.Grants{Store: b.store, Sessions: s, Master: b.master, Clock: b.config.Clock, Signer: keys,
		KeySets: sets, Issuers: issuers, Issuer: b.config.ExternalURL, Refusals: refusal.NewBook(b.config.Clock)}
}

// mountProvider puts the OpenID Connect provider on the site.
func mountProvider(site *web.Site, shown *pages.Pages, grants *oauth.Grants, keys *signing.Keys) (
	*oidc.Provider, error) {

	provider, err := oidc.New(oidc.Config{Grants: grants, Keys: keys, ErrorPage: login.ErrorPage(shown),
		PostBack: func(w http.ResponseWriter, r *http.Request, locales string, answer request.Answer) error {
			return login.PostBack(shown, w, r, pages.Frame{Locales: locales}, answer)
		}})
	if err != nil {
		return nil, err
	}
	for path, handler := range provider.Handlers() {
		site.Handle(path, handler)
	}
	return provider, nil
}
