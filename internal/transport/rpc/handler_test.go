package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/health/grpc_health_v1"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/test/testkit"
)

func isObject(b []byte) bool {
	var m map[string]any
	return json.Unmarshal(b, &m) == nil
}

// half has one method of UserService, and one with the wrong type.
type half struct{ f *fake }

func (h half) GetMyUser(ctx context.Context, req *signetv1.GetMyUserRequest) (*signetv1.GetMyUserResponse, error) {
	return h.f.GetMyUser(ctx, req)
}

func (half) GetUser(context.Context, *signetv1.GetMyUserRequest) (*signetv1.GetUserResponse, error) {
	return nil, nil
}

func TestNewRefuses(t *testing.T) {
	f := &fake{}
	type healthServer struct {
		grpc_health_v1.UnimplementedHealthServer
	}
	for _, tt := range []struct {
		name   string
		config Config
		says   []string
	}{
		{"no way to authenticate", Config{Services: f.services()}, []string{"Authenticate is not set"}},
		{"an unknown service", Config{Authenticate: lookup, Services: []Service{{"signet.v1.Nothing", f}}},
			[]string{"signet.v1.Nothing"}},
		{"a message as a service", Config{Authenticate: lookup, Services: []Service{{"signet.v1.User", f}}},
			[]string{"is not a service"}},
		{"no implementation", Config{Authenticate: lookup, Services: []Service{{"signet.v1.UserService", nil}}},
			[]string{"has no implementation"}},
		{"missing and mistyped methods",
			Config{Authenticate: lookup, Services: []Service{{"signet.v1.UserService", half{f}}}},
			[]string{"SetUserPassword", "has no such method", "GetUser: the method of rpc.half is a func",
				"UpdateMyProfile", "ChangeMyPassword"}},
		{"the same service twice", Config{Authenticate: lookup, Services: append(f.services(), f.services()[0])},
			[]string{"GetUser is implemented twice"}},
		{"a service without rules",
			Config{Authenticate: lookup, Services: []Service{{"grpc.health.v1.Health", &healthServer{}}}},
			[]string{"Check: it has no rule", "Watch: the method of"}},
		{"any origin", Config{Authenticate: lookup, Services: f.services(), CORSOrigins: []string{"*"}},
			[]string{"is not an origin"}},
		{"an origin with a path",
			Config{Authenticate: lookup, Services: f.services(), CORSOrigins: []string{"https://a.example/"}},
			[]string{"is not an origin"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.config)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q is not in: %v", s, err)
				}
			}
		})
	}
}

