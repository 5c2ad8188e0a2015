package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// status answers with one, and takes nothing unless it is a good one.
func status(code int) func(string, http.ResponseWriter) bool {
	return func(_ string, w http.ResponseWriter) bool {
		w.WriteHeader(code)
		return code < 300
	}
}

func TestEventsReachTheirReceivers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		all, some, wide, two := newReceiver(t), newReceiver(t), newReceiver(t), newReceiver(t)
		w.happen("org_a", 2, "app_before")
		w.add(all, "org_a")
		w.add(some, "org_a", func(n *New) { n.Types = []string{"user.*", "app.added.v1"} })
		w.add(wide, "org_d", func(n *New) {
			n.AllOrganizations, n.Types = true, []string{"app.*", "installation.*", "org.*"}
		})
		w.add(two, "org_d", func(n *New) {
			n.OrganizationIDs, n.Types = []string{"org_b"}, []string{"app.*", "installation.*"}
		})
		w.happen("org_a", 3, "app_1")
		w.happen("org_b", 1, "app_2")
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_3")
		some.has("app_1.1", "app_3.1")
		wide.has("app_1.1", "app_1.2", "app_1.3", "app_2.1", "app_3.1")
		two.has("app_2.1")
		testkit.Await(t, "those of the organization have come", func() bool { return len(all.messages()) == 5 })
		ids := slices.Sorted(slices.Values(all.ids())) // with that of the other webhook of the organization
		if !slices.Equal(ids[:4], []string{"app_1.1", "app_1.2", "app_1.3", "app_3.1"}) ||
			!strings.HasPrefix(ids[4], "whk_") {
			t.Errorf("taken: %q", ids)
		}

		taken := some.messages()
		g := taken[slices.IndexFunc(taken, func(g got) bool { return g.id == "app_1.1" })]
		if want := `{"type":"app.added.v1","timestamp":"2030-01-01T00:00:00Z","data":{"eventId":"app_1.1","objectId":"app_1","objectType":"app","sequence":"1","orgId":"org_a",` +
			`"type":"app.added.v1","actor":"usr_me","requestId":"req_7","time":"2030-01-01T00:00:00Z","payload":`; !strings.HasPrefix(string(g.body), want) || !strings.HasSuffix(string(g.body), `,"erased":false}}`) {
			t.Errorf("the message is\n%s", g.body)
		}
	})
}

func TestPersonalDataIsSentWhereThatIsWantedUntilItIsErased(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		with, without := newReceiver(t), newReceiver(t)
		with.says(status(503))
		hook := w.add(with, "org_a", func(n *New) { n.Types, n.PersonalData = []string{"user.*"}, true })
		w.add(without, "org_a", func(n *New) { n.Types = []string{"user.*"} })
		w.dispatch(w.hooks)
		person := func(id string) {
			must(t, w.hooks.Store.Do(t.Context(), event.Command{
				Origin: system,
				Write:  []event.Ref{user.Kind.Ref(id)},
				Claims: []event.Claim{user.NameClaim("org_a", id)},
				Decide: func(tx *event.Tx) error {
					_, err := user.Kind.Create(tx, id, "org_a",
						user.ServiceAdded{Personal: user.ServiceFacts{UserName: id, UserNameKey: id,
							Name: "Ada Lovelace"}})
					return err
				},
			}))
		}
		person("usr_1")
		without.has("usr_1.1")
		if text := string(without.messages()[0].body); strings.Contains(text, "Ada") ||
			!strings.HasSuffix(text, `"erased":false}}`) {
			t.Errorf("personal data that nobody asked for: %s", text)
		}
		w.isParked(hook)
		record, err := w.hooks.Store.Record(t.Context(), user.Kind.Ref("usr_1"))
		must(t, err)
		must(t, w.hooks.Store.Do(t.Context(), event.Command{Origin: system, Decide: func(tx *event.Tx) error {
			tx.DropRow(event.RowKey{Table: event.Keys, Key: record.KeyID})
			return nil
		}}))
		with.says(nil)
		w.Clock.Advance(10 * time.Second)
		with.has("usr_1.1")
		if text := string(with.messages()[0].body); strings.Contains(text, "Ada") ||
			!strings.HasSuffix(text, `"erased":true}}`) {
			t.Errorf("erased, and sent: %s", text)
		}
		person("usr_2")
		with.has("usr_1.1", "usr_2.1")
		if text := string(with.messages()[1].body); !strings.Contains(text, `"personal":{`) ||
			!strings.Contains(text, "Ada Lovelace") {
			t.Errorf("without the personal part: %s", text)
		}
		h, err := readHistory(t.Context(), w.hooks.Store, hook)
		must(t, err)
		if text := fmt.Sprint(h); strings.Contains(text, "Ada") {
			t.Errorf("the history remembers a name: %s", text)
		}
	})
}

