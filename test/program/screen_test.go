package program

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/signet-idm/signet/test/testdb"
)

// hostile is what an operator's terminal would obey: it clears the screen, rings, sets the title, begins a sequence
// with a C1 character, turns the direction of text, and begins a new line that looks like ours.
const hostile = "\x1b[2Jx\x07\x1b]0;owned\x07\u009b31m\u202egnp\u2066\x7f\r\nall of this is fine\u2028"

// obeyed finds a character that a terminal would obey in what a command has printed.
func obeyed(text string) string {
	for i, r := range text {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' {
			return text[max(0, i-40):min(len(text), i+40)]
		}
	}
	return ""
}

// Security list: what somebody has put into rows, files and names is shown to the operator as text.
func TestNoCommandPrintsControlCharacters(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		s := newSite(t, db)
		p := s.start(t)
		bad := writeFile(t, filepath.Join(t.TempDir(), "users.ndjson"),
			`{"reference":"`+"\u202e\u009b"+`","userName":"`+"\u202ex"+`"}`+"\n{\x1b[2J\n", 0o600)
		quiet := func(command ...string) {
			t.Helper()
			r := s.run(t, command...)
			for _, out := range []string{r.stdout, r.stderr} {
				if found := obeyed(out); found != "" {
					t.Errorf("%v prints %q", command, found)
				}
				if strings.Contains(out, "\nall of this is fine") {
					t.Errorf("%v prints a line of somebody else: %q", command, out)
				}
			}
		}
		importing := run(t, nil, s.importing(t, p, bad)...)
		if found := obeyed(importing.stdout + importing.stderr); found != "" {
			t.Errorf("an import prints %q", found)
		}
		p.stop(t)
		quoted := "'" + hostile + "'"
		sound := readFile(t, s.path("signet.db"))
		for _, statement := range []string{
			"UPDATE events SET type = " + quoted + " WHERE position = 2",
			"UPDATE events SET object_id = " + quoted + " WHERE position = 2",
			"UPDATE events SET actor = " + quoted + " WHERE position = 2",
			"UPDATE events SET payload = " + quoted + " WHERE position = 2",
			"UPDATE users SET id = " + quoted + " WHERE id = (SELECT min(id) FROM users)",
			"UPDATE users SET doc = " + quoted,
			"UPDATE claims SET object_id = " + quoted,
			"UPDATE checkpoints SET digest = " + quoted,
			"UPDATE followers SET value = " + quoted,
			"UPDATE log_head SET position = " + quoted,
			"INSERT INTO schema_version (version, name) VALUES (999, " + quoted + ")",
			"INSERT INTO meta (name, value) VALUES ('moved_to', " + quoted + ")",
		} {
			s.tamper(t, statement)
			for _, command := range [][]string{{"verify"}, {"rebuild", "--check"}, {"doctor"}, {"doctor", "--json"},
				{"migrate", "--dry-run"}, {"keys", "list"},
				{"backup", filepath.Join(t.TempDir(), hostile)},
				{"restore", "--rehearse", filepath.Join(t.TempDir(), hostile)}} {
				quiet(command...)
			}
			for _, beside := range []string{"-wal", "-shm"} {
				_ = os.Remove(s.path("signet.db" + beside))
			}
			writeFile(t, s.path("signet.db"), string(sound), 0o600)
		}
		quiet("backup")
		quiet(hostile)
		quiet("verify", "--expect", hostile)
		quiet("start", "--external-url", hostile)
	})
}

// The program prints in one place.
func TestCommandsPrintThroughTheScreen(t *testing.T) {
	direct := regexp.MustCompile(`fmt\.Print|Fprint[a-z]*\(os\.Std|os\.Std(out|err)\.Write|NewEncoder\(os\.Std|Handler\(os\.Std`)
	files, err := filepath.Glob("../../cmd/signet/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		if found := direct.Find(readFile(t, name)); found != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s prints with %s: use stdout and stderr of screen.go", name, found)
		}
	}
}
