package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/internal/eventlog/store/engine/scrubvfs"
	"github.com/signet-idm/signet/internal/eventlog/store/engine/sqliteconn"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// sqliteEngine is the embedded database: one connection that writes, a pool that reads beside it (WAL). Inside a
// batch it runs prepared single-row statements: in one process there is no round trip to save.
type sqliteEngine struct {
	byName  map[event.Kind]event.Definition
	cache   *cache.Cache
	log     *slog.Logger
	kinds   map[event.Kind]sqliteKind
	readers *sql.DB
	conn    *sqliteconn.Conn // the writer's; nil when read-only
	movers  *sql.DB          // one connection that moves the write-ahead log, see move; nil when read-only

	writer  *sqliteconn.Statements // on conn
	cached  sync.Map               // query text: *sql.Stmt on readers
	open    bool                   // a transaction is open on conn
	loaded  event.Loaded           // by that transaction
	numbers numbers                // of objects in word_blocks, as far as they were needed
	writing sync.Mutex             // the writer's loop against transact

	path    string
	syncing sync.Mutex
	wal     *os.File // the write-ahead log; opened by the first sync

	index    *os.File      // of the write-ahead log; opened by the first tend
	tended   int           // frames that the log had when it was last told to be moved
	due      chan struct{} // that it is to be moved
	moving   sync.Mutex    // it is being moved; taken before writing
	stop     sync.Once
	stopping chan struct{} // nobody moves it any more
	stopped  chan struct{} // likewise, and nobody does now; nil when read-only

	factVersion int
}

// sqliteKind holds the writer's statements for one kind of object.
type sqliteKind struct {
	load, insert string
	updates      map[uint64]string // by what else changes, see update
}

// How long, in milliseconds, a connection waits for another one, and how long Scrub lets the writer wait.
const (
	busyTimeout   = "busy_timeout"
	patience      = "10000"
	scrubPatience = "100"
)

// together is how many events one statement writes, and how many claims one reads: half of what a short statement costs
// is the way to it and back.
const together = 8

// sqliteInsertEvents writes so many events, and sqliteHolders reads the holders of so many claims, each with the number
// of its claim.
var sqliteInsertEvents, sqliteHolders = func() (inserts, holders [together + 1]string) {
	for n := 1; n <= together; n++ {
		one := ", (" + Placeholders(strings.Count(EventColumns, ",")+1) + ")"
		inserts[n] = "INSERT OR FAIL INTO events (" + EventColumns + ") VALUES " + strings.Repeat(one, n)[2:]
		parts := make([]string, n)
		for i := range parts {
			parts[i] = "SELECT " + strconv.Itoa(i) + ", object_id FROM claims WHERE digest = ?"
		}
		holders[n] = strings.Join(parts, " UNION ALL ")
	}
	return inserts, holders
}()

