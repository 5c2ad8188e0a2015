package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/test/testdb"
)

// addAsBefore makes a webhook as versions did that recorded its address.
func (w *nodes) addAsBefore(r *receiver, id, url string) {
	w.t.Helper()
	raw, text := newSecret()
	row, err := secrets{Current: raw}.row(w.hooks.Root, id)
	must(w.t, err)
	must(w.t, w.hooks.Store.Do(w.t.Context(), event.Command{
		Origin: system,
		Write:  []event.Ref{Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			o, err := Kind.Create(tx, id, "org_a",
				AddedV1{Name: id, NameKey: id, URL: "https://before.example/old-token",
					Selection: Selection{Types: []string{"app.*"}}})
			if err != nil {
				return err
			}
			tx.PutRow(row)
			if err := (&notify.Progress{Begins: true}).Put(tx, progressRow(id)); err != nil {
				return err
			}
			return o.Append(SettingsChangedV1{URL: &url})
		},
	}))
	r.learn(text)
}

func TestAnAddressThatStandsInTheLogIsUsedUntilAnotherIsSet(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newNodes(t, db)
		r, me := newReceiver(t), w.owner("org_a")
		url := r.URL + "/hook?token=in-the-url"
		w.addAsBefore(r, "whk_old", url)
		w.addAsBefore(r, "whk_plain", r.URL)
		state := func(id string) Webhook {
			t.Helper()
			o, err := w.hooks.Get(t.Context(), me, id)
			must(t, err)
			return o.Data
		}
		if s := state("whk_old"); s.Address != r.URL+"/…" || !s.AddressInLog {
			t.Errorf("its state is %+v", s)
		}
		if s := state("whk_plain"); s.Address != r.URL || s.AddressInLog {
			t.Errorf("the state of one whose address hides nothing is %+v", s)
		}
		_, err := w.hooks.Remove(t.Context(), me, "whk_plain", event.IfMatch{})
		must(t, err)

		// Messages go there, and it is said that it stands in the log. A new secret changes nothing about that.
		stop := w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_1")
		r.has("app_1.1")
		stop()
		if said := w.Log.String(); !strings.Contains(said, "set the addresses again") ||
			!strings.Contains(said, "whk_old") || strings.Contains(said, "in-the-url") {
			t.Errorf("the log says %s", said)
		}
		_, text, err := w.hooks.RotateSecret(t.Context(), me, "whk_old", event.IfMatch{}, time.Hour)
		must(t, err)
		r.learn(text)
		_, err = w.hooks.Modify(t.Context(), me, "whk_old", event.IfMatch{}, Modification{URL: &url})
		must(t, err)
		if s := state("whk_old"); !s.AddressInLog {
			t.Error("the same address is set again, and still stands in the log")
		}
		out, err := w.hooks.Test(t.Context(), me, "whk_old")
		must(t, err)
		if out.Problem != "" {
			t.Error(out.Problem)
		}

		other := newReceiver(t)
		other.learn(text)
		next := other.URL + "/hook?token=another"
		_, err = w.hooks.Modify(t.Context(), me, "whk_old", event.IfMatch{}, Modification{URL: &next})
		must(t, err)
		if s := state("whk_old"); s.AddressInLog || s.Address != other.URL+"/…" {
			t.Errorf("afterwards its state is %+v", s)
		}
		w.dispatch(w.hooks)
		w.happen("org_a", 1, "app_2")
		other.has("app_2.1")

		// What was recorded then is not shown any more.
		events, err := w.hooks.Store.Events(t.Context(), 0, 1000)
		must(t, err)
		seen := 0
		for i := range events {
			entry, err := journal.Show(t.Context(), w.hooks.Store, w.hooks.Root, &events[i], true)
			must(t, err)
			body, err := bodyOf(entry)
			must(t, err)
			for _, token := range []string{"in-the-url", "old-token", "another"} {
				if strings.Contains(string(body), token) {
					t.Errorf("an event is shown with its address: %s", body)
				}
			}
			if strings.Contains(string(entry.Payload), `"url":"https://before.example/…"`) &&
				strings.Contains(string(entry.Payload), `"types":["app.*"]`) {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("%d old events are shown with the rest of what they hold", seen)
		}
	})
}
