// Package web is the pipeline of every HTTP request to the API (package rpc), the OpenID Connect provider and the
// hosted pages. Front comes first and handles bodies and connections. Site comes next: it gives the request its id,
// finds the client's address, recovers from panics, writes one line of log and counts the request. Then the handler
// answers.
//
//	site, err := web.New(web.Config{API: api})
//	site.Handle("/oauth/token", provider)
//	http.Serve(listener, &web.Front{Next: site})
//
// A page finds the description of its request in the context (package call), and calls Failed to tell the log about a
// refusal. AnswerTo decides what callers see of an error. Nothing that a caller sends gets into the log: a line names
// the path as it was registered.
package web