func openSQLite(ctx context.Context, o Options) (Engine, error) {
	path, readOnly := o.Database, o.ReadOnly
	if !readOnly {
		// Create the file ourselves, so that it is never readable by others, not even for a moment.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	if !o.Looked {
		if err := refuseAutoVacuum(ctx, path); err != nil {
			return nil, err
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	vfs, err := scrubvfs.VFS()
	if err != nil {
		return nil, err
	}
	dsn := func(params ...string) string {
		q := url.Values{"vfs": {vfs}}
		for _, p := range append([]string{busyTimeout + "(" + patience + ")"}, params...) {
			q.Add("_pragma", p)
		}
		if readOnly {
			q.Set("mode", "ro")
		}
		return (&url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: q.Encode()}).String()
	}
	e := &sqliteEngine{cache: o.Cache, log: o.Log, path: abs, factVersion: cmp.Or(o.FactVersion, event.FactVersion),
		byName: map[event.Kind]event.Definition{}, kinds: map[event.Kind]sqliteKind{}}
	for _, k := range o.Kinds {
		e.byName[k.Name()] = k
		columns := StateColumns(k)
		e.kinds[k.Name()] = sqliteKind{
			load: "SELECT " + AllColumns(k) + ", k.value FROM " + k.Table() +
				" s LEFT JOIN keys k ON k.key = s.key_id WHERE s.id = ?",
			insert: "INSERT INTO " + k.Table() + " (" + strings.Join(columns,
				", ") + ") VALUES (" + Placeholders(len(columns)) + ")",
			updates: map[uint64]string{},
		}
	}
	if !readOnly {
		if e.conn, err = sqliteconn.Open(abs, vfs); err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		e.writer = e.conn.Statements()
		for _, pragma := range []string{busyTimeout + "(" + patience + ")", "journal_mode(WAL)", "synchronous(NORMAL)",
			"secure_delete(1)",
			fmt.Sprintf("wal_autocheckpoint(%d)", tooMany), "foreign_keys(0)", "cache_size(-8000)"} {
			if err := e.pragma(pragma); err != nil {
				e.Close()
				return nil, fmt.Errorf("opening %s: %w", path, err)
			}
		}
		if e.movers, err = sql.Open("sqlite", dsn("synchronous(NORMAL)")); err != nil {
			e.Close()
			return nil, err
		}
		e.movers.SetMaxOpenConns(1)
		e.due, e.stopping, e.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		go e.moveAll()
	}
	if e.readers, err = sql.Open("sqlite", dsn("query_only(1)", "cache_size(-1000)")); err != nil {
		e.Close()
		return nil, err
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	e.readers.SetMaxOpenConns(n)
	e.readers.SetMaxIdleConns(n)
	return e, nil
}

func (e *sqliteEngine) Close() error {
	var all []error
	if e.stopped != nil {
		e.stop.Do(func() { close(e.stopping) })
		<-e.stopped
	}
	for _, f := range []*os.File{e.wal, e.index} {
		if f != nil {
			all = append(all, f.Close())
		}
	}
	if e.conn != nil {
		e.writer.Close()
		all = append(all, e.conn.Close())
	}
	for _, db := range []*sql.DB{e.readers, e.movers} {
		if db != nil {
			all = append(all, db.Close())
		}
	}
	return errors.Join(all...)
}

// once is a text that SQLite prepares once. It plans for the value of a limit that is a plain parameter, and so
// prepares the statement again each time that the parameter is bound, which takes several times as long as a short
// query. Nothing of ours needs another plan for another limit.
func once(text string) string { return strings.ReplaceAll(text, "LIMIT ?", "LIMIT (? + 0)") }

// Exec runs a statement on the writer's connection. A batch is never cut short, so the context does not count.
func (e *sqliteEngine) Exec(_ context.Context, text string, args ...any) error {
	return e.writer.Exec(once(text), args...)
}

// row reads at most one row on the writer's connection.
func (e *sqliteEngine) row(text string, args, dest []any) (found bool, err error) {
	err = e.writer.Query(once(text), args, func(row *sqliteconn.Row) error {
		found = true
		return row.Scan(dest...)
	})
	return found && err == nil, err
}

// pragma sets a property of the writer's connection. SQLite does that when it prepares the statement.
func (e *sqliteEngine) pragma(setting string) error {
	statements := e.conn.Statements()
	defer statements.Close()
	return statements.Exec("PRAGMA " + setting)
}

func (e *sqliteEngine) Begin(ctx context.Context, n *Needs) (event.Loaded, error) {
	e.writing.Lock()
	l := event.NewLoaded()
	if err := e.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return l, e.away(err)
	}
	e.open = true
	for _, declared := range [...]map[event.Kind][]string{n.Write, n.Read} {
		for kind, ids := range declared {
			for _, id := range ids {
				r, err := e.load(event.Ref{Kind: kind, ID: id})
				if err != nil {
					return l, e.away(err)
				}
				if r != nil {
					l.Records[r.Ref] = r
				}
			}
		}
	}
	for some := range slices.Chunk(n.Claims, together) {
		if err := e.holders(some, l.Claims); err != nil {
			return l, e.away(err)
		}
	}
	for table, keys := range n.Rows {
		for _, key := range keys {
			r, err := e.beside(event.RowKey{Table: table, Key: key})
			if err != nil {
				return l, e.away(err)
			}
			l.Rows[event.RowKey{Table: table, Key: key}] = r
		}
	}
	for _, id := range n.Tokens {
		token, err := e.token(id)
		if err != nil {
			return l, e.away(err)
		}
		l.Tokens[id] = token
	}
	e.loaded = l
	return l, nil
}

// holders reads who holds claims, for the writer; empty where nobody does.
func (e *sqliteEngine) holders(digests [][32]byte, found map[[32]byte]string) error {
	args := make([]any, len(digests))
	for i := range digests {
		args[i], found[digests[i]] = digests[i][:], ""
	}
	return e.writer.Query(sqliteHolders[len(digests)], args, func(row *sqliteconn.Row) error {
		var i int
		var holder string
		if err := row.Scan(&i, &holder); err != nil {
			return err
		}
		found[digests[i]] = holder
		return nil
	})
}

// beside reads one row of a side table for the writer; nil when there is none.
func (e *sqliteEngine) beside(key event.RowKey) (*event.Row, error) {
	if r, known := e.cache.Row(key); known {
		return r, nil
	}
	moment := e.cache.Moment()
	r := &event.Row{RowKey: key}
	found, err := e.row("SELECT value, expires FROM "+string(key.Table)+" WHERE key = ?", []any{key.Key},
		[]any{&r.Value, &r.Expires})
	if err != nil {
		return nil, err
	}
	if !found {
		r = nil
	}
	e.cache.KeepRow(moment, key, r)
	return r, nil
}

// token reads one token for the writer; nil when there is none.
func (e *sqliteEngine) token(id string) (*event.Token, error) {
	if t := e.cache.Token(id); t != nil {
		return t, nil
	}
	t := &event.Token{}
	found, err := e.row("SELECT "+TokenColumns+" FROM tokens t WHERE t.id = ?", []any{id}, ScanToken(t))
	if !found {
		return nil, err
	}
	return t, nil
}

// load reads one object for the writer; nil when there is none.
func (e *sqliteEngine) load(ref event.Ref) (*event.Record, error) {
	cache := e.cache
	if r := cache.Record(ref); r != nil && (r.KeyID == "" || r.WrappedKey != nil) {
		return r, nil
	}
	if cache.Absent(ref) {
		return nil, nil
	}
	moment := cache.Moment()
	r, dest := ScanRecord(e.byName[ref.Kind], true)
	found, err := e.row(e.kinds[ref.Kind].load, []any{ref.ID}, dest)
	if err != nil {
		return nil, err
	}
	if !found {
		cache.KeepAbsent(moment, ref)
		return nil, nil
	}
	cache.KeepRecord(moment, r)
	return r, nil
}

func (e *sqliteEngine) Commit(ctx context.Context, c *event.Changes) error {
	if err := e.writeAll(ctx, c); err != nil {
		return e.away(err)
	}
	if err := e.Exec(ctx, "COMMIT"); err != nil {
		e.cache.Clear() // nobody knows
		return e.away(err)
	}
	e.tend()
	e.cache.Apply(c)
	e.open = false
	e.writing.Unlock()
	return nil
}

func (e *sqliteEngine) writeAll(ctx context.Context, c *event.Changes) error {
	for _, r := range c.Created {
		if err := e.Exec(ctx, e.kinds[r.Kind].insert, StateValues(r)...); err != nil {
			return err
		}
	}
	for _, r := range c.Updated {
		if err := e.update(ctx, e.loaded.Records[r.Ref], r); err != nil {
			return err
		}
	}
	for i := range c.Claims {
		change := &c.Claims[i]
		var err error
		if change.Holder == "" {
			err = e.Exec(ctx, "DELETE FROM claims WHERE digest = ?", change.Digest[:])
		} else {
			err = e.Exec(ctx, "INSERT INTO claims (digest, object_id) VALUES (?, ?)", change.Digest[:], change.Holder)
		}
		if err != nil {
			return err
		}
	}
	exec := func(text string, args ...any) error { return e.Exec(ctx, text, args...) }
	insert := func(rows []event.Row, ending string) error { return insertEach(rows, ending, exec) }
	if err := writeBeside(c, insert, exec); err != nil {
		return err
	}
	if len(c.Events) == 0 {
		return nil
	}
	var head int64
	if _, err := e.row("SELECT position FROM log_head WHERE id = 1", nil, []any{&head}); err != nil {
		return err
	}
	for i := range c.Events {
		c.Events[i].Position = head + int64(i) + 1
	}
	for some := range slices.Chunk(c.Events, together) {
		var args []any
		for i := range some {
			args = append(args, EventValues(&some[i])...)
		}
		if err := e.Exec(ctx, sqliteInsertEvents[len(some)], args...); err != nil {
			return err
		}
	}
	if err := e.Exec(ctx, "UPDATE log_head SET position = ? WHERE id = 1", head+int64(len(c.Events))); err != nil {
		return err
	}
	for _, w := range c.Lost {
		if err := e.Exec(ctx, deleteWord, w.ObjectID, w.Word); err != nil {
			return err
		}
	}
	for _, w := range c.Found {
		if err := e.Exec(ctx, insertWord, w.ObjectID, w.Word, w.Org); err != nil {
			return err
		}
	}
	return e.reindex(ctx, c)
}

// update writes what has changed of a record. SQLite renews the entries of every index on a column it is told to set,
// whether or not the value differs, so the statement names only those that do.
func (e *sqliteEngine) update(ctx context.Context, old, r *event.Record) error {
	const rare = 1 << 63
	var which uint64
	args := make([]any, 0, 12)
	args = append(args, int64(r.Sequence), r.Changed, r.Hash, string(r.Doc))
	for i, value := range r.Columns {
		if i >= len(old.Columns) || old.Columns[i] != value {
			which |= 1 << i
			args = append(args, value)
		}
	}
	if old.Org != r.Org || old.KeyID != r.KeyID || old.Shape != r.Shape {
		which |= rare
		args = append(args, r.Org, r.KeyID, int64(r.Shape))
	}
	k := e.kinds[r.Kind]
	text, known := k.updates[which]
	if !known {
		definition := e.byName[r.Kind]
		text = "UPDATE " + definition.Table() + " SET sequence = ?, changed = ?, hash = ?, doc = ?"
		for i, column := range definition.Columns() {
			if which&(1<<i) != 0 {
				text += ", " + column + " = ?"
			}
		}
		if which&rare != 0 {
			text += ", org_id = ?, key_id = ?, shape = ?"
		}
		text += " WHERE id = ?"
		k.updates[which] = text
	}
	return e.Exec(ctx, text, append(args, r.ID)...)
}

func (e *sqliteEngine) Rollback(context.Context) {
	if e.open {
		e.open = false
		e.rollback()
	}
	e.writing.Unlock()
}

func (e *sqliteEngine) rollback() {
	if err := e.writer.Exec("ROLLBACK"); err != nil && !wasRolledBack(err) {
		e.log.Warn("rolling back", "error", err)
	}
}

// wasRolledBack tells of an error of ROLLBACK that there was nothing to roll back: SQLite has done it when the disk
// failed. The driver does not offer sqlite3_get_autocommit. But SQLITE_ERROR says that a statement is wrong, and only
// this can be wrong about ROLLBACK: failures of the disk have other codes.
func wasRolledBack(err error) bool {
	return codeOf(err) == sqlite3.SQLITE_ERROR
}

// codeOf is SQLite's result code; 0: the error is not SQLite's. The writer and the readers have different drivers.
func codeOf(err error) int {
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return e.Code()
	}
	return 0
}

