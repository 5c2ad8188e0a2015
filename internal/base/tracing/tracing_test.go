package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/signet-idm/signet/internal/base/errs"
)

func recorded(ratio float64) (*Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), ratio), spans
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

func TestARequestThatIsNotTracedAllocatesNothing(t *testing.T) {
	type key struct{}
	outer := context.WithValue(t.Context(), key{}, 1)
	never, spans := recorded(0)
	for name, tracer := range map[string]*Tracer{"off": nil, "not chosen": never} {
		work := func() {
			ctx, root := tracer.Request(outer, "")
			ctx, span := Start(ctx, "authenticate")
			span.Set("a", "b")
			span.Count("n", 1)
			span.Past("c", time.Time{}, time.Time{}, nil)
			span.End(nil)
			Of(ctx).Rename("d")
			root.End(nil)
		}
		if n := testing.AllocsPerRun(100, work); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := len(spans.Started()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

func TestSpansLieBelowEachOther(t *testing.T) {
	tracer, spans := recorded(1)
	ctx, root := tracer.Request(t.Context(), "")
	inner, child := Start(ctx, "child")
	_, grandchild := Start(inner, "grandchild")
	grandchild.End(errs.New(errs.NotFound, "SOME_REASON", "somebody@example.org is not there"))
	child.End(errors.New("somebody@example.org"))
	root.End(nil)
	ended := spans.Ended()
	if len(ended) != 3 || ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() ||
		ended[1].Parent().SpanID() != ended[2].SpanContext().SpanID() {
		t.Fatalf("%v", ended)
	}
	if ended[0].Status().Description != "SOME_REASON" || ended[1].Status().Description != "error" {
		t.Errorf("of an error its reason is noted, and nothing else: %q, %q", ended[0].Status().Description,
			ended[1].Status().Description)
	}
}

func TestATraceparentIsReadByItsGrammar(t *testing.T) {
	for text, want := range map[string]bool{
		parent + "01":                  true,
		parent + "00":                  false,
		parent + "ff":                  true,
		"cc" + parent[2:] + "01-more":  true,
		"cc" + parent[2:] + "01more":   false,
		"ff" + parent[2:] + "01":       false,
		parent + "01-more":             false,
		parent + "0":                   false,
		parent + "zz":                  false,
		strings.ToUpper(parent) + "01": false,
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01":                 false,
		"00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01": false,
		parent + "01" + strings.Repeat("a", 10<<10):                              false,
		strings.Repeat("-", 10<<10):                                              false,
	} {
		tracer, _ := recorded(0)
		_, span := tracer.Request(t.Context(), text)
		if span.Recorded() != want {
			t.Errorf("%.80q is traced: %v", text, span.Recorded())
		}
		if want && span.TraceID() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%q became trace %s", text, span.TraceID())
		}
	}
}

func TestAParentThatIsNotSampledCountsAlsoWhereEverythingIs(t *testing.T) {
	tracer, _ := recorded(1)
	if _, span := tracer.Request(t.Context(), parent+"00"); span.Recorded() {
		t.Error("the proxy has decided that this is not traced")
	}
}

func TestNobodyHasEveryRequestTraced(t *testing.T) {
	tracer, _ := recorded(0)
	at := time.Unix(1000, 0)
	for i := range 3 * maxForced {
		if got, want := tracer.mayForce(at), i < maxForced; got != want {
			t.Fatalf("request %d is traced: %v", i, got)
		}
	}
	if !tracer.mayForce(at.Add(time.Second)) {
		t.Error("a second later some may be traced again")
	}
}

func BenchmarkNotTraced(b *testing.B) {
	ctx := context.Background()
	for range 8 { // as deep as that of a request
		ctx = context.WithValue(ctx, tracerKey{}, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, span := Start(ctx, "authenticate")
		span.End(nil)
	}
}
