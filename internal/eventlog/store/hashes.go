package store

import (
	"context"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Hashes of passwords are sealed with the root key: an attacker who has a copy of the database without the master key
// cannot even guess. Nodes of the version before cannot read sealed hashes, so nothing is sealed while one runs. After
// that, existing hashes are sealed in the background. A pass over all of them begins whenever a node starts: if a pass
// was cut off, or another node has written a plain hash meanwhile, the next pass finds that. The last pass is
// remembered: one that has ended, and that began when nothing was written plain any more.

const (
	hashesRead   = 1000        // rows of secrets that are looked at in one step
	hashesSealed = 50          // at most so many in one command
	hashesPause  = 3           // times as long as a step took, before the next one
	hashesLook   = time.Second // for older nodes that have stopped
)

// hashesDone is the name of the row in meta that says that no hash is left that is not sealed.
const hashesDone = "hashes_sealed"

// beginHashes finds out, before anything is written, whether hashes are sealed from the start, whether the last pass
// has been made already, and whether the pass to come is the last one. It is if every node sealed when this one
// started, or no other one runs. Others may have to notice first that they can: they write plain hashes until then. A
// new database has no hashes: nothing has to be done after all.
func (s *Store) beginHashes(ctx context.Context, have map[string][]byte, created bool) error {
	_, s.hashesDone = have[hashesDone]
	if stored, _ := strconv.Atoi(string(have[engine.FactVersionRow])); stored >= event.SealedRows {
		s.facts.Store(int64(stored))
		s.lastPass = true
		return nil
	}
	raised, running, err := s.raise(ctx, event.SealedRows)
	if s.lastPass = raised && running == 1; err != nil || !created || !s.lastPass {
		return err
	}
	s.hashesDone = true
	return s.rememberHashes(ctx)
}

// rememberHashes says for good that no hash is left that is not sealed.
func (s *Store) rememberHashes(ctx context.Context) error {
	return engine.Away(ctx, s.engine.Transact(ctx,
		func(x engine.Executor) error { return putMeta(ctx, x, hashesDone, []byte("1")) }))
}

// maySeal tells whether every node can read what is sealed, and remembers that for good.
func (s *Store) maySeal(ctx context.Context) (bool, error) {
	if s.facts.Load() >= event.SealedRows {
		return true, nil
	}
	have, err := readMeta(ctx, s.engine)
	if err != nil {
		return false, engine.Away(ctx, err)
	}
	if stored, _ := strconv.Atoi(string(have[engine.FactVersionRow])); stored >= event.SealedRows {
		s.facts.Store(int64(stored))
		return true, nil
	}
	return s.raiseFactVersion(ctx, event.SealedRows)
}

// sealHashes seals in the background, until nothing is left or the store closes.
func (s *Store) sealHashes() {
	defer close(s.hashes)
	if s.hashesDone {
		return
	}
	ctx := s.background
	for told := false; ; {
		may, err := s.maySeal(ctx)
		switch {
		case may:
			if err = s.sealAllHashes(ctx); err == nil && s.lastPass {
				err = s.rememberHashes(ctx)
			}
			if err == nil {
				return
			}
		case err == nil && !told:
			told = true
			s.log.Info("password hashes are sealed when the last node of the version before has stopped")
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("sealing password hashes; it is tried again", "error", err)
		}
		if engine.Pause(ctx, hashesLook) != nil {
			return
		}
	}
}

// sealAllHashes goes over all secrets once. Hashes are put again as they are: the writer seals what it writes.
func (s *Store) sealAllHashes(ctx context.Context) error {
	sealed := 0
	for after, more := "", true; more; {
		began := time.Now()
		plain, last, err := s.plainHashes(ctx, after)
		if err != nil {
			return err
		}
		for len(plain) > 0 {
			n := min(len(plain), hashesSealed)
			if err := s.putAgain(ctx, plain[:n]); err != nil {
				return err
			}
			plain, sealed = plain[n:], sealed+n
			if err := engine.Pause(ctx, hashesPause*time.Since(began)); err != nil {
				return err
			}
			began = time.Now()
		}
		if after, more = last, last != ""; more {
			if err := engine.Pause(ctx, time.Since(began)); err != nil {
				return err
			}
		}
	}
	if sealed == 0 {
		return nil
	}
	s.log.Info("password hashes are sealed", "count", sealed)
	for { // until the files do not have them any more as they were
		done, err := s.engine.Scrub(ctx)
		if done || err != nil {
			return err
		}
		if err := engine.Pause(ctx, s.times.interval); err != nil {
			return err
		}
	}
}

// plainHashes gives the hashes among the next secrets that are not sealed, and the last key that it has looked at;
// empty at the end.
func (s *Store) plainHashes(ctx context.Context, after string) (plain []event.RowKey, last string, err error) {
	read := 0
	err = s.engine.Query(ctx, "SELECT key, substr(value, 1, 1) FROM "+string(event.Secrets)+
		" WHERE key > ? ORDER BY key LIMIT ?", []any{after, int64(hashesRead)}, func(scan engine.Scanner) error {
		key, first := event.RowKey{Table: event.Secrets}, []byte(nil)
		if err := scan(&key.Key, &first); err != nil {
			return err
		}
		if read, last = read+1, key.Key; key.Guessable() && !event.IsSealed(first) {
			plain = append(plain, key)
		}
		return nil
	})
	if read < hashesRead {
		last = ""
	}
	return plain, last, engine.Away(ctx, err)
}

func (s *Store) putAgain(ctx context.Context, keys []event.RowKey) error {
	return s.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   keys,
		Decide: func(tx *event.Tx) error {
			for _, key := range keys {
				row, err := tx.Row(key)
				if err != nil {
					return err
				}
				if row != nil && !event.IsSealed(row.Value) { // what does not open stays as it is
					tx.PutRow(*row)
				}
			}
			return nil
		},
	})
}

// CountPlainHashes is how many hashes of passwords are not sealed.
func CountPlainHashes(ctx context.Context, e engine.Engine) (n int64, err error) {
	err = e.Query(ctx, "SELECT count(*) FROM "+string(event.Secrets)+" WHERE key LIKE ? AND substr(value, 1, 1) <> ?",
		[]any{"%" + event.PasswordName, []byte{event.SealedRow}},
		func(scan engine.Scanner) error { return scan(&n) })
	return n, err
}
