package otlp

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/test/testkit"
)

func TestMistakesInTheSettings(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong")
	testkit.Must(t, os.WriteFile(wrong, []byte("# fine\nauthorization Bearer s3cret\n"), 0o600))
	for _, c := range []struct {
		settings Settings
		says     string
	}{
		{Settings{Endpoint: "collector:4318"}, "--trace-endpoint must be"},
		{Settings{Endpoint: "grpc://collector:4317"}, "--trace-endpoint must be"},
		{Settings{Endpoint: "https://"}, "--trace-endpoint must be"},
		{Settings{Endpoint: "https://collector/?key=s3cret"}, "--trace-endpoint must be"},
		{Settings{Endpoint: "https://me:s3cret@collector"}, "--trace-headers-file"},
		{Settings{Endpoint: "https://collector", Sample: 1.1}, "--trace-sample must be between 0 and 1"},
		{Settings{Sample: -0.1}, "--trace-sample must be between 0 and 1"},
		{Settings{HeadersFile: wrong}, "needs --trace-endpoint"},
		{Settings{Endpoint: "https://collector", HeadersFile: wrong}, "line 2"},
		{Settings{Endpoint: "https://collector", HeadersFile: wrong + "er"}, "reading --trace-headers-file"},
	} {
		_, err := c.settings.Check()
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v", c.settings, err)
		}
	}
}

// exporter sends to a handler.
func exporter(t *testing.T, handler http.HandlerFunc, header string) (*Exporter, *testkit.Log) {
	t.Helper()
	collector := httptest.NewServer(handler)
	t.Cleanup(collector.Close)
	settings := Settings{Endpoint: collector.URL, Sample: 1}
	if header != "" {
		settings.HeadersFile = filepath.Join(t.TempDir(), "headers")
		testkit.Must(t, os.WriteFile(settings.HeadersFile, []byte(header), 0o600))
	}
	checked, err := settings.Check()
	testkit.Must(t, err)
	log := &testkit.Log{}
	x, err := Start(checked, "1", slog.New(slog.NewTextHandler(log, nil)), prometheus.NewRegistry())
	testkit.Must(t, err)
	return x, log
}

func (x *Exporter) record(t *testing.T, spans int) {
	for range spans {
		_, span := x.Tracer.Request(t.Context(), "")
		span.End(nil)
	}
}

// count reads a counter.
func (x *Exporter) count(outcome string) float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(x.spans)
	families, _ := registry.Gather()
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == outcome {
			return m.GetCounter().GetValue()
		}
	}
	return -1
}

func TestSpansArriveWithTheHeaders(t *testing.T) {
	var seen http.Header
	var path string
	x, log := exporter(t, func(_ http.ResponseWriter, r *http.Request) { seen, path = r.Header.Clone(), r.URL.Path },
		"Authorization: Bearer s3cret\n")
	x.record(t, 3)
	x.Stop()
	if seen.Get("Authorization") != "Bearer s3cret" || seen.Get("Content-Type") != "application/x-protobuf" ||
		path != "/v1/traces" {
		t.Errorf("%s %v", path, seen)
	}
	if n := x.count(accepted); n != 3 || log.Has("level=WARN") {
		t.Errorf("%v were sent: %s", n, log)
	}
}

func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	x, _ := exporter(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, "")
	t.Cleanup(func() { close(release) })
	x.record(t, batchLength)
	testkit.Receive(t, asked, "the collector is asked") // it hangs from now on
	began := time.Now()
	x.record(t, 2*queueLength)
	recording := time.Since(began)
	batches := 1 + len(asked) // the next one is sent when one is given up
	began = time.Now()
	x.Stop()
	if stopping := time.Since(began); max(stopping, recording) > testkit.Patience {
		t.Errorf("recording took %v, stopping %v", recording, stopping)
	}
	if full, unsent := x.count(throttled), x.count(failed); full < float64(queueLength-batches*batchLength) ||
		full+unsent != batchLength+2*queueLength {
		t.Errorf("%v did not fit and %v were not sent: all are counted", full, unsent)
	}
}

func TestACollectorThatFailsIsSaidOnce(t *testing.T) {
	var answer atomic.Int64
	answer.Store(http.StatusServiceUnavailable)
	megabytes := bytes.Repeat([]byte("x"), 8<<20)
	x, log := exporter(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(answer.Load()))
		_, _ = w.Write(megabytes) // nobody reads them
	}, "")
	defer x.Stop()
	for i := 1; i <= 3; i++ {
		x.record(t, batchLength)
		testkit.Await(t, "the failure", func() bool { return x.count(failed) == float64(i*batchLength) })
	}
	answer.Store(http.StatusOK)
	x.record(t, batchLength)
	testkit.Await(t, "the collector takes them again", func() bool { return x.count(accepted) == batchLength })
	testkit.Await(t, "the log says so", func() bool { return log.Has("again") })
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log)
	}
}

func TestACollectorThatRedirectsIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the headers are for the collector alone")
	}))
	defer other.Close()
	x, log := exporter(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}, "authorization: Bearer s3cret")
	x.record(t, 1)
	x.Stop()
	if !log.Has("status 307") {
		t.Error(log)
	}
}
