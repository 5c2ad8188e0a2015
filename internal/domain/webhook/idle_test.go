package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// progress is the row of a webhook.
func (w *nodes) progress(hook string) (p notify.Progress) {
	w.t.Helper()
	row, err := w.hooks.Store.Row(w.t.Context(), progressRow(hook))
	must(w.t, err)
	if row != nil {
		must(w.t, json.Unmarshal(row.Value, &p))
	}
	return p
}

// areIdle lets the time go by until webhooks have nothing to do and nobody works for them.
func (w *nodes) areIdle(hooks ...string) {
	w.t.Helper()
	testkit.Await(w.t, "they are idle", func() bool {
		w.Clock.Advance(time.Second)
		for _, hook := range hooks {
			if !w.progress(hook).Idle {
				return false
			}
		}
		return true
	})
}

// isLooked lets the time go by until it is noted that the log was looked at up to its end.
func (w *nodes) isLooked() {
	w.t.Helper()
	end, err := w.hooks.Store.Position(w.t.Context())
	must(w.t, err)
	d := &Dispatcher{Webhooks: w.hooks}
	testkit.Await(w.t, "it is noted", func() bool {
		w.Clock.Advance(10 * time.Second)
		looked, err := d.readLooked(w.t.Context())
		must(w.t, err)
		return looked >= end
	})
}

func apps(n *New) { n.Types = []string{"app.*"} }

// counting counts what a node asks of its database.
type counting struct {
	event.Log
	events, rows, commands atomic.Int64
}

func (c *counting) Events(ctx context.Context, after int64, limit int) ([]event.Event, error) {
	c.events.Add(1)
	return c.Log.Events(ctx, after, limit)
}

func (c *counting) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	c.rows.Add(1)
	return c.Log.Row(ctx, key)
}

func (c *counting) Do(ctx context.Context, command event.Command) error {
	c.commands.Add(1)
	return c.Log.Do(ctx, command)
}

// A webhook without anything to send has no goroutine, no lease and no timer, and asks nothing of the database.
func TestIdleWebhooksCostNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		var hooks []string
		for _, org := range []string{"org_a", "org_b"} {
			for i := range 50 {
				hooks = append(hooks, w.add(r, org, apps, func(n *New) { n.Name = fmt.Sprint("hook ", i) }))
			}
		}
		store := &counting{Log: w.hooks.Store}
		on := *w.hooks
		on.Store = store
		before := runtime.NumGoroutine()
		w.dispatch(&on)
		w.areIdle(hooks...)
		w.isLooked()
		testkit.Await(t, "their goroutines have ended",
			func() bool { return runtime.NumGoroutine() < before+len(hooks)/4 })
		events, rows, commands := store.events.Load(), store.rows.Load(), store.commands.Load()
		const polls = 50
		testkit.Await(t, "the log was read several times", func() bool { return store.events.Load() >= events+polls })
		if rows, commands := store.rows.Load()-rows, store.commands.Load()-commands; rows > 10 || commands > 1 {
			t.Errorf("%d rows were read, and %d commands ran, for %d idle webhooks", rows, commands, len(hooks))
		}
		w.happen("org_a", 1, "app_1")
		testkit.Await(t, "all of one organization have got it", func() bool { return r.came() == 50 })
		for _, hook := range hooks[50:] {
			if !w.progress(hook).Idle {
				t.Fatalf("one of another organization was woken")
			}
		}
		w.areIdle(hooks...)
		if n := r.came(); n != 50 {
			t.Errorf("%d messages came", n)
		}
	})
}

// What happens while no node serves, or after a node has died, finds its way to a webhook that was idle, and nothing
// before it does again.
func TestAnIdleWebhookIsWokenByWhatItWants(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r, wide := newReceiver(t), newReceiver(t)
		hook := w.add(r, "org_a", apps)
		all := w.add(wide, "org_d", apps, func(n *New) { n.AllOrganizations = true })
		stop := w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		r.has("app_1.1")
		wide.has("app_1.1")
		w.areIdle(hook, all)
		w.isLooked()
		w.happen("org_b", 1, "app_b")
		wide.has("app_1.1", "app_b.1")
		if !w.progress(hook).Idle {
			t.Error("an event of another organization woke it")
		}
		w.areIdle(hook, all)
		stop()

		w.happen("org_a", 2, "app_1")
		stop = w.dispatch(w.hooks)
		r.has("app_1.1", "app_1.2", "app_1.3")
		wide.has("app_1.1", "app_b.1", "app_1.2", "app_1.3")
		w.areIdle(hook, all)

		if db.Engine == testdb.SQLite {
			return // it has one node
		}
		// Two nodes: one of them sends, and both let it rest.
		w.dispatch(w.node())
		w.happen("org_a", 1, "app_2")
		r.has("app_1.1", "app_1.2", "app_1.3", "app_2.1")
		w.areIdle(hook, all)
		stop()
		w.happen("org_a", 1, "app_3")
		// The second node may have been woken by the event before, too, and wait for the lease of the first one: it
		// asks again after a while.
		testkit.Await(t, "the second node has sent it", func() bool {
			w.Clock.Advance(time.Second)
			return len(r.messages()) >= 5
		})
		r.has("app_1.1", "app_1.2", "app_1.3", "app_2.1", "app_3.1")
		if n := r.came(); n != 5 {
			t.Errorf("%d messages came", n)
		}
	})
}

