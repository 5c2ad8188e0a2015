package account_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/login"
)

// app enrols an authenticator app in the account, and gives its key.
func (b *browser) app() string {
	b.t.Helper()
	page := b.open(account.PathTOTP)
	page.press("", "", pages.FieldCode, page.code()).says(200, "Your recovery codes")
	return page.value(pages.FieldKey)
}

// options are what a page gives a browser to make or use a passkey.
func (s *shown) options() string {
	s.b.t.Helper()
	root, err := html.Parse(strings.NewReader(s.text))
	must(s.b.t, err)
	for n := range root.Descendants() {
		if text := attribute(n, "data-options"); text != "" {
			var o struct {
				PublicKey json.RawMessage `json:"publicKey"`
			}
			must(s.b.t, json.Unmarshal([]byte(text), &o))
			if o.PublicKey == nil {
				return text
			}
			return string(o.PublicKey)
		}
	}
	s.b.t.Fatalf("%s asks for no passkey: %s", s.at, s.text)
	return ""
}

func TestAnAuthenticatorAppIsAdded(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathSecurity).says(200, "You have not set up a second factor yet.", `href="/account/security/totp"`,
		`href="/account/security/passkey"`)
	token := b.cookie()
	page := b.open(account.PathTOTP)
	key := page.value(pages.FieldKey)
	wrongCode := factortest.Wrong(w.now(), key)
	for _, wrong := range []string{"", wrongCode, "nonsense", `"><b>`} {
		page = page.press("", "", pages.FieldCode, wrong).says(422, `id="code-problem"`)
		if page.value(pages.FieldKey) != key {
			t.Fatalf("after %q the app has to be told another key", wrong)
		}
	}
	w.wait(4 * time.Minute) // who types slowly may go on
	page = page.press("", "", pages.FieldCode, wrongCode).says(422)
	w.wait(4 * time.Minute)
	if b.cookie() != token {
		t.Error("an attempt changed the session")
	}
	done := page.press("", "", pages.FieldCode, factortest.Code(key, w.now())).says(200, "Your recovery codes",
		"The second factor is set up.", `href="/account/security"`)
	if codes := regexp.MustCompile(`<li><code>[^<]+</code></li>`).FindAllString(done.text,
		-1); len(codes) != w.human(mara).RecoveryCodes || len(codes) == 0 {
		t.Errorf("the codes are %q", codes)
	}
	if b.cookie() == token {
		t.Error("the session has the same token as before")
	}
	if _, err := w.sessions.Session(t.Context(), token); err == nil {
		t.Error("the token from before the step counts")
	}
	b.open(pages.PathSecurity).says(200, "Authenticator app")
	codes := w.human(mara).RecoveryCodes
	page = b.open(account.PathTOTP)
	page.press("", "", pages.FieldCode, page.code()).leads("/account/security?done=factor-added").follow().says(200,
		"The second factor is set up.")
	if h := w.human(mara); h.RecoveryCodes != codes || len(h.Factors) != 2 {
		t.Errorf("a second app changes the recovery codes, or is not there: %+v", h)
	}
}

func TestAKeyThatTheServerDidNotMakeIsNotShown(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	const foreign = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	var page *shown
	made := factortest.Choose(w.now(), []string{foreign}, func() string {
		page = b.open(account.PathTOTP)
		return page.value(pages.FieldKey)
	})
	answer := page.press("", "", pages.FieldKey, foreign, pages.FieldCode, factortest.Code(foreign, w.now())).says(422)
	if got := answer.value(pages.FieldKey); got == foreign || got == made || strings.Contains(answer.text, foreign) {
		t.Errorf("shown: %s", got)
	}
	answer.press("", "", pages.FieldKey, foreign, pages.FieldCode, answer.code()).says(200, "Your recovery codes")
}

func TestTheSignInKeepsTheKeyOfAnApp(t *testing.T) {
	w := newSite(t)
	w.policy(policy.Policy{SecondFactorRequired: true})
	b := w.in("mara")
	page := b.get(pages.PathAccount).follow().says(200, "Set up an authenticator app")
	key := page.value(pages.FieldKey)
	page = page.press("", "", pages.FieldCode, factortest.Wrong(w.now(), key)).says(422)
	if page.value(pages.FieldKey) != key {
		t.Error("it shows another key after a wrong code")
	}
	page.press("", "", pages.FieldCode, factortest.Code(key, w.now())).says(200, "Your recovery codes")
	b.open(pages.PathAccount)
}

