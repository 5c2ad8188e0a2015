package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/test/testdb"
)

// nobody knows no name.
type nobody struct{}

func (nobody) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "secret", Name: host, IsNotFound: true}
}

// Security list, row 27: what went wrong is said in our words alone. Neither the address nor anything that came from
// the receiver is among them.
func TestWhyAReceiverDoesNotAnswerIsSaidInOurWords(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	serve := func(handler http.HandlerFunc) string {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		return s.URL
	}
	away := httptest.NewServer(nil)
	away.Close()
	untrusted := httptest.NewTLSServer(nil)
	untrusted.Config.ErrorLog = quiet
	t.Cleanup(untrusted.Close)
	for name, c := range map[string]struct{ url, problem string }{
		"nobody listens": {away.URL, "the receiver refused the connection: nothing listens at this port"},
		"no TLS": {strings.Replace(serve(nil), "http:", "https:", 1),
			"the receiver does not speak TLS at this port, or no version that signet accepts (1.2 and newer)"},
		"no word": {serve(func(out http.ResponseWriter, _ *http.Request) {
			conn, _, _ := out.(http.Hijacker).Hijack()
			conn.Close()
		}), "the receiver closed the connection without an answer"},
		"no HTTP": {serve(func(out http.ResponseWriter, _ *http.Request) {
			conn, _, _ := out.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "secret\r\n\r\n")
			conn.Close()
		}), "the receiver does not answer with valid HTTP, or its host name is not valid"},
		"no answer": {serve(func(_ http.ResponseWriter, q *http.Request) {
			<-q.Context().Done()
		}), "the receiver did not answer in time"},
		"a certificate of its own":      {untrusted.URL, "the certificate of the receiver is not trusted"},
		"a name that nobody knows":      {"https://secret.example", "the host name of the receiver was not found"},
		"an address that is not called": {"https://10.0.0.1", "signet does not call this address: " + needed},
		"an answer with more than a status": {serve(func(out http.ResponseWriter, _ *http.Request) {
			http.Error(out, "secret", 400)
		}), "the receiver answers with status 400"},
	} {
		t.Run(name, func(t *testing.T) {
			patience := time.Minute
			if strings.HasSuffix(c.problem, "in time") {
				patience = 50 * time.Millisecond
			}
			client := outbound.New(outbound.Config{Allow: here, Timeout: patience, Resolver: nobody{}})
			t.Cleanup(client.Close)
			hooks := &Webhooks{Store: w.hooks.Store, Root: w.hooks.Root, Outbound: client, Clock: w.Clock.Now}
			created, err := w.hooks.Add(t.Context(), w.owner("org_a"),
				New{Name: "n", Settings: Settings{URL: "https://example.org"}})
			must(t, err)
			u, err := hooks.use(t.Context(), created.ID, nil)
			must(t, err)
			u.secrets.URL = c.url
			if out := hooks.send(t.Context(), u, "msg_1", nil); out.Problem != c.problem {
				t.Errorf("it says %q, want %q", out.Problem, c.problem)
			}
		})
	}
}
