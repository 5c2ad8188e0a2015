package webhook

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/test/testdb"
)

// alone is the worker of a webhook that no dispatcher tells anything.
func (w *nodes) alone(hook string) *worker {
	w.t.Helper()
	d := &Dispatcher{Webhooks: w.hooks, Log: slog.New(slog.NewTextHandler(&w.Log, nil)), usual: newSlots(perNode),
		lame: newSlots(perNodeLame)}
	u, err := w.hooks.use(w.t.Context(), hook, nil)
	must(w.t, err)
	return newWorker(d, hook, u)
}

func TestWhetherAWebhookIsInUseIsLookedUpBeforeEveryMessage(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
	worker := w.alone(hook)
	w.happen("org_a", 2, "app_1")
	events, err := w.hooks.Store.EventsOf(t.Context(), "app_1", 1, 2)
	must(t, err)
	_, err = worker.Send(t.Context(), &events[0])
	must(t, err)
	r.has("app_1.1")
	_, err = w.hooks.Deactivate(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
	must(t, err)
	if _, err := worker.Send(t.Context(), &events[1]); !errors.Is(err, errNotInUse) || r.came() != 1 {
		t.Errorf("%d messages came, the last with %v", r.came(), err)
	}
}

// A receiver that fails or is slow several times on end gets one message at a time, in a slot of those that do not
// answer.
func TestAReceiverThatDoesNotAnswerGetsOneMessageAtATime(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	worker := w.alone(w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} }))
	var usual, lame int // slots that are held while a message is on its way
	r.says(func(string, http.ResponseWriter) bool {
		usual, _ = worker.d.usual.Load()
		lame, _ = worker.d.lame.Load()
		return true
	})
	w.happen("org_a", 1, "app_1")
	events, err := w.hooks.Store.EventsOf(t.Context(), "app_1", 1, 1)
	must(t, err)
	for _, c := range []struct {
		name   string
		result notify.Result
		slots  int
	}{
		{"it failed once", notify.Result{Outcome: Outcome{Problem: "no"}}, perWebhook},
		{"nobody knows", notify.Result{Outcome: Outcome{Problem: "no"}, Err: errNotInUse}, perWebhook},
		{"it is slow", notify.Result{Outcome: Outcome{Took: slow}}, perWebhook},
		{"for the third time", notify.Result{Outcome: Outcome{Problem: "no"}}, 1},
		{"nobody knows again", notify.Result{Err: errNotInUse}, 1},
		{"it answers in time", notify.Result{Outcome: Outcome{Took: slow - time.Millisecond}}, perWebhook},
	} {
		worker.Settled(&c.result, nil, nil)
		_, err := worker.Send(t.Context(), &events[0])
		must(t, err)
		if n := worker.slots(); n != c.slots || (lame == 1) != (c.slots == 1) || usual+lame != 1 {
			t.Errorf("%s: %d at a time, with %d slots of the usual ones and %d of the others", c.name, n, usual, lame)
		}
	}
	if text := w.Log.String(); !strings.Contains(text, "one message at a time") ||
		!strings.Contains(text, "answers again") {
		t.Errorf("the log says %s", text)
	}
}

func TestWhatIsAboutToBeSentIsNoFailure(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	hook := w.add(newReceiver(t), "org_a")
	must(t, w.hooks.Store.Do(t.Context(), event.Command{Origin: system, Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: parkedRow(hook, "app_1"), Value: []byte(`{"sequence":2}`)})
		return nil
	}}))
	if found, _, err := w.hooks.Failures(t.Context(), w.owner("org_a"), hook, true, event.Cursor{},
		10); err != nil || found != nil {
		t.Errorf("%+v, %v", found, err)
	}
}
