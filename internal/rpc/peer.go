package rpc

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// peer is the client's address: that of the connection or, behind trusted proxies, the one that the outermost of them
// saw. Anything a client could have written itself is not believed.
func (h *Handler) peer(r *http.Request) netip.Addr {
	direct, _ := parseAddr(r.RemoteAddr)
	if len(h.config.TrustedProxies) == 0 || !h.trusts(direct) {
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
		if !h.trusts(addr) {
			break
		}
	}
	return client
}

func (h *Handler) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(h.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddr reads an address with or without a port.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
