package rpc

import (
	"net/http"
	"net/url"
	"strings"
)

// What pages of other origins may send and see.
const (
	corsRequestHeaders = "authorization, content-type, x-service-orgid, if-match, idempotency-key, x-request-id, " +
		"x-grpc-web, x-user-agent, grpc-timeout, last-event-id, dpop"
	corsResponseHeaders = "grpc-status, grpc-message, grpc-status-details-bin, etag, deprecation, link, x-request-id, " +
		"retry-after, ratelimit, ratelimit-policy, www-authenticate, dpop-nonce"
	corsMaxAge = "7200" // seconds; browsers keep a preflight no longer anyway
)

// IsOrigin tells whether a browser would ever send this as the origin of a page: scheme, host and port, in lower case.
func IsOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		!strings.Contains(u.Host, "*") &&
		origin == u.Scheme+"://"+u.Host && origin == strings.ToLower(origin)
}

// isProcedure tells whether a path is one that gRPC would ask for: a service, which has a package, and a method.
func isProcedure(path string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return ok && strings.Contains(service, ".") && method != "" && !strings.Contains(method, "/")
}

// allowOrigin sets the headers that let a browser hand the answer to a page of a configured origin. Credentials in the
// browser's sense stay off: the API knows no cookies. A preflight is told which methods there are.
func (h *Handler) allowOrigin(c *Call, methods string) {
	if len(h.origins) == 0 {
		return
	}
	header := c.Header()
	header.Add("Vary", "Origin")
	origins := c.Request.Header["Origin"]
	if len(origins) != 1 || !h.origins[origins[0]] {
		return
	}
	header.Set("Access-Control-Allow-Origin", origins[0])
	preflight := c.Request.Method == http.MethodOptions && c.Request.Header.Get("Access-Control-Request-Method") != ""
	switch {
	case preflight && methods != "":
		header.Set("Access-Control-Allow-Methods", methods)
		header.Set("Access-Control-Allow-Headers", corsRequestHeaders)
		header.Set("Access-Control-Max-Age", corsMaxAge)
	case !preflight:
		header.Set("Access-Control-Expose-Headers", corsResponseHeaders)
	}
}
