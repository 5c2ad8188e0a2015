package browser_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testkit"
)

// A test that finds nothing wrong proves something only if it can find it.
func TestTheKitFindsWhatIsWrong(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	origin := serve(t, func(*url.URL) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'")
			_, _ = io.WriteString(w,
				`<!DOCTYPE html><html><title>x</title><body><img src="/none"><div style="width: 3000px">wide</div><pre>`+strings.Repeat("w", 900)+`</pre><input></body></html>`)
		})
	})
	tab := b.Tab(t)
	tab.Look(browser.Narrow)
	tab.Open(origin)
	found := strings.Join(tab.Axe(true), "\n")
	for _, rule := range []string{"image-alt", "label", "html-has-lang"} {
		if !strings.Contains(found, rule) {
			t.Errorf("axe does not find %s: %s", rule, found)
		}
	}
	if len(tab.Overflowing()) == 0 {
		t.Error("a page that is too wide is not found")
	}
	if said := strings.Join(tab.Complaints(), "\n"); !strings.Contains(said, "Content Security Policy") {
		t.Errorf("what a policy refused is not found: %s", said)
	}
}

// authenticator serves a page on which a passkey is made and one on which it is used, and hands on what comes back.
func authenticator(t *testing.T, rpID string) (origin string, received chan url.Values) {
	t.Helper()
	received = make(chan url.Values, 1)
	origin = serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			take := func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil {
					t.Error(err)
				}
				received <- r.PostForm
				p.Render(w, r, 200, pages.EmailVerified{})
			}
			mux.HandleFunc("GET /new", func(w http.ResponseWriter, r *http.Request) {
				p.Render(w, r, 200, pages.EnrolPasskey{Options: fmt.Appendf(nil, `{"publicKey":{"challenge":"Y2hhbGxlbmdl","rp":{"id":%q,"name":"Signet"},
					"user":{"id":"dXNlcg","name":"mara","displayName":"Mara"},"pubKeyCredParams":[{"type":"public-key","alg":-7},{"type":"public-key","alg":-257}],
					"authenticatorSelection":{"residentKey":"required","userVerification":"required"}}}`, rpID)})
			})
			mux.HandleFunc("POST /new", take)
			mux.HandleFunc("GET /use", func(w http.ResponseWriter, r *http.Request) {
				p.Render(w, r, 200, pages.SecondFactor{Kind: pages.Passkey, Options: fmt.Appendf(nil,
					`{"publicKey":{"challenge":"YW5vdGhlcg","rpId":%q,"allowCredentials":[{"type":"public-key","id":%q}],"userVerification":"required"}}`, rpID, r.URL.Query().Get("id"))})
			})
			mux.HandleFunc("POST /use", take)
		})
	})
	return origin, received
}

// credential is what a server reads of a passkey's answer.
type credential struct {
	ID, RawID, Type string
	Response        struct {
		ClientDataJSON, AttestationObject, AuthenticatorData, Signature, UserHandle string
		Transports                                                                  []string
	}
}

func read(t *testing.T, form url.Values) (c credential) {
	t.Helper()
	if err := json.Unmarshal([]byte(form.Get(pages.FieldCredential)), &c); err != nil {
		t.Fatalf("%v: %s", err, form)
	}
	return c
}

func clientData(t *testing.T, c credential) (challenge, origin string) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(c.Response.ClientDataJSON)
	if err != nil {
		t.Fatal(err)
	}
	var data struct{ Challenge, Origin string }
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	return data.Challenge, data.Origin
}

func TestPasskeysAreMadeAndUsed(t *testing.T) {
	origin, received := authenticator(t, "localhost")
	tab := browser.Start(t).Tab(t)
	tab.Authenticator(true)
	tab.Open(origin + "/new")
	tab.Fill("#passkeyName", "Work laptop")
	tab.Submit(".passkey button")
	form := testkit.Receive(t, received, "the form is sent")
	made := read(t, form)
	if challenge, at := clientData(t, made); challenge != "Y2hhbGxlbmdl" || at != origin ||
		form.Get(pages.FieldPasskeyName) != "Work laptop" {
		t.Errorf("challenge %s at %s, form %v", challenge, at, form)
	}
	if made.Type != "public-key" || made.ID == "" || made.ID != made.RawID || made.Response.AttestationObject == "" ||
		len(made.Response.Transports) == 0 {
		t.Errorf("the new passkey is not complete: %+v", made)
	}
	tab.Open(origin + "/use?id=" + made.ID)
	tab.Submit(".passkey button")
	used := read(t, testkit.Receive(t, received, "the form is sent"))
	if challenge, at := clientData(t, used); challenge != "YW5vdGhlcg" || at != origin {
		t.Errorf("challenge %s at %s", challenge, at)
	}
	if used.ID != made.ID || used.Response.Signature == "" || used.Response.AuthenticatorData == "" ||
		used.Response.UserHandle != "dXNlcg" {
		t.Errorf("the answer is not complete: %+v", used)
	}
	if said := tab.Complaints(); len(said) > 0 {
		t.Errorf("the browser complains: %q", said)
	}
}

