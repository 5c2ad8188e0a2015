// The pages of links that other people have sent: invitations into an organization, and links to set a password.

package login

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

const (
	cookieInvitation     = "signet-invitation"
	cookieSetup          = "signet-password-setup"
	invitationCookieLife = time.Hour

	paramOpened = "opened" // the browser was given a cookie in place of the token
	// how the person wants to join
	withPassword = "password"
	withPasskey  = "passkey"
	withAccount  = "account"
)

// InvitationPages serves them.
type InvitationPages struct {
	Store       event.Store
	Invitations invitation.Invitations
	Newcomers   newcomer.Newcomers
	Pages       *pages.Pages
	Browsers    Browsers
	Providers   bool // people can come through identity providers
}

// Handlers gives what to serve, by its path.
func (p InvitationPages) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		invitation.Path:      p.page(p.invitation),
		invitation.SetupPath: p.page(p.setup),
	}
}

func (p InvitationPages) page(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return p.Pages.SameOrigin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ReadForm(p.Pages, w, r, pages.BadRequest) {
			return
		}
		if err := serve(w, r); err != nil {
			p.refuse(w, r, err)
		}
	}))
}

// leadsNowhere are the pages for links that do not count.
var leadsNowhere = map[errs.Reason]pages.Failure{
	invitation.LinkUnknown:     pages.BadLink,
	invitation.LinkUnusable:    pages.BadLink,
	invitation.LinkReplaced:    pages.InvitationReplaced,
	invitation.LinkUsed:        pages.InvitationUsed,
	invitation.LinkWithdrawn:   pages.InvitationWithdrawn,
	invitation.LinkExpired:     pages.InvitationExpired,
	invitation.InviterMayNot:   pages.InvitationInvalid,
	invitation.OrgNotAvailable: pages.InvitationInvalid,
	invitation.GroupFull:       pages.InvitationInvalid,
}

func (p InvitationPages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, ours := errors.AsType[*errs.Error](err)
	what, known := pages.Failure(""), false
	if ours {
		what, known = leadsNowhere[e.Reason]
	}
	if !known {
		Refuse(p.Pages, w, r, err)
		return
	}
	http.SetCookie(w, pages.ForgetCookie(cookieInvitation))
	p.Pages.Render(w, r, http.StatusBadRequest, pages.Failed{What: what, Next: pages.To(pages.PathAccount, nil)})
}

// invitationToken reads the link that a browser came by; moved tells that the browser was sent to the same page without
// it.
func invitationToken(w http.ResponseWriter, r *http.Request, cookie string) (text string, moved bool) {
	if query := r.URL.Query(); query.Has(invitation.ParamToken) {
		if text := query.Get(invitation.ParamToken); len(text) < 200 {
			http.SetCookie(w, pages.Cookie(cookie, url.QueryEscape(text), invitationCookieLife))
		}
		web.Browser(w, r)
		Redirect(w, r.URL.Path+"?"+url.Values{paramOpened: {"1"}}.Encode())
		return "", true
	}
	return invitationCookie(r, cookie), false
}

// invitationCookie is the link that a cookie holds; empty: none.
func invitationCookie(r *http.Request, cookie string) string {
	text, err := url.QueryUnescape(pages.CookieValue(r, cookie))
	if err != nil {
		return ""
	}
	return text
}

// invitationForm is one request of a browser to the page of an invitation.
type invitationForm struct {
	InvitationPages
	w        http.ResponseWriter
	r        *http.Request
	link     *invitation.Link
	accounts *Accounts
	bearer   *session.Bearer // nil: nobody is signed in
}

func (p InvitationPages) invitation(w http.ResponseWriter, r *http.Request) error {
	text, moved := invitationToken(w, r, cookieInvitation)
	if moved {
		return nil
	}
	if text == "" && r.URL.Query().Has(paramOpened) && web.KnownBrowser(r) == "" {
		p.Pages.Render(w, r, http.StatusBadRequest, pages.Failed{What: pages.NoCookie})
		return nil
	}
	v := &invitationForm{InvitationPages: p, w: w, r: r}
	var err error
	if v.accounts, err = p.Browsers.Accounts(r); err != nil {
		return err
	}
	v.bearer = v.accounts.Whole()
	v.link, err = p.Invitations.Open(r.Context(), text)
	if v.link != nil && errors.Is(err, invitation.ErrLinkUsed) && v.bearer != nil &&
		v.link.Invitation.Data.UserID == v.bearer.Caller.UserID {
		return v.back() // through a provider, or in another window
	}
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost && r.PostFormValue(pages.FieldFor) != v.shownFor() {
		v.r = Shown(r) // another link has been opened in this browser since the form was shown
	}
	switch r.URL.Query().Get(paramWith) {
	case withPassword:
		return v.password()
	case withPasskey:
		return v.passkey()
	case withAccount:
		return v.account()
	}
	return v.choose()
}

