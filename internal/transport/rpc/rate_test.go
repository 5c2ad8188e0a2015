package rpc

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/transport/web"
)

// limited puts limits in front of a lab.
func limited(t *testing.T, l *lab, limits *ratelimit.Limits) {
	t.Helper()
	metrics, err := web.NewMetrics(l.registry)
	if err != nil {
		t.Fatal(err)
	}
	site, err := web.New(web.Config{API: l.handler, Metrics: metrics, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	l.front.Next = site
}

func TestRequestsAboveALimitAreRefusedInEveryProtocol(t *testing.T) {
	fixed := func() time.Time { return time.Unix(1_800_000_000, 0) }
	one, none := ratelimit.Rate{Requests: 1, Per: time.Minute}, ratelimit.Rate{}
	for _, c := range []struct {
		kind          string
		spend, refuse ask // the second is refused after the first
		free          ask // has a limit of its own
		limits        func() *ratelimit.Limits
	}{
		{"caller", getMe.as("owner"), getMe.as("owner"), getMe.as("admin"),
			func() *ratelimit.Limits { return ratelimit.NewLimits(one, none, none, none, fixed) }},
		{"organization", getMe.as("owner"), getMe.as("admin"), getMe.as("neighbour"),
			func() *ratelimit.Limits { return ratelimit.NewLimits(none, one, none, none, fixed) }},
		{"network", getMe.as("owner"), getMe.as("neighbour"), ask{},
			func() *ratelimit.Limits { return ratelimit.NewLimits(none, none, one, none, fixed) }},
		{"public", signIn, signIn, getMe.as("owner"),
			func() *ratelimit.Limits { return ratelimit.NewLimits(none, none, none, one, fixed) }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			l := newLab(t)
			fresh := func() { limited(t, l, c.limits()) }
			l.everywhere(t, c.spend, func(t *testing.T, o outcome) {
				if o.code != 0 || o.header.Get("RateLimit") != `"`+c.kind+`";r=0;t=60` ||
					o.header.Get("RateLimit-Policy") != `"`+c.kind+`";q=1;w=60` || o.header.Get("Retry-After") != "" {
					t.Errorf("within the limit: %+v", o)
				}
			}, fresh)
			l.everywhere(t, c.refuse, func(t *testing.T, o outcome) {
				if o.code != 8 || o.reason != "RATE_LIMITED" || o.retry != time.Minute ||
					o.header.Get("Retry-After") != "60" ||
					o.header.Get("RateLimit") != `"`+c.kind+`";r=0;t=60` || !strings.Contains(o.message, "Wait 60 s") ||
					o.http != 0 && o.http != 429 {
					t.Errorf("above the limit: %+v", o)
				}
				if c.free.verb == "" {
					return
				}
				if o := l.rest(t, l.h1, c.free.verb, c.free.path, c.free.json(t), c.free.header); o.http != 200 {
					t.Errorf("somebody else: %+v", o)
				}
			}, fresh, func() { l.rest(t, l.h1, c.spend.verb, c.spend.path, c.spend.json(t), c.spend.header) })
			counted := gather(t, l.registry)
			for _, kind := range ratelimit.Kinds {
				want := 0.0
				if string(kind) == c.kind {
					want = 6
				}
				if n := counted["signet_rate_limited_total "+string(kind)]; n != want {
					t.Errorf("%v of %s were counted, want %v", n, kind, want)
				}
			}
		})
	}
}

// Nobody spends what belongs to others: who has no valid token counts for nobody, whomever the request names, and costs
// no lookup above a limit.
func TestStrangersSpendNobodysLimit(t *testing.T) {
	one, none := ratelimit.Rate{Requests: 1, Per: time.Minute}, ratelimit.Rate{}
	l := newLab(t)
	limited(t, l, ratelimit.NewLimits(one, one, none, none, time.Now))
	for range 3 {
		for _, token := range []string{"usr_1", "org_own", ""} {
			if o := l.rest(t, l.h1, "GET", "/v1/users/me", "",
				bearerOf(token, "X-Service-Orgid", "org_own")); o.http != 401 {
				t.Errorf("%q: %+v", token, o)
			}
		}
	}
	if o := l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("owner")); o.http != 200 {
		t.Errorf("the owner: %+v", o)
	}
	limited(t, l, ratelimit.NewLimits(none, none, one, none, time.Now))
	l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("usr_1"))
	if o := l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("broken")); o.http != 429 {
		t.Errorf("a token was looked up above the limit of the network: %+v", o)
	}
}
