package login

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// PathProvider is where the way to a provider begins, with its id behind.
const PathProvider = "/login/idp/"

// ToProvider leads to a provider, and back to where the sign-in leads. with are parameters of the sign-in.
func ToProvider(id string, with url.Values) pages.Link { return pages.To(PathProvider+id, with) }

// Button shows a provider.
func Button(p *event.Object[idp.Provider], to pages.Link) pages.Provider {
	return pages.Provider{Name: p.Data.General.Name, Google: p.Data.General.Styling == idp.Google, To: to}
}

// Linking are the parameters of a sign-in at a provider in order to link it with the account of a session, and then to
// go to a page of ours.
func Linking(session, to string) url.Values {
	return address{to: to, account: session, linking: true}.parameters()
}

// offered reads what an organization offers to people who sign in there.
func (l *Login) offered(ctx context.Context, orgID string) (Offer, error) {
	return offerAt(ctx, l.Store, orgID, l.Sessions.DefaultOrg)
}

// PartOf reads which part of the providers a page is to show.
func PartOf(r *http.Request) idp.Part { return partIn(r.URL.Query()) }

// MoreProviders leads from a part of the providers to the others. kept are the parameters of the page.
func MoreProviders(r *http.Request, part idp.Part, offers idp.Offers, kept url.Values) pages.MoreProviders {
	return moreProviders(r.URL.Path, part, offers, kept)
}

func moreProviders(path string, part idp.Part, offers idp.Offers, kept url.Values) pages.MoreProviders {
	next := pages.Link{}
	if offers.More != "" {
		with := maps.Clone(kept)
		with.Set(pages.FieldAfter, offers.More)
		if part.Begins != "" {
			with.Set(pages.FieldProvider, part.Begins)
		}
		next = pages.To(path, with)
	}
	more := pages.NewMoreProviders(part.Begins, part.After != "", next, kept)
	more.None = len(offers.Providers) == 0 && next.IsNone()
	return more
}

// mountProviders registers the addresses of signing in through providers.
func (l *Login) mountProviders(site *web.Site) {
	if l.Federation == nil {
		return
	}
	site.Handle(PathProvider, l.Pages.SameOrigin(l.page(l.startAtProvider)))
	// Also from elsewhere: a provider may have the browser post its answer. What guards it is the state that only this
	// browser can have.
	site.Handle(PathProvider+"*/callback", l.page(l.backFromProvider)) // see upstream.CallbackAddress
	site.Handle(PathProvider+"*/"+continuePart, l.Pages.SameOrigin(l.page(l.continueToApplication)))
	told := LogoutReceiver{Store: l.Store, Federation: l.Federation, Sessions: l.Federated}
	logout := func(w http.ResponseWriter, r *http.Request) { told.Serve(w, r, providerIn(r)) }
	site.Handle(PathProvider+"*/logout", http.HandlerFunc(logout)) // from providers themselves
}

// providerIn is the id of the provider in an address.
func providerIn(r *http.Request) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, PathProvider), "/")
	return id
}

// errProviderGone is what somebody sees whose provider is not offered any more.
var errProviderGone = errs.New(errs.NotFound, idp.NotFound, "this identity provider is not offered here")

// provider reads a provider that people can sign in through. Errors: errProviderGone.
func (l *Login) provider(ctx context.Context, id string) (*event.Object[idp.Provider], error) {
	p, err := idp.Kind.Read(ctx, l.Store, id)
	if err != nil {
		return nil, err
	}
	if p == nil || !p.Data.Offered() {
		return nil, errProviderGone
	}
	return p, nil
}

// startAtProvider sends the browser to a provider. Who has not pressed a button of ours is asked before: any site can
// have a browser open this address.
func (l *Login) startAtProvider(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if query.Has(ownpage.Param) {
		return l.startForApplication(w, r)
	}
	if l.noCookie(w, r, query.Has(paramRequest) || r.Method == http.MethodPost, query) {
		return nil
	}
	v, err := l.openSignIn(w, r, readAddress(query))
	if err != nil {
		return err
	}
	p, err := l.provider(r.Context(), providerIn(r))
	if err != nil {
		return err
	}
	d := departure{v, p, query.Get(paramHint)}
	if r.Method == http.MethodPost {
		return d.start()
	}
	return d.lead()
}

