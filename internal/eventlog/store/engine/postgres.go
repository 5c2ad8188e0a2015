package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine/silence"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// pgEngine writes a batch in two pipelines, so in two round trips however many commands it holds, or in the second alone
// (see mayAssume). COMMIT is at the end of that: whatever must stop it has to raise an error before it. Locks are taken
// in one order on every node: objects by kind and id, claims, rows, tokens, and the head of the log last. What is only
// read is read after all locks are taken: a transaction that held one of them has committed, and may have changed this
// as well.
type pgEngine struct {
	kinds  []pgKind
	pool   *pgxpool.Pool // reads
	config *pgx.ConnConfig
	conn   *pgx.Conn // the writer's; nil until needed, and after it broke. It holds runLock
	first  *dialing  // the writer's first connection, on its way; nil: none is
	texts  sync.Map  // shared text: numbered text
	dialer *silence.Dialer
	access pgx.TxAccessMode // of transactions that may write

	pooled bool // connections belong to nobody for longer than a transaction
	// of a node behind a pooler: it has a transaction open that holds the node's locks; nil until needed
	member *pgx.Conn
	limits [2]string // of the writer's transactions behind a pooler: lock_timeout, idle_in_transaction_session_timeout

	factVersion int
	log         *slog.Logger

	writing sync.Mutex   // the writer's loop against alone
	loaded  event.Loaded // for the batch
	assumed *Needs       // of the batch, if it goes by what the node remembers
	numbers numbers      // of objects in word_blocks whose terms the writer has changed

	committed time.Time // when the writer's connection did so last
	raceLost  time.Time // when something had changed last that a batch had Assumed
}

// pgKind holds the writer's statements for one kind of object.
type pgKind struct {
	event.Definition
	lock, read, insert, unmoved, same string
	updates, guarded                  map[uint64]string // by the columns that are set, see update
}

func newPgKind(k event.Definition) pgKind {
	columns := StateColumns(k)
	types := make([]string, len(columns))
	for i := range columns {
		types[i] = fmt.Sprintf("$%d::%s[]", i+1, stateType(i))
	}
	names := strings.Join(columns, ", ")
	rows := "unnest(" + strings.Join(types, ", ") + ") AS v(" + names + ")"
	read := "SELECT " + AllColumns(k) + ", k.value FROM " + k.Table() +
		" s LEFT JOIN keys k ON k.key = s.key_id WHERE s.id = ANY($1)"
	return pgKind{
		Definition: k,
		read:       read,
		lock:       read + " ORDER BY s.id FOR NO KEY UPDATE OF s",
		insert:     "INSERT INTO " + k.Table() + " (" + names + ") SELECT * FROM " + rows,
		updates:    map[uint64]string{},
		guarded:    map[uint64]string{},
		same: "SELECT " + raiseUnlessAll + " FROM unnest($1::text[], $2::bytea[], $3::bigint[]) v(id, " + stood + ") " +
			"JOIN " + k.Table() + " s ON s.id = v.id AND " + stillStands,
		// Divides by zero, and so stops the COMMIT behind it, when the sequence of an object is not the one that was
		// read. A transaction that changed it has committed, or waits for the head of the log, which this transaction
		// holds. (A transaction without events does not hold the head. No command decides on what such a transaction
		// writes without locking it, so it simply comes before the one that changes the object.)
		unmoved: "SELECT " + raiseUnlessAll + " FROM unnest($1::text[], $2::bigint[]) v(id, sequence) " +
			"LEFT JOIN " + k.Table() + " s ON s.id = v.id WHERE coalesce(s.sequence, 0) = v.sequence",
	}
}

