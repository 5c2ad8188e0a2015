package folding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Bounds of one transaction. Somebody who changes one of its objects waits for its end.
const (
	maxObjects = 50
	maxEvents  = 2000
)

const (
	tellEvery = 10 * time.Second
	lookEvery = time.Second // for older nodes that have stopped, and for objects that were locked
)

// Behind gives the kinds that have objects of an older shape. Mostly there are none, and every start asks: so it is
// asked of all kinds at once.
func (f *Folder) Behind(ctx context.Context) (found []event.Definition, err error) {
	var questions []readbatch.Question
	for _, k := range f.Kinds {
		if k.Shape() > 1 { // the first one is 1
			questions = append(questions, readbatch.Question{
				SQL: "SELECT 1 FROM " + k.Table() + " WHERE " + older(k) +
					"(shape, id) > (?, ?) AND shape < ? ORDER BY shape, id LIMIT 1",
				Args: []any{int64(0), "", int64(k.Shape())},
				Each: func(scan func(...any) error) error {
					found = append(found, k)
					return scan(new(int64))
				},
			})
		}
	}
	if len(questions) == 0 {
		return nil, nil
	}
	err = f.Engine.Ask(ctx, questions)
	return found, err
}

// older is a condition that all objects of an older shape fulfil. It is that of the index that has these objects and no
// others: a database uses the index only for statements that name its condition.
func older(k event.Definition) string {
	if below := migrations.Below(k.Table()); below >= k.Shape() {
		return fmt.Sprintf("shape < %d AND ", below)
	}
	return "" // by a look at every object; a test of package model says that an index is missing
}

// CountBehind counts the objects of a kind that have an older shape.
func (f *Folder) CountBehind(ctx context.Context, k event.Definition) (n int64, err error) {
	return f.countBelow(ctx, k, k.Shape())
}

func (f *Folder) countBelow(ctx context.Context, k event.Definition, shape int) (n int64, err error) {
	if shape == 1 { // the first one
		return 0, nil
	}
	err = f.Engine.Query(ctx, "SELECT count(*) FROM "+k.Table()+" WHERE "+older(k)+"(shape, id) > (?, ?) AND shape < ?",
		[]any{int64(0), "", int64(shape)},
		func(scan engine.Scanner) error { return scan(&n) })
	return n, err
}

// OutdatedText finds objects of one shape. It asks for one and not for all below the program's, so that the index on
// the shape gives them in order, without a look at any other object. It is put so that no other index would do:
// PostgreSQL expects most objects to be of any shape it is asked for.
func OutdatedText(k event.Definition) string {
	return "SELECT id, sequence FROM " + k.Table() + " WHERE " + older(k) + "(shape, id) > (?, ?) AND shape <= ? " +
		"ORDER BY shape, id LIMIT " + fmt.Sprint(maxObjects)
}

// Refold folds anew the objects whose stored document is of an older shape than the program's, until there are none.
// Other nodes may be at work, also on the same: each object is locked, and changed in place. An object whose history is
// broken is an error.
func (f *Folder) Refold(ctx context.Context) error { return f.refold(ctx, false) }

// Newest has objects folded into the newest shape from now on, unless an older node runs. Older nodes do not read every
// shape, so they do not start any more.
func (f *Folder) Newest(ctx context.Context) (bool, error) {
	raised, err := f.Raise(ctx)
	if raised {
		f.FactVersion = event.FactVersion
	}
	return raised, err
}

func (f *Folder) refold(ctx context.Context, background bool) error {
	kinds, err := f.Behind(ctx)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		p := &pass{Folder: f, kind: k, background: background, told: time.Now()}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("folding %s into their new shape: %w", k.Table(), err)
		}
	}
	return nil
}

// pass is one through the objects of a kind. In the background it leaves others half of the time, and a broken object
// behind.
type pass struct {
	*Folder
	kind       event.Definition
	background bool

	total, done, broken int64
	singly              int // so many more by themselves: one of them is broken
	told                time.Time
}

func (p *pass) run(ctx context.Context) (err error) {
	want := p.kind.ShapeAt(p.FactVersion)
	if p.total, err = p.countBelow(ctx, p.kind, want); err != nil {
		return err
	}
	for left := p.total; left > 0; {
		p.broken = 0
		for shape := 1; shape < want; shape++ { // the first one is 1
			if err := p.shape(ctx, shape); err != nil {
				return err
			}
		}
		if left, err = p.countBelow(ctx, p.kind, want); err != nil {
			return err
		}
		if left -= p.broken; left > 0 { // others had them locked
			if err := engine.Pause(ctx, lookEvery); err != nil {
				return err
			}
		}
	}
	p.Log.Info("objects have their new shape", "table", p.kind.Table(), "objects", p.done, "broken", p.broken)
	return nil
}

