package failure_test

import (
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestFailuresAreWrittenOnceAMinute: by all nodes together, however many there are.
func TestFailuresAreWrittenOnceAMinute(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, failure.Kind)
		s := nodes.Open(t)
		recorders := []*failure.Recorder{failure.NewRecorder(s, nodes.Clock.Now),
			failure.NewRecorder(s, nodes.Clock.Now)}
		record := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					testkit.Must(t, recorders[i%2].Record(t.Context(), "idp_1", "org_a", failure.Nonce, "req"))
				})
			}
			all.Wait()
		}
		for minute := 1; minute <= 3; minute++ {
			record(50)
			o, err := failure.Kind.Read(t.Context(), s, failure.IDFor("idp_1"))
			testkit.Must(t, err)
			if int(o.Sequence) != minute {
				t.Errorf("after %d minutes there are %d events", minute, o.Sequence)
			}
			nodes.Clock.Advance(time.Minute)
		}
	})
}
