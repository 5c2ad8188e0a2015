// Package metrics tests what a running server tells in its metrics, and that the docs, the dashboard and the alerts
// speak of the same metrics.
package metrics

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

type object = map[string]any

// node is a server with metrics.
type node struct {
	*server.Server
	log *testkit.Log
}

func start(t *testing.T, config server.Config) *node {
	t.Helper()
	log := &testkit.Log{}
	config.MetricsListen, config.Version = "127.0.0.1:0", "1.2.3"
	return &node{servertest.Start(t, config, log), log}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	testkit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp.StatusCode, string(text)
}

// request sends a request and gives the answer, whose body the caller closes.
func (n *node) request(t *testing.T, token, method, path string, body object) *http.Response {
	t.Helper()
	text, err := json.Marshal(body)
	testkit.Must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.Addr().String()+path,
		strings.NewReader(string(text)))
	testkit.Must(t, err)
	if body == nil {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	return resp
}

func (n *node) call(t *testing.T, status int, token, method, path string, body object) {
	t.Helper()
	resp := n.request(t, token, method, path, body)
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if testkit.Must(t, err); resp.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, status, text)
	}
}

// series is one line of the metrics.
type series struct {
	name   string // without the suffix of a histogram
	labels map[string]string
	text   string // all of it but the value
	value  string
}