func TestAPasskeyIsAddedAndProven(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	device := &factortest.Authenticator{Origin: origin}
	page := b.open(account.PathPasskey)
	token := b.cookie()
	for _, wrong := range []string{"", "{}", "nonsense"} {
		page = page.press("", "", pages.FieldCredential, wrong, pages.FieldPasskeyName, "Laptop").says(422,
			"This passkey was not accepted.")
	}
	if page.value(pages.FieldPasskeyName) != "Laptop" {
		t.Error("the name is lost")
	}
	credential, err := device.Create(page.options())
	must(t, err)
	page = page.press("", "", pages.FieldCredential, credential, pages.FieldPasskeyName,
		strings.Repeat("ü", 201)).says(422, `id="passkeyName-problem">Use at most 200 characters.`)
	credential, err = device.Create(page.options())
	must(t, err)
	page.press("", "", pages.FieldCredential, credential, pages.FieldPasskeyName, "<b>Laptop").says(200,
		"Your recovery codes")
	if b.cookie() == token {
		t.Error("the session has the same token as before")
	}
	b.open(pages.PathSecurity).says(200, "&lt;b&gt;Laptop")
	if f := w.human(mara).Factors; len(f) != 1 || f[0].Name != "<b>Laptop" || f[0].Kind != user.Passkey {
		t.Errorf("got %+v", f)
	}
	// Much later it proves that its owner is there, in place of the password.
	w.wait(time.Hour)
	token = b.cookie()
	passkey := b.get(account.PathTOTP).follow().says(200, "Use your passkey")
	assertion, err := device.Get(passkey.options())
	must(t, err)
	if at := passkey.press("", "", pages.FieldCredential, assertion).follow().says(200,
		"Set up an authenticator app"); at.at != account.PathTOTP || b.cookie() == token {
		t.Errorf("it leads to %s", at.at)
	}
}

func TestWithoutAHostNameThereAreNoPasskeys(t *testing.T) {
	w := newSiteAt(t, "https://192.0.2.1")
	b := w.in("mara")
	if page := b.open(pages.PathSecurity); strings.Contains(page.text, account.PathPasskey) {
		t.Errorf("a passkey is offered: %s", page.text)
	}
	b.get(account.PathPasskey).leads(pages.PathSecurity)
	w.policy(policy.Policy{SecondFactorRequired: true})
	if page := b.get(pages.PathAccount).follow().says(200,
		"Set up an authenticator app"); strings.Contains(page.text, "passkey") {
		t.Errorf("a passkey is offered: %s", page.text)
	}
}

func TestSecondFactorsAreRemoved(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.app()
	id := w.human(mara).Factors[0].ID
	page := b.open(pages.PathSecurity)
	w.policy(policy.Policy{SecondFactorRequired: true})
	page.press(pages.DoRemove, id).says(422, "Your organization requires a second factor.")
	w.policy(policy.Policy{})
	b.open(pages.PathSecurity).press(pages.DoRemove, "", pages.FieldID, "fac_none").says(422,
		"This was changed elsewhere")
	page.press(pages.DoRemove, id).leads("/account/security?done=factor-removed").follow().says(200,
		"The second factor has been removed.")
	if page.press(pages.DoRemove, id).says(422, "This was changed elsewhere",
		"You have not set up a second factor yet."); len(w.human(mara).Factors) != 0 {
		t.Error("it is still there")
	}
	page.press(pages.DoCodes, "").says(422, "This was changed elsewhere")
}

func TestRecoveryCodesAreReplaced(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.app()
	w.change(mara, user.RecoveryCodeUsed{})
	made := w.human(mara).RecoveryCodes
	b.open(pages.PathSecurity).says(200, "You have 9 codes left.").press(pages.DoCodes, "").says(200,
		"Your recovery codes", "These codes are shown only once.")
	if w.human(mara).RecoveryCodes == made {
		t.Error("there are as many as before")
	}
}

func TestThereIsAnEndToSecondFactors(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.app()
	page := b.open(account.PathTOTP)
	for range user.MaxFactors - 1 {
		w.change(mara, user.PasskeyAdded{FactorID: event.NewID("fac"), Created: 1})
	}
	if list := b.open(pages.PathSecurity).says(200, `aria-label="Remove passkey"`,
		`aria-label="Remove authenticator app"`); strings.Contains(list.text, account.PathTOTP) ||
		strings.Contains(list.text, account.PathPasskey) {
		t.Error("one more is offered")
	}
	for _, path := range []string{account.PathTOTP, account.PathPasskey} {
		b.get(path).leads("/account/security?full=1").follow().says(422, "You cannot add more second factors.")
	}
	list := page.press("", "", pages.FieldCode, page.code()).leads("/account/security?full=1").follow()
	list.press(pages.DoRemove, w.human(mara).Factors[0].ID).leads("/account/security?done=factor-removed")
}