// A receiver that fails at random: at least once, and in order for each object.
func TestEventsOfAnObjectComeInOrderWhateverFails(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(1, 2))
		r.says(func(_ string, out http.ResponseWriter) bool {
			mu.Lock()
			defer mu.Unlock()
			switch dice.IntN(10) {
			case 0:
				out.WriteHeader(http.StatusInternalServerError)
				return false
			case 1:
				panic(http.ErrAbortHandler)
			}
			return true
		})
		r.loses = func() bool { // taken, but the answer is lost: so it comes twice
			mu.Lock()
			defer mu.Unlock()
			return dice.IntN(10) == 0
		}
		r.Config.ErrorLog = quiet
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		w.dispatch(w.hooks)
		var want []string
		var ids []string
		for i := range 12 {
			ids = append(ids, fmt.Sprintf("app_%02d", i))
		}
		for range 10 {
			w.happen("org_a", 2, ids...)
		}
		for _, id := range ids {
			for n := range 20 {
				want = append(want, journal.IDOf(id, uint64(n+1)))
			}
		}
		testkit.Await(t, "all have come", func() bool {
			w.Clock.Advance(2 * time.Second)
			got := map[string]bool{}
			for _, id := range r.ids() {
				got[id] = true
			}
			return len(got) == len(want)
		})
		testkit.Await(t, "nothing is parked any more", func() bool {
			w.Clock.Advance(2 * time.Second) // what came without its answer is tried again
			left, err := allParked(t.Context(), w.hooks.Store, hook)
			must(t, err)
			return len(left) == 0
		})
		r.inOrder()
	})
}

