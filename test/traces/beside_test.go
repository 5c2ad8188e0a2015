package traces

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/signet-idm/signet/internal/mail/mailtest"
	"github.com/signet-idm/signet/internal/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestWhatFollowsFromARequestIsATraceOfItsOwnWithItsID(t *testing.T) {
	var told http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told = r.Header.Clone() }))
	defer receiver.Close()
	sink := mailtest.Start(t)
	w := open(t, testdb.Database{}, 1, func(c *server.Config) {
		c.SMTPURL, c.SMTPFrom, c.OutboundAllow = sink.URL, "no-reply@id.test", []string{"127.0.0.1"}
	})
	admin := w.FirstAdmin.Token
	w.rest(t, "POST", "/v1/webhooks", admin, "add-webhook", map[string]any{"name": "all", "url": receiver.URL + "/hook-of-" + lastName})
	w.rest(t, "POST", "/v1/users/"+w.userID+"/password", admin, "set-password", map[string]any{"password": password + "!", "noChangeRequired": true})
	for _, want := range []struct{ root, child string }{{"follower.mail", "mail.send"}, {"webhook", "outbound"}} {
		testkit.Await(t, want.root+" > "+want.child, func() bool {
			w.collector.mu.Lock()
			defer w.collector.mu.Unlock()
			return slices.ContainsFunc(w.collector.spans, func(root *tracepb.Span) bool {
				return root.GetName() == want.root && attribute(root, "signet.request_id") == "set-password" && len(root.GetParentSpanId()) == 0 &&
					slices.ContainsFunc(w.collector.spans, func(s *tracepb.Span) bool {
						return s.GetName() == want.child && string(s.GetParentSpanId()) == string(root.GetSpanId())
					})
			})
		})
	}
	w.collector.mu.Lock()
	defer w.collector.mu.Unlock()
	for _, text := range w.collector.texts {
		for _, secret := range []string{password, email, login, lastName, w.userID, admin, receiver.URL, receiver.Listener.Addr().String()} {
			if strings.Contains(text, secret) {
				t.Errorf("the collector learns %q", secret)
			}
		}
	}
	if told.Get("Traceparent") != "" {
		t.Error("a stranger learns about the trace")
	}
}

func TestACollectorThatHangsChangesNothing(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	t.Run("while it serves and when it stops", func(t *testing.T) {
		var stopping time.Time
		t.Cleanup(func() { // after the server has stopped
			if took := time.Since(stopping); took > 10*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
		w := open(t, testdb.Database{}, 1, func(c *server.Config) { c.Traces.Endpoint = "http://" + silent.Addr().String() })
		t.Cleanup(func() { stopping = time.Now() })
		for range 20 {
			if w.signIn(t, callers[0], "away") == "" {
				t.Error("nobody can sign in")
			}
		}
	})
}
