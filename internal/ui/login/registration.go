// This file serves the pages on which people make accounts of their own: one asks for an e-mail address, and the link
// in the mail leads to another one that asks for names and a password or passkey. Then they go on as after a sign-in:
// to the application that they came from, or to their account.

package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/life/registration"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

const (
	registrationCookie     = "signet-register" // the link of a mail
	registrationCookieLife = time.Hour         // it lives no longer

	// the application's, as in package login
	paramOrg  = "org"  // where to register, where there is no application
	paramCode = "code" // of the link in a mail
	// the browser was given a cookie in place of it
)

// RegistrationPages serves them.
type RegistrationPages struct {
	Store         event.Store
	Registrations *registration.Registrations
	Grants        *oauth.Grants
	Shown         *pages.Pages
	Browsers      Browsers
}

// Mount registers the pages.
func (p *RegistrationPages) Mount(site *web.Site) {
	site.Handle(PathRegister, p.Shown.SameOrigin(p.page(p.start)))
	site.Handle(mail.RegisterPath, p.Shown.SameOrigin(p.page(p.finish)))
}

// page shows the error that serve could not show itself.
func (p *RegistrationPages) page(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ReadForm(p.Shown, w, r, pages.BadRequest) {
			return
		}
		if err := serve(w, r); err != nil {
			Refuse(p.Shown, w, r, err)
		}
	})
}

// onTheWay finds the application's request that somebody came by, if it is one of this browser; nil where there is
// none, or none any more.
func (p *RegistrationPages) onTheWay(r *http.Request, id string) (*oauth.Pending, error) {
	if id == "" {
		return nil, nil
	}
	pending, err := p.Grants.Pending(r.Context(), id, web.KnownBrowser(r))
	// a trial makes no account
	if errors.Is(err, oauth.ErrRequestNotFound) || errors.Is(err, oauth.ErrUnknownClient) ||
		err == nil && pending.Trial != "" {
		return nil, nil
	}
	return pending, err
}

// registrationFrame is what every page shows.
func registrationFrame(pending *oauth.Pending, o *event.Object[org.Org], problems []pages.Problem) pages.Frame {
	f := pages.Frame{Problems: problems}
	if pending != nil {
		f.Application, f.RedirectURI, f.Locales = pending.App.Data.Name, pending.RedirectURI,
			strings.Join(pending.UILocales, " ")
	}
	if o != nil {
		f.Organization = o.Data.Name
	}
	return f
}

func (p *RegistrationPages) render(w http.ResponseWriter, r *http.Request, view pages.View,
	problems []pages.Problem) error {
	status := http.StatusOK
	if len(problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	p.Shown.Render(w, r, status, view)
	return nil
}

// start asks for an address and has a mail sent to it. It says the same whosever it is.
func (p *RegistrationPages) start(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	pending, err := p.onTheWay(r, query.Get(paramRequest))
	if err != nil {
		return err
	}
	// Who wants to sign in after all is not sent back here.
	back := Wish{To: pages.PathAccount, Way: true}
	in := query.Get(paramOrg)
	if pending != nil {
		back.Request = pending.ID
		bound, ofApplication := pending.NameScope()
		if in = bound; in == "" {
			in = ofApplication
		}
	}
	if in == "" {
		in = p.Registrations.Sessions.DefaultOrg
	}
	email := strings.TrimSpace(r.PostFormValue(pages.FieldEmail))
	o, err := p.Registrations.Open(r.Context(), in)
	show := func(problems ...pages.Problem) error {
		return p.render(w, r, pages.RegisterEmail{Frame: registrationFrame(pending, o, problems), Email: email,
			Back: back.Link()}, problems)
	}
	switch {
	case errors.Is(err, registration.ErrNoMail):
		return show(pages.Problem{Message: pages.MailNotConfigured()})
	case errors.Is(err, registration.ErrOff):
		Redirect(w, back.Link().String())
		return nil
	case err != nil:
		return err
	case r.Method != http.MethodPost:
		return show()
	case email == "":
		return show(pages.Problem{Field: pages.FieldEmail, Message: pages.Required()})
	}
	info := call.From(r.Context())
	start := registration.Start{OrgID: in, Email: email,
		Language: pages.Language(r, registrationFrame(pending, o, nil)), Peer: info.Peer, RequestID: info.RequestID}
	if pending != nil {
		start.Return = pending.ID
	}
	if err := p.Registrations.Start(r.Context(), start); err != nil {
		problems, err := Problem(pages.FieldEmail, pages.NotAnEmail(), err)
		if err != nil {
			return err
		}
		return show(problems...)
	}
	return p.render(w, r, pages.RegisterMailSent{Frame: registrationFrame(pending, o, nil), Email: email,
		Back: back.Link()}, nil)
}

// fromMail reads the link that a browser came by. The code leaves the address before any page is shown, for addresses
// end up in histories and are sent along to others: it goes on in a cookie, and moved tells that the browser was sent
// to the same page without it.
func fromMail(w http.ResponseWriter, r *http.Request) (link string, moved bool) {
	if code := r.URL.Query().Get(paramCode); r.URL.Query().Has(paramCode) {
		if registration.IsLink(code) {
			http.SetCookie(w, pages.Cookie(registrationCookie, code, registrationCookieLife))
		}
		web.Browser(w, r)
		Redirect(w, r.URL.Path+"?"+url.Values{paramMailed: {"1"}}.Encode())
		return "", true
	}
	return pages.CookieValue(r, registrationCookie), false
}

// useless says that a link is good for nothing.
func (p *RegistrationPages) useless(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, pages.ForgetCookie(registrationCookie))
	p.Shown.Render(w, r, http.StatusBadRequest,
		pages.Failed{What: pages.BadLink, Next: Wish{To: pages.PathAccount}.Link()})
	return nil
}

