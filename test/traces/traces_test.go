package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

// caller speaks one of the protocols.
type caller struct {
	protocol string
	options  []connect.ClientOption // nil: REST
}

var callers = []caller{{"rest", nil}, {"grpc", []connect.ClientOption{connect.WithGRPC()}},
	{"grpc-web", []connect.ClientOption{connect.WithGRPCWeb()}}}

func client() *http.Client {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: transport}
}

// rest sends JSON.
func (w *world) rest(t testing.TB, method, path, token, requestID string, body any, header ...string) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	must(t, err)
	r, err := http.NewRequest(method, w.URL()+path, bytes.NewReader(raw))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", requestID)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	out := map[string]any{}
	must(t, json.NewDecoder(answer.Body).Decode(&out))
	return out
}

func with[T any](m *T, token, requestID string) *connect.Request[T] {
	r := connect.NewRequest(m)
	r.Header().Set("X-Request-Id", requestID)
	if token != "" {
		r.Header().Set("Authorization", "Bearer "+token)
	}
	return r
}

// signIn gives the token of a new session.
func (w *world) signIn(t testing.TB, c caller, requestID string) string {
	t.Helper()
	if c.options == nil {
		token, _ := w.rest(t, "POST", "/v1/sessions", "", requestID,
			map[string]string{"loginName": login, "password": password})["token"].(string)
		return token
	}
	answer, err := connect.NewClient[signetv1.CreateSessionRequest, signetv1.CreateSessionResponse](client(),
		w.URL()+"/"+signInName, c.options...).CallUnary(context.Background(),
		with(&signetv1.CreateSessionRequest{LoginName: login, Password: password}, "", requestID))
	must(t, err)
	return answer.Msg.GetToken()
}

func (w *world) updateProfile(t testing.TB, c caller, token, requestID string) {
	t.Helper()
	if c.options == nil {
		w.rest(t, "PUT", "/v1/users/me/profile", token, requestID,
			map[string]string{"firstName": "Hildegard", "lastName": lastName,
				"displayName": "Frau " + lastName + " " + c.protocol})
		return
	}
	_, err := connect.NewClient[signetv1.UpdateMyProfileRequest, signetv1.UpdateMyProfileResponse](client(),
		w.URL()+"/"+profileName, c.options...).CallUnary(context.Background(),
		with(&signetv1.UpdateMyProfileRequest{FirstName: "Hildegard", LastName: lastName,
			DisplayName: "Frau " + lastName + " " + c.protocol}, token, requestID))
	must(t, err)
}

// tree writes spans as lines of "parent > name", with the names of the spans.
func tree(spans []*tracepb.Span) map[string]bool {
	names, out := map[string]string{}, map[string]bool{}
	for _, s := range spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	for _, s := range spans[1:] {
		out[names[string(s.GetParentSpanId())]+" > "+s.GetName()] = true
	}
	return out
}

const (
	signInName  = "signet.v1.SessionService/CreateSession"
	profileName = "signet.v1.UserService/UpdateMyProfile"
)

