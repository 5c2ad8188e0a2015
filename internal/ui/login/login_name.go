package login

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// loginName asks who is there. With the name, its form goes on to the password, in one answer or in two.
type loginName struct {
	removed string // what a passkey answered that counts no more; the browser is told
}

func (loginName) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (l loginName) show(v *signIn, with pages.Frame) error {
	name := v.r.PostFormValue(pages.FieldLoginName)
	if name == "" && v.pending != nil {
		name = v.pending.LoginHint
	}
	if l.wrongOrganization(v) {
		if err := v.turnedAway(session.WrongOrganization); err != nil {
			return err
		}
		with.Problems = append(with.Problems, pages.Problem{Message: pages.OtherOrganization(v.pending.Org.Data.Name)})
	}
	there, err := l.straight(v)
	if err != nil {
		return err
	}
	if there != nil && with.Problems == nil {
		return departure{v, there, name}.lead()
	}
	options, err := l.passkey(v)
	if err != nil {
		return err
	}
	v.stranger()
	offered, err := l.providers(v)
	if err != nil {
		return err
	}
	view := pages.LoginName{Frame: v.frame(with), LoginName: name, Passkey: options,
		Providers: offered.buttons, More: offered.more, Only: offered.only}
	if view.Register, err = v.toRegister(); err != nil {
		return err
	}
	if l.removed != "" {
		used, err := factor.ReadAssertion(pages.FieldCredential, l.removed)
		if err != nil {
			return err
		}
		view.Signal = v.Sessions.Factors.SignalRemoved(used)
	}
	if view.Only {
		byName := v.address
		byName.other = otherName
		view.Other = byName.link()
	}
	v.render(view, with.Problems)
	return nil
}

// wrongOrganization tells that the account that was chosen is not of the organization that the sign-in is for.
func (loginName) wrongOrganization(v *signIn) bool {
	return v.bearer != nil && v.pending != nil && v.pending.Org != nil && v.pending.Request.Org != v.bearer.Caller.OrgID
}

// straight is the provider that the application wants, the only way in, or that of the name which the application hints
// at, if it was chosen in this browser before; nil where people choose. Nobody who has come back from there, or wants
// another way, is led there again.
func (l loginName) straight(v *signIn) (*event.Object[idp.Provider], error) {
	if v.Federation == nil || v.arrival != nil || v.pending == nil || v.address.other != "" ||
		v.r.Method != http.MethodGet {
		return nil, nil
	}
	o, err := v.offered(v.r.Context(), v.presumedOrg())
	if err != nil {
		return nil, err
	}
	if hinted, err := o.Find(v.r.Context(), v.pending.ProviderHint); err != nil || hinted != nil {
		return hinted, err
	}
	if bound, _ := v.pending.NameScope(); bound != "" {
		return o.Only(v.r.Context())
	}
	// The name that the application hints at saves nobody a page of ours but who has chosen this provider before.
	named, err := l.byDomain(v, v.pending.LoginHint)
	if err != nil || named == nil || !(departure{signIn: v, at: named}).unasked() {
		return nil, err
	}
	return named, nil
}

// passkey gives what the browser needs for a sign-in with nothing but a passkey; nothing where there are none.
func (loginName) passkey(v *signIn) ([]byte, error) {
	options, err := v.Sessions.StartPasskeySignIn()
	if is(err, factor.PasskeysUnavailable) {
		return nil, nil
	}
	return []byte(options), err
}

// offeredProviders are those that the page shows.
type offeredProviders struct {
	buttons []pages.Provider
	more    pages.MoreProviders
	only    bool // there is no other way in
}

// providers are those of the organization that the sign-in is for.
func (loginName) providers(v *signIn) (offeredProviders, error) {
	var shown offeredProviders
	if v.Federation == nil || v.arrival != nil {
		return shown, nil // who has come through one already is to sign in in another way
	}
	o, err := v.offered(v.r.Context(), v.presumedOrg())
	if err != nil {
		return shown, err
	}
	offers, err := o.Part(v.r.Context(), v.address.part)
	if err != nil {
		return shown, err
	}
	kept := v.address.parameters()
	for _, p := range offers.Providers {
		shown.buttons = append(shown.buttons, Button(p, ToProvider(p.ID, kept)))
	}
	shown.more = moreProviders(Path, v.address.part, offers, kept)
	bound, _ := v.pending.NameScope()
	shown.only = bound != "" && (len(shown.buttons) > 0 || shown.more.There) &&
		v.address.other != otherName && o.Without()
	return shown, nil
}

