package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/event"
)

// maxLooked is how many objects a query looks at for one page, when not all of them are wanted.
const maxLooked = 2000

// List implements event.Reader.
//
// A prefix is a range of the column's index, so a page costs the same however many objects there are. Other conditions
// have no index of their own: they choose among a bounded number of objects, and the next page goes on behind those.
func (s *Store) List(ctx context.Context, q event.Query) (event.Page, error) {
	l, err := s.newListing(q)
	if err != nil {
		return event.Page{}, err
	}
	var last *event.Cursor
	if len(q.Where) > 0 {
		// How far this page looks is settled first, and is where the next one starts: what is added or removed meanwhile
		// neither moves an object past both of them nor into both.
		err := s.engine.query(ctx, l.farthest(), l.args(int64(maxLooked-1)), func(scan scanner) error {
			last = &event.Cursor{}
			return scan(&last.Value, &last.ID)
		})
		if err != nil {
			return event.Page{}, away(ctx, err)
		}
		l.upTo(last)
		l.where()
	}
	var page event.Page
	err = s.engine.query(ctx, l.text(), l.args(int64(q.Limit+1)), func(scan scanner) error {
		r, dest := scanRecord(l.kind, false)
		page.Records = append(page.Records, r)
		return scan(dest...)
	})
	if err != nil {
		return event.Page{}, away(ctx, err)
	}
	page.Next = last
	if len(page.Records) > q.Limit {
		page.Records = page.Records[:q.Limit]
		page.Next = l.place(page.Records[q.Limit-1])
	}
	return page, nil
}

// listing is a query as SQL: everything behind the cursor that the query is about, in order.
type listing struct {
	kind   event.Definition
	query  event.Query
	from   string
	names  string // the table that the conditions of newListing are about
	by     string // column to sort by, before the identifier; empty: none
	id     string // column of the identifier
	conds  []string
	values []any
}

func (s *Store) newListing(q event.Query) (*listing, error) {
	k, known := s.byName[q.Kind]
	if !known {
		return nil, fmt.Errorf("store: unknown kind %q", q.Kind)
	}
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
	l := &listing{kind: k, query: q, from: k.Table() + " s", names: k.Table() + " s", id: "s.id"}
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

func (l *listing) and(condition string, values ...any) {
	l.conds = append(l.conds, condition)
	l.values = append(l.values, values...)
}

// upTo ends the listing at a place; nil: at its end.
func (l *listing) upTo(last *event.Cursor) {
	switch {
	case last == nil:
	case l.by == "":
		l.and(l.id+" <= ?", last.ID)
	default:
		l.and("("+l.by+", "+l.id+") <= (?, ?)", last.Value, last.ID)
	}
}

// where adds the conditions that no index answers, in an order that gives few texts to prepare.
func (l *listing) where() {
	for _, name := range slices.Sorted(maps.Keys(l.query.Where)) {
		l.and("s."+name+" = ?", l.query.Where[name])
	}
}

// args are the values of a text with a number for its last placeholder.
func (l *listing) args(number int64) []any { return append(slices.Clone(l.values), number) }

func (l *listing) inside(from string) string {
	order := l.id
	if l.by != "" {
		order = l.by + ", " + l.id
	}
	return " FROM " + from + " WHERE " + strings.Join(l.conds, " AND ") + " ORDER BY " + order
}

// text reads the objects, up to a number of them.
func (l *listing) text() string {
	return "SELECT " + allColumns(l.kind) + l.inside(l.from) + " LIMIT ?"
}

// farthest finds the place of the last object to look at, behind a number of others; nothing where there are fewer.
func (l *listing) farthest() string {
	by := l.by
	if by == "" {
		by = "''"
	}
	return "SELECT " + by + ", " + l.id + l.inside(l.names) + " LIMIT 1 OFFSET ?"
}

// place is the cursor behind a record.
func (l *listing) place(r *event.Record) *event.Cursor {
	if l.by == "" {
		return &event.Cursor{ID: r.ID}
	}
	return &event.Cursor{Value: r.Columns[slices.Index(l.kind.Columns(), l.query.By)], ID: r.ID}
}

const tokensOfText = "SELECT " + tokenColumns + " FROM tokens t WHERE t.user_id = ? AND t.kind = ? AND t.id > ? AND t.expires > ? ORDER BY t.id LIMIT ?"

// TokensOf implements event.Reader.
func (s *Store) TokensOf(ctx context.Context, userID, kind, afterID string, limit int) ([]event.Token, error) {
	var found []event.Token
	err := s.engine.query(ctx, tokensOfText,
		[]any{userID, kind, afterID, event.Micros(s.clock()), int64(limit)}, func(scan scanner) error {
			found = append(found, event.Token{})
			return scan(scanToken(&found[len(found)-1])...)
		})
	return found, away(ctx, err)
}
