package account

import (
	"net/url"
	"slices"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/login"
)

// paramLink is the parameter of the address that names the provider at which an account is to be linked.
const paramLink = "link"

// linked are the accounts at identity providers that the person signs in with.
func (v *browserRequest) linked() (shown []pages.LinkedAccount, err error) {
	all, err := v.Federated.Links(v.r.Context(), v.me)
	if err != nil {
		return nil, err
	}
	proof, err := session.ProofOf(&v.bearer.Token)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		shown = append(shown, pages.LinkedAccount{
			ID:        l.ID,
			Provider:  l.ProviderName,
			As:        l.Name,
			Added:     event.Time(l.Created),
			Suspended: l.Suspended && l.ProviderName != "",
			Confirm:   l.Suspended && l.ProviderName != "" && proof.Upstream.Of() != l.Provider,
		})
	}
	return shown, nil
}

// linkable are the providers at which the person could link an account.
func (v *browserRequest) linkable() (offered []pages.Provider, more pages.MoreProviders, err error) {
	if len(v.me.Data.Human.Links) >= user.MaxLinks {
		return nil, more, nil
	}
	part := login.PartOf(v.r)
	part.Skip = func(p *event.Object[idp.Provider]) bool {
		return slices.ContainsFunc(v.me.Data.Human.Links, func(l user.Link) bool { return l.Provider == p.ID })
	}
	found, err := idp.SignInProviders{Org: v.home.ID, DefaultOrg: v.Sessions.DefaultOrg,
		Ways: v.home.Data.Policy.SignIn}.Part(v.r.Context(), v.Store, part)
	if err != nil {
		return nil, more, err
	}
	for _, p := range found.Providers {
		offered = append(offered, login.Button(p, pages.To(pages.PathSecurity, url.Values{paramLink: {p.ID}})))
	}
	return offered, login.MoreProviders(v.r, part, found, url.Values{}), nil
}

// link sends somebody who has just proven who they are to a provider. Errors: session.ErrNotRecent.
func (v *browserRequest) link(id string) error {
	if !session.Recent(v.bearer.Caller, v.Clock()) {
		v.to = v.r.URL.RequestURI()
		return session.ErrNotRecent
	}
	v.redirect(login.ToProvider(id,
		login.Linking(v.bearer.Token.ID,
			pages.To(pages.PathSecurity, url.Values{paramDone: {string(accountLinked)}}).String())))
	return nil
}
