package hosted

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// moves changes somebody's address as the person does, and gives the path of the link that undoes it.
func (w *world) moves(p person, to string) (undo string) {
	w.t.Helper()
	_, err := user.SetMyEmail(w.t.Context(), w.server.Store(), &access.Caller{UserID: p.id}, event.IfMatch{}, to)
	must(w.t, err)
	return w.link(p.email)
}

func (w *world) change(id string, facts ...event.Fact[user.User]) {
	w.t.Helper()
	w.do(event.Command{Write: []event.Ref{user.Kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		return u.Append(facts...)
	}})
}

func TestAChangedAddressIsTakenBackByAButton(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, true)
	thief := w.signedIn(jo)
	undo := w.moves(jo, "thief@mail.test")

	// Looking does nothing, and tells nothing: it looks the same for a code that nobody has.
	b := w.browser()
	page := b.get(undo).shows(200, "Undo the change to your e‑mail address", "Undo the change")
	if strings.Contains(page.path, "code") || page.path != "/restore?mailed=1&user="+jo.id ||
		strings.Contains(page.body, "@mail.test") {
		t.Errorf("the page at %s says %s", page.path, page.body)
	}
	for _, path := range []string{"/restore?user=" + jo.id + "&code=AAAAAAAAAAAAAAAAAAAA",
		"/restore?user=usr_nobody&code=AAAAAAAAAAAAAAAAAAAA"} {
		other := w.browser().get(path).shows(200, "Undo the change")
		if other.body != page.body {
			t.Errorf("%s differs", path)
		}
		other.post().shows(400, "This link no longer works")
	}
	w.browser().get("/restore").shows(400, "This link no longer works")
	if from := b.send(http.MethodPost, page.path, url.Values{}, "Origin", "https://evil.test", "Sec-Fetch-Site",
		"cross-site"); from.status != http.StatusForbidden {
		t.Errorf("from another site: %d", from.status)
	}
	thief.get("/device").shows(200, "Connect a device")

	w.change(jo.id, user.WasLocked{})
	page.post().shows(400, "This account is not active", "Ask your administrator")
	w.change(jo.id, user.Unlocked{})
	form := page.post().shows(200, "Your previous e‑mail address is restored.", "Set a new password")
	thief.get("/device").shows(200, "loginName")
	form.post("newPassword", "", "repeatPassword", "").shows(422, "Please fill this in.")
	form.post("newPassword", otherWord, "repeatPassword", otherWord).shows(200, "Your password has been set")
	w.browser().get("/login?to=/device").signIn(jo.email, otherWord).shows(200, "Connect a device")
	w.browser().get(undo).post().shows(400, "This link no longer works")
}

func TestAResetRightAfterAChangeAsksForASecondFactor(t *testing.T) {
	w := withMail(t)
	jo := w.person(w.org, true)
	phone, _ := w.signedIn(jo).enrol()
	w.mail.Next(t) // about the factor
	// The app is the owner's since long before the change.
	had, err := user.Kind.Read(t.Context(), w.server.Store(), jo.id)
	must(t, err)
	app := had.Data.Human.Factors[0]
	w.change(jo.id, user.FactorRemoved{FactorID: app.ID},
		user.TOTPAdded{FactorID: app.ID, Created: app.Created - (25 * time.Hour).Microseconds()})
	w.mail.Next(t) // of the two only that it was removed: about an added one there was a mail just now
	w.moves(jo, "new@mail.test")
	w.change(jo.id, user.EmailVerified{})
	w.browser().get("/forgot").post("loginName", jo.name).shows(200)
	form := w.browser().get(w.link("new@mail.test")).shows(200, "Set a new password")
	if strings.Contains(form.body, `name="code"`) {
		t.Error("it is known before the code was looked at")
	}
	form = form.post("newPassword", otherWord, "repeatPassword", otherWord).shows(422,
		"so you also need a second factor", `name="code"`)
	form.post("newPassword", otherWord, "repeatPassword", otherWord, "code", phone.wrong()).shows(422,
		`id="code-problem"`)
	code := phone.code()
	form.post("newPassword", otherWord, "repeatPassword", otherWord+"!", "code", code).
		shows(422, "The two passwords do not match.", `name="code"`)
	form.post("newPassword", otherWord, "repeatPassword", otherWord, "code", code).shows(200,
		"Your password has been set")
}