func TestAPasskeyThatFailsCanBeTriedAgain(t *testing.T) {
	origin, _ := authenticator(t, "elsewhere.example") // which a page of this host may not ask for
	tab := browser.Start(t).Tab(t)
	tab.Open(origin + "/use?id=AAAA")
	tab.Click(".passkey button")
	tab.WaitFor(`[data-when="failed"]`)
	tab.Do(chromedp.WaitEnabled(".passkey button", chromedp.ByQuery))
}

func TestABrowserWithoutPasskeysIsTold(t *testing.T) {
	origin, _ := authenticator(t, "localhost")
	tab := browser.Start(t).Tab(t)
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("delete window.PublicKeyCredential").Do(ctx)
		return err
	}))
	tab.Open(origin + "/use?id=AAAA")
	tab.WaitFor(`[data-when="unsupported"]`)
	if !tab.Has(".passkey button[disabled]") {
		t.Error("a button that cannot work can be pressed")
	}
}

func TestAFormOfAnotherPageIsRefused(t *testing.T) {
	passed := false
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			mux.HandleFunc("/form", func(w http.ResponseWriter, r *http.Request) {
				passed = passed || r.Method == http.MethodPost
				p.Render(w, r, 200, pages.LoginName{})
			})
		})
	})
	elsewhere := serve(t, func(*url.URL) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, `<form method="post" action="%s/form"><button>Win</button></form>`, origin)
		})
	})
	tab := browser.Start(t).Tab(t)
	tab.Open(elsewhere)
	tab.Submit("button")
	if got := tab.Text("h1"); passed || got != "This form was sent from another site" {
		t.Errorf("the form arrived: %t; the page says %s", passed, got)
	}
	tab.Open(origin + "/form")
	tab.Submit("button.primary")
	if got := tab.Text("h1"); !passed || got != "Sign in" {
		t.Errorf("our own form arrived: %t; the page says %s", passed, got)
	}
}

func TestFormsLeadToTheApplicationAndNowhereElse(t *testing.T) {
	application := serve(t, func(*url.URL) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Application</h1>")
		})
	})
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			show := func(uri string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					p.Render(w, r, 200, pages.LoginName{Frame: pages.Frame{RedirectURI: uri}})
				}
			}
			mux.HandleFunc("GET /allowed", show(application+"/callback"))
			mux.HandleFunc("GET /other", show("https://other.example/callback"))
			onward := func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, application+"/callback?code=1", http.StatusSeeOther)
			}
			mux.HandleFunc("POST /allowed", onward)
			mux.HandleFunc("POST /other", onward)
		})
	})
	tab := browser.Start(t).Tab(t)
	tab.Open(origin + "/allowed")
	tab.Submit("button.primary")
	if at := tab.At(); at != application+"/callback?code=1" {
		t.Errorf("the form led to %s", at)
	}
	tab.Open(origin + "/other")
	tab.Complaints()
	tab.Click("button.primary")
	if said := tab.NextComplaint(); !strings.Contains(said, "form-action") {
		t.Errorf("the browser complains about something else: %s", said)
	}
	if at := tab.At(); !strings.HasPrefix(at, origin) {
		t.Errorf("the form led to %s, which is not where the person was going", at)
	}
}

func TestApplicationsMayRedirectOnceMore(t *testing.T) {
	final := serve(t, func(*url.URL) http.Handler { return http.NotFoundHandler() })
	application := serve(t, func(*url.URL) http.Handler {
		return http.RedirectHandler(final+"/signed-in", http.StatusSeeOther)
	})
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			mux.HandleFunc("GET /consent",
				func(w http.ResponseWriter, r *http.Request) { p.Render(w, r, 200, pages.Consent{}) })
			mux.HandleFunc("POST /consent", func(w http.ResponseWriter, r *http.Request) {
				to, err := pages.Outward(application + "/callback?code='a;b'&state=%22c")
				if err != nil {
					t.Error(err)
				}
				p.Render(w, r, 200, pages.Onward{To: to})
			})
		})
	})
	tab := browser.Start(t).Tab(t)
	tab.Open(origin + "/consent")
	tab.Click(`button[value="allow"]`)
	tab.WaitUntilAt(final + "/signed-in")
}

func TestCookiesAreKeptOverHTTPOnThisMachine(t *testing.T) {
	seen := ""
	origin := serve(t, func(origin *url.URL) http.Handler {
		return with(t, origin, func(p *pages.Pages, mux *http.ServeMux) {
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/again" {
					seen = pages.CookieValue(r, "sitting")
				}
				http.SetCookie(w, pages.Cookie("sitting", "abc", time.Hour))
				p.Render(w, r, 200, pages.SignedOut{})
			})
		})
	})
	tab := browser.Start(t).Tab(t)
	tab.Open(origin)
	tab.Open(origin + "/again")
	if seen != "abc" {
		t.Errorf("the browser sent %q", seen)
	}
	cookies := tab.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-sitting" || !cookies[0].HTTPOnly || !cookies[0].Secure ||
		cookies[0].SameSite.String() != "Lax" {
		t.Errorf("the browser keeps %+v", cookies)
	}
}
