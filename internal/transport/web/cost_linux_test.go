//go:build cost

package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

func TestNoHeaderCostsMuch(t *testing.T) {
	const headers = 64 << 10
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	hops := costtest.Alphabet{Name: "hops", Text: func(size int) string { return strings.Repeat("10.0.0.1,", size/9) }}
	for _, a := range append([]costtest.Alphabet{hops}, costtest.Alphabets...) {
		costtest.Grows(t, a.Name, headers, costtest.Most, func(size int) func() {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = "10.0.0.1:1234"
			for _, name := range []string{"X-Forwarded-For", RequestIDHeader, "User-Agent", "Cookie"} {
				r.Header[name] = []string{a.Text(size)}
			}
			return func() {
				Peer(r, trusted)
				RequestID(r.Header)
				UserAgent(r.Header)
				KnownBrowser(r)
			}
		})
	}
}