// An idle webhook that wants other events from now on does not get older ones.
func TestAnIdleWebhookThatIsChangedGetsNothingOld(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"user.*"} })
		w.dispatch(w.hooks)
		w.areIdle(hook)
		w.happen("org_a", 1, "app_old")
		w.isLooked()
		for _, off := range []bool{false, true} {
			if off {
				_, err := w.hooks.Deactivate(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
				must(t, err)
				w.isLooked()
				w.happen("org_a", 1, "app_meanwhile")
				w.isLooked()
				_, err = w.hooks.Reactivate(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
				must(t, err)
				r.has("app_new.1", "app_meanwhile.1") // as one that was not idle would
				continue
			}
			_, err := w.hooks.Modify(t.Context(), w.owner("org_a"), hook, event.IfMatch{},
				Modification{Types: &[]string{"app.*"}})
			must(t, err)
			w.happen("org_a", 1, "app_new")
			r.has("app_new.1")
			w.areIdle(hook)
		}
	})
}

// putProgress writes the row of a webhook, or where the log was looked at; nil drops it.
func (w *nodes) putProgress(row event.RowKey, p *notify.Progress) {
	w.t.Helper()
	must(w.t, w.hooks.Store.Do(w.t.Context(), event.Command{
		Origin: system,
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			if p == nil {
				tx.DropRow(row)
				return nil
			}
			return p.Put(tx, row)
		},
	}))
}

// A start reads one row for each idle webhook and starts no worker for it, also if the webhooks were added since the
// log was last looked at for all of them.
func TestAStartLetsIdleWebhooksRest(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		var hooks []string
		for _, org := range []string{"org_a", "org_b"} {
			for i := range 50 {
				hooks = append(hooks, w.add(r, org, apps, func(n *New) { n.Name = fmt.Sprint("hook ", i) }))
			}
		}
		stop := w.dispatch(w.hooks)
		w.areIdle(hooks...)
		stop()
		name := "another name"
		_, err := w.hooks.Modify(t.Context(), w.owner("org_a"), hooks[0], event.IfMatch{}, Modification{Name: &name})
		must(t, err)
		end, err := w.hooks.Store.Position(t.Context())
		must(t, err)

		begin := func(looked *notify.Progress) (*Dispatcher, *counting) {
			w.putProgress(lookedRow, looked)
			store := &counting{Log: w.hooks.Store}
			on := *w.hooks
			on.Store = store
			d := &Dispatcher{Webhooks: &on, Log: slog.New(slog.DiscardHandler), swept: w.Clock.Now()}
			d.prepare()
			must(t, d.begin(t.Context()))
			return d, store
		}
		for what, looked := range map[string]*notify.Progress{"nobody looked": nil,
			"somebody looked long ago": {Position: 1}, "somebody looked": {Position: end}} {
			d, store := begin(looked)
			must(t, d.follow(t.Context()))
			if len(d.hooks) != len(hooks) || len(d.idle["org_a"]) != 50 || len(d.idle["org_b"]) != 50 ||
				len(d.active) > 0 || len(d.touched) > 0 {
				t.Errorf("%s: of %d webhooks, %d of one organization and %d of another are idle, %d have a worker",
					what, len(d.hooks), len(d.idle["org_a"]), len(d.idle["org_b"]), len(d.active))
			}
			if rows, events, commands := store.rows.Load(), store.events.Load(),
				store.commands.Load(); rows > int64(len(hooks))+1 || events > 1 || commands > 0 {
				t.Errorf("%s: a start read %d rows and %d pages of the log, and ran %d commands", what, rows,
					events, commands)
			}
		}

		// A webhook that is far behind reads the log itself, or all would wait for it.
		behind := hooks[len(hooks)-1]
		before := w.progress(behind)
		w.putProgress(progressRow(behind), &notify.Progress{Position: end - maxBehind - 1, Idle: true})
		if d, _ := begin(nil); len(d.touched) != 1 || d.touched[behind] == nil {
			t.Errorf("%d webhooks are not idle, want the one that is far behind", len(d.touched))
		}
		w.putProgress(progressRow(behind), &before)

		w.putProgress(lookedRow, nil)
		w.happen("org_a", 1, "app_1")
		w.dispatch(w.hooks)
		testkit.Await(t, "all of one organization have got it", func() bool { return r.came() == 50 })
		w.areIdle(hooks...)
		if n := r.came(); n != 50 {
			t.Errorf("%d messages came", n)
		}
	})
}
