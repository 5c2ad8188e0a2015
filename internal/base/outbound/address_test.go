package outbound

import (
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfThePublicInternetArePublic(t *testing.T) {
	for name, c := range map[string]struct {
		addrs []string
		want  bool
	}{
		"public ones": {[]string{"1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111",
			"2a00:1450:4001::1", "2001:4860:4860::8888"}, true},
		"just beside special ones": {[]string{"9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
			"126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "198.17.255.255", "198.20.0.0",
			"223.255.255.255", "2001:200::", "2001:db9::", "2003::"}, true},
		"unspecified":             {[]string{"0.0.0.0", "::", "0.1.2.3"}, false},
		"loopback":                {[]string{"127.0.0.1", "127.255.255.254", "::1"}, false},
		"private":                 {[]string{"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"}, false},
		"link-local":              {[]string{"169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"}, false},
		"site-local, as once was": {[]string{"fec0::1"}, false},
		"unique-local":            {[]string{"fc00::1", "fd00:ec2::254"}, false},
		"multicast":               {[]string{"224.0.0.1", "239.255.255.250", "ff02::1"}, false},
		"broadcast and reserved":  {[]string{"255.255.255.255", "240.0.0.1"}, false},
		"shared by a carrier":     {[]string{"100.64.0.1", "100.127.255.255"}, false},
		"benchmarks":              {[]string{"198.18.0.1", "198.19.255.255", "2001:2::1"}, false},
		"documentation": {[]string{"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1",
			"3fff::1"}, false},
		"protocol assignments":      {[]string{"192.0.0.8", "192.88.99.1"}, false},
		"answers for private ones":  {[]string{"192.31.196.1", "192.175.48.1", "2620:4f:8000::1"}, false},
		"multicast tunnels":         {[]string{"192.52.193.1"}, false},
		"6to4, whatever is inside":  {[]string{"2002:7f00:1::", "2002:808:808::"}, false},
		"NAT64, whatever is inside": {[]string{"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"}, false},
		"Teredo":                    {[]string{"2001:0:4136:e378:8000:63bf:3fff:fdd2"}, false},
		"IPv4-mapped private ones": {[]string{"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
			"::ffff:7f00:1"}, false},
		"IPv4-mapped public ones":  {[]string{"::ffff:8.8.8.8"}, true},
		"IPv4-compatible":          {[]string{"::127.0.0.1", "::8.8.8.8"}, false},
		"IPv4-translated":          {[]string{"::ffff:0:127.0.0.1"}, false},
		"not given out yet":        {[]string{"4000::1", "8000::1"}, false},
		"a public one with a zone": {[]string{"2606:4700::1111%eth0"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range c.addrs {
				if got := public(netip.MustParseAddr(text)); got != c.want {
					t.Errorf("%s: %t", text, got)
				}
			}
		})
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestAZoneHidesNoAddressFromItsNetwork(t *testing.T) {
	if !within(prefixes("fe80::/10"), netip.MustParseAddr("fe80::1%eth0")) {
		t.Error("the network does not contain it")
	}
}

// The standard library has words for many kinds of addresses. None that it has a word for may pass, in no form.
func FuzzPublic(f *testing.F) {
	for _, text := range []string{"8.8.8.8", "127.0.0.1", "::1", "fe80::1", "::ffff:10.0.0.1", "2002:7f00:1::",
		"64:ff9b::a00:1", "ff02::1", "2606:4700::1111"} {
		f.Add(netip.MustParseAddr(text).AsSlice())
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		got := public(addr)
		mapped := addr
		if addr.Is4() {
			mapped = netip.AddrFrom16(addr.As16())
		}
		if public(mapped) != got || public(addr.Unmap()) != got {
			t.Errorf("%s and its other form are judged differently", addr)
		}
		if addr.Is6() && public(addr.WithZone("eth0")) != got {
			t.Errorf("a zone changes what %s is", addr)
		}
		a := addr.Unmap()
		if got && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() ||
			!a.IsGlobalUnicast()) {
			t.Errorf("%s is public", addr)
		}
		if got && within(special, a) {
			t.Errorf("%s is special and public", addr)
		}
	})
}
