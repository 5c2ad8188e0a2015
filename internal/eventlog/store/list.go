package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/listing"
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
	l, err := listing.New(k, q)
	if err != nil {
		return event.Page{}, err
	}
	var last *event.Cursor
	if len(q.Where) > 0 {
		// How far this page looks is settled first, and is where the next one starts: what is added or removed
		// meanwhile neither moves an object past both of them nor into both.
		err := s.engine.Query(ctx, l.Farthest(), l.Args(int64(maxLooked-1)), func(scan engine.Scanner) error {
			last = &event.Cursor{}
			return scan(&last.Value, &last.ID)
		})
		if err != nil {
			return event.Page{}, engine.Away(ctx, err)
		}
		l.UpTo(last)
		l.Where()
	}
	var page event.Page
	moment := s.cache.Moment()
	err = s.engine.Query(ctx, l.Text(engine.AllColumns(k)), l.Args(int64(q.Limit+1)), func(scan engine.Scanner) error {
		r, dest := engine.ScanRecord(k, false)
		page.Records = append(page.Records, r)
		return scan(dest...)
	})
	if err != nil {
		return event.Page{}, engine.Away(ctx, err)
	}
	page.Next = last
	if len(page.Records) > q.Limit {
		page.Records = page.Records[:q.Limit]
		page.Next = l.CursorBehind(page.Records[q.Limit-1])
	}
	for i, r := range page.Records {
		page.Records[i] = s.decoded(k, r, moment, q.Limit <= maxKept)
	}
	return page, nil
}

// Count implements event.Reader. One statement sees one moment.
func (s *Store) Count(ctx context.Context, all []event.Counted) ([]int64, error) {
	if len(all) == 0 {
		return nil, nil
	}
	text, args, err := listing.CountObjectsText(s.byName, all)
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(all))
	err = s.engine.Query(ctx, text, args, func(scan engine.Scanner) error {
		dest := make([]any, len(counts))
		for i := range counts {
			dest[i] = &counts[i]
		}
		return scan(dest...)
	})
	return counts, engine.Away(ctx, err)
}

// maxKept is the size of the largest page of a list whose objects are kept in memory. A client that reads all objects,
// a thousand at a time, would only push out what others need.
const maxKept = 100

// decoded gives for a record that was read after a moment the same one that is decoded already, if there is one.
func (s *Store) decoded(k event.Definition, r *event.Record, moment uint64, keep bool) *event.Record {
	switch {
	case s.cache == nil && keep:
		return s.seen.Keep(k, r)
	case s.cache == nil:
		return cmp.Or(s.seen.Same(r), r)
	}
	if same := s.cache.Same(r); same != nil {
		return same
	}
	if keep && k.Prepare(r) == nil {
		s.cache.KeepRecord(moment, r)
	}
	return r
}

const tokensOfText = "SELECT " + engine.TokenColumns +
	" FROM tokens t WHERE t.user_id = ? AND t.kind = ? AND t.id > ? AND t.expires > ? ORDER BY t.id LIMIT ?"

// TokensOf implements event.Reader.
func (s *Store) TokensOf(ctx context.Context, userID, kind, afterID string, limit int) ([]event.Token, error) {
	var found []event.Token
	err := s.engine.Query(ctx, tokensOfText,
		[]any{userID, kind, afterID, event.Micros(s.clock()), int64(limit)}, func(scan engine.Scanner) error {
			found = append(found, event.Token{})
			return scan(engine.ScanToken(&found[len(found)-1])...)
		})
	return found, engine.Away(ctx, err)
}
