package store_test

import (
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

func TestWhatIsAskedForAheadIsReadOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := store.Open(t.Context(),
			store.Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		change := func(name string) {
			t.Helper()
			err := s.Do(t.Context(), event.Command{
				Write:  []event.Ref{org.Kind.Ref("org_1")},
				Claims: []event.Claim{org.DomainClaim("a.example")},
				Decide: func(tx *event.Tx) error {
					o, err := org.Kind.Get(tx, "org_1")
					if err != nil {
						return err
					}
					if o == nil {
						_, err = org.Add(tx, "org_1", name, []string{"a.example"})
						return err
					}
					return o.Append(org.Renamed{Name: &name})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		change("First")
		ctx := s.Ahead(t.Context(), []string{"org_1", "org_2", "org_\x00", "org_\xff", "unknown_1", "", "_"})
		// A read of something else takes it along.
		if o, err := org.Kind.Read(ctx, s, "org_3"); o != nil || err != nil {
			t.Fatalf("%v, %v", o, err)
		}
		// So does everything that a sign-in reads, each in a round trip that it shares.
		for what, read := range map[string]func() error{
			"a way to find somebody": func() error {
				_, err := s.Find(t.Context(), []event.Lookup{{Claim: org.DomainClaim("new.example")}})
				return err
			},
			"a claim": func() error { _, err := s.Holder(t.Context(), org.DomainClaim("newer.example")); return err },
			"a row": func() error {
				_, err := s.Row(t.Context(), event.RowKey{Table: event.Secrets, Key: "none"})
				return err
			},
		} {
			change("Before")
			along := s.Ahead(t.Context(), []string{"org_1"})
			if err := read(); err != nil {
				t.Fatal(err)
			}
			change("First")
			want := "Before"
			if db.Engine == testdb.SQLite {
				want = "First"
			}
			if o, err := org.Kind.Read(along, s, "org_1"); err != nil || o.Data.Name != want {
				t.Errorf("along with %s it is called %q, want %q; %v", what, o.Data.Name, want, err)
			}
		}
		change("Second")
		first := "First"
		if db.Engine == testdb.SQLite {
			first = "Second" // where nothing is gained, nothing is asked for
		}
		for _, want := range []string{first, "Second"} {
			if o, err := org.Kind.Read(ctx, s, "org_1"); err != nil || o.Data.Name != want {
				t.Errorf("it is called %q, want %q; %v", o.Data.Name, want, err)
			}
		}
		for range 2 {
			if o, err := org.Kind.Read(ctx, s, "org_2"); o != nil || err != nil {
				t.Errorf("one that does not exist: %v, %v", o, err)
			}
		}
	})
}