func openPostgres(ctx context.Context, o Options) (Engine, error) {
	config, pooled, err := parseAddress(o.Database)
	if err != nil {
		return nil, err
	}
	e := &pgEngine{pooled: pooled, factVersion: cmp.Or(o.FactVersion, event.FactVersion),
		log: cmp.Or(o.Log, slog.Default())}
	if o.ReadOnly {
		e.access = pgx.ReadOnly // and not the session: target_session_attrs would find that it cannot be written to
	}
	e.dialer = silence.New(o.silenceChanged)
	config.ConnConfig.DialFunc = e.dialer.Dial
	e.config = config.ConnConfig.Copy()
	for _, k := range o.Kinds {
		e.kinds = append(e.kinds, newPgKind(k))
	}
	// Our statements are few and each has one good plan, by primary key or along one index, whatever the values are:
	// planning anew each time costs more than running them. The plan is made while there are few rows, which seem
	// quickest to be read as a whole, or to be joined as a whole with what is looked for: with sixty keys to compare each
	// with, they are not, and they will not stay few.
	for _, c := range []*pgx.ConnConfig{e.config, config.ConnConfig} {
		if pooled { // a pooler refuses settings of a session, and does not keep what is prepared
			break
		}
		c.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
		for _, unwanted := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
			c.RuntimeParams[unwanted] = "off"
		}
	}
	// A node that is stopped or cut off between its two pipelines keeps its locks. Others wait for them only so long,
	// and PostgreSQL ends such a transaction.
	for i, limit := range []struct{ name, value string }{{"lock_timeout", "2s"},
		{"idle_in_transaction_session_timeout", "10s"}} {
		e.limits[i] = cmp.Or(e.config.RuntimeParams[limit.name], limit.value)
		if e.config.RuntimeParams[limit.name] = e.limits[i]; pooled {
			delete(e.config.RuntimeParams, limit.name)
			delete(config.ConnConfig.RuntimeParams, limit.name)
		}
	}
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		e.dialer.Close()
		return nil, err
	}
	// PostgreSQL takes its time to take a connection: the writer's comes beside the first of the readers'
	if !o.ReadOnly {
		e.first = dial(ctx, e.config)
	}
	if err := e.pool.Ping(ctx); err != nil {
		_ = e.Close()
		return nil, notConnected(config.ConnConfig, cmp.Or(o.Flag, "--database"), err)
	}
	return e, nil
}

func (e *pgEngine) Close() error {
	defer e.dialer.Close()
	e.pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if e.first != nil { // nobody has needed it
		e.first.giveUp(ctx)
		e.first = nil
	}
	e.leave(ctx)
	if e.conn == nil {
		return nil
	}
	if !e.conn.IsClosed() && !e.pooled {
		// PostgreSQL notices a closed connection some time later. A rebuild that starts now should not have to wait for
		// that.
		_, _ = e.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	}
	return e.conn.Close(ctx)
}

// text gives the numbered form of a shared statement.
func (e *pgEngine) text(sql string) string {
	if t, ok := e.texts.Load(sql); ok {
		return t.(string)
	}
	t := numbered(sql)
	e.texts.Store(sql, t)
	return t
}

// loads are the statements of the first pipeline, each with what to do with its rows.
type loads struct {
	batch pgx.Batch
	each  []func(Scanner) error
}

func (l *loads) queue(each func(Scanner) error, sql string, args ...any) {
	l.batch.Queue(sql, args...)
	l.each = append(l.each, each)
}

func (e *pgEngine) Begin(ctx context.Context, n *Needs) (event.Loaded, error) {
	e.writing.Lock()
	if n.Remembered != nil && e.mayAssume() {
		e.loaded, e.assumed = event.Loaded{Records: n.Remembered, Assumed: true}, n
		return e.loaded, nil
	}
	used := e.conn != nil
	loaded, err := e.load(ctx, n)
	if err != nil && used && e.conn.IsClosed() && ctx.Err() == nil {
		// The connection died since it was last used, maybe long ago. Nothing has been asked of it but to read.
		loaded, err = e.load(ctx, n)
	}
	e.loaded = loaded
	return loaded, err
}

var errRebuilding = &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: 5 * time.Second,
	Message: "the database is being rebuilt: try again when that is done"}

var errMoving = &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: 5 * time.Second,
	Message: "the database is being moved: try again when that is done"}

// moveName is how the connection of a move is called in pg_stat_activity while it has the database for itself.
const moveName = "signet move"

type moving struct{}

