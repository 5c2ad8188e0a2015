package store

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

// TestANodeThatWasStoppedTooLongSaysSo: its transaction has been ended behind its back.
func TestANodeThatWasStoppedTooLongSaysSo(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	s, _, err := Open(t.Context(),
		Options{Database: db.URL + "&idle_in_transaction_session_timeout=500ms", Master: secret.NewMasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watch, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(t.Context())
	put := func(decided func()) error {
		return s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
			decided()
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Throttle, Key: "k"}, Value: []byte("v")})
			return nil
		}})
	}
	err = put(func() {
		for ended := false; !ended; {
			ended = true
			_ = watch.QueryRow(t.Context(),
				"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'").Scan(&ended)
		}
	})
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v", err)
	}
	if row, err := s.Row(t.Context(), event.RowKey{Table: event.Throttle, Key: "k"}); row != nil || err != nil {
		t.Errorf("%v, %v", row, err)
	}
	for tries := 1; put(func() {}) != nil; tries++ { // on a busy machine half a second may be over soon
		if tries == 100 {
			t.Fatal("it does not come back")
		}
	}
}
