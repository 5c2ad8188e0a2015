package account_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

func TestSessionsAreListedAndEnded(t *testing.T) {
	w := newSite(t)
	b, phone, old := w.in("mara"), w.browser(), w.in("mara")
	phone.agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
	phone.signIn("mara")
	stranger := w.in("nils")
	page := b.open(pages.PathSessions).says(200, "Firefox (Linux)", "Safari (iPhone)", "127.0.0.1", "this session")
	mine := b.session().Token.ID
	if page.lists(mine) || !page.lists(phone.session().Token.ID) || !page.lists(old.session().Token.ID) ||
		page.lists(stranger.session().Token.ID) {
		t.Errorf("other sessions are listed: %s", page.text)
	}
	if strings.Index(page.text, "this session") > strings.Index(page.text, "Safari") {
		t.Error("the own session is not the first")
	}
	page.press(pages.DoEnd, phone.session().Token.ID).leads("/account/sessions?done=session").follow().says(200,
		"The session has ended.")
	phone.get(pages.PathAccount).leads(wish(pages.PathAccount))
	page.press(pages.DoEnd, "", pages.FieldID, stranger.session().Token.ID).says(422, "This was changed elsewhere")
	stranger.open(pages.PathAccount)
	page.press(pages.DoEndOthers, "").leads("/account/sessions?done=sessions").follow().says(200,
		"All other sessions have ended.")
	old.get(pages.PathAccount).leads(wish(pages.PathAccount))
	stranger.open(pages.PathAccount)
	if page := b.open(pages.PathSessions); strings.Contains(page.text, pages.DoEndOthers) {
		t.Error("there are others to end")
	}
	b.post(pages.PathSessions, map[string][]string{pages.FieldAccount: {mine}}).says(200)
}

func TestManySessionsAreNotAllShown(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	w.wait(time.Minute)
	u := w.user(mara)
	w.do(event.Command{Decide: func(tx *event.Tx) error {
		for range 700 {
			_, hash := secret.NewToken(secret.Session)
			tx.PutToken(event.Token{ID: event.NewID("ses"), Hash: hash, Kind: string(secret.Session), UserID: mara,
				Epoch: u.Data.SessionEpoch, Created: tx.Now(), Expires: tx.Now() + time.Hour.Microseconds()})
		}
		return nil
	}})
	page := b.open(pages.PathSessions).says(200, "this session", "Unknown browser")
	if got := strings.Count(page.text, "<li><div"); got != 200 {
		t.Errorf("%d are shown", got)
	}
}

var tokenText = regexp.MustCompile(`sgn_pat_[A-Za-z0-9_-]+`)

func TestTokensAreMadeAndRevoked(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	made := b.open(pages.PathTokens).says(200, "You have no tokens yet.").press(pages.DoCreate, "",
		pages.FieldTokenName, "<b>Backup", pages.FieldTokenDays, "30").
		says(200, "Your new token", "&lt;b&gt;Backup", "1 Feb 2026")
	text := tokenText.FindString(made.text)
	caller, err := w.sessions.Authenticate(t.Context(), text)
	must(t, err)
	if caller.UserID != mara {
		t.Errorf("it is of %s", caller.UserID)
	}
	page := b.open(pages.PathTokens).says(200, "&lt;b&gt;Backup")
	if strings.Contains(page.text, text) {
		t.Error("the token is shown again")
	}
	stranger := w.in("nils")
	stranger.open(pages.PathTokens).press(pages.DoCreate, "", pages.FieldID, caller.TokenID).says(200)
	stranger.open(pages.PathTokens).press(pages.DoRemove, "", pages.FieldID, caller.TokenID).says(422,
		"This was changed elsewhere")
	if _, err := w.sessions.Authenticate(t.Context(), text); err != nil {
		t.Errorf("somebody else revoked it: %v", err)
	}
	page.press(pages.DoRemove, caller.TokenID).leads("/account/tokens?done=token").follow().says(200,
		"The token has been revoked.")
	if _, err := w.sessions.Authenticate(t.Context(), text); err == nil {
		t.Error("it works")
	}
	page.press(pages.DoRemove, caller.TokenID).says(422, "This was changed elsewhere")
}

