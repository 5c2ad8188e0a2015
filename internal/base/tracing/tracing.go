// Package tracing records where the time of a request is spent, as spans in the sense of OpenTelemetry. A Tracer
// decides at the entry point whether a request is traced. The code that serves the request starts spans below the span
// in the context:
//
//	ctx, span := tracing.Start(ctx, "authenticate")
//	caller, err := identify(ctx)
//	span.End(err)
//
// For a request that is not traced, this costs one lookup in the context and allocates nothing. Names and values of
// spans are constants, numbers, reasons and request ids, so that traces contain no personal data. Package otlp sends
// the spans to a collector.
package tracing

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Span is a part of a traced request. The zero value records nothing.
type Span struct{ span trace.Span }

// used tells whether this process has a Tracer. Without one no context has a span, and nobody has to look for it.
var used atomic.Bool

// Start begins a span below the one in ctx. If there is none, it gives ctx back.
func Start(ctx context.Context, name string) (context.Context, Span) {
	if !used.Load() {
		return ctx, Span{}
	}
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(Scope).Start(ctx, name)
	return ctx, Span{span}
}

// Of gives the span in ctx.
func Of(ctx context.Context) Span {
	if !used.Load() {
		return Span{}
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span}
	}
	return Span{}
}

// Scope is the name of what makes all our spans.
const Scope = "signet"

// Recorded tells whether anything is recorded.
func (s Span) Recorded() bool { return s.span != nil }

// Within begins a span below this one at a time that has passed. EndAt ends it.
func (s Span) Within(name string, from time.Time) Span {
	if s.span == nil {
		return s
	}
	_, span := s.span.TracerProvider().Tracer(Scope).Start(trace.ContextWithSpan(context.Background(), s.span), name,
		trace.WithTimestamp(from))
	return Span{span}
}

// Past records a span below this one that has ended already.
func (s Span) Past(name string, from, to time.Time, err error) { s.Within(name, from).EndAt(to, err) }

// Set notes a text about the span. It must be one of few.
func (s Span) Set(key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Count notes a number about the span.
func (s Span) Count(key string, n int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, n))
	}
}

// Rename gives the span a name that was not known at its start.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// TraceID is that of the trace, in hexadecimal digits; empty if nothing is recorded.
func (s Span) TraceID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// End ends the span. Of an error only its reason is noted: its text may quote what somebody sent. Ending it again does
// nothing.
func (s Span) End(err error) {
	if s.span != nil {
		fail(s.span, err)
		s.span.End()
	}
}

// EndAt is End at a time that has passed.
func (s Span) EndAt(to time.Time, err error) {
	if s.span != nil {
		fail(s.span, err)
		s.span.End(trace.WithTimestamp(to))
	}
}

func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	reason := "error"
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Reason != "" {
		reason = string(e.Reason)
	}
	span.SetAttributes(attribute.String("signet.reason", reason))
	span.SetStatus(codes.Error, reason)
}

// maxForced is how many requests a second are traced because a trusted proxy says so, beyond those that we choose
// ourselves. Many proxies pass on what a client has sent: nobody outside may have every request traced.
const maxForced = 100

// Tracer decides which requests are traced. Nil traces none.
type Tracer struct {
	provider trace.TracerProvider
	ratio    float64

	mu     sync.Mutex
	second int64 // in which forced were counted
	forced int
}

// New makes a tracer that traces a share of all requests, from 0 to 1.
func New(provider trace.TracerProvider, ratio float64) *Tracer {
	used.Store(true)
	return &Tracer{provider: provider, ratio: ratio}
}

// Request begins the span of a request. parent is the header traceparent if it comes from somebody who is trusted, else
// empty: then the trace is a new one, and chance decides whether it is recorded.
func (t *Tracer) Request(ctx context.Context, parent string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if remote, ok := parseParent(parent); ok {
		if !remote.IsSampled() || !t.mayForce(time.Now()) {
			return ctx, Span{}
		}
		return t.begin(trace.ContextWithRemoteSpanContext(ctx, remote), "request", trace.SpanKindServer)
	}
	if !t.chosen() {
		return ctx, Span{}
	}
	return t.begin(ctx, "request", trace.SpanKindServer)
}

func (t *Tracer) chosen() bool { return t.ratio > 0 && rand.Float64() < t.ratio }

func (t *Tracer) begin(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	ctx, span := t.provider.Tracer(Scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

func (t *Tracer) mayForce(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if second := now.Unix(); second != t.second {
		t.second, t.forced = second, 0
	}
	t.forced++
	return t.forced <= maxForced
}

// ParentHeader is the header of the W3C, as net/http stores it.
const ParentHeader = "Traceparent"

// ParentOf gives the header traceparent of a request.
func ParentOf(h http.Header) string {
	if values := h[ParentHeader]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// parseParent reads a traceparent of version 00 (or a later one, of which the first part means the same): 00-<32
// digits>-<16 digits>-<2 digits>.
func parseParent(text string) (trace.SpanContext, bool) {
	var none trace.SpanContext
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' || !isHex(text[:2]) || text[:2] == "ff" ||
		!isHex(text[53:55]) {
		return none, false
	}
	if len(text) > 55 && (text[:2] == "00" || text[55] != '-') {
		return none, false
	}
	traceID, err := trace.TraceIDFromHex(text[3:35])
	if err != nil {
		return none, false
	}
	spanID, err := trace.SpanIDFromHex(text[36:52])
	if err != nil {
		return none, false
	}
	var flags trace.TraceFlags
	if strings.IndexByte("13579bdf", text[54]) >= 0 {
		flags = trace.FlagsSampled
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: flags,
		Remote: true}), true
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

type tracerKey struct{}

// With puts the tracer into the context of work that no request asks for, see Work.
func With(ctx context.Context, t *Tracer) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, t)
}

// Work begins the span of a piece of work that no request waits for. Chance decides whether it is recorded.
func Work(ctx context.Context, kind, name string) (context.Context, Span) {
	t, _ := ctx.Value(tracerKey{}).(*Tracer)
	if t == nil || !t.chosen() {
		return ctx, Span{}
	}
	return t.begin(ctx, kind+"."+name, trace.SpanKindConsumer)
}
