package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/rpc/fieldrules"
	"github.com/signet-idm/signet/internal/web"
)

// Limits that the API promises.
const (
	maxBody          = 1 << 20 // bytes of a request, also after decompression, unless its operation has a limit of its own
	defaultTimeLimit = 30 * time.Second
)

// Config is what the front doors need. Services and Authenticate must be set; the zero value of everything else works.
type Config struct {
	Services []Service

	// Rules are what Compile has made of the package of the services. Nil: it is done when the handler is made.
	Rules *fieldrules.Rules

	// Authenticate tells who a bearer token belongs to. For a token that is not valid it returns access.ErrUnauthenticated or
	// another *errs.Error of kind Unauthenticated; any other error is the caller's answer too.
	Authenticate func(ctx context.Context, token string) (*access.Caller, error)

	// Ahead is told which objects a read will be about, before its credential is looked at, and may begin to find them: the rest of
	// the call runs with the context it returns. Nothing of what it finds may be told to a caller who has not been judged. Nil: nobody
	// wants to know.
	Ahead func(ctx context.Context, ids []string) context.Context

	// Organization is asked about calls that concern another organization than the caller's own. Where there is none, it
	// returns an *errs.Error of kind NotFound. Nil: all exist.
	Organization func(ctx context.Context, id string) error

	// Proven refuses people whose credential does not prove enough to change how they sign in: all but a session of their own, and
	// one without a recent proof where recent is set. Nil: nobody proves enough.
	Proven func(ctx context.Context, caller *access.Caller, recent bool) error

	// Check lists what is wrong with a request beyond the field rules of the proto files. It must not do I/O, and must not
	// repeat secrets. rules judges by these field rules an element of a list that they are left out for.
	Check func(req proto.Message, rules call.Rules) ([]errs.Violation, error)

	OpenAPI        []byte                          // served at /openapi.json
	Ready          func(ctx context.Context) error // decides about /readyz and the gRPC health service
	Lacking        map[string]string               // what /readyz says is missing though requests are served; no secrets
	CORSOrigins    []string                        // such as https://console.example.com
	TrustedProxies []netip.Prefix                  // whose X-Forwarded-For is believed
	TimeLimit      time.Duration                   // per request; 30 seconds if zero
	Streams        StreamLimits
	Log            *slog.Logger
	Metrics        prometheus.Registerer
	Now            func() time.Time
}

// Handler serves the API. Make one with New.
type Handler struct {
	config  Config
	root    *node
	origins map[string]bool
	rules   *fieldrules.Rules
	check   call.Rules
	needs   map[access.Permission]access.APIScopes // what an application needs to hold a permission
	run     run
	stream  run // the same for streams
	streams streams
	shares  shares
	metrics *web.Metrics
}

// New builds the handler from the descriptors of the services. It fails, naming every culprit, if an RPC has no access
// rule, no REST path or no implementation, if two of them have the same path, or if a setting makes no sense.
func New(config Config) (*Handler, error) {
	h := &Handler{config: config, root: &node{}, origins: map[string]bool{}}
	if h.config.Authenticate == nil {
		return nil, errors.New("rpc: Config.Authenticate is not set")
	}
	if h.config.TimeLimit <= 0 {
		h.config.TimeLimit = defaultTimeLimit
	}
	if h.config.Log == nil {
		h.config.Log = slog.New(slog.DiscardHandler)
	}
	if h.config.Now == nil {
		h.config.Now = time.Now
	}
	ops := map[string]*operation{}
	var problems []error
	for _, s := range h.config.Services {
		found, err := newOperations(s)
		if err != nil {
			problems = append(problems, err)
		}
		for _, op := range found {
			if ops[op.procedure] != nil {
				problems = append(problems, fmt.Errorf("rpc: %s is implemented twice", op.procedure))
				continue
			}
			ops[op.procedure] = op
			problems = append(problems, h.mount(op)...)
		}
	}
	for _, origin := range h.config.CORSOrigins {
		if !IsOrigin(origin) {
			problems = append(problems, fmt.Errorf("rpc: %q is not an origin such as https://console.example.com", origin))
		}
		h.origins[origin] = true
	}
	h.needs = needsOf(ops)
	problems = append(problems, h.mountStandard()...)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	var err error
	if h.rules = h.config.Rules; h.rules == nil {
		var inputs []protoreflect.MessageDescriptor
		for _, op := range ops {
			inputs = append(inputs, op.input.Descriptor())
		}
		if h.rules, err = fieldrules.Of(inputs...); err != nil {
			return nil, err
		}
	}
	if h.metrics, err = web.NewMetrics(h.config.Metrics); err != nil {
		return nil, err
	}
	h.run, h.stream = h.chain(), h.streamChain()
	h.check = func(part proto.Message) ([]errs.Violation, error) {
		broken, _, err := h.rules.Check(part)
		return broken, err
	}
	h.streams.begin(h.config.Streams)
	h.shares = newShares()
	return h, nil
}

