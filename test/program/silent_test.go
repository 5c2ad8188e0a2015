package program

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// A database that goes silent in the middle of everything: another host of the address takes over, and then none does
// until it is back. Whatever was acknowledged is there afterwards, readiness is true to it, and the server is never
// restarted.
func TestASilentDatabaseUnderLoad(t *testing.T) {
	t.Parallel()
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, database testdb.Database) {
		first, second := testdb.NewWire(t, database), testdb.NewWire(t, database)
		u, err := url.Parse(database.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = first.Host() + "," + second.Host()
		// the server behind the wire is well: it keeps the locks of who was cut off for so long
		u.RawQuery += "&idle_in_transaction_session_timeout=2s"
		s := newSite(t, testdb.Database{Engine: testdb.Postgres, URL: u.String()})
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, admin.Token)
		w := writeThrough(t, c, 4)
		said := ""
		ready := func() bool {
			began := time.Now()
			status, answer, err := c.do(t.Context(), "GET", "/readyz", nil)
			if took := time.Since(began); err != nil || took > time.Minute {
				t.Errorf("/readyz after %v: %v", took, err)
			}
			if message := fmt.Sprint(answer["message"]); status == 503 && message != said {
				said = message
				t.Log(said)
			}
			return status == 200
		}
		w.more(t)
		first.Freeze()
		began := time.Now()
		w.more(t) // at the other host
		t.Logf("written at the other host %v after the first went silent", time.Since(began).Round(10*time.Millisecond))
		second.Freeze()
		testkit.Await(t, "the server is not ready", func() bool { return !ready() })
		first.Resume()
		began = time.Now()
		w.more(t) // it is back
		t.Logf("written %v after the first was back", time.Since(began).Round(10*time.Millisecond))
		testkit.Await(t, "the server is ready again", ready)
		second.Resume()
		w.more(t)
		w.end(t, p)
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
		s.verified(t)
		t.Log(w)
	})
}
