package program

import (
	"bufio"
	"strings"
	"testing"
)

func TestATerminalIsShownTheFirstAdministratorOnce(t *testing.T) {
	s := embedded(t)
	onTerminal := func() (shown string) {
		screen, line := newTerminal(t)
		cmd := program(nil, append(s.args("start"), "--listen", "localhost:0", "--log-format", "json")...)
		cmd.Stdout = line
		p := launch(t, cmd)
		p.awaitReady(t)
		p.stop(t)
		// The screen stays open for as long as anybody holds the line, so the test says when it is done.
		if _, err := line.WriteString("the end\n"); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(screen); lines.Scan() && lines.Text() != "the end"; {
			shown += lines.Text() + "\n"
		}
		for _, secret := range []string{s.admin(t).Password, s.admin(t).Token} {
			if strings.Contains(p.stderr.String(), secret) {
				t.Error("a secret of the first administrator is in the log")
			}
		}
		return shown
	}
	shown, admin := onTerminal(), s.admin(t)
	for _, want := range []string{"sign in at " + admin.URL + "/console/", admin.LoginName, admin.Password, admin.Token,
		s.path("first-admin.json")} {
		if strings.Count(shown, want) != 1 {
			t.Errorf("%q is not on the terminal once:\n%s", want, shown)
		}
	}
	if again := onTerminal(); again != "" {
		t.Errorf("the second start shows:\n%s", again)
	}
}
