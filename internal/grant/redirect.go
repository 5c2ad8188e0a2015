package grant

import (
	"net/netip"
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/app"
)

// redirectAllowed tells whether an application may have people sent to an address: one of those registered, to the
// letter. Only the port of a loopback address of a native application is free (RFC 8252).
func redirectAllowed(a *app.App, uri string) bool {
	if uri == "" {
		return false
	}
	if slices.Contains(a.RedirectURIs, uri) {
		return true
	}
	if a.Type != app.Native {
		return false
	}
	sent, err := url.Parse(uri)
	if err != nil || !isLoopback(sent) || sent.String() != uri {
		return false
	}
	return slices.ContainsFunc(a.RedirectURIs, func(registered string) bool {
		r, err := url.Parse(registered)
		if err != nil || !isLoopback(r) || r.Hostname() != sent.Hostname() {
			return false
		}
		r.Host = sent.Host
		return r.String() == uri
	})
}

func isLoopback(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && addr.IsLoopback())
}

// postLogoutAllowed tells whether an application may have people sent to an address after they have signed out.
func postLogoutAllowed(a *app.App, uri string) bool {
	return uri != "" && slices.Contains(a.PostLogoutURIs, uri)
}

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
