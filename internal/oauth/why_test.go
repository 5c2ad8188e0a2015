package oauth

import (
	"errors"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/session"
)

// A client is told the same whatever is wrong with what it shows, and the operator what it is. wants holds that every
// cause has words; these are the words.
func TestTheLogSaysWhyAGrantWasRefused(t *testing.T) {
	type shown struct {
		client string // who shows it
		Code
		refresh string
	}
	// What is kept of it for the application's people: of a code, of a refresh token.
	causes := map[string][2]refusal.Cause{
		"something else":                       {refusal.CodeUnknown, refusal.RefreshGone},
		"what there never was":                 {refusal.CodeUnknown, refusal.RefreshGone},
		"what another was given":               {refusal.CodeElse, refusal.RefreshElse},
		"another address":                      {refusal.CodeRedirect},
		"no address":                           {refusal.CodeRedirect},
		"another verifier":                     {refusal.CodeVerifier},
		"what was used":                        {refusal.CodeUsed, refusal.RefreshUsed},
		"after the session":                    {refusal.CodeSession},
		"after the consent":                    {refusal.Ended, refusal.Ended},
		"after the user":                       {refusal.Ended, refusal.Ended},
		"after the user's organization":        {refusal.Ended, refusal.Ended},
		"after the application":                {refusal.Ended, refusal.Ended},
		"after the application's organization": {refusal.Ended, refusal.Ended},
	}
	for _, tt := range []struct {
		name   string
		change func(w *world, in *session.Bearer, s *shown)
		why    string // of a code
		again  string // of a refresh token; empty: the same
	}{
		{"something else", func(_ *world, _ *session.Bearer, s *shown) { s.Text, s.refresh = "x", "x" },
			"app_all sent something that is not a code of this server",
			"app_all sent something that is not a refresh token of this server"},
		{"what there never was", func(_ *world, _ *session.Bearer, s *shown) {
			s.Text, _ = secret.NewToken(secret.Code)
			s.refresh, _ = secret.NewToken(secret.Refresh)
		}, "app_all sent a code that has expired, or that there never was",
			"app_all sent a refresh token that has expired, or that there never was"},
		{"what another was given", func(_ *world, _ *session.Bearer, s *shown) { s.client = "app_spa" },
			"app_spa sent a code that was given to app_all", "app_spa sent a refresh token that was given to app_all"},
		{"another address", func(_ *world, _ *session.Bearer, s *shown) {
			s.RedirectURI = "https://me:secret@other.test/back?code=secret#secret"
		}, "app_all sent as redirect_uri https://other.test/back?…#…, but the code was asked for with " + callback, "-"},
		{"no address", func(_ *world, _ *session.Bearer, s *shown) { s.RedirectURI = "" },
			"app_all sent as redirect_uri no address, but the code was asked for with " + callback, "-"},
		{"another verifier", func(_ *world, _ *session.Bearer, s *shown) { s.Verifier = strings.Repeat("v", 43) },
			"app_all sent a code_verifier that does not match the code_challenge that the code was asked for with, or only one of the two",
			"-"},
		{"what was used", func(w *world, _ *session.Bearer, s *shown) {
			_, err := w.Exchange(w.t.Context(), w.client(s.client), s.Code)
			must(w.t, err)
			_, err = w.Refresh(w.t.Context(), w.client(s.client), s.refresh, nil)
			must(w.t, err)
			w.store.Advance(refreshGrace)
		}, "app_all used a code again: all tokens that it led to have been ended",
			"app_all used a refresh_token again: all tokens that it led to have been ended"},
		{"after the session", func(w *world, in *session.Bearer, _ *shown) {
			must(w.t, w.Sessions.End(w.t.Context(), session.Own(in.Caller), in.Token.ID))
		}, "the session that app_all got its code in has ended, or is restricted", "-"},
		{"after the consent", func(w *world, in *session.Bearer, _ *shown) {
			must(w.t, w.Withdraw(w.t.Context(), in.Caller, "app_all"))
		}, "what app_all sent was given for usr_a, and ended since: the user has withdrawn the consent", ""},
		{"after the user", func(w *world, _ *session.Bearer, _ *shown) { w.change("usr_a", user.Deactivated{}) },
			"what app_all sent was given for usr_a, and ended since: the user is not active, or the user's sessions and tokens were ended",
			""},
		{"after the user's organization",
			func(w *world, _ *session.Bearer, _ *shown) { w.change("org_a", org.Deactivated{}) },
			"what app_all sent was given for usr_a, and ended since: the user's organization is not active, or was not for a time",
			""},
		{"after the application", func(w *world, _ *session.Bearer, _ *shown) { w.change("app_all", app.Deactivated{}) },
			"what app_all sent was given for usr_a, and ended since: the application is not active, or its tokens were ended",
			""},
		{"after the application's organization",
			func(w *world, _ *session.Bearer, _ *shown) { w.change("org_b", org.Deactivated{}) },
			"what app_all sent was given for usr_a, and ended since: the application's organization is not active, or was not for a time",
			""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn("usr_a")
			s := &shown{client: "app_all", refresh: w.tokens("app_all", "usr_a", "openid offline_access").Refresh,
				Code: Code{Text: w.code(ask("app_all", "openid offline_access"), in), RedirectURI: callback,
					Verifier: verifier}}
			tt.change(w, in, s)
			said := func(err error, want string, cause refusal.Cause) {
				t.Helper()
				kept := keptOf(err)
				if kept.App != s.client || kept.Cause != cause || (kept.Address != "") != (cause == refusal.CodeRedirect) {
					t.Errorf("kept %+v, want %s", kept, cause)
				}
				if wants(t, err, ErrInvalidGrant); why(err) != want {
					t.Errorf("the log says %q, want %q", why(err), want)
				}
				for _, hidden := range []string{s.Text[1:], s.refresh[1:], s.Verifier, "secret"} {
					if hidden != "" && strings.Contains(why(err)+kept.Address, hidden) {
						t.Errorf("the log repeats %s: %s", hidden, why(err))
					}
				}
			}
			_, err := w.Exchange(t.Context(), w.client(s.client), s.Code)
			said(err, tt.why, causes[tt.name][0])
			if tt.again == "-" {
				return
			}
			if tt.again == "" {
				tt.again = tt.why
			}
			_, err = w.Refresh(t.Context(), w.client(s.client), s.refresh, nil)
			said(err, tt.again, causes[tt.name][1])
		})
	}
}