func TestAnEventThatFailsForGoodHoldsBackItsObjectUntilSomebodyActs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		var mu sync.Mutex
		broken := map[string]bool{"app_1.2": true, "app_2.1": true}
		r.says(func(id string, out http.ResponseWriter) bool {
			mu.Lock()
			defer mu.Unlock()
			if broken[id] {
				out.WriteHeader(http.StatusTeapot)
			}
			return !broken[id]
		})
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		stop := w.dispatch(w.hooks)
		w.happen("org_a", 4, "app_1")
		w.happen("org_a", 2, "app_2", "app_3")
		me := w.owner("org_a")
		failures := func(retrying bool) (found []Failure) {
			for after := (&event.Cursor{}); after != nil; {
				page, next, err := w.hooks.Failures(t.Context(), me, hook, retrying, *after, 1)
				must(t, err)
				if len(page) > 1 {
					t.Fatalf("a page of one has %d failures", len(page))
				}
				found, after = append(found, page...), next
			}
			return found
		}
		testkit.Await(t, "both are tried again", func() bool { return len(failures(true)) == 2 })
		if f := failures(true)[0]; f.EventID != "app_1.2" || f.Tries != 1 || f.Status != http.StatusTeapot ||
			f.Problem != "the receiver answers with status 418" || f.Type != "app.settings_changed.v1" ||
			f.Next.Sub(w.Clock.Now()) < 4*time.Second || f.Next.Sub(w.Clock.Now()) > 6*time.Second {
			t.Errorf("%+v", f)
		}
		held := func() (ids []string) {
			for after := (&event.Cursor{}); after != nil; {
				page, next, err := w.hooks.HeldEvents(t.Context(), me, hook, *after, 1)
				must(t, err)
				for _, h := range page {
					ids = append(ids, h.EventID+" behind "+h.Behind)
				}
				after = next
			}
			return ids
		}
		if got := failures(false); got != nil || held() != nil {
			t.Errorf("failed for good already: %+v, and %q wait for it", got, held())
		}
		_, _, early := w.hooks.Replay(t.Context(), me, hook, event.IfMatch{}, "app_1.2")
		refused(t, early, ErrEventNotFailed)
		tries := 0
		testkit.Await(t, "both have failed for good", func() bool {
			before := failures(true)
			if slices.ContainsFunc(before, func(f Failure) bool { return !f.Next.IsZero() }) {
				w.Clock.Advance(time.Hour)
				tries++
			}
			return len(failures(false)) == 2
		})
		for _, f := range failures(false) {
			if f.Tries != len(pauses)+1 || !f.Next.IsZero() {
				t.Errorf("%+v", f)
			}
		}
		r.has("app_1.1", "app_3.1", "app_3.2")
		if got := held(); !slices.Equal(got,
			[]string{"app_1.3 behind app_1.2", "app_1.4 behind app_1.2", "app_2.2 behind app_2.1"}) {
			t.Errorf("held: %q", got)
		}
		for _, id := range []string{"app_1.1", "app_1.3", "app_9.1", "app_1", "", ".", "app_1.x",
			"app_1.99999999999999999999"} {
			_, err := w.hooks.Skip(t.Context(), me, hook, event.IfMatch{}, id)
			refused(t, err, ErrEventNotFailed)
		}

		// Another node finds it as it is.
		stop()
		stop = w.dispatch(w.hooks)
		r.skipped = []string{"app_1.2"}
		_, err := w.hooks.Skip(t.Context(), me, hook, event.IfMatch{}, "app_1.2")
		must(t, err)
		r.has("app_1.1", "app_3.1", "app_3.2", "app_1.3", "app_1.4")
		_, _, err = w.hooks.Replay(t.Context(), me, hook, event.IfMatch{}, "app_1.2")
		refused(t, err, ErrEventNotFailed)
		mu.Lock()
		delete(broken, "app_2.1")
		mu.Unlock()
		_, n, err := w.hooks.Replay(t.Context(), me, hook, event.IfMatch{}, "")
		must(t, err)
		if n != 1 {
			t.Errorf("%d are replayed", n)
		}
		r.has("app_1.1", "app_3.1", "app_3.2", "app_1.3", "app_1.4", "app_2.1", "app_2.2")
		_, n, err = w.hooks.Replay(t.Context(), me, hook, event.IfMatch{}, "")
		must(t, err)
		if n != 0 || held() != nil || failures(true) != nil {
			t.Errorf("%d are replayed, and %q wait", n, held())
		}
		w.Clock.Advance(time.Second)
		w.happen("org_a", 1, "app_1")
		r.has("app_1.1", "app_3.1", "app_3.2", "app_1.3", "app_1.4", "app_2.1", "app_2.2", "app_1.5")
		stop()
		attempts, err := w.hooks.Attempts(t.Context(), me, hook)
		must(t, err)
		if len(attempts) != 8+20 || attempts[0].EventID != "app_1.5" || attempts[0].Status != 200 ||
			attempts[0].Try != 1 || attempts[0].Problem != "" {
			t.Errorf("%d attempts, the last one %+v", len(attempts), attempts[0])
		}
	})
}

// Replayed over one node, while another serves the webhook.
func TestWhatOneNodeReplaysAnotherSends(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		r.says(status(500))
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		w.dispatch(w.hooks)
		w.happen("org_a", 2, "app_1")
		other := w.node()
		testkit.Await(t, "it has failed for good", func() bool {
			w.Clock.Advance(time.Hour)
			all, err := allParked(t.Context(), other.Store, hook)
			must(t, err)
			return len(all) == 1 && all["app_1"].Failed
		})
		r.says(nil)
		_, _, err := other.Replay(t.Context(), w.owner("org_a"), hook, event.IfMatch{}, "app_1.1")
		must(t, err)
		r.has("app_1.1", "app_1.2")
	})
}

func TestAReceiverThatStallsKeepsNobodyElseWaiting(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		stalled, quick := newReceiver(t), newReceiver(t)
		release := make(chan struct{})
		stalled.says(func(string, http.ResponseWriter) bool { <-release; return true })
		t.Cleanup(func() { close(release) })
		for range perNode/perWebhook + 2 { // enough to take all slots of the node, were it allowed to
			w.add(stalled, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		}
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1", "app_2", "app_3", "app_4", "app_5", "app_6", "app_7", "app_8")
		testkit.Await(t, "all slots of the organization are taken", func() bool { return stalled.came() >= perNode/2 })
		w.add(quick, "org_b", func(n *New) { n.Types = []string{"app.*"} })
		w.happen("org_b", 1, "app_9")
		quick.has("app_9.1")
		if n := stalled.came(); n > (perNode+perNodeLame)/2 {
			t.Errorf("%d messages are on their way at once", n)
		}
	})
}

