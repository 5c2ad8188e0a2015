package sqliteconn

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/signet-idm/signet/test/testkit"
)

func open(t testing.TB) (*Conn, *Statements) {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "a b%?.db"), "")
	testkit.Must(t, err)
	s := c.Statements()
	t.Cleanup(func() {
		s.Close()
		testkit.Must(t, c.Close())
	})
	testkit.Must(t, s.Exec("CREATE TABLE kept (id INTEGER PRIMARY KEY, value)"))
	return c, s
}

// kept reads a value back.
func kept(t testing.TB, s *Statements, id int) (value any) {
	t.Helper()
	testkit.Must(t, s.Query("SELECT value FROM kept WHERE id = ?", []any{id},
		func(row *Row) error { return row.Scan(&value) }))
	return value
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	c, s := open(t)
	for id, value := range []any{nil, int64(0), int64(math.MinInt64), int64(math.MaxInt64), "", "plain", "with\x00NUL",
		"ä 😀", "\xff not UTF-8", []byte{}, []byte{0, 1, 255},
		strings.Repeat("x", roomSize-1), strings.Repeat("y", roomSize), bytes.Repeat([]byte{7}, 3*roomSize)} {
		testkit.Must(t, s.Exec("INSERT INTO kept (id, value) VALUES (?, ?)", id, value))
		if c.Changed() != 1 {
			t.Errorf("%d rows changed", c.Changed())
		}
		if got := kept(t, s, id); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", value, value) {
			t.Errorf("%.60T %.60v became %.60T %.60v", value, value, got, got)
		}
	}
	// A statement that had large values forgets them: what they lay in is free.
	testkit.Must(t, s.Exec("INSERT INTO kept (id, value) VALUES (?, ?)", 100, "small"))
	if got := kept(t, s, 100); got != "small" || c.used != 0 {
		t.Errorf("%v, and %d bytes are in use", got, c.used)
	}
	var missing []byte
	testkit.Must(t, s.Query("SELECT NULL", nil, func(row *Row) error { return row.Scan(&missing) }))
	if missing != nil {
		t.Errorf("NULL became %v", missing)
	}
}

func TestValuesGoWhereTheyFit(t *testing.T) {
	_, s := open(t)
	type named string
	for _, c := range []struct {
		value string
		into  any
		want  string // empty: refused
	}{
		{"5", new(int64), "5"}, {"5", new(int), "5"}, {"5", new(uint64), "5"}, {"1", new(bool), "true"},
		{"'x'", new(string), "x"}, {"'x'", new(named), "x"},
		{"x'41'", new(string), "A"}, {"'A'", new([]byte), "[65]"}, {"x'41'", new([]byte), "[65]"},
		{"1.5", new(any), "1.5"},
		{"-1", new(uint64), ""}, {"2", new(bool), ""}, {"300", new(int8), ""}, {"'5'", new(int64), ""},
		{"5", new(string), ""}, {"NULL", new(string), ""}, {"NULL", new(int64), ""},
		{"1.5", new(int64), ""}, {"5", new([]byte), ""},
	} {
		err := s.Query("SELECT "+c.value, nil, func(row *Row) error { return row.Scan(c.into) })
		if got := fmt.Sprint(deref(c.into)); c.want == "" && err == nil ||
			c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s into a %T: %s, %v", c.value, c.into, got, err)
		}
	}
	if err := s.Query("SELECT 1, 2", nil, func(row *Row) error { return row.Scan(new(int)) }); err == nil {
		t.Error("a column was lost")
	}
}

func deref(into any) any { return reflect.ValueOf(into).Elem().Interface() }

func TestMistakesAreRefused(t *testing.T) {
	c, s := open(t)
	for _, m := range []struct {
		text string
		args []any
		says string
	}{
		{"SELEC 1", nil, "syntax error"},
		{"SELECT 1; SELECT 2", nil, "only one statement"},
		{"SELECT ?", nil, "0 parameters for 1"},
		{"SELECT 1", []any{1}, "1 parameters for 0"},
		{"SELECT ?", []any{1.5}, "a parameter is a float64"},
		{"INSERT INTO kept (id) VALUES (1), (1)", nil, "UNIQUE constraint failed"},
	} {
		for range 2 { // also when it is prepared
			if err := s.Exec(m.text, m.args...); err == nil || !strings.Contains(err.Error(), m.says) {
				t.Errorf("%s: %v", m.text, err)
			}
		}
	}
	var e *Error
	if err := s.Exec("INSERT INTO kept (id) VALUES (1), (1)"); !errors.As(err, &e) ||
		e.Code() != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
		t.Errorf("%v", err)
	}
	for _, empty := range []string{"", "  ", "-- nothing", "/* nothing */ ;"} {
		testkit.Must(t, s.Exec(empty))
	}
	if c.used != 0 {
		t.Errorf("%d bytes are in use", c.used)
	}
	if _, err := Open(t.TempDir(), ""); err == nil {
		t.Error("a directory is a database")
	}
}

// What is in the room belongs to a statement until it ends, whatever runs inside its query.
func TestStatementsRunInsideQueries(t *testing.T) {
	c, s := open(t)
	for id := range 20 {
		testkit.Must(t, s.Exec("INSERT INTO kept (id, value) VALUES (?, ?)", id, fmt.Sprint("value ", id)))
	}
	const text = "SELECT id, value FROM kept WHERE id >= ? AND value LIKE ? ORDER BY id LIMIT 3"
	var seen []string
	testkit.Must(t, s.Query(text, []any{2, "value%"}, func(outer *Row) error {
		return s.Query(text, []any{10, "value 1_"}, func(inner *Row) error { // the same text
			testkit.Must(t, s.Exec("UPDATE kept SET value = value WHERE value = ?", "none")) // another one
			var a, b int
			var v, w string
			testkit.Must(t, outer.Scan(&a, &v))
			testkit.Must(t, inner.Scan(&b, &w))
			seen = append(seen, fmt.Sprintf("%d %d", a, b))
			return nil
		})
	}))
	if got := strings.Join(seen, ", "); got != "2 10, 2 11, 2 12, 3 10, 3 11, 3 12, 4 10, 4 11, 4 12" {
		t.Error(got)
	}
	enough := errors.New("enough")
	if err := s.Query("SELECT id FROM kept", nil, func(*Row) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	testkit.Must(t, s.Exec("DROP TABLE kept")) // no query is open
	if c.used != 0 {
		t.Errorf("%d bytes are in use", c.used)
	}
}

func TestAStatementIsPreparedAgainAfterTheSchemaChanged(t *testing.T) {
	_, s := open(t)
	testkit.Must(t, s.Exec("INSERT INTO kept (id, value) VALUES (?, ?)", 1, "one"))
	_ = kept(t, s, 1)
	testkit.Must(t, s.Exec("ALTER TABLE kept ADD COLUMN more TEXT DEFAULT 'more'"))
	testkit.Must(t, s.Exec("CREATE INDEX kept_value ON kept (value)"))
	if got := kept(t, s, 1); got != "one" {
		t.Errorf("%v", got)
	}
}

func TestWhatRunsIsInterrupted(t *testing.T) {
	c, s := open(t)
	running := make(chan struct{})
	go func() {
		<-running
		c.Interrupt()
	}()
	rows := 0
	err := s.Query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", nil,
		func(*Row) error {
			if rows++; rows == 1 {
				close(running)
			}
			return nil
		})
	var e *Error
	if !errors.As(err, &e) || e.Code() != sqlite3.SQLITE_INTERRUPT {
		t.Error(err)
	}
	testkit.Must(t, s.Exec("SELECT 1")) // what comes next is not
}
