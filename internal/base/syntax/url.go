package syntax

import (
	"net/url"
	"strings"
)

// ShownURL is what may be shown of an address that can hold a token: its scheme and host, and that there is more.
// Nobody who sends it back by mistake sets it: it is no URL then.
func ShownURL(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	host, more := rest, ""
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		host, more = rest[:end], rest[end:]
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host, more = host[at+1:], "/…"
	}
	if more != "" && more != "/" {
		more = "/…"
	}
	return scheme + "://" + host + more
}

// maxLogged is how many characters LoggedURL gives at most.
const maxLogged = 200

// LoggedURL is what the log may say of an address that a stranger has sent: scheme, host and path, escaped, and that
// there is a query or a fragment. These two and a user may hold secrets. What is no address is not repeated at all.
func LoggedURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return "no address"
	case err != nil || u.Scheme == "" || u.Host == "" && u.Path == "":
		return "something that is not an address"
	}
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host, OmitHost: u.OmitHost, Path: u.Path, RawPath: u.RawPath}).String()
	if most := maxLogged - 5; len(shown) > most { // 5: the marks
		shown = shown[:most] + "…"
	}
	if u.RawQuery != "" || u.ForceQuery {
		shown += "?…"
	}
	if _, _, fragment := strings.Cut(address, "#"); fragment {
		shown += "#…"
	}
	return shown
}
