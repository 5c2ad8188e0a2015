package app

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
)

// RedirectAllowed tells whether people may be sent to uri after signing in to an application: to exactly what was
// registered. The one thing that may differ is the port of a loopback address of a native application, which takes
// whichever port is free (RFC 8252, section 7.3).
func RedirectAllowed(a *App, uri string) bool { return allowed(a.Type, a.RedirectURIs, uri) }

// PostLogoutAllowed tells the same of signing out.
func PostLogoutAllowed(a *App, uri string) bool { return allowed(a.Type, a.PostLogoutURIs, uri) }

// allowed judges the address once more: some that were registered before today's rules led into other programs.
func allowed(t Type, registered []string, uri string) bool {
	if uriProblem(t, uri) != "" {
		return false
	}
	if slices.Contains(registered, uri) {
		return true
	}
	if t != Native {
		return false
	}
	portless, ok := withoutLoopbackPort(uri)
	return ok && slices.ContainsFunc(registered, func(r string) bool {
		other, ok := withoutLoopbackPort(r)
		return ok && other == portless
	})
}

// withoutLoopbackPort cuts the port out of an http address of the loopback interface, and out of nothing else. All
// other characters stay as they are, so that what is left can be compared exactly.
func withoutLoopbackPort(uri string) (string, bool) {
	u, problem := parseURI(uri)
	if problem != "" || u.Scheme != "http" || !isLoopback(u) {
		return "", false
	}
	start := strings.Index(uri, "://") + len("://")
	end := start + len(u.Host) // it holds no escapes, so it is as long as it was written
	return uri[:start] + strings.TrimSuffix(uri[start:end], ":"+u.Port()) + uri[end:], true
}

// What is wrong with an address. None of them repeats it: there may be a password in it.
const (
	notAbsolute  = "must be an absolute URI such as https://app.example.org/callback, with all other characters percent-encoded"
	hasFragment  = "must not have a fragment (#)"
	hasWildcard  = "must not have a wildcard (*): addresses are compared character by character"
	hasUser      = "must not have a user name or password"
	badHost      = "must have a host name or an address, and a port of 1 to 65535 if any"
	badScheme    = "must be https, http on the loopback interface, or have a scheme that is your reversed domain name, such as com.example.app:/callback"
	notSecure    = "must be https, or http on the loopback interface (localhost, 127.0.0.1, [::1])"
	notWeb       = "must be https, or http on the loopback interface: only APPLICATION_TYPE_NATIVE can use other schemes"
	nothingAfter = "must have something after its scheme"
)

// uriProblem says what is wrong with an address to which an application of a type wants people sent; without a type,
// what no application may have.
func uriProblem(t Type, uri string) string {
	u, problem := parseURI(uri)
	if problem != "" {
		return problem
	}
	switch {
	case u.Scheme == "https":
		return ""
	case u.Scheme == "http" && isLoopback(u):
		return ""
	case u.Scheme == "http":
		return notSecure
	case !syntax.PrivateScheme(u.Scheme):
		return badScheme
	case t != Native && t != "":
		return notWeb
	}
	return ""
}

// parseURI reads an absolute URI of RFC 3986 that has neither fragment nor user information. It is stricter than the
// parser: what browsers read in another way than we do is refused.
func parseURI(uri string) (*url.URL, string) {
	for i := range len(uri) {
		switch c := uri[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '#':
			return nil, hasFragment
		case c == '*':
			return nil, hasWildcard
		case c == '%':
			if i+2 >= len(uri) || !isHex(uri[i+1]) || !isHex(uri[i+2]) {
				return nil, notAbsolute
			}
		case !strings.ContainsRune("-._~:/?[]@!$&'()+,;=", rune(c)):
			return nil, notAbsolute
		}
	}
	u, err := url.Parse(uri)
	if err != nil || !u.IsAbs() {
		return nil, notAbsolute
	}
	switch {
	case u.User != nil:
		return nil, hasUser
	case u.Scheme == "http" || u.Scheme == "https":
		if u.Opaque != "" || !goodHost(u) {
			return nil, badHost
		}
	case strings.Trim(uri[len(u.Scheme)+1:], "/") == "":
		return nil, nothingAfter
	}
	return u, ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// goodHost tells whether a host is written in a way that all programs read alike.
func goodHost(u *url.URL) bool {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is6() || addr.Zone() != "" {
			return false
		}
	} else if name == "" || strings.Trim(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != "" {
		return false
	}
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// isLoopback tells whether the host of a URL is the client's own machine.
func isLoopback(u *url.URL) bool {
	name := u.Hostname()
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && (addr.Is4() && addr.IsLoopback() || addr == netip.IPv6Loopback())
}

// Origins are the origins of the pages that an application in a browser runs on, as its redirect URIs tell them.
func (a *App) Origins() []string {
	if a.Type != SPA {
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