// TestAPlaceIsLeftOnceWhenItIsLeftAndMovedAtTheSameMoment: both happen at the end of the same time, in any order.
func TestAPlaceIsLeftOnceWhenItIsLeftAndMovedAtTheSameMoment(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			d := &Dispatcher{usual: newSlots(perNode), lame: newSlots(perNodeLame)}
			var all sync.WaitGroup
			for range 20 {
				leave := d.enter(t.Context(), d.usual, "org_a")
				all.Go(func() {
					<-time.After(slow)
					leave()
				})
			}
			all.Wait()
			synctest.Wait()
			usual, _ := d.usual.Load()
			if lame, _ := d.lame.Load(); usual != 0 || lame != 0 {
				t.Fatalf("%d and %d slots are held in the end", usual, lame)
			}
		})
	}
}

func TestAWebhookThatIsNotInUseIsNotServed(t *testing.T) {
	me := func(w *nodes) access.Permit { return w.owner("org_a") }
	orgFact := func(w *nodes, f event.Fact[org.Org]) error {
		return w.hooks.Store.Do(w.t.Context(), event.Command{
			Origin: system,
			Write:  []event.Ref{org.Kind.Ref("org_a")},
			Decide: func(tx *event.Tx) error {
				o, err := org.Kind.Get(tx, "org_a")
				if err != nil {
					return err
				}
				return o.Append(f)
			},
		})
	}
	for _, c := range []struct {
		name    string
		off, on func(w *nodes, hook string) error
	}{
		{"deactivated", func(w *nodes, hook string) error {
			_, err := w.hooks.Deactivate(w.t.Context(), me(w), hook, event.IfMatch{})
			return err
		}, func(w *nodes, hook string) error {
			_, err := w.hooks.Reactivate(w.t.Context(), me(w), hook, event.IfMatch{})
			return err
		}},
		{"of an organization that is deactivated",
			func(w *nodes, _ string) error { return orgFact(w, org.Deactivated{}) },
			func(w *nodes, _ string) error { return orgFact(w, org.Reactivated{}) }},
		{"removed", func(w *nodes, hook string) error {
			_, err := w.hooks.Remove(w.t.Context(), me(w), hook, event.IfMatch{})
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, db testdb.Database) {
				w := newNodes(t, db)
				r, other := newReceiver(t), newReceiver(t)
				hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
				w.add(other, "org_b", func(n *New) { n.Types = []string{"app.*"} })
				w.dispatch(w.hooks)
				w.happen("org_a", 1, "app_1")
				r.has("app_1.1")
				r.says(status(500))
				w.happen("org_a", 1, "app_2")
				w.isParked(hook)
				r.says(nil)

				// Nobody has told the dispatcher when the next events are written: each message is looked at before it
				// goes.
				must(t, c.off(w, hook))
				w.happen("org_a", 2, "app_1")
				w.Clock.Advance(time.Minute)
				w.happen("org_b", 1, "app_9")
				other.has("app_9.1")
				if n := r.came(); n != 2 {
					t.Errorf("%d messages came", n)
				}
				if c.on != nil {
					must(t, c.on(w, hook))
					w.Clock.Advance(time.Second) // who met it switched off waits a moment
					r.has("app_1.1", "app_2.1", "app_1.2", "app_1.3")
					return
				}
				rows, err := w.hooks.Store.RowsOf(t.Context(), event.Deliveries, hook, "", 10)
				must(t, err)
				progress, err := w.hooks.Store.Row(t.Context(), progressRow(hook))
				must(t, err)
				secret, err := w.hooks.Store.Row(t.Context(), event.SecretOf(hook))
				must(t, err)
				if len(rows) > 0 || progress != nil || secret != nil {
					t.Errorf("left behind: %v %v %v", rows, progress, secret)
				}
			})
		})
	}
}

// brokenRows cannot list rows.
type brokenRows struct{ event.Log }

func (brokenRows) RowsOf(context.Context, event.SideTable, string, string, int) ([]event.Row, error) {
	return nil, errs.New(errs.Unavailable, event.StorageAway, "the database is away")
}