// shape folds the objects of one shape.
func (p *pass) shape(ctx context.Context, shape int) error {
	for from := ""; ; {
		began := time.Now()
		last, n, err := p.step(ctx, shape, from)
		broken, isBroken := errors.AsType[*Broken](err)
		switch {
		case err == nil && n == 0:
			return nil
		case err == nil:
			from, p.done, p.singly = last, p.done+int64(n), max(0, p.singly-n)
			p.tell()
		case isBroken && n > 1:
			p.singly = n
		case isBroken && p.background:
			from, p.broken, p.singly = last, p.broken+1, max(0, p.singly-1)
			p.Log.Error("an object keeps its older shape, because its events do not make a new one: run signet rebuild --check", "object", broken.ID, "error", broken.Why)
		case p.Engine.IsConflict(err): // with somebody who writes: what is left is found in the next round
			from = last
		default:
			return err
		}
		if p.background {
			if err := engine.Pause(ctx, time.Since(began)); err != nil {
				return err
			}
		}
	}
}

// step folds the next objects in one transaction. It gives the last of them, and how many they are.
func (p *pass) step(ctx context.Context, shape int, from string) (last string, n int, err error) {
	most := maxObjects
	if p.singly > 0 {
		most = 1
	}
	err = p.Engine.Transact(ctx, func(x engine.Executor) error {
		var ids []string
		var lengths []int64
		text := OutdatedText(p.kind) + p.Engine.SkipLocked()
		err := x.Query(ctx, text, []any{int64(shape), from, int64(shape)}, func(scan engine.Scanner) error {
			ids, lengths = append(ids, ""), append(lengths, 0)
			return scan(&ids[len(ids)-1], &lengths[len(ids)-1])
		})
		if err != nil {
			return err
		}
		events := int64(0)
		for n = 0; n < min(most, len(ids)) && (n == 0 || events+lengths[n] <= maxEvents); n++ {
			events += lengths[n]
		}
		if n == 0 {
			return nil
		}
		last = ids[n-1]
		return p.Replace(ctx, x, p.kind, ids[:n], events)
	})
	return last, n, err
}

func (p *pass) tell() {
	if now := time.Now(); now.Sub(p.told) >= tellEvery {
		p.told = now
		p.Log.Info("objects are brought into their new shape", "table", p.kind.Table(), "done", p.done, "of", p.total)
	}
}

// Beside is Refold in the background of a node that serves. It waits until no node of an older version runs: such a
// node does not change what has a new shape, and the people who ask it for that would have to try again.
func (f *Folder) Beside(ctx context.Context) {
	for told := false; ; {
		newest, err := f.Newest(ctx)
		switch {
		case err == nil && newest:
			if err = f.refold(ctx, true); err == nil {
				return
			}
		case err == nil && !told:
			told = true
			f.Log.Info("objects get their new shape when the last node of the version before has stopped")
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Warn("bringing objects into their new shape; it is tried again", "error", err)
		}
		if engine.Pause(ctx, lookEvery) != nil {
			return
		}
	}
}

// Replace folds locked objects of a kind anew and changes them in place. events is how many they have.
func (f *Folder) Replace(ctx context.Context, x engine.Executor, k event.Definition, ids []string, events int64) error {
	all, err := f.fold(ctx, x, ids, events)
	if err != nil {
		return err
	}
	update := "UPDATE " + k.Table() + " SET " + strings.Join(engine.StateColumns(k)[1:], " = ?, ") + " = ? WHERE id = ?"
	changes := make([]engine.Statement, 0, len(all))
	for _, folded := range all {
		changes = append(changes,
			engine.Statement{SQL: update, Args: append(engine.StateValues(folded.Record)[1:], folded.Record.ID)})
	}
	beside, err := f.beside(ctx, x, k, all)
	if err != nil {
		return err
	}
	return engine.ExecAll(ctx, x, append(changes, beside...))
}

