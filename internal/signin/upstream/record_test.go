package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func TestAFailedSignInTellsAdministratorsWhichCheckFailed(t *testing.T) {
	w := newWorld(t)
	told := 0
	w.Failed = func(org string) {
		if told++; org != "org_a" {
			t.Errorf("it counts for %q", org)
		}
	}
	p := w.jwt()
	fail := func(token string) {
		t.Helper()
		cb := carrying(w.start(p, Attempt{App: "app_x"}), token)
		cb.RequestID = "req"
		if _, err := w.Finish(t.Context(), p, cb); err == nil {
			t.Fatal("it did not fail")
		}
	}
	mark := w.s.Mark()
	for range 5 {
		fail(w.token(map[string]any{"aud": "our secret audience"}))
	}
	fail(w.token(map[string]any{"iss": "x"}))
	w.s.Advance(time.Minute)
	fail(w.token(map[string]any{"aud": "x"}))
	facts := w.s.Since(t, mark)
	var got []string
	for _, f := range facts {
		if f.Object != "ips_1" || f.Type != "idp_sign_in.failed.v1" {
			t.Errorf("got %+v", f)
		}
		var said failure.Failed
		must(t, json.Unmarshal([]byte(f.Payload), &said))
		got = append(got, fmt.Sprintf("%s %d %v", said.Check, said.Count, said.By))
	}
	want := []string{`audience 1 [{app_x audience 1}]`, `audience 6 [{app_x audience 5} {app_x issuer 1}]`}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q", got, want)
	}
	if o := eventtest.State(t, w.s, failure.Kind, "ips_1"); o.Org != "org_a" || o.Data.Failed != 7 {
		t.Errorf("got %+v", o)
	}
	if told != 7 {
		t.Errorf("%d failures were told, each of 7 counts", told)
	}
	if w.s.Stored(t, "our secret audience") {
		t.Error("what was sent is stored")
	}
}

// Anybody can send an answer from anywhere. Only those whose state is ours, in its browser, get into the log.
func TestWhatAnybodyCanSendIsOnlyCounted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(w *world, cb *Callback)
		check    string
		recorded bool
	}{
		{"no state", func(_ *world, cb *Callback) { cb.Query.Del("state") }, failure.State, false},
		{"a state of nobody", func(_ *world, cb *Callback) { cb.Query.Set("state", "AAAA") }, failure.State, false},
		{"two states", func(_ *world, cb *Callback) { cb.Query.Add("state", cb.Query.Get("state")) }, failure.State,
			false},
		{"another browser", func(_ *world, cb *Callback) { cb.Browser = "browser-b" }, failure.Browser, false},
		{"another browser, too late", func(w *world, cb *Callback) {
			cb.Browser = "browser-b"
			w.s.Advance(stateLife)
		}, failure.Browser, false},
		{"too late", func(w *world, _ *Callback) { w.s.Advance(stateLife) }, failure.StateExpired, true},
		{"at another provider", func(_ *world, cb *Callback) { cb.Provider = "idp_2" }, failure.Provider, true},
		{"a token that does not pass", func(*world, *Callback) {}, failure.Audience, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			told := 0
			w.Failed = func(string) { told++ }
			p := w.jwt()
			cb := carrying(w.start(p, Attempt{App: "app_x"}), w.token(map[string]any{"aud": "x"}))
			tt.change(w, &cb)
			mark := w.s.Mark()
			_, err := w.Finish(t.Context(), p, cb)
			if check := refused(t, err); check != tt.check {
				t.Errorf("refused by %s, not %s", check, tt.check)
			}
			if recorded := len(w.s.Since(t, mark)) > 0; recorded != tt.recorded || told != 1 {
				t.Errorf("recorded: %t, counted %d times", recorded, told)
			}
		})
	}
}

// TestNothingOfATokenIsKept: neither the provider's tokens nor ours.
func TestNothingOfATokenIsKept(t *testing.T) {
	w := newWorld(t)
	p := w.oidc(func(o *idp.OIDC) { o.ClientAuth = idp.SecretInBody })
	w.up.access = "a-very-secret-access-token"
	if _, err := w.Finish(t.Context(), p, back(w.start(p, Attempt{Return: "a-secret-return"}))); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a-very-secret-access-token", "the-code", "jo@example.org",
		"a-secret-return", browser} {
		if w.s.Stored(t, text) {
			t.Errorf("%s is stored", text)
		}
	}
}

func FuzzState(f *testing.F) {
	w := &Federation{Config: Config{Master: secret.NewMasterKey(), Clock: time.Now}}
	made, text, err := w.newState(provider(idp.Provider{JWT: &idp.JWT{}}), Attempt{Browser: browser})
	must(f, err)
	f.Add(text)
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, sent string) {
		// the last bits of base64 may differ
		if s := w.readState(sent); s != nil && !bytes.Equal(s.Attempt, made.Attempt) {
			t.Errorf("a state that nobody made: %q", sent)
		}
	})
}
