package web

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Peer is the client's address: that of the connection or, behind trusted proxies, the one that the outermost of them
// saw. Anything a client could have written itself is not believed.
func Peer(r *http.Request, trusted []netip.Prefix) netip.Addr {
	direct, _ := parseAddr(r.RemoteAddr)
	if !contain(trusted, direct) {
		return direct
	}
	client := direct
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, ok := parseAddr(strings.TrimSpace(hop))
		if !ok {
			return direct
		}
		client = addr
		if !contain(trusted, addr) {
			break
		}
	}
	return client
}

func contain(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddr reads an address with or without a port.
func parseAddr(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") || strings.Count(s, ":") == 1 {
		withPort, err := netip.ParseAddrPort(s)
		return withPort.Addr().Unmap().WithZone(""), err == nil
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}

// RequestIDHeader is the header that carries a request's id, as net/http stores it.
const RequestIDHeader = "X-Request-Id"

// RequestID takes over the id that a caller or a proxy gave the request, if it is a sane one.
func RequestID(h http.Header) string {
	if values := h[RequestIDHeader]; len(values) == 1 && IsRequestID(values[0]) {
		return values[0]
	}
	return rand.Text()
}

// IsRequestID tells whether an id is one that goes into logs and headers as it is.
func IsRequestID(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

const maxUserAgent = 256

// UserAgent is what the client says it is, cut to a length that a log can hold.
func UserAgent(h http.Header) string {
	s := h.Get("User-Agent")
	if len(s) > maxUserAgent {
		s = s[:maxUserAgent]
	}
	return strings.ToValidUTF8(s, "")
}
