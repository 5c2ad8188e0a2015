package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

func TestMetersTellHowFarWorkersAre(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		w := newNodes(db)
		s := w.Open(t)
		seen := newSeen()
		r := w.runner(s, seen.follower())
		r.Meters = &Meters{Names: []string{"test", "other"}, Clock: w.Clock.Now, Position: func() int64 {
			end, err := s.Position(t.Context())
			must(t, err)
			return end
		}}
		must(t, r.Begin(t.Context()))
		registry := prometheus.NewRegistry()
		must(t, registry.Register(r.Meters))
		is := func(when, want string) {
			t.Helper()
			families, err := registry.Gather()
			must(t, err)
			var got []string
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if m.GetLabel()[0].GetValue() == "test" {
						got = append(got,
							fmt.Sprint(strings.TrimPrefix(f.GetName(), "signet_follower_"), " ",
								m.GetGauge().GetValue()))
					}
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: %q, want %q", when, strings.Join(got, ", "), want)
			}
		}
		worker := r.worker(r.Followers[0])
		worker.meter = worker.Meters.add(worker.Name)
		happen(t, s, "one")
		is("without a lease", "behind_events 0, behind_seconds 0, leases 0, parked 0")
		work(t, worker)
		is("everything is sent", "behind_events 0, behind_seconds 0, leases 1, parked 0")

		seen.fail["two"] = 1
		happen(t, s, "two")
		w.Clock.Advance(3 * time.Second)
		is("it has not looked", "behind_events 2, behind_seconds 3, leases 1, parked 0")
		work(t, worker)
		is("one has failed", "behind_events 0, behind_seconds 0, leases 1, parked 1")

		worker.stop()
		is("it has stopped", "behind_events 0, behind_seconds 0, leases 0, parked 0")
		worker.Meters.drop(worker.meter)
		if n := len(r.Meters.all); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// What cannot be sent is behind, however often the worker looks.
func TestAWorkerThatCannotSendIsBehind(t *testing.T) {
	w := &meter{}
	q := queueAt()
	w.acquired(100, now)
	q.add(nil, all)
	w.note(q, now+1)
	if w.caughtUp.Load() != now+1 || !w.held.Load() {
		t.Error("nothing is left, and that is not noted")
	}
	q.add([]event.Event{ev("a", 1, 101)}, all)
	w.note(q, now+2)
	if w.caughtUp.Load() != now+1 || w.position.Load() != 100 {
		t.Errorf("an event is not sent, and it has caught up at %d, position %d", w.caughtUp.Load()-now,
			w.position.Load())
	}
}
