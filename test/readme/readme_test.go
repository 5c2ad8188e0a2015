// Package readme_test holds the README to its word: its commands are run as they stand there.
package readme_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const marker = "=== next block"

func TestTheCommandsOfTheReadmeWorkAsPasted(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	started := false
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		switch {
		case strings.Contains(m[1], "go run ./cmd/signet start"):
			started = true
		case strings.Contains(m[1], "make test"): // this is it
		default:
			blocks = append(blocks, m[1])
		}
	}
	if !started || len(blocks) < 8 {
		t.Fatalf("the README has changed: started=%v, %d blocks to paste", started, len(blocks))
	}

	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "tools"), filepath.Join(dir, "tools")); err != nil {
		t.Fatal(err)
	}
	url := start(t, root, dir)
	script := "set -euo pipefail\n"
	for i, block := range blocks {
		if i > 0 {
			script += "\necho; echo '" + marker + "'\n"
		}
		if script += block; strings.Contains(block, `echo "Open `) {
			script += "\nread -r\n" // a person signs in before the next block
		}
	}
	script = strings.ReplaceAll(script, "http://localhost:8080", url)
	out := run(t, dir, script)
	answers := strings.Split(out, marker)
	if !strings.Contains(out, `"given_name":"Anna"`) {
		t.Errorf("nobody signed in to the application: %s", out)
	}
	for i, block := range blocks {
		refused := strings.Contains(answers[i], `"code":`) || strings.Contains(answers[i], `"error":`)
		mistake := strings.Contains(block, "lastNam\"")
		if refused != mistake {
			t.Errorf("this block answered %s\n%s", answers[i], block)
		}
	}
}

var toOpen = regexp.MustCompile(`^Open (\S+) and sign in as (\S+) with: (.+)$`)

// run pastes the commands into a shell, and a line after whoever has to has signed in.
func run(t *testing.T, dir, script string) string {
	bash := exec.Command("bash", "-c", script)
	bash.Dir = dir
	var stderr, all bytes.Buffer
	bash.Stderr = &stderr
	keyboard, err := bash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, err := bash.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(screen)
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		all.WriteString(line)
		if m := toOpen.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			signIn(t, m[1], m[2], m[3])
			if _, err := io.WriteString(keyboard, "\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := bash.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, all.String(), stderr.String())
	}
	return all.String()
}

// signIn opens an address, signs in on the pages, and allows what the last of them asks. Cookies are kept as browsers keep them on this
// machine: the secure ones for plain http, too.
func signIn(t *testing.T, address, name, password string) {
	cookies := map[string]string{}
	filled := regexp.MustCompile(`<input [^>]*name="(\w+)"[^>]* value="([^"]*)"`)
	visit := func(method, to string, form url.Values) (at, body string) {
		for range 10 {
			r, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			for name, value := range cookies {
				r.AddCookie(&http.Cookie{Name: name, Value: value})
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range resp.Cookies() {
				cookies[c.Name] = c.Value
			}
			next, err := resp.Location()
			if err != nil {
				return to, string(text)
			}
			method, to, form = http.MethodGet, next.String(), nil
		}
		t.Fatal("sent round in circles")
		return "", ""
	}
	at, _ := visit(http.MethodGet, address, nil)
	at, body := visit(http.MethodPost, at, url.Values{"loginName": {name}, "password": {password}})
	for _, do := range []string{"continue", "allow"} { // the code, as it was filled in, and then what the application wants
		form := url.Values{"do": {do}}
		for _, m := range filled.FindAllStringSubmatch(body, -1) {
			form.Set(m[1], m[2])
		}
		at, body = visit(http.MethodPost, at, form)
	}
	if !strings.Contains(body, "Your device is connected") {
		t.Fatalf("signing in came to %s", body)
	}
}

// start does what the README's first command does, on a free port, and gives the URL.
func start(t *testing.T, root, dir string) string {
	binary := filepath.Join(t.TempDir(), "signet")
	build := exec.Command("go", "build", "-o", binary, "./cmd/signet")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	signet := exec.Command(binary, "start", "--listen", "localhost:0")
	signet.Dir = dir
	log, err := signet.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := signet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = signet.Process.Kill()
		_ = signet.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := regexp.MustCompile(`msg=ready .*listen=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() { // keep the pipe empty
				}
			}()
			return "http://" + m[1]
		}
	}
	t.Fatal("the server did not get ready")
	return ""
}