// Whoever removes a webhook may leave, or lose the database, right after.
func TestWhatARemovedWebhookLeavesIsClearedAwayAfterwards(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		r.says(status(500))
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		w.isParked(hook)
		broken := *w.hooks
		broken.Store = brokenRows{w.hooks.Store}
		_, err := broken.Remove(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
		must(t, err)
		testkit.Await(t, "nothing is left", func() bool {
			rows, err := w.hooks.Store.RowsOf(t.Context(), event.Deliveries, hook, "", 10)
			must(t, err)
			return len(rows) == 0
		})
	})
}

func TestAReceiverThatIsGoneIsLeftAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		r.says(status(http.StatusGone))
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		state := func() Webhook {
			o, err := Kind.Read(t.Context(), w.hooks.Store, hook)
			must(t, err)
			return o.Data
		}
		testkit.Await(t, "it is switched off", func() bool { return state().State == Inactive })
		events, err := w.hooks.Store.EventsOf(t.Context(), hook, 2, 10)
		must(t, err)
		if !state().Gone || len(events) != 1 || events[0].Type != "webhook.deactivated.v1" ||
			events[0].Actor != event.System {
			t.Errorf("%+v, recorded: %+v", state(), events)
		}
		r.says(nil)
		_, err = w.hooks.Reactivate(t.Context(), w.owner("org_a"), hook, event.IfMatch{})
		must(t, err)
		testkit.Await(t, "it is tried again", func() bool {
			w.Clock.Advance(100 * time.Millisecond) // the pause may begin only now
			return len(r.messages()) > 0
		})
		r.has("app_1.1")
		if state().Gone {
			t.Error("it is still said to be gone")
		}
	})
}

func TestNodesShareTheWebhooks(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		second := w.node()
		stop := w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		r.has("app_1.1")
		w.dispatch(second)
		for range 5 {
			w.happenOn(second.Store, "org_a", 1, "app_1")
			w.happen("org_a", 1, "app_1")
		}
		all := []string{}
		for n := range 11 {
			all = append(all, journal.IDOf("app_1", uint64(n+1)))
		}
		r.has(all...)

		// Who stops gives its lease back. What it has sent is not sent again.
		stop()
		w.Clock.Advance(defaultLease / 5)
		w.happenOn(second.Store, "org_a", 1, "app_1")
		r.has(append(all, "app_1.12")...)
	})
}

func TestANodeThatDiedIsFollowedWhenItsLeaseIsOver(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		must(t, w.hooks.Store.Do(t.Context(), event.Command{
			Origin: system,
			Rows:   []event.RowKey{progressRow(hook)},
			Decide: func(tx *event.Tx) error {
				return (&notify.Progress{Begins: true, Node: "nod_dead",
					Until: tx.Now() + defaultLease.Microseconds()}).Put(tx, progressRow(hook))
			},
		}))
		w.happen("org_a", 1, "app_1")
		w.dispatch(w.hooks)
		w.Clock.Advance(defaultLease - time.Second)
		other := newReceiver(t)
		w.add(other, "org_b", func(n *New) { n.Types = []string{"app.*"} })
		w.happen("org_b", 1, "app_2")
		other.has("app_2.1")
		if r.came() > 0 {
			t.Error("another node holds the lease")
		}
		w.Clock.Advance(2 * time.Second)
		r.has("app_1.1")
	})
}

// What a node has not heard of is sent again by the next one, if it dies.
func TestWhatIsOnItsWayIsNotNotedAsDone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		release := make(chan struct{})
		r.says(func(id string, _ http.ResponseWriter) bool {
			if id == "app_1.1" {
				<-release
			}
			return true
		})
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		before, err := w.hooks.Store.Position(t.Context())
		must(t, err)
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		w.happen("org_a", 1, "app_2", "app_3")
		noted := func() (p notify.Progress) {
			row, err := w.hooks.Store.Row(t.Context(), progressRow(hook))
			must(t, err)
			must(t, json.Unmarshal(row.Value, &p))
			return p
		}
		testkit.Await(t, "the others have come", func() bool { return len(r.messages()) == 2 && r.came() == 3 })
		w.Clock.Advance(defaultLease * 2 / 3)
		testkit.Await(t, "the lease is renewed",
			func() bool { return noted().Until > event.Micros(w.Clock.Now().Add(defaultLease/2)) })
		if p := noted().Position; p != before {
			t.Errorf("noted up to %d, and it is at %d", p, before)
		}
		close(release)
		testkit.Await(t, "it is noted", func() bool { return noted().Position == before+3 })
	})
}

