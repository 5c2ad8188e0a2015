// Package web is the pipeline that every HTTP request goes through, for the API (package rpc), the OpenID Connect
// provider and the hosted pages. Front comes first and looks after bodies and connections. Site comes next: it gives
// the request its id, finds the client's address, guards against panics, writes the one line of log and counts the
// request. Then the handler answers.
//
//	site, err := web.New(web.Config{API: api})
//	site.Handle("/oauth/token", provider)
//	http.Serve(listener, &web.Front{Next: site})
//
// A page finds the description of its request in the context (package call), and says with Failed what the log should
// know about a refusal. What callers see of an error, AnswerTo says. Nothing a caller sends gets into the log: a line
// names the path as it was registered.
package web