func TestWhatIsWrongWithATokenStandsNextToItsField(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	for _, c := range []struct{ name, days, field, says string }{
		{strings.Repeat("ü", 201), "30", pages.FieldTokenName, "Use at most 200 characters."},
		{"a", "", pages.FieldTokenDays, "Please check your input."},
		{"a", "0", pages.FieldTokenDays, "Please check your input."},
		{"a", "-1", pages.FieldTokenDays, "Please check your input."},
		{"a", "31", pages.FieldTokenDays, "Please check your input."},
		{"a", "99999999999999999999", pages.FieldTokenDays, "Please check your input."},
	} {
		answer := b.open(pages.PathTokens).press(pages.DoCreate, "", pages.FieldTokenName, c.name, pages.FieldTokenDays,
			c.days).says(422, `id="`+c.field+`-problem">`+c.says)
		if answer.value(pages.FieldTokenName) != c.name || tokenText.MatchString(answer.text) {
			t.Errorf("%q, %q: got %s", c.name, c.days, answer.text)
		}
	}
	for _, days := range []string{"30", "90", "365"} {
		b.open(pages.PathTokens).press(pages.DoCreate, "", pages.FieldTokenName, strings.Repeat("ü", 200),
			pages.FieldTokenDays, days).says(200, "Your new token")
	}
	shown, _, err := w.sessions.List(t.Context(), session.Own(b.session().Caller), secret.PAT, event.Cursor{}, 10)
	must(t, err)
	for i, days := range []int{30, 90, 365} {
		if len(shown) != 3 || !shown[i].Expires.Equal(w.now().Add(time.Duration(days)*24*time.Hour)) {
			t.Errorf("got %+v", shown)
		}
	}
}

func TestATokenNeedsAProofThatIsRecentAndNothingTypedIsLost(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	page := b.open(pages.PathTokens)
	w.wait(16 * time.Minute)
	ask := page.press(pages.DoCreate, "", pages.FieldTokenName, "My laptop & more", pages.FieldTokenDays,
		"365").follow().says(200, "Confirm it’s you")
	if shown, _, err := w.sessions.List(t.Context(), session.Own(b.session().Caller), secret.PAT, event.Cursor{},
		10); err != nil || len(shown) != 0 {
		t.Errorf("a token was made: %v", err)
	}
	back := ask.press("", "", pages.FieldPassword, pass).follow().says(200, `value="365" selected`)
	if back.value(pages.FieldTokenName) != "My laptop & more" {
		t.Errorf("the name is %q", back.value(pages.FieldTokenName))
	}
	back.press(pages.DoCreate, "", pages.FieldTokenName, "My laptop & more", pages.FieldTokenDays, "365").says(200,
		"Your new token")
	// Revoking one needs none.
	w.wait(16 * time.Minute)
	list := b.open(pages.PathTokens)
	shown, _, err := w.sessions.List(t.Context(), session.Own(b.session().Caller), secret.PAT, event.Cursor{}, 10)
	must(t, err)
	list.press(pages.DoRemove, shown[0].ID).leads("/account/tokens?done=token")
}

// consents lets an application have something of somebody's, and gives it a token.
func (w *site) consents(userID, appID, name string) (token string) {
	w.t.Helper()
	token, hash := secret.NewToken(secret.Access)
	w.do(event.Command{
		Write: []event.Ref{app.Kind.Ref(appID), oauth.Kind.Ref(oauth.IDFor(userID))},
		Read:  []event.Ref{user.Kind.Ref(userID)},
		Decide: func(tx *event.Tx) error {
			if _, err := app.Kind.Create(tx, appID, orgID,
				app.Added{Name: name, NameKey: name, Type: app.SPA}); err != nil {
				return err
			}
			u, err := user.Kind.Get(tx, userID)
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:      event.NewID("oat"),
				Hash:    hash,
				Kind:    string(secret.Access),
				UserID:  userID,
				Client:  appID,
				Epoch:   u.Data.TokenEpoch,
				Created: tx.Now(),
				Expires: tx.Now() + time.Hour.Microseconds(),
				Data:    session.Given{Scopes: []string{"openid"}}.Text(),
			})
			_, err = oauth.Kind.CreateBeside(tx, oauth.IDFor(userID), user.Kind.Ref(userID),
				oauth.Given{AppID: appID, Scopes: []string{"openid", "notes.<b>"}, Asked: true, At: tx.Now()})
			return err
		},
	})
	return token
}

func TestApplicationsAreDisconnected(t *testing.T) {
	w := newSite(t)
	token := w.consents(mara, "app_1", "<b>Shop")
	b := w.in("mara")
	page := b.open(pages.PathApplications).says(200, "&lt;b&gt;Shop", "recognize you", "another permission")
	if _, err := w.sessions.Bearer(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	w.in("nils").open(pages.PathApplications).says(200, "No application has access to your account.")
	b.post(pages.PathApplications,
		map[string][]string{pages.FieldAccount: {b.session().Token.ID}, pages.FieldID: {"app_1"}}).says(200,
		"&lt;b&gt;Shop")
	page.press(pages.DoRemove, "app_1").leads("/account/applications?done=application").follow().says(200,
		"The application no longer has access.", "No application has access")
	if _, err := w.sessions.Bearer(t.Context(), token); err == nil {
		t.Error("its token works")
	}
	page.press(pages.DoRemove, "app_1").says(422, "This was changed elsewhere")
}
