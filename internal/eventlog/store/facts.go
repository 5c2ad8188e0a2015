package store

import (
	"context"
	"strconv"

	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// knownFacts finds out which facts every node is known to know.
func (s *Store) knownFacts(ctx context.Context) error {
	have, err := readMeta(ctx, s.engine)
	if err != nil {
		return engine.Away(ctx, err)
	}
	stored, _ := strconv.Atoi(string(have[engine.FactVersionRow]))
	s.facts.Store(int64(stored))
	return nil
}

// raiseFactVersion lets facts of a version into the log, for good, unless a node is running that does not know them.
func (s *Store) raiseFactVersion(ctx context.Context, to int) (raised bool, err error) {
	raised, _, err = s.raise(ctx, to)
	return raised, err
}

// raise is raiseFactVersion, and tells how many nodes were running. Only a node that is going to raise the version keeps
// others from joining: mostly it is raised already, or an older node runs.
func (s *Store) raise(ctx context.Context, to int) (raised bool, running int, err error) {
	err = s.engine.Transact(ctx, func(x engine.Executor) error {
		var done bool
		var err error
		if raised, done, running, err = s.mayRaise(ctx, x, to); err != nil || !raised || done {
			return err
		}
		if err := s.engine.LockJoins(ctx, x); err != nil {
			return err
		}
		if raised, done, running, err = s.mayRaise(ctx, x, to); err != nil || !raised || done {
			return err
		}
		return putMeta(ctx, x, engine.FactVersionRow, []byte(strconv.Itoa(to)))
	})
	if err != nil || !raised {
		return false, running, engine.Away(ctx, err)
	}
	s.facts.Store(int64(to))
	return true, running, nil
}

// mayRaise tells whether the version is raised already, or may be because every node knows it.
func (s *Store) mayRaise(ctx context.Context, x engine.Executor, to int) (may, done bool, running int, err error) {
	oldest, running, err := s.engine.Nodes(ctx, x)
	if err != nil {
		return false, false, running, err
	}
	have, err := readMeta(ctx, x)
	if err != nil {
		return false, false, running, err
	}
	stored, _ := strconv.Atoi(string(have[engine.FactVersionRow]))
	return max(stored, oldest) >= to, stored >= to, running, nil
}
