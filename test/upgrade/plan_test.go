package upgrade

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// dryRun gives what a dry run prints, and its exit code.
func (s *site) dryRun(t *testing.T, flags ...string) (output string, code int) {
	t.Helper()
	cmd := program(thisVersion(t), append(s.args("migrate", "--dry-run"), flags...)...)
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

// TestADryRunSaysWhatAnUpgradeWillDo, and does none of it.
func TestADryRunSaysWhatAnUpgradeWillDo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		s, n := openFixture(t, db)
		for range 2 { // the first has changed nothing
			p, code := s.plan(t)
			if code != 3 || p.Schema.Have != 6 || p.Schema.Want <= 6 || len(p.Steps) == 0 || p.Nodes != 0 || p.OlderNodes || p.StopsWriters {
				t.Errorf("%d %+v", code, p)
			}
			counts := map[string]int{}
			for _, o := range p.Objects {
				counts[o.Table] = o.Count
				if o.Seconds <= 0 {
					t.Errorf("%+v", o)
				}
			}
			if counts["users"] < 5 || counts["orgs"] < 2 {
				t.Errorf("%v", counts)
			}
		}
		said, code := s.dryRun(t)
		for _, want := range []string{"The schema goes from version 6 to ", "adds the column email_order to users", "builds the index users_email_order on users: ", "Objects are brought into their new shape:", "Nothing was changed."} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		}
		if code != 3 || strings.Contains(said, n.Ada.ID) {
			t.Errorf("%d\n%s", code, said)
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
	before := s.start(t, theVersionBefore(t))
	if p, code := s.plan(t); code != 3 || p.Nodes != 1 || !p.OlderNodes || len(p.Steps) == 0 {
		t.Errorf("%d %+v", code, p)
	}
	if said := s.run(t, thisVersion(t), "migrate"); !strings.Contains(said, "Objects get their new shape in the background, when the last node of an older version has stopped.") {
		t.Errorf("it says %s", said)
	}
	p, code := s.plan(t)
	if code != 3 || len(p.Steps) > 0 || len(p.Objects) == 0 || !p.OlderNodes {
		t.Errorf("%d %+v", code, p)
	}
	// The version before goes on with all it has.
	before.want(t, n.Ada.caller(), "PUT", "/v1/users/me/profile", object{"firstName": "Ada", "lastName": "King", "displayName": "Ada K."})
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
