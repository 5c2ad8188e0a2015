// Package engine holds what SQLite and PostgreSQL do differently: transactions, the writer's statements, and the
// meaning of errors. The store decides what a statement is about.
package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Options of Open.
type Options struct {
	Database string // a file, or postgres://…
	Flag     string // by which messages name it; empty: --database
	Kinds    []event.Definition
	Cache    *cache.Cache // of the embedded database; told of every change
	Log      *slog.Logger
	ReadOnly bool

	FactVersion int // see event.Gated; event.FactVersion when 0

	Looked bool // the file was opened by this process just now, so that it is known to have no auto_vacuum
}

// silenceChanged is for the log. It does not say which server it is: the log is read by more people than may know that.
func (o *Options) silenceChanged(silent bool) {
	switch {
	case o.Log == nil:
	case silent:
		o.Log.Warn("PostgreSQL has gone silent: its connections were given up, and the server keeps asking for it")
	default:
		o.Log.Info("PostgreSQL answers again")
	}
}

// IsPostgres tells whether a database address means PostgreSQL.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Open connects.
func Open(ctx context.Context, o Options) (Engine, error) {
	if IsPostgres(o.Database) {
		return openPostgres(ctx, o)
	}
	return openSQLite(ctx, o)
}

// Scanner reads the columns of one row.
type Scanner = func(dest ...any) error

// ErrEnough is what the function that gets the rows of a query returns to have no more of them. The query succeeds.
var ErrEnough = errors.New("engine: enough rows")

func unlessEnough(err error) error {
	if err == ErrEnough {
		return nil
	}
	return err
}

// Querier reads: an Engine outside any transaction, an Executor in one.
type Querier interface {
	Query(ctx context.Context, sql string, args []any, each func(Scanner) error) error
}

// Executor runs statements in one transaction.
type Executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) error
}

// Statement is one with its arguments.
type Statement struct {
	SQL  string
	Args []any
}

// ExecAll runs statements one after the other, in one round trip where the engine can.
func ExecAll(ctx context.Context, x Executor, all []Statement) error {
	if pipelined, ok := x.(interface {
		execAll(ctx context.Context, all []Statement) error
	}); ok && len(all) > 1 {
		return pipelined.execAll(ctx, all)
	}
	for _, s := range all {
		if err := x.Exec(ctx, s.SQL, s.Args...); err != nil {
			return err
		}
	}
	return nil
}

// Engine is what SQLite and PostgreSQL do differently.
type Engine interface {
	// Begin starts the writer's transaction and reads what a batch needs. Objects to write, rows and tokens are locked.
	Begin(ctx context.Context, n *Needs) (event.Loaded, error)
	// Commit writes a batch and commits; Sync makes it durable. What was Assumed is checked, also where nothing is
	// written. A lost race is an error for which IsConflict holds; an
	// *errs.Error says that storage is away. After any error the transaction is to be rolled back.
	Commit(ctx context.Context, c *event.Changes) error
	Rollback(ctx context.Context)
	// Sync returns when everything committed before it was called is on the disk. It may run beside the next batch.
	Sync() error

	// Scrub takes what was deleted out of the files of the database, as far as that is not the database's own business,
	// and tells whether it is done. It holds the writer up for a moment only, and has to be tried again where somebody
	// who reads was in the way.
	Scrub(ctx context.Context) (done bool, err error)

	Querier
	// Ask is Query for several at once.
	Ask(ctx context.Context, questions []readbatch.Question) error
	// Transact runs f in a transaction of its own that writes.
	Transact(ctx context.Context, f func(Executor) error) error
	// Aside is Transact for work in the background on tables that the writer does not touch. f reads first: on the
	// embedded database what it writes is gathered and written when it returns, so that the writer does not wait for
	// its reading, and becomes durable with the next batch.
	Aside(ctx context.Context, f func(Executor) error) error
	// Join makes the node one of those that Alone waits for and Nodes counts, also when it has lost its connection
	// since. It fails while a rebuild is running, and where the log may hold facts that this node does not know.
	Join(ctx context.Context) error
	// Nodes gives the lowest version of facts that a running node knows, and how many run. Behind a pooler, the batches
	// that are under way are counted as well, unless LockJoins was called before.
	Nodes(ctx context.Context, q Querier) (oldest, running int, err error)
	// LockJoins keeps nodes from joining until the transaction ends. It waits for those that are about to; behind a
	// pooler also for the batches of all others.
	LockJoins(ctx context.Context, x Executor) error
	// Alone is Transact for as long as no other node writes, and keeps every node from it meanwhile. It fails with
	// ErrInUse where a node is running.
	Alone(ctx context.Context, f func(Executor) error) error
	// Snapshot runs f in a transaction that only reads and sees one state of the database throughout.
	Snapshot(ctx context.Context, f func(Executor) error) error
	// LockSchema keeps other nodes from migrating until the transaction ends.
	LockSchema(ctx context.Context, x Executor) error
	// Reshape runs f while no other node migrates. change runs one statement of the schema, such that nobody who writes
	// waits for it for longer than a moment. On PostgreSQL each statement is a transaction of its own, and change takes
	// it that some were run before.
	Reshape(ctx context.Context, f func(x Executor, change func(statement string) error) error) error

	// Check looks for damage in the files of an embedded database, resting after every piece of work; with nil it does
	// not rest. PostgreSQL sees to its own. Errors: a *DamagedError.
	Check(ctx context.Context, rest func(context.Context) error) error
	// Reindex makes the indexes of an embedded database again from its tables.
	Reindex(ctx context.Context, x Executor) error

	// Tables are those of this database, in the order of their names.
	Tables(ctx context.Context, x Executor) ([]Table, error)
	// Fill writes the rows of whole tables, which have none. It is quick, and nobody else may use the database
	// meanwhile. After an error some rows may be there: the caller makes sure that nobody takes them for a database.
	// Indexes come last: indexing is told how many there are, and returns what to call after each.
	Fill(ctx context.Context, tables []Table, rows func(Table) Rows, indexing func(total int64) (made func())) error

	// Dialect is how this engine writes the schema.
	Dialect() migrations.Dialect
	// ForUpdate ends a query that locks the rows it finds, and SkipLocked one that leaves out those that others have
	// locked. Both are empty on the embedded database, which has one writer.
	ForUpdate() string
	SkipLocked() string
	IsConflict(err error) bool
	// IsLockTimeout tells of a conflict that somebody else kept a lock for too long.
	IsLockTimeout(err error) bool
	IsMissingTable(err error) bool
	Close() error
}

