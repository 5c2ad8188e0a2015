// Package console serves the web console: the built application under /console/, and the token with which it calls the
// API.
//
// The application is static files, the same for every user. It reads what it shows from the API, with a token that a
// signed-in browser gets here by a request that only a page of Signet can make. The token stands for the browser's
// session for a few minutes (consoletoken.go). A user who is not fully signed in gets the address of the sign-in page
// that leads on from there and back.
package console

import (
	"io/fs"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/login"
)

// Paths for the application's own requests.
const (
	PathToken   = pages.PathConsole + "token"
	PathSignOut = pages.PathConsole + "sign_out"
)

// Console serves the application.
type Console struct {
	Files    fs.FS // as web/console has them
	Pages    *pages.Pages
	Browsers login.Browsers
	Tokens   Tokens
	Limiter  *ratelimit.NetworkLimiter // of the requests for tokens; nil: none
}

// Mount registers the application and what it asks for.
func (c *Console) Mount(site *web.Site) {
	site.HandleTree(pages.PathConsole, web.Entry{Handler: &files{from: c.Files, pages: c.Pages}, Counted: web.AsStatic})
	site.Handle(pages.PathConsole[:len(pages.PathConsole)-1], c.Pages.SameOrigin(http.HandlerFunc(toConsole)))
	site.Handle(PathToken, c.asked((*browserRequest).token))
	site.Handle(PathSignOut, c.asked((*browserRequest).signOut))
}

// toConsole adds the slash that an address typed by hand lacks.
func toConsole(w http.ResponseWriter, r *http.Request) {
	to := url.URL{Path: pages.PathConsole, RawQuery: r.URL.RawQuery}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to.String())
	w.WriteHeader(http.StatusSeeOther)
}
