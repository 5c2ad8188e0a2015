package store

import (
	"testing"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/model"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/store/searching"
	"github.com/signet-idm/signet/test/testdb"
)

func TestASearchLooksAtABoundedNumberForOnePage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fill(t, s)
		// Nobody has both words, and many have one of them.
		q := event.Search{Kind: "user", Words: []string{"common", "w0"}, Limit: 10}
		for range 3 {
			found, next, err := searching.Run(t.Context(), s.engine, q, 40)
			if err != nil || len(found) > 0 {
				t.Fatalf("%v, %v", found, err)
			}
			if next == nil || *next == q.After {
				t.Fatalf("%v after %v: it does not go on behind what it has looked at", next, q.After)
			}
			q.After = *next
		}
		for range 2 { // with a larger number the rest comes at once, and that is the end where there are few
			if _, next, err := searching.Run(t.Context(), s.engine, q, 1_000_000); err != nil || next != nil {
				t.Fatalf("%v, %v", next, err)
			}
		}
	})
}
