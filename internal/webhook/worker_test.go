package webhook

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/testdb"
)

// alone is the worker of a webhook that no dispatcher tells anything.
func (w *world) alone(hook string) *worker {
	d := &Dispatcher{Webhooks: w.hooks, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Lease: defaultLease, FirstPause: defaultPause,
		usual: places(perNode), lame: places(perNodeLame)}
	d.tail.Begin(1 << 40) // nothing is in memory, so everything is read
	return newWorker(d, hook)
}

func TestWhetherAWebhookIsInUseIsLookedUpBeforeEveryMessage(t *testing.T) {
	w := newWorld(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
	worker := w.alone(hook)
	w.happen("org_a", 1, "app_1")
	must(t, worker.work(t.Context()))
	worker.settle(t.Context(), <-worker.results)
	r.has("app_1.1")
	_, err := w.hooks.Deactivate(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
	must(t, err)
	w.happen("org_a", 1, "app_2")
	must(t, worker.work(t.Context()))
	if result := <-worker.results; !errors.Is(result.err, errNotInUse) || r.came() != 1 {
		t.Errorf("%d messages came, the last with %v", r.came(), result.err)
	}
}

// The store may have answered so late that the lease is over by then.
func TestNothingIsSentWhenTheLeaseIsOver(t *testing.T) {
	w := newWorld(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	worker := w.alone(w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} }))
	must(t, worker.work(t.Context()))
	w.happen("org_a", 1, "app_1")
	for late, sent := range map[time.Duration]int{defaultLease: 0, defaultLease - time.Millisecond: 1} {
		t.Run(late.String(), func(t *testing.T) {
			worker.state.Until = worker.now() + (defaultLease - late).Microseconds()
			must(t, worker.read(t.Context()))
			if worker.start(); worker.onWay != sent {
				t.Errorf("%d messages are on their way", worker.onWay)
			}
			for ; worker.onWay > 0; worker.onWay-- {
				<-worker.results
			}
			worker.ready = []string{"app_1"}
		})
	}
}
