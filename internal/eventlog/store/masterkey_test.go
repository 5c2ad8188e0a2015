package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// TestTheRootKeyStays whatever master key comes and goes, also in a database from before there was one: there the first
// master key is the root.
func TestTheRootKeyStays(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		first := secret.NewMasterKey()
		open := func(key secret.MasterKey) *Store {
			t.Helper()
			s, _, err := Open(t.Context(), Options{Database: db.URL, Master: key})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open(first)
		err := s.engine.Transact(t.Context(), func(x engine.Executor) error {
			if err := x.Exec(t.Context(), "DELETE FROM checkpoints"); err != nil {
				return err
			}
			return x.Exec(t.Context(), "DELETE FROM meta WHERE name = ?", rootKey)
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		for key := range 3 {
			next := secret.NewMasterKey()
			s := open(first)
			if key == 0 && !bytes.Equal(s.RootKey().Text(), first.Text()) {
				t.Error("the root of an old database is not its master key")
			}
			root := s.RootKey()
			if err := errors.Join(s.RotateMasterKey(t.Context(), next), s.Close()); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Open(t.Context(), Options{Database: db.URL, Master: first}); !errors.Is(err, ErrWrongKey) {
				t.Errorf("the old key: %v", err)
			}
			for _, c := range []struct {
				key  secret.MasterKey
				want bool
			}{{first, false}, {next, true}} {
				if fits, err := Fits(t.Context(), db.URL, c.key); err != nil || fits != c.want {
					t.Errorf("fits: %t, %v", fits, err)
				}
			}
			s = open(next)
			if !bytes.Equal(s.RootKey().Text(), root.Text()) {
				t.Error("the root key changed")
			}
			s.Close()
			first = next
		}
	})
}
