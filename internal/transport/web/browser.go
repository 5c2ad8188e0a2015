package web

import (
	"crypto/rand"
	"net/http"
)

// browserCookie tells browsers apart, so that what one of them has begun is not ended in another.
const browserCookie = "__Host-signet-browser"

// Browser gives the secret that tells this browser from others, and gives the browser one where it has none. It proves
// nothing about who sits there.
func Browser(w http.ResponseWriter, r *http.Request) string {
	if known := KnownBrowser(r); known != "" {
		return known
	}
	fresh := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: browserCookie, Value: fresh, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	return fresh
}

// KnownBrowser is Browser for a request that must have come by it before; empty where it has not.
func KnownBrowser(r *http.Request) string {
	if c, err := r.Cookie(browserCookie); err == nil && len(c.Value) == len(rand.Text()) {
		return c.Value
	}
	return ""
}