// keptOf is what is kept of a refusal.
func keptOf(err error) refusal.Refusal {
	e, _ := errors.AsType[*errs.Error](err)
	if e == nil {
		return refusal.Refusal{}
	}
	kept, _ := e.Kept.(refusal.Refusal)
	return kept
}

func TestTheLogSaysWhichAddressWasRefused(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		client, address string
		want            error
		why             string
	}{
		{"app_none", "https://me:secret@other.test/secret", ErrUnknownClient,
			"no active application of an active organization has this client_id"},
		{"app_spa", "https://me:secret@other.test/back?code=secret", ErrRedirectRefused,
			"app_spa sent as redirect_uri https://other.test/back?…, which is not registered with it"},
		{"app_spa", "", ErrRedirectRefused, "app_spa sent as redirect_uri no address, which is not registered with it"},
	} {
		a := ask(tt.client, "openid")
		a.RedirectURI = tt.address
		_, err := w.Begin(t.Context(), a)
		if wants(t, err, tt.want); why(err) != tt.why {
			t.Errorf("the log says %q, want %q", why(err), tt.why)
		}
		if kept := keptOf(err); (kept.App == tt.client && kept.Cause == refusal.RedirectURI) !=
			(tt.want == ErrRedirectRefused) || strings.Contains(kept.Address, "secret") {
			t.Errorf("kept %+v", kept)
		}
		if tt.address == "" {
			continue
		}
		_, err = w.BeginLogout(t.Context(), Logout{Client: tt.client}, browser, tt.address, "")
		if want := strings.Replace(tt.why, "as redirect", "as post_logout_redirect", 1); why(err) != want {
			t.Errorf("signing out, the log says %q, want %q", why(err), want)
		}
	}
	_, err := w.BeginLogout(t.Context(), Logout{}, browser, "https://other.test/", "")
	if want := "an unnamed application sent as post_logout_redirect_uri https://other.test/, which is not registered with it"; why(err) != want {
		t.Errorf("the log says %q, want %q", why(err), want)
	}
}
