package hosted

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
)

// TestABrowserThatKeepsNoCookiesIsToldSo: today's browsers can refuse them, and were asked to sign in over and over.
func TestABrowserThatKeepsNoCookiesIsToldSo(t *testing.T) {
	w := withMail(t)
	jo, shop := w.person(w.org, true), w.application("Shop")
	const says = "this browser does not accept cookies"
	forgetful := func() *browser { return &browser{w, nil} }
	forgetful().get("/login?to=/device").shows(200, "Sign in").post("loginName", jo.name, "password",
		password).shows(400, says, `href="/login?to=%2Fdevice"`)
	forgetful().get("/login").shows(200, "Sign in").post("loginName", jo.name).shows(400, says)
	forgetful().authorize(shop).shows(400, says)
	w.browser().get("/forgot").post("loginName", jo.email).shows(200)
	forgetful().get(w.link(jo.email)).shows(400, says)
	// A browser that does keep them but comes without any is not told so.
	w.browser().get("/login").shows(200, "Sign in")
	w.browser().get("/reset?user="+jo.id).shows(400, "This link no longer works")
}

// TestPeopleWhoAreLostGetAPage: and programs an answer that they can read.
func TestPeopleWhoAreLostGetAPage(t *testing.T) {
	w := open(t, server.Config{})
	for _, c := range []struct {
		method, path, accept string
		page                 bool
	}{
		{"GET", "/nope", "text/html,*/*;q=0.8", true},
		{"GET", "/account/nope", "text/html", true},
		{"GET", "/account/", "text/html", true},
		{"HEAD", "/nope", "text/html", true},
		{"GET", "/nope", "*/*", false},
		{"GET", "/nope", "application/json", false},
		{"GET", "/nope", "", false},
		{"POST", "/nope", "text/html", false},
		{"GET", "/v1/nope", "text/html", false},
		{"GET", "/v1", "text/html", false},
		{"GET", "/v1/sessions", "text/html", false},
		{"GET", "/signet.v1.UserService/Nope", "text/html", false},
	} {
		got := w.browser().send(c.method, c.path, nil, "Accept", c.accept)
		if page := strings.HasPrefix(got.header.Get("Content-Type"), "text/html"); page != c.page ||
			got.status != http.StatusNotFound && !strings.HasPrefix(c.path, "/v1/sessions") {
			t.Errorf("%s %s for %q: %d %s", c.method, c.path, c.accept, got.status, got.header.Get("Content-Type"))
		} else if page && c.method == "GET" && !strings.Contains(got.body, "This page does not exist") {
			t.Errorf("%s: %s", c.path, got.body)
		}
	}
}

// TestTheNameGoesAlongToForgot: and nothing is sent before the person says so.
func TestTheNameGoesAlongToForgot(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, true)
	p := w.browser().get("/login?to=/device").post("loginName", jo.email).shows(200, "Enter your password",
		`action="/forgot"`)
	p = p.browser.send(http.MethodPost, "/forgot", values("loginName", jo.email, "do", "forgot")).shows(200,
		"Forgot your password?", `value="`+jo.email+`"`)
	p.post("loginName", jo.email).shows(200, "Check your inbox")
	w.link(jo.email)
}
