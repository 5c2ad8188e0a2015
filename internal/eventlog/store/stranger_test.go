package store

import (
	"runtime"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// What does not exist is remembered. Whoever asks for identifiers as long as a request may be would fill the memory
// with them.
func TestLongIdentifiersAreNotKeptInMemory(t *testing.T) {
	const size, many = 1 << 20, 64
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, _, err := Open(t.Context(), Options{Database: db.URL, Kinds: model.Kinds, Master: secret.NewMasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		held := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := held()
		for i := range many {
			ref := user.Kind.Ref(strings.Repeat(string(rune('A'+i%60)), size+i))
			if r, err := s.Record(t.Context(), ref); r != nil || err != nil {
				t.Fatalf("reading: %v, %v", r, err)
			}
			if err := s.Do(t.Context(), event.Command{Read: []event.Ref{ref}, Decide: func(tx *event.Tx) error {
				if u, err := user.Kind.Get(tx, ref.ID); u != nil || err != nil {
					t.Errorf("deciding: %v, %v", u, err)
				}
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
		}
		if after := held(); after > before+many*size/2 {
			t.Errorf("%d MiB stay in memory", (after-before)>>20)
		}
	})
}
