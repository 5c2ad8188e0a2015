package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/store/derived"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/readbatch"
)

// RebuildReport says what a rebuild or a check has seen.
type RebuildReport struct {
	Events      int
	Objects     int
	Differences []string // at most maxDifferences of them

	read func(events int64) // told of events as they are read; nil: nobody wants to know
}

const maxDifferences = 20

// errDifferent stops a check that has seen enough.
var errDifferent = errors.New("too many differences")

// RebuildCheck folds the whole log and compares the result with the state tables and claims, byte for byte. A history
// that is broken or unknown to this program is a difference, too. It changes nothing and may run beside a server.
func (s *Store) RebuildCheck(ctx context.Context) (*RebuildReport, error) {
	return s.rebuildCheck(ctx, nil)
}

func (s *Store) rebuildCheck(ctx context.Context, read func(events int64)) (*RebuildReport, error) {
	report := &RebuildReport{read: read}
	differ := func(format string, args ...any) error {
		report.Differences = append(report.Differences, fmt.Sprintf(format, args...))
		if len(report.Differences) >= maxDifferences {
			return errDifferent
		}
		return nil
	}
	err := s.engine.Snapshot(ctx, func(x engine.Executor) error {
		if err := s.checkPositions(ctx, x, differ); err != nil {
			return err
		}
		stored := map[event.Kind]int{}
		held := derived.Counts{}
		// A history that cannot be folded says nothing about the object's state. It is there, and counts.
		broken := func(k event.Definition, id string, why error) error {
			if k != nil {
				have, err := s.storedRecord(ctx, x, k, id)
				if err != nil {
					return err
				}
				if have != nil {
					stored[k.Name()]++
				}
			}
			if err := held.AddStored(ctx, x, id); err != nil {
				return err
			}
			return differ("%s: %v", id, why)
		}
		err := s.foldHistory(ctx, x, report, "", broken, func(k event.Definition, f event.Folded) error {
			rec := f.Record
			have, err := s.storedRecord(ctx, x, k, rec.ID)
			if err != nil {
				return err
			}
			held.Add(f)
			switch {
			case have == nil:
				err = differ("%s: its state is missing", rec.ID)
			case !have.Equal(rec):
				err = differ("%s: its state does not match its events", rec.ID)
			}
			if err != nil {
				return err
			}
			if have != nil {
				stored[k.Name()]++
			}
			different, err := derived.Different(ctx, x, f)
			for _, what := range different {
				if err == nil {
					err = differ("%s: its %s do not match its state", rec.ID, what)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, k := range s.kinds {
			n, err := count(ctx, x, k.Table())
			if err != nil {
				return err
			}
			if n != stored[k.Name()] {
				if err := differ("%s: %d objects have a state but no events", k.Table(), n-stored[k.Name()]); err != nil {
					return err
				}
			}
		}
		for _, table := range derived.Tables {
			if err := s.checkCount(ctx, x, table, held[table], differ); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errDifferent) {
		err = nil
	}
	return report, err
}

// checkCount sees whether a table has more rows than objects hold: rows of objects that there are not.
func (s *Store) checkCount(ctx context.Context, x engine.Executor, table string, held int, differ func(string, ...any) error) error {
	n, err := count(ctx, x, table)
	if err == nil && n != held {
		err = differ("%s: %d are stored, %d are expected", table, n, held)
	}
	return err
}

// checkPositions sees whether events are missing at the end of the log or in between. Where all of an object's are, no
// chain is broken.
func (s *Store) checkPositions(ctx context.Context, x engine.Executor, differ func(string, ...any) error) error {
	var events, last int64
	head := int64(-1)
	err := x.Query(ctx, "SELECT count(*), coalesce(max(position), 0) FROM events", nil, func(scan engine.Scanner) error { return scan(&events, &last) })
	if err != nil {
		return err
	}
	if err := x.Query(ctx, "SELECT position FROM log_head WHERE id = 1", nil, func(scan engine.Scanner) error { return scan(&head) }); err != nil {
		return err
	}
	if events != last || last != head {
		return differ("the log has %d events, the last position is %d, and %d positions were assigned", events, last, head)
	}
	return nil
}

// Rebuild empties the state tables and claims and fills them again from the log, in one transaction. No other
// node may be running on the database: ErrInUse.
func (s *Store) Rebuild(ctx context.Context) (*RebuildReport, error) {
	report := &RebuildReport{}
	err := s.engine.Alone(ctx, func(x engine.Executor) error {
		if err := s.engine.LockSchema(ctx, x); err != nil {
			return err
		}
		for _, k := range s.kinds {
			if err := x.Exec(ctx, "DELETE FROM "+k.Table()); err != nil {
				return err
			}
		}
		for _, table := range derived.Tables {
			if err := x.Exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return s.foldHistory(ctx, x, report, "", nil, func(k event.Definition, f event.Folded) error {
			return insertFolded(ctx, x, k, f)
		})
	})
	return report, err
}

// refold folds anew the objects whose stored document is of an older shape than the program's. Other nodes may be at
// work: each object is locked, and changed in place.
func (s *Store) refold(ctx context.Context) error {
	kinds, err := s.behind(ctx)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		for shape := 1; shape < k.Shape(); shape++ { // the first one is 1
			if err := s.refoldShape(ctx, k, shape); err != nil {
				return fmt.Errorf("folding %s into their new shape: %w", k.Table(), err)
			}
		}
	}
	return nil
}

// behind gives the kinds that have objects of an older shape. Mostly there are none, and every start asks: so it is asked of all kinds at once.
func (s *Store) behind(ctx context.Context) (found []event.Definition, err error) {
	var questions []readbatch.Question
	for _, k := range s.kinds {
		if k.Shape() > 1 { // the first one is 1
			questions = append(questions, readbatch.Question{SQL: "SELECT 1 FROM " + k.Table() + " WHERE (shape, id) > (?, ?) AND shape < ? ORDER BY shape, id LIMIT 1",
				Args: []any{int64(0), "", int64(k.Shape())}, Each: func(scan func(...any) error) error {
					found = append(found, k)
					return scan(new(int64))
				}})
		}
	}
	if len(questions) == 0 {
		return nil, nil
	}
	err = s.engine.Ask(ctx, questions)
	return found, err
}

// outdatedText finds objects of one shape. It asks for one and not for all below the program's, so that the index on the
// shape gives them in the order of locks, without a look at any other object. It is put so that no other index would do:
// PostgreSQL expects most objects to be of any shape it is asked for.
func outdatedText(k event.Definition) string {
	return "SELECT id FROM " + k.Table() + " WHERE (shape, id) > (?, ?) AND shape <= ? ORDER BY shape, id LIMIT 100 /* LOCKED */"
}

func (s *Store) refoldShape(ctx context.Context, k event.Definition, shape int) error {
	text := s.engine.Dialect(outdatedText(k))
	for last, more := "", true; more; {
		err := s.engine.Transact(ctx, func(x engine.Executor) error {
			var ids []string
			err := x.Query(ctx, text, []any{int64(shape), last, int64(shape)}, func(scan engine.Scanner) error {
				ids = append(ids, "")
				return scan(&ids[len(ids)-1])
			})
			if err != nil {
				return err
			}
			if more = len(ids) > 0; more {
				last = ids[len(ids)-1]
			}
			return s.refoldIn(ctx, x, k, ids)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// outdated gives the loaded objects of an older shape than the program's, in the order of locks.
func (s *Store) outdated(loaded event.Loaded) []event.Ref {
	var old []event.Ref
	for ref, rec := range loaded.Records {
		if rec.Shape < s.byName[ref.Kind].Shape() {
			old = append(old, ref)
		}
	}
	slices.SortFunc(old, func(a, b event.Ref) int { return strings.Compare(a.ID, b.ID) })
	return old
}

// refoldThese is refold for objects that are known, one by one.
func (s *Store) refoldThese(ctx context.Context, refs []event.Ref) error {
	for _, ref := range refs {
		k := s.byName[ref.Kind]
		err := s.engine.Transact(ctx, func(x engine.Executor) error {
			var ids []string
			text := s.engine.Dialect("SELECT id FROM " + k.Table() + " WHERE shape < ? AND id = ? /* LOCKED */")
			err := x.Query(ctx, text, []any{int64(k.Shape()), ref.ID}, func(scan engine.Scanner) error {
				ids = append(ids, "")
				return scan(&ids[len(ids)-1])
			})
			if err != nil {
				return err
			}
			return s.refoldIn(ctx, x, k, ids)
		})
		if err != nil {
			return fmt.Errorf("folding %s into its new shape: %w", ref.ID, err)
		}
	}
	return nil
}

// refoldIn folds locked objects anew and changes them in place.
func (s *Store) refoldIn(ctx context.Context, x engine.Executor, k event.Definition, ids []string) error {
	update := "UPDATE " + k.Table() + " SET " + strings.Join(engine.StateColumns(k)[1:], " = ?, ") + " = ? WHERE id = ?"
	for _, id := range ids {
		err := s.foldHistory(ctx, x, &RebuildReport{}, id, nil, func(_ event.Definition, f event.Folded) error {
			if err := x.Exec(ctx, update, append(engine.StateValues(f.Record)[1:], id)...); err != nil {
				return err
			}
			if err := derived.Delete(ctx, x, id); err != nil {
				return err
			}
			return derived.Insert(ctx, x, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func insertFolded(ctx context.Context, x engine.Executor, k event.Definition, f event.Folded) error {
	columns := engine.StateColumns(k)
	err := x.Exec(ctx, "INSERT INTO "+k.Table()+" ("+strings.Join(columns, ", ")+") VALUES ("+engine.Placeholders(len(columns))+")", engine.StateValues(f.Record)...)
	if err != nil {
		return err
	}
	return derived.Insert(ctx, x, f)
}

type folded func(k event.Definition, f event.Folded) error

// unfolded is told of a history that cannot be folded, and why; k is nil where the kind is unknown.
type unfolded func(k event.Definition, id string, why error) error

// foldHistory walks the history of one object, or with an empty id of all of them, and hands over each folded record.
// The first history that cannot be folded is an error, unless broken takes it: then the walk goes on behind it.
func (s *Store) foldHistory(ctx context.Context, x engine.Executor, report *RebuildReport, only string, broken unfolded, each folded) error {
	const page = 1000
	var (
		fold  event.Fold // nil before the first object, and behind the place where a history broke
		kind  event.Definition
		id    string
		seq   int64
		prev  []byte
		first = true
	)
	breaks := func(why error) error {
		fold = nil
		if broken == nil {
			return fmt.Errorf("%s: %w", id, why)
		}
		return broken(kind, id, why)
	}
	finish := func() error {
		if fold == nil {
			return nil
		}
		f, err := fold.Folded()
		if err != nil {
			return breaks(err)
		}
		return each(kind, f)
	}
	add := func(e *event.Event) error {
		if int64(e.Sequence) != seq+1 || !bytes.Equal(e.PrevHash, prev) {
			return fmt.Errorf("event %d does not follow the previous one", e.Position)
		}
		return fold.Add(e)
	}
	text := "SELECT " + engine.EventColumns + " FROM events WHERE (object_id, sequence) > (?, ?) ORDER BY object_id, sequence LIMIT ?"
	if only != "" {
		text = "SELECT " + engine.EventColumns + " FROM events WHERE object_id = ? AND sequence > ? ORDER BY sequence LIMIT ?"
		id = only
	}
	for {
		var events []event.Event
		err := x.Query(ctx, text, []any{id, seq, int64(page)}, func(scan engine.Scanner) error {
			events = append(events, event.Event{})
			return scan(engine.ScanEvent(&events[len(events)-1])...)
		})
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			report.Events++
			if first || e.ObjectID != id {
				if err := finish(); err != nil {
					return err
				}
				report.Objects++
				first, fold, id, seq, prev = false, nil, e.ObjectID, 0, nil
				if kind = s.byName[e.Type.Kind()]; kind != nil {
					fold = kind.NewFold(s.keyOpener(ctx, x))
				} else if err := breaks(fmt.Errorf("event %d has the unknown type %s: use a newer program", e.Position, e.Type)); err != nil {
					return err
				}
			}
			if fold != nil {
				if why := add(e); why != nil {
					if err := breaks(why); err != nil {
						return err
					}
				}
			}
			seq, prev = int64(e.Sequence), e.Hash()
		}
		if report.read != nil {
			report.read(int64(len(events)))
		}
		if len(events) < page {
			return finish()
		}
	}
}

// keyOpener reads keys as a fold asks for them. An object's events share one, so the last is kept.
func (s *Store) keyOpener(ctx context.Context, x engine.Executor) event.KeyOpener {
	var lastID string
	var last secret.DataKey
	return func(id string) (secret.DataKey, bool, error) {
		if id == lastID {
			return last, true, nil
		}
		var wrapped []byte
		err := x.Query(ctx, "SELECT value FROM keys WHERE key = ?", []any{id}, func(scan engine.Scanner) error { return scan(&wrapped) })
		if err != nil || wrapped == nil {
			return secret.DataKey{}, false, err
		}
		key, err := s.root.UnwrapDataKey(wrapped, id)
		if err != nil {
			return key, false, err
		}
		lastID, last = id, key
		return key, true, nil
	}
}

// storedRecord gives the state of an object; nil where there is none. One that cannot be read is empty, and equals no other.
func (s *Store) storedRecord(ctx context.Context, x engine.Executor, k event.Definition, id string) (*event.Record, error) {
	var found *event.Record
	err := x.Query(ctx, s.sql.record[k.Name()][0], []any{id}, func(scan engine.Scanner) error {
		var dest []any
		found, dest = engine.ScanRecord(k, false)
		return scan(engine.Exactly(dest)...)
	})
	if errors.Is(err, engine.ErrOtherType) {
		return &event.Record{}, nil
	}
	return found, err
}

func count(ctx context.Context, x engine.Executor, table string) (int, error) {
	var n int
	err := x.Query(ctx, "SELECT count(*) FROM "+table, nil, func(scan engine.Scanner) error { return scan(&n) })
	return n, err
}