// away tells a database that cannot write (disk full, file gone) from one that refuses a statement, which is one
// command's fault.
func (e *sqliteEngine) away(err error) error {
	problem := "the database cannot be written"
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		problem = "the disk of the server is full"
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE,
		sqlite3.SQLITE_ERROR:
		return err
	}
	return &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Second, Cause: err,
		Message: problem + ": the outcome may be unknown, so read before you try again"}
}

func (e *sqliteEngine) IsConflict(error) bool { return false } // one writer: nobody to lose a race to

func (e *sqliteEngine) IsLockTimeout(error) bool { return false }

func (e *sqliteEngine) IsMissingTable(err error) bool {
	return codeOf(err) == sqlite3.SQLITE_ERROR
}

func (e *sqliteEngine) Query(ctx context.Context, text string, args []any, each func(Scanner) error) error {
	st, err := e.reader(ctx, text)
	if err != nil {
		return err
	}
	// As in exec: a context that can end costs a goroutine per query, and none of ours reads for long.
	return scanRows(each)(st.QueryContext(context.WithoutCancel(ctx), args...))
}

func (e *sqliteEngine) Ask(ctx context.Context, questions []readbatch.Question) error {
	for _, q := range questions {
		if err := e.Query(ctx, q.SQL, q.Args, q.Each); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) reader(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := e.cached.Load(text); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := e.readers.PrepareContext(ctx, once(text))
	if err != nil {
		return nil, err
	}
	if other, loaded := e.cached.LoadOrStore(text, st); loaded {
		st.Close()
		st = other.(*sql.Stmt)
	}
	return st, nil
}

func scanRows(each func(Scanner) error) func(*sql.Rows, error) error {
	return func(rows *sql.Rows, err error) error {
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := each(rows.Scan); err != nil {
				return unlessEnough(err)
			}
		}
		return rows.Err()
	}
}

