package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Cookies for the way by a mail.
const (
	cookieReset   = "signet-reset"   // the link of a mail
	cookieVerify  = "signet-verify"  // likewise
	cookieRestore = "signet-restore" // likewise
	cookieBack    = "signet-back"    // the application's request on whose way somebody had forgotten the password
)

// ParamSent of mail.VerifyPath says that a mail has just been asked for.
const ParamSent = "sent"

// badLink says that the link of a mail is good for nothing.
func (l *Login) badLink(w http.ResponseWriter, r *http.Request, next pages.Link) error {
	l.Pages.Render(w, r, http.StatusBadRequest, pages.Failed{What: pages.BadLink, Next: next})
	return nil
}

// onTheWay finds the application's request that somebody is on the way of; nil where there is none, or none any more.
func (l *Login) onTheWay(r *http.Request, id string) (*oauth.Pending, error) {
	if id == "" {
		return nil, nil
	}
	p, err := l.Grants.Pending(r.Context(), id, web.KnownBrowser(r))
	if errors.Is(err, oauth.ErrRequestNotFound) || errors.Is(err, oauth.ErrUnknownClient) {
		return nil, nil
	}
	return p, err
}

// toSignIn is the link to signing in, for an application where there is one.
func toSignIn(p *oauth.Pending) pages.Link {
	query := url.Values{}
	if p != nil {
		query.Set(paramRequest, p.ID)
	}
	return pages.To(Path, query)
}

// forgot has a mail sent to a user who has forgotten the password. It says the same whether or not the user exists.
func (l *Login) forgot(w http.ResponseWriter, r *http.Request) error {
	pending, err := l.onTheWay(r, r.URL.Query().Get(paramRequest))
	if err != nil {
		return err
	}
	v := &browserRequest{Login: l, w: w, r: r, pending: pending}
	starts := r.PostFormValue(pages.FieldDo) == pages.DoForgot // from the page that asked for the password
	name := strings.TrimSpace(r.PostFormValue(pages.FieldLoginName))
	show := func(problems ...pages.Problem) error {
		v.render(pages.ForgotPassword{Frame: v.frame(pages.Frame{Problems: problems}), LoginName: name,
			Back: toSignIn(pending)}, problems)
		return nil
	}
	switch {
	case !l.Mail:
		return show(pages.Problem{Message: pages.MailNotConfigured()})
	case r.Method != http.MethodPost || starts:
		return show()
	case name == "":
		return show(pages.Problem{Field: pages.FieldLoginName, Message: pages.Required()})
	}
	info := call.From(r.Context())
	request := session.ResetRequest{LoginName: name, Peer: info.Peer, UserAgent: info.UserAgent,
		RequestID: info.RequestID}
	back := pages.ForgetCookie(cookieBack)
	if pending != nil {
		request.OrgID, request.AppOrg = pending.NameScope() // as for the password
		back = pages.Cookie(cookieBack, pending.ID, mailedLife)
	}
	if err := l.Sessions.RequestReset(r.Context(), request); err != nil {
		return err
	}
	http.SetCookie(w, back)
	v.render(pages.ResetMailSent{Frame: v.frame(pages.Frame{}), LoginName: name, Back: toSignIn(pending)}, nil)
	return nil
}

// reset takes a new password from somebody who has a code from a mail. The code is looked at only with the password.
func (l *Login) reset(w http.ResponseWriter, r *http.Request) error {
	m, moved := mailedLink(w, r, cookieReset)
	if moved || l.noCookie(w, r, r.URL.Query().Has(paramMailed), nil) {
		return nil
	}
	useless := func() error {
		http.SetCookie(w, pages.ForgetCookie(cookieReset))
		return l.badLink(w, r, pages.To(PathForgot, nil))
	}
	if m.Code == "" {
		return useless()
	}
	rules, err := l.rulesFor(r, m.User)
	if err != nil {
		return err
	}
	v := &browserRequest{Login: l, w: w, r: r}
	factor := r.PostForm.Has(pages.FieldCode) // it was asked for already
	show := func(problems []pages.Problem) error {
		frame := pages.Frame{Problems: problems}
		if problems == nil && r.URL.Query().Has(paramRestored) {
			frame.Done = pages.EmailRestored()
		}
		v.render(pages.ResetPassword{Frame: v.frame(frame), Rules: PasswordRules(rules), Factor: factor}, problems)
		return nil
	}
	if r.Method != http.MethodPost {
		return show(nil)
	}
	chosen, problems := NewPassword(r, rules)
	if problems != nil {
		return show(problems)
	}
	info := call.From(r.Context())
	_, err = l.Sessions.Reset(r.Context(), session.Reset{
		UserID:    m.User,
		Code:      m.Code,
		Password:  chosen,
		Answer:    session.Answer{TOTPCode: r.PostFormValue(pages.FieldCode)},
		Peer:      info.Peer,
		UserAgent: info.UserAgent,
		RequestID: info.RequestID,
	})
	switch {
	case isAbout(err, ParamMailedCode):
		return useless()
	case errors.Is(err, session.ErrResetFactor):
		factor = true
		return show([]pages.Problem{{Message: pages.SecondFactorNeeded()}})
	case isAbout(err, "totpCode"):
		return show([]pages.Problem{{Field: pages.FieldCode, Message: pages.WrongCode()}})
	case err != nil:
		if problems, err = PasswordProblems(err); err != nil {
			return err
		}
		for i := range problems { // this form has no field for the current password
			if problems[i].Field == pages.FieldCurrentPassword {
				problems[i].Field = ""
			}
		}
		return show(problems)
	}
	pending, err := l.onTheWay(r, pages.CookieValue(r, cookieBack))
	if err != nil {
		return err
	}
	http.SetCookie(w, pages.ForgetCookie(cookieReset))
	http.SetCookie(w, pages.ForgetCookie(cookieBack))
	v.pending = pending
	v.render(pages.PasswordReset{Frame: v.frame(pages.Frame{}), Next: toSignIn(pending)}, nil)
	return nil
}

