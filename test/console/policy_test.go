package console

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// policyOf gives the policy of an organization and the sequence that it stands at.
func (s *installation) policyOf(org string) (own map[string]any, sequence string) {
	s.t.Helper()
	answer := s.rest("GET", "/v1/orgs/"+org+"/policy", nil)
	return answer["policy"].(map[string]any), fmt.Sprint(answer["details"].(map[string]any)["sequence"])
}

func (s *installation) setPolicy(org string, policy map[string]any) {
	s.t.Helper()
	s.rest("PUT", "/v1/orgs/"+org+"/policy", map[string]any{"policy": policy})
}

// hasPolicy fails the test if the values that are set are not these alone.
func (s *installation) hasPolicy(org string, want map[string]any) {
	s.t.Helper()
	own, _ := s.policyOf(org)
	for name, value := range own {
		if list, ok := value.([]any); value == nil || value == false || value == "" || value == 0.0 ||
			ok && len(list) == 0 || value == "REGISTRATION_MODE_UNSPECIFIED" {
			delete(own, name)
		}
	}
	if !reflect.DeepEqual(own, want) {
		s.t.Errorf("the policy is %v, not %v", own, want)
	}
}

// One section is changed, and nothing else of the policy.
func TestAPolicyIsChangedInSections(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	const change = `document.querySelector('[aria-label="Change: %s"]')`
	s.setPolicy(org, map[string]any{"passwordMinLength": 10, "sessionSeconds": 3600, "networkAttempts": 20,
		"termsUri": "https://acme.test/terms"})
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/policy")

	t.Run("it says what is in effect and where that comes from", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		for name, want := range map[string]string{"Minimum length of passwords": "10 set here",
			"Refuse common passwords":               "Yes default",
			"Free attempts from one network":        "5 default Set here, but without effect: 20",
			"Allowed ways of signing in":            "Every way default",
			"Longest wait from one network":         "15 minutes default",
			"How long a device is remembered":       "Not at all default",
			"Address of the terms":                  "https://acme.test/terms set here",
			"Identity providers to sign in through": "All that the organization may use default"} {
			w.until(name+" is "+want, fmt.Sprintf(`[...document.querySelectorAll('.part-row dt')].find((e) => e.innerText === %q).nextElementSibling.innerText.replace(/\s+/g, ' ').trim() === %q`, name, want))
		}
		w.axe("the sections")
	})

	t.Run("by keyboard alone", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.tabTo("the button of the section", "e === "+fmt.Sprintf(change, "Passwords"))
		w.key(kb.Enter)
		w.focus(`input[name="policy.passwordMinLength"]`)
		w.key(kb.Delete)
		w.key(kb.Backspace)
		w.key(kb.Backspace)
		w.key("12")
		w.sees("Nobody loses their way to sign in.")
		w.axe("the form of a section")
		w.tabTo("the button that saves", `e === document.querySelector('.part-row button[type="submit"]')`)
		w.key(kb.Enter)
		w.sees("The policy was saved.")
		w.focus(`[aria-label="Change: Passwords"]`)
		s.hasPolicy(org, map[string]any{"passwordMinLength": 12.0, "sessionSeconds": 3600.0, "networkAttempts": 20.0,
			"termsUri": "https://acme.test/terms"})
	})

	t.Run("one at a time", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.press("Change: Registration")
		w.press("Change: Guests")
		w.until("one form is open", `[...document.querySelectorAll('.part-row form')].map((e) => e.closest('section').querySelector('h2').innerText).join() === 'Guests'`)
		w.fill("How old a guest’s proof of identity may be", "1")
		w.press("Change: Sessions")
		w.press("Keep typing")
		w.until("what was typed is still there", `document.querySelector('.part-row form input[type="number"]').value === '1'`)
		w.press("Cancel")
		w.focus(`[aria-label="Change: Guests"]`)
	})

	t.Run("what others have changed meanwhile is not lost", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.press("Change: Sessions")
		w.fill("Lifetime of a session", "2")
		s.setPolicy(org, map[string]any{"passwordMinLength": 14, "sessionSeconds": 1800})
		w.press("Save")
		w.sees("Somebody else has changed this in the meantime")
		s.hasPolicy(org, map[string]any{"passwordMinLength": 14.0, "sessionSeconds": 1800.0})
		w.press("Save my version")
		w.sees("The policy was saved.")
		w.until("the form is closed", `document.querySelector('.part-row form') === null`)
		s.hasPolicy(org, map[string]any{"passwordMinLength": 14.0, "sessionSeconds": 7200.0})
	})

	t.Run("what would be refused is refused at its field", func(t *testing.T) {
		w := &window{Tab: w.Tab, t: t, s: s}
		w.press("Change: Registration")
		w.fill("Address of the terms", "http://acme.test")
		w.sees("This cannot be checked as it is.")
		w.press("Save")
		w.until("the address is refused at its field",
			`document.querySelector('[name="policy.termsUri"]').getAttribute('aria-invalid') === 'true'`)
		w.press("Cancel")
	})
	w.quiet()
}

