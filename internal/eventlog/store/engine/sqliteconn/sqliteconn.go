// Package sqliteconn is a connection to an SQLite database without database/sql, for the writer of the embedded
// database. A short statement runs in a few microseconds, of which the way through database/sql and the driver takes
// half: values are boxed, copied and freed one by one, and SQLite locks the connection for every call, although only
// one goroutine uses it.
//
// A connection, and everything made from it, is for one goroutine at a time.
package sqliteconn

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Conn is a connection.
type Conn struct {
	tls *libc.TLS
	db  uintptr

	// Parameters of the statements that run lie one after the other in this room of SQLite's memory. A statement that
	// runs inside the callback of a query comes behind that query, and ends before it.
	room uintptr
	used int
}

const roomSize = 64 << 10

// Open opens a database, which is created if there is none, by a file system that SQLite knows; empty: its own one.
func Open(path, vfs string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS()}
	names := c.text(path, vfs)
	defer c.free(names...)
	system := names[1]
	if vfs == "" {
		system = 0
	}
	out := c.tls.Alloc(pointerSize)
	defer c.tls.Free(pointerSize)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, names[0], out,
		sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE|sqlite3.SQLITE_OPEN_NOMUTEX, system)
	c.db = *at[uintptr](out)
	if rc != sqlite3.SQLITE_OK {
		return nil, errors.Join(c.failure(rc), c.Close())
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	if c.room = sqlite3.Xsqlite3_malloc(c.tls, roomSize); c.room == 0 {
		return nil, errors.Join(c.failure(sqlite3.SQLITE_NOMEM), c.Close())
	}
	return c, nil
}

// Close closes the connection. Its statements are closed already.
func (c *Conn) Close() error {
	if c.tls == nil {
		return nil
	}
	c.free(c.room)
	var err error
	if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
		err = c.failure(rc)
	}
	c.tls.Close()
	c.tls = nil
	return err
}

// Interrupt makes what runs on the connection fail. Any goroutine may call it, as long as the connection is open.
func (c *Conn) Interrupt() {
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_interrupt(tls, c.db)
}

// Changed is how many rows the last statement has inserted, updated or deleted.
func (c *Conn) Changed() int64 { return sqlite3.Xsqlite3_changes64(c.tls, c.db) }

// Error is a failure of SQLite.
type Error struct {
	message string
	code    int
}

func (e *Error) Error() string { return e.message }

// Code is SQLite's extended result code.
func (e *Error) Code() int { return e.code }

func (c *Conn) failure(rc int32) error {
	message := libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	if c.db != 0 {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db)); more != message {
			message += ": " + more
		}
	}
	return &Error{fmt.Sprintf("%s (%d)", message, rc), int(rc)}
}

// Statements keeps statements prepared by their text.
type Statements struct {
	conn     *Conn
	prepared map[string]*statement
}

// statement is a prepared one. Its handle is 0 where the text has nothing but comments.
type statement struct {
	handle  uintptr
	columns int
	runs    bool
}

// Statements is a new set, to be closed before the connection.
func (c *Conn) Statements() *Statements { return &Statements{c, map[string]*statement{}} }

// Close frees the statements. None of them runs.
func (s *Statements) Close() {
	for _, st := range s.prepared {
		s.conn.finalize(st)
	}
	clear(s.prepared)
}

// Exec runs a statement, for which there are the parameters string, []byte, int64, int and nil.
func (s *Statements) Exec(text string, args ...any) error {
	return s.Query(text, args, func(*Row) error { return nil })
}

// Query runs a statement and calls each for every row, which is valid until each returns.
func (s *Statements) Query(text string, args []any, each func(*Row) error) error {
	st := s.prepared[text]
	if st == nil {
		var err error
		if st, err = s.conn.prepare(text); err != nil {
			return err
		}
		s.prepared[text] = st
	} else if st.runs { // this is the callback of the same query
		inner, err := s.conn.prepare(text)
		if err != nil {
			return err
		}
		defer s.conn.finalize(inner)
		st = inner
	}
	if st.handle == 0 {
		return nil
	}
	st.runs = true
	defer func() { st.runs = false }()
	return s.conn.run(st, args, each)
}

