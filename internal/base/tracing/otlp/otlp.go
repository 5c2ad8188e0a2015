// Package otlp sends spans to a collector: OTLP over HTTP, in protobuf, compressed. A collector that is unreachable,
// slow or broken never delays a request: spans wait in a queue of a fixed length, spans that do not fit are dropped and
// counted, and the log reports it once.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/tracing"
)

// Bounds of what waits and of how long a collector is waited for.
const (
	queueLength = 4096 // spans, of some 1.5 KiB each
	batchLength = 512
	gather      = time.Second // for more spans, before those that wait are sent
	sendTime    = 5 * time.Second
	stopTime    = 2 * time.Second
	maxAnswer   = 64 << 10 // bytes that are read of an answer, of which nothing is used
	maxHeader   = 32 << 10
)

// Settings are what the operator chooses. The tags are flags of the command line.
type Settings struct {
	// /v1/traces is added if it has no path.
	Endpoint    string  `help:"Collector that traces are sent to, by OTLP over HTTP: http://localhost:4318. Default: no traces." placeholder:"URL"`
	Sample      float64 `help:"Share of requests that are traced, from 0 to 1. Default: ${default}." default:"0.01" placeholder:"RATIO"`
	HeadersFile string  `help:"File with the headers that the collector wants, one per line: authorization: Bearer …" placeholder:"FILE"`
}

// Checked are settings without a mistake.
type Checked struct {
	endpoint *url.URL
	sample   float64
	header   http.Header
}

// Check finds mistakes in the settings. It gives nil if nothing is to be traced.
func (s Settings) Check() (*Checked, error) {
	if s.Sample < 0 || s.Sample > 1 || s.Sample != s.Sample {
		return nil, errors.New("--trace-sample must be between 0 and 1: 0.01 traces one request of a hundred")
	}
	if s.Endpoint == "" {
		if s.HeadersFile != "" {
			return nil, errors.New("--trace-headers-file needs --trace-endpoint")
		}
		return nil, nil
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" ||
		u.Fragment != "" {
		// without the value: there may be a password in it
		return nil, errors.New("--trace-endpoint must be the URL of a collector that takes OTLP over HTTP, such as http://localhost:4318")
	}
	if u.User != nil {
		return nil, errors.New("--trace-endpoint must not have a user or a password in it: put the header that the collector wants into a file, and name it with --trace-headers-file")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	c := &Checked{endpoint: u, sample: s.Sample, header: http.Header{}}
	if s.HeadersFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(s.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("reading --trace-headers-file: %w", err)
	}
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		name, value, found := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); {
		case line == "" || line[0] == '#':
		case !found || value == "" || !isToken(name) || strings.ContainsFunc(value, isControl):
			return nil, fmt.Errorf("--trace-headers-file: line %d must be a header such as authorization: Bearer …", n+1)
		default:
			c.header.Add(name, value)
		}
	}
	return c, nil
}

// isToken tells whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// What becomes of a span. One is throttled if too many wait already: then nobody tries to send it.
const (
	accepted  = "succeeded"
	failed    = "failed"
	throttled = "throttled"
)

// Exporter sends spans beside everything else.
type Exporter struct {
	Tracer *tracing.Tracer

	provider *sdk.TracerProvider
	out      *otlptrace.Exporter
	log      *slog.Logger
	queue    chan sdk.ReadOnlySpan
	stopping chan struct{}
	stop     sync.Once
	stopped  chan struct{}
	last     context.Context // ends what is on its way
	end      context.CancelFunc
	failing  bool // the last try has failed

	spans *prometheus.CounterVec
}

// Start makes an exporter that works until Stop. version is that of the program.
func Start(c *Checked, version string, log *slog.Logger, registerer prometheus.Registerer) (*Exporter, error) {
	x := &Exporter{
		log:      log,
		queue:    make(chan sdk.ReadOnlySpan, queueLength),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signet_trace_spans_total",
			Help: "Spans for the collector of traces."}, []string{"outcome"}),
	}
	if err := registerer.Register(x.spans); err != nil {
		return nil, err
	}
	for _, outcome := range []string{accepted, failed, throttled} {
		x.spans.WithLabelValues(outcome)
	}
	// What the operator says with OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME counts. A mistake there is no reason not to start.
	about, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "signet"),
			attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES is not as it should be (name=value,name=value)")
	}
	x.out = otlptrace.NewUnstarted(&client{to: c,
		http: &http.Client{Transport: transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}})
	x.last, x.end = context.WithCancel(context.Background())
	x.provider = sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(processor{x}),
		sdk.WithResource(about))
	x.Tracer = tracing.New(x.provider, c.sample)
	log.Info("traces are on", "collector", c.endpoint.Host, "sample", c.sample)
	go x.run()
	return x, nil
}

// transport calls the collector, which the operator has chosen. As everywhere, a proxy from the environment does not count.
func transport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: sendTime}).DialContext,
		TLSHandshakeTimeout:    sendTime,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true,
	}
}

// Stop sends what waits, if the collector takes it within two seconds.
func (x *Exporter) Stop() {
	if x == nil {
		return
	}
	defer time.AfterFunc(stopTime, x.end).Stop()
	x.stop.Do(func() { close(x.stopping) })
	<-x.stopped
	x.end()
}

// processor takes spans that have ended.
type processor struct{ x *Exporter }

func (processor) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (p processor) OnEnd(span sdk.ReadOnlySpan) {
	select {
	case p.x.queue <- span:
	default:
		p.x.spans.WithLabelValues(throttled).Inc()
	}
}

func (processor) Shutdown(context.Context) error   { return nil }
func (processor) ForceFlush(context.Context) error { return nil }

func (x *Exporter) run() {
	defer close(x.stopped)
	batch := make([]sdk.ReadOnlySpan, 0, batchLength)
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		stopping := false
		timer.Reset(gather)
		for full := false; !full && !stopping; {
			select {
			case span := <-x.queue:
				batch = append(batch, span)
				full = len(batch) == batchLength
			case <-timer.C:
				full = true
			case <-x.stopping:
				stopping = true
			}
		}
		for x.send(batch); stopping && len(x.queue) > 0; x.send(batch) {
			for batch = batch[:0]; len(batch) < batchLength && len(x.queue) > 0; {
				batch = append(batch, <-x.queue)
			}
		}
		if stopping {
			return
		}
		clear(batch)
		batch = batch[:0]
	}
}

func (x *Exporter) send(batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(x.last, sendTime)
	defer cancel()
	err := x.out.ExportSpans(ctx, batch)
	switch {
	case err != nil:
		x.spans.WithLabelValues(failed).Add(float64(len(batch)))
		if !x.failing {
			x.log.Warn("the collector of traces does not take spans: they are dropped until it does. Check --trace-endpoint and the collector", "error", err)
		}
	case x.failing:
		x.log.Info("the collector of traces takes spans again")
	}
	if err == nil {
		x.spans.WithLabelValues(accepted).Add(float64(len(batch)))
	}
	x.failing = err != nil
}

// client posts spans. It implements otlptrace.Client: the one of the library brings all of gRPC along, which is 88 packages more.
type client struct {
	to   *Checked
	http *http.Client
}

func (*client) Start(context.Context) error  { return nil }
func (c *client) Stop(context.Context) error { c.http.CloseIdleConnections(); return nil }

func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// the same bytes as an ExportTraceServiceRequest
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	if _, err := packed.Write(raw); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.endpoint.String(), &body)
	if err != nil {
		return err
	}
	request.Header = c.to.header.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("User-Agent", "signet")
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be used again
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the collector answers with status %d", answer.StatusCode)
	}
	return nil
}