// Moving says that what is done Alone with this context is part of a move.
func Moving(ctx context.Context) context.Context { return context.WithValue(ctx, moving{}, true) }

// name lets others see who has the database for itself, until the transaction ends.
func name(ctx context.Context, tx pgx.Tx) error {
	if ctx.Value(moving{}) == nil {
		return nil
	}
	_, err := tx.Exec(ctx, "SELECT set_config('application_name', $1, true)", moveName)
	return err
}

// held says who has the database for itself. The session of a command that was killed lasts until PostgreSQL notices,
// which can take as long as its last statement.
func (e *pgEngine) held(ctx context.Context, conn *pgx.Conn) error {
	var pid int
	var who string
	err := conn.QueryRow(ctx, "SELECT l.pid, coalesce(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' "+
		"AND l.objsubid = 1 AND l.classid::bigint << 32 | l.objid::bigint = $1 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1", int64(runLock)).Scan(&pid, &who)
	if err != nil {
		return errRebuilding // it has just ended, or cannot be seen
	}
	ended := fmt.Errorf("its session in PostgreSQL has the process ID %[1]d. If the command was killed, wait until the session ends, or end it with SELECT pg_terminate_backend(%[1]d)", pid)
	if who == moveName {
		return errMoving.Because(ended)
	}
	return errRebuilding.Because(ended)
}

func (e *pgEngine) Join(ctx context.Context) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	for _, c := range []*pgx.Conn{e.conn, e.member} {
		if c != nil && !c.IsClosed() && c.Ping(ctx) != nil {
			c.Close(ctx)
		}
	}
	return e.connect(ctx)
}

// noLimits is for transactions over everything: nobody waits for them but on purpose, and they take as long as the data
// is large.
const noLimits = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"

// alone runs on the writer's connection: the lock and the transaction cannot outlive each other.
func (e *pgEngine) Alone(ctx context.Context, f func(Executor) error) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.connect(ctx); err != nil {
		return err
	}
	if e.pooled {
		return e.alonePooled(ctx, f)
	}
	var alone bool
	if err := e.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(runLock)).Scan(&alone); err != nil {
		return Away(ctx, discreet(err))
	}
	if !alone {
		return ErrInUse
	}
	defer func() {
		if _, err := e.conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)",
			int64(runLock)); err != nil {
			e.conn.Close(context.WithoutCancel(ctx)) // which gives it back, too
		}
	}()
	return discreet(pgx.BeginFunc(ctx, e.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noLimits); err != nil {
			return err
		}
		if err := name(ctx, tx); err != nil {
			return err
		}
		return f(pgTx{e, tx})
	}))
}