// sqliteTx runs statements in a transaction that only reads. They are prepared once in it: a check of all states runs
// few statements many times.
type sqliteTx struct {
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
}

func (x sqliteTx) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if st := x.prepared[text]; st != nil {
		return st, nil
	}
	st, err := x.tx.PrepareContext(ctx, once(text))
	if err == nil {
		x.prepared[text] = st
	}
	return st, err
}

func (x sqliteTx) Exec(ctx context.Context, text string, args ...any) error {
	st, err := x.stmt(ctx, text)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

func (x sqliteTx) Query(ctx context.Context, text string, args []any, each func(Scanner) error) error {
	st, err := x.stmt(ctx, text)
	if err != nil {
		return err
	}
	return scanRows(each)(st.QueryContext(ctx, args...))
}

// writerTx runs statements in a transaction on the writer's connection. They are prepared once in it.
type writerTx struct{ statements *sqliteconn.Statements }

func (x writerTx) Exec(ctx context.Context, text string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return x.statements.Exec(once(text), args...)
}

func (x writerTx) Query(ctx context.Context, text string, args []any, each func(Scanner) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return unlessEnough(x.statements.Query(once(text), args, func(row *sqliteconn.Row) error { return each(row.Scan) }))
}

func (e *sqliteEngine) Transact(ctx context.Context, f func(Executor) error) error {
	if e.conn == nil {
		return e.Snapshot(ctx, f)
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.writer.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer e.cache.Clear()
	committed := false
	defer func() { // also where f panics
		if !committed {
			e.rollback()
		}
	}()
	if err := e.inside(ctx, f); err != nil {
		return cutShort(ctx, err)
	}
	committed = true
	e.tend()
	return e.Sync()
}

// inside runs f in the transaction that is open on the writer's connection, and commits it. If the context ends, the
// statement that runs is cut short.
func (e *sqliteEngine) inside(ctx context.Context, f func(Executor) error) error {
	ended, left := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(left)
		again := time.NewTicker(interruptAgain)
		defer again.Stop()
		for {
			e.conn.Interrupt()
			select {
			case <-again.C: // SQLite forgets it where no statement runs, and one may have begun right after it
			case <-ended:
				return
			}
		}
	})
	err := func() error {
		defer func() {
			close(ended)
			if !stop() { // what comes next is not to be cut short
				<-left
			}
		}()
		statements := e.conn.Statements()
		defer statements.Close()
		return f(writerTx{statements})
	}()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	return e.writer.Exec("COMMIT")
}

