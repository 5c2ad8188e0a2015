package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
)

// signedInCookie tells whether the browser has a session here.
func (v *visitor) signedInCookie() bool {
	v.t.Helper()
	for _, c := range v.Cookies() { // those of the page
		if c.Name == "__Host-signet" {
			return true
		}
	}
	return false
}

// A page of another site has the browser of somebody who is signed in at the provider open addresses here, with all the
// cookies that browsers send along.
func TestAForeignPageRegistersAndSignsInNobody(t *testing.T) {
	u, b := another(t), browser.Start(t)
	i, sink := withMail(t, func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8"} })
	idp := i.provider(u, map[string]any{"scopes": []string{"profile", "email"}}) // it registers nobody by itself
	u.person("ana")
	i.invite("attacker@evil.test", nil)
	link := mailTo(t, sink, "attacker@evil.test")
	// at 127.0.0.1, and so of another site than localhost
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><title>prizes</title><script>location = %q</script>", r.URL.Query().Get("to"))
	}))
	t.Cleanup(foreign.Close)
	people := func() int {
		users, _ := i.api("GET", "/v1/users?pageSize=100", nil)["users"].([]any)
		return len(users)
	}
	before := people()
	v := i.visitor(t, b)
	v.Open(u.url + "/login?to=/account")
	v.name("ana")
	v.password(firstPassword)
	v.WaitUntilAt(u.url + "/account")
	leads := func(to, until string) {
		t.Helper()
		v.Open(foreign.URL + "/?" + url.Values{"to": {to}}.Encode())
		v.WaitUntilBelow(until)
	}
	unharmed := func() {
		t.Helper()
		if people() != before || v.signedInCookie() {
			t.Fatalf("at %s: there were %d people, and are %d; signed in: %t", v.At(), before, people(),
				v.signedInCookie())
		}
	}
	start := i.url + "/login/idp/" + idp
	join := start + "?" + url.Values{"to": {"/login/invitation"}, "other": {"1"}}.Encode()

	leads(link, i.url+"/login/invitation")
	leads(join, start)
	v.sees("h1", "Continue to sign in?")
	unharmed()
	leads(start+"?to=%2Faccount&other=1", start)
	v.sees("h1", "Continue to sign in?")
	unharmed()

	// Once the person has chosen the provider, the way leads there and back, to a page that says what it is about.
	v.Click("main form button")
	v.WaitUntilBelow(i.url + "/login?")
	v.sees("main", "not known here")
	leads(link, i.url+"/login/invitation")
	leads(join, i.url+"/login?")
	v.sees("main", "attacker@evil.test")
	v.sees("main", "Default")
	unharmed()
	v.creates()
	v.sees("h1", "Welcome")
	if people() != before+1 || !strings.HasPrefix(v.At(), i.url+"/login/invitation") {
		t.Errorf("at %s there are %d people", v.At(), people())
	}
}
