package oidc

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/web"
)

// Which pages of other origins may read an answer. None may send cookies.
type corsPolicy int

const (
	noOrigin      corsPolicy = iota
	clientOrigins            // those that the client that asks runs on, see allowOrigin
	everyOrigin              // it is public
)

const corsMaxAge = "7200" // seconds

// gate stands in front of an endpoint for programs.
type gate struct {
	next    http.Handler
	methods []string
	cors    corsPolicy
	public  bool // the same for everybody, and may be kept
	proof   bool // only for clients that prove who they are
}

type answerKey struct{}

// answer is the answer to the request of a context, on its way.
type answer struct {
	http.ResponseWriter
	origin    string // of the page that asks; empty for none
	challenge string // what a 401 asks for
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if !g.public {
		header.Set("Cache-Control", "no-store")
		header.Set("Pragma", "no-cache")
	}
	x := &answer{ResponseWriter: w, challenge: `Basic realm="signet", charset="UTF-8"`}
	if strings.HasSuffix(r.URL.Path, userinfoPath) {
		x.challenge = "Bearer"
	}
	g.allowAny(x, r)
	if r.Method == http.MethodOptions {
		g.preflight(x, r)
		return
	}
	if !slices.Contains(g.methods, r.Method) {
		header.Set("Allow", strings.Join(g.methods, ", "))
		refuse(x, r, errMethod, http.StatusMethodNotAllowed)
		return
	}
	if status, err := check(r); err != nil {
		refuse(x, r, err, status)
		return
	}
	if g.proof && r.Header.Get("Authorization") == "" && r.PostForm.Get("client_secret") == "" && r.PostForm.Get("client_assertion") == "" {
		refuse(x, r, grant.ErrInvalidClient, http.StatusUnauthorized)
		return
	}
	g.next.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), answerKey{}, x)))
}

var (
	errMethod   = errs.Invalid(errs.Violation{Message: "this path does not take that HTTP method: the header allow lists those it takes"})
	errQuery    = errs.Invalid(errs.Violation{Message: "nothing may be in the query string, which ends up in logs: send parameters in the body"})
	errForm     = errs.Invalid(errs.Violation{Message: "the body must be application/x-www-form-urlencoded"})
	errTwice    = errs.Invalid(errs.Violation{Message: "a parameter is sent more than once"})
	errTooLarge = errs.Invalid(errs.Violation{Message: "the body is too large"})
)

// check refuses what an endpoint for programs never takes, and reads the form. status goes with the error.
func check(r *http.Request) (status int, err error) {
	if r.URL.RawQuery != "" {
		return http.StatusBadRequest, errQuery
	}
	// A request without a body needs no type: user info may be asked for by an empty POST.
	if r.Method == http.MethodPost && (r.ContentLength != 0 || r.Header.Get("Content-Type") != "") {
		media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || media != "application/x-www-form-urlencoded" || r.Header.Get("Content-Encoding") != "" {
			return http.StatusBadRequest, errForm
		}
	}
	if err := r.ParseForm(); err != nil {
		if e, full := errors.AsType[*errs.Error](err); full { // there is no room for it, see web.Budget
			status, _, _ := oauth(e)
			return status, e
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return http.StatusRequestEntityTooLarge, errTooLarge
		}
		return http.StatusBadRequest, errForm
	}
	for _, values := range r.Form {
		if len(values) > 1 {
			return http.StatusBadRequest, errTwice
		}
	}
	return 0, nil
}

// WriteHeader adds what a 401 has to ask for.
func (x *answer) WriteHeader(status int) {
	if status == http.StatusUnauthorized && x.Header().Get("Www-Authenticate") == "" {
		x.Header().Set("Www-Authenticate", x.challenge)
	}
	x.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the writer below.
func (x *answer) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (g *gate) allowAny(x *answer, r *http.Request) {
	switch g.cors {
	case everyOrigin:
		x.Header().Set("Access-Control-Allow-Origin", "*")
	case clientOrigins:
		x.Header().Add("Vary", "Origin")
		if origins := r.Header["Origin"]; len(origins) == 1 {
			x.origin = origins[0]
		}
	}
}

// preflight answers the question of a browser. It does not say which client is going to ask, so any origin may: whether a
// page gets to read the answer is decided when there is one.
func (g *gate) preflight(x *answer, r *http.Request) {
	allow := strings.Join(append(slices.Clone(g.methods), http.MethodOptions), ", ")
	x.Header().Set("Allow", allow)
	if r.Header.Get("Access-Control-Request-Method") != "" && (g.cors == everyOrigin || x.origin != "") {
		if x.origin != "" {
			x.Header().Set("Access-Control-Allow-Origin", x.origin)
		}
		x.Header().Set("Access-Control-Allow-Methods", allow)
		x.Header().Set("Access-Control-Allow-Headers", "authorization, content-type")
		x.Header().Set("Access-Control-Max-Age", corsMaxAge)
	}
	x.ResponseWriter.WriteHeader(http.StatusNoContent)
}

// fromPage tells whether a page of some origin asks.
func fromPage(ctx context.Context) bool {
	x, ok := ctx.Value(answerKey{}).(*answer)
	return ok && x.origin != ""
}

// allowOrigin lets a page read the answer, if the client that asks runs there.
func allowOrigin(ctx context.Context, client *grant.Client) {
	x, ok := ctx.Value(answerKey{}).(*answer)
	if !ok || x.origin == "" || client.App == nil || !slices.Contains(grant.Origins(&client.App.State), x.origin) {
		return
	}
	x.Header().Set("Access-Control-Allow-Origin", x.origin)
	x.Header().Set("Access-Control-Expose-Headers", web.RequestIDHeader+", Www-Authenticate")
}
