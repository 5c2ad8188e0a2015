package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testkit"
)

func TestAWalkThroughTheAccount(t *testing.T) {
	browser.NeedAxe(t)
	i := installed(t)
	i.person("mara")
	tab := i.visitor(t, browser.Start(t))
	tab.Authenticator(true)
	look := func(heading, done string) {
		t.Helper()
		if got := tab.Text("h1"); got != heading {
			t.Fatalf("%s is headed %q, not %q", tab.At(), got, heading)
		}
		if done != "" && tab.Text(".notice.done") != done {
			t.Errorf("%s says %q, not %q", heading, tab.Text(".notice.done"), done)
		}
		report(t, heading, "axe", tab.Axe(false))
		report(t, heading, "does not fit", tab.Overflowing())
		report(t, heading, "the browser complains", tab.Complaints())
	}
	section := func(path string) {
		t.Helper()
		tab.Submit(`nav a[href="` + path + `"]`)
	}
	tab.Open(i.url + "/account/security")
	look("Sign in", "")
	tab.name("mara")
	tab.password(firstPassword)
	look("Security", "")

	section("/account")
	look("Your profile", "")
	tab.Fill("#firstName", "")
	tab.Submit("button.primary")
	if !tab.Has("#firstName-problem") {
		t.Error("what is wrong is not said next to the field")
	}
	tab.Complaints() // the browser tells of the status
	tab.Fill("#firstName", "Mara")
	tab.Choose("#gender", "female")
	tab.Submit("button.primary")
	look("Your profile", "Your changes have been saved.")

	section("/account/password")
	look("Change your password", "")
	tab.Fill("#currentPassword", firstPassword)
	tab.Fill("#newPassword", otherPassword)
	tab.Fill("#repeatPassword", otherPassword)
	tab.Submit("button.primary")
	look("Change your password", "Your password has been changed.")

	section("/account/security")
	tab.Submit(`a[href="/account/security/passkey"]`)
	look("Create a passkey", "")
	tab.Fill("#passkeyName", "Work laptop")
	tab.Submit(".passkey button")
	look("Your recovery codes", "The second factor is set up. You will be asked for it at your next sign-in.")
	tab.Submit(".go a")
	look("Security", "")
	tab.Submit(`a[href="/account/security/totp"]`)
	look("Set up an authenticator app", "")
	key := strings.ReplaceAll(tab.Text(".secret code"), " ", "")
	tab.Fill("#code", factortest.Wrong(time.Now(), key))
	tab.Submit("button.primary")
	tab.Complaints()
	if again := strings.ReplaceAll(tab.Text(".secret code"), " ", ""); again != key {
		t.Error("after a wrong code the key is another one")
	}
	tab.Fill("#code", factortest.Code(key, time.Now()))
	tab.Submit("button.primary")
	look("Security", "The second factor is set up. You will be asked for it at your next sign-in.")
	tab.Submit(`button[value="codes"]`)
	look("Your recovery codes", "")
	tab.Submit(".go a")
	tab.Submit(`button[aria-label="Remove authenticator app"]`)
	look("Security", "The second factor has been removed.")

	section("/account/sessions")
	look("Where you are signed in", "")
	if name := tab.Text(".rows .name"); !strings.Contains(name, "Chrome (Linux)") {
		t.Errorf("this browser is called %q", name)
	}
	section("/account/tokens")
	look("Personal access tokens", "")
	tab.Fill("#tokenName", "Backup script")
	tab.Submit(`button[value="create"]`)
	look("Your new token", "")
	tab.Submit("main a.button")
	tab.Submit(`button[value="remove"]`)
	look("Personal access tokens", "The token has been revoked.")

	tab.Open(i.ask())
	tab.arrives()
	tab.Open(i.url + "/account/applications")
	look("Connected applications", "")
	tab.Submit(`button[aria-label="Disconnect “Shop”"]`)
	look("Connected applications", "The application no longer has access.")
	section("/account")
	tab.Choose("#preferredLanguage", "de")
	tab.Submit("button.primary")
	look("Ihr Profil", "Ihre Änderungen wurden gespeichert.")

	// The passkey that was made here is all that is needed to come in again.
	tab.Forget()
	tab.Open(i.url + "/account")
	tab.WaitUntilAt(i.url + "/account")
	look("Ihr Profil", "")
}

// A browser goes on to offer passkeys that were removed, and under names that have changed, unless it is told.
func TestTheBrowserIsToldAboutPasskeys(t *testing.T) {
	i := installed(t)
	id := i.person("mara")
	tab := i.visitor(t, browser.Start(t))
	tab.Authenticator(true)
	holds := func(when, want string) {
		t.Helper()
		testkit.Await(t, when+" the device holds "+want, func() bool { return fmt.Sprint(tab.Passkeys()) == want })
	}
	add := func() {
		t.Helper()
		tab.Open(i.url + "/account/security/passkey")
		tab.Fill("#passkeyName", "Work laptop")
		tab.Submit(".passkey button")
	}
	tab.Open(i.url + "/account")
	tab.name("mara")
	tab.password(firstPassword)
	add()
	first := tab.Passkeys()
	if len(first) != 1 {
		t.Fatalf("the device holds %v", first)
	}

	tab.Open(i.url + "/account")
	tab.Fill("#displayName", "Mara Renamed")
	tab.Submit("button.primary")
	holds("after another name", "map[mara:Mara Renamed]")

	tab.Open(i.url + "/account/security")
	tab.Submit(`a[href*="rename="]`)
	tab.Fill("#factorName", "Old laptop")
	tab.Submit("button.primary")
	holds("after a passkey was renamed", "map[mara:Mara Renamed]")

	tab.Submit(`button[value="remove"]`)
	holds("after it was removed", "map[]")

	// Somebody else removes one: the next sign-in with it says so, and the browser forgets it.
	add()
	for _, f := range i.api("GET", "/v1/users/"+id+"/factors", nil)["factors"].([]any) {
		i.api("DELETE", "/v1/users/"+id+"/factors/"+f.(map[string]any)["factorId"].(string), nil)
	}
	tab.Forget()
	tab.Open(i.url + "/account") // it is offered in the field of the login name, and taken at once
	tab.WaitFor(".problem, [role=alert]")
	holds("after it was used in vain", "map[]")
	tab.sees("body", "This passkey was removed from your account")
}