// finish makes a user of the person who has the mail. Opening the page changes nothing.
func (p *RegistrationPages) finish(w http.ResponseWriter, r *http.Request) error {
	link, moved := fromMail(w, r)
	if moved {
		return nil
	}
	if web.KnownBrowser(r) == "" && r.URL.Query().Has(paramMailed) {
		p.Shown.Render(w, r, http.StatusBadRequest,
			pages.Failed{What: pages.NoCookie, RequestID: call.From(r.Context()).RequestID})
		return nil
	}
	found, err := p.Registrations.Find(r.Context(), link)
	switch {
	case errors.Is(err, registration.ErrNotFound):
		return p.useless(w, r)
	case errors.Is(err, registration.ErrOff), errors.Is(err, registration.ErrNoMail):
		p.Shown.Render(w, r, http.StatusForbidden, pages.Failed{What: pages.NotPermitted})
		return nil
	case err != nil:
		return err
	}
	pending, err := p.onTheWay(r, found.Return)
	if err != nil {
		return err
	}
	f := &registrationForm{RegistrationPages: p, w: w, r: r, link: link, found: found, pending: pending}
	if r.Method == http.MethodPost && r.PostFormValue(pages.FieldFor) != f.shownFor() {
		f.r = Shown(r) // another link has been opened in this browser since the form was shown
	}
	if f.r.Method != http.MethodPost {
		return f.show(nil)
	}
	return f.take()
}

// registrationForm is a request to the page behind the link.
type registrationForm struct {
	*RegistrationPages
	w       http.ResponseWriter
	r       *http.Request
	link    string
	found   *registration.Waiting
	pending *oauth.Pending
}

// shownFor is what the form is shown for: the organization and the address, which the page names.
func (f *registrationForm) shownFor() string { return f.found.Org.ID + " " + f.found.Email }

// typed is what was filled in.
func (f *registrationForm) typed() registration.Finish {
	info, value := call.From(f.r.Context()), f.r.PostFormValue
	return registration.Finish{
		Link:          f.link,
		UserName:      strings.TrimSpace(value(pages.FieldUserName)),
		FirstName:     value(pages.FieldFirstName),
		LastName:      value(pages.FieldLastName),
		PasskeyName:   value(pages.FieldPasskeyName),
		AcceptedTerms: value(pages.FieldTerms),
		Peer:          info.Peer,
		UserAgent:     info.UserAgent,
		RequestID:     info.RequestID,
	}
}