func (e *pgEngine) load(ctx context.Context, n *Needs) (event.Loaded, error) {
	into := event.NewLoaded()
	if err := e.connect(ctx); err != nil {
		return into, err
	}
	l := &loads{}
	l.queue(nil, "BEGIN")
	if e.pooled {
		e.joinBatch(l)
	}
	if n.ShortLockTimeout {
		l.queue(nil, "SET LOCAL lock_timeout = '50ms'")
	}
	record := func(k *pgKind, text string, ids []string) {
		if len(ids) == 0 {
			return
		}
		l.queue(func(scan Scanner) error {
			r, dest := ScanRecord(k, true)
			if err := scan(dest...); err != nil {
				return err
			}
			into.Records[r.Ref] = r
			return nil
		}, text, ids)
	}
	for i := range e.kinds {
		k := &e.kinds[i]
		record(k, k.lock, n.Write[k.Name()])
	}
	if len(n.Claims) > 0 {
		digests := make([][]byte, len(n.Claims))
		for i, d := range n.Claims {
			digests[i] = d[:]
			into.Claims[d] = ""
		}
		l.queue(func(scan Scanner) error {
			var digest []byte
			var holder string
			if err := scan(&digest, &holder); err != nil {
				return err
			}
			into.Claims[[32]byte(digest)] = holder
			return nil
		}, "SELECT digest, object_id FROM claims WHERE digest = ANY($1)", digests)
	}
	for _, table := range event.SideTables {
		keys := n.Rows[table]
		if len(keys) == 0 {
			continue
		}
		for _, key := range keys {
			into.Rows[event.RowKey{Table: table, Key: key}] = nil
		}
		l.queue(func(scan Scanner) error {
			r := &event.Row{RowKey: event.RowKey{Table: table}}
			if err := scan(&r.Key, &r.Value, &r.Expires); err != nil {
				return err
			}
			into.Rows[r.RowKey] = r
			return nil
		}, "SELECT key, value, expires FROM "+string(table)+" WHERE key = ANY($1) ORDER BY key FOR NO KEY UPDATE", keys)
	}
	if len(n.Tokens) > 0 {
		l.queue(func(scan Scanner) error {
			t := &event.Token{}
			if err := scan(ScanToken(t)...); err != nil {
				return err
			}
			into.Tokens[t.ID] = t
			return nil
		}, "SELECT "+TokenColumns+" FROM tokens t WHERE t.id = ANY($1) ORDER BY t.id FOR NO KEY UPDATE", n.Tokens)
	}
	for i := range e.kinds {
		k := &e.kinds[i]
		record(k, k.read, n.Read[k.Name()])
	}
	if n.ShortLockTimeout {
		// the head of the log is worth waiting for
		l.queue(nil, "SELECT set_config('lock_timeout', $1, true)", e.limits[0])
	}
	results := e.conn.SendBatch(ctx, &l.batch)
	defer results.Close()
	for _, each := range l.each {
		if each == nil {
			if _, err := results.Exec(); err != nil {
				return into, e.failed(ctx, err)
			}
			continue
		}
		rows, err := results.Query()
		if err != nil {
			return into, e.failed(ctx, err)
		}
		for rows.Next() {
			if err := each(rows.Scan); err != nil {
				rows.Close()
				return into, err
			}
		}
		if err := rows.Err(); err != nil {
			return into, e.failed(ctx, err)
		}
	}
	return into, nil
}

func (e *pgEngine) Commit(ctx context.Context, c *event.Changes) error {
	b := &pgx.Batch{}
	if e.loaded.Assumed {
		if needsLocks(e.assumed, c) {
			return errNeedsLocks
		}
		b.Queue("BEGIN")
	}
	for i := range e.kinds {
		k := &e.kinds[i]
		if args := stateArrays(c.Created, k); args != nil {
			b.Queue(k.insert, args...)
		}
		if text, args := k.update(c.Updated, &e.loaded); args != nil {
			b.Queue(text, args...)
		}
	}
	if len(c.Claims) > 0 {
		var released, claimed [][]byte
		var holders []string
		for i := range c.Claims {
			if change := &c.Claims[i]; change.Holder == "" {
				released = append(released, change.Digest[:])
			} else {
				claimed, holders = append(claimed, change.Digest[:]), append(holders, change.Holder)
			}
		}
		if released != nil {
			b.Queue("DELETE FROM claims WHERE digest = ANY($1)", released)
		}
		if claimed != nil {
			b.Queue("INSERT INTO claims (digest, object_id) SELECT * FROM unnest($1::bytea[], $2::text[])",
				claimed, holders)
		}
	}
	exec := func(sql string, args ...any) error {
		b.Queue(e.text(sql), args...)
		return nil
	}
	insert := func(rows []event.Row, ending string) error { return insertTogether(b, rows, ending, exec) }
	if err := writeBeside(c, insert, exec); err != nil {
		return err
	}
	if len(c.Events) > 0 {
		b.Queue("UPDATE log_head SET position = position + $1 WHERE id = 1", int64(len(c.Events)))
		b.Queue(insertEvents, eventArrays(c.Events)...)
	}
	learned := numbers{}
	e.queueWords(b, c, learned)
	if e.loaded.Assumed {
		e.checkAssumed(b, c.Updated)
	} else {
		e.checkUnmoved(b, c.Unmoved)
	}
	b.Queue("COMMIT")
	if err := e.conn.SendBatch(ctx, b).Close(); err != nil {
		if e.loaded.Assumed && e.IsConflict(err) {
			e.raceLost = time.Now()
		}
		return e.failed(ctx, err)
	}
	e.committed = time.Now()
	for id, number := range learned {
		e.numbers.keep(id, number)
	}
	e.loaded = event.Loaded{}
	e.writing.Unlock()
	return nil
}

