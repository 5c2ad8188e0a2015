package event_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

type ticket struct {
	Name string `json:"name"`
}

func TestARowOnItsWayIsForItsHolderAndUsedOnce(t *testing.T) {
	s := eventtest.New(t)
	master := secret.NewMasterKey()
	plain := event.Flow[ticket]{Prefix: "ticket", Life: time.Minute}
	sealed := event.Flow[ticket]{Prefix: "sealed", Life: time.Minute, Purpose: "a test"}
	do := func(decide func(tx *event.Tx) error) {
		t.Helper()
		if err := s.Do(t.Context(), event.Command{Origin: event.Origin{Actor: event.System},
			Rows: []event.RowKey{plain.Key("a"), sealed.Key("a")}, Decide: decide}); err != nil {
			t.Fatal(err)
		}
	}
	do(func(tx *event.Tx) error {
		plain.Put(tx, "a", &ticket{"plain"})
		sealed.For(master, "mine").Put(tx, "a", &ticket{"sealed"})
		sealed.For(master, "mine").About("x").Put(tx, "b", &ticket{"about x"})
		return nil
	})
	for name, c := range map[string]struct {
		flow event.Flow[ticket]
		id   string
		want string
	}{
		"plain":          {plain, "a", "plain"},
		"another id":     {plain, "b", ""},
		"of its holder":  {sealed.For(master, "mine"), "a", "sealed"},
		"of another one": {sealed.For(master, "theirs"), "a", ""},
		"of nobody":      {sealed.For(master, ""), "a", ""},
		"about a text":   {sealed.For(master, "mine").About("x"), "b", "about x"},
		"about another":  {sealed.For(master, "mine").About("y"), "b", ""},
		"about its key":  {sealed.For(master, "mine"), "b", ""},
	} {
		found, err := c.flow.Read(t.Context(), s, c.id)
		if err != nil || found == nil && c.want != "" || found != nil && found.Name != c.want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	do(func(tx *event.Tx) error {
		if other, err := sealed.For(master, "theirs").Use(tx, "a"); other != nil || err != nil {
			t.Errorf("another holder uses it up: %+v, %v", other, err)
		}
		return nil
	})
	for _, want := range []bool{true, false} {
		do(func(tx *event.Tx) error {
			found, err := sealed.For(master, "mine").Use(tx, "a")
			if (found != nil) != want || err != nil {
				t.Errorf("used: %+v, %v", found, err)
			}
			return nil
		})
	}
	do(func(tx *event.Tx) error {
		defer func() {
			if recover() == nil {
				t.Error("what is to be sealed was written plainly")
			}
		}()
		sealed.Put(tx, "a", &ticket{"plain"})
		return nil
	})
}
