package login

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/session"
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
	return url.Values{paramTo: {to}, paramAccount: {session}, paramLink: {"1"}}
}

// offered reads what the place of a sign-in offers.
func (l *Login) offered(ctx context.Context, place string) (Offer, error) {
	return offerAt(ctx, l.Store, place, l.Sessions.DefaultOrg)
}

// place is the organization that whoever signs in is taken to be of, until they say who they are.
func (v *visit) place() string {
	bound, ofApplication := v.pending.Place()
	for _, in := range []string{bound, ofApplication} {
		if in != "" {
			return in
		}
	}
	return v.Sessions.DefaultOrg
}

// buttons show the providers of the place.
func (v *visit) buttons() (buttons []pages.Provider, more pages.MoreProviders, only bool, err error) {
	if v.Federation == nil || v.arrival != nil {
		return nil, more, false, nil // who has come through one already is to sign in in another way
	}
	o, err := v.offered(v.r.Context(), v.place())
	if err != nil {
		return nil, more, false, err
	}
	part := PartOf(v.r)
	offers, err := o.Part(v.r.Context(), part)
	if err != nil {
		return nil, more, false, err
	}
	for _, p := range offers.Providers {
		buttons = append(buttons, Button(p, v.toProvider(p.ID)))
	}
	more = MoreProviders(v.r, part, offers, v.parameters(nil))
	bound, _ := v.pending.Place()
	only = bound != "" && (len(buttons) > 0 || more.There) && v.r.URL.Query().Get(paramOther) != otherName && o.Without()
	return buttons, more, only, nil
}

// PartOf reads which part of the providers a page is to show.
func PartOf(r *http.Request) idp.Part {
	query := r.URL.Query()
	part := idp.Part{Begins: strings.TrimSpace(query.Get(pages.FieldProvider)), After: query.Get(pages.FieldAfter)}
	if utf8.RuneCountInString(part.Begins) > syntax.MaxName || len(part.After) > event.MaxID {
		return idp.Part{} // no page leads there
	}
	return part
}

// MoreProviders leads from a part of the providers to the others. kept are the parameters of the page.
func MoreProviders(r *http.Request, part idp.Part, offers idp.Offers, kept url.Values) pages.MoreProviders {
	next := pages.Link{}
	if offers.More != "" {
		with := maps.Clone(kept)
		with.Set(pages.FieldAfter, offers.More)
		if part.Begins != "" {
			with.Set(pages.FieldProvider, part.Begins)
		}
		next = pages.To(r.URL.Path, with)
	}
	more := pages.NewMoreProviders(part.Begins, part.After != "", next, kept)
	more.None = len(offers.Providers) == 0 && next.IsNone()
	return more
}

// toProvider leads to a provider and back to this page.
func (v *visit) toProvider(id string) pages.Link { return ToProvider(id, v.parameters(nil)) }

// toProviderAs tells the provider which name was typed.
func (v *visit) toProviderAs(id, name string) pages.Link {
	with := v.parameters(nil)
	if name != "" {
		with.Set(paramHint, name)
	}
	return ToProvider(id, with)
}

// straight is the provider that the application wants, or the only way in; nil where people choose. Nobody who has come
// back from there, or wants another way, is led there again.
func (v *visit) straight() (*event.Object[idp.Provider], error) {
	query := v.r.URL.Query()
	if v.Federation == nil || v.arrival != nil || v.pending == nil || query.Get(paramOther) != "" || v.r.Method != http.MethodGet {
		return nil, nil
	}
	o, err := v.offered(v.r.Context(), v.place())
	if err != nil {
		return nil, err
	}
	if hinted, err := o.Find(v.r.Context(), v.pending.ProviderHint); err != nil || hinted != nil {
		return hinted, err
	}
	if bound, _ := v.pending.Place(); bound != "" {
		return o.Only(v.r.Context())
	}
	return nil, nil
}

// byDomain is the provider of the organization that has proven the domain of a name by DNS, if it sends its people
// there; nil where it does not. Whether there is somebody of that name does not matter.
func (v *visit) byDomain(name string) (*event.Object[idp.Provider], error) {
	_, domain, ok := strings.Cut(syntax.NameKey(name), "@")
	if v.Federation == nil || v.arrival != nil || !ok || slices.Contains([]string{otherWay, otherName}, v.r.URL.Query().Get(paramOther)) { // or nobody would get past a provider that does not work
		return nil, nil
	}
	domain, problem := syntax.Domain(domain)
	if problem != nil {
		return nil, nil
	}
	owner, err := v.Store.Holder(v.r.Context(), org.ProvenClaim(domain))
	if err != nil || owner == "" {
		return nil, err
	}
	if bound, _ := v.pending.Place(); bound != "" && bound != owner {
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
	site.Handle(PathProvider+"*/logout", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { told.Serve(w, r, providerIn(r)) })) // from providers themselves
}

