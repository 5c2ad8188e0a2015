package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/eventlog/store/schema"
	"github.com/signet-idm/signet/internal/eventlog/store/tablesum"
)

// A move carries an installation to another database: every row of every table as it is, so that positions, hashes,
// tokens and leases are the same afterwards. Which tables and columns there are, the databases say themselves: nobody
// has to remember a new one.

var (
	// ErrHalfMoved says that a database holds part of an installation.
	ErrHalfMoved = errors.New("a move into this database was not finished: run signet move again, which starts over, or use another database")
	// ErrNotEmpty says that there is something already where an installation was to be moved.
	ErrNotEmpty = errors.New("the target already contains data and was not changed: move into an empty database, or into a directory without a database")
)

// Names of rows in meta.
const (
	moving  = "moving"   // for as long as a move into the database is not done
	movedTo = "moved_to" // where a move has carried the installation; no credentials
)

// Moved says what a move has carried and checked.
type Moved struct {
	Tables, Events, Objects int
	Rows                    int64
}

// Show gives a bar for the next part of a long piece of work, or nil.
type Show func(what string, total int64) *progress.Bar

// ownTable is the one table that is not carried: the target has been brought to the same version by itself.
const ownTable = "schema_version"

// MasterKey is the master key that the operator has given. The installation that holds the data after a move needs it
// as well.
func (s *Store) MasterKey() secret.MasterKey { return s.given }

// MoveTo carries everything to an empty database, and checks that it has arrived. This store must not be written
// meanwhile: ErrInUse on PostgreSQL where nodes run. It is left as it is, but sealed up to its end and marked with
// where it went. Until all is done the target is marked, and cannot be opened.
func (s *Store) MoveTo(ctx context.Context, database string, show Show) (*Moved, error) {
	ctx = engine.Moving(ctx)
	e, err := engine.Open(ctx, engine.Options{Database: database, Flag: flagOfTarget, Kinds: s.kinds, Log: s.log})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	m := &move{from: s, show: show, mark: []byte(rand.Text()), sums: map[string]*tablesum.Sum{},
		to: &Store{engine: e, kinds: s.kinds, byName: s.byName, sql: s.sql, given: s.given, root: s.root,
			clock: s.clock, log: s.log}}
	// What a version without checkpoints or a killed server has left is sealed here and not there: it may be of years.
	if _, err := s.sealer.Seal(ctx); err != nil {
		return nil, fmt.Errorf("sealing the last events: %w", err)
	}
	err = s.engine.Alone(ctx, func(own engine.Executor) error {
		err := s.engine.Snapshot(ctx, func(x engine.Executor) error {
			if err := m.makeRoom(ctx, x); err != nil {
				return err
			}
			return unfinished(m.carry(ctx, x))
		})
		if err != nil {
			return err
		}
		if err := putMeta(ctx, own, movedTo, []byte(engine.Address(database))); err != nil {
			return unfinished(err)
		}
		return unfinished(m.finish(ctx)) // this side is committed after it: at no time do both refuse
	})
	if err != nil {
		return nil, err
	}
	return &m.moved, nil
}

// UndoMove takes the mark of a move away, and tells where the installation had gone; empty where there was none. It
// needs no key.
func UndoMove(ctx context.Context, database string) (where string, err error) {
	e, err := engine.Open(ctx, engine.Options{Database: database})
	if err != nil {
		return "", err
	}
	defer e.Close()
	err = e.Transact(ctx, func(x engine.Executor) error {
		return x.Query(ctx, "DELETE FROM meta WHERE name = ? RETURNING value", []any{movedTo},
			func(scan engine.Scanner) error {
				var value []byte
				err := scan(&value)
				where = string(value)
				return err
			})
	})
	return where, err
}

// unfinished adds what an operator wants to know first when a move breaks off.
func unfinished(err error) error {
	if err != nil {
		err = fmt.Errorf("%w (the source is unchanged; fix the problem and run the same command again, it starts over)", err)
	}
	return err
}

type move struct {
	from, to *Store
	tables   []engine.Table
	mark     []byte // of this move: two of them into one database must not take each other for themselves
	sums     map[string]*tablesum.Sum
	show     Show
	moved    Moved
}

// makeRoom prepares the target: the same tables, empty, and the mark. Where it fails nothing has changed there.
func (m *move) makeRoom(ctx context.Context, from engine.Executor) error {
	tables, err := m.from.engine.Tables(ctx, from)
	if err != nil {
		return err
	}
	version, err := schema.Version(ctx, from)
	if err != nil {
		return err
	}
	m.tables = slices.DeleteFunc(slices.Clone(tables), func(t engine.Table) bool { return t.Name == ownTable })
	e := m.to.engine
	return e.Alone(ctx, func(x engine.Executor) error {
		if err := e.LockSchema(ctx, x); err != nil {
			return err
		}
		there, err := e.Tables(ctx, x)
		if err != nil {
			return err
		}
		half, err := m.look(ctx, x, there)
		if err != nil {
			return err
		}
		if half {
			for _, t := range tables {
				if named(there, t.Name) != nil {
					if err := x.Exec(ctx, "DROP TABLE "+t.Name); err != nil {
						return err
					}
				}
			}
		}
		if err := schema.MigrateIn(ctx, e, x, m.to.schema); err != nil {
			return fmt.Errorf("preparing the target: %w", err)
		}
		if have, err := schema.Version(ctx, x); err != nil || have != version {
			return errors.Join(err,
				fmt.Errorf("the source has schema version %d, the target %d: use the newest program for both",
					version, have))
		}
		if there, err = e.Tables(ctx, x); err != nil {
			return err
		}
		for _, t := range m.tables {
			if err := carriable(t, named(there, t.Name)); err != nil {
				return err
			}
			if err := x.Exec(ctx, "DELETE FROM "+t.Name); err != nil { // what migrations put there
				return err
			}
		}
		return x.Exec(ctx, "INSERT INTO meta (name, value) VALUES (?, ?)", moving, m.mark)
	})
}

