package store

import (
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// A start looks at a database before it knows the key, and goes on with the connections that it made for that.
func TestALookStaysForTheStore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		fine := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		o := Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()}
		for _, filled := range []bool{false, true} {
			look, err := LookAt(t.Context(), o)
			fine(err)
			if look.Filled != filled {
				t.Fatalf("filled: %v", look.Filled)
			}
			with := o
			with.Look = look
			s, created, err := Open(t.Context(), with)
			fine(err)
			if created == filled {
				t.Errorf("created: %v", created)
			}
			fine(look.Close()) // it is the store's by now
			fine(s.Ping(t.Context()))
			fine(s.Close())
		}
		look, err := LookAt(t.Context(), o)
		fine(err)
		wrong := o
		wrong.Look, wrong.Master = look, secret.NewMasterKey()
		if _, _, err := Open(t.Context(), wrong); !errors.Is(err, ErrWrongKey) {
			t.Errorf("with another key: %v", err)
		}
		look, err = LookAt(t.Context(), o)
		fine(err)
		fine(look.Close())
		fine(look.Close())
	})
}
