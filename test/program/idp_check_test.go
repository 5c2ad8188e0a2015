package program

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckingAnIdentityProvider: the server is its own provider, once as it should be and once with a slash too many.
func TestCheckingAnIdentityProvider(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "--development")
	c := newClient(t, p, s.admin(t).Token)
	add := func(issuer string) string {
		app := c.want(t, 200, "POST", "/v1/apps",
			object{"name": "Client", "type": "APPLICATION_TYPE_WEB",
				"redirectUris": []string{"https://id.example.com/callback"}})
		added := c.want(t, 200, "POST", "/v1/idps/oidc",
			object{"name": "Provider", "issuer": issuer, "clientId": at[string](t, app, "appId"),
				"clientSecret": at[string](t, app, "clientSecret")})
		return at[string](t, added, "idpId")
	}
	url := s.admin(t).URL // what the server calls itself
	works, slash := add(url), add(url+"/")
	token := writeFile(t, filepath.Join(t.TempDir(), "token"), s.admin(t).Token+"\n", 0o600)
	remote := []string{"--server", p.url, "--token-file", token}

	for _, r := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"one that works, by first-admin.json", []string{works, "--data-dir", s.dir}, 0, "ok: ", ""},
		{"one that works, by server and token", append([]string{works}, remote...), 0, "ok: ", ""},
		{"a slash at the end", append([]string{slash}, remote...), 1,
			"problem issuer: the provider calls itself by another issuer than the one that is configured\n  They differ only in the slash", "solve the problems above"},
		{"one that does not exist", append([]string{"idp_nobody"}, remote...), 1, "", "IDENTITY_PROVIDER_NOT_FOUND"},
		{"another organization", append([]string{works, "--org", "org_nobody"}, remote...), 1, "",
			"ORGANIZATION_NOT_FOUND"},
		{"a server without a token", []string{works, "--server", p.url}, 1, "",
			"--server and --token-file belong together"},
	} {
		got := run(t, nil, append([]string{"idp", "check"}, r.args...)...)
		if got.code != r.code || !strings.Contains(got.stdout, r.stdout) || !strings.Contains(got.stderr, r.stderr) ||
			r.stderr == "" && got.stderr != "" {
			t.Errorf("%s: %+v", r.name, got)
		}
	}

	var answer object
	got := run(t, nil, append([]string{"idp", "check", slash, "--json"}, remote...)...)
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != 1 || answer["ok"] != false ||
		len(answer["problems"].([]any)) == 0 {
		t.Errorf("as JSON: %+v, %v", got, err)
	}

	// Only who asks for it answers for what somebody else has set up.
	sequence := func() string {
		return at[string](t, c.want(t, 200, "GET", "/v1/idps/"+works, nil), "idp", "details", "sequence")
	}
	before := sequence()
	run(t, nil, append([]string{"idp", "check", works}, remote...)...).fine(t)
	if now := sequence(); now != before {
		t.Errorf("the check changed the provider: %s, %s", before, now)
	}
	run(t, nil, append([]string{"idp", "check", works, "--adopt"}, remote...)...).fine(t)
	if now := sequence(); now == before {
		t.Error("nobody has adopted the provider")
	}
}
