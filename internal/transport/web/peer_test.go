package web

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestPeer(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"a direct client", "192.0.2.1:1234", nil, "192.0.2.1"},
		{"a direct client that pretends", "192.0.2.1:1234", []string{"203.0.113.9"}, "192.0.2.1"},
		{"behind a proxy", "10.0.0.1:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		{"behind a proxy, pretending", "10.0.0.1:1234", []string{"198.51.100.7, 203.0.113.9"}, "203.0.113.9"},
		{"behind two proxies", "10.0.0.1:1234", []string{"198.51.100.7, 203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		{"a client inside", "10.0.0.1:1234", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"nonsense", "10.0.0.1:1234", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"nonsense beyond the client", "10.0.0.1:1234", []string{"unknown, 203.0.113.9"}, "203.0.113.9"},
		{"nothing forwarded", "10.0.0.1:1234", nil, "10.0.0.1"},
		{"IPv6 with a port", "[fd00::1]:1234", []string{"[2001:db8::7]:99"}, "2001:db8::7"},
		{"a mapped address", "[::ffff:10.0.0.1]:1234", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no address at all", "@", nil, "invalid IP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = tt.remote
			r.Header["X-Forwarded-For"] = tt.forwarded
			if got := Peer(r, trusted).String(); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
