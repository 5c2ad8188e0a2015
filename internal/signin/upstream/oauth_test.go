package upstream

import (
	"testing"

	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func TestWhoAnOAuthProviderSaysItIs(t *testing.T) {
	const primary = `[{"email":"a@b","verified":true},{"email":"jo@example.org","primary":true,"verified":true}]`
	for name, c := range map[string]struct {
		user, emails string
		subject      string
		email        string
		want         string
	}{
		"a number": {`{"id":1000,"login":"jo","name":"Jo Doe"}`, primary, "1000",
			"jo@example.org", ""},
		"a number beyond a float": {`{"id":9007199254740993}`, primary, "9007199254740993", "jo@example.org", ""},
		"a huge number": {`{"id":123456789012345678901234567890}`, primary,
			"123456789012345678901234567890", "jo@example.org", ""},
		"nought":                     {`{"id":0}`, primary, "0", "jo@example.org", ""},
		"a text":                     {`{"id":"a b"}`, primary, "a b", "jo@example.org", ""},
		"another way to write 1000":  {`{"id":1e3}`, primary, "", "", failure.Subject},
		"a fraction":                 {`{"id":1000.0}`, primary, "", "", failure.Subject},
		"nought with a sign":         {`{"id":-0}`, primary, "", "", failure.Subject},
		"a text that is empty":       {`{"id":""}`, primary, "", "", failure.Subject},
		"a text that cannot be told": {`{"id":"\ud800"}`, primary, "", "", failure.Subject},
		"none":                       {`{"ID":1}`, primary, "", "", failure.Subject},
		"nothing":                    {`{"id":null}`, primary, "", "", failure.Subject},
		"a list":                     {`{"id":[1]}`, primary, "", "", failure.Subject},
		"garbage":                    {`leaked`, primary, "", "", failure.UserInfo},
		"no primary address": {`{"id":1,"email":"pub@example.org"}`,
			`[{"email":"a@b","verified":true}]`, "1", "", ""},
		"a primary that nobody proved": {`{"id":1}`, `[{"email":"a@b","primary":true}]`, "1", "", ""},
		"addresses that are garbage":   {`{"id":1}`, `{"leaked":1}`, "", "", failure.UserInfo},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.up.user, w.up.emails = c.user, c.emails
			p := w.oauth()
			q := w.start(p, Attempt{})
			if q.Has("scope") || q.Has("nonce") || q.Get("code_challenge") == "" {
				t.Errorf("got %v", q)
			}
			got, err := w.Finish(t.Context(), p, back(q))
			if check := refused(t, err); check != c.want {
				t.Errorf("got %q, want %q", check, c.want)
			}
			who := got.Identity
			if err == nil && (who.Issuer != w.up.URL || who.Subject != c.subject || who.Email != c.email ||
				who.EmailVerified != (c.email != "") || who.Fresh) {
				t.Errorf("got %+v", who)
			}
			if name == "a number" && (who.UserName != "jo" || who.FirstName != "Jo" || who.LastName != "Doe") {
				t.Errorf("got %+v", who)
			}
		})
	}
}

func TestAnotherSubjectAndNoListOfAddresses(t *testing.T) {
	w := newWorld(t)
	w.up.user = `{"uid":"u1","id":2,"email":"jo@example.org","email_verified":true}`
	p := w.oauth()
	p.Data.OAuth.Subject, p.Data.OAuth.EmailsEndpoint, p.Data.OAuth.Scopes = "uid", "", []string{"a", "b"}
	q := w.start(p, Attempt{})
	got, err := w.Finish(t.Context(), p, back(q))
	must(t, err)
	if who := got.Identity; who.Subject != "u1" || who.Email != "jo@example.org" || who.EmailVerified ||
		q.Get("scope") != "a b" {
		t.Errorf("got %+v, %v", who, q)
	}
}
