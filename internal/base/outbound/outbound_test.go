package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

// names is a resolver whose answers a test writes down: for each host those of its first look-up, its second and so on.
// The last one is repeated.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   map[string]int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.answers[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if n.asked == nil {
		n.asked = map[string]int{}
	}
	for _, text := range answers[min(n.asked[host], len(answers)-1)] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	n.asked[host]++
	return addrs, nil
}

// side is another server, on an address that the client is allowed to reach. Its certificate is good for example.com.
type side struct {
	*httptest.Server
	names *names
}

// here is where the servers of the tests listen; inside is next to it and not allowed.
const (
	here   = "127.0.0.1"
	inside = "127.0.0.2"
)

func newSide(t *testing.T, handler http.HandlerFunc) *side {
	t.Helper()
	s := &side{Server: httptest.NewTLSServer(handler),
		names: &names{answers: map[string][][]string{"example.com": {{here}}, "inside.example.com": {{inside}}}}}
	t.Cleanup(s.Close)
	return s
}

// client trusts the server and may reach it.
func (s *side) client(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := Config{Allow: prefixes(here + "/32"), Resolver: s.names, Roots: roots}
	if change != nil {
		change(&c)
	}
	client := New(c)
	t.Cleanup(client.Close)
	return client
}

// at is an address of the server by one of its names.
func (s *side) at(host, path string) string {
	u, _ := url.Parse(s.URL)
	return "https://" + net.JoinHostPort(host, u.Port()) + path
}

func TestWhatIsAllowedIsFetched(t *testing.T) {
	s := newSide(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Method+" "+r.UserAgent()+" "+r.Header.Get("Accept-Encoding")+r.Header.Get("Cookie"))
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.WriteHeader(http.StatusTeapot)
		io.Copy(w, r.Body)
	})
	c := s.client(t, nil)
	for range 2 { // the second time a cookie would come back
		got, err := c.Get(t.Context(), s.at("example.com", "/"), 100)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != http.StatusTeapot || got.Header.Get("X-Seen") != "GET signet identity" {
			t.Errorf("got %d, %q", got.Status, got.Header.Get("X-Seen"))
		}
	}
	got, err := c.Post(t.Context(), s.at(here, "/"), "text/plain", []byte("hello"), 100)
	if err != nil || string(got.Body) != "hello" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	reached := false
	s := newSide(t, func(http.ResponseWriter, *http.Request) { reached = true })
	s.names.answers["mixed.example.com"] = [][]string{{here, inside}}
	s.names.answers["mapped.example.com"] = [][]string{{"::ffff:" + inside}}
	s.names.answers["metadata.example.com"] = [][]string{{"169.254.169.254"}}
	c := s.client(t, nil)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for name, address := range map[string]string{
		"an address inside":                    s.at(inside, "/"),
		"one in its mapped form":               s.at("::ffff:"+inside, "/"),
		"a name that leads inside":             s.at("inside.example.com", "/"),
		"a name that leads inside, mapped":     s.at("mapped.example.com", "/"),
		"a name that leads inside and outside": s.at("mixed.example.com", "/"),
		"where clouds keep their metadata":     "https://metadata.example.com/latest",
		"plain http to the outside":            "http://8.8.8.8/",
		"plain http inside":                    "http://" + net.JoinHostPort(inside, port),
		"a file":                               "file:///etc/passwd",
		"another scheme":                       "gopher://example.com/",
		"a scheme in capitals":                 "FILE://example.com/",
		"no scheme":                            "example.com/",
		"no host":                              "https:///path",
		"only a port":                          "https://:443/",
		"something opaque":                     "https:example.com",
		"a user":                               "https://me@example.com:" + port,
		"nothing":                              "",
		"no URL":                               "https://exa mple.com/\x7f",
		"a user with a password":               "https://me:secret@example.com:" + port,
		"one in what is no URL":                "https://me:secret@exa mple.com/",
		"too long":                             s.at("example.com", "/"+strings.Repeat("a", maxURL)),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Get(t.Context(), address, 100); !errors.Is(err, ErrRefused) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("GET: %v", err)
			}
			if _, err := c.Post(t.Context(), address, "text/plain", nil, 100); !errors.Is(err, ErrRefused) {
				t.Errorf("POST: %v", err)
			}
		})
	}
	if reached {
		t.Error("the server was reached")
	}
	zero := New(Config{})
	if _, err := zero.Get(t.Context(), s.URL, 100); !errors.Is(err, ErrRefused) {
		t.Errorf("without a list everything inside is refused: %v", err)
	}
}

