package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
)

// lab is a site with a handler at /here that does what a test says, and what it logs.
type lab struct {
	*Site
	log bytes.Buffer
}

// teapot stands for the API.
type teapot struct{}

func (teapot) Serve(x *Exchange)             { x.WriteHeader(http.StatusTeapot) }
func (teapot) Refuse(x *Exchange, err error) { x.Failure = err }

func newLab(t *testing.T, registry prometheus.Registerer, here http.HandlerFunc) *lab {
	t.Helper()
	l := &lab{}
	now := time.Unix(0, 0)
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	l.Site, err = New(Config{
		API: teapot{},
		Log: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == "time" || a.Key == "stack" {
					return slog.Attr{}
				}
				return a
			},
		})),
		Metrics: metrics, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Now: func() time.Time { now = now.Add(time.Millisecond); return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Handle("/here", here)
	l.Handle("/assets/", here)
	return l
}

func (l *lab) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "192.0.2.7")
	r.Header.Set("X-Request-Id", "req-1")
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w
}

func TestWhatNobodyHandlesIsLeftToTheAPI(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for path, want := range map[string]int{
		"/here": 200, "/here?x=1": 200, "/assets/a.css": 200, "/assets/": 200,
		"/": 418, "/nobody": 418, "/here/": 418, "//here": 418, "/HERE": 418, "/%68ere": 418, "/here/x": 418,
		"/assets": 418, "/assets/a/b": 418, "/assets/../here": 418,
	} {
		if got := l.get(path).Code; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	l.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for path, want := range map[string]int{"/": 200, "/?x=1": 200, "/here": 200, "/nobody": 418,
		"/here/": 418, "//": 418} {
		if got := l.get(path).Code; got != want {
			t.Errorf("where / is handled, %s: %d", path, got)
		}
	}
}

func TestATreeHasEverythingBelowIt(t *testing.T) {
	l := newLab(t, prometheus.NewRegistry(),
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	l.HandleTree("/tree/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))
	l.Handle("/tree/own", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	for path, want := range map[string]int{
		"/tree/":      202,
		"/tree/a":     202,
		"/tree/a/b/c": 202,
		"/tree/own":   200,
		"/tree/own/x": 202,
		"/tree/a%2fb": 202,
		"/tree":       418,
		"/trees/":     418,
		"/x/tree/":    418,
		"//tree/":     418,
		"/%74ree/":    418,
		"/Tree/":      418,
	} {
		if got := l.get(path); got.Code != want {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	if got := strings.Join(l.Paths(), " "); got != "/assets/ /here /tree/ /tree/own" {
		t.Errorf("the paths are %s", got)
	}
}

func TestEveryRequestGetsOneLineThatRepeatsNothingSent(t *testing.T) {
	for _, tt := range []struct {
		name string
		here http.HandlerFunc
		want string
		code int
	}{
		{"a success", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "fine") },
			"level=INFO msg=request requestId=req-1 operation=/here protocol=web code=200 duration=1ms peer=192.0.2.7", 200},
		{"a refusal", func(w http.ResponseWriter, r *http.Request) {
			Failed(r.Context(), errs.New(errs.NotFound, "THING_NOT_FOUND", "hush").Because(errors.New("hush")))
			w.WriteHeader(http.StatusNotFound)
		}, "level=INFO msg=request requestId=req-1 operation=/here protocol=web code=404 duration=1ms peer=192.0.2.7 reason=THING_NOT_FOUND", 404},
		{"a request that was cancelled", func(w http.ResponseWriter, r *http.Request) {
			Failed(r.Context(), errs.New(errs.Cancelled, "CANCELLED", "hush").Because(errors.New("hung up")))
			w.WriteHeader(499)
		}, "level=INFO msg=request requestId=req-1 operation=/here protocol=web code=499 duration=1ms peer=192.0.2.7 reason=CANCELLED cause=\"hung up\"", 499},
		{"a request whose caller has gone", func(w http.ResponseWriter, r *http.Request) {
			gone := fmt.Errorf("waiting: %w", context.Canceled)
			Failed(r.Context(), gone)
			w.WriteHeader(AnswerTo(gone).Page.Status)
		}, "level=INFO msg=request requestId=req-1 operation=/here protocol=web code=499 duration=1ms peer=192.0.2.7 reason=CANCELLED cause=\"waiting: context canceled\"", 499},
		{"a failure", func(w http.ResponseWriter, r *http.Request) {
			Failed(r.Context(), errors.New("disk"))
			w.WriteHeader(http.StatusInternalServerError)
		}, "level=ERROR msg=request requestId=req-1 operation=/here protocol=web code=500 duration=1ms peer=192.0.2.7 cause=disk", 500},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic("oops") },
			"level=ERROR msg=request requestId=req-1 operation=/here protocol=web code=500 duration=1ms peer=192.0.2.7 cause=\"panic: a string\"", 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, nil, tt.here)
			got := l.get("/here?token=hush")
			if log := strings.TrimSpace(l.log.String()); log != tt.want {
				t.Errorf("logged %s", log)
			}
			if got.Code != tt.code || got.Header().Get("X-Request-Id") != "req-1" ||
				strings.Contains(got.Body.String(), "oops") {
				t.Errorf("answered %d %v %s", got.Code, got.Header(), got.Body)
			}
		})
	}
}

