// Package web is what every plain HTTP handler of Signet runs behind: the OpenID Connect provider and the hosted pages. The
// API has a chain of its own (package rpc) and shares with it what is here: how a request gets its id, whose address it
// comes from, and how requests are counted. In front of both stands Front, which looks after bodies and connections.
//
//	site, err := web.New(web.Config{…})
//	site.Handle("/oauth/token", provider)
//	http.Serve(listener, &web.Front{Next: site}) // what nobody handles goes to Config.Otherwise, the API
//
// A handler finds the description of its request in the context (package call), and says with Failed what the log should know
// about a refusal. Nothing a caller sends gets into the log: a line names the path as it was registered.
package web
