package signing_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// house is an installation's database, with the one clock of its nodes.
type house struct {
	*eventtest.Nodes
	t *testing.T
}

func newHouse(t *testing.T, db testdb.Database) *house {
	return &house{eventtest.NewNodes(db, model.Kinds...), t}
}

// nodes are several that share the database. The embedded one has a single process.
func (h *house) nodes(n int) (nodes []*signing.Keys) {
	h.t.Helper()
	s := h.Open(h.t)
	for range n {
		nodes = append(nodes, signing.New(s, h.Master, h.Clock.Now))
		if h.Engine == testdb.Postgres {
			s = h.Open(h.t)
		}
	}
	return nodes
}

func (h *house) published(k *signing.Keys) (ids []string) {
	h.t.Helper()
	set, _, err := k.KeySet(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, key := range set.Keys {
		ids = append(ids, key.KeyID)
	}
	return ids
}

// together lets all nodes do something at the same time.
func (h *house) together(nodes []*signing.Keys, do func(ctx context.Context, k *signing.Keys) error) {
	h.t.Helper()
	var all sync.WaitGroup
	for range 2 {
		for _, k := range nodes {
			all.Go(func() {
				if err := do(h.t.Context(), k); err != nil {
					h.t.Error(err)
				}
			})
		}
	}
	all.Wait()
}

func TestNodesAgreeOnTheirKeys(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		h := newHouse(t, db)
		nodes := h.nodes(3)
		sign := func(ctx context.Context, k *signing.Keys) error {
			for _, alg := range []string{"ES256", "RS256"} {
				token, err := k.Sign(ctx, alg, "JWT", map[string]int{"a": 1})
				if err != nil {
					return err
				}
				for _, other := range nodes {
					if err := other.Verify(ctx, "JWT", token, &map[string]int{}); err != nil {
						return err
					}
				}
			}
			return nil
		}
		agree := func(want int) []string {
			t.Helper()
			h.Clock.Advance(10 * time.Second)
			first := h.published(nodes[0])
			for _, k := range nodes {
				if ids := h.published(k); len(ids) != want || !slices.Equal(ids, first) {
					t.Fatalf("published %q and %q, want %d", ids, first, want)
				}
			}
			return first
		}
		h.together(nodes, func(ctx context.Context, k *signing.Keys) error { return k.Tend(ctx) })
		agree(1)
		h.Clock.Advance(time.Second) // so that a key of another node is looked for
		for _, k := range nodes {
			if _, err := k.Sign(t.Context(), "RS256", "JWT", 1); err != nil {
				t.Fatal(err)
			}
		}
		old := agree(2)
		h.together(nodes, sign)
		h.Clock.Advance(signing.Period)
		h.together(nodes, func(ctx context.Context, k *signing.Keys) error { return k.Tend(ctx) })
		agree(4)
		h.Clock.Advance(signing.Lead)
		h.together(nodes, sign)
		h.Clock.Advance(signing.Keep)
		h.together(nodes, func(ctx context.Context, k *signing.Keys) error { return k.Tend(ctx) })
		for _, id := range agree(2) {
			if slices.Contains(old, id) {
				t.Errorf("%s is still published", id)
			}
		}
		h.together(nodes, sign)
		if db.Engine != testdb.Postgres {
			return // another look at the database needs another process
		}
		report, err := h.Open(h.t).RebuildCheck(t.Context())
		if err != nil || len(report.Differences) > 0 {
			t.Errorf("the state does not match the log: %v, %v", report.Differences, err)
		}
	})
}

