package oauth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
)

// push pushes a request that is fine.
func (w *world) push(a request.Ask) *Pushed {
	w.t.Helper()
	a.Browser = ""
	p, err := w.Push(w.t.Context(), w.client(a.ClientID), a)
	must(w.t, err)
	return p
}

// bring is what a browser brings of a pushed request.
func bring(client, uri string) request.Ask {
	return request.Ask{ClientID: client, RequestURI: uri, Browser: browser}
}

func TestAPushedRequestGoesOnAsAnyOther(t *testing.T) {
	w := newWorld(t)
	w.change("app_spa", app.SettingsChanged{PushedRequired: new(true)})
	in := w.signIn("usr_a")
	p := w.push(ask("app_spa", "openid"))
	if p.Life != time.Minute {
		t.Errorf("it lives for %v", p.Life)
	}
	brought := bring("app_spa", p.URI)
	brought.Scope, brought.State, brought.RedirectURI = "openid profile", "mine", "https://evil.test/" // do not count
	began, err := w.Begin(t.Context(), brought)
	must(t, err)
	pending, err := w.Pending(t.Context(), began.ID, browser)
	must(t, err)
	if pending.Created != event.Micros(w.store.Now()) || strings.Join(pending.Scopes, " ") != "openid" {
		t.Errorf("got %+v", pending.Request)
	}
	to, err := w.Approve(t.Context(), began.ID, browser, in, nil)
	must(t, err)
	q := parameters(t, to.Address)
	if q.Get("state") != "st" || !strings.HasPrefix(to.Address, callback) {
		t.Errorf("it leads to %s", to.Address)
	}
	_, err = w.exchange("app_spa", q.Get("code"))
	must(t, err)
}

func TestAReferenceWorksOnceForItsApplicationAndShortly(t *testing.T) {
	for name, tt := range map[string]struct {
		client string
		uri    func(w *world, uri string) string
		want   error
	}{
		"used": {"app_spa", func(w *world, uri string) string {
			_, err := w.Begin(t.Context(), bring("app_spa", uri))
			must(t, err)
			return uri
		}, ErrRequestURI},
		"another application's": {"app_jwt", func(_ *world, uri string) string { return uri }, ErrRequestURI},
		"expired": {"app_spa", func(w *world, uri string) string {
			w.store.Advance(time.Minute)
			return uri
		}, ErrRequestURI},
		"made up":              {"app_spa", func(*world, string) string { return pushedURI + "x" }, ErrRequestURI},
		"of an unknown client": {"app_none", func(_ *world, uri string) string { return uri }, ErrUnknownClient},
		"of an inactive client": {"app_spa", func(w *world, uri string) string {
			w.change("app_spa", app.Deactivated{})
			return uri
		}, ErrUnknownClient},
		"to an address that is not registered any more": {"app_spa", func(w *world, uri string) string {
			w.change("app_spa", app.SettingsChanged{RedirectURIs: &[]string{"https://shop.test/new"}})
			return uri
		}, ErrRedirectRefused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			uri := tt.uri(w, w.push(ask("app_spa", "openid")).URI)
			began, err := w.Begin(t.Context(), bring(tt.client, uri))
			wants(t, err, tt.want)
			if began.ID != "" || began.Refused.Address != "" {
				t.Errorf("got %+v", began)
			}
			if e, _ := errors.AsType[*errs.Error](err); errors.Is(err, ErrRequestURI) &&
				e.Kept != (refusal.Refusal{App: tt.client, Cause: refusal.RequestURI}) {
				t.Errorf("kept %+v", e.Kept)
			}
		})
	}
}

func TestAnotherApplicationDoesNotUseUpAReference(t *testing.T) {
	w := newWorld(t)
	uri := w.push(ask("app_spa", "openid")).URI
	_, err := w.Begin(t.Context(), bring("app_jwt", uri))
	wants(t, err, ErrRequestURI)
	_, err = w.Begin(t.Context(), bring("app_spa", uri))
	must(t, err)
}

