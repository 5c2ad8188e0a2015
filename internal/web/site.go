package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
)

// Limits of a request that is not of the API.
const (
	maxBody          = 64 << 10
	defaultTimeLimit = 30 * time.Second
)

// Config is what a site needs. Otherwise must be set; the zero value of everything else works.
type Config struct {
	Otherwise      http.Handler   // answers whatever no handler is registered for
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	TimeLimit      time.Duration  // per request; 30 seconds if zero
	Log            *slog.Logger
	Metrics        prometheus.Registerer
	Now            func() time.Time
}

// Site serves handlers at fixed paths, and leaves everything else to another handler. Register all of them before it
// serves.
//
// A path is taken literally, as the API does: nothing is cleaned and nobody is redirected.
type Site struct {
	config   Config
	handlers map[string]http.Handler
	metrics  *Metrics
}

// New makes a site without handlers.
func New(config Config) (*Site, error) {
	if config.Otherwise == nil {
		return nil, errors.New("web: Config.Otherwise is not set")
	}
	if config.TimeLimit <= 0 {
		config.TimeLimit = defaultTimeLimit
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	metrics, err := NewMetrics(config.Metrics)
	return &Site{config: config, handlers: map[string]http.Handler{}, metrics: metrics}, err
}

// Handle serves a path. One that ends with a slash stands for everything below it, down to the next slash; but / is
// the way in and nothing else.
func (s *Site) Handle(path string, handler http.Handler) { s.handlers[path] = handler }

// Paths are those that are registered, in order.
func (s *Site) Paths() []string { return slices.Sorted(maps.Keys(s.handlers)) }

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	handler, known := s.handlers[path]
	if end := strings.LastIndexByte(path, '/'); !known && end > 0 {
		path = path[:end+1]
		handler, known = s.handlers[path]
	}
	if !known {
		s.config.Otherwise.ServeHTTP(w, r)
		return
	}
	s.serve(w, r, path, handler)
}

// exchange is one request and its answer.
type exchange struct {
	http.ResponseWriter
	info    call.Info
	status  int // 0: not answered yet
	failure error
}

type exchangeKey struct{}

// Failed notes why the request of ctx is refused, for the log. What is shown to the caller is the handler's business, but for the header
// that says when to come again.
func Failed(ctx context.Context, err error) {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		x.failure = err
		RetryAfter(x.Header(), err)
	}
}

// RetryAfter sets the header that says when to come again, where an error does.
func RetryAfter(h http.Header, err error) {
	if e, ours := errors.AsType[*errs.Error](err); ours && e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the writer below.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (s *Site) serve(w http.ResponseWriter, r *http.Request, path string, handler http.Handler) {
	start := s.config.Now()
	x := &exchange{ResponseWriter: w, info: call.Info{
		RequestID: RequestID(r.Header), Procedure: path, Peer: Peer(r, s.config.TrustedProxies), UserAgent: UserAgent(r.Header)}}
	header := w.Header()
	header[RequestIDHeader] = []string{x.info.RequestID}
	header["X-Content-Type-Options"] = []string{"nosniff"}
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p) // net/http's own way to drop a connection
			}
			x.failure = &panicked{value: p, stack: debug.Stack()}
			if x.status == 0 {
				http.Error(x, "Something went wrong inside the server. Report this request id to its operator: "+x.info.RequestID, http.StatusInternalServerError)
			}
		}
		s.observe(x, path, s.config.Now().Sub(start))
	}()
	ctx, cancel := context.WithTimeout(r.Context(), s.config.TimeLimit)
	defer cancel()
	ctx = call.With(context.WithValue(ctx, exchangeKey{}, x), &x.info)
	r = r.WithContext(ctx)
	if r.Body != nil && r.ContentLength > maxBody {
		r.Body = tooLarge{} // nothing of it is read, and nobody is asked to send it
	} else {
		r.Body = http.MaxBytesReader(x, r.Body, maxBody)
	}
	handler.ServeHTTP(x, r)
}

// tooLarge is a body that is refused by its length alone.
type tooLarge struct{}

func (tooLarge) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: maxBody} }
func (tooLarge) Close() error             { return nil }

// panicked is a recovered panic. Only the log sees it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// observe writes the one line of log that every request gets, and counts it.
func (s *Site) observe(x *exchange, path string, took time.Duration) {
	status := x.status
	if status == 0 {
		status = http.StatusOK
	}
	attrs := []slog.Attr{
		slog.String("requestId", x.info.RequestID),
		slog.String("procedure", path),
		slog.String("protocol", "web"),
		slog.Int("code", status),
		slog.Duration("duration", took),
		slog.String("peer", x.info.Peer.String()),
	}
	if x.info.Caller != nil {
		attrs = append(attrs, slog.String("user", x.info.Caller.UserID))
	}
	level := slog.LevelInfo
	switch e, ours := errors.AsType[*errs.Error](x.failure); {
	case x.failure == nil:
	case !ours || e.Kind == errs.Internal:
		level = slog.LevelError
		attrs = append(attrs, slog.String("cause", x.failure.Error()))
		if p, ok := errors.AsType[*panicked](x.failure); ok {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	default:
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
		if e.Kind == errs.Unavailable {
			level = slog.LevelWarn
		}
		// The cause of a refusal may speak of what the caller sent; that of a failure is what the operator needs.
		if e.Cause != nil && (e.Kind == errs.Unavailable || e.Kind == errs.DeadlineExceeded) {
			attrs = append(attrs, slog.String("cause", e.Cause.Error()))
		}
	}
	s.config.Log.LogAttrs(context.Background(), level, "request", attrs...)
	s.metrics.Count(path, "web", strconv.Itoa(status), took)
}
