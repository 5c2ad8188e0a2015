package traces

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestWhatFollowsFromARequestIsATraceOfItsOwnWithItsID(t *testing.T) {
	var told http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told = r.Header.Clone()
	}))
	defer receiver.Close()
	sink := mailtest.Start(t)
	w := open(t, testdb.Database{}, 1, func(c *server.Config) {
		c.SMTPURL, c.SMTPFrom, c.OutboundAllow = sink.URL, "no-reply@id.test", []string{"127.0.0.1"}
	})
	admin := w.FirstAdmin.Token
	w.rest(t, "POST", "/v1/webhooks", admin, "add-webhook",
		map[string]any{"name": "all", "url": receiver.URL + "/hook-of-" + lastName})
	w.rest(t, "POST", "/v1/users/"+w.userID+"/password", admin, "set-password",
		map[string]any{"password": password + "!", "noChangeRequired": true})
	_, err := connect.NewClient[signetv1.SetupOrganizationRequest, signetv1.SetupOrganizationResponse](client(),
		w.URL()+"/signet.v1.OrganizationService/SetupOrganization", connect.WithGRPC()).CallUnary(t.Context(),
		with(&signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: "Elsewhere"},
			Human: &signetv1.SetupOrganizationRequest_Human{
				UserName: "kunigunde",
				Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Kunigunde", LastName: lastName},
				Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: "kunigunde@mail.test"},
				Password: password},
		},
			admin, "set-up"))
	must(t, err)
	for _, want := range []struct{ root, child, request string }{{"follower.mail", "mail.send", "set-up"},
		{"follower.webhooks", "outbound", "set-password"}} {
		testkit.Await(t, want.root+" > "+want.child, func() bool {
			w.collector.mu.Lock()
			defer w.collector.mu.Unlock()
			return slices.ContainsFunc(w.collector.spans, func(root *tracepb.Span) bool {
				return root.GetName() == want.root && attribute(root, "signet.request_id") == want.request &&
					len(root.GetParentSpanId()) == 0 &&
					slices.ContainsFunc(w.collector.spans, func(s *tracepb.Span) bool {
						return s.GetName() == want.child && string(s.GetParentSpanId()) == string(root.GetSpanId())
					})
			})
		})
	}
	w.collector.mu.Lock()
	defer w.collector.mu.Unlock()
	for _, text := range w.collector.texts {
		for _, secret := range []string{password, email, login, "kunigunde", lastName, w.userID, admin, receiver.URL,
			receiver.Listener.Addr().String()} {
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
			if took := time.Since(stopping); took > time.Minute {
				t.Errorf("stopping took %v", took)
			}
		})
		w := open(t, testdb.Database{}, 1,
			func(c *server.Config) { c.Traces.Endpoint = "http://" + silent.Addr().String() })
		t.Cleanup(func() { stopping = time.Now() })
		for range 20 {
			if w.signIn(t, callers[0], "away") == "" {
				t.Error("nobody can sign in")
			}
		}
	})
}
