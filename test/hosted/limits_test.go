package hosted

import (
	"net/http"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testkit"
)

func TestPeopleAreToldInWordsThatTheyComeTooOften(t *testing.T) {
	clock := testkit.NewClock(time.Now()) // nothing is given back meanwhile
	w := open(t, server.Config{LimitPublic: "6/h", TrustedProxies: []string{"127.0.0.1"}, Clock: clock.Now})
	b := w.browser()
	from := func(path, address string) *page {
		return b.send(http.MethodGet, path, nil, "X-Forwarded-For", address)
	}
	for range 6 {
		from("/login", "192.0.2.1").shows(200)
	}
	for _, path := range []string{"/login", "/oauth/authorize", "/account", "/forgot", "/register"} {
		p := from(path, "192.0.2.1").shows(http.StatusTooManyRequests, "Too many attempts", "Wait a moment")
		if p.header.Get("Retry-After") == "" || p.header.Get("RateLimit") != `"public";r=0;t=600` {
			t.Errorf("%s: %v", path, p.header)
		}
	}
	if got := b.ask("/console/token", `{}`, "X-Forwarded-For", "192.0.2.1"); got.status != 429 ||
		got.json["reason"] != "RATE_LIMITED" || got.json["message"] == nil {
		t.Errorf("the console is told %d %s", got.status, got.body)
	}
	from("/console/", "192.0.2.1").shows(200) // a file, which says so in its own words
	from("/login", "192.0.2.2").shows(200)
	from("/login", "192.0.2.1, 198.51.100.1").shows(200) // what a client writes itself is not believed
}
