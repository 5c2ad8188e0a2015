package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/internal/eventlog/store/listing"
)

// Objects are found by what is in word_blocks. The version before kept words instead. An upgraded database has both
// until the terms of all objects are in word_blocks: nodes write both, and look for words, as nodes of the version
// before do. Those write no terms, so word_blocks is filled when the last of them has stopped: in the background, in
// the order of the log, in steps that any node may take. Then words is emptied, step by step. Every step, and every
// writer, has the lock on the end of the log, so each sees how far it is.

// How far that is, as a node knows. It may be further.
const (
	wordsInUse  int32 = iota
	blocksBuilt       // words is no longer looked at, and gets no more rows
	wordsGone         // and has none left
)

// The value of engine.WordBlocksRow, and the name of the row with the position up to which word_blocks has terms.
const (
	rowBuilt = "built"
	rowDone  = "done"
	rowAt    = "word_blocks_at"
)

const (
	termsStep = 1024        // positions of the log that one step goes over
	wordsStep = 2000        // rows of words that one step deletes
	wordsLook = time.Second // for older nodes that have stopped
)

// beginWords finds out how far it is. A new database has nothing to be found.
func (s *Store) beginWords(ctx context.Context, have map[string][]byte, created bool) error {
	switch string(have[engine.WordBlocksRow]) {
	case rowBuilt:
		s.words.Store(blocksBuilt)
	case rowDone:
		s.words.Store(wordsGone)
	}
	if !created {
		return nil
	}
	raised, running, err := s.raise(ctx, event.WordBlocks)
	if err != nil || !raised || running > 1 {
		return err
	}
	return engine.Away(ctx, s.engine.Transact(ctx, func(x engine.Executor) error { return s.finishWords(ctx, x) }))
}

// finishWords says for good that word_blocks has everything and words nothing.
func (s *Store) finishWords(ctx context.Context, x engine.Executor) error {
	if err := x.Exec(ctx, "DELETE FROM meta WHERE name = ?", rowAt); err != nil {
		return err
	}
	have, err := readMeta(ctx, x)
	if err != nil {
		return err
	}
	// older nodes would find nobody
	if version, _ := strconv.Atoi(string(have[engine.FactVersionRow])); version < event.WordBlocks {
		if err := putMeta(ctx, x, engine.FactVersionRow, []byte(strconv.Itoa(event.WordBlocks))); err != nil {
			return err
		}
	}
	if err := putMeta(ctx, x, engine.WordBlocksRow, []byte(rowDone)); err != nil {
		return err
	}
	s.words.Store(wordsGone)
	return nil
}

// indexAll brings word_blocks and words where they have to be, in the background.
func (s *Store) indexAll() {
	defer close(s.indexing)
	if s.words.Load() == wordsGone {
		return
	}
	ctx := s.background
	for told := false; s.words.Load() != wordsGone; {
		may, err := s.raiseFactVersion(ctx, event.WordBlocks)
		switch {
		case may:
			if err = s.inSteps(ctx, s.indexStep); err == nil {
				err = s.inSteps(ctx, s.emptyStep)
			}
		case err == nil && !told:
			told = true
			s.log.Info("the new index for searches is built when the last node of the version before has stopped")
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("building the index for searches; it is tried again", "error", err)
		}
		if (err != nil || !may) && engine.Pause(ctx, wordsLook) != nil {
			return
		}
	}
}

