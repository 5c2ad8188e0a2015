package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
)

// What the version before has left is sealed before it is carried: the target would have years of events that no
// checkpoint covers.
func TestAMoveFromAnOlderVersion(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		options := Options{
			Database:     db.URL,
			Kinds:        []event.Definition{oldThings},
			Master:       secret.NewMasterKey(),
			SealInterval: time.Hour,
			Clock:        func() time.Time { return now },
		}
		old := options
		old.schema = sealedSchema - 1
		s, _, err := Open(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		const events = 3000 // some pages
		for i := range events / 100 {
			now = now.Add(time.Hour)
			nameOften(t, s, fmt.Sprint("x_", i))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		if s, _, err = Open(t.Context(), options); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		target := options
		target.Database = testdb.New(t, testdb.SQLite).URL
		moved, err := s.MoveTo(t.Context(), target.Database, func(string, int64) *progress.Bar { return nil })
		if err != nil || moved.Events != events {
			t.Fatalf("%+v, %v", moved, err)
		}
		target.ReadOnly = true
		there, _, err := Open(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		defer there.Close()
		if r, err := there.Verify(t.Context(), proof.Options{}); err != nil || r.Finding != nil || r.Unsealed != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// nameOften makes an object with a hundred events.
func nameOften(t *testing.T, s *Store, id string) {
	t.Helper()
	err := s.Do(t.Context(), event.Command{Write: []event.Ref{oldThings.Ref(id)}, Decide: func(tx *event.Tx) error {
		o, err := oldThings.Create(tx, id, "org_1", oldNamed{"first"})
		for n := 1; n < 100 && err == nil; n++ {
			err = o.Append(oldNamed{fmt.Sprint("name ", n)})
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}