func (l loginName) take(v *signIn) error {
	if credential := v.r.PostFormValue(pages.FieldCredential); credential != "" {
		return l.takePasskey(v, credential)
	}
	name := strings.TrimSpace(v.r.PostFormValue(pages.FieldLoginName))
	if name == "" {
		missing := []pages.Problem{{Field: pages.FieldLoginName, Message: pages.Required()}}
		return l.show(v, pages.Frame{Problems: missing})
	}
	v.stranger()
	there, err := l.byDomain(v, name)
	if err != nil {
		return err
	}
	if there != nil && !v.r.PostForm.Has(pages.FieldPassword) {
		return departure{v, there, name}.start()
	}
	if !v.r.PostForm.Has(pages.FieldPassword) {
		return l.askPassword(v, name, nil)
	}
	secret := v.r.PostFormValue(pages.FieldPassword)
	if secret == "" {
		return l.askPassword(v, name, []pages.Problem{{Field: pages.FieldPassword, Message: pages.Required()}})
	}
	info := call.From(v.r.Context())
	attempt := session.Attempt{LoginName: name, Password: secret, App: v.application(),
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID}
	attempt.OrgID, attempt.AppOrg = v.pending.NameScope()
	in, err := v.Sessions.SignIn(v.r.Context(), attempt)
	if err != nil {
		problems, err := Problem(pages.FieldPassword, pages.WrongPassword(), err)
		if err != nil {
			return err
		}
		return l.askPassword(v, name, problems)
	}
	return v.enter(in)
}

// byDomain is the provider of the organization that the domain of a name leads to, if it sends its people there; nil
// where it does not. Whether there is somebody of that name does not matter.
func (loginName) byDomain(v *signIn, name string) (*event.Object[idp.Provider], error) {
	_, domain, ok := strings.Cut(syntax.NameKey(name), "@")
	// Without another way nobody would get past a provider that does not work.
	another := v.address.other == otherWay || v.address.other == otherName
	if v.Federation == nil || v.arrival != nil || !ok || another {
		return nil, nil
	}
	domain, problem := syntax.Domain(domain)
	if problem != nil {
		return nil, nil
	}
	owner, err := org.Routed(v.r.Context(), v.Store, domain)
	if err != nil || owner == "" {
		return nil, err
	}
	if bound, _ := v.pending.NameScope(); bound != "" && bound != owner {
		return nil, nil
	}
	o, err := v.offered(v.r.Context(), owner)
	if err != nil {
		return nil, err
	}
	if chosen, err := o.Find(v.r.Context(), o.Methods.DefaultProvider); err != nil || chosen != nil {
		return chosen, err
	}
	return o.Only(v.r.Context())
}

// askPassword shows the same page whether or not somebody has this name.
func (l loginName) askPassword(v *signIn, name string, problems []pages.Problem) error {
	forgot := url.Values{}
	if v.pending != nil {
		forgot.Set(paramRequest, v.pending.ID)
	}
	offered, err := l.providers(v)
	if err != nil {
		return err
	}
	v.render(pages.Password{
		Frame: v.frame(pages.Frame{Problems: problems}), LoginName: name,
		Forgot: pages.To(PathForgot, forgot), Other: v.other(), Providers: offered.buttons, More: offered.more,
	}, problems)
	return nil
}

func (l loginName) takePasskey(v *signIn, credential string) error {
	info := call.From(v.r.Context())
	attempt := session.PasskeyAttempt{Assertion: credential, App: v.application(),
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID}
	if v.pending != nil {
		attempt.OrgID = v.pending.Request.Org
	}
	in, err := v.Sessions.SignInWithPasskey(v.r.Context(), attempt)
	if is(err, session.PasskeyRemoved) {
		removed := pages.Frame{Problems: []pages.Problem{{Message: pages.PasskeyRemoved()}}}
		return loginName{removed: credential}.show(v, removed)
	}
	if err != nil {
		problems, err := Problem("", pages.PasskeyFailed(), err)
		if err != nil {
			return err
		}
		return l.show(v, pages.Frame{Problems: problems})
	}
	return v.enter(in)
}

// notAllowed asks for another account, because the application is not for people of this one's organization.
type notAllowed struct{ loginName }

func (notAllowed) promptNoneError() *errs.Error { return oauth.ErrAccessDenied }

func (n notAllowed) show(v *signIn, _ pages.Frame) error {
	if err := v.turnedAway(session.ApplicationNotTheirs); err != nil {
		return err
	}
	problems := []pages.Problem{{Message: pages.NotAllowed(v.pending.App.Data.Name)}}
	return n.loginName.show(v, pages.Frame{Problems: problems})
}