// look tells whether the target holds part of a move that was not finished. Whatever else it may hold is an error.
func (m *move) look(ctx context.Context, x engine.Executor, there []engine.Table) (half bool, err error) {
	if named(there, "meta") != nil {
		err := x.Query(ctx, "SELECT 1 FROM meta WHERE name = ?", []any{moving}, func(engine.Scanner) error {
			half = true
			return nil
		})
		if half || err != nil {
			return half, err
		}
	}
	for _, t := range m.tables {
		if t.Name == "log_head" || named(there, t.Name) == nil {
			continue
		}
		filled := false
		err := x.Query(ctx, "SELECT 1 FROM "+t.Name+" LIMIT 1", nil, func(engine.Scanner) error {
			filled = true
			return nil
		})
		if err != nil {
			return false, err
		}
		if filled {
			return false, ErrNotEmpty
		}
	}
	return false, nil
}

func named(tables []engine.Table, name string) *engine.Table {
	i := slices.IndexFunc(tables, func(t engine.Table) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &tables[i]
}

// carriable tells whether a table can be carried: the target has the same, and there is no type in it that only one
// engine knows.
func carriable(t engine.Table, target *engine.Table) error {
	if target == nil {
		return fmt.Errorf("the table %s does not belong to Signet and would be lost: move it to another database or schema first", t.Name)
	}
	for i, c := range t.Columns {
		if c.Type != engine.Text && c.Type != engine.Integer && c.Type != engine.Bytes {
			return fmt.Errorf("the column %s of the table %s has the type %s, which cannot be copied", c.Name,
				t.Name, c.Type)
		}
		if i >= len(target.Columns) || target.Columns[i] != c {
			return fmt.Errorf("the column %s of the table %s is different in the target", c.Name, t.Name)
		}
	}
	if len(target.Columns) != len(t.Columns) || !slices.Equal(target.Key, t.Key) {
		return fmt.Errorf("the table %s is different in the target", t.Name)
	}
	return nil
}

// carry fills the target, and then looks at nothing but the target to see that all is there.
func (m *move) carry(ctx context.Context, from engine.Executor) error {
	m.moved.Tables = len(m.tables)
	for _, t := range m.tables {
		n, err := count(ctx, from, t.Name)
		if err != nil {
			return err
		}
		m.moved.Rows += int64(n)
		m.sums[t.Name] = tablesum.New()
	}
	bar := m.show("rows carried", m.moved.Rows)
	rows := func(t engine.Table) engine.Rows {
		return m.sums[t.Name].Watch(unmarked(t, engine.ReadTable(ctx, from, t)), bar)
	}
	err := m.to.engine.Fill(ctx, m.tables, rows, func(total int64) func() {
		bar.End()
		bar = m.show("indexes made", total)
		return func() { bar.Add(1) }
	})
	bar.End()
	if err != nil {
		return err
	}
	if err := m.compare(ctx); err != nil {
		return err
	}
	return m.check(ctx)
}

// compare reads every row of the target: PostgreSQL and SQLite have to agree on each byte.
func (m *move) compare(ctx context.Context) error {
	bar := m.show("rows compared", m.moved.Rows)
	defer bar.End()
	return m.to.engine.Snapshot(ctx, func(x engine.Executor) error {
		for _, t := range m.tables {
			sum := tablesum.New()
			for _, err := range sum.Watch(unmarked(t, engine.ReadTable(ctx, x, t)), bar) {
				if err != nil {
					return err
				}
			}
			if want := m.sums[t.Name]; !sum.Equal(want) {
				return fmt.Errorf("the table %s was not copied correctly: %d rows of %d", t.Name, sum.Rows, want.Rows)
			}
		}
		return nil
	})
}

// unmarked leaves the marks of moves out of a table's rows: they are about one database, not about the installation.
func unmarked(t engine.Table, rows engine.Rows) engine.Rows {
	if t.Name != "meta" {
		return rows
	}
	return func(yield func([]any, error) bool) {
		for row, err := range rows {
			if err == nil && (slices.Contains(row, any(moving)) || slices.Contains(row, any(movedTo))) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// check holds the target to what holds of every installation.
func (m *move) check(ctx context.Context) error {
	events, err := m.to.Position(ctx)
	if err != nil {
		return err
	}
	bar := m.show("events folded", events)
	report, err := m.to.RebuildCheckTold(ctx, bar.Add)
	bar.End()
	if err != nil {
		return err
	}
	m.moved.Events, m.moved.Objects = report.Events, report.Objects
	if len(report.Differences) > 0 {
		return fmt.Errorf("the state does not match the log (run signet rebuild --check): %s", report.Differences[0])
	}
	proven, err := m.to.Verify(ctx, proof.Options{Progress: m.show})
	if err == nil && proven.Finding != nil {
		err = fmt.Errorf("the log was changed (run signet verify): %s", proven.Finding)
	}
	return err
}

// finish takes the mark away: from now on the target is an installation.
func (m *move) finish(ctx context.Context) error {
	return m.to.engine.Alone(ctx, func(x engine.Executor) error {
		err := errors.New("another move into the same database has started")
		failed := x.Query(ctx, "DELETE FROM meta WHERE name = ? AND value = ? RETURNING 1", []any{moving, m.mark},
			func(engine.Scanner) error {
				err = nil
				return nil
			})
		return errors.Join(failed, err)
	})
}
