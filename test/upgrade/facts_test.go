package upgrade

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

type thing struct{}

// allowed is a fact that this version does not know yet, and the version before even less.
type allowed struct{}

func (allowed) EventType() event.Type { return "sign_in.allowed.v1" }
func (allowed) Apply(*thing)          {}
func (allowed) Since() int            { return event.FactVersion + 1 }

var things = event.Define(event.Schema[thing]{Name: "sign_in", Table: "sign_ins", Prefix: "x", Shape: 1,
	Facts: []event.Fact[thing]{allowed{}}})

// TestAFactWaitsForTheVersionBeforeToStop: what the version before would misread is refused for as long as it runs.
func TestAFactWaitsForTheVersionBeforeToStop(t *testing.T) {
	t.Parallel()
	s, _ := openFixture(t, testdb.New(t, testdb.Postgres))
	before := s.start(t, theVersionBefore(t))
	text, err := os.ReadFile(filepath.Join(s.dir, "master.key"))
	must(t, err)
	master, err := secret.ParseMasterKey(text)
	must(t, err)
	next, _, err := store.Open(t.Context(),
		store.Options{Database: s.URL, Kinds: []event.Definition{things}, Master: master,
			FactVersion: event.FactVersion + 1})
	must(t, err)
	defer next.Close()
	allow := event.Command{Write: []event.Ref{things.Ref("x_1")}, Decide: func(tx *event.Tx) error {
		_, err := things.Create(tx, "x_1", "org_1", allowed{})
		return err
	}}
	if e, ok := errors.AsType[*errs.Error](next.Do(t.Context(), allow)); !ok || e.Kind != errs.FailedPrecondition ||
		e.Reason != event.OlderNodes {
		t.Fatalf("beside the version before: %v", e)
	}
	before.stop(t)
	must(t, next.Do(t.Context(), allow))
	late := testkit.Command(thisVersion(t), append(s.args("start"), "--listen", "localhost:0")...)
	defer time.AfterFunc(patience, func() { _ = late.Process.Kill() }).Stop()
	if output, _ := late.CombinedOutput(); !strings.Contains(string(output), "upgrade this node") {
		t.Errorf("a version that does not know it says %s", output)
	}
}