func TestKeysOutliveARestart(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		h := newHouse(t, db)
		s := h.Open(h.t)
		before := signing.New(s, h.Master, h.Clock.Now)
		var tokens []string
		for _, alg := range []string{"ES256", "RS256"} {
			token, err := before.Sign(t.Context(), alg, "JWT", map[string]string{"sub": "usr_a"})
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, token)
		}
		ids := h.published(before)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		after := signing.New(h.Open(h.t), h.Master, h.Clock.Now)
		if got := h.published(after); !slices.Equal(got, ids) {
			t.Errorf("published %q, before %q", got, ids)
		}
		for _, token := range tokens {
			var got map[string]string
			if err := after.Verify(t.Context(), "JWT", token, &got); err != nil || got["sub"] != "usr_a" {
				t.Errorf("got %v, %v", got, err)
			}
		}
		if _, err := after.Sign(t.Context(), "RS256", "JWT", 1); err != nil || len(h.published(after)) != 2 {
			t.Errorf("it signs with another key: %v", err)
		}
	})
}

// A private half must not be found in the clear, in no table and in no form. What is searched for is what it opens to.
func TestPrivateHalvesAreWrappedAtRest(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		h := newHouse(t, db)
		s := h.Open(h.t)
		keys := signing.New(s, h.Master, h.Clock.Now)
		for _, alg := range []string{"ES256", "RS256"} {
			if _, err := keys.Sign(t.Context(), alg, "JWT", 1); err != nil {
				t.Fatal(err)
			}
		}
		var needles [][]byte
		var wrapped []byte
		for _, id := range h.published(keys) {
			row, err := s.Row(t.Context(), signing.PrivateRow(id))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := h.Master.Unwrap("signing key", row.Value, []byte(id))
			if err != nil {
				t.Fatal(err)
			}
			private, err := x509.ParsePKCS8PrivateKey(plain)
			if err != nil {
				t.Fatal(err)
			}
			switch private := private.(type) {
			case *ecdsa.PrivateKey:
				scalar, err := private.Bytes()
				if err != nil {
					t.Fatal(err)
				}
				needles, wrapped = append(needles, scalar), row.Value
			case *rsa.PrivateKey: // in pieces: pages of a database may cut it up
				needles = slices.AppendSeq(needles, slices.Chunk(private.D.Bytes(), 32))
				needles = slices.AppendSeq(needles, slices.Chunk(private.Primes[0].Bytes(), 32))
			}
		}
		needles = slices.DeleteFunc(needles, func(n []byte) bool { return len(n) < 16 })
		if len(needles) < 10 {
			t.Fatalf("%d things to look for", len(needles))
		}
		stored := everything(t, s, db)
		if !bytes.Contains(stored, wrapped) {
			t.Fatal("not even the wrapped half is there: this looks in the wrong place")
		}
		for _, needle := range needles {
			for form, text := range map[string][]byte{"as it is": needle, "in hex": []byte(hex.EncodeToString(needle)),
				"in base64":          []byte(base64.RawStdEncoding.EncodeToString(needle)),
				"in base64 for URLs": []byte(base64.RawURLEncoding.EncodeToString(needle))} {
				if bytes.Contains(stored, text) {
					t.Errorf("a private half is in the database %s", form)
				}
			}
		}
	})
}

// everything that a database holds about keys, byte for byte.
func everything(t *testing.T, s *store.Store, db testdb.Database) (all []byte) {
	t.Helper()
	if db.Engine == testdb.SQLite {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		paths, err := filepath.Glob(filepath.Join(filepath.Dir(db.URL), "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		return all
	}
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, query := range []string{"SELECT value FROM secrets", "SELECT convert_to(payload, 'UTF8') FROM events",
		"SELECT sealed FROM events",
		"SELECT convert_to(doc, 'UTF8') FROM signing", "SELECT value FROM flows", "SELECT value FROM idempotency"} {
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		values, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, bytes.Join(values, nil)...)
	}
	return all
}

// The first sign-ins of applications that take RS256 can come at the same time.
func TestOfManyFirstSignaturesNoneFails(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		h := newHouse(t, db)
		nodes := h.nodes(1)
		if err := nodes[0].Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[0].Sign(t.Context(), "ES256", "JWT", 1); err != nil { // the list is known
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := nodes[0].Sign(t.Context(), "RS256", "JWT", 1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		h.Clock.Advance(10 * time.Second)
		if ids := h.published(nodes[0]); len(ids) != 2 {
			t.Errorf("published %q", ids)
		}
	})
}
