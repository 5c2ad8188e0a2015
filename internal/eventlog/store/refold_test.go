package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// shapes counts the things of a shape.
func shapes(t *testing.T, s *Store, shape int) (n int) {
	t.Helper()
	err := s.engine.Query(t.Context(), "SELECT count(*) FROM sign_ins WHERE shape = ?", []any{int64(shape)},
		func(scan engine.Scanner) error { return scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestObjectsGetTheirNewShapeWhenTheLastOlderNodeIsGone: until then the older node changes what no newer one has
// changed.
func TestObjectsGetTheirNewShapeWhenTheLastOlderNodeIsGone(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey(),
		FactVersion: event.FactVersion - 1}
	older, _, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	for i := range 120 { // some steps
		if err := older.Do(t.Context(), oldName(fmt.Sprintf("x_%03d", i), fmt.Sprint("name ", i))); err != nil {
			t.Fatal(err)
		}
	}
	log := &testkit.Log{}
	options.Kinds, options.FactVersion, options.Log = []event.Definition{newThings}, 0,
		slog.New(slog.NewTextHandler(log, nil))
	newer, _, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	testkit.Await(t, "the newer node says what it waits for",
		func() bool { return strings.Contains(log.String(), "the last node of the version before") })
	for i, s := range []*Store{older, newer, newer} {
		c := newName("x_001", fmt.Sprint("try ", i), nil)
		if s == older {
			c = oldName("x_000", "still")
		}
		if err := s.Do(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if n := shapes(t, newer, 1); n != 119 {
		t.Errorf("%d objects have the older shape", n)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "every object has its new shape", func() bool { return shapes(t, newer, 1) == 0 })
	if id := claimed(t, newer, "name 77"); id != "x_077" {
		t.Errorf("the name is held by %q", id)
	}
	if report, err := newer.RebuildCheck(t.Context()); err != nil || len(report.Differences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestABrokenObjectDoesNotKeepTheOthersFromTheirNewShape, in the background; a start says so instead.
func TestABrokenObjectDoesNotKeepTheOthersFromTheirNewShape(t *testing.T) {
	ctx := context.Background()
	log := &testkit.Log{}
	options := Options{Database: testdb.New(t, testdb.Postgres).URL, Kinds: []event.Definition{oldThings},
		Master: secret.NewMasterKey()}
	older, _, err := Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	for i := range 120 {
		if err := older.Do(ctx, oldName(fmt.Sprintf("x_%03d", i), fmt.Sprint("name ", i))); err != nil {
			t.Fatal(err)
		}
	}
	err = older.engine.Transact(ctx, func(x engine.Executor) error {
		return x.Exec(ctx, "UPDATE events SET type = 'sign_in.unknown.v9' WHERE object_id IN ('x_007', 'x_070')")
	})
	if err != nil {
		t.Fatal(err)
	}
	options.Kinds, options.Log = []event.Definition{newThings}, slog.New(slog.NewTextHandler(log, nil))
	newer, _, err := Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	testkit.Await(t, "the folding ends", func() bool { return strings.Contains(log.String(), "objects=118 broken=2") })
	for _, id := range []string{"x_007", "x_070"} {
		if n := bytes.Count([]byte(log.String()), []byte("object="+id)); n != 1 {
			t.Errorf("%s is named %d times", id, n)
		}
	}
	if n := shapes(t, newer, 1); n != 2 {
		t.Errorf("%d objects have the older shape", n)
	}
	newer.Close()
	older.Close()
	if _, _, err := Open(ctx, options); err == nil || !strings.Contains(err.Error(), "x_007") {
		t.Errorf("a start alone: %v", err)
	}
}
