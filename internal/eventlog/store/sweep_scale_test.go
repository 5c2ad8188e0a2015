package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
)

// steps notes how large the transactions are that a sweep runs.
type steps struct {
	engine.Engine
	most int
}

func (e *steps) Transact(ctx context.Context, f func(engine.Executor) error) error {
	x := &counting{}
	err := e.Engine.Transact(ctx, func(to engine.Executor) error {
		x.Executor = to
		return f(x)
	})
	e.most = max(e.most, x.rows)
	return err
}

type counting struct {
	engine.Executor
	rows int
}

func (x *counting) Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error {
	return x.Executor.Query(ctx, sql, args, func(scan engine.Scanner) error {
		x.rows++
		return each(scan)
	})
}

// TestScaleManyExpiredRowsGoWhileOthersWrite: nobody who writes waits for long because much has expired at once.
func TestScaleManyExpiredRowsGoWhileOthersWrite(t *testing.T) {
	expired := 2_000
	if os.Getenv("SIGNET_SCALE") != "" {
		expired = 100_000
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		late := make(chan struct{})
		clock := func() time.Time {
			select {
			case <-late:
				return now.Add(48 * time.Hour)
			default:
				return now
			}
		}
		counted := &steps{}
		s, _, err := Open(t.Context(), Options{
			Database:      db.URL,
			Master:        secret.NewMasterKey(),
			Clock:         clock,
			SweepInterval: time.Hour,
			wrap:          func(e engine.Engine) engine.Engine { counted.Engine = e; return counted },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := 0; n < expired; {
			err := s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
				for range 1000 {
					hour := tx.Now() + time.Hour.Microseconds()
					hash := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(n))
					switch n % 4 {
					case 0, 1: // sessions
						tx.PutToken(event.Token{ID: fmt.Sprint("tok_", n), Hash: hash, Kind: "session",
							UserID: fmt.Sprint("usr_", n%5000), Expires: hour})
					case 2: // codes
						tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Secrets,
							Key: fmt.Sprint("usr_", n, "/code")}, Value: hash, Expires: hour})
					default:
						tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Flows, Key: fmt.Sprint("code/", n)},
							Value: make([]byte, 300), Expires: hour})
					}
					n++
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		write := func(n int) time.Duration {
			began := time.Now()
			err := s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
				tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Secrets, Key: fmt.Sprint("live", n)},
					Value: []byte("kept")})
				return nil
			}})
			if err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		var quiet, busy []time.Duration
		for n := range 200 {
			quiet = append(quiet, write(n))
		}
		close(late)
		counted.most = 0 // what the start did does not count
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.sweep(context.WithoutCancel(t.Context()), time.Minute) }()
		for n, running := 200, true; running; n++ {
			busy = append(busy, write(n))
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				running = false
			default:
			}
		}
		took := time.Since(began)
		left := 0
		for _, table := range []string{"tokens", "flows", "secrets"} {
			err := s.engine.Query(t.Context(), "SELECT count(*) FROM "+table+" WHERE expires > 0", nil,
				func(scan engine.Scanner) error {
					var n int
					err := scan(&n)
					left += n
					return err
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		if left != 0 {
			t.Errorf("%d are left", left)
		}
		t.Logf("%d expired rows went in %v; a writer beside it: p50 %v, p99 %v, longest %v over %d writes; alone: p50 %v, p99 %v", expired, took.Round(time.Millisecond),
			part(busy, 50), part(busy, 99), part(busy, 100), len(busy), part(quiet, 50), part(quiet, 99))
		// Each write waits for one small step at most, and most of the time for none.
		if counted.most > 200 {
			t.Errorf("up to %d rows in one transaction", counted.most)
		}
	})
}

// part gives the duration that so many percent stay within.
func part(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(time.Microsecond)
}