// providerIn is the id of the provider in an address.
func providerIn(r *http.Request) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, PathProvider), "/")
	return id
}

// errProviderGone is what somebody sees whose provider is not offered any more.
var errProviderGone = errs.New(errs.NotFound, idp.NotFound, "this identity provider is not offered here")

// startAtProvider sends the browser to a provider. Whoever has not pressed a button of ours is asked before: any site
// can have a browser open this address.
func (l *Login) startAtProvider(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if query.Has(ownpage.Param) {
		return l.startForApplication(w, r)
	}
	if l.noCookie(w, r, query.Has(paramRequest) || r.Method == http.MethodPost, query) {
		return nil
	}
	v, err := l.visit(w, r)
	if err != nil {
		return err
	}
	p, err := l.provider(r.Context(), providerIn(r))
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		return v.start(p, query.Get(paramHint), trial.ByChoice)
	}
	return v.lead(p, query.Get(paramHint), trial.ByChoice)
}

// lead leads to a provider where somebody has chosen it before, and else asks whether they want to go there. Who is
// signed in, wants to link an account or is in a trial is always asked.
func (v *visit) lead(p *event.Object[idp.Provider], hint string, why trial.Because) error {
	if v.hasChosen(v.r, p) && len(v.accounts.all) == 0 && !v.trial() {
		return v.start(p, hint, why)
	}
	owner, err := org.Kind.Read(v.r.Context(), v.Store, p.Org)
	if err != nil {
		return err
	}
	if owner == nil {
		return errProviderGone
	}
	view := pages.ChooseProvider{Frame: v.frame(pages.Frame{}), Of: owner.Data.Name, Provider: Button(p, v.toProviderAs(p.ID, hint)), Other: v.leaving()}
	if v.linking() {
		view.Other = pages.To(pages.PathSecurity, nil)
	}
	v.render(view, nil)
	return nil
}

// start sends the browser to a provider. Somebody who is signed in is asked there to prove again who they are, or links
// an account. What an application asks for in the way of a proof is asked for there as well. After a form somebody has
// chosen to go there.
func (v *visit) start(p *event.Object[idp.Provider], hint string, why trial.Because) error {
	if err := v.note(trial.Provider, trial.Shown, trial.Why{Because: why, Detail: p.ID}); err != nil {
		return err
	}
	chosen := v.r.Method == http.MethodPost // from a page of ours, see pages.SameOrigin
	a := upstream.Attempt{Browser: web.Browser(v.w, v.r), Return: v.parameters(nil).Encode(), Hint: hint, Again: v.bearer != nil && !v.linking(), Chosen: chosen, RequestID: call.From(v.r.Context()).RequestID}
	if v.pending != nil {
		a.Again, a.MaxAge = a.Again || v.pending.Afresh(), v.pending.MaxAge
	}
	address, err := v.Federation.Start(v.r.Context(), p, a)
	if err != nil {
		return v.failedThere(err)
	}
	if !chosen {
		Redirect(v.w, address)
		return nil
	}
	v.keepChoice(v.w, v.r, p)
	// After a form, browsers would hold the way to the provider against our policy for forms.
	to, err := pages.AtProvider(address)
	if err != nil {
		return err
	}
	v.render(pages.Onward{Frame: v.frame(pages.Frame{}), Provider: p.Data.General.Name, To: to}, nil)
	return nil
}

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

// linking tells whether somebody who is signed in wants to link an account.
func (v *visit) linking() bool {
	return v.r.URL.Query().Get(paramLink) != "" && v.bearer != nil && !v.trial()
}

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
	arrived, err := l.Federation.Finish(r.Context(), p, upstream.Callback{Provider: id, Browser: browser, Query: r.URL.Query(), Header: r.Header, Peer: info.Peer, RequestID: info.RequestID})
	if attemptIn(arrived) != "" {
		return l.backForApplication(w, r, p, arrived, err)
	}
	// From here on it is the sign-in that the browser left for the provider.
	from := *r
	from.URL = &url.URL{Path: Path, RawQuery: arrived.Return}
	v, also := l.visit(w, &from)
	if also != nil {
		return errors.Join(err, also)
	}
	outcome := trial.Done
	if err != nil {
		outcome = trial.Failed
	}
	if err := v.note(trial.Provider, outcome, trial.Why{Because: trial.ByAnswer, Detail: id}); err != nil {
		return err
	}
	if err != nil {
		return v.failedThere(err)
	}
	return v.arrive(p, arrived)
}

