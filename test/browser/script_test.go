package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/signet-idm/signet/test/browser"
)

func TestAPasswordCanBeShown(t *testing.T) {
	tab, origin := browser.Start(t).Tab(t), preview(t)
	tab.Open(origin + "/preview/en/change-password")
	tab.Fill("#newPassword", "kettle-brume")
	kind := func(want string) {
		t.Helper()
		var got string
		if tab.Evaluate(`document.querySelector("#newPassword").type + " " + document.querySelector("[data-reveal=newPassword]").textContent`, &got); got != want {
			t.Errorf("the field is %s, not %s", got, want)
		}
	}
	kind("password Show New password")
	tab.Click("[data-reveal=newPassword]")
	kind("text Hide New password")
	if got := tab.Has("#repeatPassword[type=text]"); got {
		t.Error("the other field is shown as well")
	}
	tab.Click("[data-reveal=newPassword]")
	kind("password Show New password")
	tab.Click("[data-reveal=newPassword]")
	var sent string // browsers keep only what is sent as a password
	tab.Evaluate(`new Promise(function (done) {
		var form = document.querySelector("form");
		form.addEventListener("submit", function (e) { e.preventDefault(); done(document.querySelector("#newPassword").type); });
		form.requestSubmit();
	})`, &sent)
	if sent != "password" {
		t.Errorf("it is sent from a field of type %s", sent)
	}
}

func TestWhatIsShownOnceCanBeKept(t *testing.T) {
	tab, origin := browser.Start(t).Tab(t), preview(t)
	for page, want := range map[string]string{
		"recovery-codes":    "7kq2-mxnp-4dht\nr9vw-c3fy-8sjb\n",
		"account-new-token": "sgn_pat_3mKq8VtY2cZr7LwXb5NfJ4hGd9sPvA6eTuQ1oRiMyBk",
		"enrol-totp":        "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
	} {
		tab.Open(origin + "/preview/en/" + page)
		tab.Evaluate(`navigator.clipboard.writeText = function (text) { window.copied = text; return Promise.resolve(); };
			URL.createObjectURL = function (blob) { window.kept = blob; return "blob:x"; };
			HTMLAnchorElement.prototype.click = function () { window.file = this.download; }; true`, nil)
		tab.Click("[data-copy]")
		var got string
		if tab.Evaluate("window.copied", &got); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q is copied", page, got)
		}
		if said := tab.Text("[data-copy]"); said != "Copied" {
			t.Errorf("%s: it says %s", page, said)
		}
		if page == "enrol-totp" { // which belongs into an app
			continue
		}
		tab.Click("[data-download]")
		if tab.Evaluate("window.kept.text().then(function (text) { return window.file + ' ' + text; })",
			&got); !strings.Contains(got, ".txt "+want) {
			t.Errorf("%s: %q is downloaded", page, got)
		}
		if said := tab.Complaints(); len(said) > 0 {
			t.Errorf("%s: the browser complains: %q", page, said)
		}
	}
}

func TestTimesAreToldWhereThePersonIs(t *testing.T) {
	tab, origin := browser.Start(t).Tab(t), preview(t)
	tab.Do(emulation.SetTimezoneOverride("America/New_York"))
	for language, want := range map[string]string{"en": "4:12", "de": "04:12", "fr": "04:12", "es": "4:12"} {
		tab.Open(origin + "/preview/" + language + "/account-sessions")
		var title string
		tab.Evaluate(`document.querySelector("time").title`, &title)
		if got := tab.Text("time"); !strings.Contains(got, want) || !strings.Contains(got, "2026") ||
			strings.Contains(got, "UTC") || !strings.Contains(title, "UTC") {
			t.Errorf("%s: it says %q, and %q", language, got, title)
		}
	}
}

func TestWithoutScriptsNothingIsOfferedThatDoesNotWork(t *testing.T) {
	tab, origin := browser.Start(t).Tab(t), preview(t)
	tab.Do(emulation.SetScriptExecutionDisabled(true))
	for _, page := range []string{"password", "recovery-codes", "account-new-token", "account-sessions",
		"account-password"} {
		tab.Open(origin + "/preview/en/" + page)
		text := tab.Text("body")
		for _, offer := range []string{"Show", "Copy\n", "Download"} {
			if strings.Contains(text, offer) {
				t.Errorf("%s offers to %s", page, offer)
			}
		}
		if page == "account-sessions" && !strings.Contains(text, "UTC") {
			t.Errorf("a time without its zone: %s", text)
		}
	}
}