// departure is a sign-in on the way to a provider.
type departure struct {
	*signIn
	at   *event.Object[idp.Provider]
	hint string // the name that was typed
}

// unasked tells whether the way leads there without a page of ours: in a browser in which somebody has chosen the
// provider before and nobody is signed in.
func (d departure) unasked() bool {
	return d.hasChosen(d.r, d.at) && len(d.accounts.all) == 0 && !d.trial()
}

// lead leads to the provider where somebody has chosen it before, and else asks whether they want to go there. Who is
// signed in, wants to link an account or is in a trial is always asked.
func (d departure) lead() error {
	if d.unasked() {
		return d.start()
	}
	owner, err := org.Kind.Read(d.r.Context(), d.Store, d.at.Org)
	if err != nil {
		return err
	}
	if owner == nil {
		return errProviderGone
	}
	with := d.address.parameters()
	if d.hint != "" {
		with.Set(paramHint, d.hint)
	}
	view := pages.ChooseProvider{Frame: d.frame(pages.Frame{}), Of: owner.Data.Name,
		Provider: Button(d.at, ToProvider(d.at.ID, with)), Other: d.address.without().link()}
	if d.linking() {
		view.Other = pages.To(pages.PathSecurity, nil)
	}
	d.render(view, nil)
	return nil
}

// start sends the browser to the provider. Somebody who is signed in is asked there to prove again who they are, or
// links an account. What an application asks for in the way of a proof is asked for there as well. After a form
// somebody has chosen to go there.
func (d departure) start() error {
	if err := d.notes().sentTo(d.at.ID); err != nil {
		return err
	}
	chosen := d.r.Method == http.MethodPost // from a page of ours, see pages.SameOrigin
	a := upstream.Attempt{Browser: web.Browser(d.w, d.r), Return: d.address.parameters().Encode(), Hint: d.hint,
		App: d.application(), Again: d.bearer != nil && !d.linking(), Chosen: chosen,
		RequestID: call.From(d.r.Context()).RequestID}
	if d.pending != nil {
		a.Again, a.MaxAge = a.Again || d.pending.Afresh(), d.pending.MaxAge
	}
	to, err := d.Federation.Start(d.r.Context(), d.at, a)
	if err != nil {
		return d.failedThere(err)
	}
	if !chosen {
		Redirect(d.w, to)
		return nil
	}
	d.keepChoice(d.w, d.r, d.at)
	// After a form, browsers would hold the way to the provider against our policy for forms.
	link, err := pages.AtProvider(to)
	if err != nil {
		return err
	}
	d.render(pages.Onward{Frame: d.frame(pages.Frame{}), Provider: d.at.Data.General.Name, To: link}, nil)
	return nil
}

// linking tells whether somebody who is signed in wants to link an account.
func (v *signIn) linking() bool { return v.address.linking && v.bearer != nil && !v.trial() }

// failedThere says that a provider did not let somebody in, without details: those are for administrators.
func (v *signIn) failedThere(err error) error {
	failed, ours := errors.AsType[*upstream.Failure](err)
	if !ours {
		return err
	}
	web.Failed(v.r.Context(), failed.Refusal())
	page := web.Page{Status: http.StatusBadRequest, What: pages.ProviderFailed}
	if failed.Away() {
		page = web.Page{Status: http.StatusServiceUnavailable, What: pages.ProviderAway}
	}
	switch failed.Check {
	case failure.Denied:
		page.What = pages.ProviderDenied
	case failure.State, failure.StateExpired, failure.StateUsed, failure.Browser, failure.Provider, failure.Changed:
		page.What = pages.Expired
	}
	next := v.address.without().link()
	if v.linking() {
		next = pages.To(pages.PathSecurity, nil) // nothing was linked, and they are signed in
	}
	v.Pages.Render(v.w, v.r, page.Status, pages.Failed{Frame: v.frame(pages.Frame{}), What: page.What, Next: next,
		RequestID: call.From(v.r.Context()).RequestID})
	return nil
}
