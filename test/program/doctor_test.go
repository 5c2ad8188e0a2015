package program

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
)

func TestTheDoctorForScripts(t *testing.T) {
	s := embedded(t)
	_, port, err := net.SplitHostPort(s.start(t).listen)
	if err != nil {
		t.Fatal(err)
	}
	examine := func(code int, more ...string) string {
		t.Helper()
		r := s.run(t, append([]string{"doctor", "--listen", "localhost:" + port}, more...)...)
		if r.code != code {
			t.Errorf("exit code %d, want %d: %s%s", r.code, code, r.stdout, r.stderr)
		}
		return r.stdout
	}
	if out := examine(1); !strings.Contains(out, "warning  mail") || !strings.Contains(out, "→ Set --smtp-url") ||
		!strings.Contains(out, "ok       server") {
		t.Error(out)
	}
	var report struct {
		Level    string
		Findings []struct{ Check, Level, What, Do string }
	}
	if err := json.Unmarshal([]byte(examine(1, "--json")), &report); err != nil || report.Level != "warning" ||
		len(report.Findings) < 10 {
		t.Errorf("%+v, %v", report, err)
	}
	if err := os.Chmod(s.path("master.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := examine(2); !strings.Contains(out, "error    keys") {
		t.Error(out)
	}
}