func (f *registrationForm) show(problems []pages.Problem) error {
	typed, asked := f.typed(), f.found.Org.Data.Policy
	rules, err := org.Settings(f.r.Context(), f.Store, f.found.Org.ID)
	if err != nil {
		return err
	}
	view := pages.RegisterSelf{
		Frame:     registrationFrame(f.pending, f.found.Org, problems),
		Email:     f.found.Email,
		FirstName: typed.FirstName,
		LastName:  typed.LastName,
		UserName:  typed.UserName,
		Terms:     shownTerms(asked, typed.AcceptedTerms),
		Password:  asked.Allows(policy.WithPassword),
		Passkey:   asked.Allows(policy.WithPasskey),
		Rules:     PasswordRules(rules),
	}
	if f.r.Method != http.MethodPost {
		view.UserName, err = user.OfferedName(f.r.Context(), f.Store, f.found.Org.ID, f.found.Email)
		if err != nil {
			return err
		}
	}
	view.Language, view.For = f.found.Language, f.shownFor()
	return f.render(f.w, f.r, view, problems)
}

// take makes the user, or says what is missing.
func (f *registrationForm) take() error {
	chosen := f.typed()
	if err := f.Registrations.Check(f.r.Context(), chosen); err != nil {
		return f.wrong(err)
	}
	chosen.Credential = f.r.PostFormValue(pages.FieldCredential)
	switch {
	case chosen.Credential != "":
	case f.r.PostFormValue(pages.FieldDo) == pages.DoPasskey:
		return f.askPasskey(chosen)
	default:
		rules, err := org.Settings(f.r.Context(), f.Store, f.found.Org.ID)
		if err != nil {
			return err
		}
		var problems []pages.Problem
		if chosen.Password, problems = NewPassword(f.r, rules); problems != nil {
			return f.show(problems)
		}
	}
	in, err := f.Registrations.Finish(f.r.Context(), chosen)
	if err != nil {
		return f.wrong(err)
	}
	return f.enter(in)
}

// wrong shows what keeps an account from being made.
func (f *registrationForm) wrong(err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	switch {
	case errors.Is(err, registration.ErrNotFound):
		return f.useless(f.w, f.r)
	case errors.Is(err, registration.ErrOff), errors.Is(err, registration.ErrNoMail):
		f.Shown.Render(f.w, f.r, http.StatusForbidden, pages.Failed{What: pages.NotPermitted})
		return nil
	case is(err, session.MethodNotAllowed):
		return f.show([]pages.Problem{{Message: pages.MethodNotAllowed()}})
	case ours && len(e.Fields) == 1 && e.Fields[0].Field == "credential", is(err, factor.PasskeysUnavailable):
		return f.show([]pages.Problem{{Message: pages.PasskeyFailed()}})
	case ours && len(e.Fields) == 1 && e.Fields[0].Field == "password": // the policy has just become stricter
		return f.show([]pages.Problem{{Field: pages.FieldNewPassword, Message: pages.NotValid()}})
	}
	problems, err := newAccountProblems(err)
	if err != nil {
		if problems, err = Problem("", pages.NotValid(), err); err != nil {
			return err
		}
	}
	return f.show(problems)
}

// askPasskey has the browser make a passkey, after everything else is known.
func (f *registrationForm) askPasskey(chosen registration.Finish) error {
	options, err := f.Registrations.StartPasskey(f.r.Context(), chosen.Peer, f.link)
	if err != nil {
		return f.wrong(err)
	}
	view := pages.RegisterPasskey{
		Frame:         registrationFrame(f.pending, f.found.Org, nil),
		Email:         f.found.Email,
		FirstName:     chosen.FirstName,
		LastName:      chosen.LastName,
		UserName:      chosen.UserName,
		AcceptedTerms: chosen.AcceptedTerms,
		Options:       []byte(options),
		Back:          pages.To(mail.RegisterPath, url.Values{paramMailed: {"1"}}),
	}
	view.Language, view.For = f.found.Language, f.shownFor()
	return f.render(f.w, f.r, view, nil)
}

// enter goes on with the new session: to the application, or to the account.
func (f *registrationForm) enter(in session.SignedIn) error {
	accounts, err := f.Browsers.Accounts(f.r)
	if err != nil {
		return err
	}
	if err := accounts.Enter(f.r.Context(), f.w, in.Token); err != nil {
		return err
	}
	http.SetCookie(f.w, pages.ForgetCookie(registrationCookie))
	next := Wish{To: pages.PathAccount, Account: in.SessionID}
	if f.pending != nil {
		next.Request = f.pending.ID
	}
	Redirect(f.w, next.Link().String())
	return nil
}