func TestRulesThatCannotBeEnforced(t *testing.T) {
	withOrg := (&signetv1.GetOrganizationRequest{}).ProtoReflect().Type()
	without := (&signetv1.GetUserRequest{}).ProtoReflect().Type()
	permission := func(p string, s signetv1.Scope) *signetv1.Rule {
		return &signetv1.Rule{Who: &signetv1.Rule_Permission{Permission: p}, Scope: s}
	}
	narrower := func(rule *signetv1.Rule, names ...string) *signetv1.Rule {
		rule.Narrower = names
		return rule
	}
	public := func(is bool, s signetv1.Scope) *signetv1.Rule {
		return &signetv1.Rule{Who: &signetv1.Rule_Public{Public: is}, Scope: s}
	}
	for _, tt := range []struct {
		name string
		op   operation
		ok   bool
	}{
		{"an empty rule", operation{rule: &signetv1.Rule{}, input: without}, false},
		{"no scope", operation{rule: permission("user.read", 0), input: without}, false},
		{"a permission nobody has",
			operation{rule: permission("user.raed", signetv1.Scope_SCOPE_CONTEXT), input: without}, false},
		{"an empty permission", operation{rule: permission("", signetv1.Scope_SCOPE_CONTEXT), input: without}, false},
		{"a permission in no organization",
			operation{rule: permission("user.read", signetv1.Scope_SCOPE_REQUEST), input: withOrg}, false},
		{"a narrower permission",
			operation{rule: narrower(permission("user.read", signetv1.Scope_SCOPE_CONTEXT), "user.support"),
				input: without}, true},
		{"a narrower permission nobody has",
			operation{rule: narrower(permission("user.read", signetv1.Scope_SCOPE_CONTEXT), "user.suport"),
				input: without}, false},
		{"a narrower permission that the method would have to check",
			operation{rule: narrower(permission("user.read", signetv1.Scope_SCOPE_TARGET), "user.support"),
				input: without}, false},
		{"a permission that is narrower than none",
			operation{rule: narrower(public(true, signetv1.Scope_SCOPE_SELF), "user.support"), input: without}, false},
		{"public: false", operation{rule: public(false, signetv1.Scope_SCOPE_SELF), input: without}, false},
		{"public with a context", operation{rule: public(true, signetv1.Scope_SCOPE_CONTEXT), input: without}, false},
		{"a path without an organization",
			operation{rule: permission("org.read", signetv1.Scope_SCOPE_PATH), input: without}, false},
		{"a path with an organization",
			operation{rule: permission("org.read", signetv1.Scope_SCOPE_PATH), input: withOrg}, true},
		{"public about the request", operation{rule: public(true, signetv1.Scope_SCOPE_REQUEST), input: withOrg}, true},
		{"public with idempotency",
			operation{rule: &signetv1.Rule{Who: &signetv1.Rule_Public{Public: true}, Scope: signetv1.Scope_SCOPE_SELF,
				Creates: true}, input: without}, false},
	} {
		if err := tt.op.checkRule(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestPathsThatCannotBeBound(t *testing.T) {
	op := &operation{input: (&signetv1.GetUserRequest{}).ProtoReflect().Type()}
	for _, rule := range []*annotations.HttpRule{
		{},
		{Pattern: &annotations.HttpRule_Get{Get: "/v1/{nothing}"}},
		{Pattern: &annotations.HttpRule_Get{Get: "/v1/{user_id=*}"}},
		{Pattern: &annotations.HttpRule_Get{Get: "/v1/{user_id"}},
		{Pattern: &annotations.HttpRule_Get{Get: "/v1"}, Body: "*"},
		{Pattern: &annotations.HttpRule_Put{Put: "/v1"}},
		{Pattern: &annotations.HttpRule_Put{Put: "/v1"}, Body: "user_id"},
		{Pattern: &annotations.HttpRule_Get{Get: "/v1"}, ResponseBody: "user"},
	} {
		if _, err := newBinding(op, rule); err == nil {
			t.Errorf("%v was accepted", rule)
		}
	}
	root := &node{}
	for _, template := range []string{"v1", "/v1/", "/v1//a", "/v1/**", "/v1/a:verb", "/v1/%61"} {
		if err := root.add("GET", template, nil); err == nil {
			t.Errorf("%s was accepted", template)
		}
	}
	none := func(*Call, []string) {}
	if err := errors.Join(root.add("GET", "/a/{b}", none), root.add("PUT", "/a/{b}", none)); err != nil {
		t.Error(err)
	}
	if err := root.add("GET", "/a/{c}", none); err == nil {
		t.Error("two operations have the same path")
	}
}

func TestCORS(t *testing.T) {
	const ours, theirs = "https://console.example.com", "https://evil.example"
	l := newLab(t, func(c *Config) { c.CORSOrigins = []string{ours, "http://localhost:5173"} })
	ask := func(verb, path, origin string, more ...string) outcome {
		h := bearerOf("owner", more...)
		if origin != "" {
			h.Set("Origin", origin)
		}
		return l.rest(t, l.h1, verb, path, "", h)
	}
	t.Run("a preflight", func(t *testing.T) {
		for path, methods := range map[string]string{"/v1/idps/idp_9": "DELETE, GET, HEAD, OPTIONS, PATCH, PUT",
			"/signet.v1.UserService/GetUser": "OPTIONS, POST"} {
			o := ask("OPTIONS", path, ours, "access-control-request-method", "PUT", "access-control-request-headers",
				"authorization")
			h := o.header
			if o.http != 204 || h.Get("Access-Control-Allow-Origin") != ours ||
				h.Get("Access-Control-Allow-Methods") != methods ||
				!strings.Contains(h.Get("Access-Control-Allow-Headers"), "x-service-orgid") ||
				h.Get("Access-Control-Max-Age") == "" || h.Get("Vary") != "Origin" {
				t.Errorf("got %d %v", o.http, h)
			}
		}
	})
	t.Run("an answer", func(t *testing.T) {
		for _, path := range []string{"/v1/users/me", "/v1/users/usr_9?x=1", "/nowhere"} {
			h := ask("GET", path, ours).header
			if h.Get("Access-Control-Allow-Origin") != ours ||
				!strings.Contains(h.Get("Access-Control-Expose-Headers"), "grpc-status-details-bin") ||
				h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Vary") != "Origin" {
				t.Errorf("%s: got %v", path, h)
			}
		}
	})
	t.Run("other origins get nothing", func(t *testing.T) {
		for _, origin := range []string{"", theirs, "null", ours + ".evil.example", "HTTPS://console.example.com",
			"http://console.example.com"} {
			for _, verb := range []string{"GET", "OPTIONS"} {
				for k := range ask(verb, "/v1/users/me", origin, "access-control-request-method", "GET").header {
					if strings.HasPrefix(k, "Access-Control") {
						t.Errorf("%s %q: got %s", verb, origin, k)
					}
				}
			}
		}
	})
	t.Run("a preflight allows no header that the call would be refused for", func(t *testing.T) {
		o := ask("OPTIONS", "/v1/users/me", ours, "access-control-request-method", "GET",
			"access-control-request-headers", "authorization,x-service-org-id")
		allowed := http.Header{}
		for name := range strings.SplitSeq(o.header.Get("Access-Control-Allow-Headers"), ", ") {
			allowed.Set(name, "")
		}
		if _, known := allowed[keyOrg]; !known || len(unknownHeaders(allowed)) > 0 {
			t.Errorf("it allows %v", allowed)
		}
	})
	t.Run("a preflight for an unknown path", func(t *testing.T) {
		if o := ask("OPTIONS", "/v1/nowhere", ours, "access-control-request-method", "GET"); o.http != 404 {
			t.Errorf("got %d", o.http)
		}
	})
	t.Run("a preflight for an unknown method, so that the page learns that it is unknown", func(t *testing.T) {
		for _, path := range []string{"/signet.v1.UserService/Nope", "/signet.v1.NoService/Nope"} {
			o := ask("OPTIONS", path, ours, "access-control-request-method", "POST", "access-control-request-headers",
				"authorization,content-type,x-grpc-web")
			if o.http != 204 || o.header.Get("Access-Control-Allow-Origin") != ours ||
				!strings.Contains(o.header.Get("Access-Control-Allow-Methods"), "POST") ||
				!strings.Contains(o.header.Get("Access-Control-Allow-Headers"), "x-grpc-web") {
				t.Errorf("%s: got %d %v", path, o.http, o.header)
			}
			if o := ask("OPTIONS", path, theirs, "access-control-request-method",
				"POST"); o.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: got %v", path, o.header)
			}
		}
		o := l.frame(t, l.h1, "application/grpc-web+proto", "UserService/Nope", frameOf(0, nil),
			bearerOf("owner", "origin", ours))
		if o.code != 12 || o.header.Get("Access-Control-Allow-Origin") != ours {
			t.Errorf("got %+v", o)
		}
		for _, path := range []string{"/signet.v1.UserService/", "/signet.v1.UserService/a/b", "/x/y"} {
			if o := ask("OPTIONS", path, ours, "access-control-request-method", "POST"); o.http != 404 {
				t.Errorf("%s: got %d", path, o.http)
			}
		}
	})
	t.Run("a gRPC-Web call", func(t *testing.T) {
		o := l.frame(t, l.h1, "application/grpc-web+proto", "UserService/GetMyUser", frameOf(0, nil),
			bearerOf("owner", "origin", ours))
		if o.code != 0 || o.header.Get("Access-Control-Allow-Origin") != ours {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("without origins there is no word of it", func(t *testing.T) {
		if h := newLab(t).rest(t, l.h1, "GET", "/healthz", "",
			http.Header{"Origin": {ours}}).header; h.Get("Vary") != "" {
			t.Errorf("got %v", h)
		}
	})
}

// TestLog holds that there is one line per request, and that nothing sent by the caller is in it.
func TestLog(t *testing.T) {
	now := time.Unix(1700000000, 0)
	l := newLabAt(t, func() time.Time { now = now.Add(3 * time.Millisecond); return now })
	for _, tt := range []struct {
		name, want string
		send       func(h http.Header) outcome
	}{
		{"a success", `level=INFO msg=request requestId=%ID operation=signet.v1.UserService/SetUserPassword protocol=rest code=OK duration=3ms peer=127.0.0.1 user=usr_1`,
			func(h http.Header) outcome {
				return l.rest(t, l.h1, "POST", "/v1/users/hidden1/password", `{"password":"hidden2"}`, h)
			}},
		{"a refusal", `level=INFO msg=request requestId=%ID operation=signet.v1.UserService/GetUser protocol=rest code=INVALID_ARGUMENT duration=3ms peer=127.0.0.1 user=usr_1 reason=INVALID_REQUEST`,
			func(h http.Header) outcome { return l.rest(t, l.h1, "GET", "/v1/users/x?hidden3=hidden4", "", h) }},
		{"an unknown path", `level=INFO msg=request requestId=%ID operation=- protocol=http code=NOT_FOUND duration=3ms peer=127.0.0.1 reason=UNKNOWN_PATH`,
			func(h http.Header) outcome { return l.rest(t, l.h1, "GET", "/hidden5%0alevel=ERROR", "", h) }},
		{"gRPC-Web", `level=INFO msg=request requestId=%ID operation=signet.v1.UserService/GetMyUser protocol=grpc-web code=OK duration=3ms peer=127.0.0.1 user=usr_1`,
			func(h http.Header) outcome {
				return l.frame(t, l.h1, "application/grpc-web", "UserService/GetMyUser", frameOf(0, nil), h)
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.logged.Reset()
			o := tt.send(bearerOf("owner", "user-agent", "hidden6", "x-hidden", "hidden7"))
			log := l.logs()
			want := strings.Replace(tt.want, "%ID", o.header.Get("X-Request-Id"), 1)
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, want) || strings.Contains(log, "hidden") ||
				strings.Contains(log, "owner") {
				t.Errorf("the log says  %swanted %s", log, want)
			}
		})
	}
	t.Run("an overload is a warning with its cause", func(t *testing.T) {
		l.logged.Reset()
		l.fake.err = (&errs.Error{Kind: errs.Unavailable, Reason: "STORAGE_UNAVAILABLE",
			Message: "later"}).Because(errors.New("no\nroute"))
		o := l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("owner"))
		if log := l.logs(); o.http != 503 || !strings.Contains(log, "level=WARN") ||
			!strings.Contains(log, `cause="no\nroute"`) || strings.Count(log, "\n") != 1 {
			t.Errorf("the log says %s", log)
		}
	})
}

func TestReadiness(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.Ready = func(context.Context) error { return errors.New("dial tcp 10.0.0.5") }
	})
	o := l.rest(t, l.h1, "GET", "/readyz", "", nil)
	if o.http != 503 || o.code != 14 || o.reason != "NOT_READY" || strings.Contains(string(o.body), "10.0.0.5") {
		t.Errorf("got %+v", o)
	}
	if log := l.logs(); !strings.Contains(log, "10.0.0.5") || !strings.Contains(log, "level=WARN") {
		t.Errorf("the log says %s", log)
	}
	l.logged.Reset()
	if o := l.rest(t, l.h1, "GET", "/readyz", "", nil); o.http != 503 || l.logs() != "" {
		t.Errorf("each time that somebody asks is logged: %s", l.logs())
	}
	if o := l.rest(t, l.h1, "GET", "/healthz", "", nil); o.http != 200 {
		t.Errorf("got %+v", o)
	}
}

