package program

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// The version is that of the newest section of the changelog, wherever the program says it.
func TestTheVersionIsTheNewestOfTheChangelog(t *testing.T) {
	t.Parallel()
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?m)^## Unreleased\n(?s:.*?)^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$`).FindStringSubmatch(string(changes))
	if section == nil {
		t.Fatal(`CHANGELOG.md does not begin with "Unreleased" and then a version with its date`)
	}
	version := section[1]
	if said := run(t, nil, "version").fine(t).stdout; !strings.HasPrefix(said, "signet "+version+" ") ||
		strings.Count(said, "\n") != 1 {
		t.Errorf("the newest version is %s, and the program says %q", version, said)
	}
	p := newSite(t, testdb.New(t, testdb.SQLite)).start(t, "--metrics-listen", "localhost:0")
	if log := p.stderr.String(); !strings.Contains(log, `"version":"`+version+`"`) {
		t.Errorf("the log does not say it: %s", log)
	}
	metrics, err := io.ReadAll(answer(t, http.DefaultClient, newRequest(t, "GET", "http://"+p.metrics+"/metrics")).Body)
	if err != nil || !strings.Contains(string(metrics), `signet_build_info{version="`+version+`"} 1`) {
		t.Errorf("the metrics do not say it: %v", err)
	}
}
