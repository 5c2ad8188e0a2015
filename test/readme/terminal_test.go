package readme

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// checkout copies what git knows or would add, and nothing that a build or a start has left behind.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	list.Dir = root
	names, err := list.Output()
	must(t, err)
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, but not yet committed
		}
		must(t, err)
		info, err := os.Stat(filepath.Join(root, name))
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), text, info.Mode().Perm()))
	}
	return dir
}

// blocks are the commands of a page, in their order.
func blocks(t *testing.T, dir, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, page))
	must(t, err)
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// desk is where somebody follows a page: one terminal for the server, one for everything else.
type desk struct {
	t        *testing.T
	dir      string
	env      []string
	say      *strings.Replacer // puts ports and databases of this test into the commands
	server   *program
	terminal *exec.Cmd
	keyboard io.Writer
	screen   *bufio.Reader
	pasted   int
}

func (d *desk) command(arguments ...string) *exec.Cmd {
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), d.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that go run and what it runs end together
	return cmd
}

// open gives the second terminal. Everything on its screen, errors too, can be read line by line.
func (d *desk) open() {
	d.t.Helper()
	d.terminal = d.command("bash")
	var err error
	d.keyboard, err = d.terminal.StdinPipe()
	must(d.t, err)
	screen, write, err := os.Pipe()
	must(d.t, err)
	d.terminal.Stdout, d.terminal.Stderr, d.screen = write, write, bufio.NewReader(screen)
	must(d.t, d.terminal.Start())
	must(d.t, write.Close())
	d.t.Cleanup(func() {
		// The shell ends what runs in the background, which has groups of its own, and is waited for: killed at once,
		// it would leave that behind.
		d.enter(`jobs -p | while read -r job; do kill -- -$job; done; exit`)
		hangs := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-d.terminal.Process.Pid, syscall.SIGKILL) })
		go func() { _, _ = io.Copy(io.Discard, d.screen) }()
		_ = d.terminal.Wait()
		hangs.Stop()
		_ = screen.Close()
	})
	d.enter("set -m -uo pipefail")
}

func (d *desk) enter(line string) { _, _ = io.WriteString(d.keyboard, line+"\n") }

const done = "=== done"

// servers are the examples that run until somebody stops them.
var servers = regexp.MustCompile(`(?m)go run \./examples/(web|spa)$`)

// paste runs a block and gives what it shows. What stays, as a server does, is met by visit with the first line in
// which it says that it is there; then it is stopped, unless the block itself sends it to the background.
func (d *desk) paste(block string, visit func(line string)) string {
	d.t.Helper()
	block = d.say.Replace(block)
	d.pasted++
	file := filepath.Join(d.t.TempDir(), fmt.Sprint(d.pasted, ".sh"))
	stays, background := servers.MatchString(block), strings.HasSuffix(strings.TrimSpace(block), "&")
	if stays {
		block = strings.TrimSpace(block) + " &\n"
	}
	must(d.t, os.WriteFile(file, []byte(block), 0o600))
	// In a terminal a failing command does not end the shell: here it has to show.
	d.enter("set -e; . " + file + " </dev/null; set +e")
	if !stays && !background {
		d.enter("echo; echo '" + done + "'")
	}
	return d.read(done, func(line string) {
		switch {
		case strings.HasPrefix(line, "Open ") && stays:
			visit(line)
			d.enter("kill -- -$!; wait $! || true; echo; echo '" + done + "'")
		case (strings.HasPrefix(line, "Listening ") || strings.HasPrefix(line, "Open ")) && background:
			d.enter("echo; echo '" + done + "'")
		case strings.HasPrefix(line, "Open "):
			visit(line)
		}
	})
}

// read gives what the terminal shows up to a line that begins with last.
func (d *desk) read(last string, each func(line string)) string {
	d.t.Helper()
	for shown := ""; ; {
		line, err := d.screen.ReadString('\n')
		shown += line
		if err != nil {
			d.t.Fatalf("the terminal has ended: %v\n%s", err, shown)
		}
		if strings.HasPrefix(line, last) {
			return shown
		}
		each(strings.TrimSpace(line))
	}
}

// program is a server in the first terminal.
type program struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	said bytes.Buffer
	over chan struct{}
}

// start runs the block in the first terminal, where the server before was stopped with Ctrl-C.
func (d *desk) start(block string) {
	d.t.Helper()
	d.stop()
	p := &program{cmd: d.command("bash", "-c", "set -e\n"+d.say.Replace(block)), over: make(chan struct{})}
	log, err := p.cmd.StderrPipe()
	must(d.t, err)
	must(d.t, p.cmd.Start())
	d.server = p
	ready := make(chan bool, 1)
	go func() {
		defer close(p.over)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			p.mu.Lock()
			p.said.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if strings.Contains(lines.Text(), "msg=ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	if !testkit.Receive(d.t, ready, "the server is ready, or ends") {
		d.t.Fatalf("the server did not get ready: %v\n%s\n%s", p.cmd.Wait(), p.said.String(), block)
	}
}

func (d *desk) stop() {
	if d.server == nil {
		return
	}
	_ = syscall.Kill(-d.server.cmd.Process.Pid, syscall.SIGINT)
	testkit.Receive(d.t, d.server.over, "the server ends")
	_ = d.server.cmd.Wait()
	d.server = nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