// A preset shows what it changes and whom it concerns before anything is saved.
func TestAPresetOfThePolicyIsPreviewed(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	s.person(org, "ann")
	s.person(org, "bea")
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/policy")
	w.sees("Add an identity provider first")
	var providers []string
	for _, name := range []string{"Acme Login", "Other"} {
		providers = append(providers, s.in(org, "POST", "/v1/idps/jwt",
			map[string]any{"name": name, "jwtEndpoint": "https://idp.test/jwt", "issuer": "https://idp.test",
				"keysEndpoint": "https://idp.test/keys", "headerName": "x-token"})["idpId"].(string))
	}
	s.setPolicy(org, map[string]any{"passwordMinLength": 12})
	_, before := s.policyOf(org)
	w.visit("/o/" + org + "/policy")

	w.press("Preview: Only our provider")
	w.Choose(w.labelled("Identity provider"), providers[1])
	w.sees("Then: Other")
	const locked = "2 people have none of the ways that remain: they cannot sign in any more"
	w.sees(locked)
	w.sees("ann")
	w.sees("Nobody who types a login name is led to the identity provider")
	w.axe("the preview")
	if _, after := s.policyOf(org); after != before {
		t.Errorf("the preview has changed the organization: sequence %s, before %s", after, before)
	}
	w.press("Save")
	w.sees("The policy was saved, but 2 people have no way left to sign in")
	s.hasPolicy(org, map[string]any{"passwordMinLength": 12.0, "idpIds": []any{providers[1]},
		"signInMethods": []any{"SIGN_IN_METHOD_IDENTITY_PROVIDER"}, "defaultIdpId": providers[1]})
	w.until("it is in effect", `document.querySelectorAll('.badge.good').length === 1`)

	// Another way lets them in again, and nobody is warned.
	w.press("Change: Ways of signing in")
	w.Click(w.labelled("Password"))
	w.sees("Whom this concerns")
	w.until("nobody is locked out", `!document.querySelector('.preview').innerText.includes('cannot sign in any more') && document.querySelector('.preview').getAttribute('aria-busy') === 'false'`)
	w.press("Cancel")

	// By keyboard alone.
	s.setPolicy(org, map[string]any{"passwordMinLength": 12})
	w.visit("/o/" + org + "/policy")
	w.tabTo("the preset", `e === document.querySelector('[aria-label="Preview: Second factor for all"]')`)
	w.key(kb.Enter)
	w.sees("3 people have no second factor and have to add one before anything else")
	w.tabTo("the button that saves", `e === document.querySelector('[role="dialog"] button[type="submit"]')`)
	w.key(kb.Enter)
	w.sees("The policy was saved. 3 people have no second factor")
	s.hasPolicy(org, map[string]any{"passwordMinLength": 12.0, "secondFactorRequired": true})
	w.quiet()

	// The whole installation has one of them, and nobody is counted.
	w.visit("/installation/policy")
	w.press("Preview: Second factor for all")
	w.sees("How many people it concerns is not counted.")
	w.press("Cancel")
	w.quiet()
}

// Who may only read the policy reads it, and is offered nothing else.
func TestAPolicyThatMayOnlyBeRead(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	s.setPolicy(s.admin.org, map[string]any{"passwordMinLength": 12})
	w := s.signIn(t, b, s.person(s.admin.org, "audit", "ORG_AUDITOR"))
	made := w.requests(func() { w.visit("/o/" + s.admin.org + "/policy") })
	w.sees("Minimum length of passwords")
	w.until("what is set is marked", `document.querySelectorAll('.origin.own').length === 1`)
	if w.Has("main button") || w.Has("main .failure") || w.Has("main form") {
		t.Errorf("it offers something: %s", w.Text("main"))
	}
	for _, call := range made {
		if call == "PolicyService/PreviewOrganizationPolicy" || call == "IdentityProviderService/ListIdentityProviders" {
			t.Errorf("it calls %s", call)
		}
	}
	w.axe("the policy to read")
	w.Look(browser.Look{Width: 390, Height: 780, Phone: true})
	w.visit("/o/" + s.admin.org + "/policy")
	var width int
	if w.Evaluate(`document.documentElement.scrollWidth`, &width); width > 390 {
		t.Errorf("it is %d wide", width)
	}
	w.quiet()
}