// What Begin sends back to the application, Push answers at once.
func TestAPushedRequestIsJudgedAsOneThatTheBrowserBrings(t *testing.T) {
	for name, change := range map[string]func(*request.Ask){
		"implicit":                  func(a *request.Ask) { a.ResponseType = "token" },
		"another response mode":     func(a *request.Ask) { a.ResponseMode = "web_message" },
		"a request object":          func(a *request.Ask) { a.Request = "e30.e30." },
		"the address of a request":  func(a *request.Ask) { a.RequestURI = "https://shop.test/request" },
		"a long state":              func(a *request.Ask) { a.State = strings.Repeat("x", request.MaxState+1) },
		"no challenge":              func(a *request.Ask) { a.CodeChallenge, a.CodeChallengeMethod = "", "" },
		"a plain challenge":         func(a *request.Ask) { a.CodeChallengeMethod = "plain" },
		"an unknown prompt":         func(a *request.Ask) { a.Prompt = "shout" },
		"a hint that nobody knows":  func(a *request.Ask) { a.Unknown, a.Prompt = true, "none" },
		"too many scopes":           func(a *request.Ask) { a.Scope = strings.Repeat("a ", maxScopes+1) },
		"an unknown domain":         func(a *request.Ask) { a.Scope = "urn:signet:org:domain:nobody.test" },
		"claims that are no object": func(a *request.Ask) { a.Claims = "[]" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := ask("app_spa", "openid")
			change(&a)
			began, err := w.Begin(t.Context(), a)
			must(t, err)
			_, err = w.Push(t.Context(), w.client("app_spa"), a)
			refused, ours := asRefusal(err)
			if q := parameters(t, began.Refused.Address); !ours || q.Get("error") == "" ||
				q.Get("error") != strings.ToLower(string(refused.Reason)) || q.Get("error_description") != refused.Message {
				t.Errorf("pushed: %v, brought: %v", err, q)
			}
		})
	}
	w := newWorld(t)
	for name, change := range map[string]func(*request.Ask){
		"an address that is not registered": func(a *request.Ask) { a.RedirectURI = "https://evil.test/" },
		"another client":                    func(a *request.Ask) { a.ClientID = "app_jwt" },
		"a pushed request":                  func(a *request.Ask) { a.RequestURI = pushedURI + "x" },
	} {
		a := ask("app_spa", "openid")
		change(&a)
		if _, err := w.Push(t.Context(), w.client("app_spa"), a); errs.KindOf(err) != errs.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"app_tv"} {
		_, err := w.Push(t.Context(), w.client(id), ask(id, "openid"))
		wants(t, err, ErrUnauthorizedClient)
	}
}

func TestAnApplicationThatPushesIsRefusedWhatTheBrowserBrings(t *testing.T) {
	w := newWorld(t)
	w.change("app_web", app.SettingsChanged{PushedRequired: new(true)})
	began, err := w.Begin(t.Context(), ask("app_web", "openid"))
	must(t, err)
	q := parameters(t, began.Refused.Address)
	if began.ID != "" || q.Get("error") != "invalid_request" || q.Get("state") != "st" ||
		!strings.Contains(q.Get("error_description"), "pushed_authorization_request_endpoint") {
		t.Errorf("got %+v", began)
	}
}

// Anybody can push for an application without a secret, so the network counts (TestStrangersAreBoundedInWhatTheyBegin).
// One that has proven who it is has limits of its own.
func TestAnApplicationWithASecretPushesWithoutTheLimitsOfStrangers(t *testing.T) {
	w := newWorld(t)
	w.Sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 1, Clock: w.store.Now}
	ctx := call.With(t.Context(), &call.Info{Peer: home})
	for range 3 {
		_, err := w.Push(ctx, w.client("app_web"), ask("app_web", "openid"))
		must(t, err)
	}
}

// What a request says about people is sealed with its reference, which is stored nowhere.
func TestAPushedRequestIsStoredSealed(t *testing.T) {
	w := newWorld(t)
	a := ask("app_spa", "openid")
	a.LoginHint = "somebody@a.test"
	uri := w.push(a).URI
	_, id := w.pushedAs(uri)
	row, err := w.store.Row(t.Context(), pushed.Key(id))
	must(t, err)
	if row == nil || strings.Contains(string(row.Value), "somebody") || strings.Contains(id, uri[len(pushedURI):]) {
		t.Errorf("stored %+v", row)
	}
}
