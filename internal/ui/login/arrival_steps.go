package login

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// confirmArrival asks somebody whether they want to sign in whom an address has led to a provider and back.
type confirmArrival struct{}

func (confirmArrival) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (confirmArrival) show(v *signIn, with pages.Frame) error {
	who := v.arrival.Who
	view := pages.ConfirmArrival{Frame: v.frame(with), Provider: v.arrival.Provider, As: v.arrival.As(),
		Other: v.address.without().link()}
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

func (c confirmArrival) take(v *signIn) error {
	if v.r.PostFormValue(pages.FieldDo) != pages.DoAllow {
		return c.show(v, pages.Frame{})
	}
	p, err := v.provider(v.r.Context(), v.arrival.Who.Provider)
	if err != nil {
		return err
	}
	kept := *v.arrival
	if err := v.dropArrival(); err != nil {
		return err
	}
	kept.Ask = false
	return brought{v, p, kept}.admit(true)
}

// register asks for what a new account lacks.
type register struct{}

func (register) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (s register) show(v *signIn, with pages.Frame) error {
	known, invited, err := s.wanted(v)
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
	with.For = s.shownFor(known, invited)
	v.render(pages.Register{Frame: v.frame(with), Invited: invited != nil, In: in.Data.Name,
		Terms: shownTerms(asked, known.AcceptedTerms), Provider: v.arrival.Provider, As: v.arrival.As(),
		FirstName: known.FirstName, LastName: known.LastName, UserName: known.UserName, Email: known.Email,
		Existing: v.toLink(), Other: v.address.without().link()}, with.Problems)
	return nil
}

// wanted is the account that is to be made: what the provider says of the person, over it what they have filled in, and
// over that what an invitation brings.
func (register) wanted(v *signIn) (wanted federated.Registration, invited *invitation.Link, err error) {
	wanted = v.registration(v.arrival.Who)
	if v.r.Method == http.MethodPost {
		value := v.r.PostFormValue
		wanted.FirstName, wanted.LastName = value(pages.FieldFirstName), value(pages.FieldLastName)
		wanted.UserName, wanted.Email = value(pages.FieldUserName), strings.TrimSpace(value(pages.FieldEmail))
		wanted.EmailFromProvider = wanted.Email == v.arrival.Who.Email
		wanted.AcceptedTerms = value(pages.FieldTerms)
	}
	if invited, err = v.invitation(); err != nil {
		return wanted, nil, err
	}
	if invited != nil {
		wanted = invited.Registration(wanted)
	}
	if v.r.Method != http.MethodPost {
		wanted.UserName, err = user.OfferedName(v.r.Context(), v.Store, wanted.OrgID,
			cmp.Or(wanted.UserName, wanted.Email))
	}
	return wanted, invited, err
}

// shownFor is what the form was shown for. The link of an invitation is in a cookie, which another tab may have changed
// since.
func (register) shownFor(r federated.Registration, invited *invitation.Link) string {
	if invited == nil {
		return r.OrgID
	}
	return r.OrgID + " " + r.Email
}

func (s register) take(v *signIn) error {
	wanted, invited, err := s.wanted(v)
	if err != nil {
		return err
	}
	if v.r.PostFormValue(pages.FieldFor) != s.shownFor(wanted, invited) {
		return s.show(v, pages.Frame{})
	}
	var in session.SignedIn
	if invited != nil {
		in, err = invited.AcceptThrough(v.r.Context(), v.Federated, v.arrival.Who, wanted)
	} else {
		in, err = v.Federated.RegisterThrough(v.r.Context(), v.arrival.Who, wanted)
	}
	if err != nil {
		problems, err := newAccountProblems(err)
		if err != nil {
			return err
		}
		return s.show(v, pages.Frame{Problems: problems})
	}
	if err := v.dropArrival(); err != nil {
		return err
	}
	return v.enter(in)
}

// toLink leads to linking an account there is with whom a provider has brought.
func (v *signIn) toLink() pages.Link {
	to := v.address
	to.linking = true
	return to.link()
}

// unlinked says that nobody is linked, and how to change that.
type unlinked struct{}

func (unlinked) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (unlinked) show(v *signIn, with pages.Frame) error {
	v.render(pages.Unlinked{Frame: v.frame(with), Provider: v.arrival.Provider, As: v.arrival.As(),
		Suspended: v.arrival.Suspended, SignIn: v.toLink(), Other: v.address.without().link()}, with.Problems)
	return nil
}

func (u unlinked) take(v *signIn) error { return u.show(v, pages.Frame{}) }

// confirmLink asks somebody who has signed in whether an account at a provider is theirs.
type confirmLink struct{}

func (confirmLink) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (confirmLink) show(v *signIn, with pages.Frame) error {
	v.render(pages.ConfirmLink{Frame: v.frame(with), LoginName: v.loginName(), Provider: v.arrival.Provider,
		As: v.arrival.As()}, with.Problems)
	return nil
}

func (c confirmLink) take(v *signIn) error {
	do, fromAccount := v.r.PostFormValue(pages.FieldDo), v.arrival.Linking != ""
	switch do {
	case pages.DoAllow:
		if _, err := v.Federated.Link(v.r.Context(), v.bearer.Caller, v.arrival.Who, v.from()); err != nil {
			return c.notLinked(v, err)
		}
	case pages.DoDeny:
	default:
		return c.show(v, pages.Frame{})
	}
	if err := v.dropArrival(); err != nil {
		return err
	}
	if fromAccount && do == pages.DoDeny {
		Redirect(v.w, pages.PathSecurity) // where they came from, with nothing to say
		return nil
	}
	to := v.address
	to.account, to.linking, to.other = v.bearer.Token.ID, false, ""
	Redirect(v.w, to.link().String())
	return nil
}

// notLinked says why an account was not linked.
func (c confirmLink) notLinked(v *signIn, err error) error {
	var said pages.Message
	switch {
	case is(err, user.LinkTaken):
		said = pages.LinkedElsewhere()
	case is(err, user.TooManyLinks):
		said = pages.TooManyLinks()
	case is(err, session.MethodNotAllowed):
		said = pages.MethodNotAllowed()
	default:
		return v.notIn(err)
	}
	return c.show(v, pages.Frame{Problems: []pages.Problem{{Message: said}}})
}

// proveAtProvider asks somebody who has no password to sign in at a provider once more.
type proveAtProvider struct{}

func (proveAtProvider) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (proveAtProvider) show(v *signIn, with pages.Frame) error {
	view := pages.ProveThrough{Frame: v.frame(with), LoginName: v.loginName(), Other: v.other()}
	to := v.address
	to.account = v.bearer.Token.ID
	for _, l := range v.person.Data.Human.Links {
		p, err := idp.Kind.Read(v.r.Context(), v.Store, l.Provider)
		if err != nil {
			return err
		}
		if p != nil && p.Data.Offered() {
			view.Providers = append(view.Providers, Button(p, ToProvider(p.ID, to.parameters())))
		}
	}
	v.render(view, with.Problems)
	return nil
}

func (p proveAtProvider) take(v *signIn) error { return p.show(v, pages.Frame{}) }