// A node that was held up for longer than its lease finds that another has taken over, and leaves it alone.
func TestANodeThatLostItsLeaseStops(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		r.has("app_1.1")
		must(t, w.hooks.Store.Do(t.Context(), event.Command{
			Origin: system,
			Rows:   []event.RowKey{progressRow(hook)},
			Decide: func(tx *event.Tx) error {
				return (&notify.Progress{Position: 1 << 40, Node: "nod_other",
					Until: tx.Now() + 10*defaultLease.Microseconds()}).Put(tx, progressRow(hook))
			},
		}))
		w.Clock.Advance(defaultLease)
		w.happen("org_a", 1, "app_1")
		other := newReceiver(t)
		w.add(other, "org_b", func(n *New) { n.Types = []string{"app.*"} })
		w.happen("org_b", 1, "app_2")
		other.has("app_2.1")
		r.has("app_1.1")
		row, err := w.hooks.Store.Row(t.Context(), progressRow(hook))
		must(t, err)
		if !strings.Contains(string(row.Value), "nod_other") {
			t.Errorf("the other's note is gone: %s", row.Value)
		}
	})
}

// slowLog takes its time for every page of the log that a worker reads.
type slowLog struct {
	event.Log
	before func() // each page
}

func (s slowLog) Events(ctx context.Context, after int64, limit int) ([]event.Event, error) {
	if limit == page {
		s.before()
	}
	return s.Log.Events(ctx, after, limit)
}

// Or another node would begin with the same, and another after it: none would ever come to the end.
func TestALongWayThroughTheLogKeepsItsLease(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.added.v1"} })
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("app_b%02d", i))
	}
	const pages = 10                                 // that take half of the lease
	w.happen("org_b", 3*pages*page/len(ids), ids...) // another organization's, so nothing to send
	w.happen("org_a", 1, "app_1")
	var read atomic.Int64
	w.hooks.Store = slowLog{w.hooks.Store, func() {
		read.Add(1)
		w.Clock.Advance(defaultLease / (2*pages + 1))
		row, err := w.hooks.Store.Row(t.Context(), progressRow(hook))
		var p notify.Progress
		if err != nil || row == nil || json.Unmarshal(row.Value, &p) != nil || p.Until <= event.Micros(w.Clock.Now()) {
			t.Errorf("the lease is over while the log is read: %+v at %s, %v", p, w.Clock.Now(), err)
		}
	}}
	w.dispatch(w.hooks)
	r.has("app_1.1")
	if n := read.Load(); n < 2*pages {
		t.Errorf("the log was read in %d pages, in less time than the lease has", n)
	}
}

func TestWithTooMuchParkedAWebhookWaits(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	r.says(status(500))
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
	stop := w.dispatch(w.hooks)
	var ids []string
	for i := range notify.MaxParked + 50 {
		ids = append(ids, fmt.Sprintf("app_%04d", i))
	}
	w.happen("org_a", 1, ids...)
	testkit.Await(t, "it is full", func() bool {
		return r.came() >= notify.MaxParked && strings.Contains(w.Log.String(), "too many parked objects")
	})
	stop()
	list, err := allParked(t.Context(), w.hooks.Store, hook)
	must(t, err)
	if len(list) != notify.MaxParked || r.came() != notify.MaxParked {
		t.Errorf("%d are parked after %d messages", len(list), r.came())
	}
	r.says(nil)
	w.dispatch(w.hooks)
	w.Clock.Advance(10 * time.Second)
	testkit.Await(t, "all have come", func() bool { return len(r.messages()) >= len(ids) })
	r.inOrder()
}