// mount gives an operation its path for gRPC and those for REST.
func (h *Handler) mount(op *operation) (problems []error) {
	if err := h.root.add(http.MethodPost, "/"+op.procedure, func(x *exchange, _ []string) { x.serveGRPC(op) }); err != nil {
		problems = append(problems, err)
	}
	for _, b := range op.bindings {
		if err := h.root.add(b.verb, b.template, b.serve); err != nil {
			problems = append(problems, fmt.Errorf("rpc: %s: %w", op.procedure, err))
		}
	}
	return problems
}

// exchange is one HTTP request, its answer, and what the log will say about them.
type exchange struct {
	Call
	h        *Handler
	w        http.ResponseWriter
	r        *http.Request
	start    time.Time
	protocol string      // rest, grpc, grpc-web, or http for what is no operation
	known    string      // the procedure, once it is clear that there is one
	quiet    bool        // a probe: log it for debugging only
	code     code.Code   // how it ended
	failure  *errs.Error // why
	answered bool
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, w: w, r: r, start: h.config.Now(), protocol: "http"}
	x.header = r.Header
	x.limit = h.config.TimeLimit
	x.info.RequestID = web.RequestID(r.Header)
	x.info.Peer = web.Peer(r, h.config.TrustedProxies)
	x.info.UserAgent = web.UserAgent(r.Header)
	w.Header()[web.RequestIDHeader] = []string{x.info.RequestID}
	defer x.observe()
	defer func() {
		// The chain has a guard of its own; this one is for mistakes in the doors.
		if p := recover(); p != nil {
			err := asPanic(p)
			if x.answered {
				x.settle(err)
				return
			}
			x.refuse(err)
		}
	}()

	path := r.URL.EscapedPath()
	serve, values := h.root.match(r.Method, path)
	if serve != nil {
		h.allowOrigin(x, "")
		serve(x, values)
		return
	}
	allow := h.root.allowed(path)
	h.allowOrigin(x, allow)
	switch {
	case allow == "":
		x.serveUnknown()
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", allow)
		x.answered = true
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", allow)
		x.refuse(errMethodNotAllowed)
	}
}

// begin makes the exchange a call of op.
func (x *exchange) begin(op *operation, protocol string) {
	x.op, x.known, x.protocol = op, op.procedure, protocol
	if op.streams {
		x.limit = 0 // it ends when somebody ends it
	}
	x.info.Procedure, x.info.Check = op.procedure, x.h.check
	if op.deprecation != "" {
		x.w.Header().Set("Deprecation", op.deprecation)
	}
	if op.successor != "" {
		x.w.Header().Set("Link", op.successor)
	}
}

// perform runs the chain.
func (x *exchange) perform() (proto.Message, error) {
	resp, err := x.h.run(x.r.Context(), &x.Call, x.op.input.New().Interface())
	if err != nil {
		return nil, err
	}
	if tag := x.op.etag(resp); tag != "" {
		x.w.Header()["Etag"] = []string{tag}
	}
	return resp, nil
}

// settle notes how the exchange failed, and sets the headers that go with that.
func (x *exchange) settle(err error) *errs.Error {
	x.failure = shown(err)
	x.code = standingOf(x.failure).code
	if !x.answered {
		setErrorHeaders(x.w.Header(), x.failure)
	}
	return x.failure
}