// failedThere says that a provider did not let somebody in, without details: those are for administrators.
func (v *visit) failedThere(err error) error {
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
	next := v.leaving()
	if v.linking() {
		next = pages.To(pages.PathSecurity, nil) // nothing was linked, and they are signed in
	}
	v.Pages.Render(v.w, v.r, page.Status, pages.Failed{Frame: v.frame(pages.Frame{}), What: page.What, Next: next, RequestID: call.From(v.r.Context()).RequestID})
	return nil
}

// arrive goes on with somebody whom a provider has brought.
func (v *visit) arrive(p *event.Object[idp.Provider], back upstream.Arrived) error {
	ctx, who := v.r.Context(), back.Identity
	kept := Arrival{Who: who, Provider: p.Data.General.Name}
	switch {
	case v.linking():
		kept.Linking = v.bearer.Token.ID
		return v.hold(kept)
	case back.Again && back.Chosen && v.bearer != nil:
		stepped, err := v.Federated.ReproveThrough(ctx, v.bearer.Caller, who, v.from())
		switch {
		case err == nil:
			return v.stepped(stepped)
		case is(err, session.RecentProofRequired) && v.pending != nil:
			return v.on(v.bearer.Token.ID, paramTried)
		case is(err, session.NotLinked), is(err, session.LinkSuspended), is(err, session.RecentProofRequired), is(err, session.MethodNotAllowed):
			// It is another account there, or the provider does not say that the person has just proven who they are.
			return proveThrough{}.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.NotProvenThere(kept.Provider)}}})
		}
		return err
	}
	v.stranger()
	if !back.Chosen {
		var err error
		if kept.Ask, err = v.asksFirst(p, who); err != nil {
			return err
		}
		if kept.Ask {
			return v.hold(kept)
		}
	}
	return v.land(p, kept, back.Chosen)
}

// asksFirst tells whether somebody has to be asked who has come from a provider without having chosen it: unless
// nothing happens but that somebody signs in who is linked there already, in a browser in which nobody else is.
func (v *visit) asksFirst(p *event.Object[idp.Provider], who idp.Identity) (bool, error) {
	id, err := v.Store.Holder(v.r.Context(), user.LinkClaim(who.Provider, who.Issuer, who.Subject))
	if err != nil {
		return false, err
	}
	if id == "" {
		return p.Data.General.LinkByEmail, nil // other pages ask who is to have a new account, or to link one
	}
	return slices.ContainsFunc(v.accounts.all, func(has account) bool { return has.bearer.Caller.UserID != id }), nil
}

// land signs somebody in whom a provider has brought, or asks for what is missing. chosen tells that they have pressed
// a button of ours for it.
func (v *visit) land(p *event.Object[idp.Provider], kept Arrival, chosen bool) error {
	ctx, who := v.r.Context(), kept.Who
	bound, _ := v.pending.Place()
	info := call.From(ctx)
	in, err := v.Federated.SignInThrough(ctx, who, federated.Through{OrgID: bound, NoLink: v.trial() || !chosen,
		Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID})
	switch {
	case err == nil && v.pending != nil && v.pending.Dated():
		return v.enter(in, paramTried)
	case err == nil:
		return v.enter(in)
	case v.trial() && (is(err, session.LinkSuspended) || is(err, session.NotLinked)):
		return v.endTrial(trial.NewAccount, trial.Newcomer)
	case is(err, session.LinkSuspended):
		kept.Suspended = true
		return v.hold(kept)
	case is(err, session.MethodNotAllowed):
		return loginName{}.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.MethodNotAllowed()}}})
	case !is(err, session.NotLinked):
		return v.notIn(err)
	}
	if kept.Register, err = v.mayRegister(p); err != nil {
		return err
	}
	wanted := v.registration(who)
	if invited, err := v.invited(&wanted); err != nil {
		return err
	} else if invited {
		kept.Register = true
	}
	return v.hold(kept) // nobody is registered without having seen where
}

// confirmArrival asks somebody whether they want to sign in whom an address has led to a provider and back.
type confirmArrival struct{}

