package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/transport/rpc/fieldrules"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Limits that the API promises.
const (
	// bytes of a request, also after decompression, unless its operation has a limit of its own
	maxBody          = 1 << 20
	defaultTimeLimit = 30 * time.Second
)

// Config is what the front doors need. Services and Authenticate must be set; the zero value of everything else works.
type Config struct {
	Services []Service
	Alias    *Alias // nil: operations have no other names

	// Authenticate tells who a bearer token belongs to. For a token that is not valid it returns
	// access.ErrUnauthenticated or another *errs.Error of kind Unauthenticated; any other error is the caller's answer
	// too.
	Authenticate func(ctx context.Context, token string) (*access.Caller, error)

	// Prove checks the proof that a request has the key which its token is bound to, and gives what the next proof needs.
	// reads says that the request changes nothing. Nil: no token counts that is bound to a key.
	Prove func(ctx context.Context, r *http.Request, token, key string, reads bool) (nonce string, err error)

	// Ahead is told which objects a read will be about, before its credential is looked at, and may begin to find them:
	// the rest of the call runs with the context it returns. Nothing of what it finds may be told to a caller who has
	// not been judged. Nil: nobody wants to know.
	Ahead func(ctx context.Context, ids []string) context.Context

	// Organization is asked about calls that use a permission in another organization than the caller's own. Where
	// there is none, it returns an *errs.Error of kind NotFound; it may also refuse a sign-in that is not enough for
	// that organization. Nil: all exist.
	Organization func(ctx context.Context, caller *access.Caller, id string, p access.Permission) error

	// Proven refuses people whose credential does not prove enough to change how they sign in: all but a session of
	// their own, and one without a recent proof where recent is set. Nil: nobody proves enough.
	Proven func(ctx context.Context, caller *access.Caller, recent, person bool) error

	// Opened is told of a user whom somebody has read by access.UserSupport. Nil: nobody wants to know.
	Opened func(ctx context.Context, permit access.Permit, userID string)

	// Check lists what is wrong with a request beyond the field rules of the proto files. It must not do I/O, and must
	// not repeat secrets. rules judges by these field rules an element of a list that they are left out for.
	Check func(req proto.Message, rules call.Rules) ([]errs.Violation, error)

	// Bulk are the slots of operations with many objects. Work that must go before these operations borrows slots, see
	// fairqueue.Slots.Lend. Nil: no other work does.
	Bulk *fairqueue.Slots

	OpenAPI []byte                          // served at /openapi.json
	Ready   func(ctx context.Context) error // decides about /readyz and the gRPC health service
	// what /readyz says besides, while requests are served; no secrets. Nil: nothing
	Details     func() map[string]string
	CORSOrigins []string      // such as https://console.example.com
	TimeLimit   time.Duration // per request; 30 seconds if zero
	Streams     StreamLimits
	Log         *slog.Logger
}

// Handler serves the API inside the pipeline of package web. Make one with New.
type Handler struct {
	config  Config
	root    *node
	origins map[string]bool
	rules   fieldrules.Rules
	check   call.Rules
	unready atomic.Bool                            // it was when somebody last asked
	needs   map[access.Permission]access.APIScopes // what an application needs to hold a permission
	run     run
	stream  run // the same for streams
	streams streams
	watches streams // of the server's health, by strangers
	shares  shares
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
	if h.config.Alias != nil {
		problems = append(problems, h.mountAlias(h.config.Alias, ops)...)
	}
	for _, origin := range h.config.CORSOrigins {
		if !IsOrigin(origin) {
			problems = append(problems,
				fmt.Errorf("rpc: %q is not an origin such as https://console.example.com", origin))
		}
		h.origins[origin] = true
	}
	h.needs = needsOf(ops)
	problems = append(problems, h.mountStandard()...)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	h.run, h.stream = h.chain(), h.streamChain()
	h.check = func(part proto.Message) ([]errs.Violation, error) {
		broken, _, err := h.rules.Check(part)
		return broken, err
	}
	h.streams.begin(h.config.Streams)
	h.watches.begin(watchLimits)
	h.shares = newShares(config.Bulk)
	return h, nil
}

