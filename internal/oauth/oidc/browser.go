package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/transport/web"
)

// authorize takes an authorization request and sends the browser to the pages or, where the request is refused, back to
// the application. Where it cannot be told whose request it is, a person is told instead: nobody is ever sent to an
// address that is not registered.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	form, ok := p.form(w, r)
	if !ok {
		return
	}
	get := form.Get
	ask, err := p.ask(r.Context(), get("client_id"), get)
	if err != nil {
		p.errorPage(w, r, err)
		return
	}
	ask.Browser = web.Browser(w, r)
	began, err := p.grants.Begin(r.Context(), ask)
	switch {
	case err != nil:
		p.errorPage(w, r, err)
	case began.Refused.Form != nil:
		web.Failed(r.Context(), began.Because)
		if err := p.config.PostBack(w, r, get("ui_locales"), began.Refused); err != nil {
			p.errorPage(w, r, err)
		}
	case began.Refused.Address != "":
		web.Failed(r.Context(), began.Because)
		redirect(w, began.Refused.Address)
	default:
		redirect(w, p.issuer+loginPage+"?request="+began.ID)
	}
}

// ask is the authorization request that parameters make. Errors: where the keys cannot be read.
func (p *Provider) ask(ctx context.Context, client string, get func(string) string) (request.Ask, error) {
	meant, known, err := p.parseHint(ctx, get("id_token_hint"), client)
	return request.Ask{
		ClientID: get("client_id"), RedirectURI: get("redirect_uri"), ResponseType: get("response_type"),
		ResponseMode: get("response_mode"), Scope: get("scope"),
		State: get("state"), Nonce: get("nonce"), CodeChallenge: get("code_challenge"),
		CodeChallengeMethod: get("code_challenge_method"), Prompt: get("prompt"),
		MaxAge: get("max_age"), LoginHint: get("login_hint"), UILocales: get("ui_locales"),
		ProviderHint: get("idp_hint"), Claims: get("claims"), ACRValues: get("acr_values"), Request: get("request"),
		RequestURI: get("request_uri"), Key: get("dpop_jkt"),
		Subject: meant.Subject, Unknown: !known,
	}, err
}

// form reads the parameters of a browser's request. A form that was posted from another site comes without cookies: it
// is sent round again as a plain request.
func (p *Provider) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		err := r.ParseForm()
		if _, full := errors.AsType[*errs.Error](err); full { // there is no room for it, see web.Budget
			p.errorPage(w, r, err)
			return nil, false
		}
		if err != nil || r.URL.RawQuery != "" {
			p.errorPage(w, r, errForm)
			return nil, false
		}
		redirect(w, p.issuer+r.URL.Path+"?"+r.PostForm.Encode())
		return nil, false
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		p.errorPage(w, r, errMethod)
		return nil, false
	}
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		p.errorPage(w, r, errForm)
		return nil, false
	}
	for _, values := range form {
		if len(values) > 1 {
			p.errorPage(w, r, errTwice)
			return nil, false
		}
	}
	return form, true
}

// redirect sends a browser on, as a plain request.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (p *Provider) errorPage(w http.ResponseWriter, r *http.Request, err error) {
	web.Failed(r.Context(), err)
	p.grants.Refusals.Note(err)
	p.config.ErrorPage(w, r, err)
}

// hint is what is read of an ID token that an application shows to say whom it means. It may have expired.
type hint struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Session  string `json:"sid"`
}

// parseHint reads an id_token_hint; the zero value where there is none. known is false where it is not a token of ours
// for this client, or its key is gone; without a client any does. Errors: where the keys cannot be read.
func (p *Provider) parseHint(ctx context.Context, text, client string) (h hint, known bool, err error) {
	if text == "" {
		return hint{}, true, nil
	}
	err = p.config.Keys.Verify(ctx, oauth.IDTokenType, text, &h)
	if kind := errs.KindOf(err); kind == errs.Unavailable || kind == errs.DeadlineExceeded || kind == errs.Cancelled {
		return hint{}, false, err
	}
	if err != nil || h.Issuer != p.issuer || h.Audience == "" || client != "" && client != h.Audience {
		return hint{}, false, nil
	}
	return h, true, nil
}

var errHint = errs.Invalid(errs.Violation{Message: "the id_token_hint is not a token of this server for this client"})

// logout takes the wish of an application that somebody be signed out, and sends the browser to the page that asks.
func (p *Provider) logout(w http.ResponseWriter, r *http.Request) {
	form, ok := p.form(w, r)
	if !ok {
		return
	}
	l := oauth.Logout{Client: form.Get("client_id"), UILocales: strings.Fields(form.Get("ui_locales"))}
	h, known, err := p.parseHint(r.Context(), form.Get("id_token_hint"), l.Client)
	if err == nil && !known {
		err = errHint
	}
	if err != nil {
		p.errorPage(w, r, err)
		return
	}
	if h.Audience != "" {
		l.Client, l.UserID, l.SessionID = h.Audience, h.Subject, h.Session
	}
	id, err := p.grants.BeginLogout(r.Context(), l, web.Browser(w, r), form.Get("post_logout_redirect_uri"),
		form.Get("state"))
	if err != nil {
		p.errorPage(w, r, err)
		return
	}
	redirect(w, p.issuer+logoutPage+"?request="+id)
}