// scraped are the metrics at a moment.
type scraped struct {
	types  map[string]string
	series []series
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	seriesLine = regexp.MustCompile(`(?m)^([a-z_0-9]+)(\{.*\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

func (n *node) scrape(t *testing.T) *scraped {
	t.Helper()
	status, text := get(t, "http://"+n.MetricsAddr().String()+"/metrics")
	if status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
	s := &scraped{types: map[string]string{}}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		s.types[m[1]] = m[2]
	}
	for _, m := range seriesLine.FindAllStringSubmatch(text, -1) {
		one := series{name: s.family(m[1]), labels: map[string]string{}, text: m[1] + m[2], value: m[3]}
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			one.labels[l[1]] = l[2]
		}
		s.series = append(s.series, one)
	}
	return s
}

// family is the metric that a name in a query means; empty: none.
func (s *scraped) family(name string) string {
	if s.types[name] != "" {
		return name
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, cut := strings.CutSuffix(name, suffix)
		if kind := s.types[base]; cut && (kind == "histogram" || kind == "summary") {
			return base
		}
	}
	return ""
}

// labels are those of a metric, in order.
func (s *scraped) labels(name string) []string {
	all := map[string]bool{}
	for _, one := range s.series {
		if one.name == name {
			for label := range one.labels {
				all[label] = true
			}
		}
	}
	delete(all, "le")
	return slices.Sorted(maps.Keys(all))
}

// value of a series; empty: there is none.
func (s *scraped) value(text string) string {
	for _, one := range s.series {
		if one.text == text {
			return one.value
		}
	}
	return ""
}

// used starts a server and uses it a little, until every metric is there.
func used(t *testing.T, db testdb.Database) (s *scraped) {
	t.Helper()
	config := server.Config{Development: true, Traces: otlp.Settings{Endpoint: "http://127.0.0.1:1"},
		VerifyEvery: 24 * time.Hour}
	if db.Engine == testdb.Postgres {
		config.Database = db.URL
	} else {
		config.BackupDirectory = t.TempDir()
	}
	n := start(t, config)
	admin := n.FirstAdmin
	n.call(t, 200, admin.Token, "GET", "/v1/users/me", nil)
	n.call(t, 200, admin.Token, "POST", "/v1/orgs/_setup", object{
		"org": object{"name": "Acme"},
		"human": object{"userName": "owner", "password": "a password",
			"email": object{"email": "owner@example.com"}, "profile": object{"firstName": "Olga", "lastName": "Owner"}},
	})
	n.call(t, 200, "", "POST", "/v1/sessions", object{"loginName": admin.LoginName, "password": admin.Password})
	n.call(t, 401, "", "POST", "/v1/sessions", object{"loginName": admin.LoginName, "password": "wrong"})
	n.call(t, 404, "", "GET", "/v1/nothing", nil)
	n.call(t, 200, "", "GET", "/login", nil)
	stream := n.request(t, admin.Token, "GET",
		"/v1/events/_stream?allOrganizations=true&from=2020-01-01T00:00:00Z", nil)
	t.Cleanup(func() { stream.Body.Close() })
	if stream.StatusCode != 200 {
		t.Fatalf("the stream: %d", stream.StatusCode)
	}
	testkit.Await(t, "everything was counted", func() bool {
		s = n.scrape(t)
		return s.labels("signet_stream_events_total") != nil &&
			s.value(`signet_mails_total{outcome="succeeded"}`) == "1" &&
			s.value("signet_log_sealed_position") != "0" &&
			s.value("signet_log_sealed_position") == s.value("signet_log_position") &&
			s.value(`signet_follower_leases{follower="logout"}`) == "1"
	})
	return s
}

func TestMetricsOfAServerThatIsUsed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := used(t, db)
		t.Run("they tell what happened", func(t *testing.T) { tellWhatHappened(t, db, s) })
		t.Run("the docs list all of them", func(t *testing.T) { allAreListed(t, s) })
		t.Run("a label has one meaning", func(t *testing.T) { checkLabels(t, s) })
		t.Run("the dashboard and the alerts ask for metrics that exist", func(t *testing.T) { allExist(t, s) })
	})
}

func tellWhatHappened(t *testing.T, db testdb.Database, s *scraped) {
	for text, want := range map[string]string{
		`signet_build_info{version="1.2.3"}`: "1",
		"signet_ready":                       "1",
		`signet_sign_ins_total{outcome="succeeded",way="password"}`:                                                                                "1",
		`signet_sign_ins_total{outcome="failed",way="password"}`:                                                                                   "1",
		`signet_sign_ins_total{outcome="throttled",way="password"}`:                                                                                "0",
		`signet_streams_open{operation="signet.v1.EventService/StreamEvents",protocol="rest"}`:                                                     "1",
		`signet_requests_total{code="UNAUTHENTICATED",operation="signet.v1.SessionService/CreateSession",protocol="rest",reason="SIGN_IN_FAILED"}`: "1",
		`signet_requests_total{code="OK",operation="signet.v1.SessionService/CreateSession",protocol="rest",reason=""}`:                            "1",
		`signet_requests_total{code="NOT_FOUND",operation="unknown",protocol="http",reason="UNKNOWN_PATH"}`:                                        "1",
		`signet_places_in_use{resource="streams"}`:                                                                                                 "1",
		"signet_log_lost_events":        "0",
		"signet_batch_commands_waiting": "0",
	} {
		if got := s.value(text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"signet_batch_commands_count", "signet_batch_duration_seconds_count",
		"signet_password_hashing_duration_seconds_count",
		"signet_password_hashing_wait_seconds_count", `signet_cache_lookups_total{cache="records",result="hit"}`,
		`signet_cache_lookups_total{cache="records",result="miss"}`,
		"signet_log_position", "signet_log_sealed_position", "signet_database_connections_max",
		"signet_request_bodies_max_bytes", "signet_sync_duration_seconds_count", "signet_log_sealed_timestamp_seconds",
		"signet_read_batch_lookups_count"} {
		// The embedded database has everything in memory, and on PostgreSQL the node knows what it has written itself.
		none := map[string]string{testdb.SQLite: "signet_read_batch_lookups_count",
			testdb.Postgres: `signet_cache_lookups_total{cache="records",result="miss"}`}[db.Engine] == text
		if got := s.value(text); got == "" || got == "0" && !none {
			t.Errorf("%s is %q", text, got)
		}
	}
}

func TestProfilesAreServedWithTheMetricsOnlyAndIfAskedFor(t *testing.T) {
	for _, profiling := range []bool{false, true} {
		n := start(t, server.Config{Profiling: profiling})
		for path, served := range map[string]bool{"/debug/pprof/": true, "/debug/pprof/heap": true,
			"/debug/pprof/goroutine?debug=2": true, "/debug/pprof/profile?seconds=1": true,
			"/debug/pprof/cmdline": false} {
			want := 404
			if profiling && served {
				want = 200
			}
			if path != "/debug/pprof/profile?seconds=1" || profiling { // it takes a second
				if status, _ := get(t, "http://"+n.MetricsAddr().String()+path); status != want {
					t.Errorf("profiling %t: %s of the metrics: %d, want %d", profiling, path, status, want)
				}
			}
			if status, _ := get(t, "http://"+n.Addr().String()+path); status != 404 {
				t.Errorf("profiling %t: %s is public: %d", profiling, path, status)
			}
		}
	}
	_, err := server.Open(t.Context(),
		server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "127.0.0.1:0", Profiling: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "--metrics-listen") {
		t.Errorf("profiles without an address for them: %v", err)
	}
}
