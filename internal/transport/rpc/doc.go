// Package rpc serves the API: REST JSON, gRPC and gRPC-Web on one http.Handler, with one chain of checks in front of
// every operation.
//
// A request goes through four parts:
//
//	Handler   finds its route (router.go), also under another API's name (alias.go), and answers browsers' preflights (cors.go)
//	a door    knows the wire, and nothing else: rest.go (JSON bodies, path and query parameters) or grpc.go (gRPC and
//	          gRPC-Web frames). It hands a Call to the chain and renders what comes back
//	the chain guard, time limit, credential, decoding and rules, scope and permission (chain.go)
//	operation the method of the service that was handed in, found by its name in the descriptor (operation.go)
//
// The descriptors are the only description of the API: paths come from google.api.http, field rules from buf.validate,
// and who may call from signet.v1.rule. New returns an error if an operation lacks one of them, so nothing is served by
// accident. A path that no descriptor names is answered 404 before anything else runs.
//
// The order of the chain matters, because an answer tells the caller something. A caller without a valid credential
// learns nothing about the request: 401 comes before the body is read. A caller who sends an invalid request learns
// everything that is wrong with it, but not whether it would be allowed: 400 comes before 403. Permission is decided
// last. Decoding is therefore a step of the chain, and the door only provides the function for it. If a request may be
// larger than 1 MiB, a caller who has the permission in no organization is refused before the body is read.
//
// A stream (stream.go) goes through the same parts and a chain of the same steps. It has no time limit and is counted.
// It ends when its caller leaves, when the server stops, when nobody reads, or when its operation finds that the caller
// has lost the permission. outlets.go writes it: frames of gRPC, or server-sent events for REST.
//
// Errors have one model (package errs) and one rendering (errors.go): the same google.rpc.Status as a JSON body, and in
// the trailers of gRPC and gRPC-Web. An error that is not an *errs.Error is a bug; its text goes to the log under the
// request id and never to the caller.
//
// This package reads and writes the frames of gRPC itself, without a library. Unary calls are simple (five bytes and a
// message). connect-go answers some errors by itself, without our details, reads on through a message it has already
// found too large, and unpacks a compressed one to its end to report its size. Reflection and health checks do come
// from that family of libraries (standard.go).
package rpc
