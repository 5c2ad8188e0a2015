package web

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// Limits of a request that is not of the API.
const (
	maxBody          = 64 << 10
	defaultTimeLimit = 30 * time.Second
)

// Config is what a site needs. API must be set; the zero value of everything else works.
type Config struct {
	API            Handler        // answers whatever no page is registered for
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	TimeLimit      time.Duration  // per page; 30 seconds if zero
	Log            *slog.Logger
	Metrics        *Metrics
	Limits         *ratelimit.Limits // nil: none
	Tracer         *tracing.Tracer   // nil: nothing is traced
	Now            func() time.Time
}

// Handler answers requests inside the pipeline.
type Handler interface {
	Serve(x *Exchange)
	// Refuse notes why Serve failed, and answers if Serve has not done so.
	Refuse(x *Exchange, err error)
}

// Site is the pipeline of all requests, to the API, the OpenID Connect provider and the pages alike: request id, client
// address, panic guard, log and metrics. Pages have fixed paths; everything else belongs to the API. Register all pages
// before it serves.
//
// A path is taken literally: nothing is cleaned and nobody is redirected.
type Site struct {
	config Config
	pages  map[string]page
	parts  map[string]bool // first parts of their paths
	trees  []page
	lost   page // nil handler: the API answers everybody
	isAPI  func(path string) bool

	refused func(w http.ResponseWriter, r *http.Request, err error)
}

// New makes a site without pages.
func New(config Config) (*Site, error) {
	if config.API == nil {
		return nil, errors.New("web: Config.API is not set")
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
	return &Site{config: config, pages: map[string]page{}, parts: map[string]bool{}}, nil
}

// Handle serves a page. A path that ends with a slash stands for everything below it, down to the next slash; but / is
// the way in and nothing else. A * stands for an identifier, with one part behind it, and never for the first part.
func (s *Site) Handle(path string, handler http.Handler) {
	s.parts[firstPart(path)] = true
	s.pages[path] = s.page(path, handler)
}

// HandleRefused says how people are told that a request is refused before its page has seen it.
func (s *Site) HandleRefused(refused func(w http.ResponseWriter, r *http.Request, err error)) {
	s.refused = refused
}

func (s *Site) page(path string, handler http.Handler) page {
	entry, ok := handler.(Entry)
	if !ok {
		entry.Handler = handler
	}
	return page{s, path, entry}
}

// HandleTree serves everything below a path that ends with a slash, however deep, unless a page has a path of its own
// there.
func (s *Site) HandleTree(path string, handler http.Handler) {
	s.trees = append(s.trees, s.page(path, handler))
}

// HandleLost shows a page to people who ask for a path that does not exist. isAPI tells which paths are for programs.
// Those paths, and clients that do not accept HTML, get the API's answer.
func (s *Site) HandleLost(handler http.Handler, isAPI func(path string) bool) {
	s.lost, s.isAPI = s.page("unknown", handler), isAPI
}

// Paths are those of the pages, in order. One that ends with a slash has others below it.
func (s *Site) Paths() []string {
	paths := slices.Collect(maps.Keys(s.pages))
	for _, tree := range s.trees {
		paths = append(paths, tree.path)
	}
	slices.Sort(paths)
	return paths
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{
		ResponseWriter: w,
		Request:        r,
		Start:          s.config.Now(),
		Protocol:       "http",
		Metrics:        s.config.Metrics,
		limits:         s.config.Limits,
		Info: call.Info{
			RequestID: RequestID(r.Header), Peer: Peer(r, s.config.TrustedProxies), UserAgent: UserAgent(r.Header)},
	}
	w.Header()[RequestIDHeader] = []string{x.Info.RequestID}
	s.trace(x)
	handler := s.handler(r)
	defer s.observe(x)
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p) // net/http's own way to drop a connection
		default:
			handler.Refuse(x, errs.Recovered(p))
		}
	}()
	handler.Serve(x)
}

// handler gives the page at a path, or the API.
func (s *Site) handler(r *http.Request) Handler {
	path := r.URL.EscapedPath()
	if s.parts[firstPart(path)] { // most requests are to the API
		if p, known := s.pageAt(path); known {
			return p
		}
	}
	for _, tree := range s.trees {
		if strings.HasPrefix(path, tree.path) {
			return tree
		}
	}
	if s.lost.entry.Handler != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(r.Header.Get("Accept"), "text/html") && !s.isAPI(path) {
		return s.lost
	}
	return s.config.API
}

// firstPart is a path up to its second slash.
func firstPart(path string) string {
	if path != "" {
		if end := strings.IndexByte(path[1:], '/'); end >= 0 {
			return path[:end+1]
		}
	}
	return path
}

func (s *Site) pageAt(path string) (p page, known bool) {
	if p, known = s.pages[path]; known {
		return p, true
	}
	if end := strings.LastIndexByte(path, '/'); end > 0 {
		if p, known = s.pages[path[:end+1]]; known {
			return p, true
		}
		p, known = s.pages[path[:strings.LastIndexByte(path[:end], '/')+1]+"*"+path[end:]]
	}
	return p, known
}

// page is a handler that is not of the API.
type page struct {
	site  *Site
	path  string
	entry Entry
}

// Serve implements Handler.
func (p page) Serve(x *Exchange) {
	x.Protocol, x.Info.Procedure = "web", p.path
	x.Header()["X-Content-Type-Options"] = []string{"nosniff"}
	ctx, cancel := context.WithTimeout(x.Request.Context(), p.site.config.TimeLimit)
	defer cancel()
	r := x.Request.WithContext(call.With(context.WithValue(ctx, exchangeKey{}, x), &x.Info))
	if err := x.FromNetwork(p.entry.Counted); err != nil {
		p.refuseEarly(x, r, err)
		return
	}
	if r.Body != nil && r.ContentLength > maxBody {
		r.Body = tooLarge{} // nothing of it is read, and nobody is asked to send it
	} else {
		r.Body = http.MaxBytesReader(x, r.Body, maxBody)
	}
	p.entry.ServeHTTP(x, r)
}

// Refuse implements Handler.
func (p page) Refuse(x *Exchange, err error) {
	x.Failure = err
	if !x.Answered() {
		http.Error(x, "An internal error occurred. Give this request id to the operator: "+x.Info.RequestID,
			http.StatusInternalServerError)
	}
}

// tooLarge is a body that is refused by its length alone.
type tooLarge struct{}

func (tooLarge) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: maxBody} }
func (tooLarge) Close() error             { return nil }
