package newcomer

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

func TestTheFirstSessionOfANewPersonIsCounted(t *testing.T) {
	w := newWorld(t)
	w.Tally = tally.New(w.store, w.store.Now, session.SignInThrottled)
	person := Person{OrgID: "org_b", UserName: "new", FirstName: "N", LastName: "P", Email: "new@b.test",
		Password: right, Peer: home}
	for range 2 { // the ticket is good for one
		_, _ = w.Create(t.Context(), person, event.Command{Rows: []event.RowKey{ticket}}, admit)
		person.UserName = "newer"
	}
	days, err := w.Tally.Read(t.Context(), "org_b", 1)
	must(t, err)
	if got := fmt.Sprint(days[0].Day); got != "map[pwd:{1 0 0}]" {
		t.Errorf("got %s", got)
	}
}