// inSteps takes steps until nothing is left. Each has the lock on the end of the log. If somebody has written since the
// last one, it rests for as long as the step took.
func (s *Store) inSteps(ctx context.Context,
	step func(ctx context.Context, x engine.Executor, end int64) (more bool, err error)) error {
	last := int64(-1)
	for more := true; more; {
		began, rest := time.Now(), false
		err := s.engine.Transact(ctx, func(x engine.Executor) error {
			end, err := folding.LockHead(ctx, s.engine, x)
			if err != nil {
				return err
			}
			rest, last = end != last, end
			more, err = step(ctx, x, end)
			return err
		})
		if err != nil && !s.engine.IsConflict(err) {
			return err
		}
		if rest = rest || err != nil; !rest {
			continue
		}
		if err := engine.Pause(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// indexStep adds the terms of the objects whose first events come next in the log.
func (s *Store) indexStep(ctx context.Context, x engine.Executor, end int64) (more bool, err error) {
	have, err := readMeta(ctx, x)
	if err != nil {
		return false, err
	}
	if have[engine.WordBlocksRow] != nil { // another node was faster
		s.words.CompareAndSwap(wordsInUse, blocksBuilt)
		return false, nil
	}
	at, begun := int64(0), have[rowAt] != nil
	if begun {
		if at, err = strconv.ParseInt(string(have[rowAt]), 10, 64); err != nil {
			return false, err
		}
	} else if err := x.Exec(ctx, "DELETE FROM word_blocks"); err != nil { // nodes of the version before have changed words meanwhile, and not this
		return false, err
	}
	if at >= end {
		if err := x.Exec(ctx, "DELETE FROM meta WHERE name = ?", rowAt); err != nil {
			return false, err
		}
		if err := putMeta(ctx, x, engine.WordBlocksRow, []byte(rowBuilt)); err != nil {
			return false, err
		}
		s.log.Info("the new index for searches is built")
		return false, nil
	}
	terms, err := s.termsBetween(ctx, x, at, at+termsStep)
	if err != nil {
		return false, err
	}
	if err := engine.WriteBlocks(ctx, x, terms); err != nil {
		return false, err
	}
	return true, putMeta(ctx, x, rowAt, []byte(strconv.FormatInt(at+termsStep, 10)))
}

// termsBetween gathers the terms of the objects whose first event stands behind one position and not behind another
// one.
func (s *Store) termsBetween(ctx context.Context, x engine.Executor, after, last int64) (engine.BlockChanges, error) {
	numbers, ids := map[string]int64{}, map[event.Kind][]string{}
	err := x.Query(ctx, "SELECT position, object_id, type FROM events WHERE position > ? AND position <= ? AND sequence = 1", []any{after, last}, func(scan engine.Scanner) error {
		var number int64
		var id, typ string
		if err := scan(&number, &id, &typ); err != nil {
			return err
		}
		if k := s.byName[event.Type(typ).Kind()]; k != nil && k.Found() {
			numbers[id], ids[k.Name()] = number, append(ids[k.Name()], id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const atOnce = 50
	terms := engine.BlockChanges{}
	for kind, all := range ids {
		k := s.byName[kind]
		for some := range slices.Chunk(all, atOnce) {
			var old []string
			text := "SELECT " + engine.AllColumns(k) + " FROM " + k.Table() + " s WHERE s.id IN (" +
				engine.Placeholders(atOnce) + ")"
			err := x.Query(ctx, text, engine.Padded(some, atOnce), func(scan engine.Scanner) error {
				r, dest := engine.ScanRecord(k, false)
				if err := scan(dest...); err != nil {
					return err
				}
				if r.Shape < k.Shape() {
					old = append(old, r.ID)
					return nil
				}
				words, err := k.Words(r)
				terms.Set(engine.OrgNumber(r.Org), numbers[r.ID], true, syntax.Terms(words)...)
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, id := range old { // they say more once they are folded anew
				err := s.folder().One(ctx, x, id, func(_ event.Definition, f event.Folded) error {
					folding.IndexWords(terms, f)
					return nil
				})
				if err != nil {
					s.log.Warn("an object is not found by searches, because its events do not make a state: run signet rebuild --check", "object", id, "error", err)
				}
			}
		}
	}
	return terms, nil
}

// emptyStep deletes some rows of words.
func (s *Store) emptyStep(ctx context.Context, x engine.Executor, _ int64) (more bool, err error) {
	s.words.CompareAndSwap(wordsInUse, blocksBuilt)
	rows := 0
	last := [2]string{}
	err = x.Query(ctx, "SELECT object_id, word FROM words ORDER BY object_id, word LIMIT ?", []any{int64(wordsStep)},
		func(scan engine.Scanner) error {
			rows++
			return scan(&last[0], &last[1])
		})
	switch {
	case err != nil:
		return false, err
	case rows == 0:
		return false, s.finishWords(ctx, x)
	}
	return true, x.Exec(ctx, "DELETE FROM words WHERE (object_id, word) <= (?, ?)", last[0], last[1])
}

// searchBefore searches by words, if they are still in use.
func (s *Store) searchBefore(ctx context.Context, q event.Search) (page event.Page, done bool, err error) {
	if s.words.Load() != wordsInUse || listing.OwnCursor(q.After) {
		return page, false, nil
	}
	found, next, err := listing.Before(ctx, s.engine, q, listing.MaxBefore)
	if err != nil {
		return page, false, engine.Away(ctx, err)
	}
	refs := make([]event.Ref, len(found))
	for i, c := range found {
		refs[i] = event.Ref{Kind: q.Kind, ID: c.ID}
	}
	records, err := s.Records(ctx, refs)
	if err != nil {
		return page, false, err
	}
	// Words were complete if they are in use even now.
	built, err := folding.Built(ctx, s.engine)
	switch {
	case err != nil:
		return page, false, engine.Away(ctx, err)
	case built:
		s.words.CompareAndSwap(wordsInUse, blocksBuilt)
		return page, false, nil
	}
	page.Next = next
	for _, ref := range refs {
		if r := records[ref]; r != nil {
			page.Records = append(page.Records, r)
		}
	}
	return page, true, nil
}
