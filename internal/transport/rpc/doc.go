// Package rpc is the way in: REST JSON, gRPC and gRPC-Web on one http.Handler, and the one chain of checks in front of
// every operation.
//
// A request goes through four hands:
//
//	Handler   finds its route (router.go), also under another API's name (alias.go), and answers browsers' preflights (cors.go)
//	a door    knows the wire, and nothing else: rest.go (JSON bodies, path and query parameters) or grpc.go (gRPC and
//	          gRPC-Web frames). It hands a Call to the chain and renders what comes back
//	the chain guard, time limit, credential, decoding and rules, scope and permission (chain.go)
//	operation the method of the service that was handed in, found by its name in the descriptor (operation.go)
//
// The descriptors are the only description of the API: paths come from google.api.http, field rules from
// buf.validate, and who may call from signet.v1.rule. New refuses to start with an operation that lacks one of them, so
// nothing is served by accident; a path that no descriptor names is answered 404 before anything else runs.
//
// Order matters in the chain, because an answer tells the caller something. Who has no valid credential learns nothing
// about the request (401 comes before the body is even read); who sends nonsense learns all of what is wrong with it,
// but not whether they would be allowed to (400 before 403); only then is permission decided. Decoding is therefore a
// step of the chain, and the door only provides the function for it. Where a request may be larger than 1 MiB, whoever
// holds the permission nowhere at all is refused before it is read.
//
// A stream (stream.go) goes through the same hands and a chain of the same steps, and lasts: it has no time limit, is
// counted, and ends when its caller leaves, when the server stops, when nobody reads, or when its operation finds that
// the caller may no longer. outlets.go writes it: frames of gRPC, or server-sent events for REST.
//
// Errors have one model (package errs) and one rendering (errors.go): the same google.rpc.Status as a JSON body, and in
// the trailers of gRPC and gRPC-Web. What is not an *errs.Error is a bug; its text goes to the log under the request
// id and never to the caller.
//
// The frames of gRPC are read and written here and not by a library, for unary calls are simple (five bytes and a
// message), and connect-go answers some errors by itself, without our details, reads on through a message it has
// already found too large, and unpacks a compressed one to its end to report its size. Reflection and health checks do
// come from that family of libraries (standard.go).
package rpc
