package oidc_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/test/testdb"
)

// missing skips a test that needs something that is not installed; in CI it fails.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// A library in another language reads the standards in its own way.
func TestALibraryOfTheBrowsersWorld(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed: run this through scripts/with-browser.sh")
	}
	if _, err := os.Stat("../clients/node_modules/openid-client"); err != nil {
		missing(t, "openid-client is not installed: run this through scripts/with-browser.sh")
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		key, public := newKey(t)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		must(t, err)
		signs, _ := w.application(app.Web, app.PrivateKeyJWT)
		keyID := w.key(signs, public)
		type client struct {
			ID     string `json:"id"`
			Secret string `json:"secret,omitempty"`
			Key    []byte `json:"key,omitempty"`
			KeyID  string `json:"kid,omitempty"`
		}
		var basic, post, device, robot client
		basic.ID, basic.Secret = w.application(app.Web, app.SecretBasic)
		post.ID, post.Secret = w.application(app.Web, app.SecretPost)
		device.ID, _ = w.application(app.Native, app.NoAuth)
		robot.ID, robot.Secret, _ = w.robot()
		given, err := json.Marshal(map[string]any{
			"issuer": w.url, "callback": callback, "bye": "https://shop.test/bye", "userId": w.userID,
			"name": w.names[w.userID], "password": password,
			"basic": basic, "post": post, "device": device, "robot": robot,
			"signs": client{ID: signs, Key: private, KeyID: keyID},
		})
		must(t, err)
		run := exec.CommandContext(t.Context(), node, "openid-client.mjs")
		run.Dir, run.Stdin = "../clients", bytes.NewReader(given)
		if said, err := run.CombinedOutput(); err != nil ||
			!strings.HasSuffix(string(said), "every way was gone to its end\n") {
			t.Errorf("%v\n%s", err, said)
		}
	})
}

// What an application demands is what this library does, and nothing else gets through.
func TestALibraryPushesRequestsAndProvesAKey(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed: run this through scripts/with-browser.sh")
	}
	if _, err := os.Stat("../clients/node_modules/oauth4webapi"); err != nil {
		missing(t, "oauth4webapi is not installed: run this through scripts/with-browser.sh")
	}
	w := open(t, testdb.New(t, testdb.SQLite))
	apps := map[string]map[string]string{}
	for name, demands := range map[string]func(*app.Settings){
		"nothing":            func(*app.Settings) {},
		"pushes":             func(s *app.Settings) { s.PushedRequired = true },
		"a key":              func(s *app.Settings) { s.DPoPRequired = true },
		"pushes, with a key": func(s *app.Settings) { s.PushedRequired, s.DPoPRequired = true, true },
		"a JWT for a key":    func(s *app.Settings) { s.DPoPRequired, s.TokenFormat = true, app.JWT },
	} {
		id, _ := w.application(app.SPA, app.NoAuth, demands)
		apps[name] = map[string]string{"id": id}
	}
	robot, secretText, _ := w.robot()
	given, err := json.Marshal(map[string]any{"issuer": w.url, "callback": callback, "userId": w.userID,
		"name": w.names[w.userID], "password": password, "apps": apps,
		"robot": map[string]string{"id": robot, "secret": secretText}})
	must(t, err)
	run := exec.CommandContext(t.Context(), node, "oauth4webapi.mjs")
	run.Dir, run.Stdin = "../clients", bytes.NewReader(given)
	if said, err := run.CombinedOutput(); err != nil ||
		!strings.HasSuffix(string(said), "every way was gone to its end\n") {
		t.Errorf("%v\n%s", err, said)
	}
}
