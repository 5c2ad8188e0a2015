package login

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/ownpage"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// continuePart is what follows the id of a provider in the address where people are asked whether they want to go on to
// an application that has a sign-in page of its own.
const continuePart = "continue"

// startForApplication sends the browser to a provider for such an application.
func (l *Login) startForApplication(w http.ResponseWriter, r *http.Request) error {
	text := r.URL.Query().Get(ownpage.Param)
	t, err := l.OwnPages.Open(r.Context(), providerIn(r), text)
	if err != nil {
		return err
	}
	p, err := l.provider(r.Context(), providerIn(r))
	if err != nil {
		return err
	}
	address, err := l.Federation.Start(r.Context(), p, upstream.Attempt{
		Browser:   web.Browser(w, r),
		Return:    url.Values{ownpage.Param: {text}}.Encode(),
		Again:     t.Again,
		Hint:      t.Hint,
		App:       t.Application.ID,
		RequestID: call.From(r.Context()).RequestID,
	})
	if err != nil {
		return failedFor(w, r, t, err)
	}
	Redirect(w, address)
	return nil
}

// failedFor tells the application that somebody does not come, without details: those are for administrators.
func failedFor(w http.ResponseWriter, r *http.Request, t *ownpage.Attempt, err error) error {
	failed, ours := errors.AsType[*upstream.Failure](err)
	if !ours {
		return err
	}
	web.Failed(r.Context(), failed.Refusal())
	word := "server_error"
	switch {
	case failed.Check == failure.Denied:
		word = "access_denied"
	case failed.Away():
		word = "temporarily_unavailable"
	}
	return goBack(w, t, "error", word)
}

func goBack(w http.ResponseWriter, t *ownpage.Attempt, name, value string) error {
	to, err := t.Back(name, value)
	if err != nil {
		return err
	}
	link, err := pages.Outward(to)
	if err != nil {
		return err
	}
	Redirect(w, link.String())
	return nil
}

// attemptIn is the attempt of such an application that a sign-in came from; empty: it came from our own pages.
func attemptIn(back upstream.SignedIn) string {
	q, err := url.ParseQuery(back.Return)
	if err != nil {
		return ""
	}
	return q.Get(ownpage.Param)
}

// backForApplication keeps who has come back until they have been asked.
func (l *Login) backForApplication(w http.ResponseWriter, r *http.Request, p *event.Object[idp.Provider],
	back upstream.SignedIn, failed error) error {
	text := attemptIn(back)
	t, err := l.OwnPages.Open(r.Context(), p.ID, text)
	if err != nil {
		return errors.Join(failed, err)
	}
	if failed != nil {
		return failedFor(w, r, t, failed)
	}
	id, err := l.arrivals().Keep(r.Context(), web.KnownBrowser(r),
		Arrival{Who: back.Identity, Provider: p.Data.General.Name, Attempt: text})
	if err != nil {
		return err
	}
	Redirect(w, pages.To(PathProvider+p.ID+"/"+continuePart, url.Values{paramArrival: {id}}).String())
	return nil
}

// continueToApplication asks whether somebody wants to go on, and sends the application a code once they do. Without
// this anybody who can have a browser open an address could sign it in somewhere.
func (l *Login) continueToApplication(w http.ResponseWriter, r *http.Request) error {
	a, err := l.arrivals().Read(r.Context(), web.KnownBrowser(r), r.URL.Query().Get(paramArrival))
	if err != nil {
		return err
	}
	if a.Attempt == "" || a.Who.Provider != providerIn(r) {
		return oauth.ErrRequestNotFound
	}
	t, err := l.OwnPages.Open(r.Context(), a.Who.Provider, a.Attempt)
	if err != nil {
		return err
	}
	if _, err := l.provider(r.Context(), a.Who.Provider); err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		switch r.PostFormValue(pages.FieldDo) {
		case pages.DoAllow:
			code, err := l.OwnPages.Code(r.Context(), t, a.Who, arrivalRows.Key(a.ID))
			if err != nil {
				return err
			}
			return goBack(w, t, "code", code)
		case pages.DoDeny:
			if err := l.arrivals().Drop(r.Context(), a); err != nil {
				return err
			}
			return goBack(w, t, "error", "access_denied")
		}
	}
	view := pages.ToApplication{Frame: pages.Frame{Application: t.Application.Data.Name, RedirectURI: t.Return},
		Name: t.Application.Data.Name, Provider: a.Provider, As: a.As()}
	if view.LoginName, err = l.linkedTo(r, a.Who); err != nil {
		return err
	}
	l.Pages.Render(w, r, http.StatusOK, view)
	return nil
}

// linked is who is linked to an identity; nil for nobody.
func (l *Login) linked(ctx context.Context, who idp.Identity) (*event.Object[user.User], error) {
	id, err := l.Store.Holder(ctx, user.LinkClaim(who.Provider, who.Issuer, who.Subject))
	if err != nil || id == "" {
		return nil, err
	}
	return user.Kind.Read(ctx, l.Store, id)
}

// linkedTo is the login name of who is linked to an identity; empty for nobody.
func (l *Login) linkedTo(r *http.Request, who idp.Identity) (string, error) {
	u, err := l.linked(r.Context(), who)
	if err != nil || u == nil {
		return "", err
	}
	o, err := org.Kind.Read(r.Context(), l.Store, u.Org)
	if err != nil || o == nil {
		return u.Data.UserName, err
	}
	return cmp.Or(o.Data.LoginName(u.Data.UserName), u.Data.UserName), nil
}
