package upstream

import (
	"bytes"
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
		cb := carrying(w.start(p, Attempt{}), token)
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
		before, _, _ := strings.Cut(f.Payload, `,"at"`)
		got = append(got, before)
	}
	want := []string{`{"check":"audience","count":1`, `{"check":"issuer","count":1`, `{"check":"audience","count":5`}
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
