package account_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/login"
)

// paths are all pages of the account.
func (w *site) paths() []string {
	var paths []string
	for path := range w.account.Handlers() {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// wish is the address of the sign-in that leads back to a page.
func wish(path string, more ...string) string {
	query := url.Values{"to": {path}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return login.Path + "?" + query.Encode()
}

func TestEveryPageIsForThoseWhoAreSignedIn(t *testing.T) {
	w := newSite(t)
	if len(w.paths()) != 10 {
		t.Errorf("these pages are tested: %q", w.paths())
	}
	for _, path := range w.paths() {
		b := w.browser()
		b.post(path, url.Values{pages.FieldDo: {pages.DoCodes}}).leads(wish(path))
		b.get(path+"?done=saved").leads(wish(path)).follow().says(200, "<h1>Sign in</h1>")
		sent := b.post(wish(path), url.Values{pages.FieldLoginName: {"mara"}, pages.FieldPassword: {pass}}).follow()
		if sent.says(200); sent.at != path {
			t.Errorf("to get to %s leads to %s", path, sent.at)
		}
	}
}

func TestASessionThatIsNotAFullOneGetsNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		restrict func(w *site)
		asks     string
	}{
		"the password has to be changed": {func(w *site) { w.change(mara, user.PasswordSet{ChangeRequired: true}) },
			"Choose a new password"},
		"a second factor has to be enrolled": {func(w *site) { w.policy(policy.Policy{SecondFactorRequired: true}) },
			"Set up an authenticator app"},
		"a second factor has to be proven": {func(w *site) {
			w.change(mara, user.TOTPAdded{FactorID: "fac_1", Created: 1})
		}, "Enter your code"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSite(t)
			c.restrict(w)
			b := w.in("mara")
			id := b.session().Token.ID
			before := w.user(mara).Sequence
			for _, path := range w.paths() {
				b.get(path).leads(wish(path, "account", id)).follow().says(200, "<h1>"+c.asks+"</h1>")
				for _, do := range []string{"", pages.DoCodes, pages.DoCreate, pages.DoEndOthers, pages.DoRemove,
					pages.DoLeave} {
					b.post(path,
						url.Values{pages.FieldDo: {do}, pages.FieldAccount: {id},
							pages.FieldTokenDays: {"30"}}).leads(wish(path, "account", id))
				}
			}
			if now := w.user(mara).Sequence; now != before {
				t.Error("something was changed")
			}
		})
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(account.PathTOTP) // so that there is something to confirm
	before, id := w.user(mara).Sequence, b.session().Token.ID
	for _, path := range w.paths() {
		for _, do := range []string{"", pages.DoCodes, pages.DoCreate, pages.DoEnd, pages.DoEndOthers, pages.DoRemove} {
			form := url.Values{pages.FieldDo: {do}, pages.FieldAccount: {id}, pages.FieldID: {id},
				pages.FieldTokenDays: {"30"}}
			for _, headers := range [][]string{{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"},
				{"Origin", "https://evil.test"}, {"Origin", "null"}, nil} {
				b.send(http.MethodPost, path, form.Encode(),
					append(headers, "Content-Type", "application/x-www-form-urlencoded")...).says(403,
					"This form was sent from another site")
			}
		}
	}
	if b.open(pages.PathAccount); w.user(mara).Sequence != before {
		t.Error("something was changed")
	}
}

func TestEveryFormSaysWhoseItIs(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	w.in("mara")
	w.consents(mara, "app_1", "Shop")
	b.open(pages.PathTokens).press(pages.DoCreate, "").says(200)
	eventtest.Given(t, w.store, org.Kind, "org_guest", "org_guest", nil, org.Added{Name: "Guests"})
	eventtest.Given(t, w.store, user.Kind, mara, "", nil, user.MembershipSet{Scope: "org_guest", Stays: true})
	for _, path := range w.paths() {
		forms := b.open(path).forms()
		if len(forms) == 0 && path != pages.PathSecurity {
			t.Errorf("%s has no form", path)
		}
		for _, f := range forms {
			if f.values.Get(pages.FieldAccount) != b.session().Token.ID {
				t.Errorf("%s: a form with %v", path, f.values)
			}
		}
	}
}

func TestAFormIsTakenForTheAccountItWasShownFor(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	marasPage := b.open(pages.PathAccount)
	b.signIn("nils")
	if id := b.session().Caller.UserID; id != nils {
		t.Fatalf("the current account is that of %s", id)
	}
	b.open(pages.PathAccount).says(200, "The nils")
	marasPage.press("", "", pages.FieldNickName, "M").follow().says(200, "Your changes have been saved", "The mara")
	if w.human(mara).Profile.NickName != "M" || w.human(nils).Profile.NickName != "" {
		t.Errorf("mara is called %q and nils %q", w.human(mara).Profile.NickName, w.human(nils).Profile.NickName)
	}
	// The account may have left the browser, or may never have been in it.
	stranger := w.in("nils").session().Token.ID
	for _, id := range []string{"", stranger, "ses_none"} {
		b.post(pages.PathAccount, url.Values{pages.FieldAccount: {id}}).leads(wish(pages.PathAccount))
	}
}

func TestAnotherAccountIsALinkAway(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathAccount).says(200, `href="/login?other=1&amp;to=%2Faccount"`)
	b.open(wish(pages.PathAccount, "other", "1")).says(200, "<h1>Sign in</h1>")
	b.signIn("nils")
	b.open(pages.PathAccount).says(200, "The nils", `href="/login?to=%2Faccount"`, `href="/logout"`)
	chooser := b.open(wish(pages.PathAccount)).says(200, "<h1>Choose an account</h1>", "The mara", "The nils")
	other := ""
	for _, id := range regexp.MustCompile(`ses_[a-z0-9]+`).FindAllString(chooser.text, -1) {
		if id != b.session().Token.ID {
			other = id
		}
	}
	b.post(wish(pages.PathAccount), url.Values{pages.FieldID: {other}}).follow().says(200, "The mara")
}

func TestTheConsoleIsALinkAwayForThoseWithARole(t *testing.T) {
	w := newSite(t)
	w.account.Console = true
	link := `href="/console/"`
	if b := w.in("nils"); strings.Contains(b.open(pages.PathAccount).text, link) {
		t.Error("somebody without a role is led to the console")
	}
	w.change(mara, user.MembershipSet{Scope: orgID, Roles: []access.Role{access.OrgOwnerViewer}})
	b := w.in("mara")
	b.open(pages.PathAccount).says(200, link)
	w.account.Console = false
	if strings.Contains(b.open(pages.PathAccount).text, link) {
		t.Error("it leads to a console that is switched off")
	}
}

func TestAnEndedSessionGetsNowhere(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathAccount)
	w.change(mara, user.SessionsEnded{})
	b.get(pages.PathAccount).leads(wish(pages.PathAccount))
}

