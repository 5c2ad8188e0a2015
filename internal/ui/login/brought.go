package login

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// backFromProvider takes the answer of a provider.
func (l *Login) backFromProvider(w http.ResponseWriter, r *http.Request) error {
	id := providerIn(r)
	if r.Method == http.MethodPost {
		// The browser brings its cookies only to a page that we lead it to.
		l.Pages.Render(w, r, http.StatusOK, pages.Onward{To: pages.To(r.URL.Path, r.PostForm)})
		return nil
	}
	browser := web.KnownBrowser(r)
	if browser == "" {
		fail(l.Pages, w, r, web.Page{Status: http.StatusBadRequest, What: pages.NoCookie})
		return nil
	}
	p, err := l.provider(r.Context(), id)
	if err != nil {
		return err
	}
	info := call.From(r.Context())
	back, failed := l.Federation.Finish(r.Context(), p, upstream.Callback{Provider: id, Browser: browser,
		Query: r.URL.Query(), Header: r.Header, Peer: info.Peer, RequestID: info.RequestID})
	if attemptIn(back) != "" {
		return l.backForApplication(w, r, p, back, failed)
	}
	return l.resume(w, r, p, back, failed)
}

// resume goes on with the sign-in that the browser left for a provider. failed is why the provider let nobody in.
func (l *Login) resume(w http.ResponseWriter, r *http.Request, p *event.Object[idp.Provider], back upstream.SignedIn,
	failed error) error {
	left, _ := url.ParseQuery(back.Return) // empty where the state is not one of ours
	v, err := l.openSignIn(w, r, readAddress(left))
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := v.notes().cameBack(p.ID, failed == nil); err != nil {
		return err
	}
	if failed != nil {
		return v.failedThere(failed)
	}
	b := brought{v, p, Arrival{Who: back.Identity, Provider: p.Data.General.Name}}
	switch {
	case v.linking():
		return b.link()
	case v.bearer != nil && back.Again && back.Chosen:
		return b.prove()
	}
	v.stranger()
	if !back.Chosen {
		return b.unasked()
	}
	return b.admit(true)
}

// brought is somebody whom a provider has brought.
type brought struct {
	*signIn
	by   *event.Object[idp.Provider]
	kept Arrival // what is kept of them if they are not signed in by that
}

// link asks somebody who is signed in whether it is their account.
func (b brought) link() error {
	b.kept.Linking = b.bearer.Token.ID
	return b.hold()
}

// prove takes it that somebody who is signed in has proven again who they are.
func (b brought) prove() error {
	stepped, err := b.Federated.ReproveThrough(b.r.Context(), b.bearer.Caller, b.kept.Who, b.from())
	switch {
	case err == nil:
		return b.stepped(stepped)
	case is(err, session.RecentProofRequired) && b.pending != nil:
		b.address.tried = true
		return b.on(b.bearer.Token.ID)
	case is(err, session.NotLinked), is(err, session.LinkSuspended), is(err, session.RecentProofRequired),
		is(err, session.MethodNotAllowed):
		// It is another account there, or the provider does not say that the person has just proven who they are.
		problems := []pages.Problem{{Message: pages.NotProvenThere(b.kept.Provider)}}
		return proveAtProvider{}.show(b.signIn, pages.Frame{Problems: problems})
	}
	return err
}

// unasked goes on with somebody who has not chosen to come: they are asked first, unless nothing happens but that
// somebody signs in who is linked there already, in a browser in which nobody else is.
func (b brought) unasked() error {
	who := b.kept.Who
	id, err := b.Store.Holder(b.r.Context(), user.LinkClaim(who.Provider, who.Issuer, who.Subject))
	if err != nil {
		return err
	}
	if id == "" {
		b.kept.Ask = b.by.Data.General.LinkByEmail // other pages ask who is to have a new account, or to link one
	} else {
		another := func(has account) bool { return has.bearer.Caller.UserID != id }
		b.kept.Ask = slices.ContainsFunc(b.accounts.all, another)
	}
	if b.kept.Ask {
		return b.hold()
	}
	return b.admit(false)
}

// admit signs somebody in, or asks for what is missing. chosen tells that they have pressed a button of ours for it.
func (b brought) admit(chosen bool) error {
	bound, _ := b.pending.NameScope()
	info := call.From(b.r.Context())
	in, err := b.Federated.SignInThrough(b.r.Context(), b.kept.Who, federated.SignInRequest{OrgID: bound,
		App: b.application(), Trial: b.trial(), NoLink: b.trial() || !chosen,
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID})
	switch {
	case err == nil:
		if b.pending != nil && b.pending.Dated() {
			b.address.tried = true
		}
		return b.enter(in)
	case b.trial() && (is(err, session.LinkSuspended) || is(err, session.NotLinked)):
		return b.endTrial(trial.NewAccount, trial.Newcomer)
	case is(err, session.LinkSuspended):
		b.kept.Suspended = true
		return b.hold()
	case is(err, session.NotLinked):
		return b.unknown()
	case is(err, session.MethodNotAllowed):
		problems := []pages.Problem{{Message: pages.MethodNotAllowed()}}
		return loginName{}.show(b.signIn, pages.Frame{Problems: problems})
	}
	return b.notIn(err)
}

// unknown goes on with somebody who is linked to nobody here: nobody is registered without having seen where.
func (b brought) unknown() (err error) {
	if b.kept.Register, err = b.mayRegister(); err != nil {
		return err
	}
	invited, err := b.invitation()
	if err != nil {
		return err
	}
	b.kept.Register = b.kept.Register || invited != nil
	return b.hold()
}

// mayRegister tells whether the provider makes new accounts here: in its own organization, or as one of the default
// organization in the one that the sign-in is bound to, where that one wants it.
func (b brought) mayRegister() (bool, error) {
	bound, _ := b.pending.NameScope()
	if registers := b.by.Data.General.AutoRegister; !registers || bound == "" || bound == b.by.Org {
		return registers, nil
	}
	asked, _, err := org.ReadPolicy(b.r.Context(), b.Store, bound)
	return asked.RegistersFromDefault && b.by.Org == b.Sessions.DefaultOrg, err
}

// hold keeps the arrival and shows the page that it needs.
func (b brought) hold() error {
	id, err := b.arrivals().Keep(b.r.Context(), b.browser, b.kept)
	if err != nil {
		return err
	}
	to := b.address
	to.arrival, to.linking = id, false
	Redirect(b.w, to.link().String())
	return nil
}

// registration is what is known of somebody who has no account yet.
func (v *signIn) registration(who idp.Identity) federated.Registration {
	bound, _ := v.pending.NameScope()
	r := registrationOf(who, bound, call.From(v.r.Context()))
	r.App = v.application()
	return r
}

// invitation is the one that the browser has the link of, if the sign-in leads to its page; nil: none.
func (v *signIn) invitation() (*invitation.Link, error) {
	to, err := url.Parse(v.to)
	token := invitationCookie(v.r, cookieInvitation)
	if v.pending != nil || err != nil || to.Path != invitation.Path || token == "" {
		return nil, nil
	}
	return v.Invitations.Open(v.r.Context(), token)
}

// notIn says that somebody may not sign in, as for any other way.
func (v *signIn) notIn(err error) error {
	if !is(err, session.SignInFailed) {
		return err
	}
	v.Pages.Render(v.w, v.r, http.StatusForbidden, pages.Failed{Frame: v.frame(pages.Frame{}), What: pages.NotPermitted,
		Next: v.address.without().link()})
	return nil
}