func (confirmArrival) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (confirmArrival) show(v *visit, with pages.Frame) error {
	who := v.arrival.Who
	view := pages.ConfirmArrival{Frame: v.frame(with), Provider: v.arrival.Provider, As: v.arrival.As(), Other: v.leaving()}
	in := who.Org
	linked, err := v.linked(v.r.Context(), who)
	if err != nil {
		return err
	}
	if linked != nil {
		in = linked.Org
	}
	o, err := org.Kind.Read(v.r.Context(), v.Store, in)
	if err != nil {
		return err
	}
	if o != nil {
		view.Of = o.Data.Name
		if linked != nil {
			view.LoginName = o.Data.LoginName(linked.Data.UserName)
		}
	}
	if now := v.accounts.Current(); now != nil {
		known, err := v.known(v.r.Context(), now)
		if err != nil {
			return err
		}
		view.Others = known.LoginName
	}
	v.render(view, with.Problems)
	return nil
}

func (c confirmArrival) take(v *visit) error {
	if v.r.PostFormValue(pages.FieldDo) != pages.DoAllow {
		return c.show(v, pages.Frame{})
	}
	p, err := v.provider(v.r.Context(), v.arrival.Who.Provider)
	if err != nil {
		return err
	}
	kept := *v.arrival
	if err := v.arrivals().Drop(v.r.Context(), v.arrival); err != nil {
		return err
	}
	kept.Ask, v.arrival = false, nil
	return v.land(p, kept, true)
}

// mayRegister tells whether a provider makes new accounts here: in its own organization, or as one of the default
// organization in the one that the sign-in is bound to, where that one wants it.
func (v *visit) mayRegister(p *event.Object[idp.Provider]) (bool, error) {
	bound, _ := v.pending.Place()
	if !p.Data.General.AutoRegister || bound == "" || bound == p.Org {
		return p.Data.General.AutoRegister, nil
	}
	asked, _, err := org.ReadPolicy(v.r.Context(), v.Store, bound)
	return asked.RegistersFromDefault && p.Org == v.Sessions.DefaultOrg, err
}

// notIn says that somebody may not sign in, as for any other way.
func (v *visit) notIn(err error) error {
	if !is(err, session.SignInFailed) {
		return err
	}
	v.Pages.Render(v.w, v.r, http.StatusForbidden, pages.Failed{Frame: v.frame(pages.Frame{}), What: pages.NotPermitted, Next: v.leaving()})
	return nil
}

// hold keeps an arrival and shows the page that it needs.
func (v *visit) hold(a Arrival) error {
	id, err := v.arrivals().Keep(v.r.Context(), v.browser, a)
	if err != nil {
		return err
	}
	Redirect(v.w, v.link(url.Values{paramArrival: {id}, paramLink: {""}}).String())
	return nil
}

// registration is what is known of somebody who has no account yet.
func (v *visit) registration(who idp.Identity) federated.Registration {
	bound, _ := v.pending.Place()
	return registrationOf(who, bound, call.From(v.r.Context()))
}

// invited adds what an invitation brings to the registration of somebody who is on the way from its page.
func (v *visit) invited(n *federated.Registration) (bool, error) {
	if v.Invited == nil || v.pending != nil {
		return false, nil
	}
	return v.Invited(v.r, v.to, n)
}

// register asks for what a new account lacks.
type register struct{}

func (register) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (register) show(v *visit, with pages.Frame) error {
	known := v.registration(v.arrival.Who)
	if v.r.Method == http.MethodPost {
		v.typed(&known)
	}
	invited, err := v.invited(&known)
	if err != nil {
		return err
	}
	asked, _, err := org.ReadPolicy(v.r.Context(), v.Store, known.OrgID)
	if err != nil {
		return err
	}
	in, err := org.Kind.Read(v.r.Context(), v.Store, known.OrgID)
	if err != nil {
		return err
	}
	if in == nil {
		return session.ErrSignInFailed
	}
	with.For = registersFor(known, invited)
	v.render(pages.Register{Invited: invited, In: in.Data.Name, Frame: v.frame(with), Terms: shownTerms(asked, known.AcceptedTerms), Provider: v.arrival.Provider, As: v.arrival.As(), FirstName: known.FirstName, LastName: known.LastName,
		UserName: known.UserName, Email: known.Email, Existing: v.link(url.Values{paramLink: {"1"}}), Other: v.leaving()}, with.Problems)
	return nil
}

// typed takes over what somebody has filled in.
func (v *visit) typed(r *federated.Registration) {
	r.FirstName, r.LastName = v.r.PostFormValue(pages.FieldFirstName), v.r.PostFormValue(pages.FieldLastName)
	r.UserName, r.Email = v.r.PostFormValue(pages.FieldUserName), strings.TrimSpace(v.r.PostFormValue(pages.FieldEmail))
	r.EmailFromProvider, r.AcceptedTerms = r.Email == v.arrival.Who.Email, v.r.PostFormValue(pages.FieldTerms)
}

