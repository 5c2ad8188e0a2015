package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// storable tells whether a text can be stored at all. What cannot is nowhere: PostgreSQL would refuse a query that asks
// for it, and with it everybody who asks for something else in the same query.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// possible tells whether there can be an object with this identifier.
func possible(id string) bool { return len(id) <= event.MaxID && storable(id) }

// query reads outside any transaction. On PostgreSQL it shares a round trip with what others ask for at that moment. It
// must be known to be a query that succeeds: if it fails, theirs fail, too.
func (s *Store) query(ctx context.Context, text string, args []any, each func(engine.Scanner) error) error {
	if s.records == nil {
		return engine.Away(ctx, s.engine.Query(ctx, text, args, each))
	}
	err := s.records.Along(ctx, readbatch.Question{SQL: text, Args: args, Each: each})
	if errors.Is(err, readbatch.ErrStopped) {
		return errStopping
	}
	return engine.Away(ctx, err)
}

// Record implements event.Reader.
func (s *Store) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	if s.byName[ref.Kind] == nil {
		return nil, fmt.Errorf("store: unknown kind %q", ref.Kind)
	}
	if !possible(ref.ID) {
		return nil, nil
	}
	if s.records != nil {
		found, err := await(ctx, s.ask(ctx, ref))
		if err != nil || found != moved {
			return found, err
		}
		return s.readRecord(ctx, ref)
	}
	if r := s.cache.Record(ref); r != nil {
		return r, nil
	}
	if s.cache.Absent(ref) {
		return nil, nil
	}
	moment := s.cache.Moment()
	found, err := s.readRecord(ctx, ref)
	switch {
	case err != nil:
	case found == nil:
		s.cache.KeepAbsent(moment, ref)
	case s.byName[ref.Kind].Prepare(found) == nil:
		s.cache.KeepRecord(moment, found)
	}
	return found, err
}

// RecordsWhere implements event.Reader.
func (s *Store) RecordsWhere(ctx context.Context, kind event.Kind, org, column, value, by string,
	limit int) ([]*event.Record, error) {
	k, known := s.byName[kind]
	if !known || !slices.Contains(k.Columns(), column) || !slices.Contains(k.Columns(), by) {
		return nil, fmt.Errorf("store: %q has no lookup columns %q and %q", kind, column, by)
	}
	var found []*event.Record
	forms := s.forms(k, column, value)
	questions := make([]readbatch.Question, len(forms))
	for i, form := range forms {
		questions[i] = readbatch.Question{
			SQL:  recordsWhereText(k, column, by),
			Args: []any{org, form, int64(limit)},
			Each: func(scan func(...any) error) error {
				r, dest := engine.ScanRecord(k, false)
				found = append(found, r)
				return scan(dest...)
			},
		}
	}
	if err := s.engine.Ask(ctx, questions); err != nil {
		return nil, engine.Away(ctx, err)
	}
	if len(forms) > 1 {
		i := slices.Index(k.Columns(), by)
		slices.SortFunc(found, func(x, y *event.Record) int {
			return cmp.Or(cmp.Compare(x.Columns[i], y.Columns[i]), cmp.Compare(x.ID, y.ID))
		})
	}
	return found[:min(len(found), limit)], nil
}

// forms gives what a lookup column has of a value, in every shape that there may be.
func (s *Store) forms(k event.Definition, column, value string) []string {
	forms := k.Forms(column, value)
	if s.newest {
		return forms[len(forms)-1:]
	}
	return forms
}

func recordsWhereText(k event.Definition, column, by string) string {
	return "SELECT " + engine.AllColumns(k) + " FROM " + k.Table() + " s WHERE s.org_id = ? AND s." + column +
		" = ? ORDER BY s." + by + ", s.id LIMIT ?"
}

