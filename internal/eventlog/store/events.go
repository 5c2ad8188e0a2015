package store

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// slack is how far the clocks of nodes may be apart for times to be found by positions.
const slack = 15 * time.Minute

// EventsWhere implements event.Reader.
//
// What is found by an index (object, organization, position) is a line of the log, and a page is a piece of it. Times
// are turned into positions first. Other conditions choose among a bounded number of events, and the next page goes on
// behind those. So a page costs the same however long the log is.
func (s *Store) EventsWhere(ctx context.Context, q event.EventQuery) (event.EventPage, error) {
	page, err := s.eventsWhere(ctx, q)
	return page, engine.Away(ctx, err)
}

func (s *Store) eventsWhere(ctx context.Context, q event.EventQuery) (page event.EventPage, err error) {
	if !storable(q.Org + q.Actor + strings.Join(q.Objects, "")) {
		return page, nil
	}
	first, last, err := s.positions(ctx, &q)
	if err != nil || first > last {
		return page, err
	}
	lines, err := s.linesOf(ctx, &q, first, last)
	if err != nil {
		return page, err
	}
	var seen int64 // up to here, in the order of the query, all lines were looked at; 0: to their ends
	for i := range lines {
		found, farthest, err := s.walk(ctx, &lines[i], &q)
		if err != nil {
			return event.EventPage{}, err
		}
		page.Events = append(page.Events, found...)
		if farthest != 0 && (seen == 0 || (farthest < seen) == q.OldestFirst) {
			seen = farthest
		}
	}
	slices.SortFunc(page.Events, func(a, b event.Event) int {
		if q.OldestFirst {
			return cmp.Compare(a.Position, b.Position)
		}
		return cmp.Compare(b.Position, a.Position)
	})
	if seen != 0 {
		page.Events = slices.DeleteFunc(page.Events,
			func(e event.Event) bool { return e.Position != seen && (e.Position > seen) == q.OldestFirst })
	}
	page.Next = seen
	if len(page.Events) > q.Limit {
		page.Events = page.Events[:q.Limit]
		page.Next = page.Events[q.Limit-1].Position
	}
	return page, nil
}

// positions are the first and the last one between which everything is that the query may mean.
func (s *Store) positions(ctx context.Context, q *event.EventQuery) (first, last int64, err error) {
	first, last = 1, s.onDisk() // what a crash could still take back is shown to nobody
	switch {
	case q.After == 0:
	case q.OldestFirst:
		first = q.After + 1
	default:
		last = min(last, q.After-1)
	}
	if len(q.Objects) > 1 {
		// Their lines are read one after the other: what is written meanwhile must not show in some of them only.
		end, err := s.Position(ctx)
		if err != nil {
			return 0, 0, err
		}
		last = min(last, end)
	}
	if q.From != 0 {
		from, err := s.positionAt(ctx, q.From-slack.Microseconds())
		if err != nil {
			return 0, 0, err
		}
		first = max(first, from)
	}
	if q.To != 0 {
		to, err := s.positionAt(ctx, q.To+slack.Microseconds())
		if err != nil {
			return 0, 0, err
		}
		last = min(last, to-1)
	}
	return first, last, nil
}

const timeAtText = "SELECT time FROM events WHERE position >= ? ORDER BY position LIMIT 1"

// positionAt finds a position with nothing before it that is later than a time, and nothing from it on that is earlier,
// as far as times follow positions.
func (s *Store) positionAt(ctx context.Context, micros int64) (int64, error) {
	end, err := s.Position(ctx)
	if err != nil {
		return 0, err
	}
	return bisect(end, func(position int64) (bool, error) {
		reached := true
		err := s.engine.Query(ctx, timeAtText, []any{position}, func(scan engine.Scanner) error {
			var at int64
			err := scan(&at)
			reached = at >= micros
			return err
		})
		return reached, err
	})
}

// bisect finds the first number from 1 on for which something holds; end+1 where it holds for none up to end.
func bisect(end int64, holds func(int64) (bool, error)) (int64, error) {
	var failed error
	n := sort.Search(int(end), func(i int) bool {
		if failed != nil {
			return true
		}
		var found bool
		found, failed = holds(int64(i) + 1)
		return found
	})
	return int64(n) + 1, failed
}

// line is a piece of the log along an index.
type line struct {
	columns     []string // of the index; the last one gives the order
	values      []any    // of the others
	first, last int64    // of the last column, both included
}

// linesOf tells along which index the events of a query are found.
func (s *Store) linesOf(ctx context.Context, q *event.EventQuery, first, last int64) ([]line, error) {
	switch {
	case len(q.Objects) > 0:
		var lines []line
		for _, id := range q.Objects {
			first, last, err := s.sequences(ctx, q, id, first, last)
			if err != nil {
				return nil, err
			}
			if first <= last {
				lines = append(lines, line{[]string{"object_id", "sequence"}, []any{id}, first, last})
			}
		}
		return lines, nil
	case q.Org != "":
		return []line{{[]string{"org_id", "position"}, []any{q.Org}, first, last}}, nil
	}
	return []line{{[]string{"position"}, nil, first, last}}, nil
}

