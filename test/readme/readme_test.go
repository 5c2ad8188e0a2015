// Package readme_test holds the README to its word: its commands are run as they stand there.
package readme_test

import (
	"bufio"
	"bytes"
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
	if !started || len(blocks) < 6 {
		t.Fatalf("the README has changed: started=%v, %d blocks to paste", started, len(blocks))
	}

	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "tools"), filepath.Join(dir, "tools")); err != nil {
		t.Fatal(err)
	}
	url := start(t, root, dir)
	script := "set -euo pipefail\n" + strings.Join(blocks, "\necho; echo '"+marker+"'\n")
	script = strings.ReplaceAll(script, "http://localhost:8080", url)
	bash := exec.Command("bash", "-c", script)
	bash.Dir = dir
	var stderr bytes.Buffer
	bash.Stderr = &stderr
	out, err := bash.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	answers := strings.Split(string(out), marker)
	for i, block := range blocks {
		refused := strings.Contains(answers[i], `"code":`)
		mistake := strings.Contains(block, "lastNam\"")
		if refused != mistake {
			t.Errorf("this block answered %s\n%s", answers[i], block)
		}
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
