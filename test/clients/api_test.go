//go:build clients

package clients_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/signet-idm/signet/gen/openapi"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testkit"
)

// run runs a program of api and gives what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = "api"
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

// printed compares the JSON in the last line that a program has printed.
func printed(t *testing.T, said string, want map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	var got map[string]any
	testkit.Must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &got))
	compare(t, got, want)
}

func compare(t *testing.T, got, want map[string]any) {
	t.Helper()
	raw, err := json.Marshal(want)
	testkit.Must(t, err)
	want = nil
	testkit.Must(t, json.Unmarshal(raw, &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// grpcWeb is what grpc-web.js finds in a mode.
func grpcWeb(format string) map[string]any {
	want := map[string]any{"read": "STATE_ACTIVE", "invalid": "3 true", "unauthenticated": "16 true"}
	if format == "text" {
		want["stream"] = []string{"installation.added.v1", "installation.owner_added.v1", "installation.owner_added.v1"}
	}
	return want
}

func TestGRPCWebInNode(t *testing.T) {
	s := servertest.Start(t, server.Config{}, t.Output())
	for _, format := range []string{"binary", "text"} {
		t.Run(format, func(t *testing.T) {
			printed(t, run(t, "node", "node.mjs", s.URL(), s.FirstAdmin.Token, format), grpcWeb(format))
		})
	}
}

func TestGRPCWebInABrowser(t *testing.T) {
	script := filepath.Join(t.TempDir(), "page.js")
	run(t, "node", "bundle.mjs", script)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page.js" {
			http.ServeFile(w, r, script)
			return
		}
		fmt.Fprint(w, `<!doctype html><script src="/page.js"></script>`)
	}))
	t.Cleanup(page.Close)
	s := servertest.Start(t, server.Config{CORSOrigins: []string{page.URL}}, t.Output())
	tab := browser.Start(t).Tab(t)
	tab.Open(page.URL)
	for _, format := range []string{"binary", "text"} {
		t.Run(format, func(t *testing.T) {
			options, err := json.Marshal(map[string]string{"base": s.URL(), "token": s.FirstAdmin.Token,
				"format": format})
			testkit.Must(t, err)
			var got map[string]any
			tab.Evaluate(fmt.Sprintf("tried(%s)", options), &got)
			compare(t, got, grpcWeb(format))
		})
	}
}

func TestTheOpenAPIDocument(t *testing.T) {
	document := filepath.Join(t.TempDir(), "openapi.json")
	testkit.Must(t, os.WriteFile(document, openapi.Document, 0o600))
	t.Run("Spectral", func(t *testing.T) {
		run(t, "npx", "spectral", "lint", document, "--ruleset", ".spectral.yaml", "--fail-severity", "error")
	})
	t.Run("Redocly", func(t *testing.T) { run(t, "npx", "redocly", "lint", document) })
	t.Run("TypeScript", func(t *testing.T) {
		s := servertest.Start(t, server.Config{}, t.Output())
		out, err := filepath.Abs("api/.typed")
		testkit.Must(t, err)
		testkit.Must(t, os.MkdirAll(out, 0o700))
		t.Cleanup(func() { _ = os.RemoveAll(out) })
		for _, name := range []string{"typed.ts", "tsconfig.json"} {
			content, err := os.ReadFile(filepath.Join("api", name))
			testkit.Must(t, err)
			testkit.Must(t, os.WriteFile(filepath.Join(out, name), content, 0o600))
		}
		run(t, "npx", "openapi-typescript", document, "-o", filepath.Join(out, "openapi.d.ts"))
		run(t, "npx", "tsc", "--project", out)
		printed(t, run(t, "node", filepath.Join(out, "typed.js"), s.URL(), s.FirstAdmin.Token),
			map[string]any{"events": 2, "wrong": 200, "status": 400, "code": 3})
	})
}

// Debian's protoc and grpcio are older than most.
func TestPython(t *testing.T) {
	out := t.TempDir()
	proto, err := filepath.Abs("../../proto")
	testkit.Must(t, err)
	files, err := filepath.Glob(filepath.Join(proto, "signet/v1/*.proto"))
	testkit.Must(t, err)
	third := filepath.Join(proto, "third_party")
	args := []string{"--proto_path", third, "--proto_path", proto, "--python_out", out,
		filepath.Join(third, "google/api/annotations.proto"), filepath.Join(third, "google/api/http.proto"),
		filepath.Join(third, "buf/validate/validate.proto")}
	run(t, "protoc", append(args, files...)...)
	s := servertest.Start(t, server.Config{}, t.Output())
	t.Setenv("PYTHONPATH", out)
	printed(t, run(t, "/usr/bin/python3", "grpcio.py", strings.TrimPrefix(s.URL(), "http://"), s.FirstAdmin.Token),
		map[string]any{"read": "usr_", "refused": []any{"INVALID_ARGUMENT", true, true}, "stream": true})
}

// Service users with key files: Debian's Authlib and oauthlib.
func TestPythonServiceUsers(t *testing.T) {
	s := servertest.Start(t, server.Config{}, t.Output())
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	testkit.Must(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	testkit.Must(t, os.WriteFile(file,
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	robot, _ := call(t, s, "/v1/users/service", map[string]any{"userName": "robot", "name": "Robot"})["userId"].(string)
	added, _ := call(t, s, "/v1/users/"+robot+"/keys",
		map[string]any{"publicKey": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY",
			Bytes: public}))})["keyId"].(string)
	if said := run(t, "/usr/bin/python3", "service.py", s.URL(), robot, added,
		file); strings.Count(said, "works") != 4 {
		t.Error(said)
	}
}

// call adds something as the first administrator.
func call(t *testing.T, s *server.Server, path string, body map[string]any) (answer map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	testkit.Must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, bytes.NewReader(text))
	testkit.Must(t, err)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + s.FirstAdmin.Token}}
	resp, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %v", path, resp.Status, answer, err)
	}
	return answer
}
