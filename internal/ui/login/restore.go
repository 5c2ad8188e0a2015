package login

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// paramRestored says that an address was taken back, on the way to a new password.
const paramRestored = "restored"

// restore takes an e-mail address back for somebody who has the link of the mail about its change, and leads to a new
// password. Opening the page does nothing and tells nothing; the button does.
func (l *Login) restore(w http.ResponseWriter, r *http.Request) error {
	m, moved := mailedLink(w, r, cookieRestore)
	if moved || l.noCookie(w, r, r.URL.Query().Has(paramMailed), nil) {
		return nil
	}
	if m.Code == "" {
		return l.badLink(w, r, pages.To(Path, nil))
	}
	if r.Method != http.MethodPost {
		v := &browserRequest{Login: l, w: w, r: r}
		v.render(pages.RestoreEmail{Frame: v.frame(pages.Frame{})}, nil)
		return nil
	}
	info := call.From(r.Context())
	if err := l.Sessions.NetworkLimiter.Take(info.Peer, 1); err != nil {
		return err
	}
	code, err := lifecycle.Restore{UserID: m.User, Code: m.Code, RequestID: info.RequestID}.Do(r.Context(), l.Store,
		l.Master, l.Sessions.Factors)
	e, ours := errors.AsType[*errs.Error](err)
	switch {
	case isAbout(err, ParamMailedCode):
		http.SetCookie(w, pages.ForgetCookie(cookieRestore))
		return l.badLink(w, r, pages.To(Path, nil))
	case ours && e.Kind == errs.FailedPrecondition:
		fail(l.Pages, w, r, web.Page{Status: http.StatusBadRequest, What: pages.NotActive})
		return nil
	case err != nil:
		return err
	}
	http.SetCookie(w, pages.ForgetCookie(cookieRestore))
	http.SetCookie(w, mailedCookie(cookieReset, m.User, code))
	Redirect(w, mail.ResetPath+"?"+url.Values{ParamMailedUser: {m.User}, paramRestored: {"1"}}.Encode())
	return nil
}
