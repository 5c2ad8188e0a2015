// Package listing builds the SQL queries of lists.
package listing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Listing is a query as SQL: everything behind the cursor that the query is about, in order.
type Listing struct {
	kind   event.Definition
	query  event.Query
	from   string
	names  string // the table that the conditions of New are about
	by     string // column to sort by, before the identifier; empty: none
	id     string // column of the identifier
	conds  []string
	values []any
}

// New makes the listing of a query about a kind. It fails for columns that the kind does not have.
func New(k event.Definition, q event.Query) (*Listing, error) {
	needed := slices.Collect(maps.Keys(q.Where))
	if q.Group == "" {
		needed = append(needed, event.State)
	}
	if q.By != "" {
		needed = append(needed, q.By)
	}
	for _, name := range needed {
		if !slices.Contains(k.Columns(), name) {
			return nil, fmt.Errorf("store: %q has no lookup column %q", q.Kind, name)
		}
	}
	l := &Listing{kind: k, query: q, from: k.Table() + " s", names: k.Table() + " s", id: "s.id"}
	if q.Group != "" {
		l.names, l.id = "groupings g", "g.object_id"
		l.from = l.names + " JOIN " + k.Table() + " s ON s.id = g.object_id"
		l.and("g.name = ?", q.Group)
		l.and("g.object_id > ?", q.After.ID)
		return l, nil
	}
	l.and("s.state <> 'removed'") // as the indexes have it
	if q.Org != "" {
		l.and("s.org_id = ?", q.Org)
	}
	if q.By == "" {
		l.and("s.id > ?", q.After.ID)
		return l, nil
	}
	l.by = "s." + q.By
	after := q.After
	if after.Value < q.Prefix {
		after = event.Cursor{Value: q.Prefix}
	}
	l.and("("+l.by+", s.id) > (?, ?)", after.Value, after.ID)
	if end, bounded := event.PrefixEnd(q.Prefix); bounded {
		l.and(l.by+" < ?", end)
	}
	return l, nil
}

func (l *Listing) and(condition string, values ...any) {
	l.conds = append(l.conds, condition)
	l.values = append(l.values, values...)
}

// UpTo ends the listing at a cursor; nil: at its end.
func (l *Listing) UpTo(last *event.Cursor) {
	switch {
	case last == nil:
	case l.by == "":
		l.and(l.id+" <= ?", last.ID)
	default:
		l.and("("+l.by+", "+l.id+") <= (?, ?)", last.Value, last.ID)
	}
}

// Where adds the conditions that no index answers, in an order that gives few texts to prepare.
func (l *Listing) Where() {
	for _, name := range slices.Sorted(maps.Keys(l.query.Where)) {
		l.and("s."+name+" = ?", l.query.Where[name])
	}
}

// Args are the values of a text with a number for its last placeholder.
func (l *Listing) Args(number int64) []any { return append(slices.Clone(l.values), number) }

func (l *Listing) inside(from string) string {
	order := l.id
	if l.by != "" {
		order = l.by + ", " + l.id
	}
	return " FROM " + from + " WHERE " + strings.Join(l.conds, " AND ") + " ORDER BY " + order
}

// Text reads columns of the objects, which are s, up to a number of them.
func (l *Listing) Text(columns string) string {
	return "SELECT " + columns + l.inside(l.from) + " LIMIT ?"
}

// Farthest finds the cursor of the last object to look at, behind a number of others; nothing where there are fewer.
func (l *Listing) Farthest() string {
	by := l.by
	if by == "" {
		by = "''"
	}
	return "SELECT " + by + ", " + l.id + l.inside(l.names) + " LIMIT 1 OFFSET ?"
}

// CursorBehind is the cursor behind a record.
func (l *Listing) CursorBehind(r *event.Record) *event.Cursor {
	if l.by == "" {
		return &event.Cursor{ID: r.ID}
	}
	return &event.Cursor{Value: r.Columns[slices.Index(l.kind.Columns(), l.query.By)], ID: r.ID}
}
