package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testkit"
)

func TestResponseModesInABrowser(t *testing.T) {
	i, b := installed(t), browser.Start(t)
	i.person("jo")
	// The application takes the form at one origin, and goes on at another one: no policy of ours may stop that.
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><title>Home</title><link rel="icon" href="data:,"><p id="home">Home</p></html>`)
	}))
	t.Cleanup(home.Close)
	type posted struct {
		form            url.Values
		origin, referer string
	}
	came := make(chan posted, 1)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		came <- posted{r.PostForm, r.Header.Get("Origin"), r.Header.Get("Referer")}
		http.Redirect(w, r, home.URL+"/welcome", http.StatusSeeOther)
	}))
	t.Cleanup(app.Close)
	callback := strings.Replace(app.URL, "127.0.0.1", "localhost", 1) + "/callback"
	i.api("PATCH", "/v1/apps/"+i.clientID,
		map[string]any{"redirectUris": []string{i.callback, callback}, "updateMask": "redirectUris"})
	form := func(more ...string) string {
		return i.ask(append([]string{"response_mode", "form_post", "redirect_uri", callback}, more...)...)
	}
	// posts waits until the application has been posted something, and the browser is where it was sent on to.
	posts := func(v *visitor, parameter string) {
		t.Helper()
		got := testkit.Receive(t, came, "the application is posted something")
		if got.form.Get(parameter) == "" || got.form.Get("state") != "st" || got.form.Get("iss") != i.url {
			t.Errorf("got %v", got.form)
		}
		if got.origin != i.url || got.referer != i.url+"/" {
			t.Errorf("posted from %q, referer %q", got.origin, got.referer)
		}
		v.WaitFor("#home")
		if v.At() != home.URL+"/welcome" {
			t.Errorf("at %s", v.At())
		}
		v.quiet()
	}

	v := i.visitor(t, b)
	v.Open(form("prompt", "none")) // nobody is signed in
	posts(v, "error")
	v.Open(form("max_age", "-1")) // refused before anything is shown
	posts(v, "error_description")
	v.Open(form())
	v.name("jo")
	v.password(firstPassword)
	posts(v, "code")
	v.Open(form()) // nobody is asked anything
	posts(v, "code")

	v.Open(i.ask("response_mode", "fragment"))
	v.WaitFor("#arrived")
	at, err := url.Parse(v.At())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := url.ParseQuery(at.EscapedFragment()); err != nil || got.Get("code") == "" ||
		got.Get("state") != "st" || got.Get("iss") != i.url || at.RawQuery != "" {
		t.Errorf("at %s", v.At())
	}
	v.quiet()

	// Without scripts there is a button.
	v.Do(emulation.SetScriptExecutionDisabled(true))
	v.Open(form())
	if len(came) > 0 || !v.Has("form[data-onward] button") {
		t.Fatalf("at %s", v.At())
	}
	v.Submit("form[data-onward] button")
	posts(v, "code")
}
