package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestManyRowsOfOneCommandAreWrittenAsTheyAre, whether they are there already, in several tables, and with those that
// were looked for.
func TestManyRowsOfOneCommandAreWrittenAsTheyAre(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := opened(t, Options{Database: db.URL, Master: secret.NewMasterKey()})
		expires := event.Micros(time.Now().Add(time.Hour))
		for _, text := range []string{"first", "second", ""} {
			var rows []event.Row
			for i := range 3 {
				for n, table := range []event.SideTable{event.Flows, event.Throttle, event.Idempotency} {
					rows = append(rows,
						event.Row{RowKey: event.RowKey{Table: table, Key: fmt.Sprint("k", i)},
							Value: fmt.Append(nil, text, i), Expires: expires + int64(n)})
				}
			}
			rows[0].Value = []byte(text)
			looked := []event.RowKey{{Table: event.Flows, Key: "k1"}, {Table: event.Flows, Key: "k2"}}
			testkit.Must(t, s.Do(t.Context(), event.Command{Rows: looked, Decide: func(tx *event.Tx) error {
				for _, r := range rows {
					tx.PutRow(r)
				}
				return nil
			}}))
			for _, want := range rows {
				got, err := s.Row(t.Context(), want.RowKey)
				testkit.Must(t, err)
				if got == nil || string(got.Value) != string(want.Value) || got.Expires != want.Expires {
					t.Errorf("%v is %v, want %v", want.RowKey, got, want)
				}
			}
		}
	})
}