func (c *Conn) prepare(text string) (*statement, error) {
	sql := c.text(text)
	defer c.free(sql...)
	out := c.tls.Alloc(2 * pointerSize)
	defer c.tls.Free(2 * pointerSize)
	if rc := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, sql[0], -1, out,
		out+uintptr(pointerSize)); rc != sqlite3.SQLITE_OK {
		return nil, c.failure(rc)
	}
	st := &statement{handle: *at[uintptr](out)}
	if rest := strings.TrimSpace(libc.GoString(*at[uintptr](out + uintptr(pointerSize)))); rest != "" {
		c.finalize(st)
		return nil, fmt.Errorf("sqliteconn: only one statement at a time: %q follows", rest)
	}
	if st.handle != 0 {
		st.columns = int(sqlite3.Xsqlite3_column_count(c.tls, st.handle))
	}
	return st, nil
}

func (c *Conn) finalize(st *statement) { sqlite3.Xsqlite3_finalize(c.tls, st.handle) }

func (c *Conn) run(st *statement, args []any, each func(*Row) error) error {
	before := c.used
	large, err := c.bind(st, args)
	defer func() {
		sqlite3.Xsqlite3_reset(c.tls, st.handle)
		if large != nil { // whatever is bound next, nothing refers to what is freed
			sqlite3.Xsqlite3_clear_bindings(c.tls, st.handle)
			c.free(large...)
		}
		c.used = before
	}()
	if err != nil {
		return err
	}
	for row := (*Row)(nil); ; {
		switch rc := sqlite3.Xsqlite3_step(c.tls, st.handle); rc {
		case sqlite3.SQLITE_ROW:
			if row == nil {
				row = &Row{c, st}
			}
			if err := each(row); err != nil {
				return err
			}
		case sqlite3.SQLITE_DONE:
			return nil
		default:
			return c.failure(rc)
		}
	}
}

// bind sets the parameters of a statement. SQLite reads them where they are put until the statement is reset. What is
// too large for the room is to be freed then.
func (c *Conn) bind(st *statement, args []any) (large []uintptr, err error) {
	if n := int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, st.handle)); n != len(args) {
		return nil, fmt.Errorf("sqliteconn: %d parameters for %d places", len(args), n)
	}
	allocate := func(size int) (uintptr, []byte) {
		if size <= roomSize-c.used {
			address := c.room + uintptr(c.used)
			c.used += size
			return address, view(address, size)
		}
		address := sqlite3.Xsqlite3_malloc(c.tls, int32(size))
		if address == 0 {
			return 0, nil
		}
		large = append(large, address)
		return address, view(address, size)
	}
	for i, arg := range args {
		at, rc := int32(i+1), int32(sqlite3.SQLITE_OK)
		switch v := arg.(type) {
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, st.handle, at, v)
		case int:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, st.handle, at, int64(v))
		case string:
			// An empty text has an address, too: without one it would be NULL.
			if len(v) >= most {
				rc = sqlite3.SQLITE_TOOBIG
			} else if address, room := allocate(len(v) + 1); room == nil {
				rc = sqlite3.SQLITE_NOMEM
			} else {
				copy(room, v)
				rc = sqlite3.Xsqlite3_bind_text(c.tls, st.handle, at, address, int32(len(v)), sqlite3.SQLITE_STATIC)
			}
		case []byte:
			if v == nil {
				rc = sqlite3.Xsqlite3_bind_null(c.tls, st.handle, at)
			} else if len(v) >= most {
				rc = sqlite3.SQLITE_TOOBIG
			} else if address, room := allocate(len(v) + 1); room == nil {
				rc = sqlite3.SQLITE_NOMEM
			} else {
				copy(room, v)
				rc = sqlite3.Xsqlite3_bind_blob(c.tls, st.handle, at, address, int32(len(v)), sqlite3.SQLITE_STATIC)
			}
		case nil:
			rc = sqlite3.Xsqlite3_bind_null(c.tls, st.handle, at)
		default:
			return large, fmt.Errorf("sqliteconn: a parameter is a %T", arg)
		}
		if rc != sqlite3.SQLITE_OK {
			return large, c.failure(rc)
		}
	}
	return large, nil
}