func TestWhatAReceiverAnswersDecides(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	elsewhere := newReceiver(t)
	elsewhere.says(func(string, http.ResponseWriter) bool { t.Error("a redirect was followed"); return true })
	for _, c := range []struct {
		name    string
		status  int
		header  [2]string
		problem string
		wait    [2]time.Duration // for the next try
	}{
		{"created", 201, [2]string{}, "", [2]time.Duration{}},
		{"an error", 500, [2]string{}, "the receiver answers with status 500",
			[2]time.Duration{4 * time.Second, 6 * time.Second}},
		{"a redirect", 307, [2]string{"Location", elsewhere.URL},
			"the receiver answers with a redirect (status 307), which is not followed: set the final address",
			[2]time.Duration{4 * time.Second, 6 * time.Second}},
		{"busy for a while", 429, [2]string{"Retry-After", "90"}, "the receiver answers with status 429",
			[2]time.Duration{90 * time.Second, 90 * time.Second}},
		{"busy until a date", 503, [2]string{"Retry-After", "Tue, 01 Jan 2030 00:02:00 GMT"},
			"the receiver answers with status 503", [2]time.Duration{2 * time.Minute, 2 * time.Minute}},
		{"busy for ever", 503, [2]string{"Retry-After", "99999999"}, "the receiver answers with status 503",
			[2]time.Duration{time.Hour, time.Hour}},
		{"an odd wish", 503, [2]string{"Retry-After", "soon"}, "the receiver answers with status 503",
			[2]time.Duration{4 * time.Second, 6 * time.Second}},
		{"a wish that does not count", 500, [2]string{"Retry-After", "90"}, "the receiver answers with status 500",
			[2]time.Duration{4 * time.Second, 6 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver(t)
			r.says(func(_ string, out http.ResponseWriter) bool {
				if c.header[0] != "" {
					out.Header().Set(c.header[0], c.header[1])
				}
				out.WriteHeader(c.status)
				return true
			})
			hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
			out, err := w.hooks.Test(t.Context(), w.owner("org_a"), hook)
			must(t, err)
			if out.Status != c.status || out.Problem != c.problem {
				t.Errorf("%+v", out)
			}
			if g := r.messages()[0]; g.Type != TestType || !strings.HasPrefix(g.id, "msg_") ||
				!strings.Contains(string(g.body), hook) {
				t.Errorf("the message is %s %s", g.id, g.body)
			}
			d := &Dispatcher{FirstPause: defaultPause}
			if wait, again := d.retry(&notify.Parked{Retry: notify.Retry{Tries: 1}}, &notify.Result{Outcome: out},
				0); c.problem != "" {
				if !again || wait < c.wait[0] || wait > c.wait[1] {
					t.Errorf("it waits %s", wait)
				}
			}
		})
	}
}

// Security list, row 19: messages go nowhere but to public addresses and where the operator allows it.
func TestMessagesReachNoPrivateAddress(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	st := w.hooks.Store.(*store.Store)
	inside := newReceiver(t)
	inside.says(func(string, http.ResponseWriter) bool { t.Error("a private address was called"); return true })
	port := inside.URL[strings.LastIndexByte(inside.URL, ':'):]
	public := w.webhooks(st, outbound.Config{Resolver: names{"inside.example": "127.0.0.1",
		"mapped.example": "::ffff:127.0.0.1", "local.example": "169.254.169.254", "six.example": "::1"}})
	me := w.owner("org_a")
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254",
		"192.168.1.1", "[fe80::1]", "[fd00::1]", "0.0.0.0"} {
		_, err := public.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: "https://" + host + port}})
		refused(t, err, invalid, "url")
	}
	_, err := public.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: "http://inside.example" + port}})
	refused(t, err, invalid, "url")
	for _, host := range []string{"inside.example", "mapped.example", "local.example", "six.example"} {
		created, err := public.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: "https://" + host + port}})
		must(t, err)
		out, err := public.Test(t.Context(), me, created.ID)
		must(t, err)
		if out.Status != 0 || !strings.Contains(out.Problem, "does not call this address") {
			t.Errorf("%s: %+v", host, out)
		}
	}
}

