package main

import (
	"path/filepath"
	"testing"
	"time"
)

// The floor of a write is one event, one changed state row and one changed index entry, in tables of its own, whatever
// the server's tables have become.
func TestTheFloorOfWritesIsFixed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "floor.db")
	f, err := openRawSQLite(t.Context(), file, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	number := func(query string) (n int) {
		t.Helper()
		if err := f.conn.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := number("SELECT total_changes()")
	if err := f.transaction([]*rawWrite{{id: floorID(0)}, {id: floorID(1)}, {id: floorID(1)}}); err != nil {
		t.Fatal(err)
	}
	if got := number("SELECT total_changes()") - before; got != 6 {
		t.Errorf("three writes changed %d rows", got)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM sqlite_schema WHERE type = 'table'":                                                   2,
		"SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL":                               1,
		"SELECT count(*) FROM floor_events WHERE length(body) = 640":                                                3,
		"SELECT count(*) FROM floor_states WHERE length(body) = 640 AND length(name) = 24":                          2,
		"SELECT count(*) FROM floor_states WHERE id = '" + floorID(1) + "' AND sequence = 3 AND name LIKE '% %003'": 1,
	} {
		if got := number(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	got, err := longEnough(50*time.Millisecond,
		func(measured time.Duration) (sample, error) { return f.run(t.Context(), 2, time.Millisecond, measured) })
	if err != nil || got.perSecond <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	read, err := openRawRead(t.Context(), "", file, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer read.close()
	got, err = longEnough(50*time.Millisecond, func(measured time.Duration) (sample, error) {
		return read.run(t.Context(), 2, time.Millisecond, measured)
	})
	if err != nil || got.perSecond <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
