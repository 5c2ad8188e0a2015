package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// SameOrigin lets requests that may change something through only when one of our own pages made them. Browsers say
// which page did in headers that no page can forge: Sec-Fetch-Site, or Origin where a browser does not know that one.
// What comes from elsewhere gets a page that says what to do.
func (p *Pages) SameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || p.FromOurPage(r) {
			next.ServeHTTP(w, r)
			return
		}
		p.Render(w, r, http.StatusForbidden, Failed{What: FromElsewhere, RequestID: w.Header().Get("X-Request-Id")})
	})
}

// FromOurPage tells whether one of our own pages made a request that may change something. It also holds the origin
// against the configured one: a name that somebody else made resolve to this server is of the same origin as itself.
func (p *Pages) FromOurPage(r *http.Request) bool {
	site, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if len(site) > 1 || len(origin) > 1 || len(origin) == 1 && origin[0] != p.origin {
		return false
	}
	if len(site) == 1 && site[0] == "same-origin" {
		return true
	}
	return (len(site) == 0 || site[0] == "none") && len(origin) == 1
}

// Readable tells whether everything in a form is text that can be kept: browsers send nothing else, but others do.
func Readable(form url.Values) bool {
	for name, values := range form {
		for _, s := range slices.Concat(values, []string{name}) {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
				return false
			}
		}
	}
	return true
}

// cookiePrefix makes browsers refuse the cookie unless it is secure, of this host alone and of every path.
const cookiePrefix = "__Host-"

// Cookie makes a cookie that only this host gets, that no script reads, and that links from elsewhere bring along but
// forms do not. A life of zero ends with the browser. Browsers take it over http from localhost, too.
func Cookie(name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookiePrefix + name, Value: value, Path: "/", MaxAge: int(life / time.Second),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// ForgetCookie makes what removes a cookie from the browser.
func ForgetCookie(name string) *http.Cookie {
	c := Cookie(name, "", 0)
	c.MaxAge = -1
	return c
}

// CookieValue reads a cookie that was set with Cookie; empty: there is none.
func CookieValue(r *http.Request, name string) string {
	c, err := r.Cookie(cookiePrefix + name)
	if err != nil {
		return ""
	}
	return c.Value
}
