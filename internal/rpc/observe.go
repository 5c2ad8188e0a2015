package rpc

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/signet-idm/signet/internal/errs"
)

// observe writes the one line of log that every request gets, and counts it. Nothing a caller sends gets into either,
// except a request id of harmless characters: no path, header, body or token.
func (x *exchange) observe() {
	took := x.h.config.Now().Sub(x.start)
	procedure := x.known
	if procedure == "" {
		procedure = "-"
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("requestId", x.info.RequestID),
		slog.String("procedure", procedure),
		slog.String("protocol", x.protocol),
		slog.String("code", x.code.String()),
		slog.Duration("duration", took),
		slog.String("peer", x.info.Peer.String()))
	if x.info.Caller != nil {
		attrs = append(attrs, slog.String("user", x.info.Caller.UserID))
	}
	level := slog.LevelInfo
	if x.quiet {
		level = slog.LevelDebug
	}
	if e := x.failure; e != nil {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
		switch e.Kind {
		case errs.Internal:
			level = slog.LevelError
		case errs.Unavailable:
			level = slog.LevelWarn
		}
		// The cause of a refusal may speak of what the caller sent; that of a failure is what the operator needs.
		if e.Cause != nil && (level > slog.LevelInfo || e.Kind == errs.DeadlineExceeded) {
			attrs = append(attrs, slog.String("cause", e.Cause.Error()))
		}
		if p, ok := errors.AsType[*panicked](e.Cause); ok {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	x.h.config.Log.LogAttrs(x.r.Context(), level, "request", attrs...)
	if !x.quiet {
		x.h.metrics.Count(cmp.Or(x.known, "unknown"), x.protocol, x.code.String(), took)
	}
}