// Needs is what a batch looks at: per kind the objects to lock and those only to read, claims, rows and tokens. All
// sorted, because the order of locks is what keeps nodes from deadlocks.
type Needs struct {
	Write            map[event.Kind][]string
	Read             map[event.Kind][]string
	Claims           [][32]byte
	Rows             map[event.SideTable][]string
	Tokens           []string // ids
	ShortLockTimeout bool     // hardly wait for locks

	// Remembered are all objects to write and to read as this node knows them; nil where it does not know one of them,
	// or something else is needed. Begin may give them without asking and locking; then it says so in Loaded.Assumed,
	// and Commit fails as a lost race if any of them has changed meanwhile.
	Remembered map[event.Ref]*event.Record
}

// Sort puts everything into its order, once each. What is locked is not read besides.
func (n *Needs) Sort() {
	slices.Sort(n.Tokens)
	n.Tokens = slices.Compact(n.Tokens)
	slices.SortFunc(n.Claims, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	n.Claims = slices.Compact(n.Claims)
	sortUnique(n.Write)
	sortUnique(n.Read)
	sortUnique(n.Rows)
	for kind, ids := range n.Read {
		n.Read[kind] = slices.DeleteFunc(ids, func(id string) bool {
			_, locked := slices.BinarySearch(n.Write[kind], id)
			return locked
		})
	}
}

func sortUnique[K comparable](m map[K][]string) {
	for k, v := range m {
		slices.Sort(v)
		m[k] = slices.Compact(v)
	}
}

// ErrInUse says that nodes are running on a PostgreSQL database that a rebuild needs for itself.
var ErrInUse = errors.New("other signet nodes are running on this database: stop all of them first")

// FactVersionRow is the name of the row in meta with the version of facts that the log may hold.
const FactVersionRow = "fact_version"

// WordBlocksRow is the name of the row in meta that says that word_blocks has what objects are found by, and that words
// is of no use any more. Until then both are written.
const WordBlocksRow = "word_blocks"

// knowsFacts fails where the log may hold facts that a node does not know. stored is empty where it holds none that are
// Gated.
func knowsFacts(factVersion int, stored []byte) error {
	if version, _ := strconv.Atoi(string(stored)); version > factVersion {
		return errs.New(errs.Unavailable, event.StorageAway,
			"newer nodes have recorded what this one does not know: upgrade this node")
	}
	return nil
}

// ErrDeadline says that the caller's deadline has passed.
var ErrDeadline = errs.New(errs.DeadlineExceeded, event.DeadlinePassed,
	"the deadline passed before the database answered: the outcome may be unknown, so read before you try again")

// Pause is over after a time, or with an error when the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Left is the answer to a caller whose context has ended: the caller has gone, or its time is over.
func Left(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errs.ErrGone.Because(err)
	}
	return ErrDeadline.Because(err)
}

// Away is how a failing database looks from outside. The cause is for the log only.
func Away(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return Left(ctx, err)
	}
	return &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Second, Cause: err,
		Message: "the database does not answer: try again in a moment"}
}
