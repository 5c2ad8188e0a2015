package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func hashOf(n int) []byte { return fmt.Appendf(nil, "$argon2id$v=19$hash %d", n) }

func putHash(t *testing.T, s *Store, n int) {
	t.Helper()
	err := s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: event.PasswordOf(fmt.Sprint("usr_", n)), Value: hashOf(n)})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func wantHash(t *testing.T, s *Store, n int) {
	t.Helper()
	row, err := s.Row(t.Context(), event.PasswordOf(fmt.Sprint("usr_", n)))
	if err != nil || row == nil || !bytes.Equal(row.Value, hashOf(n)) {
		t.Errorf("the hash of %d is %v (%v)", n, row, err)
	}
	err = s.Do(t.Context(), event.Command{
		Rows: []event.RowKey{event.PasswordOf(fmt.Sprint("usr_", n))},
		Decide: func(tx *event.Tx) error {
			row, err := tx.Row(event.PasswordOf(fmt.Sprint("usr_", n)))
			if err == nil && (row == nil || !bytes.Equal(row.Value, hashOf(n))) {
				err = fmt.Errorf("inside a command the hash of %d is %v", n, row)
			}
			return err
		},
	})
	if err != nil {
		t.Error(err)
	}
}

func plain(t *testing.T, s *Store) int {
	t.Helper()
	n, err := CountPlainHashes(t.Context(), s.engine)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// behind changes rows behind the store's back.
func behind(t *testing.T, s *Store, statement string, args ...any) {
	t.Helper()
	if err := s.engine.Transact(t.Context(),
		func(x engine.Executor) error { return x.Exec(t.Context(), statement, args...) }); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordHashesAreStoredSealed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey()}
		s := opened(t, options)
		for n := range 3 {
			putHash(t, s, n)
			wantHash(t, s, n)
		}
		if n := plain(t, s); n != 0 {
			t.Errorf("%d hashes are not sealed", n)
		}
		s.Close()
		s = opened(t, options)
		wantHash(t, s, 0)
		s.Close()

		// A sealed hash opens nothing in the place of another user, nor what is a row of another kind in the place of a
		// hash.
		s = opened(t, options)
		behind(t, s, "UPDATE secrets SET value = (SELECT value FROM secrets WHERE key = 'usr_0/password') WHERE key = 'usr_1/password'")
		behind(t, s, "INSERT INTO secrets (key, value, expires) SELECT 'usr_2/old', value, 0 FROM secrets WHERE key = 'usr_2/password'")
		behind(t, s, "DELETE FROM secrets WHERE key = 'usr_2/password'")
		behind(t, s, "UPDATE secrets SET key = 'usr_3/password' WHERE key = 'usr_2/old'")
		s.Close()
		s = opened(t, options)
		for _, id := range []string{"usr_1", "usr_3"} {
			row, err := s.Row(t.Context(), event.PasswordOf(id))
			if err != nil || row == nil ||
				bytes.Contains(row.Value, []byte("$")) && bytes.Contains(row.Value, []byte("argon")) {
				t.Fatalf("the hash of %s is %v (%v)", id, row, err)
			}
			if right, _, err := secret.NewCheapHasher().Verify(t.Context(), row.Value, "anything"); right ||
				!errors.Is(err, secret.ErrUnusableHash) {
				t.Errorf("it is taken for a hash: %v %v", right, err)
			}
		}
		wantHash(t, s, 0)
	})
}

func opened(t *testing.T, o Options) *Store {
	t.Helper()
	s, _, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestPasswordHashesThatStandAreSealedInTheBackground, also those that a pass has left that was cut off.
func TestPasswordHashesThatStandAreSealedInTheBackground(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
			FactVersion: event.SealedRows - 1}
		s := opened(t, options)
		const hashes = hashesSealed*2 + 20
		for n := range hashes {
			putHash(t, s, n)
			behind(t, s, "INSERT INTO secrets (key, value, expires) VALUES (?, ?, 0)", fmt.Sprint("usr_", n, "/secret"),
				[]byte("not guessable"))
		}
		wantHash(t, s, 1)
		if n := plain(t, s); n != hashes {
			t.Fatalf("%d of %d hashes are as an older node reads them", n, hashes)
		}
		s.Close()

		// It is cut off after the first step.
		var once cutOff
		options.FactVersion, options.wrap = 0, once.engine
		s = opened(t, options)
		testkit.Await(t, "one step is done", func() bool { return plain(t, s) == hashes-hashesSealed })
		s.Close()
		var again passes
		options.wrap = again.engine
		s = opened(t, options)
		testkit.Await(t, "all are sealed", func() bool { return plain(t, s) == 0 })
		testkit.Receive(t, s.hashes, "the pass is over")
		if again.steps.Load() == 0 {
			t.Error("no pass after one that was cut off")
		}
		for n := range hashes {
			wantHash(t, s, n)
		}
		kept := 0
		if err := s.engine.Query(t.Context(), "SELECT count(*) FROM secrets WHERE value = ?",
			[]any{[]byte("not guessable")}, func(scan engine.Scanner) error { return scan(&kept) }); err != nil ||
			kept != hashes {
			t.Errorf("of %d other secrets %d are as they were (%v)", hashes, kept, err)
		}
	})
}

