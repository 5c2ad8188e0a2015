package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/event"
)

// maxLooked is how many objects a query looks at for one page, when not all of them are wanted.
const maxLooked = 2000

// List implements event.Reader.
//
// A prefix is a range of the column's index, so a page costs the same however many objects there are. Other conditions
// have no index of their own: they choose among a bounded number of objects, and the next page goes on behind those.
func (s *Store) List(ctx context.Context, q event.Query) (event.Page, error) {
	k, known := s.byName[q.Kind]
	if !known {
		return event.Page{}, fmt.Errorf("store: unknown kind %q", q.Kind)
	}
	columns := k.Columns()
	if q.By != "" && !slices.Contains(columns, q.By) {
		return event.Page{}, fmt.Errorf("store: %q has no lookup column %q", q.Kind, q.By)
	}
	inside, args := insideOf(k, q)
	look := q.Limit + 1
	var chosen []string
	for _, name := range columns { // in an order that gives few texts to prepare
		if value, wanted := q.Where[name]; wanted {
			chosen = append(chosen, "w."+name+" = ?")
			args = append(args, value)
			look = maxLooked
		}
	}
	if len(chosen) != len(q.Where) {
		return event.Page{}, fmt.Errorf("store: %q has not all of the lookup columns %v", q.Kind, q.Where)
	}
	text := inside
	if len(chosen) > 0 {
		args = slices.Insert(args, len(args)-len(chosen), any(int64(look)))
		text = "SELECT " + strings.ReplaceAll(allColumns(k), "s.", "w.") + " FROM (" + inside + ") w WHERE " + strings.Join(chosen, " AND ") +
			" ORDER BY " + orderOf(q, "w.") + " LIMIT ?"
		args = append(args, int64(q.Limit+1))
	} else {
		args = append(args, int64(look))
	}
	var page event.Page
	err := s.engine.query(ctx, text, args, func(scan scanner) error {
		r, dest := scanRecord(k, false)
		page.Records = append(page.Records, r)
		return scan(dest...)
	})
	if err != nil {
		return event.Page{}, away(ctx, err)
	}
	if len(page.Records) > q.Limit {
		page.Records = page.Records[:q.Limit]
		page.Next = placeOf(k, q, page.Records[q.Limit-1])
		return page, nil
	}
	if len(chosen) > 0 {
		page.Next, err = s.lastLookedAt(ctx, k, q)
	}
	return page, err
}

// insideOf is the part of a query that an index answers, up to a limit.
func insideOf(k event.Definition, q event.Query) (text string, args []any) {
	if q.Group != "" {
		return "SELECT " + allColumns(k) + " FROM groupings g JOIN " + k.Table() + " s ON s.id = g.object_id " +
			"WHERE g.name = ? AND g.object_id > ? ORDER BY g.object_id LIMIT ?", []any{q.Group, q.After.ID}
	}
	text = "SELECT " + allColumns(k) + " FROM " + k.Table() + " s WHERE s.state <> 'removed'"
	if q.Org != "" {
		text += " AND s.org_id = ?"
		args = append(args, q.Org)
	}
	if q.By == "" {
		text += " AND s.id > ?"
		args = append(args, q.After.ID)
	} else {
		text += " AND (s." + q.By + ", s.id) > (?, ?)"
		after := q.After
		if after.Value < q.Prefix {
			after = event.Cursor{Value: q.Prefix}
		}
		args = append(args, after.Value, after.ID)
		if end, bounded := prefixEnd(q.Prefix); bounded {
			text += " AND s." + q.By + " < ?"
			args = append(args, end)
		}
	}
	return text + " ORDER BY " + orderOf(q, "s.") + " LIMIT ?", args
}

func orderOf(q event.Query, table string) string {
	if q.By == "" || q.Group != "" {
		return table + "id"
	}
	return table + q.By + ", " + table + "id"
}

// prefixEnd is the first text behind all that begin with a prefix: the one with its last character raised. Bytes of
// UTF-8 sort like the characters they stand for.
func prefixEnd(prefix string) (string, bool) {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case last == unicode.MaxRune: // nothing comes behind it: raise the one before
		case last == surrogates-1:
			return prefix + string(rune(surrogatesEnd)), true
		default:
			return prefix + string(last+1), true
		}
	}
	return "", false
}

// Between these two there are no characters.
const (
	surrogates    = 0xD800
	surrogatesEnd = 0xE000
)

// placeOf is the cursor behind a record.
func placeOf(k event.Definition, q event.Query, r *event.Record) *event.Cursor {
	if q.By == "" || q.Group != "" {
		return &event.Cursor{ID: r.ID}
	}
	return &event.Cursor{Value: r.Columns[slices.Index(k.Columns(), q.By)], ID: r.ID}
}

// lastLookedAt is where a query that chose among maxLooked objects has stopped; nil when it has seen the last one.
func (s *Store) lastLookedAt(ctx context.Context, k event.Definition, q event.Query) (*event.Cursor, error) {
	inside, args := insideOf(k, q)
	by := "''"
	if q.By != "" && q.Group == "" {
		by = "w." + q.By
	}
	var last *event.Cursor
	err := s.engine.query(ctx, "SELECT "+by+", w.id FROM ("+inside+") w ORDER BY "+orderOf(q, "w.")+" LIMIT 1 OFFSET ?",
		append(args, int64(maxLooked), int64(maxLooked-1)), func(scan scanner) error {
			last = &event.Cursor{}
			return scan(&last.Value, &last.ID)
		})
	return last, away(ctx, err)
}

// TokensOf implements event.Reader.
func (s *Store) TokensOf(ctx context.Context, userID, kind, afterID string, limit int) ([]event.Token, error) {
	var found []event.Token
	err := s.engine.query(ctx, "SELECT "+tokenColumns+" FROM tokens t WHERE t.user_id = ? AND t.kind = ? AND t.id > ? AND t.expires > ? ORDER BY t.id LIMIT ?",
		[]any{userID, kind, afterID, event.Micros(s.clock()), int64(limit)}, func(scan scanner) error {
			found = append(found, event.Token{})
			return scan(scanToken(&found[len(found)-1])...)
		})
	return found, away(ctx, err)
}
