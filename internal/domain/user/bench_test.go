//go:build unix

package user_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
)

// BenchmarkReplaceProfile has callers change their own names, or their nicknames alone.
func BenchmarkReplaceProfile(b *testing.B) {
	for _, engine := range []string{testdb.SQLite, testdb.Postgres} {
		for _, what := range []string{"name", "nickname"} {
			for _, callers := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/%s/%d", engine, what, callers),
					func(b *testing.B) { replaceProfiles(b, engine, what, callers) })
			}
		}
	}
}

func replaceProfiles(b *testing.B, engine, what string, callers int) {
	const people = 64
	db := testdb.New(b, engine)
	s, _, err := store.Open(b.Context(),
		store.Options{Database: db.URL, Kinds: []event.Definition{user.Kind}, Master: secret.NewMasterKey()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	who := make([]*access.Caller, people)
	for i := range who {
		who[i] = &access.Caller{UserID: fmt.Sprintf("usr_%032d", i), OrgID: fmt.Sprintf("org_%032d", i),
			RequestID: "req_0"}
		n := jo
		n.Email = fmt.Sprintf("jo%d@example.org", i)
		must(b, s.Do(b.Context(), event.Command{Write: []event.Ref{user.Kind.Ref(who[i].UserID)},
			Claims: []event.Claim{user.NameClaim(who[i].OrgID, strings.ToLower(n.UserName))},
			Decide: func(tx *event.Tx) error {
				_, err := user.AddHuman(tx, who[i].UserID, who[i].OrgID, &n)
				return err
			}}))
	}
	var next atomic.Int64
	b.ReportAllocs()
	before := processorTime(b)
	b.ResetTimer()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
				p := jo.Profile
				p.NickName = fmt.Sprintf("nick %010d", i)
				if what == "name" {
					p.DisplayName = fmt.Sprintf("Johanna Beispiel %010d", i)
				}
				if _, err := user.ReplaceProfile(context.Background(), s, who[i%people], event.IfMatch{},
					p); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/1e3/float64(b.N), "cpu-µs/op")
}

// processorTime is what this process has used, in nanoseconds; that of a PostgreSQL server is not in it.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