// mount gives an operation its path for gRPC and those for REST.
func (h *Handler) mount(op *operation) (problems []error) {
	if err := h.root.add(http.MethodPost, "/"+op.procedure, func(c *Call, _ []string) { c.serveGRPC(op) }); err != nil {
		problems = append(problems, err)
	}
	for _, b := range op.bindings {
		if err := h.root.add(b.verb, b.template, b.serve); err != nil {
			problems = append(problems, fmt.Errorf("rpc: %s: %w", op.procedure, err))
		}
	}
	return problems
}

// Serve implements web.Handler.
func (h *Handler) Serve(e *web.Exchange) {
	c := &Call{Exchange: e, h: h, limit: h.config.TimeLimit}
	c.Code = code.Code_OK.String()
	path := c.Request.URL.EscapedPath()
	serve, values := h.root.match(c.Request.Method, path)
	if serve != nil {
		h.allowOrigin(c, "")
		serve(c, values)
		return
	}
	allow := h.root.allowed(path)
	if allow == "" && c.Request.Method == http.MethodOptions && isProcedure(path) {
		// so that a page of another origin gets to see that there is no such method
		allow = http.MethodPost + ", " + http.MethodOptions
	}
	h.allowOrigin(c, allow)
	switch {
	case allow == "":
		c.serveUnknown()
	case c.Request.Method == http.MethodOptions:
		c.Header().Set("Allow", allow)
		c.WriteHeader(http.StatusNoContent)
	default:
		c.Header().Set("Allow", allow)
		c.refuse(errMethodNotAllowed)
	}
}

// Owns tells whether a path is one that programs ask for: of an operation, or below the version or a service of this
// API.
func (h *Handler) Owns(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "v1" || strings.Contains(first, ".") || h.root.allowed(path) != ""
}

// Refuse implements web.Handler.
func (h *Handler) Refuse(x *web.Exchange, err error) { (&Call{Exchange: x, h: h}).refuse(err) }

// begin makes the exchange a call of op.
func (c *Call) begin(op *operation, protocol string) {
	c.op, c.Protocol = op, protocol
	if op.streams {
		c.limit = 0 // it ends when somebody ends it
	}
	c.Info.Procedure, c.Info.Check = op.procedure, c.h.check
	if op.deprecation != "" {
		c.Header().Set("Deprecation", op.deprecation)
	}
}

// perform runs the chain. The answer is encoded then.
func (c *Call) perform() error {
	req := c.op.input.New()
	resp, err := c.h.run(c.Request.Context(), c, req.Interface())
	if link := c.op.successorOf(req); link != "" {
		c.Header().Set("Link", link)
	}
	if err != nil {
		return err
	}
	if tag := c.op.etag(resp); tag != "" {
		c.Header()["Etag"] = []string{tag}
	}
	return nil
}

// proofAlgorithms are those of package dpop, as a challenge names them.
const proofAlgorithms = `algs="ES256 EdDSA PS256"`

// challengeOf says in which way a credential has to be sent, in the words of RFC 6750 and RFC 9449.
func challengeOf(reason errs.Reason) string {
	switch reason {
	case access.TokenBound:
		return `DPoP error="invalid_token", ` + proofAlgorithms
	case access.InvalidProof, access.NonceNeeded:
		return `DPoP error="` + strings.ToLower(string(reason)) + `", ` + proofAlgorithms
	}
	return "Bearer"
}

// settle notes how the exchange failed, and sets the headers that go with that.
func (c *Call) settle(err error) *errs.Error {
	e := shown(err)
	c.Code = web.AnswerTo(e).GRPC.String()
	c.Fail(e)
	if e.Kind == errs.Unauthenticated {
		c.Header().Set("Www-Authenticate", challengeOf(e.Reason))
	}
	return e
}
