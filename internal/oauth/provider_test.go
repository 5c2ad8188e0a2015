package oauth

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

// signInThrough opens a session of usr_a that came through the provider idp_a.
func (w *world) signInThrough() *session.Bearer {
	w.t.Helper()
	if p, err := idp.Kind.Read(w.t.Context(), w.store, "idp_a"); err != nil || p == nil {
		eventtest.Given(w.t, w.store, idp.Kind, "idp_a", "org_a", nil, idp.JWTAdded{General: idp.General{Name: "a"}})
		eventtest.Given(w.t, w.store, user.Kind, "usr_a", "", []event.Claim{user.LinkClaim("idp_a", "i", "s")},
			user.LinkAdded{LinkID: "lnk_1", Provider: "idp_a", Personal: user.LinkFacts{Issuer: "i", Subject: "s"}})
	}
	proof, err := json.Marshal(session.Proof{Methods: []session.Method{session.ByProvider},
		At: event.Micros(w.store.Now()), Upstream: &session.Upstream{Provider: "idp_a", Link: "lnk_1"}})
	must(w.t, err)
	text, hash := secret.NewToken(secret.Session)
	now := event.Micros(w.store.Now())
	w.store.GivenToken(event.Token{
		ID:       event.NewID("ses"),
		Hash:     hash,
		Kind:     string(secret.Session),
		UserID:   "usr_a",
		Created:  now,
		Expires:  now + time.Hour.Microseconds(),
		Provider: "idp_a",
		Data:     string(proof),
	})
	b, err := w.Sessions.Bearer(w.t.Context(), text)
	must(w.t, err)
	return b
}

// Whatever an application has of somebody who came through a provider ends with that provider: at once, and for good.
func TestWhatApplicationsHaveEndsWithTheProvider(t *testing.T) {
	for name, facts := range map[string][]event.Fact[idp.Provider]{
		"the link was removed":     nil,
		"deactivated":              {idp.Deactivated{}},
		"deactivated and back":     {idp.Deactivated{}, idp.Reactivated{}},
		"removed":                  {idp.WasRemoved{}},
		"changed, which ends none": {idp.JWTChanged{Issuer: new("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			counts := len(facts) == 1 && facts[0].EventType() == "idp.jwt_changed.v1"
			w := newWorld(t)
			in := w.signInThrough()
			tokens := func(client, scopes string) *Tokens {
				made, err := w.exchange(client, w.code(ask(client, scopes), in))
				must(t, err)
				return made
			}
			online, offline, signed := tokens("app_spa", "openid"), tokens("app_spa", "openid offline_access"),
				tokens("app_jwt", "openid offline_access")
			waiting := w.code(ask("app_spa", "openid"), in)
			waitingOffline := w.code(ask("app_spa", "openid offline_access"), in)
			request := w.begin(ask("app_spa", "openid"))
			device, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid", "offline_access"})
			must(t, err)
			pending, err := w.deviceBy(t.Context(), CanonicalUserCode(device.UserCode))
			must(t, err)
			must(t, w.ApproveDevice(t.Context(), pending, in, []string{"openid", "offline_access"}))
			for what, token := range map[string]string{"online": online.Access, "offline": offline.Access,
				"signed": signed.Access} {
				if !w.counts(token) {
					t.Fatalf("%s does not count", what)
				}
			}

			if eventtest.Given(t, w.store, idp.Kind, "idp_a", "", nil, facts...); facts == nil {
				w.change("usr_a", user.LinkRemoved{LinkID: "lnk_1", Provider: "idp_a"})
			}
			for what, token := range map[string]string{"online": online.Access, "offline": offline.Access,
				"signed": signed.Access} {
				if w.counts(token) != counts {
					t.Errorf("the %s access token counts: %t", what, !counts)
				}
				if b, err := w.Introspect(t.Context(), token,
					w.proven(map[bool]string{true: "app_jwt", false: "app_spa"}[what == "signed"])); err != nil ||
					(b != nil) != counts {
					t.Errorf("introspection of the %s one: %v, %v", what, b, err)
				}
			}
			is := func(what string, err, refusal error) {
				t.Helper()
				if counts {
					refusal = nil
				}
				if refusal == nil && err != nil || refusal != nil && err == nil {
					t.Errorf("%s: %v", what, err)
				} else if refusal != nil {
					wants(t, err, refusal)
				}
			}
			_, err = w.Refresh(t.Context(), w.client("app_spa"), offline.Refresh, nil)
			is("a refresh token", err, ErrInvalidGrant)
			_, err = w.Refresh(t.Context(), w.client("app_jwt"), signed.Refresh, nil)
			is("a refresh token of JWTs", err, ErrInvalidGrant)
			_, err = w.exchange("app_spa", waiting)
			is("a code", err, ErrInvalidGrant)
			_, err = w.exchange("app_spa", waitingOffline)
			is("a code for offline access", err, ErrInvalidGrant)
			_, err = w.DeviceTokens(t.Context(), w.client("app_tv"), device.DeviceCode)
			is("a device", err, ErrInvalidGrant)
			_, err = w.Approve(t.Context(), request, browser, in, nil)
			is("a request", err, access.ErrUnauthenticated)
		})
	}
}

// A refresh token that was replaced a moment ago gets its answer again, but not when the provider has gone since.
func TestAnAnswerIsNotRepeatedOnceTheProviderHasGone(t *testing.T) {
	w := newWorld(t)
	made, err := w.exchange("app_spa", w.code(ask("app_spa", "openid offline_access"), w.signInThrough()))
	must(t, err)
	next, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
	must(t, err)
	again, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
	must(t, err)
	if again.Access != next.Access || !w.counts(next.Access) {
		t.Error("the answer is another one")
	}
	eventtest.Given(t, w.store, idp.Kind, "idp_a", "", nil, idp.Deactivated{})
	_, err = w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
	if w.counts(next.Access) {
		t.Error("a token that was refreshed counts on")
	}
}