// most is more than SQLite keeps in one value.
const most = 1 << 30

// Row is a row of a query.
type Row struct {
	conn *Conn
	st   *statement
}

// Scan puts the values of a row where they are wanted, as database/sql does for the types that SQLite has.
func (r *Row) Scan(dest ...any) error {
	if len(dest) != r.st.columns {
		return fmt.Errorf("sqliteconn: %d destinations for %d columns", len(dest), r.st.columns)
	}
	for i, to := range dest {
		if err := r.scan(int32(i), to); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

func (r *Row) scan(column int32, to any) error {
	value := r.value(column)
	switch to := to.(type) {
	case sql.Scanner:
		return to.Scan(value)
	case *any:
		*to = value
		return nil
	}
	target := reflect.ValueOf(to).Elem()
	if bytes, ok := to.(*[]byte); ok {
		switch v := value.(type) {
		case []byte:
			*bytes = v
			return nil
		case string:
			*bytes = []byte(v)
			return nil
		case nil:
			*bytes = nil
			return nil
		}
	}
	switch v := value.(type) {
	case int64:
		switch {
		case target.CanInt() && !target.OverflowInt(v):
			target.SetInt(v)
			return nil
		case target.CanUint() && v >= 0 && !target.OverflowUint(uint64(v)):
			target.SetUint(uint64(v))
			return nil
		case target.Kind() == reflect.Bool && (v == 0 || v == 1):
			target.SetBool(v == 1)
			return nil
		}
	case string:
		if target.Kind() == reflect.String {
			target.SetString(v)
			return nil
		}
	case []byte:
		if target.Kind() == reflect.String {
			target.SetString(string(v))
			return nil
		}
	}
	return fmt.Errorf("a %T does not fit into a %T", value, to)
}

// value is that of a column: int64, float64, string, []byte or nil.
func (r *Row) value(column int32) any {
	tls, st := r.conn.tls, r.st.handle
	switch sqlite3.Xsqlite3_column_type(tls, st, column) {
	case sqlite3.SQLITE_INTEGER:
		return sqlite3.Xsqlite3_column_int64(tls, st, column)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(tls, st, column)
	case sqlite3.SQLITE_TEXT:
		address := sqlite3.Xsqlite3_column_text(tls, st, column)
		return string(view(address, int(sqlite3.Xsqlite3_column_bytes(tls, st, column))))
	case sqlite3.SQLITE_BLOB:
		address := sqlite3.Xsqlite3_column_blob(tls, st, column)
		return bytes.Clone(view(address, int(sqlite3.Xsqlite3_column_bytes(tls, st, column))))
	}
	return nil
}

// text copies texts into memory of SQLite's, to be freed.
func (c *Conn) text(texts ...string) (addresses []uintptr) {
	for _, text := range texts {
		address := sqlite3.Xsqlite3_malloc(c.tls, int32(len(text)+1))
		if address == 0 {
			panic("sqliteconn: no memory")
		}
		room := view(address, len(text)+1)
		copy(room, text)
		room[len(text)] = 0
		addresses = append(addresses, address)
	}
	return addresses
}

func (c *Conn) free(addresses ...uintptr) {
	for _, address := range addresses {
		sqlite3.Xsqlite3_free(c.tls, address)
	}
}

const pointerSize = int(unsafe.Sizeof(uintptr(0)))

// at gives what lies at an address of SQLite's memory, which is not Go's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// view gives bytes of SQLite's memory.
func view(address uintptr, size int) []byte {
	if size == 0 {
		return []byte{}
	}
	return unsafe.Slice(at[byte](address), size)
}
