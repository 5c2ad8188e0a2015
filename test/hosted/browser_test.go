package hosted

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	kit "github.com/signet-idm/signet/test/browser"
)

// In a real browser headers and cookies are what browsers make of them.
func TestTheWaysByMailAndDeviceInABrowser(t *testing.T) {
	chromium := kit.Start(t)
	sink := mailtest.Start(t)
	w := open(t, server.Config{Listen: "localhost:0", SMTPURL: sink.URL, SMTPFrom: "no-reply@id.test"})
	w.mail = sink
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!DOCTYPE html><title>home</title><h1>home</h1>"))
	}))
	t.Cleanup(home.Close)
	shop := w.application("Shop", func(s *app.Settings) { s.PostLogoutURIs = []string{home.URL + "/bye"} })
	jo := w.person(w.org, true)
	tab := chromium.Tab(t)
	title := func(want string) {
		t.Helper()
		if got := tab.Text("h1"); got != want {
			t.Fatalf("at %s: %s", tab.At(), got)
		}
	}

	tab.Open(w.url + "/login?to=/device")
	tab.Fill("#loginName", jo.email)
	tab.Submit("button.primary")
	tab.Submit(".aside button")
	title("Forgot your password?") // with the name that was typed
	tab.Submit("button.primary")
	title("Check your inbox")

	tab.Open(w.url + w.link(jo.email))
	title("Set a new password")
	if strings.Contains(tab.At(), "code") {
		t.Errorf("the code is in the address: %s", tab.At())
	}
	tab.Fill("#newPassword", otherWord)
	tab.Fill("#repeatPassword", otherWord)
	tab.Submit("button.primary")
	title("Your password has been set")

	g := w.gadget(shop, "openid")
	tab.Open(w.url + "/device?user_code=" + g.user)
	tab.Fill("#loginName", jo.email)
	tab.Submit("button.primary")
	tab.Fill("#password", otherWord)
	tab.Submit("button.primary")
	title("Is this your device?") // the code was in the address
	tab.Submit("button.primary")
	title("Your device is connected")
	token := g.asks()["access_token"]

	tab.Open(w.url + logoutURL("client_id", shop, "post_logout_redirect_uri", home.URL+"/bye"))
	title("Sign out?")
	tab.Click("button.primary")
	tab.WaitUntilAt(home.URL + "/bye")
	if w.counts(token) {
		t.Error("the session goes on")
	}
	for _, said := range tab.Complaints() {
		if !strings.Contains(said, "favicon") {
			t.Errorf("the browser complains: %s", said)
		}
	}
}