const (
	lastOfText     = "SELECT org_id, sequence, position FROM events WHERE object_id = ? ORDER BY sequence DESC LIMIT 1"
	positionOfText = "SELECT position FROM events WHERE object_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1"
)

// sequences turns positions into those of an object; none where it is of another organization.
func (s *Store) sequences(ctx context.Context, q *event.EventQuery, id string,
	first, last int64) (int64, int64, error) {
	var org string
	var count, newest int64
	err := s.engine.Query(ctx, lastOfText, []any{id},
		func(scan engine.Scanner) error { return scan(&org, &count, &newest) })
	if err != nil || q.Org != "" && q.Org != org {
		return 1, 0, err
	}
	reaching := func(position int64) (int64, error) {
		return bisect(count, func(sequence int64) (bool, error) {
			var at int64
			err := s.engine.Query(ctx, positionOfText, []any{id, sequence},
				func(scan engine.Scanner) error { return scan(&at) })
			return at >= position, err
		})
	}
	from, to := int64(1), count
	if first > 1 {
		if from, err = reaching(first); err != nil {
			return 0, 0, err
		}
	}
	if last < newest {
		behind, err := reaching(last + 1)
		if err != nil {
			return 0, 0, err
		}
		to = behind - 1
	}
	return from, to, nil
}

// walk reads the events of a query on a line, one more than a page holds, and tells the position up to which it looked;
// 0 where that is the end.
func (s *Store) walk(ctx context.Context, l *line,
	q *event.EventQuery) (found []event.Event, farthest int64, err error) {
	chosen, values := choice(q)
	if chosen != "" {
		// How far this page looks is settled first, and is where the next one starts.
		var bound int64
		err := s.engine.Query(ctx, l.farthestText(q), append(l.bounds(), int64(maxLooked-1)),
			func(scan engine.Scanner) error { return scan(&bound, &farthest) })
		if err != nil {
			return nil, 0, err
		}
		switch {
		case farthest == 0:
		case q.OldestFirst:
			l.last = bound
		default:
			l.first = bound
		}
	}
	found, err = s.readEvents(ctx, l.text(q, chosen), append(append(l.bounds(), values...), int64(q.Limit+1))...)
	return found, farthest, err
}

// choice is what no index answers, as a condition.
func choice(q *event.EventQuery) (condition string, values []any) {
	ofKind := func(kind event.Kind) string {
		prefix := string(kind) + "."
		values = append(values, prefix)
		return "substr(type, 1, " + strconv.Itoa(len(prefix)) + ") = ?"
	}
	var all []string
	if q.Actor != "" {
		all, values = append(all, "actor = ?"), append(values, q.Actor)
	}
	var types []string
	if len(q.Types) > 0 {
		types = append(types, "type IN ("+engine.Placeholders(len(q.Types))+")")
		for _, t := range q.Types {
			values = append(values, string(t))
		}
	}
	for _, kind := range q.Kinds {
		types = append(types, ofKind(kind))
	}
	if len(types) > 0 {
		all = append(all, "("+strings.Join(types, " OR ")+")")
	}
	if q.Except != "" {
		all = append(all, "NOT "+ofKind(q.Except))
	}
	if q.From != 0 {
		all, values = append(all, "time >= ?"), append(values, q.From)
	}
	if q.To != 0 {
		all, values = append(all, "time < ?"), append(values, q.To)
	}
	return strings.Join(all, " AND "), values
}

// bounds are the values of inside.
func (l *line) bounds() []any {
	return slices.Concat(l.values, []any{l.first}, l.values, []any{l.last})
}

// inside is the condition and the order of a line. It compares all columns of the index at once and sorts by all of
// them, so that no other index can seem to serve as well: a database that goes by statistics would walk the log
// backwards for the events of an organization that was busy long ago.
func (l *line) inside(q *event.EventQuery) (condition, order string) {
	columns, placeholders := strings.Join(l.columns, ", "), engine.Placeholders(len(l.columns))
	direction := ""
	if !q.OldestFirst {
		direction = " DESC"
	}
	return "(" + columns + ") >= (" + placeholders + ") AND (" + columns + ") <= (" + placeholders + ")",
		strings.Join(l.columns, direction+", ") + direction
}

// farthestText finds the last event to look at, behind a number of others; nothing where there are fewer.
func (l *line) farthestText(q *event.EventQuery) string {
	condition, order := l.inside(q)
	return "SELECT " + l.columns[len(l.columns)-1] + ", position FROM events WHERE " + condition + " ORDER BY " +
		order + " LIMIT 1 OFFSET ?"
}

// text reads the events that are chosen, up to a number of them.
func (l *line) text(q *event.EventQuery, chosen string) string {
	condition, order := l.inside(q)
	if chosen != "" {
		condition += " AND " + chosen
	}
	return eventsWhere + condition + " ORDER BY " + order + " LIMIT ?"
}
