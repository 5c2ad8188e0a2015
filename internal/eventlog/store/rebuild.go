package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/internal/eventlog/store/schema"
)

// RebuildReport says what a rebuild or a check has seen.
type RebuildReport struct {
	folding.Counts
	Differences []string // at most maxDifferences of them
}

const maxDifferences = 20

// errDifferent stops a check that has seen enough.
var errDifferent = errors.New("too many differences")

// RebuildCheck folds the whole log and compares the result with the state tables and claims, byte for byte. A history
// that is broken or unknown to this program is a difference, too. It changes nothing and may run beside a server.
func (s *Store) RebuildCheck(ctx context.Context) (*RebuildReport, error) {
	return s.RebuildCheckTold(ctx, nil)
}

// CheckFile looks for damage in the file of an embedded database, which may be in use; see engine.Engine. Errors: an
// *engine.DamagedError.
func (s *Store) CheckFile(ctx context.Context, rest func(context.Context) error) error {
	return s.engine.Check(ctx, rest)
}

// RebuildCheckTold is RebuildCheck that tells of events as it reads them.
func (s *Store) RebuildCheckTold(ctx context.Context, read func(events int64)) (*RebuildReport, error) {
	report := &RebuildReport{Counts: folding.Counts{Read: read}}
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
		built, err := folding.Built(ctx, x)
		if err != nil {
			return err
		}
		tables := folding.TablesWithWords
		if built {
			tables = folding.UsualTables
		}
		stored := map[event.Kind]int{}
		held := folding.DerivedCounts{}
		var terms folding.BlockSum
		unknown := false // what an object is found by
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
			unknown = true
			if err := tables.CountStored(ctx, x, held, id); err != nil {
				return err
			}
			return differ("%s: %v", id, why)
		}
		folder := s.folder()
		folder.FactVersion = event.FactVersion
		err = folder.All(ctx, x, &report.Counts, broken, func(k event.Definition, f event.Folded) error {
			rec := f.Record
			have, err := s.storedRecord(ctx, x, k, rec.ID)
			if err != nil {
				return err
			}
			// as it is written until every node is known to read the newest one
			if have != nil && have.Shape == rec.Shape-1 && k.Since() > 0 {
				before := s.folder()
				before.FactVersion = k.Since() - 1
				if err := before.One(ctx, x, rec.ID,
					func(_ event.Definition, f event.Folded) error { rec = f.Record; return nil }); err != nil {
					return err
				}
			}
			tables.Count(held, f)
			terms.Add(f)
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
			different, err := tables.Different(ctx, x, f)
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
				if err := differ("%s: %d objects have a state but no events", k.Table(),
					n-stored[k.Name()]); err != nil {
					return err
				}
			}
		}
		for _, table := range tables.Names() {
			if err := s.checkCount(ctx, x, table, held[table], differ); err != nil {
				return err
			}
		}
		if !built || unknown {
			return nil
		}
		have, err := folding.StoredBlocks(ctx, x)
		if errors.Is(err, engine.ErrOtherType) || err == nil && have != terms {
			return differ("word_blocks: what objects are found by does not match their states: %d entries are stored, %d are expected", have.Entries, terms.Entries)
		}
		return err
	})
	if errors.Is(err, errDifferent) {
		err = nil
	}
	return report, err
}

// checkCount sees whether a table has more rows than objects hold: rows of objects that there are not.
func (s *Store) checkCount(ctx context.Context, x engine.Executor, table string, held int,
	differ func(string, ...any) error) error {
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
	err := x.Query(ctx, "SELECT count(*), coalesce(max(position), 0) FROM events", nil,
		func(scan engine.Scanner) error { return scan(&events, &last) })
	if err != nil {
		return err
	}
	if err := x.Query(ctx, "SELECT position FROM log_head WHERE id = 1", nil,
		func(scan engine.Scanner) error { return scan(&head) }); err != nil {
		return err
	}
	if events != last || last != head {
		return differ("the log has %d events, the last position is %d, and %d positions were assigned",
			events, last, head)
	}
	return nil
}

