// Links in mails: the browser that opens one is given a cookie, and the code leaves the address.

package login

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// mailedLife of the cookie that holds a code: codes live no longer.
const mailedLife = time.Hour

// Parameters of a link in a mail.
const (
	ParamMailedUser = "user"
	ParamMailedCode = "code"

	// paramMailed says that the browser was given a cookie in place of the code.
	paramMailed = "mailed"
)

// MailedLink is what a link in a mail says: whom it is about, and the code that only the reader of the mail has.
type MailedLink struct{ User, Code string }

var (
	userForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^usr_[0-9A-Za-z_-]{1,60}$`) })
	codeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z]{1,20}$`) })
)

// mailedCookie holds a code for somebody.
func mailedCookie(name, user, code string) *http.Cookie {
	return pages.Cookie(name, user+separator+code, mailedLife)
}

// mailedLink reads the link that a browser came by. The code leaves the address before any page is shown, for addresses
// end up in histories and are sent along to others: it goes on in a cookie, and moved tells that the browser was sent
// to the same page without it. Nothing is done with the code, so that programs that look at the links in mails do no
// harm.
func mailedLink(w http.ResponseWriter, r *http.Request, cookie string) (m MailedLink, moved bool) {
	query := r.URL.Query()
	if m.User = query.Get(ParamMailedUser); !userForm().MatchString(m.User) {
		m.User = ""
	}
	if query.Has(ParamMailedCode) {
		if code := query.Get(ParamMailedCode); m.User != "" && codeForm().MatchString(code) {
			http.SetCookie(w, mailedCookie(cookie, m.User, code))
		}
		web.Browser(w, r)
		Redirect(w, r.URL.Path+"?"+url.Values{ParamMailedUser: {m.User}, paramMailed: {"1"}}.Encode())
		return MailedLink{}, true
	}
	if user, code, ok := strings.Cut(pages.CookieValue(r, cookie), separator); ok && m.User != "" && user == m.User {
		m.Code = code
	}
	return m, false
}