func TestPagesUseASessionAndRefusalsDoNot(t *testing.T) {
	w := newSite(t)
	w.policy(policy.Policy{SessionIdleSeconds: 3600})
	b := w.in("mara")
	ends := func() int64 { return b.session().Token.Expires }
	page := b.open(pages.PathAccount)
	first := ends()
	w.wait(30 * time.Minute)
	page.press("", "", pages.FieldFirstName, "").says(422)
	b.get(account.PathTOTP).leads(wish(account.PathTOTP, "account", b.session().Token.ID, "again", "1"))
	if ends() != first {
		t.Error("a refusal lets the session live on")
	}
	b.open(pages.PathSessions)
	if got := ends(); got != event.Micros(w.now().Add(time.Hour)) {
		t.Errorf("after a use it ends at %s", event.Time(got))
	}
	w.wait(45 * time.Minute)
	b.open(pages.PathAccount).press("", "", pages.FieldLanguage, "de").leads(pages.PathAccount + "?done=saved")
	w.wait(45 * time.Minute)
	b.open(pages.PathAccount)
	w.wait(61 * time.Minute)
	b.get(pages.PathAccount).leads(wish(pages.PathAccount))
}

func TestWhatWasDoneIsOneOfAFewSentences(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathAccount+"?done=saved").says(200, "Your changes have been saved.")
	for _, unknown := range []string{"", "x", "%3Cscript%3E", "Your+password+is+needed"} {
		if page := b.open(pages.PathAccount + "?done=" + unknown); strings.Contains(page.text, "notice done") {
			t.Errorf("%q is said: %s", unknown, page.text)
		}
	}
}

func TestOnlyFormsThatBrowsersSendAreRead(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	before, id := w.user(mara).Sequence, b.session().Token.ID
	for _, path := range append(w.paths(), wish(pages.PathAccount, "other", "1")) {
		for _, field := range []string{pages.FieldFirstName, pages.FieldTokenName, pages.FieldID,
			pages.FieldLoginName} {
			for name, body := range map[string]string{
				"a NUL": field + "=a%00b", "not UTF-8": field + "=%ff", "a name that is not UTF-8": "%ff=1",
				"not a form": field + "=%zz",
				"too much":   field + "=" + strings.Repeat("x", 70<<10),
			} {
				sent := b.send(http.MethodPost, path, body+"&account="+id+"&do="+pages.DoCreate+"&tokenDays=30",
					"Content-Type", "application/x-www-form-urlencoded", "Origin", origin)
				if sent.status != http.StatusBadRequest {
					t.Errorf("%s with %s in %s: %d %s", path, name, field, sent.status, sent.text)
				}
			}
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if sent := b.send(method, path, "", "Origin", origin); sent.status != http.StatusMethodNotAllowed ||
				sent.header.Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("%s %s: %d", method, path, sent.status)
			}
		}
	}
	if w.user(mara).Sequence != before {
		t.Error("something was changed")
	}
}

func TestEveryPageIsSafeForBrowsers(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	for _, path := range w.paths() {
		h := b.open(path).header
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") ||
			h.Get("Cache-Control") != "no-store" ||
			strings.Contains(csp,
				"script-src 'self';") == slices.Contains([]string{pages.PathAccount, pages.PathContact}, path) {
			t.Errorf("%s: %v", path, h)
		}
		if head := b.send(http.MethodHead, path, ""); head.status != 200 || head.text != "" {
			t.Errorf("HEAD %s: %d %s", path, head.status, head.text)
		}
	}
}