// registersFor is what the form was shown for. The link of an invitation is in a cookie, which another tab may have
// changed since.
func registersFor(r federated.Registration, invited bool) string {
	if !invited {
		return r.OrgID
	}
	return r.OrgID + " " + r.Email
}

func (p register) take(v *visit) error {
	wanted := v.registration(v.arrival.Who)
	v.typed(&wanted)
	invited, err := v.invited(&wanted)
	if err != nil {
		return err
	}
	if v.r.PostFormValue(pages.FieldFor) != registersFor(wanted, invited) {
		return p.show(v, pages.Frame{})
	}
	in, err := v.Federated.RegisterThrough(v.r.Context(), v.arrival.Who, wanted)
	if err != nil {
		problems, err := newAccountProblems(err)
		if err != nil {
			return err
		}
		return p.show(v, pages.Frame{Problems: problems})
	}
	if err := v.arrivals().Drop(v.r.Context(), v.arrival); err != nil {
		return err
	}
	v.arrival = nil
	return v.enter(in)
}

// Values of paramOther. Where somebody has come back from a provider, nobody is sent there again without asking; and
// who wants to type a name can do so, also where providers are the only way in: an owner may have kept the password.
const (
	otherWay  = "way"
	otherName = "name"
)

// leaving leads away from a provider, and from what it has brought.
func (v *visit) leaving() pages.Link {
	return v.link(url.Values{paramArrival: {""}, paramLink: {""}, paramAccount: {""}, paramOther: {otherWay}})
}

// unlinked says that nobody is linked, and how to change that.
type unlinked struct{}

func (unlinked) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (unlinked) show(v *visit, with pages.Frame) error {
	v.render(pages.Unlinked{Frame: v.frame(with), Provider: v.arrival.Provider, As: v.arrival.As(), Suspended: v.arrival.Suspended,
		SignIn: v.link(url.Values{paramLink: {"1"}}), Other: v.leaving()}, with.Problems)
	return nil
}

func (u unlinked) take(v *visit) error { return u.show(v, pages.Frame{}) }

// confirmLink asks somebody who has signed in whether an account at a provider is theirs.
type confirmLink struct{}

func (confirmLink) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (confirmLink) show(v *visit, with pages.Frame) error {
	v.render(pages.ConfirmLink{Frame: v.frame(with), LoginName: v.loginName(), Provider: v.arrival.Provider, As: v.arrival.As()}, with.Problems)
	return nil
}

func (c confirmLink) take(v *visit) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoAllow:
		if _, err := v.Federated.Link(v.r.Context(), v.bearer.Caller, v.arrival.Who, v.from()); err != nil {
			switch {
			case is(err, user.LinkTaken):
				return c.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.LinkedElsewhere()}}})
			case is(err, user.TooManyLinks):
				return c.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.TooManyLinks()}}})
			case is(err, session.MethodNotAllowed):
				return c.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.MethodNotAllowed()}}})
			}
			return v.notIn(err)
		}
	case pages.DoDeny:
	default:
		return c.show(v, pages.Frame{})
	}
	if err := v.arrivals().Drop(v.r.Context(), v.arrival); err != nil {
		return err
	}
	if v.arrival.Linking != "" && v.r.PostFormValue(pages.FieldDo) == pages.DoDeny {
		Redirect(v.w, pages.PathSecurity) // where they came from, with nothing to say
		return nil
	}
	Redirect(v.w, v.link(url.Values{paramAccount: {v.bearer.Token.ID}, paramArrival: {""}, paramLink: {""}, paramOther: {""}}).String())
	return nil
}

// proveThrough asks somebody who has no password to sign in at a provider once more.
type proveThrough struct{}

func (proveThrough) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (proveThrough) show(v *visit, with pages.Frame) error {
	view := pages.ProveThrough{Frame: v.frame(with), LoginName: v.loginName(), Other: v.other()}
	for _, l := range v.person.Data.Human.Links {
		p, err := idp.Kind.Read(v.r.Context(), v.Store, l.Provider)
		if err != nil {
			return err
		}
		if p != nil && p.Data.Offered() {
			view.Providers = append(view.Providers, Button(p, ToProvider(p.ID, v.parameters(url.Values{paramAccount: {v.bearer.Token.ID}}))))
		}
	}
	v.render(view, with.Problems)
	return nil
}

func (p proveThrough) take(v *visit) error { return p.show(v, pages.Frame{}) }