// Rebuild empties the state tables and claims and fills them again from the log, in one transaction; an embedded
// database gets new indexes for everything else, too. No other node may be running on the database: ErrInUse. If damage
// is left after that, it is an *engine.DamagedError.
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
		for _, table := range append(folding.TablesWithWords.Names(), "word_blocks") {
			if err := x.Exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		if err := s.engine.Reindex(ctx, x); err != nil { // the log is read by its index
			return err
		}
		terms := engine.BlockChanges{}
		folder := s.folder()
		folder.FactVersion = event.FactVersion // finishWords says so
		err := folder.All(ctx, x, &report.Counts, nil, func(k event.Definition, f event.Folded) error {
			if folding.IndexWords(terms, f); len(terms) > maxGathered {
				if err := engine.WriteBlocks(ctx, x, terms); err != nil {
					return err
				}
				clear(terms)
			}
			return insertFolded(ctx, x, k, f)
		})
		if err != nil {
			return err
		}
		if err := engine.WriteBlocks(ctx, x, terms); err != nil {
			return err
		}
		return s.finishWords(ctx, x)
	})
	if err != nil {
		return report, err
	}
	return report, s.engine.Check(ctx, nil)
}

// maxGathered is how many rows of word_blocks a rebuild gathers before it writes them.
const maxGathered = 20_000

// refold brings objects of an older shape into the program's: before the node serves, or beside other nodes that do, in
// the background, because they would have to do without this one for as long as it takes.
func (s *Store) refold(ctx context.Context) error {
	f := s.folder()
	behind, err := f.Behind(ctx)
	if err != nil || behind == nil {
		return err
	}
	_, running, err := s.engine.Nodes(ctx, s.engine)
	switch {
	case err != nil:
		return err
	case running <= 1:
		if _, err := f.Newest(ctx); err != nil {
			return err
		}
		return f.Refold(ctx)
	}
	s.folding = make(chan struct{})
	go func() {
		defer close(s.folding)
		f.Beside(s.background)
	}()
	return nil
}

// Plan says what an upgrade is going to do. It changes nothing and may run beside a server.
func (s *Store) Plan(ctx context.Context) (*schema.Plan, error) {
	return schema.NewPlan(ctx, s.folder(), s.postgres, event.FactVersion)
}

// outdated gives the loaded objects of an older shape than the program's, in the order of locks.
func (s *Store) outdated(loaded event.Loaded) []event.Ref {
	var old []event.Ref
	for ref, rec := range loaded.Records {
		if rec.Shape < s.byName[ref.Kind].ShapeAt(int(s.facts.Load())) {
			old = append(old, ref)
		}
	}
	slices.SortFunc(old, func(a, b event.Ref) int { return strings.Compare(a.ID, b.ID) })
	return old
}

// refoldThese folds anew objects that are known, one by one.
func (s *Store) refoldThese(ctx context.Context, refs []event.Ref) error {
	for _, ref := range refs {
		k := s.byName[ref.Kind]
		err := s.engine.Transact(ctx, func(x engine.Executor) error {
			var events int64
			text := "SELECT sequence FROM " + k.Table() + " WHERE shape < ? AND id = ?" + s.engine.ForUpdate()
			err := x.Query(ctx, text, []any{int64(k.ShapeAt(int(s.facts.Load()))), ref.ID},
				func(scan engine.Scanner) error { return scan(&events) })
			if err != nil || events == 0 {
				return err
			}
			return s.folder().Replace(ctx, x, k, []string{ref.ID}, events)
		})
		if err != nil {
			return fmt.Errorf("folding %s into its new shape: %w", ref.ID, err)
		}
	}
	return nil
}

func insertFolded(ctx context.Context, x engine.Executor, k event.Definition, f event.Folded) error {
	columns := engine.StateColumns(k)
	err := x.Exec(ctx, "INSERT INTO "+k.Table()+" ("+strings.Join(columns,
		", ")+") VALUES ("+engine.Placeholders(len(columns))+")", engine.StateValues(f.Record)...)
	if err != nil {
		return err
	}
	return folding.UsualTables.Insert(ctx, x, f)
}

func (s *Store) folder() *folding.Folder {
	return &folding.Folder{
		Engine:      s.engine,
		Kinds:       s.kinds,
		ByName:      s.byName,
		Root:        s.root,
		Log:         s.log,
		FactVersion: int(s.facts.Load()),
		Raise:       func(ctx context.Context) (bool, error) { return s.raiseFactVersion(ctx, event.FactVersion) },
	}
}

// storedRecord gives the state of an object; nil where there is none. One that cannot be read is empty, and equals no
// other.
func (s *Store) storedRecord(ctx context.Context, x engine.Executor, k event.Definition,
	id string) (*event.Record, error) {
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
