package store

import (
	"context"
	"crypto/subtle"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/together"
)

// scanner reads the columns of one row.
type scanner = func(dest ...any) error

// executor runs statements in one transaction.
type executor interface {
	exec(ctx context.Context, sql string, args ...any) error
	query(ctx context.Context, sql string, args []any, each func(scanner) error) error
}

// engine is what SQLite and PostgreSQL do differently.
type engine interface {
	// begin starts the writer's transaction and reads what a batch needs. Objects to write are locked.
	begin(ctx context.Context, n *needs) (event.Loaded, error)
	// commit writes a batch and commits; sync makes it durable. A lost race is an error for which isConflict holds; an *errs.Error says that
	// storage is away. After any error the transaction is to be rolled back.
	commit(ctx context.Context, c *event.Changes) error
	rollback(ctx context.Context)
	// sync returns when everything committed before it was called is on the disk. It may run beside the next batch.
	sync() error

	// query reads outside any transaction.
	query(ctx context.Context, sql string, args []any, each func(scanner) error) error
	// ask is query for several at once.
	ask(ctx context.Context, questions []together.Question) error
	// transact runs f in a transaction of its own that writes.
	transact(ctx context.Context, f func(executor) error) error
	// join makes the node one of those that alone waits for. It fails while a rebuild is running.
	join(ctx context.Context) error
	// alone is transact for as long as no other node writes, and keeps every node from it meanwhile. It fails with
	// ErrInUse where a node is running.
	alone(ctx context.Context, f func(executor) error) error
	// snapshot runs f in a transaction that only reads and sees one state of the database throughout.
	snapshot(ctx context.Context, f func(executor) error) error
	// lockSchema keeps other nodes from migrating until the transaction ends.
	lockSchema(ctx context.Context, x executor) error

	// dialect turns a shared statement of the schema into this engine's.
	dialect(sql string) string
	isConflict(err error) bool
	// isLockTimeout tells of a conflict that somebody else kept a lock for too long.
	isLockTimeout(err error) bool
	isMissingTable(err error) bool
	close() error
}

const (
	eventColumns = "position, object_id, sequence, org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time"
	tokenColumns = "t.hash, t.id, t.kind, t.name, t.user_id, t.epoch, t.org_epoch, t.created, t.expires, t.session, t.client, t.family, t.data"
)

// statements are the shared texts that depend on the kinds of objects.
type statements struct {
	record byKind // objects by id
	stand  byKind // where they stand: id, sequence, hash, shape
	bearer [len(lookupSizes)]string
	client [len(lookupSizes)]string // bearers that applications were given
	prover byKind                   // objects with their organization and their secret
}

// byKind holds a text per kind and number of objects.
type byKind map[event.Kind][len(lookupSizes)]string

func newStatements(kinds map[event.Kind]event.Definition) statements {
	st := statements{record: byKind{}, stand: byKind{}, prover: byKind{}}
	for i, size := range lookupSizes {
		st.bearer[i], st.client[i] = bearerText(size, false), bearerText(size, true)
	}
	for _, k := range kinds {
		var record, stand, prover [len(lookupSizes)]string
		for i, size := range lookupSizes {
			from := " FROM " + k.Table() + " s WHERE s.id IN (" + placeholders(size) + ")"
			record[i], stand[i] = "SELECT "+allColumns(k)+from, "SELECT s.id, s.sequence, s.hash, s.shape"+from
			prover[i] = proverText(k, size)
		}
		st.record[k.Name()], st.stand[k.Name()], st.prover[k.Name()] = record, stand, prover
	}
	return st
}

// stateColumns are all columns of a kind's state table, in the order of stateValues.
func stateColumns(k event.Definition) []string {
	return append([]string{"id", "org_id", "sequence", "created", "changed", "hash", "key_id", "shape", "doc"}, k.Columns()...)
}

func stateValues(r *event.Record) []any {
	values := make([]any, 0, 9+len(r.Columns))
	values = append(values, r.ID, r.Org, int64(r.Sequence), r.Created, r.Changed, r.Hash, r.KeyID, int64(r.Shape), string(r.Doc))
	for _, c := range r.Columns {
		values = append(values, c)
	}
	return values
}

// allColumns are those of stateColumns for a SELECT from the table as s.
func allColumns(k event.Definition) string { return "s." + strings.Join(stateColumns(k), ", s.") }

// scanRecord gives a new record and where to scan allColumns, and the wrapped key behind them if it is asked for.
func scanRecord(k event.Definition, withKey bool) (*event.Record, []any) {
	r := &event.Record{Ref: event.Ref{Kind: k.Name()}}
	dest := make([]any, 0, 10+len(k.Columns()))
	dest = append(dest, &r.ID, &r.Org, &r.Sequence, &r.Created, &r.Changed, &r.Hash, &r.KeyID, &r.Shape, (*text)(&r.Doc))
	if n := len(k.Columns()); n > 0 {
		r.Columns = make([]string, n)
		for i := range r.Columns {
			dest = append(dest, &r.Columns[i])
		}
	}
	if withKey {
		dest = append(dest, &r.WrappedKey)
	}
	return r, dest
}

func scanEvent(e *event.Event) []any {
	return []any{&e.Position, &e.ObjectID, &e.Sequence, &e.Org, &e.Type, (*text)(&e.Payload), &e.Sealed, &e.KeyID, &e.PrevHash,
		&e.Actor, &e.RequestID, &e.Time}
}

func eventValues(e *event.Event) []any {
	return []any{e.Position, e.ObjectID, int64(e.Sequence), e.Org, string(e.Type), string(e.Payload), e.Sealed, e.KeyID, e.PrevHash,
		e.Actor, e.RequestID, e.Time}
}

func scanToken(t *event.Token) []any {
	return []any{&t.Hash, &t.ID, &t.Kind, &t.Name, &t.UserID, &t.Epoch, &t.OrgEpoch, &t.Created, &t.Expires, &t.Session, &t.Client, &t.Family, &t.Data}
}

func tokenValues(t *event.Token) []any {
	return []any{t.Hash, t.ID, t.Kind, t.Name, t.UserID, t.Epoch, t.OrgEpoch, t.Created, t.Expires, t.Session, t.Client, t.Family, t.Data}
}

// text scans a TEXT column into bytes.
type text []byte

// Scan implements sql.Scanner.
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case string:
		*t = text(v)
	case []byte:
		*t = append(text(nil), v...)
	default:
		return fmt.Errorf("store: %T is not text", v)
	}
	return nil
}

// placeholders makes "?, ?, ?".
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// numbered rewrites ? into $1, $2, … None of our statements has a ? in a string or comment.
func numbered(sql string) string {
	var b strings.Builder
	n := 0
	for _, c := range []byte(sql) {
		if c == '?' {
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func sortUnique[K comparable](m map[K][]string) {
	for k, v := range m {
		slices.Sort(v)
		m[k] = slices.Compact(v)
	}
}

func without(ids, remove []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		_, found := slices.BinarySearch(remove, id)
		return found
	})
}

func constantTimeEqual(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
