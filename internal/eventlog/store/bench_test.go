//go:build unix

package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
)

// account is about as large as a user.
type account struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Phone string `json:"phone"`
	Count int    `json:"count"`
}

type profileChanged struct {
	Personal struct {
		Name  string `json:"name"`
		Email string `json:"email"`
		Phone string `json:"phone"`
	} `json:"-"`
}

func (profileChanged) EventType() event.Type { return "user.profile_changed.v1" }

func (f profileChanged) Apply(a *account) {
	a.Name, a.Email, a.Phone, a.Count = f.Personal.Name, f.Personal.Email, f.Personal.Phone, a.Count+1
}

var accounts = event.Define(event.Schema[account]{
	Name: "user", Table: "users", Prefix: "usr", Shape: 1,
	Facts:   []event.Fact[account]{profileChanged{}},
	Columns: []string{event.Standing, "verified_email"},
	Lookup:  func(o *event.Object[account]) []string { return []string{"{}", o.Data.Email} },
	Claims: func(o *event.Object[account]) []event.Claim {
		return []event.Claim{{Space: "user_name/org_1", Key: o.ID}}
	},
})

// BenchmarkDo has 64 callers change 1000 users, one fact with about 200 bytes of personal data at a time.
func BenchmarkDo(b *testing.B) {
	const pooled = "behind PgBouncer"
	for _, engine := range []string{testdb.SQLite, testdb.Postgres, pooled} {
		b.Run(engine, func(b *testing.B) {
			var db testdb.Database
			if engine == pooled {
				db = testdb.Pooled(b, testdb.New(b, testdb.Postgres))
			} else {
				db = testdb.New(b, engine)
			}
			s, _, err := store.Open(b.Context(),
				store.Options{Database: db.URL, Kinds: []event.Definition{accounts}, Master: secret.NewMasterKey()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() })
			const callers, objects = 64, 1000
			each := func(n int, do func(i int)) {
				var next atomic.Int64
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
							do(i)
						}
					})
				}
				all.Wait()
			}
			fact := profileChanged{}
			fact.Personal.Name, fact.Personal.Email = strings.Repeat("n", 60), strings.Repeat("e", 60)+"@example.org"
			fact.Personal.Phone = "+" + strings.Repeat("1", 30)
			change := func(id string, create bool) {
				c := event.Command{Origin: event.Origin{Actor: "usr_0", RequestID: "req_0"},
					Write: []event.Ref{accounts.Ref(id)}}
				if create {
					c.Claims = []event.Claim{{Space: "user_name/org_1", Key: id}}
				}
				c.Decide = func(tx *event.Tx) error {
					if create {
						_, err := accounts.Create(tx, id, "org_1", fact)
						return err
					}
					o, err := accounts.Get(tx, id)
					if err != nil {
						return err
					}
					return o.Append(fact)
				}
				if err := s.Do(context.Background(), c); err != nil {
					b.Error(err)
				}
			}
			ids := make([]string, objects)
			for i := range ids {
				ids[i] = fmt.Sprintf("usr_%032d", i)
			}
			each(objects, func(i int) { change(ids[i], true) })

			b.ReportAllocs()
			before := cpuTime(b)
			b.ResetTimer()
			each(b.N, func(i int) { change(ids[i*7919%objects], false) })
			b.StopTimer()
			b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

// cpuTime is what this process has used, in nanoseconds; a PostgreSQL server's share is not in it.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
