package program

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
)

// A database that goes silent in the middle of everything: another host of the address takes over, and then none does until it is back. Whatever was
// acknowledged is there afterwards, readiness is true to it, and the server is never restarted.
func TestASilentDatabaseUnderLoad(t *testing.T) {
	t.Parallel()
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
		first, second := testdb.NewWire(t, database), testdb.NewWire(t, database)
		u, err := url.Parse(database.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = first.Host() + "," + second.Host()
		u.RawQuery += "&idle_in_transaction_session_timeout=2s" // the server behind the wire is well: it keeps the locks of who was cut off for so long
		s := newSite(t, testdb.Database{Engine: testdb.Postgres, URL: u.String()})
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, admin.Token)
		load := &load{}
		for i := range 2 {
			created := c.want(t, 200, "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("Load ", i)))
			path := "/v1/idps/" + at[string](t, created, "idpId")
			load.add(&register{token: admin.Token, write: path, read: path, body: func(value string) object { return object{"name": value} }, object: "idp", value: []string{"name"}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writers sync.WaitGroup
		var refused atomic.Int64
		for i := range 4 {
			r := load.registers[i%2]
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					value := fmt.Sprintf("writer %d value %d", i, n)
					r.mu.Lock()
					r.open[value] = true
					r.mu.Unlock()
					switch status, answer, err := c.do(ctx, "PUT", r.write, r.body(value)); {
					case ctx.Err() != nil:
					case err == nil && status == 200:
						r.acknowledge(t, value, answer)
						load.acknowledged.Add(1)
					case err == nil && (status == 503 || status == 504 || status == 409):
						refused.Add(1)
					default:
						t.Errorf("status %d, %v %v", status, answer, err)
					}
				}
			})
		}
		more := func() { t.Helper(); awaitCount(t, &load.acknowledged, load.acknowledged.Load()+20) }
		ready := func() bool {
			began := time.Now()
			status, answer, err := c.do(ctx, "GET", "/readyz", nil)
			if took := time.Since(began); err != nil || took > 5*time.Second { // a second, on a machine that has time
				t.Errorf("/readyz after %v: %v", took, err)
			}
			if status == 503 {
				t.Log(answer["message"])
			}
			return status == 200
		}
		more()
		first.Freeze()
		began := time.Now()
		more() // at the other host
		t.Logf("written at the other host %v after the first went silent", time.Since(began).Round(10*time.Millisecond))
		second.Freeze()
		for ready() {
		}
		first.Resume()
		began = time.Now()
		more() // it is back
		t.Logf("written %v after the first was back", time.Since(began).Round(10*time.Millisecond))
		for !ready() {
		}
		second.Resume()
		more()
		cancel()
		writers.Wait()
		load.check(t, p, admin.Token)
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
		s.verified(t)
		t.Logf("%d acknowledged, %d refused", load.acknowledged.Load(), refused.Load())
	})
}