// checkUnmoved queues the checks of what decisions rest on without changing it.
func (e *pgEngine) checkUnmoved(b *pgx.Batch, unmoved []event.Unmoved) {
	for i := range e.kinds {
		k := &e.kinds[i]
		var ids []string
		var sequences []int64
		for _, u := range unmoved {
			if u.Kind == k.Name() {
				ids, sequences = append(ids, u.ID), append(sequences, int64(u.Sequence))
			}
		}
		if ids != nil {
			b.Queue(k.unmoved, ids, sequences)
		}
	}
}

func (e *pgEngine) Sync() error { return nil } // a COMMIT that was answered is durable

// Scrub: rows that are dead go with VACUUM, which PostgreSQL runs by itself.
func (e *pgEngine) Scrub(context.Context) (bool, error) { return true, nil }

func (e *pgEngine) Rollback(ctx context.Context) {
	defer e.writing.Unlock()
	if e.conn == nil {
		return
	}
	if e.conn.IsClosed() {
		e.conn = nil
		return
	}
	if e.conn.PgConn().TxStatus() == 'I' { // nothing was begun, see mayAssume
		return
	}
	if _, err := e.conn.Exec(ctx, "ROLLBACK"); err != nil {
		e.conn.Close(ctx)
		e.conn = nil
	}
}

// failed tells a statement that PostgreSQL refused, which may be tried again in parts, from a connection that is gone.
func (e *pgEngine) failed(ctx context.Context, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && !e.conn.IsClosed() {
		switch pg.Code[:2] {
		case "57", "08", "53": // an operator stepped in, the connection failed, the server is out of something
		default:
			if pg.Code != "25006" { // it only reads any more: another one has taken its place
				return err
			}
		}
	}
	if ctx.Err() == nil && !e.conn.IsClosed() {
		e.conn.Close(ctx)
	}
	return &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Second, Cause: discreet(err),
		Message: "the database connection failed during a write: the outcome may be unknown, so read before you try again"}
}

// isConflict: a lost race for a name or a sequence, an object that moved, a deadlock, a serialization failure.
func (e *pgEngine) IsConflict(err error) bool {
	if err == errNeedsLocks {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case "23505", "22012", "40P01", "40001", "55P03":
		return true
	}
	return false
}

func (e *pgEngine) IsLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}

func (e *pgEngine) IsMissingTable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "42P01"
}

func (e *pgEngine) Query(ctx context.Context, sql string, args []any, each func(Scanner) error) error {
	return e.read(ctx, each, func(each func(Scanner) error) error {
		rows, err := e.pool.Query(ctx, e.text(sql), args...)
		return scanPgRows(rows, err, each)
	})
}

func (e *pgEngine) Ask(ctx context.Context, questions []readbatch.Question) error {
	if len(questions) == 1 {
		return e.Query(ctx, questions[0].SQL, questions[0].Args, questions[0].Each)
	}
	at := 0
	return e.read(ctx, func(scan Scanner) error { return questions[at].Each(scan) },
		func(each func(Scanner) error) error {
			var b pgx.Batch
			for _, q := range questions {
				b.Queue(e.text(q.SQL), q.Args...)
			}
			results := e.pool.SendBatch(ctx, &b)
			defer results.Close()
			for at = range questions {
				rows, err := results.Query()
				if err := scanPgRows(rows, err, each); err != nil {
					return err
				}
			}
			return nil
		})
}

// read runs a query, and once more where a connection died while it lay in the pool and nothing has come yet.
func (e *pgEngine) read(ctx context.Context, each func(Scanner) error,
	query func(each func(Scanner) error) error) error {
	scanned := false
	watched := func(scan Scanner) error {
		scanned = true
		return each(scan)
	}
	err := query(watched)
	if err != nil && !scanned && ctx.Err() == nil && connectionLost(err) {
		e.pool.Reset() // where one died, the others most likely did too
		err = query(watched)
	}
	return discreet(err)
}