func TestWhatIsImportantNeedsAProofThatIsRecent(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	key := b.app()
	id, account1 := w.human(mara).Factors[0].ID, b.session().Token.ID
	list, enrol := b.open(pages.PathSecurity), b.open(account.PathTOTP)
	w.wait(16 * time.Minute)
	security := wish(pages.PathSecurity, "account", account1, "again", "1")
	list.press(pages.DoRemove, id).leads(security)
	list.press(pages.DoCodes, "").leads(security)
	enrol.press("", "", pages.FieldCode, enrol.code()).leads(wish(account.PathTOTP, "account", account1, "again", "1"))
	b.get(account.PathTOTP).leads(wish(account.PathTOTP, "account", account1, "again", "1"))
	b.get(account.PathPasskey).leads(wish(account.PathPasskey, "account", account1, "again", "1"))
	if h := w.human(mara); len(h.Factors) != 1 {
		t.Errorf("got %+v", h.Factors)
	}
	token := b.cookie()
	// Who has a second factor proves that: the password alone is less than the sign-in asked for.
	ask := b.open(security).says(200, "Enter your code", "mara@a.test")
	b.open(security+"&with=passkey").says(200, "Enter your code")
	ask.press("", "", pages.FieldPassword, pass).says(422, "Please fill this in.")
	wrong := factortest.Wrong(b.now(), key)
	ask.press("", "", pages.FieldCode, wrong).says(422, "This code is wrong or no longer valid.")
	back := ask.press("", "", pages.FieldCode, factortest.Code(key, b.now())).follow().says(200)
	if back.at != pages.PathSecurity || b.cookie() == token {
		t.Errorf("it leads to %s, with another token: %t", back.at, b.cookie() != token)
	}
	back.press(pages.DoRemove, id).leads("/account/security?done=factor-removed")
	// Who has just proven to be there is not asked once more.
	b.get(security).leads(pages.PathSecurity)
	// Who has none gives the password.
	w.wait(16 * time.Minute)
	ask = b.open(security).says(200, "Confirm it’s you", "mara@a.test")
	ask.press("", "", pages.FieldPassword, "wrong").says(422, "That is not your current password.")
	if back = ask.press("", "", pages.FieldPassword, pass).follow().says(200); back.at != pages.PathSecurity {
		t.Errorf("it leads to %s", back.at)
	}
}

func TestAProofIsAskedForOfTheAccountThatNeedsIt(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.signIn("nils")
	w.wait(16 * time.Minute)
	b.get(account.PathTOTP).follow().says(200, "Confirm it’s you", "nils@a.test").press("", "", pages.FieldPassword,
		pass).follow().says(200, "Set up an authenticator app")
	b.open(pages.PathAccount).says(200, "The nils")
	b.get(login.Path + "?" + url.Values{"to": {"https://evil.test/account"}, "account": {b.session().Token.ID},
		"again": {"1"}}.Encode()).leads(pages.PathAccount)
}

func TestASecondFactorIsRenamed(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.app()
	id := w.human(mara).Factors[0].ID
	b.open(pages.PathSecurity).says(200, "Rename authenticator app", "data-signal=")
	page := b.open(pages.PathSecurity+"?rename="+id).says(200, "Rename second factor")
	page.press(pages.DoRename, id, pages.FieldFactorName, " ").says(422, `id="factorName-problem"`)
	page.press(pages.DoRename, id, pages.FieldFactorName, strings.Repeat("x", 201)).says(422, `id="factorName-problem"`)
	page.press(pages.DoRename, id, pages.FieldFactorName, " Old telephone ").follow().says(200, "Old telephone",
		"Your changes have been saved")
	if got := w.human(mara).Factors[0].Name; got != "Old telephone" {
		t.Errorf("it is called %q", got)
	}
	b.open(pages.PathSecurity+"?rename=fac_x").says(200, "Old telephone")
	w.wait(16 * time.Minute)
	b.get(pages.PathSecurity + "?rename=" + id).leads(wish(pages.PathSecurity+"?rename="+id, "account",
		b.session().Token.ID, "again", "1"))
}