func TestEveryRequestShowsWhereItsTimeWent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db, 1)
		tokens := []string{password, email, login, "Hildegard", lastName, w.userID, w.FirstAdmin.OrgID}
		for _, c := range callers {
			token := w.signIn(t, c, "sign-in-"+c.protocol)
			w.updateProfile(t, c, token, "profile-"+c.protocol)
			tokens = append(tokens, token)
		}
		for _, c := range callers {
			for _, want := range []struct{ id, name, spans string }{
				{"sign-in-", signInName,
					"% > validate, % > operate, operate > password.queue, operate > password.hash, operate > store.queue, operate > store.batch, store.batch > store.load, store.batch > store.decide, store.batch > store.commit, operate > store.sync"},
				{"profile-", profileName,
					"% > authenticate, % > validate, % > authorize, % > turn, % > operate, operate > store.queue, operate > store.batch, store.batch > store.load, store.batch > store.decide, store.batch > store.commit, operate > store.sync"},
			} {
				spans := w.collector.trace(t, want.id+c.protocol)
				root, found := spans[0], tree(spans)
				if root.GetName() != want.name || attribute(root, "signet.protocol") != c.protocol ||
					attribute(root, "signet.code") != "OK" || len(root.GetParentSpanId()) != 0 {
					t.Errorf("the root of %s%s is %v", want.id, c.protocol, root)
				}
				for _, line := range strings.Split(strings.ReplaceAll(want.spans, "%", want.name), ", ") {
					if !found[line] {
						t.Errorf("%s%s has no span %q: %v", want.id, c.protocol, line, found)
					}
				}
				for _, s := range spans[1:] {
					if s.GetStartTimeUnixNano() < root.GetStartTimeUnixNano() ||
						s.GetEndTimeUnixNano() > root.GetEndTimeUnixNano() ||
						s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
						t.Errorf("%s lies outside of its request", s.GetName())
					}
				}
				if id := hex.EncodeToString(root.GetTraceId()); !w.log.Has("requestId="+want.id+c.protocol) ||
					!w.log.Has("traceId="+id) {
					t.Errorf("the log does not name the trace %s", id)
				}
			}
		}
		if db.Engine == testdb.Postgres {
			if found := tree(w.collector.trace(t, "profile-rest")); !found["authenticate > sql.shared"] {
				t.Errorf("the round trip of the credential does not show: %v", found)
			}
		}
		w.rest(t, "POST", "/v1/sessions?secret="+lastName, "", "refused",
			map[string]string{"loginName": login, "password": "not " + password})
		if root := w.collector.trace(t, "refused")[0]; attribute(root, "signet.code") == "OK" ||
			attribute(root, "signet.reason") == "" || root.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			t.Errorf("a refusal says why, and is no failure of the server: %v", root)
		}
		w.collector.mu.Lock()
		defer w.collector.mu.Unlock()
		for _, text := range w.collector.texts {
			for _, secret := range tokens {
				if secret == "" || strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
					t.Errorf("the collector learns %q", secret)
				}
			}
		}
	})
}

const foreign = "0af7651916cd43dd8448eb211c80319c"

func TestOnlyTrustedProxiesAreBelievedThatARequestIsPartOfATrace(t *testing.T) {
	w := open(t, testdb.Database{}, 1)
	w.rest(t, "GET", "/v1/users/me", "", "stranger", nil, "traceparent", "00-"+foreign+"-b7ad6b7169203331-01")
	w.rest(t, "GET", "/v1/users/me", "", "stranger-not-sampled", nil, "traceparent",
		"00-"+foreign+"-b7ad6b7169203331-00")
	for _, id := range []string{"stranger", "stranger-not-sampled"} {
		if root := w.collector.trace(t, id)[0]; hex.EncodeToString(root.GetTraceId()) == foreign ||
			len(root.GetParentSpanId()) != 0 {
			t.Errorf("a stranger chose the trace: %v", root)
		}
	}

	trusting := open(t, testdb.Database{}, 0, func(c *server.Config) { c.TrustedProxies = []string{"127.0.0.1"} })
	trusting.rest(t, "GET", "/v1/users/me", "", "not-sampled", nil, "traceparent", "00-"+foreign+"-b7ad6b7169203331-00")
	trusting.rest(t, "GET", "/v1/users/me", "", "without", nil)
	trusting.rest(t, "GET", "/v1/users/me", "", "long", nil, "traceparent",
		"00-"+foreign+"-b7ad6b7169203331-01"+strings.Repeat("a", 10<<10))
	trusting.rest(t, "GET", "/v1/users/me", "", "proxy", nil, "traceparent", "00-"+foreign+"-b7ad6b7169203331-01")
	root := trusting.collector.trace(t, "proxy")[0]
	if hex.EncodeToString(root.GetTraceId()) != foreign ||
		hex.EncodeToString(root.GetParentSpanId()) != "b7ad6b7169203331" {
		t.Errorf("the proxy's trace goes on: %v", root)
	}
	trusting.collector.mu.Lock()
	defer trusting.collector.mu.Unlock()
	for _, s := range trusting.collector.spans {
		if hex.EncodeToString(s.GetTraceId()) != foreign {
			t.Errorf("nobody asked for %v", s)
		}
	}
}

func TestPagesAreTracedByTheirPath(t *testing.T) {
	w := open(t, testdb.Database{}, 1)
	r, err := http.NewRequest("GET", w.URL()+"/login?login_hint="+email, nil)
	must(t, err)
	r.Header.Set("X-Request-Id", "page")
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	answer.Body.Close()
	if root := w.collector.trace(t, "page")[0]; root.GetName() != "/login" ||
		attribute(root, "signet.protocol") != "web" {
		t.Errorf("%v", root)
	}
}
