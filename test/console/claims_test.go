package console

import (
	"reflect"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// An administrator gives Vault what it reads, is warned about people of others, and changes and removes claims.
func TestAnApplicationGetsItsClaims(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.newOrganization("Acme")
	app := s.in(org, "POST", "/v1/apps", map[string]any{"name": "Vault", "type": "APPLICATION_TYPE_WEB",
		"redirectUris": []string{"https://vault.test/callback"}})["appId"].(string)
	has := func(claims ...string) {
		t.Helper()
		shown, _ := s.in(org, "GET", "/v1/apps/"+app, nil)["app"].(map[string]any)["claimMappings"].([]any)
		var got []string
		for _, m := range shown {
			got = append(got, m.(map[string]any)["claim"].(string))
		}
		if !reflect.DeepEqual(got, claims) {
			t.Errorf("it has the claims %q, not %q", got, claims)
		}
	}
	w := s.signIn(t, b, s.admin)
	w.visit("/o/" + org + "/apps/" + app + "/claims")
	w.sees("The application has no claims of its own.")
	w.press("Vault")
	w.sees("Add the claims for Vault?")
	w.axe("the question about a preset")
	w.press("Save")
	w.sees("Names of the groups")
	has("groups")

	w.press("Add a claim")
	w.until("the value is chosen", `(() => { const f = document.querySelector('[name="mappings.source"]'); f.value = 'SOURCE_CONSTANT';
		f.dispatchEvent(new Event('change', {bubbles: true})); return f.value === 'SOURCE_CONSTANT'; })()`)
	w.fill("Text", "v")
	w.fill("Claim", "sub")
	w.axe("the form of a claim")
	w.press("Save")
	w.sees("must not be a claim of OpenID Connect")
	w.fill("Claim", "plan")
	w.press("Save")
	w.until("the dialog is gone", `document.querySelector('dialog[open]') === null`)
	has("groups", "plan")

	project := s.in(org, "POST", "/v1/projects", map[string]any{"name": "Shop"})["projectId"].(string)
	s.in(org, "PUT", "/v1/apps/"+app+"/role_settings", map[string]any{"projectId": project})
	w.visit("/o/" + org + "/apps/" + app + "/claims")
	w.sees("These claims are left out for them")
	w.axe("the claims with a warning")
	w.press("Remove: plan")
	w.sees("Remove the claim?")
	w.press("Remove")
	w.until("the dialog is gone", `document.querySelector('dialog[open]') === null`)
	has("groups")
	w.quiet()
}
