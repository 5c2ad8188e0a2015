package oidc

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Which pages of other origins may read an answer. Some libraries have the browser send cookies along (credentials:
// 'include'), which is allowed where the origin is named: no endpoint for programs reads them.
type corsPolicy int

const (
	noOrigin      corsPolicy = iota
	clientOrigins            // those that the client that asks runs on, see request.allowOrigin
	everyOrigin              // it is public
)

const corsMaxAge = "7200" // seconds

// What a 401 asks for: a client's credential, or an access token.
const (
	basicChallenge  = `Basic realm="signet", charset="UTF-8"`
	bearerChallenge = "Bearer"
	dpopChallenge   = "DPoP"
)

// endpoint serves a path for programs.
type endpoint struct {
	handle    func(*endpointRequest) (body any, err error) // body is sent as JSON; nil: nothing is
	methods   []string
	cors      corsPolicy
	public    bool   // the same for everybody, and may be kept
	challenge string // of a 401
	creates   bool   // an answer is a 201
	refusals  *refusal.Book
}

// endpointRequest is one request of a program. Its form has been read.
type endpointRequest struct {
	*http.Request
	answer http.Header // of the answer
	origin string      // of the page that asks; empty for none
}

// param gives a parameter; empty where it was not sent.
func (r *endpointRequest) param(name string) string { return r.PostForm.Get(name) }

// The headers of DPoP: proofs come in the first, and the second says what goes into the next one.
const (
	proofHeader = "Dpop"
	nonceHeader = "DPoP-Nonce"
)

// proven is the request with its proofs.
func (r *endpointRequest) proven() oauth.ProvenRequest {
	return oauth.ProvenRequest{Proofs: r.Header[proofHeader], Method: r.Method, Path: r.URL.EscapedPath()}
}

// scopes are those that are asked for.
func (r *endpointRequest) scopes() []string { return strings.Fields(r.param("scope")) }

// need refuses a request that lacks a parameter.
func (r *endpointRequest) need(names ...string) error {
	for _, name := range names {
		if r.param(name) == "" {
			return invalid(name + " missing")
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, plain *http.Request) {
	r := &endpointRequest{Request: plain, answer: w.Header()}
	if !e.public {
		r.answer.Set("Cache-Control", "no-store")
		r.answer.Set("Pragma", "no-cache")
	}
	e.readOrigin(r)
	if r.Method == http.MethodOptions {
		e.preflight(r)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := e.serve(r)
	if err != nil {
		e.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if e.creates {
		status = http.StatusCreated
	}
	writeJSON(w, status, body)
}

func (e *endpoint) serve(r *endpointRequest) (any, error) {
	if !slices.Contains(e.methods, r.Method) {
		r.answer.Set("Allow", strings.Join(e.methods, ", "))
		return nil, errMethod
	}
	if err := readForm(r.Request); err != nil {
		return nil, err
	}
	return e.handle(r)
}

// refuse answers with an error of RFC 6749, and notes it for the log.
func (e *endpoint) refuse(w http.ResponseWriter, r *endpointRequest, err error) {
	web.Failed(r.Context(), err)
	e.refusals.Note(err)
	answer := refusalOf(err)
	if answer.Status == http.StatusUnauthorized && r.answer.Get("Www-Authenticate") == "" &&
		!(e.challenge == basicChallenge && r.namesClient()) {
		r.answer.Set("Www-Authenticate", e.challenge)
	}
	writeJSON(w, answer.Status, map[string]string{"error": answer.Error, "error_description": answer.Description})
}

// refuseEarly answers a request of which nothing has been read. Its client is not known, so no page may read the answer
// but that it waits.
func (e *endpoint) refuseEarly(w http.ResponseWriter, plain *http.Request, err error) {
	r := &endpointRequest{Request: plain, answer: w.Header()}
	r.answer.Set("Cache-Control", "no-store")
	e.readOrigin(r)
	e.refuse(w, r, err)
}

var (
	errMethod   = errs.Invalid(errs.Violation{Message: "this path does not support that HTTP method: the header allow lists the supported ones"}).WithStatus(http.StatusMethodNotAllowed)
	errQuery    = errs.Invalid(errs.Violation{Message: "parameters must not be in the query string, which ends up in logs: send them in the body"})
	errForm     = errs.Invalid(errs.Violation{Message: "the body must be application/x-www-form-urlencoded"})
	errTwice    = errs.Invalid(errs.Violation{Message: "a parameter is sent more than once"})
	errTooLarge = errs.Invalid(errs.Violation{Message: "the body is too large"}).WithStatus(http.StatusRequestEntityTooLarge)
)

// readForm reads the form, and refuses what an endpoint for programs never takes.
func readForm(r *http.Request) error {
	if r.URL.RawQuery != "" {
		return errQuery
	}
	// A request without a body needs no type: user info may be asked for by an empty POST.
	if r.Method == http.MethodPost && (r.ContentLength != 0 || r.Header.Get("Content-Type") != "") {
		media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || media != "application/x-www-form-urlencoded" || r.Header.Get("Content-Encoding") != "" {
			return errForm
		}
	}
	if err := r.ParseForm(); err != nil {
		if e, full := errors.AsType[*errs.Error](err); full { // there is no room for it, see web.Budget
			return e
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return errTooLarge
		}
		return errForm
	}
	for _, values := range r.Form {
		if len(values) > 1 {
			return errTwice
		}
	}
	return nil
}

func (e *endpoint) readOrigin(r *endpointRequest) {
	switch e.cors {
	case everyOrigin:
		r.answer.Set("Access-Control-Allow-Origin", "*")
	case clientOrigins:
		r.answer.Add("Vary", "Origin")
		if origins := r.Header["Origin"]; len(origins) == 1 {
			r.origin = origins[0]
		}
	}
}

// preflight answers the question of a browser. It does not say which client is going to ask, so any origin may: whether
// a page gets to read the answer is decided when there is one.
func (e *endpoint) preflight(r *endpointRequest) {
	allow := strings.Join(append(slices.Clone(e.methods), http.MethodOptions), ", ")
	r.answer.Set("Allow", allow)
	if r.Header.Get("Access-Control-Request-Method") == "" || e.cors != everyOrigin && r.origin == "" {
		return
	}
	if r.origin != "" {
		r.nameOrigin()
	}
	r.answer.Set("Access-Control-Allow-Methods", allow)
	r.answer.Set("Access-Control-Allow-Headers", "authorization, content-type, dpop")
	r.answer.Set("Access-Control-Max-Age", corsMaxAge)
}

// allowOrigin lets a page read the answer, if the client that asks runs there.
func (r *endpointRequest) allowOrigin(client *oauth.Client) {
	if r.origin == "" || client.App == nil || !slices.Contains(client.App.Data.Origins(), r.origin) {
		return
	}
	r.nameOrigin()
	r.answer.Set("Access-Control-Expose-Headers",
		web.RequestIDHeader+", Www-Authenticate, Retry-After, RateLimit, RateLimit-Policy, "+nonceHeader)
}

// nameOrigin lets the page that asks read the answer, also where the browser has sent cookies along. Browsers take the
// second header only beside an origin that is named, never beside "*".
func (r *endpointRequest) nameOrigin() {
	r.answer.Set("Access-Control-Allow-Origin", r.origin)
	r.answer.Set("Access-Control-Allow-Credentials", "true")
}
