package syntax

import "strings"

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
