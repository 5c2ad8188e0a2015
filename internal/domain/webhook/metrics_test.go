package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestMetricsTellWhatIsSentAndWhatWaits(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	r.says(func(id string, out http.ResponseWriter) bool {
		if strings.HasPrefix(id, "app_2") {
			out.WriteHeader(http.StatusTeapot)
			return false
		}
		return true
	})
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	must(t, err)
	read := func() map[string]float64 {
		families, err := registry.Gather()
		must(t, err)
		all := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				all[fmt.Sprintf("%s %s", f.GetName(),
					m.GetLabel()[0].GetValue())] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		return all
	}
	tell := func(delivered, failed, retrying, forGood float64) {
		t.Helper()
		want := map[string]float64{
			"signet_webhook_messages_total succeeded": delivered,
			"signet_webhook_messages_total failed":    failed,
			"signet_webhook_objects_waiting retrying": retrying,
			"signet_webhook_objects_waiting failed":   forGood,
		}
		testkit.Await(t, fmt.Sprintf("the metrics are %v", want), func() bool { return maps.Equal(read(), want) })
		if got := metrics.Waiting(); got != (Waiting{Webhooks: int64(min(retrying+forGood, 1)),
			Retrying: int64(retrying), Failed: int64(forGood)}) {
			t.Errorf("waiting: %+v", got)
		}
	}
	tell(0, 0, 0, 0)
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
	stop := w.dispatch(w.hooks, func(d *Dispatcher) { d.Metrics = metrics })
	w.happen("org_a", 2, "app_1", "app_2")
	tell(2, 1, 1, 0)
	testkit.Await(t, "all tries are over", func() bool {
		w.Clock.Advance(time.Hour)
		return read()["signet_webhook_objects_waiting failed"] > 0
	})
	tell(2, float64(1+len(pauses)), 0, 1)

	// What waits is counted by the node that serves the webhook.
	stop()
	tell(2, float64(1+len(pauses)), 0, 0)
	w.dispatch(w.hooks, func(d *Dispatcher) { d.Metrics = metrics })
	tell(2, float64(1+len(pauses)), 0, 1)
	r.says(nil)
	_, _, err = w.hooks.Replay(t.Context(), w.owner("org_a"), hook, event.IfMatch{}, "")
	must(t, err)
	tell(4, float64(1+len(pauses)), 0, 0)
}