func TestPlainHTTPReachesAllowedNetworks(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer s.Close()
	c := New(Config{Allow: prefixes(here + "/32")})
	defer c.Close()
	if got, err := c.Get(t.Context(), s.URL, 100); err != nil || string(got.Body) != "hello" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAnAnswerOfDNSThatChangesGainsNothing(t *testing.T) {
	s := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	s.names.answers["example.com"] = [][]string{{here}, {inside}}
	c := s.client(t, nil)
	if _, err := c.Get(t.Context(), s.at("example.com", "/"), 100); err != nil {
		t.Fatal(err)
	}
	if asked := s.names.asked["example.com"]; asked != 1 {
		t.Errorf("the name was resolved %d times for one connection: the second answer is not the one that was judged", asked)
	}
	if _, err := c.Get(t.Context(), s.at("example.com", "/"), 100); !errors.Is(err, ErrRefused) {
		t.Errorf("after it changed: %v", err)
	}
}

func TestTheSocketItselfIsJudged(t *testing.T) {
	l, err := net.Listen("tcp", here+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	refuse := dialer{may: func(netip.Addr) bool { return false }}
	for _, address := range []string{l.Addr().String(), net.JoinHostPort("::ffff:"+here, port), "localhost:" + port} {
		if conn, err := refuse.connect(t.Context(), "tcp", address); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v", address, conn, err)
		}
	}
}

// TestHeadersAreForNobodyElse: what a credential is sent to is not left by a redirect.
func TestHeadersAreForNobodyElse(t *testing.T) {
	s := newSide(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/start" || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("it was asked for %s", r.URL.Path)
		}
		http.Redirect(w, r, "/end", http.StatusFound)
	})
	got, err := s.client(t, nil).GetWith(t.Context(), s.at("example.com", "/start"),
		map[string]string{"Authorization": "Bearer x"}, 100)
	if err != nil || got.Status != http.StatusFound {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRedirects(t *testing.T) {
	for name, c := range map[string]struct {
		to   func(s *side) string
		want error
	}{
		"to another path":      {func(*side) string { return "/end" }, nil},
		"three of them":        {func(*side) string { return "/3" }, nil},
		"four of them":         {func(*side) string { return "/4" }, ErrFailed},
		"in a circle":          {func(*side) string { return "/start" }, ErrFailed},
		"to another host":      {func(s *side) string { return s.at(here, "/end") }, nil},
		"to an address inside": {func(s *side) string { return s.at(inside, "/end") }, ErrRefused},
		"to a name that leads inside": {func(s *side) string {
			return s.at("inside.example.com", "/end")
		}, ErrRefused},
		"to an address inside, without a scheme": {func(s *side) string {
			return strings.TrimPrefix(s.at(inside, "/end"), "https:")
		}, ErrRefused},
		"out of https": {func(s *side) string {
			return strings.Replace(s.at(here, "/end"), "https:", "http:", 1)
		}, ErrRefused},
		"to a file": {func(*side) string { return "file:///etc/passwd" }, ErrRefused},
		"with a user": {func(s *side) string {
			return strings.Replace(s.at(here, "/end"), "https://", "https://me@", 1)
		}, ErrRefused},
		"to no URL": {func(*side) string { return "https://[" }, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			var s *side
			s = newSide(t, func(w http.ResponseWriter, r *http.Request) {
				left := 0
				switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &left); {
				case r.URL.Path == "/start":
					w.Header().Set("Location", c.to(s))
					w.WriteHeader(http.StatusFound)
				case err == nil && left > 1:
					http.Redirect(w, r, fmt.Sprint("/", left-1), http.StatusTemporaryRedirect)
				default:
					io.WriteString(w, "end")
				}
			})
			got, err := s.client(t, nil).Get(t.Context(), s.at("example.com", "/start"), 100)
			switch {
			case c.want == nil && (err != nil || string(got.Body) != "end"):
				t.Errorf("got %v, %v", got, err)
			case c.want != nil && !errors.Is(err, c.want):
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestWhatIsPostedGoesToNobodyElse(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newSide(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/end" {
				t.Error("it was followed")
			}
			http.Redirect(w, r, "/end", status)
		})
		got, err := s.client(t, nil).Post(t.Context(), s.at("example.com", "/"), "text/plain", []byte("secret"), 1000)
		if err != nil || got.Status != status {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	const limit = 1000
	flood := func(w http.ResponseWriter, r *http.Request, n int) {
		for range n / 100 {
			if _, err := io.WriteString(w, strings.Repeat("secret ", 15)[:100]); err != nil {
				return
			}
			if r.URL.Query().Has("chunked") {
				w.(http.Flusher).Flush()
			}
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		query   string
		want    error
	}{
		"as large as may be": {func(w http.ResponseWriter, r *http.Request) { flood(w, r, limit) },
			"?chunked", nil},
		"too large": {func(w http.ResponseWriter, r *http.Request) { flood(w, r, limit+100) },
			"", ErrFailed},
		"too large, piece by piece": {func(w http.ResponseWriter, r *http.Request) { flood(w, r, 100*limit) },
			"?chunked", ErrFailed},
		"too large, and without an end": {func(w http.ResponseWriter, r *http.Request) {
			flood(w, r, limit+100)
			<-r.Context().Done()
		}, "?chunked", ErrFailed},
		"too large as it says itself": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "", ErrFailed},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			var bomb bytes.Buffer
			z := gzip.NewWriter(&bomb)
			z.Write(make([]byte, 100*limit))
			z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, "", ErrFailed},
		"with a huge header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Secret", strings.Repeat("secret", maxHeader/5))
		}, "", ErrFailed},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			io.WriteString(w, "secret")
			panic(http.ErrAbortHandler)
		}, "", ErrFailed},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "secret\r\n\r\n")
			conn.Close()
		}, "", ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, c.handler)
			got, err := s.client(t, nil).Get(t.Context(), s.at("example.com", "/"+c.query), limit)
			if c.want == nil {
				if err != nil || len(got.Body) != limit {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, c.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			if e, _ := errors.AsType[*errs.Error](err); strings.Contains(err.Error(), "secret") ||
				e.Message != c.want.(*errs.Error).Message {
				t.Errorf("what was answered is in the error: %v", err)
			}
		})
	}
	s := newSide(t, func(w http.ResponseWriter, r *http.Request) { flood(w, r, limit) })
	if got, err := s.client(t, nil).Post(t.Context(), s.at("example.com", "/"), "", nil, 0); err != nil ||
		got.Body != nil {
		t.Errorf("a body that nobody wants is in the way: %v, %v", got, err)
	}
}