func invitationLink(with string) pages.Link {
	if with == "" {
		return pages.To(invitation.Path, nil)
	}
	return pages.To(invitation.Path, url.Values{paramWith: {with}})
}

// shownFor is what forms are shown for: the organization and the address, which the pages name.
func (v *invitationForm) shownFor() string { return v.link.Org.ID + " " + v.link.Email() }

func (v *invitationForm) frame(problems ...pages.Problem) pages.Frame {
	return pages.Frame{For: v.shownFor(), Organization: v.link.Org.Data.Name, Language: v.link.Invitation.Data.Language,
		Problems: problems}
}

func (v *invitationForm) render(view pages.View, problems []pages.Problem) error {
	status := http.StatusOK
	if len(problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	v.InvitationPages.Pages.Render(v.w, v.r, status, view)
	return nil
}

// choose says who invites to what, and asks how to join.
func (v *invitationForm) choose() error {
	allowed := v.link.Org.Data.Policy
	view := pages.Invitation{Frame: v.frame(), To: v.link.Org.Data.Name, Email: v.link.Email(),
		SignIn: Wish{To: invitationLink(withAccount).String(), Other: v.bearer != nil}.Link()}
	if by := v.link.Inviter; by != nil && by.Data.Human != nil {
		view.Inviter = by.Data.Human.Profile.DisplayName
	}
	if allowed.Allows(policy.WithPassword) {
		view.Password = invitationLink(withPassword)
	}
	if allowed.Allows(policy.WithPasskey) && v.Newcomers.Factors.Passkeys() {
		view.Passkey = invitationLink(withPasskey)
	}
	if v.Providers {
		part := PartOf(v.r)
		offers, err := idp.SignInProviders{Org: v.link.Org.ID, DefaultOrg: v.Newcomers.DefaultOrg,
			Ways: allowed.SignIn}.Part(v.r.Context(), v.Store, part)
		if err != nil {
			return err
		}
		for _, p := range offers.Providers {
			view.Providers = append(view.Providers,
				Button(p, ToProvider(p.ID, Wish{To: invitationLink("").String(), Other: true}.Parameters())))
		}
		view.More = MoreProviders(v.r, part, offers, url.Values{})
	}
	if v.bearer != nil {
		name, err := v.loginName()
		if err != nil {
			return err
		}
		view.Account, view.Accept = name, invitationLink(withAccount)
	}
	return v.render(view, nil)
}

// loginName is that of who is signed in.
func (v *invitationForm) loginName() (string, error) {
	me, err := user.Self(v.r.Context(), v.Store, v.bearer.Caller)
	if err != nil {
		return "", err
	}
	home, err := org.Mine(v.r.Context(), v.Store, v.bearer.Caller)
	if err != nil {
		return "", err
	}
	return home.Data.LoginName(me.Data.UserName), nil
}

// typed is what somebody has filled in, with a name to sign in with if they have not seen the form yet.
func (v *invitationForm) typed() (p newcomer.Person, err error) {
	info := call.From(v.r.Context())
	p = v.link.Person(newcomer.Person{
		FirstName: v.r.PostFormValue(pages.FieldFirstName),
		LastName:  v.r.PostFormValue(pages.FieldLastName),
		UserName:  v.r.PostFormValue(pages.FieldUserName),
		Peer:      info.Peer,
		UserAgent: info.UserAgent,
		RequestID: info.RequestID,
	})
	if v.r.Method != http.MethodPost {
		p.UserName, err = user.OfferedName(v.r.Context(), v.Store, p.OrgID, p.Email)
	}
	return p, err
}

func (v *invitationForm) password() error {
	rules, err := org.Settings(v.r.Context(), v.Store, v.link.Org.ID)
	if err != nil {
		return err
	}
	p, err := v.typed()
	if err != nil {
		return err
	}
	show := func(problems []pages.Problem) error {
		return v.render(pages.JoinPassword{
			Frame:     v.frame(problems...),
			Email:     p.Email,
			FirstName: p.FirstName,
			LastName:  p.LastName,
			UserName:  p.UserName,
			Rules:     PasswordRules(rules),
			Back:      invitationLink(""),
		}, problems)
	}
	if v.r.Method != http.MethodPost {
		return show(nil)
	}
	if wrong, err := personProblems(p); err != nil {
		return err
	} else if wrong != nil {
		_, also := NewPassword(v.r, rules)
		return show(append(wrong, also...))
	}
	chosen, wrong := NewPassword(v.r, rules)
	if wrong != nil {
		return show(wrong)
	}
	p.Password = chosen
	return v.create(p, show)
}

// personProblems tells what is wrong with the names.
func personProblems(p newcomer.Person) ([]pages.Problem, error) {
	err := p.Violations().Err()
	if err == nil {
		return nil, nil
	}
	return newAccountProblems(err)
}

func (v *invitationForm) passkey() error {
	p, err := v.typed()
	if err != nil {
		return err
	}
	var options []byte
	show := func(problems []pages.Problem) error {
		return v.render(pages.JoinPasskey{
			Frame:     v.frame(problems...),
			Email:     p.Email,
			FirstName: p.FirstName,
			LastName:  p.LastName,
			UserName:  p.UserName,
			Options:   options,
			Back:      invitationLink(""),
		}, problems)
	}
	if v.r.Method != http.MethodPost {
		return show(nil)
	}
	if wrong, err := personProblems(p); err != nil {
		return err
	} else if wrong != nil {
		return show(wrong)
	}
	if credential := v.r.PostFormValue(pages.FieldCredential); credential != "" {
		p.Passkey = &newcomer.Passkey{Credential: credential}
		return v.create(p, show)
	}
	name := p.UserName
	if name == "" {
		name = p.Email
	}
	text, err := v.Newcomers.StartPasskey(v.r.Context(), p.Peer, name, p.FirstName+" "+p.LastName, v.link.Flow)
	if err != nil {
		return err
	}
	options = []byte(text)
	return show(nil)
}

// create makes the new account and signs in.
func (v *invitationForm) create(p newcomer.Person, show func([]pages.Problem) error) error {
	in, err := v.link.AcceptNew(v.r.Context(), v.Newcomers, p)
	if err != nil {
		e, ours := errors.AsType[*errs.Error](err)
		switch {
		case ours && e.Reason == session.MethodNotAllowed:
			return show([]pages.Problem{{Message: pages.MethodNotAllowed()}})
		case ours && len(e.Fields) > 0 && e.Fields[0].Field == pages.FieldCredential:
			return show([]pages.Problem{{Message: pages.PasskeyFailed()}})
		case ours && len(e.Fields) > 0 && e.Fields[0].Field == pages.FieldPassword: // the policy has just become stricter
			return show([]pages.Problem{{Field: pages.FieldNewPassword, Message: pages.NotValid()}})
		case ours && e.Kind == errs.ResourceExhausted:
			return show([]pages.Problem{{Message: pages.Throttled(e.RetryAfter)}})
		}
		problems, err := newAccountProblems(err)
		if err != nil {
			return err
		}
		return show(problems)
	}
	if err := v.accounts.Enter(v.r.Context(), v.w, in.Token); err != nil {
		return err
	}
	if v.link.App != nil {
		return v.done(v.link.Org.Data.LoginName(cmp.Or(p.UserName, p.Email)))
	}
	http.SetCookie(v.w, pages.ForgetCookie(cookieInvitation))
	// which asks for whatever is missing
	Redirect(v.w, Wish{To: pages.PathAccount, Account: in.SessionID}.Link().String())
	return nil
}

// account lets somebody join with an account that there is.
func (v *invitationForm) account() error {
	if v.bearer == nil {
		Redirect(v.w, Wish{To: invitationLink(withAccount).String()}.Link().String())
		return nil
	}
	me, err := user.Self(v.r.Context(), v.Store, v.bearer.Caller)
	if err != nil {
		return err
	}
	name, err := v.loginName()
	if err != nil {
		return err
	}
	view := pages.JoinAccount{
		Frame:     v.frame(),
		ID:        v.bearer.Token.ID,
		LoginName: name,
		To:        v.link.Org.Data.Name,
		Email:     v.link.Email(),
		Back:      invitationLink(""),
		Other:     Wish{To: invitationLink(withAccount).String(), Other: true}.Link(),
	}
	if me.Org != v.link.Org.ID {
		promised := v.link.Invitation.Data.Promised()
		names, err := role.NamesOf(v.r.Context(), v.Store, promised)
		if err != nil {
			return err
		}
		view.Roles = role.Show(v.link.Org.ID, promised, names, func(name string, allows []string) {
			view.Custom = append(view.Custom, pages.CustomRole{Name: name, Allows: allows})
		})
	}
	may := v.Invitations.MayAccept(v.r.Context(), v.link, me)
	switch {
	case errors.Is(may, invitation.ErrOtherAddress):
		view.Mismatch = true
	case errors.Is(may, user.ErrPasswordGiven):
		view.Password = pages.To(pages.PathPassword, nil)
	case may != nil:
		return may
	}
	// The button counts only for the account that its page was shown for: another one may have become the current one
	// since.
	if v.r.Method != http.MethodPost || v.r.PostFormValue(pages.FieldDo) != pages.DoAllow ||
		v.r.PostFormValue(pages.FieldID) != v.bearer.Token.ID || may != nil {
		return v.render(view, nil)
	}
	if _, err := v.Invitations.AcceptMine(v.r.Context(), v.bearer.Caller, v.link); err != nil {
		return err
	}
	return v.done(name)
}

// back goes on with who is signed in and has accepted before.
func (v *invitationForm) back() error {
	name, err := v.loginName()
	if err != nil {
		return err
	}
	return v.done(name)
}

// done goes on with somebody who has joined: to the application that the invitation is for, which has them sign in with
// the session that there is, and with that asks for whatever is missing. One that has no address for it is named.
func (v *invitationForm) done(loginName string) error {
	http.SetCookie(v.w, pages.ForgetCookie(cookieInvitation))
	joined := pages.Joined{Frame: v.frame(), To: v.link.Org.Data.Name, Next: pages.To(pages.PathAccount, nil)}
	if v.link.App != nil {
		if start := v.link.Start(v.Invitations.ExternalURL, loginName); start != "" {
			to, err := pages.Outward(start)
			if err != nil {
				return err
			}
			frame := v.frame()
			frame.Application = v.link.App.Data.Name
			return v.render(pages.Onward{Frame: frame, To: to}, nil)
		}
		joined.Product, joined.Next = v.link.App.Data.Name, pages.Link{}
	}
	return v.render(joined, nil)
}

// setup takes a password from somebody whom an administrator has sent a link.
func (p InvitationPages) setup(w http.ResponseWriter, r *http.Request) error {
	text, moved := invitationToken(w, r, cookieSetup)
	if moved {
		return nil
	}
	known, err := p.Invitations.OpenSetup(r.Context(), text)
	if err != nil {
		return err
	}
	rules, err := org.Settings(r.Context(), p.Store, known.User.Org)
	if err != nil {
		return err
	}
	home, err := org.Kind.Read(r.Context(), p.Store, known.User.Org)
	if err != nil {
		return err
	}
	show := func(problems []pages.Problem) error {
		status := http.StatusOK
		if len(problems) > 0 {
			status = http.StatusUnprocessableEntity
		}
		view := pages.SetPassword{Frame: pages.Frame{For: known.User.ID, Problems: problems},
			LoginName: known.User.Data.UserName, Rules: PasswordRules(rules)}
		if home != nil {
			view.Organization, view.LoginName = home.Data.Name, home.Data.LoginName(known.User.Data.UserName)
		}
		p.Pages.Render(w, r, status, view)
		return nil
	}
	if r.Method != http.MethodPost || r.PostFormValue(pages.FieldFor) != known.User.ID {
		return show(nil)
	}
	chosen, problems := NewPassword(r, rules)
	if problems != nil {
		return show(problems)
	}
	info := call.From(r.Context())
	_, err = p.Invitations.UseSetup(r.Context(), p.Newcomers.Sessions,
		invitation.SetPassword{Token: text, Password: chosen, Peer: info.Peer, RequestID: info.RequestID})
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Reason == session.MethodNotAllowed {
		return show([]pages.Problem{{Message: pages.MethodNotAllowed()}})
	}
	if err != nil {
		return err
	}
	http.SetCookie(w, pages.ForgetCookie(cookieSetup))
	p.Pages.Render(w, r, http.StatusOK, pages.PasswordReset{Next: Wish{To: pages.PathAccount}.Link()})
	return nil
}
