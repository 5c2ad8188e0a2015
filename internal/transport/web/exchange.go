package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// Exchange is one request, its answer, and what the log says about them.
type Exchange struct {
	http.ResponseWriter
	Request  *http.Request
	Info     call.Info
	Start    time.Time
	Protocol string // rest, grpc, grpc-web, web; http for what is neither an operation nor a page
	Code     string // how it ended; empty: as the HTTP status says
	Failure  error  // why it was refused
	Quiet    bool   // a probe: logged for debugging only, and not counted
	Metrics  *Metrics

	limits  *ratelimit.Limits
	counted Counted // see FromNetwork
	status  int     // 0: not answered yet
	span    tracing.Span
}

type exchangeKey struct{}

// Failed is Fail for handlers that know only the context.
func Failed(ctx context.Context, err error) {
	if x, ok := ctx.Value(exchangeKey{}).(*Exchange); ok {
		x.Fail(err)
	}
}

// Fail notes why the request is refused, and sets the header that says when to try again if err does.
func (x *Exchange) Fail(err error) {
	err = known(err)
	x.Failure = err
	if e, ours := errors.AsType[*errs.Error](err); ours && e.RetryAfter > 0 {
		x.Header().Set("Retry-After", errs.Seconds(e.RetryAfter))
	}
}

// Answered tells whether the answer has begun.
func (x *Exchange) Answered() bool { return x.status != 0 }

// WriteHeader implements http.ResponseWriter.
func (x *Exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *Exchange) Write(p []byte) (int, error) {
	x.status = cmp.Or(x.status, http.StatusOK)
	return x.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the writer below.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// observe writes the one line of log that every request gets, and counts it. Nothing a caller sends gets into either,
// except a request id of harmless characters and, in the log, an address that was refused (errs.Error.Note): no path,
// header, body or token.
func (s *Site) observe(x *Exchange) {
	took := s.config.Now().Sub(x.Start)
	code := x.Code
	if code == "" {
		code = strconv.Itoa(cmp.Or(x.status, http.StatusOK))
	}
	level, why := explain(x.Failure)
	x.endSpan(code, level)
	if x.Quiet && level < slog.LevelError {
		level = slog.LevelDebug
	}
	if log := s.config.Log.Handler(); log.Enabled(x.Request.Context(), level) {
		// Straight to the handler: a Logger looks up each time from which line of code it is called.
		line := slog.NewRecord(time.Now(), level, "request", 0)
		line.AddAttrs(append(x.attrs(code, took), why...)...)
		_ = log.Handle(x.Request.Context(), line) // there is nowhere to complain, as with a Logger
	}
	if !x.Quiet {
		x.Metrics.Count(cmp.Or(x.Info.Procedure, "unknown"), x.Protocol, code, reasonOf(x.Failure), took)
	}
}

// attrs is what the log says of every request, with room for why it failed.
func (x *Exchange) attrs(code string, took time.Duration) []slog.Attr {
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs,
		slog.String("requestId", x.Info.RequestID),
		slog.String("operation", cmp.Or(x.Info.Procedure, "-")),
		slog.String("protocol", x.Protocol),
		slog.String("code", code),
		slog.Duration("duration", took),
		slog.String("peer", x.Info.Peer.String()))
	if x.Info.Caller != nil {
		attrs = append(attrs, slog.String("user", x.Info.Caller.UserID))
	}
	if x.span.Recorded() {
		attrs = append(attrs, slog.String("traceId", x.span.TraceID()))
	}
	return attrs
}

// reasonOf gives the reason of a refusal; empty where there is none.
func reasonOf(failure error) string {
	if failure == nil {
		return ""
	}
	if e, ours := errors.AsType[*errs.Error](failure); ours {
		return string(e.Reason)
	}
	return "INTERNAL"
}

// trace begins the span of the request, if it is one of those that are traced. Only proxies that are trusted are
// believed that it is part of a trace.
func (s *Site) trace(x *Exchange) {
	if s.config.Tracer == nil {
		return
	}
	parent := tracing.ParentOf(x.Request.Header)
	if parent != "" {
		if direct, _ := parseAddr(x.Request.RemoteAddr); !contain(s.config.TrustedProxies, direct) {
			parent = ""
		}
	}
	var ctx context.Context
	if ctx, x.span = s.config.Tracer.Request(x.Request.Context(), parent); x.span.Recorded() {
		x.Request = x.Request.WithContext(ctx)
	}
}

// endSpan says in the span what the log says, but for who it was.
func (x *Exchange) endSpan(code string, level slog.Level) {
	if !x.span.Recorded() {
		return
	}
	x.span.Rename(cmp.Or(x.Info.Procedure, "unknown"))
	x.span.Set("signet.operation", cmp.Or(x.Info.Procedure, "unknown"))
	x.span.Set("signet.protocol", x.Protocol)
	x.span.Set("signet.code", code)
	x.span.Set("signet.request_id", x.Info.RequestID)
	if level >= slog.LevelWarn {
		x.span.End(x.Failure)
		return
	}
	if e, ours := errors.AsType[*errs.Error](x.Failure); ours { // the caller's mistake, and no failure of ours
		x.span.Set("signet.reason", string(e.Reason))
	}
	x.span.End(nil)
}

// explain gives what the log says about a refusal, and how loud.
func explain(failure error) (level slog.Level, attrs []slog.Attr) {
	if failure == nil {
		return slog.LevelInfo, nil
	}
	cause, level := failure, slog.LevelError
	if e, ours := errors.AsType[*errs.Error](failure); ours {
		attrs, cause = append(attrs, slog.String("reason", string(e.Reason))), e.Cause
		if e.Note != "" {
			attrs = append(attrs, slog.String("why", e.Note))
		}
		switch e.Kind {
		case errs.Internal:
			cause = cmp.Or(e.Cause, failure)
		case errs.Unavailable:
			level = slog.LevelWarn
		case errs.DeadlineExceeded, errs.Cancelled:
			level = slog.LevelInfo
		default:
			// The cause of a refusal may speak of what the caller sent; that of a failure is what the operator needs.
			level, cause = slog.LevelInfo, nil
		}
	}
	if cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	if p, ok := errors.AsType[*errs.Panicked](cause); ok {
		attrs = append(attrs, slog.String("stack", p.Stack))
	}
	return level, attrs
}
