package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
)

func TestStrangersAreBoundedInWhatTheyBegin(t *testing.T) {
	w := newWorld(t)
	from := func(peer netip.Addr) context.Context { return call.With(t.Context(), &call.Info{Peer: peer}) }
	for name, begin := range map[string]func(ctx context.Context) error{
		"a sign-in": func(ctx context.Context) error { _, err := w.Begin(ctx, ask("app_spa", "openid")); return err },
		"a pushed request": func(ctx context.Context) error {
			_, err := w.Push(ctx, w.client("app_spa"), ask("app_spa", "openid"))
			return err
		},
		"a sign-out": func(ctx context.Context) error {
			_, err := w.BeginLogout(ctx, Logout{}, browser, "", "")
			return err
		},
		"a device": func(ctx context.Context) error {
			_, err := w.BeginDevice(ctx, w.client("app_tv"), nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 2, Clock: w.store.Now}
			for range 2 {
				must(t, begin(from(home)))
			}
			before := w.store.Fingerprint()
			eventtest.Refused(t, begin(from(home)), errs.ResourceExhausted, ratelimit.NetworkThrottled)
			if w.store.Fingerprint() != before {
				t.Error("something is stored")
			}
			must(t, begin(from(elsewhere)))
		})
	}
	// What comes from no application of ours is not read, leaves nothing behind, and does not count.
	w.Sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 1, Clock: w.store.Now}
	for _, a := range []request.Ask{ask("app_none", ""), {ClientID: "app_spa", RedirectURI: "https://evil.test/"}} {
		_, _ = w.Begin(from(home), a)
	}
	_, err := w.Begin(from(home), ask("app_spa", "openid"))
	must(t, err)
}

// What is refused for what it says has been read, and reading costs more than sending: so it counts before it is read.
func TestWhatIsRefusedCountsBeforeItIsRead(t *testing.T) {
	w := newWorld(t)
	ctx := call.With(t.Context(), &call.Info{Peer: home})
	for name, begin := range map[string]func() error{
		"a sign-in": func() error {
			_, err := w.Begin(ctx, ask("app_spa", "urn:signet:org:domain:nobody.example"))
			return err
		},
		"a pushed request": func() error {
			_, err := w.Push(ctx, w.client("app_spa"), ask("app_spa", "urn:signet:org:domain:nobody.example"))
			return err
		},
		"a device": func() error {
			_, err := w.BeginDevice(ctx, w.client("app_tv"), []string{"urn:signet:org:domain:nobody.example"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 1, Clock: w.store.Now}
			if err := begin(); errs.KindOf(err) == errs.ResourceExhausted {
				t.Fatal(err)
			}
			eventtest.Refused(t, begin(), errs.ResourceExhausted, ratelimit.NetworkThrottled)
		})
	}
}

// Whoever hangs up is not worked for.
func TestNobodyWorksForACallerWhoIsGone(t *testing.T) {
	w := newWorld(t)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := w.named(gone, []string{"urn:signet:org:domain:bücher.example"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsStoredForAStrangerIsBounded(t *testing.T) {
	const most = 12 << 10
	long := strings.Repeat("x", 30_000)
	w := newWorld(t)
	for name, change := range map[string]func(*request.Ask){
		"long languages": func(a *request.Ask) { a.UILocales = "de " + long },
		"many languages": func(a *request.Ask) {
			a.UILocales = strings.Repeat("de-Latn-DE-1996-x-abcdefghijklmnop ", 800)
		},
		"a long audience":     func(a *request.Ask) { a.Scope = "openid urn:signet:app:" + long + ":aud" },
		"one prompt again":    func(a *request.Ask) { a.Prompt = strings.Repeat("login ", 5000) },
		"unknown long scopes": func(a *request.Ask) { a.Scope = "openid " + long },
		"as much as there may be": func(a *request.Ask) {
			a.State, a.Nonce, a.LoginHint, a.Scope = long[:request.MaxState], long[:request.MaxNonce],
				long[:request.MaxHint], "openid"
			a.Claims = `{"id_token":{"` + strings.Join(claimset.People,
				`":null,"`) + `":null,"` + long[:3000] + `":null}}`
			for i := range maxScopes - 1 {
				a.Scope += " urn:signet:app:" + string(rune('A'+i)) + long[:maxID-1] + ":aud"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask("app_spa", "openid")
			change(&a)
			row, err := w.store.Row(t.Context(), requests.Key(w.begin(a)))
			must(t, err)
			if row == nil || len(row.Value) > most {
				t.Errorf("it takes %d bytes", len(row.Value))
			}
		})
	}
	id, err := w.BeginLogout(t.Context(), Logout{UILocales: append(strings.Fields(strings.Repeat("de ", 5000)), long)},
		browser, "", long)
	must(t, err)
	row, err := w.store.Row(t.Context(), logouts.Key(id))
	must(t, err)
	if len(row.Value) > most {
		t.Errorf("a sign-out takes %d bytes", len(row.Value))
	}
	// A binding that cannot be kept is never left out: it would let others in.
	a := ask("app_spa", "openid urn:signet:org:id:"+long)
	began, err := w.Begin(t.Context(), a)
	must(t, err)
	if got := parameters(t, began.Refused.Address).Get("error"); got != "invalid_scope" {
		t.Errorf("a long organization: %+v", began)
	}
	_, err = w.BeginDevice(t.Context(), w.client("app_tv"), strings.Fields(a.Scope))
	wants(t, err, ErrInvalidScope)
	// What languages there are is kept.
	a = ask("app_spa", "openid")
	a.UILocales = "fr de-CH"
	p, err := w.Pending(t.Context(), w.begin(a), browser)
	must(t, err)
	if text, _ := json.Marshal(p.UILocales); string(text) != `["fr","de-CH"]` {
		t.Errorf("got %s", text)
	}
}