const interruptAgain = 10 * time.Millisecond

// asideTx reads as anybody does, and gathers what is to be written.
type asideTx struct {
	*sqliteEngine
	writes []readbatch.Question
}

func (x *asideTx) Exec(_ context.Context, text string, args ...any) error {
	x.writes = append(x.writes, readbatch.Question{SQL: text, Args: args})
	return nil
}

func (e *sqliteEngine) Aside(ctx context.Context, f func(Executor) error) error {
	x := &asideTx{sqliteEngine: e}
	if err := f(x); err != nil || x.writes == nil {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, w := range append(x.writes, readbatch.Question{SQL: "COMMIT"}) {
		if err := e.Exec(ctx, w.SQL, w.Args...); err != nil {
			return errors.Join(err, e.Exec(ctx, "ROLLBACK"))
		}
	}
	e.tend()
	return nil
}

func (e *sqliteEngine) Join(ctx context.Context) error {
	return e.Query(ctx, "SELECT value FROM meta WHERE name = ?", []any{FactVersionRow}, func(scan Scanner) error {
		var stored []byte
		if err := scan(&stored); err != nil {
			return err
		}
		return knowsFacts(e.factVersion, stored)
	})
}

// Nodes: there is no other.
func (e *sqliteEngine) Nodes(context.Context, Querier) (oldest, running int, err error) {
	return e.factVersion, 1, nil
}

// LockJoins has nobody to keep out.
func (e *sqliteEngine) LockJoins(context.Context, Executor) error { return nil }

// alone: the lock of the data directory has kept other processes out.
func (e *sqliteEngine) Alone(ctx context.Context, f func(Executor) error) error {
	return e.Transact(ctx, f)
}

func (e *sqliteEngine) Snapshot(ctx context.Context, f func(Executor) error) error {
	tx, err := e.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return cutShort(ctx, f(sqliteTx{tx, map[string]*sql.Stmt{}}))
}

// cutShort says of an error that it comes from the end of the context. The driver may say something else, such as that
// a statement is closed.
func cutShort(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

func (e *sqliteEngine) LockSchema(context.Context, Executor) error { return nil } // BEGIN IMMEDIATE has done it

// Reshape is one transaction: nobody else is there.
func (e *sqliteEngine) Reshape(ctx context.Context,
	f func(x Executor, change func(statement string) error) error) error {
	return e.Transact(ctx, func(x Executor) error {
		// One for the other engine is empty, and does nothing.
		return f(x, func(statement string) error { return x.Exec(ctx, migrations.Parse(statement).In(e.Dialect())) })
	})
}

func (e *sqliteEngine) Dialect() migrations.Dialect {
	return migrations.Dialect{Types: map[string]string{Bytes: "BLOB"}, RowID: "INTEGER", Keyed: "WITHOUT ROWID"}
}

func (e *sqliteEngine) ForUpdate() string  { return "" }
func (e *sqliteEngine) SkipLocked() string { return "" }