// isAbout tells whether an error says that a field is wrong.
func isAbout(err error, field string) bool {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours || e.Kind != errs.InvalidArgument {
		return false
	}
	for _, v := range e.Fields {
		if v.Field == field {
			return true
		}
	}
	return false
}

// verify takes the code that proves an e-mail address, from a person who has the mail or from the signed-in user, who
// can ask for another mail.
func (l *Login) verify(w http.ResponseWriter, r *http.Request) error {
	m, moved := mailedLink(w, r, cookieVerify)
	if moved || l.noCookie(w, r, r.URL.Query().Has(paramMailed), nil) {
		return nil
	}
	accounts, err := l.Browsers.Accounts(r)
	if err != nil {
		return err
	}
	bearer := accounts.Whole()
	if bearer != nil && m.User != "" && bearer.Caller.UserID != m.User {
		bearer = nil // the link is about somebody else
	}
	if bearer == nil && m.User == "" {
		Redirect(w, Path+"?"+url.Values{paramTo: {mail.VerifyPath}}.Encode())
		return nil
	}
	p := proof{browserRequest: &browserRequest{Login: l, w: w, r: r, accounts: accounts}, mailed: m}
	if err := p.as(bearer); err != nil {
		return err
	}
	if err := p.answer(); err != nil {
		return err
	}
	p.used()
	return nil
}

// proof is a request to prove an e-mail address.
type proof struct {
	*browserRequest
	mailed MailedLink
}

func (p *proof) answer() error {
	if p.person != nil && p.person.Data.Human == nil {
		return user.ErrNotHuman
	}
	if p.person != nil && p.person.Data.Human.Email.Verified {
		return p.done()
	}
	if p.r.Method != http.MethodPost {
		var with pages.Frame
		if p.person != nil && p.r.URL.Query().Has(ParamSent) {
			with.Done = pages.MailSent(p.person.Data.Human.Email.Address)
		}
		return p.show(with)
	}
	if p.r.PostFormValue(pages.FieldDo) == pages.DoResend && p.bearer != nil {
		return p.resend()
	}
	wrong := func(m pages.Message) error {
		return p.show(pages.Frame{Problems: []pages.Problem{{Field: pages.FieldCode, Message: m}}})
	}
	code := strings.TrimSpace(p.r.PostFormValue(pages.FieldCode))
	if code == "" {
		return wrong(pages.Required())
	}
	var err error
	if p.bearer != nil {
		_, err = user.VerifyMine(p.r.Context(), p.Store, p.Master, p.bearer.Caller, user.ByEmail, event.IfMatch{}, code)
	} else {
		origin := event.Origin{Actor: p.mailed.User, RequestID: call.From(p.r.Context()).RequestID}
		_, err = user.VerifyEmailByCode(p.r.Context(), p.Store, p.Master, origin, p.mailed.User, code)
	}
	if isAbout(err, ParamMailedCode) {
		return wrong(pages.WrongCode())
	}
	if err != nil {
		return err
	}
	return p.done()
}

func (p *proof) show(with pages.Frame) error {
	view := pages.VerifyEmail{Frame: p.frame(with), Code: p.mailed.Code, Again: p.bearer != nil && p.Mail}
	if p.person != nil {
		view.Email = p.person.Data.Human.Email.Address
	}
	p.render(view, with.Problems)
	return nil
}

// resend has another mail sent.
func (p *proof) resend() error {
	if !p.Mail {
		return p.show(pages.Frame{Problems: []pages.Problem{{Message: pages.MailNotConfigured()}}})
	}
	_, err := user.RequestMyEmailCode(p.r.Context(), p.Store, p.Master, p.bearer.Caller)
	switch {
	case errors.Is(err, user.ErrAlreadyVerified):
		return p.done()
	case err != nil:
		problems, err := Problem("", pages.NotValid(), err)
		if err != nil {
			return err
		}
		return p.show(pages.Frame{Problems: problems})
	}
	return p.show(pages.Frame{Done: pages.MailSent(p.person.Data.Human.Email.Address)})
}

func (p *proof) done() error {
	http.SetCookie(p.w, pages.ForgetCookie(cookieVerify))
	view := pages.EmailVerified{Frame: p.frame(pages.Frame{}), Next: pages.To(Path, nil)}
	if p.person != nil {
		view.Email, view.Next = p.person.Data.Human.Email.Address, pages.To(pages.PathAccount, nil)
	}
	p.render(view, nil)
	return nil
}
