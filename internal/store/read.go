package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/readbatch"
)

// storable tells whether a text can be stored at all. What cannot is nowhere: PostgreSQL would refuse a query that asks for it, and
// with it everybody who asks for something else in the same query.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// possible tells whether there can be an object with this identifier.
func possible(id string) bool { return len(id) <= event.MaxID && storable(id) }

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
func (s *Store) RecordsWhere(ctx context.Context, kind event.Kind, org, column, value, by string, limit int) ([]*event.Record, error) {
	k, known := s.byName[kind]
	if !known || !slices.Contains(k.Columns(), column) || !slices.Contains(k.Columns(), by) {
		return nil, fmt.Errorf("store: %q has no lookup columns %q and %q", kind, column, by)
	}
	var found []*event.Record
	forms := s.forms(k, column, value)
	questions := make([]readbatch.Question, len(forms))
	for i, form := range forms {
		questions[i] = readbatch.Question{SQL: recordsWhereText(k, column, by), Args: []any{org, form, int64(limit)}, Each: func(scan func(...any) error) error {
			r, dest := engine.ScanRecord(k, false)
			found = append(found, r)
			return scan(dest...)
		}}
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
	return "SELECT " + engine.AllColumns(k) + " FROM " + k.Table() + " s WHERE s.org_id = ? AND s." + column + " = ? ORDER BY s." + by + ", s.id LIMIT ?"
}

// FirstWhere implements event.Reader.
func (s *Store) FirstWhere(ctx context.Context, kind event.Kind, column, by string, values []string) (found *event.Record, err error) {
	k, known := s.byName[kind]
	if !known || !slices.Contains(k.Columns(), column) || !slices.Contains(k.Columns(), by) {
		return nil, fmt.Errorf("store: %q has no lookup columns %q and %q", kind, column, by)
	}
	if len(values) == 0 {
		return nil, nil
	}
	var args []any
	for _, v := range values {
		for _, form := range s.forms(k, column, v) {
			args = append(args, form)
		}
	}
	err = s.engine.Query(ctx, firstWhereText(k, column, by, len(args)), args, func(scan engine.Scanner) error {
		r, dest := engine.ScanRecord(k, false)
		if err := scan(dest...); err != nil {
			return err
		}
		if i := slices.Index(k.Columns(), by); found == nil || cmp.Or(cmp.Compare(r.Columns[i], found.Columns[i]), cmp.Compare(r.ID, found.ID)) < 0 {
			found = r
		}
		return nil
	})
	if err != nil {
		return nil, engine.Away(ctx, err)
	}
	return found, nil
}

// firstWhereText gives the first of each value, which the index finds however many there are. That a value is not empty is said
// again, for the index has no others.
func firstWhereText(k event.Definition, column, by string, values int) string {
	one := "(SELECT f.id FROM " + k.Table() + " f WHERE f." + column + " = ? AND f." + column + " <> '' ORDER BY f." + by + ", f.id LIMIT 1)"
	return "SELECT " + engine.AllColumns(k) + " FROM " + k.Table() + " s WHERE s.id IN (" + strings.Repeat(one+", ", values-1) + one + ")"
}

// Holder implements event.Reader.
func (s *Store) Holder(ctx context.Context, claim event.Claim) (string, error) {
	digest := claim.Digest()
	var holder string
	err := s.engine.Query(ctx, "SELECT object_id FROM claims WHERE digest = ?", []any{digest[:]}, func(scan engine.Scanner) error { return scan(&holder) })
	return holder, engine.Away(ctx, err)
}

// Row implements event.Reader.
func (s *Store) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	if !slices.Contains(event.SideTables, key.Table) {
		return nil, fmt.Errorf("store: unknown table %q", key.Table)
	}
	if !storable(key.Key) {
		return nil, nil
	}
	if known := s.cache.Row(key); known != nil {
		return s.current(known).Open(s.root), nil
	}
	moment := s.cache.Moment()
	var found *event.Row
	err := s.engine.Query(ctx, "SELECT value, expires FROM "+string(key.Table)+" WHERE key = ?", []any{key.Key}, func(scan engine.Scanner) error {
		found = &event.Row{RowKey: key}
		return scan(&found.Value, &found.Expires)
	})
	if err != nil {
		return nil, engine.Away(ctx, err)
	}
	s.cache.KeepRow(moment, found)
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
	err := s.engine.Query(ctx, "SELECT "+engine.TokenColumns+" FROM tokens t WHERE t.id = ?", []any{id}, func(scan engine.Scanner) error {
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
	found, err := s.readEvents(ctx, eventsWhere+"position > ? AND position <= ? ORDER BY position LIMIT ?", after, s.onDisk(), int64(limit))
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
	found, err := s.readEvents(ctx, eventsWhere+"object_id = ? AND sequence >= ? ORDER BY sequence LIMIT ?", objectID, int64(from), int64(limit))
	return found, engine.Away(ctx, err)
}

// RowsOf implements event.Reader.
func (s *Store) RowsOf(ctx context.Context, table event.SideTable, prefix, after string, limit int) ([]event.Row, error) {
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
	err := s.engine.Query(ctx, sql+" ORDER BY key LIMIT ?", append(args, int64(limit)), func(scan engine.Scanner) error {
		found = append(found, event.Row{RowKey: event.RowKey{Table: table}})
		r := &found[len(found)-1]
		return scan(&r.Key, &r.Value, &r.Expires)
	})
	return found, engine.Away(ctx, err)
}

// Position implements event.Log.
func (s *Store) Position(ctx context.Context) (position int64, err error) {
	err = s.engine.Query(ctx, "SELECT position FROM log_head", nil, func(scan engine.Scanner) error { return scan(&position) })
	return min(position, s.onDisk()), engine.Away(ctx, err)
}

// onDisk is the position up to which the log cannot be lost. On the embedded database a batch can be read before the disk has it; PostgreSQL
// shows nothing that could be lost, and where nobody writes there is nothing to wait for.
func (s *Store) onDisk() int64 {
	if s.cache == nil || s.queue == nil {
		return math.MaxInt64
	}
	return s.durable.Load()
}

// Written implements event.Log.
func (s *Store) Written() <-chan struct{} { return s.written.Next() }