func TestARefusalSaysWhenToComeAgain(t *testing.T) {
	for want, err := range map[string]error{
		"2": &errs.Error{Kind: errs.ResourceExhausted, Reason: "WAIT", RetryAfter: 1200 * time.Millisecond},
		"":  errs.New(errs.NotFound, "THING_NOT_FOUND", "hush"),
	} {
		got := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
			Failed(r.Context(), err)
			w.WriteHeader(http.StatusTooManyRequests)
		}).get("/here")
		if after := got.Header().Get("Retry-After"); after != want {
			t.Errorf("%v: after %q", err, after)
		}
	}
}

func TestTheHandlerKnowsTheRequestAndHasLimits(t *testing.T) {
	handled := 0
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		handled++
		info := call.From(r.Context())
		if info.RequestID != "req-1" || info.Peer.String() != "192.0.2.7" || info.Procedure != "/here" {
			t.Errorf("got %+v", info)
		}
		if _, limited := r.Context().Deadline(); !limited {
			t.Error("it may take for ever")
		}
	})
	l.get("/here")

	l = newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		handled++
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("a body without an end was read")
		}
	})
	l.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodPost, "/here", strings.NewReader(strings.Repeat("x", maxBody+1))))
	if handled != 2 {
		t.Errorf("%d of two requests were handled", handled)
	}
}

func TestRequestsAreCountedTogetherWithThoseOfTheAPI(t *testing.T) {
	registry := prometheus.NewRegistry()
	api, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	api.Count("signet.v1.UserService/GetUser", "rest", "OK", "", time.Millisecond)
	newLab(t, registry, func(http.ResponseWriter, *http.Request) {}).get("/here")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, f := range families {
		if f.GetName() != "signet_rate_limited_total" { // which are there from the beginning
			series += len(f.GetMetric())
		}
	}
	if series != 4 {
		t.Errorf("there are %d series: %v", series, families)
	}
}

func TestABrowserKeepsItsSecret(t *testing.T) {
	w := httptest.NewRecorder()
	fresh := Browser(w, httptest.NewRequest(http.MethodGet, "/", nil))
	cookie := w.Result().Cookies()[0]
	if cookie.Value != fresh || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode ||
		cookie.Path != "/" || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("got %v", cookie)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(cookie)
	again := httptest.NewRecorder()
	if Browser(again, r) != fresh || len(again.Result().Cookies()) != 0 || KnownBrowser(r) != fresh {
		t.Error("it was given another one")
	}
	if KnownBrowser(httptest.NewRequest(http.MethodGet, "/", nil)) != "" {
		t.Error("an unknown browser is known")
	}
}

func TestABodyIsRefusedByItsLengthAlone(t *testing.T) {
	body, handled := &endless{}, false
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		handled = true
		_, err := io.ReadAll(r.Body)
		if tooLarge, is := errors.AsType[*http.MaxBytesError](err); !is || tooLarge.Limit != maxBody {
			t.Errorf("got %v", err)
		}
	})
	r := httptest.NewRequest(http.MethodPost, "/here", body)
	r.ContentLength = maxBody + 1
	l.ServeHTTP(httptest.NewRecorder(), r)
	if !handled || body.read > 0 {
		t.Errorf("handled: %t, %d bytes were read", handled, body.read)
	}
}
