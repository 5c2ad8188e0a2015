package console

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// An administrator lets a pipeline act as a service user, sees the rule, and takes it away.
func TestAServiceUserTrustsAnIssuer(t *testing.T) {
	browser.NeedAxe(t)
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	org := s.admin.org
	robot := s.in(org, "POST", "/v1/users/service",
		map[string]any{"userName": "robot", "name": "Robot"})["userId"].(string)
	user := "/o/" + org + "/users/" + robot
	w := s.signIn(t, b, s.admin)
	w.visit(user + "/sign-in")
	w.sees("No issuer is trusted.")
	w.press("Trust an issuer")
	w.fill("Issuer", "https://token.actions.githubusercontent.com")
	w.fill("Claims of the workload", "sub=repo:acme/shop:*")
	w.press("Add")
	w.sees("names can become somebody else's") // a name alone does not do for an issuer that many share
	if found := w.Axe(true); len(found) > 0 {
		t.Errorf("axe finds:\n%s", strings.Join(found, "\n"))
	}
	w.fill("Claims of the workload", "sub=repo:acme/shop:*\nrepository_id=74")
	w.Click(w.labelled("Each token counts once"))
	w.press("Add")
	w.sees("The issuer is trusted.")
	w.sees("repository_id=74")
	if found := w.Axe(true); len(found) > 0 {
		t.Errorf("axe finds:\n%s", strings.Join(found, "\n"))
	}
	rules := s.in(org, "GET", "/v1/users/"+robot+"/workload_rules", nil)["rules"].([]any)
	rule, _ := rules[0].(map[string]any)
	if claims, _ := rule["claims"].([]any); len(rules) != 1 || len(claims) != 2 || rule["oneTime"] != true {
		t.Errorf("the rules are %v", rules)
	}
	s.refusedWorkload(robot)
	w.visit(user + "/sign-in")
	w.sees("Refused tokens of issuers")
	w.sees("Request a new one, and check the clocks of both servers.")
	if found := w.Axe(true); len(found) > 0 {
		t.Errorf("axe finds:\n%s", strings.Join(found, "\n"))
	}
	w.visit(user)
	w.tells("Trusted issuers", "1")
	w.visit(user + "/sign-in")
	w.press("Remove")
	w.press("Remove the rule")
	w.sees("The rule was removed.")
	w.sees("No issuer is trusted.")
	for _, said := range w.Complaints() {
		if !strings.Contains(said, "400") { // the rule that was refused
			t.Errorf("the browser complains: %s", said)
		}
	}
}

// refusedWorkload has an assertion refused that nobody has signed.
func (s *installation) refusedWorkload(robot string) {
	s.t.Helper()
	part := base64.RawURLEncoding.EncodeToString
	resp, err := http.PostForm(s.url+"/oauth/token", url.Values{"client_id": {robot},
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion": {part([]byte(`{"alg":"ES256"}`)) + "." +
			part([]byte(`{"iss":"https://token.actions.githubusercontent.com","exp":1}`)) + "." + part(make([]byte, 64))}})
	must(s.t, err)
	must(s.t, resp.Body.Close())
	if resp.StatusCode != http.StatusBadRequest {
		s.t.Errorf("it was answered with %d", resp.StatusCode)
	}
}
