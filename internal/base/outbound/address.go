package outbound

import "net/netip"

// special are the networks of the IANA registries that are not the public internet, as far as they lie inside what
// could be: all of IPv4, and 2000::/3 of IPv6.
var special = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by customers of one carrier
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, and where clouds keep their metadata
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // multicast tunnels
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast

	"2001::/23",         // protocol assignments: Teredo, benchmarks, ORCHID
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: an IPv4 address in disguise
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

// unicast is all of IPv6 that is given out as public addresses. What lies outside is loopback, link-local,
// unique-local, multicast, NAT64 (an IPv4 address in disguise) or nothing yet.
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// plain is the address that a connection to addr ends at: not its IPv4-mapped form, and without a zone, since a network
// never contains an address that has one.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// public tells whether an address is one of the public internet.
func public(addr netip.Addr) bool {
	addr = plain(addr)
	return addr.IsValid() && (addr.Is4() || unicast.Contains(addr)) && !within(special, addr)
}

// within tells whether an address lies in one of the networks.
func within(networks []netip.Prefix, addr netip.Addr) bool {
	addr = plain(addr)
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}