// beside gives the statements for the tables that follow from the states of folded objects. Texts follow from events
// and not from shapes, so an object keeps the terms that it has; it gets those that it may not have yet.
func (f *Folder) beside(ctx context.Context, x engine.Executor, k event.Definition,
	all []event.Folded) ([]engine.Statement, error) {
	if !k.Found() {
		return UsualTables.Replacing(ctx, x, all)
	}
	if _, err := LockHead(ctx, f.Engine, x); err != nil {
		return nil, err
	}
	built, err := Built(ctx, x)
	if err != nil {
		return nil, err
	}
	tables, terms := TablesWithWords, engine.BlockChanges{}
	if built {
		tables = UsualTables
	}
	for _, folded := range all {
		IndexWords(terms, folded)
	}
	statements, err := tables.Replacing(ctx, x, all)
	return append(statements, terms.Statements()...), err
}

// LockHead takes the lock on the end of the log, which every writer takes last. Only a transaction that holds it
// changes what objects are found by. LockHead returns the last position.
func LockHead(ctx context.Context, e engine.Engine, x engine.Executor) (position int64, err error) {
	text := "SELECT position FROM log_head WHERE id = 1" + e.ForUpdate()
	err = x.Query(ctx, text, nil, func(scan engine.Scanner) error { return scan(&position) })
	return position, err
}

// Built tells whether word_blocks has what all objects are found by.
func Built(ctx context.Context, x interface {
	Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error
}) (built bool, err error) {
	err = x.Query(ctx, "SELECT 1 FROM meta WHERE name = ?", []any{engine.WordBlocksRow}, func(engine.Scanner) error {
		built = true
		return nil
	})
	return built, err
}

// fold folds several objects, with one look at all their events where those are few.
func (f *Folder) fold(ctx context.Context, x engine.Executor, ids []string,
	events int64) (all []event.Folded, err error) {
	each := func(_ event.Definition, folded event.Folded) error {
		all = append(all, folded)
		return nil
	}
	if events > maxEvents || len(ids) > maxObjects {
		for _, id := range ids {
			if err := f.One(ctx, x, id, each); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	history := make([]event.Event, 0, events)
	var keys []string
	err = x.Query(ctx, "SELECT "+engine.EventColumns+" FROM events WHERE object_id IN ("+
		engine.Placeholders(maxObjects)+") ORDER BY object_id, sequence", engine.Padded(ids, maxObjects),
		func(scan engine.Scanner) error {
			history = append(history, event.Event{})
			e := &history[len(history)-1]
			err := scan(engine.ScanEvent(e)...)
			if e.Sealed != nil && !slices.Contains(keys, e.KeyID) {
				keys = append(keys, e.KeyID)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	open, err := f.openKeys(ctx, x, keys)
	if err != nil {
		return nil, err
	}
	h := histories{folder: f, keys: open, counts: &Counts{}, each: each}
	if err := h.add(history); err != nil {
		return nil, err
	}
	return all, h.finish()
}

// openKeys reads the keys of several objects at once.
func (f *Folder) openKeys(ctx context.Context, x engine.Executor, ids []string) (event.KeyOpener, error) {
	wrapped := map[string][]byte{}
	for part := range slices.Chunk(ids, maxObjects) {
		err := x.Query(ctx, "SELECT key, value FROM keys WHERE key IN ("+engine.Placeholders(maxObjects)+")",
			engine.Padded(part, maxObjects), func(scan engine.Scanner) error {
				var id string
				var value []byte
				err := scan(&id, &value)
				wrapped[id] = value
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	opened := map[string]secret.DataKey{}
	return func(id string) (secret.DataKey, bool, error) {
		key, known := opened[id]
		if known || wrapped[id] == nil {
			return key, known, nil
		}
		key, err := f.Root.UnwrapDataKey(wrapped[id], id)
		if err == nil {
			opened[id] = key
		}
		return key, err == nil, err
	}, nil
}

// Sample folds some objects of an older shape and discards the result, to measure how long folding takes.
func (f *Folder) Sample(ctx context.Context, k event.Definition, most int) (n int, err error) {
	err = f.Engine.Snapshot(ctx, func(x engine.Executor) error {
		var ids []string
		err := x.Query(ctx, "SELECT id FROM "+k.Table()+" WHERE "+older(k)+
			"(shape, id) > (?, ?) AND shape < ? ORDER BY shape, id LIMIT ?",
			[]any{int64(0), "", int64(k.Shape()), int64(most)},
			func(scan engine.Scanner) error {
				ids = append(ids, "")
				return scan(&ids[len(ids)-1])
			})
		for part := range slices.Chunk(ids, maxObjects) {
			var folded []event.Folded
			if err == nil {
				folded, err = f.fold(ctx, x, part, 0)
			}
			n += len(folded)
		}
		return err
	})
	return n, err
}
