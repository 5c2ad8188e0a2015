// This file tells by which networks strangers come, and bounds what one of them can begin. An address proves nothing
// about who sends a request, but most senders do not have many.

package ratelimit

import "net/netip"

// NetworkOf gives the network of an address, by which what strangers do is counted: hosts on IPv6 have a whole /64 to
// themselves.
func NetworkOf(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Is6() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}

// NetworkName is Of as text.
func NetworkName(a netip.Addr) string {
	of := NetworkOf(a)
	if of.Is6() {
		return netip.PrefixFrom(of, 64).String()
	}
	return of.String()
}
