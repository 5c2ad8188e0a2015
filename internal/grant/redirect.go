package grant

import (
	"net/url"

	"github.com/signet-idm/signet/internal/app"
)

// Origins are the origins of the pages that an application in a browser runs on, as its redirect URIs tell them.
func Origins(a *app.App) []string {
	if a.Type != app.SPA {
		return nil
	}
	var origins []string
	for _, uri := range a.RedirectURIs {
		if u, err := url.Parse(uri); err == nil && u.Host != "" {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	return origins
}