// connectionLost tells that no answer came because the server was not there any more.
func connectionLost(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08")
}

func scanPgRows(rows pgx.Rows, err error, each func(Scanner) error) error {
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

// pgTx runs shared statements in a transaction, or each by itself on a connection.
type pgTx struct {
	engine *pgEngine
	tx     interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
		CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	}
}

func (x pgTx) execAll(ctx context.Context, all []Statement) error {
	var b pgx.Batch
	for _, s := range all {
		b.Queue(x.engine.text(s.SQL), s.Args...)
	}
	return x.tx.SendBatch(ctx, &b).Close()
}

func (x pgTx) Exec(ctx context.Context, sql string, args ...any) error {
	_, err := x.tx.Exec(ctx, x.engine.text(sql), args...)
	return err
}

func (x pgTx) Query(ctx context.Context, sql string, args []any, each func(Scanner) error) error {
	rows, err := x.tx.Query(ctx, x.engine.text(sql), args...)
	return scanPgRows(rows, err, each)
}

func (e *pgEngine) Transact(ctx context.Context, f func(Executor) error) error {
	return e.transact(ctx, pgx.TxOptions{AccessMode: e.access}, f)
}

// transact begins once more where a connection died while it lay in the pool: nothing has been asked of it but to
// begin.
func (e *pgEngine) transact(ctx context.Context, o pgx.TxOptions, f func(Executor) error) error {
	begun := false
	run := func(tx pgx.Tx) error {
		begun = true
		return f(pgTx{e, tx})
	}
	err := pgx.BeginTxFunc(ctx, e.pool, o, run)
	if err != nil && !begun && ctx.Err() == nil && connectionLost(err) {
		e.pool.Reset() // where one died, the others most likely did too
		err = pgx.BeginTxFunc(ctx, e.pool, o, run)
	}
	return discreet(err)
}

func (e *pgEngine) Aside(ctx context.Context, f func(Executor) error) error {
	return e.Transact(ctx, func(x Executor) error {
		// A node that is stopped half way must not keep its locks: others pass them by, and nobody would do its work.
		if err := x.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '10s'"); err != nil {
			return err
		}
		return f(x)
	})
}

func (e *pgEngine) Snapshot(ctx context.Context, f func(Executor) error) error {
	return e.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(x Executor) error {
			if err := x.Exec(ctx, noLimits); err != nil {
				return err
			}
			return f(x)
		})
}

// schemaLock is any number that no other program on the same database uses.
const schemaLock = 7_410_250_901

// LockSchema comes before the schema is changed, so it finds out whether that is allowed.
func (e *pgEngine) LockSchema(ctx context.Context, x Executor) error {
	err := x.Query(ctx, "SELECT current_schema()::text, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)", nil, func(row Scanner) error {
		var schema *string
		var may bool
		if err := row(&schema, &may); err != nil || may {
			return err
		}
		return mayNotCreate(e.config, schema)
	})
	if err != nil {
		return err
	}
	return x.Query(ctx, "SELECT 1 FROM (SELECT pg_advisory_xact_lock(?::bigint)) l", []any{int64(schemaLock)},
		func(Scanner) error { return nil })
}

// Dialect: texts are compared by bytes, as SQLite does.
func (e *pgEngine) Dialect() migrations.Dialect {
	return migrations.Dialect{Types: map[string]string{Text: `TEXT COLLATE "C"`}, RowID: Integer, Postgres: true}
}

func (e *pgEngine) ForUpdate() string  { return " FOR NO KEY UPDATE" }
func (e *pgEngine) SkipLocked() string { return " FOR UPDATE SKIP LOCKED" }

// Check has nothing to do: PostgreSQL has its own tools (data checksums, pg_amcheck).
func (e *pgEngine) Check(context.Context, func(context.Context) error) error { return nil }

// Reindex has nothing to do either.
func (e *pgEngine) Reindex(context.Context, Executor) error { return nil }