func TestBothSecretsSignWhileTheOldOneIsKept(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	old, both, last := newReceiver(t), newReceiver(t), newReceiver(t)
	me := w.owner("org_a")
	created, err := w.hooks.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: old.URL}})
	must(t, err)
	old.learn(created.Secret)
	try := func(r *receiver) {
		t.Helper()
		_, err := w.hooks.Modify(t.Context(), me, created.ID, event.IfMatch{}, Modification{URL: &r.URL})
		must(t, err)
		out, err := w.hooks.Test(t.Context(), me, created.ID)
		must(t, err)
		if out.Problem != "" {
			t.Error(out.Problem)
		}
	}
	_, text, err := w.hooks.RotateSecret(t.Context(), me, created.ID, event.IfMatch{}, time.Hour)
	must(t, err)
	try(old)
	both.learn(text)
	try(both)
	w.Clock.Advance(time.Hour)
	u, err := w.hooks.use(t.Context(), created.ID, nil)
	must(t, err)
	if n := strings.Count(u.secrets.signatures(event.Micros(w.Clock.Now()), "id", 1, nil), "v1,"); n != 1 {
		t.Errorf("%d signatures after the old one is over", n)
	}
	_, text, err = w.hooks.RotateSecret(t.Context(), me, created.ID, event.IfMatch{}, 0)
	must(t, err)
	last.learn(text)
	try(last)
	if u, err = w.hooks.use(t.Context(), created.ID, nil); err != nil || u.secrets.Old != nil {
		t.Errorf("an old secret is kept: %v", err)
	}
}

// Security list, row 27.
func TestSecretsAreNowhere(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r := newReceiver(t)
		r.says(status(500))
		hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"app.*"} })
		me := w.owner("org_a")
		_, rotated, err := w.hooks.RotateSecret(t.Context(), me, hook, event.IfMatch{}, time.Hour)
		must(t, err)
		r.learn(rotated)
		stop := w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1", "app_2", "app_3", "app_4")
		testkit.Await(t, "it has failed", func() bool { return r.came() >= 4 })
		stop()
		out, err := w.hooks.Test(t.Context(), me, hook)
		must(t, err)
		attempts, err := w.hooks.Attempts(t.Context(), me, hook)
		must(t, err)
		o, err := w.hooks.Get(t.Context(), me, hook)
		must(t, err)
		events, err := w.hooks.Store.Events(t.Context(), 0, 1000)
		must(t, err)
		secretRow, err := w.hooks.Store.Row(t.Context(), event.SecretOf(hook))
		must(t, err)
		_, refusal := w.hooks.Add(t.Context(), me,
			New{Name: "n", Settings: Settings{URL: "https://ada:in-the-url@example.org"}})
		refused(t, refusal, invalid, "url")
		if !strings.Contains(w.Log.String(), hook) {
			t.Error("nothing was logged")
		}
		for _, text := range []string{w.Log.String(), fmt.Sprintf("%+v %+v", out, attempts), refusal.Error()} {
			if strings.Contains(text, "in-the-url") || strings.Contains(text, r.URL) {
				t.Errorf("an address is in %s", text)
			}
		}
		for _, text := range []string{fmt.Sprintf("%+v", o), payloads(events), string(secretRow.Value)} {
			if strings.Contains(text, "in-the-url") {
				t.Errorf("an address is in %s", text)
			}
		}
		for _, key := range r.keys {
			for _, text := range []string{w.Log.String(), fmt.Sprintf("%+v %+v %+v", out, attempts, o),
				payloads(events), string(secretRow.Value)} {
				if containsKey(text, key) {
					t.Errorf("a secret is in %s", text)
				}
			}
		}
	})
}

func TestAnEventThatCannotBeReadFailsAlone(t *testing.T) {
	w := newNodes(t, testdb.New(t, testdb.SQLite))
	r := newReceiver(t)
	hook := w.add(r, "org_a", func(n *New) { n.Types = []string{"user.*", "app.*"} })
	id := "usr_1"
	must(t, w.hooks.Store.Do(t.Context(), event.Command{
		Origin: system,
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim("org_a", id)},
		Decide: func(tx *event.Tx) error {
			_, err := user.Kind.Create(tx, id, "org_a",
				user.ServiceAdded{Personal: user.ServiceFacts{UserName: id, UserNameKey: id, Name: "Ada"}})
			return err
		},
	}))
	record, err := w.hooks.Store.Record(t.Context(), user.Kind.Ref(id))
	must(t, err)
	must(t, w.hooks.Store.Do(t.Context(), event.Command{Origin: system, Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Keys, Key: record.KeyID}, Value: []byte("damaged")})
		return nil
	}}))
	w.dispatch(w.hooks)
	w.happen("org_a", 1, "app_1")
	r.has("app_1.1")
	testkit.Await(t, "it is parked", func() bool {
		list, _, err := w.hooks.Failures(t.Context(), w.owner("org_a"), hook, true, event.Cursor{}, 10)
		must(t, err)
		return len(list) == 1 && list[0].EventID == "usr_1.1" && list[0].Status == 0
	})
}
