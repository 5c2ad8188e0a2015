package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	EventColumns = "position, object_id, sequence, org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time"
	TokenColumns = "t.hash, t.id, t.kind, t.name, t.user_id, t.epoch, t.org_epoch, t.created, t.expires, t.session, t.client, t.family, t.data, t.provider"
)

// StateColumns are all columns of a kind's state table, in the order of StateValues.
func StateColumns(k event.Definition) []string {
	return append([]string{"id", "org_id", "sequence", "created", "changed", "hash", "key_id", "shape", "doc"},
		k.Columns()...)
}

func StateValues(r *event.Record) []any {
	values := make([]any, 0, 9+len(r.Columns))
	values = append(values, r.ID, r.Org, int64(r.Sequence), r.Created, r.Changed, r.Hash, r.KeyID,
		int64(r.Shape), string(r.Doc))
	for _, c := range r.Columns {
		values = append(values, c)
	}
	return values
}

// AllColumns are those of StateColumns for a SELECT from the table as s.
func AllColumns(k event.Definition) string { return "s." + strings.Join(StateColumns(k), ", s.") }

// ScanRecord gives a new record and where to scan AllColumns, and the wrapped key behind them if it is asked for.
func ScanRecord(k event.Definition, withKey bool) (*event.Record, []any) {
	r := &event.Record{Ref: event.Ref{Kind: k.Name()}}
	dest := make([]any, 0, 10+len(k.Columns()))
	dest = append(dest, &r.ID, &r.Org, &r.Sequence, &r.Created, &r.Changed, &r.Hash, &r.KeyID, &r.Shape,
		(*text)(&r.Doc))
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

func ScanEvent(e *event.Event) []any {
	return []any{&e.Position, &e.ObjectID, &e.Sequence, &e.Org, &e.Type, (*text)(&e.Payload), &e.Sealed,
		&e.KeyID, &e.PrevHash,
		&e.Actor, &e.RequestID, &e.Time}
}

func EventValues(e *event.Event) []any {
	return []any{e.Position, e.ObjectID, int64(e.Sequence), e.Org, string(e.Type), string(e.Payload), e.Sealed,
		e.KeyID, e.PrevHash,
		e.Actor, e.RequestID, e.Time}
}

func ScanToken(t *event.Token) []any {
	return []any{&t.Hash, &t.ID, &t.Kind, &t.Name, &t.UserID, &t.Epoch, &t.OrgEpoch, &t.Created, &t.Expires, &t.Session,
		&t.Client, &t.Family, &t.Data, &t.Provider}
}

func tokenValues(t *event.Token) []any {
	return []any{t.Hash, t.ID, t.Kind, t.Name, t.UserID, t.Epoch, t.OrgEpoch, t.Created, t.Expires, t.Session, t.Client,
		t.Family, t.Data, t.Provider}
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

// ErrOtherType says that a value is not of its column's type.
var ErrOtherType = errors.New("its type differs from the type of its column")

// Exactly makes a scan refuse a value that is not of its column's type, with ErrOtherType. SQLite keeps any value in
// any column, and the driver converts it; but a query for a text does not find the same text that is stored as bytes.
func Exactly(dest []any) []any {
	columns, exact := make([]exactly, len(dest)), make([]any, len(dest))
	for i := range dest {
		columns[i].dest = dest[i]
		exact[i] = &columns[i]
	}
	return exact
}

type exactly struct{ dest any }

// Scan implements sql.Scanner.
func (c *exactly) Scan(value any) error {
	fits := false
	switch dest := c.dest.(type) {
	case *string:
		*dest, fits = value.(string)
	case *event.Type:
		var name string
		name, fits = value.(string)
		*dest = event.Type(name)
	case *text:
		var content string
		content, fits = value.(string)
		*dest = text(content)
	case *[]byte:
		var content []byte
		content, fits = value.([]byte)
		*dest, fits = bytes.Clone(content), fits || value == nil
	case *int64:
		*dest, fits = value.(int64)
	case *int:
		var n int64
		n, fits = value.(int64)
		*dest = int(n)
	case *uint64:
		var n int64
		n, fits = value.(int64)
		*dest, fits = uint64(n), fits && n >= 0
	}
	if !fits {
		return fmt.Errorf("%w: %T", ErrOtherType, value)
	}
	return nil
}

// Placeholders makes "?, ?, ?".
func Placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Padded makes as many arguments as a statement has, by naming the last one several times: so one statement does for
// any number.
func Padded[T any](values []T, n int) []any {
	args := make([]any, n)
	for i := range args {
		args[i] = values[min(i, len(values)-1)]
	}
	return args
}

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
