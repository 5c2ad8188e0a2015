package upgrade

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// dryRun gives what a dry run prints, and its exit code.
func (s *site) dryRun(t *testing.T, flags ...string) (output string, code int) {
	t.Helper()
	cmd := testkit.Command(thisVersion(t), append(s.args("migrate", "--dry-run"), flags...)...)
	text, err := cmd.Output()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

type plan struct {
	Schema  struct{ Have, Want int }
	Steps   []struct{ Migration, Does, Table string }
	Objects []struct {
		Table   string
		Count   int
		Seconds float64
	}
	Nodes                    int
	OlderNodes, StopsWriters bool
}

func (s *site) plan(t *testing.T) (p plan, code int) {
	t.Helper()
	text, code := s.dryRun(t, "--json")
	must(t, json.Unmarshal([]byte(text), &p))
	return p, code
}

// schemaBefore is the schema of the version before.
const schemaBefore = 11

// work is what this version has to do to data of the version before: statements of migrations, and objects with a new
// shape.
func (s *site) work(t *testing.T) (steps bool, objects []string) {
	t.Helper()
	p, _ := s.plan(t)
	for _, k := range model.Kinds {
		if s.has(t, k.Table()) &&
			s.count(t, "SELECT count(*) FROM "+k.Table()+" WHERE shape < "+strconv.Itoa(k.Shape())) > 0 {
			objects = append(objects, k.Table())
		}
	}
	return p.Schema.Want > schemaBefore, objects
}

// has tells whether there is a table: kinds that are new in this version have none.
func (s *site) has(t *testing.T, table string) bool {
	t.Helper()
	all := "sqlite_master WHERE type = 'table' AND name"
	if s.Engine == testdb.Postgres {
		all = "information_schema.tables WHERE table_schema = current_schema() AND table_name"
	}
	return s.count(t, "SELECT count(*) FROM "+all+" = '"+table+"'") > 0
}

func (s *site) count(t *testing.T, query string) (n int) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	must(t, db.QueryRow(query).Scan(&n))
	return n
}

// TestADryRunSaysWhatAnUpgradeWillDo, and does none of it.
func TestADryRunSaysWhatAnUpgradeWillDo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		s, n := openFixture(t, db)
		steps, objects := s.work(t)
		code := 0
		if steps || len(objects) > 0 {
			code = 3
		}
		for range 2 { // the first has changed nothing
			p, got := s.plan(t)
			if got != code || p.Schema.Have != schemaBefore || (len(p.Steps) > 0) != steps || p.Nodes != 0 ||
				p.OlderNodes || p.StopsWriters {
				t.Errorf("%d %+v", got, p)
			}
			var tables []string
			for _, o := range p.Objects {
				tables = append(tables, o.Table)
				if o.Seconds <= 0 || o.Count != s.count(t, "SELECT count(*) FROM "+o.Table) {
					t.Errorf("%+v", o)
				}
			}
			if slices.Sort(tables); !slices.Equal(tables, slices.Sorted(slices.Values(objects))) {
				t.Errorf("it says %v of %v", tables, objects)
			}
		}
		said, got := s.dryRun(t)
		for want, due := range map[string]bool{
			fmt.Sprint("The schema goes from version ", schemaBefore, " to "): steps,
			"Objects are brought into their new shape:":                       len(objects) > 0,
			"Nothing was changed.":                                            code == 3,
			"There is nothing to do":                                          code == 0,
		} {
			if strings.Contains(said, want) != due {
				t.Errorf("whether it says %q should be %v:\n%s", want, due, said)
			}
		}
		if got != code || strings.Contains(said, n.Ada.ID) {
			t.Errorf("%d\n%s", got, said)
		}
		s.run(t, thisVersion(t), "migrate")
		if said, code := s.dryRun(t); code != 0 || !strings.HasPrefix(said, "There is nothing to do") {
			t.Errorf("after it: %d %s", code, said)
		}
	})
}

// TestAMigrationBesideTheVersionBefore: it changes the schema, and leaves the objects to the nodes.
func TestAMigrationBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	s, n := openFixture(t, testdb.New(t, testdb.Postgres))
	steps, objects := s.work(t)
	before := s.start(t, theVersionBefore(t))
	if p, _ := s.plan(t); p.Nodes != 1 || (len(p.Steps) > 0) != steps {
		t.Errorf("%+v", p)
	}
	said := s.run(t, thisVersion(t), "migrate")
	if waits := strings.Contains(said,
		"Objects get their new shape in the background, when the last node of an older version has stopped."); waits != (len(objects) > 0) {
		t.Errorf("it says %s", said)
	}
	if p, _ := s.plan(t); len(p.Steps) > 0 || (len(p.Objects) > 0) != (len(objects) > 0) {
		t.Errorf("%+v", p)
	}
	// The version before goes on with all it has.
	before.want(t, n.Ada.caller(), "PUT", "/v1/users/me/profile",
		object{"firstName": "Ada", "lastName": "King", "displayName": "Ada K."})
	before.want(t, n.admin(), "PUT", "/v1/orgs/"+n.Org, object{"name": "Goes on"})
	before.stop(t)
	if said := s.run(t, thisVersion(t), "migrate"); !strings.Contains(said, "The data is at version") {
		t.Errorf("alone it says %s", said)
	}
	if said, code := s.dryRun(t); code != 0 {
		t.Errorf("when it has stopped: %d %s", code, said)
	}
	s.run(t, thisVersion(t), "rebuild", "--check")
	s.run(t, thisVersion(t), "verify", "--expect", n.Head)
}