// Find implements event.Reader.
func (s *Store) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	found, by := make([]string, len(ways)), make([]string, len(ways))
	var q finding
	asked := map[int][32]byte{}
	moment := s.cache.Moment()
	for i, w := range ways {
		if w.Claim == (event.Claim{}) {
			if err := q.first(s.byName[w.Kind], i, w, s.forms); err != nil {
				return nil, err
			}
			continue
		}
		digest := w.Claim.Digest()
		holder, known := s.cache.Holder(digest)
		if found[i] = holder; !known {
			q.holder(i, digest)
			asked[i] = digest
		}
	}
	if q.text.Len() == 0 {
		return found, nil
	}
	err := s.query(ctx, q.text.String(), q.args, func(scan engine.Scanner) error {
		var way int
		var order, id string
		if err := scan(&way, &order, &id); err != nil {
			return err
		}
		if found[way] == "" || cmp.Or(cmp.Compare(order, by[way]), cmp.Compare(id, found[way])) < 0 {
			found[way], by[way] = id, order
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for way, digest := range asked {
		s.cache.KeepHolder(moment, digest, found[way])
	}
	return found, nil
}

// finding is a query for the number of a way, what comes first of what it finds, and whom it finds. An index has all
// that is asked for, however many are found.
type finding struct {
	text strings.Builder
	args []any
}

func (q *finding) part(args []any, texts ...string) {
	if q.text.Len() > 0 {
		q.text.WriteString(" UNION ALL ")
	}
	for _, text := range texts {
		q.text.WriteString(text)
	}
	q.args = append(q.args, args...)
}

func (q *finding) holder(way int, digest [32]byte) {
	q.part([]any{digest[:]}, "SELECT ", strconv.Itoa(way), ", '', object_id FROM claims WHERE digest = ?")
}

// first asks for the first of each value, in a subquery, because SQLite allows no limit in a part of a union.
func (q *finding) first(k event.Definition, way int, w event.Lookup,
	forms func(k event.Definition, column, value string) []string) error {
	if k == nil || !slices.Contains(k.Columns(), w.Column) || !slices.Contains(k.Columns(), w.By) {
		return fmt.Errorf("store: %q has no lookup columns %q and %q", w.Kind, w.Column, w.By)
	}
	if !storable(w.Org) {
		return nil
	}
	for _, value := range w.Values {
		if value == "" || !storable(value) {
			continue
		}
		for _, form := range forms(k, w.Column, value) {
			args, where := []any{w.Org, form}, "f.org_id = ? AND f."
			if w.Anywhere { // an index over all organizations has no empty values: it is used where that is said again
				args, where = args[1:], "f."+w.Column+" <> '' AND f."
			}
			q.part(args, "SELECT * FROM (SELECT ", strconv.Itoa(way), ", f.", w.By, ", f.id FROM ", k.Table(),
				" f WHERE ", where, w.Column, " = ? ORDER BY f.", w.By, ", f.id LIMIT 1) a")
		}
	}
	return nil
}

// Holder implements event.Reader.
func (s *Store) Holder(ctx context.Context, claim event.Claim) (string, error) {
	digest := claim.Digest()
	if holder, known := s.cache.Holder(digest); known {
		return holder, nil
	}
	moment := s.cache.Moment()
	var holder string
	err := s.query(ctx, "SELECT object_id FROM claims WHERE digest = ?", []any{digest[:]},
		func(scan engine.Scanner) error { return scan(&holder) })
	if err != nil {
		return "", err
	}
	s.cache.KeepHolder(moment, digest, holder)
	return holder, nil
}

// Row implements event.Reader.
func (s *Store) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	if !slices.Contains(event.SideTables, key.Table) {
		return nil, fmt.Errorf("store: unknown table %q", key.Table)
	}
	if !storable(key.Key) {
		return nil, nil
	}
	if r, known := s.cache.Row(key); known {
		return s.current(r).Open(s.root), nil
	}
	moment := s.cache.Moment()
	var found *event.Row
	err := s.query(ctx, "SELECT value, expires FROM "+string(key.Table)+" WHERE key = ?", []any{key.Key},
		func(scan engine.Scanner) error {
			found = &event.Row{RowKey: key}
			return scan(&found.Value, &found.Expires)
		})
	if err != nil {
		return nil, err
	}
	s.cache.KeepRow(moment, key, found)
	return s.current(found).Open(s.root), nil
}

// current gives a row that has not expired. It is shared by all who read it, and nobody alters it.
func (s *Store) current(r *event.Row) *event.Row {
	if r != nil && r.Expires != 0 && r.Expires <= event.Micros(s.clock()) {
		return nil
	}
	return r
}

// TokenByID implements event.Reader.
func (s *Store) TokenByID(ctx context.Context, id string) (*event.Token, error) {
	if !possible(id) {
		return nil, nil
	}
	var found *event.Token
	err := s.engine.Query(ctx, "SELECT "+engine.TokenColumns+" FROM tokens t WHERE t.id = ?", []any{id},
		func(scan engine.Scanner) error {
			found = &event.Token{}
			return scan(engine.ScanToken(found)...)
		})
	return found, engine.Away(ctx, err)
}

// Events implements event.Reader.
func (s *Store) Events(ctx context.Context, after int64, limit int) ([]event.Event, error) {
	if s.cache != nil {
		if recent, covered := s.recent.After(after, limit); covered {
			return recent, nil
		}
	}
	found, err := s.readEvents(ctx, eventsWhere+"position > ? AND position <= ? ORDER BY position LIMIT ?", after,
		s.onDisk(), int64(limit))
	return found, engine.Away(ctx, err)
}

// eventsWhere is how a text for readEvents begins.
const eventsWhere = "SELECT " + engine.EventColumns + " FROM events WHERE "

// readEvents reads whole events.
func (s *Store) readEvents(ctx context.Context, text string, args ...any) (found []event.Event, err error) {
	err = s.engine.Query(ctx, text, args, func(scan engine.Scanner) error {
		found = append(found, event.Event{})
		return scan(engine.ScanEvent(&found[len(found)-1])...)
	})
	return found, err
}

// EventsOf implements event.Reader.
func (s *Store) EventsOf(ctx context.Context, objectID string, from uint64, limit int) ([]event.Event, error) {
	if !possible(objectID) || from > math.MaxInt64 {
		return nil, nil
	}
	found, err := s.readEvents(ctx, eventsWhere+"object_id = ? AND sequence >= ? ORDER BY sequence LIMIT ?", objectID,
		int64(from), int64(limit))
	return found, engine.Away(ctx, err)
}

// RowsOf implements event.Reader.
func (s *Store) RowsOf(ctx context.Context, table event.SideTable, prefix, after string,
	limit int) ([]event.Row, error) {
	if table != event.Deliveries {
		return nil, fmt.Errorf("store: the rows of %q have no order", table)
	}
	if !storable(prefix) || !storable(after) {
		return nil, nil
	}
	sql, args := "SELECT key, value, expires FROM "+string(table)+" WHERE key >= ? AND key > ?", []any{prefix, after}
	if end, bounded := event.PrefixEnd(prefix); bounded {
		sql, args = sql+" AND key < ?", append(args, end)
	}
	var found []event.Row
	err := s.engine.Query(ctx, sql+" ORDER BY key LIMIT ?", append(args, int64(limit)),
		func(scan engine.Scanner) error {
			found = append(found, event.Row{RowKey: event.RowKey{Table: table}})
			r := &found[len(found)-1]
			return scan(&r.Key, &r.Value, &r.Expires)
		})
	return found, engine.Away(ctx, err)
}

// Position implements event.Log.
func (s *Store) Position(ctx context.Context) (position int64, err error) {
	err = s.engine.Query(ctx, "SELECT position FROM log_head", nil,
		func(scan engine.Scanner) error { return scan(&position) })
	return min(position, s.onDisk()), engine.Away(ctx, err)
}

// onDisk is the position up to which the log cannot be lost. On the embedded database a batch can be read before the
// disk has it; PostgreSQL shows nothing that could be lost, and where nobody writes there is nothing to wait for.
func (s *Store) onDisk() int64 {
	if s.cache == nil || s.queue == nil {
		return math.MaxInt64
	}
	return s.durable.Load()
}

// Written implements event.Log.
func (s *Store) Written() <-chan struct{} { return s.written.Next() }