func TestWhoIsSlowIsLeft(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"before the answer":   func(http.ResponseWriter) {},
		"in the middle of it": func(w http.ResponseWriter) { io.WriteString(w, "a"); w.(http.Flusher).Flush() },
		"after a redirect too": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			s := newSide(t, func(w http.ResponseWriter, _ *http.Request) {
				begin(w)
				<-over
			})
			defer close(over)
			c := s.client(t, func(c *Config) { c.Timeout = 50 * time.Millisecond })
			if _, err := c.Get(t.Context(), s.at("example.com", "/"), 100); !errors.Is(err, ErrFailed) ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhoSpeaksOnlyOldTLSOrHasNoCertificateIsNotTrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	s.StartTLS()
	defer s.Close()
	old := &side{Server: s, names: &names{answers: map[string][][]string{"example.com": {{here}}}}}
	if _, err := old.client(t, nil).Get(t.Context(), old.at("example.com", "/"), 100); !errors.Is(err, ErrFailed) {
		t.Errorf("old TLS: %v", err)
	}
	good := newSide(t, func(http.ResponseWriter, *http.Request) {})
	good.names.answers["other.example.org"] = [][]string{{here}}
	if _, err := good.client(t, nil).Get(t.Context(), good.at("other.example.org", "/"),
		100); !errors.Is(err, ErrFailed) {
		t.Errorf("a certificate for somebody else: %v", err)
	}
	if _, err := good.client(t, func(c *Config) { c.Roots = x509.NewCertPool() }).Get(t.Context(),
		good.at("example.com", "/"), 100); !errors.Is(err, ErrFailed) {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
}

func TestAProxyFromTheEnvironmentIsNotUsed(t *testing.T) {
	s := newSide(t, func(http.ResponseWriter, *http.Request) {})
	t.Setenv("HTTPS_PROXY", "http://127.0.0.2:1")
	t.Setenv("HTTP_PROXY", "http://127.0.0.2:1")
	if c := s.client(t, nil); c.secure.Proxy != nil || c.clear.Proxy != nil {
		t.Error("there is a proxy")
	}
}

func TestANameThatDoesNotExistFails(t *testing.T) {
	s := newSide(t, func(http.ResponseWriter, *http.Request) {})
	s.names.answers["empty.example.com"] = [][]string{{}}
	for _, host := range []string{"nowhere.example.com", "empty.example.com"} {
		if _, err := s.client(t, nil).Get(t.Context(), s.at(host, "/"), 100); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestWhatCouldBeCalled(t *testing.T) {
	strict, open := New(Config{}), New(Config{Allow: prefixes("10.1.0.0/16", "fd00:1::/64")})
	for _, c := range []struct {
		address      string
		strict, open bool // whether it is accepted
	}{
		{"https://example.org/hook", true, true},
		{"https://8.8.8.8/", true, true},
		{"http://example.org/hook", false, true}, // it may lie in what is allowed
		{"http://8.8.8.8/", false, false},
		{"https://10.1.2.3/", false, true},
		{"http://10.1.2.3/", false, true},
		{"https://10.2.2.3/", false, false},
		{"https://127.0.0.1/", false, false},
		{"https://[::1]/", false, false},
		{"https://[::ffff:10.1.2.3]/", false, true},
		{"https://[::ffff:127.0.0.1]/", false, false},
		{"https://[fd00:1::5]/", false, true},
		{"https://[fe80::1%25eth0]/", false, false},
		{"https://ada@example.org/", false, false},
		{"ftp://example.org/", false, false},
		{"example.org", false, false},
	} {
		for client, want := range map[*Client]bool{strict: c.strict, open: c.open} {
			if err := client.Accepts(c.address); (err == nil) != want || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %v, want %t", c.address, err, want)
			}
		}
	}
}

func TestHeadersAreSentAndConnectionsUsedAgain(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	s := newSide(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from[r.RemoteAddr] = true
		if r.Header.Get("Webhook-Id") != "1" || r.UserAgent() != "signet" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", r.Header)
		}
		fmt.Fprint(w, "an answer that nobody reads")
	})
	c := s.client(t, nil)
	for range 5 {
		header := map[string]string{"Webhook-Id": "1", "Content-Type": "application/json", "User-Agent": "another"}
		if _, err := c.PostWith(t.Context(), s.at("example.com", "/"), header, []byte("{}"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if mu.Lock(); len(from) != 1 {
		t.Errorf("%d connections for five messages", len(from))
	}
	mu.Unlock()
}
