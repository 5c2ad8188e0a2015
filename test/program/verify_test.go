package program

import (
	"regexp"
	"strings"
	"testing"
)

var headLine = regexp.MustCompile(`(?m)^head (\d+) ([0-9a-f]{64})$`)

// verified checks the log of a site.
func (s *site) verified(t *testing.T) {
	t.Helper()
	if r := s.run(t, "verify"); r.code != 0 {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

func TestVerify(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.run(t, "verify").refused(t, "no such file or directory")
		p := s.start(t)
		c := newClient(t, p, s.admin(t).Token)
		c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("One", "a password"))
		clean := func(args ...string) []string {
			t.Helper()
			r := s.run(t, append([]string{"verify"}, args...)...)
			head := headLine.FindStringSubmatch(r.stdout)
			if r.code != 0 || head == nil || !strings.Contains(r.stdout, " events of ") ||
				!strings.Contains(r.stdout, " checkpoint") {
				t.Fatalf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
			}
			if !strings.Contains(r.stderr, "100 %") {
				t.Errorf("it does not show how far it has come: %s", r.stderr)
			}
			return head[1:]
		}
		earlier := clean() // beside the server
		c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("Two", "a password"))
		clean()
		p.kill(t)
		clean()
		s.start(t).stop(t)
		if r := s.run(t, "verify"); !strings.Contains(r.stdout, "\n0 events are not sealed yet\n") {
			t.Errorf("a server that was stopped left something unsealed: %s", r.stdout)
		}
		clean("--expect", earlier[0]+":"+earlier[1])

		dirty := func(want string, args ...string) {
			t.Helper()
			r := s.run(t, append([]string{"verify"}, args...)...)
			if r.code != 1 || !strings.Contains(r.stdout, want) ||
				!strings.HasSuffix(r.stderr, "signet: the log was changed\n") || headLine.MatchString(r.stdout) {
				t.Errorf("exit code %d, want %q:\n%s%s", r.code, want, r.stdout, r.stderr)
			}
		}
		dirty("position 3, event 3 of installation", "--expect", "3:"+earlier[1])
		dirty("expected to go on to position 99999", "--expect", "99999:"+earlier[1])
		for _, wrong := range []string{"", "3", "3:abc", "x:" + earlier[1]} {
			if r := s.run(t, "verify", "--expect", wrong); r.code != 2 ||
				!strings.Contains(r.stderr, "signet: --expect: it must be a position") || r.stdout != "" {
				t.Errorf("--expect %q: exit code %d:\n%s%s", wrong, r.code, r.stdout, r.stderr)
			}
		}
		s.tamper(t, "UPDATE events SET actor = 'somebody' WHERE position = 5")
		dirty("position 5, event ")
	})
}