// Whoever asks whether the server is ready gets an answer soon, with a reason that tells nothing that is not for
// everybody.
func TestReadinessIsSoonAndInWords(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.Ready = func(ctx context.Context) error {
			began := time.Now()
			<-ctx.Done()
			if end, limited := ctx.Deadline(); !limited || end.Sub(began) > 2*time.Second {
				t.Errorf("it may take until %v", end)
			}
			return (&errs.Error{Kind: errs.Unavailable, Reason: "STORAGE_UNAVAILABLE",
				Message: "the disk is full"}).Because(errors.New("dial tcp 10.0.0.5"))
		}
	})
	o := l.rest(t, l.h1, "GET", "/readyz", "", nil)
	if o.http != 503 || o.reason != "NOT_READY" ||
		!strings.Contains(string(o.body), "at the moment: the disk is full") ||
		strings.Contains(string(o.body), "10.0.0.5") {
		t.Errorf("got %+v, %s", o, o.body)
	}
}

func TestMetrics(t *testing.T) {
	l := newLab(t)
	registry := l.registry
	l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("owner"))
	l.rest(t, l.h1, "GET", "/v1/users/anything", "", nil)
	l.rest(t, l.h1, "GET", "/v1/some/thing", "", nil)
	l.rest(t, l.h1, "GET", "/healthz", "", nil)
	l.frame(t, l.h2, "application/grpc", "UserService/GetMyUser", frameOf(0, nil), bearerOf("owner"))
	l.frame(t, l.h2, "application/grpc", "Some/Thing", frameOf(0, nil), nil)
	got := gather(t, registry)
	for _, want := range []string{
		"signet_requests_total OK signet.v1.UserService/GetMyUser rest ",
		"signet_requests_total UNAUTHENTICATED signet.v1.UserService/GetUser rest UNAUTHENTICATED",
		"signet_requests_total NOT_FOUND unknown http UNKNOWN_PATH",
		"signet_requests_total OK signet.v1.UserService/GetMyUser grpc ",
		"signet_requests_total UNIMPLEMENTED unknown grpc UNKNOWN_METHOD",
		"signet_request_duration_seconds signet.v1.UserService/GetMyUser rest",
	} {
		if got[want] == 0 {
			t.Errorf("%q is not among %v", want, got)
		}
	}
	if len(got) != 10+len(ratelimit.Kinds) {
		t.Errorf("there are %d series: %v", len(got), got)
	}
}

