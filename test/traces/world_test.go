package traces

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

const (
	password = "a long word with Sense 7"
	login    = "hildegard"
	email    = "hildegard@mail.test"
	lastName = "Knorrenschild"
)

// collector receives spans, as OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	texts []string // all that was received
}

func newCollector(t testing.TB) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		packed, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		raw, err := io.ReadAll(packed)
		var data tracepb.TracesData // on the wire it is the same as an ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &data)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.texts = append(c.texts, string(raw))
		for _, resource := range data.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// trace waits for the root of a request, and gives all spans of its trace, the root first.
func (c *collector) trace(t testing.TB, requestID string) []*tracepb.Span {
	t.Helper()
	var found []*tracepb.Span
	testkit.Await(t, "the trace of "+requestID, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		at := slices.IndexFunc(c.spans, func(s *tracepb.Span) bool {
			return s.GetKind() == tracepb.Span_SPAN_KIND_SERVER && attribute(s, "signet.request_id") == requestID
		})
		if at < 0 {
			return false
		}
		found = []*tracepb.Span{c.spans[at]}
		for _, s := range c.spans {
			if string(s.GetTraceId()) == string(found[0].GetTraceId()) && s != found[0] {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// world is a server that sends its spans to a collector, with a person in it.
type world struct {
	*server.Server
	collector *collector
	log       *testkit.Log
	userID    string
}

func open(t testing.TB, db testdb.Database, sample float64, change ...func(*server.Config)) *world {
	t.Helper()
	w := &world{collector: newCollector(t), log: &testkit.Log{}}
	config := server.Config{Traces: otlp.Settings{Endpoint: w.collector.URL, Sample: sample}}
	if db.Engine == testdb.Postgres {
		config.Database = db.URL
	}
	for _, c := range change {
		c(&config)
	}
	hasher := config.Hasher
	if hasher == nil {
		hasher = secret.NewCheapHasher()
	}
	w.Server = servertest.Start(t, config, w.log)
	w.userID = user.Kind.NewID()
	hash, err := hasher.Hash(context.Background(), password)
	must(t, err)
	org := w.FirstAdmin.OrgID
	must(t, w.Store().Do(context.Background(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{user.Kind.Ref(w.userID)},
		Claims: []event.Claim{user.NameClaim(org, syntax.NameKey(login))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, w.userID, org, &user.NewHuman{
				UserName:      login,
				Email:         email,
				EmailVerified: true,
				Profile: user.Profile{FirstName: "Hildegard", LastName: lastName,
					DisplayName: "Hildegard " + lastName},
			})
			if err != nil {
				return err
			}
			return user.PutPassword(tx, u, hash, user.PasswordSet{})
		},
	}))
	return w
}
