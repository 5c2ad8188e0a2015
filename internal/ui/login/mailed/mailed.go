// Package mailed reads the links in mails by which browsers come.
package mailed

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/login/forms"
)

// Life of the cookie that holds a code: codes live no longer.
const Life = time.Hour

// Parameters of a link in a mail.
const (
	ParamUser = "user"
	ParamCode = "code"

	// Param says that the browser was given a cookie in place of the code.
	Param = "mailed"
)

const separator = "~"

// Link is what a link in a mail says: whom it is about, and the code that only the reader of the mail has.
type Link struct{ User, Code string }

var (
	userForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^usr_[0-9A-Za-z_-]{1,60}$`) })
	codeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z]{1,20}$`) })
)

// Cookie holds a code for somebody.
func Cookie(name, user, code string) *http.Cookie {
	return pages.Cookie(name, user+separator+code, Life)
}

// From reads the link that a browser came by. The code leaves the address before any page is shown, for addresses end up in
// histories and are sent along to others: it goes on in a cookie, and moved tells that the browser was sent to the same page
// without it. Nothing is done with the code, so that programs that look at the links in mails do no harm.
func From(w http.ResponseWriter, r *http.Request, cookie string) (m Link, moved bool) {
	query := r.URL.Query()
	if m.User = query.Get(ParamUser); !userForm().MatchString(m.User) {
		m.User = ""
	}
	if query.Has(ParamCode) {
		if code := query.Get(ParamCode); m.User != "" && codeForm().MatchString(code) {
			http.SetCookie(w, Cookie(cookie, m.User, code))
		}
		web.Browser(w, r)
		forms.Redirect(w, r.URL.Path+"?"+url.Values{ParamUser: {m.User}, Param: {"1"}}.Encode())
		return Link{}, true
	}
	if user, code, ok := strings.Cut(pages.CookieValue(r, cookie), separator); ok && m.User != "" && user == m.User {
		m.Code = code
	}
	return m, false
}