// gather reads all series: name and values of the labels, and what they have come to.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series := family.GetName()
			for _, label := range m.GetLabel() {
				series += " " + label.GetValue()
			}
			got[series] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// A stream counts while it is open, for it is a request only when it ends. Signs of life are no events, and who is
// refused has no stream.
func TestStreamsAreMeasured(t *testing.T) {
	r := &radio{}
	l := newLab(t, func(c *Config) {
		c.Services = append(c.Services, Service{signetv1connect.EventServiceName, r})
	})
	registry := l.registry
	t.Cleanup(l.handler.EndStreams)
	r.play = func(ctx context.Context, req *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error {
		if err := errors.Join(send(message(1)), send(&signetv1.StreamEventsResponse{Cursor: "quiet"}),
			send(message(2))); err != nil {
			return err
		}
		return forever(ctx, req, send)
	}
	want := map[string]float64{}
	for name, protocol := range map[string]string{"server-sent events over HTTP/1.1": "rest", "gRPC": "grpc",
		"gRPC-Web over HTTP/2": "grpc-web"} {
		expectEnd(t, doors[name](t, l, &signetv1.StreamEventsRequest{}, bearerOf("nobody")), "PERMISSION_DENIED")
		in := doors[name](t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner"))
		expect(t, in, message(1), &signetv1.StreamEventsResponse{Cursor: "quiet"}, message(2), message(1))
		labels := " signet.v1.EventService/StreamEvents " + protocol
		want["signet_streams_open"+labels], want["signet_stream_events_total"+labels] = 1, 3
	}
	holds := func() bool {
		got := gather(t, registry)
		for series := range got {
			if !strings.HasPrefix(series, "signet_stream") {
				delete(got, series)
			}
		}
		return maps.Equal(got, want)
	}
	testkit.Await(t, "the streams are counted", holds)
	l.handler.EndStreams()
	for series := range want {
		if strings.HasPrefix(series, "signet_streams_open") {
			want[series] = 0
		}
	}
	testkit.Await(t, "no stream is counted as open", holds)
}

// TestDoorPanics covers a mistake outside the chain, such as a writer that fails in an unforeseen way.
func TestDoorPanics(t *testing.T) {
	l := newLab(t)
	l.handler.root.fixed["healthz"].ends["GET"] = func(*Call, []string) { panic("hush") }
	o := l.rest(t, l.h1, "GET", "/healthz", "", nil)
	if o.http != 500 || o.reason != "INTERNAL" || strings.Contains(o.message, "hush") ||
		strings.Contains(l.logs(), "hush") || !strings.Contains(l.logs(), "panic: a string") ||
		!strings.Contains(l.logs(), "handler_test.go") {
		t.Errorf("got %+v", o)
	}
}