// passes is an engine that counts how often secrets are looked at to seal them.
type passes struct {
	engine.Engine
	steps atomic.Int64
}

func (p *passes) engine(e engine.Engine) engine.Engine {
	p.Engine = e
	return p
}

func (p *passes) Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error {
	if strings.Contains(sql, "FROM secrets WHERE key >") {
		p.steps.Add(1)
	}
	return p.Engine.Query(ctx, sql, args, each)
}

// looked opens a store, waits until it has sealed what there is, closes it, and tells whether it has looked at the
// secrets.
func looked(t *testing.T, o Options) bool {
	t.Helper()
	var count passes
	o.wrap = count.engine
	s := opened(t, o)
	testkit.Receive(t, s.hashes, "the pass is over")
	if n := plain(t, s); n != 0 {
		t.Errorf("%d hashes are not sealed", n)
	}
	s.Close()
	return count.steps.Load() > 0
}

// TestTheLastPassOverHashesIsRemembered: a start does not read all secrets where nothing is left to seal. A database
// from before, such as a restored backup, knows of no pass.
func TestTheLastPassOverHashesIsRemembered(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
			FactVersion: event.SealedRows - 1}
		s := opened(t, options)
		putHash(t, s, 1)
		s.Close()
		options.FactVersion = 0
		if !looked(t, options) {
			t.Error("the first start makes no pass")
		}
		if looked(t, options) {
			t.Error("a start after a whole pass makes another one")
		}
		s = opened(t, options)
		wantHash(t, s, 1)
		behind(t, s, "DELETE FROM meta WHERE name = ?", hashesDone)
		s.Close()
		if !looked(t, options) || looked(t, options) {
			t.Error("a database that knows of no pass gets one, once")
		}
	})
}

// cutOff is an engine on which nothing is written any more after the first step of sealing.
type cutOff struct {
	engine.Engine
	steps int
}

func (c *cutOff) engine(e engine.Engine) engine.Engine {
	c.Engine = e
	return c
}

func (c *cutOff) Commit(ctx context.Context, changes *event.Changes) error {
	if len(changes.Updates) == hashesSealed {
		if c.steps++; c.steps > 1 {
			return errors.New("the machine is off")
		}
	}
	return c.Engine.Commit(ctx, changes)
}

// TestNothingIsSealedBesideAnOlderNode: it could not read that.
func TestNothingIsSealedBesideAnOlderNode(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	log := &testkit.Log{}
	options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
		FactVersion: event.SealedRows - 1, Log: slog.New(slog.NewTextHandler(log, nil))}
	older := opened(t, options)
	putHash(t, older, 1)
	options.FactVersion = 0
	newer := opened(t, options)
	putHash(t, newer, 2)
	if n := plain(t, newer); n != 2 {
		t.Errorf("%d hashes are as the older node reads them", n)
	}
	older.Close()
	testkit.Await(t, "all are sealed", func() bool { return plain(t, newer) == 0 })
	wantHash(t, newer, 1)
	wantHash(t, newer, 2)
	if _, _, err := Open(t.Context(),
		Options{Database: db.URL, Kinds: options.Kinds, Master: options.Master,
			FactVersion: event.SealedRows - 1}); err == nil {
		t.Error("a node starts that cannot read the hashes")
	}
	// Others may not have noticed at once that they can seal, so its pass is not the last one.
	testkit.Receive(t, newer.hashes, "the pass is over")
	newer.Close()
	if !looked(t, options) || looked(t, options) {
		t.Error("of the starts that follow, the first one makes a pass")
	}
}

// BenchmarkOpeningAHash is what a sign-in costs more: some hundred nanoseconds.
func BenchmarkOpeningAHash(b *testing.B) {
	root := secret.NewMasterKey()
	key := event.PasswordOf("usr_01a1ebfcd09073aca473d8963a65fd7e")
	hash := []byte("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b1dWRWJTmaaJObGRdescudvJCs")
	batch := event.NewBatch(root, 0, event.Loaded{FactVersion: event.SealedRows})
	if err := batch.Run(&event.Command{Decide: func(tx *event.Tx) error {
		tx.PutRow(event.Row{RowKey: key, Value: hash})
		return nil
	}}); err != nil {
		b.Fatal(err)
	}
	stored := batch.Changes().Put[0]
	if bytes.Contains(stored.Value, []byte("argon")) {
		b.Fatal("it is not sealed")
	}
	for b.Loop() {
		if !bytes.Equal(stored.Open(root).Value, hash) {
			b.Fatal("it does not open")
		}
	}
}
