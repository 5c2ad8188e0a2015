package call

import "net/netip"

// Network of an address, by which what strangers do is counted: hosts on IPv6 have a whole /64 to themselves.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Is6() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}
