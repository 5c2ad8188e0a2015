package ratelimit_test

import (
	"net/netip"
	"testing"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

func TestAddressesOfOneNetwork(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"::ffff:192.0.2.1", "192.0.2.1", true},
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if same := ratelimit.NetworkOf(netip.MustParseAddr(tt.a)) == ratelimit.NetworkOf(netip.MustParseAddr(tt.b)); same != tt.same {
			t.Errorf("%s and %s: %t", tt.a, tt.b, same)
		}
	}
	if ratelimit.NetworkOf(netip.Addr{}) != (netip.Addr{}) {
		t.Error("no address has a network")
	}
}
