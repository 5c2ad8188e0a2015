package store

import (
	"context"
	"strconv"

	"github.com/signet-idm/signet/internal/store/engine"
)

// raiseFactVersion lets facts of a version into the log, for good, unless a node is running that does not know them.
func (s *Store) raiseFactVersion(ctx context.Context, to int) (raised bool, err error) {
	err = s.engine.Transact(ctx, func(x engine.Executor) error {
		oldest, _, err := s.engine.Nodes(ctx, x)
		if err != nil {
			return err
		}
		have, err := readMeta(ctx, x)
		if err != nil {
			return err
		}
		stored, _ := strconv.Atoi(string(have[engine.FactVersionRow]))
		if raised = max(stored, oldest) >= to; !raised || stored >= to {
			return nil
		}
		return putMeta(ctx, x, engine.FactVersionRow, []byte(strconv.Itoa(to)))
	})
	if err != nil || !raised {
		return false, engine.Away(ctx, err)
	}
	s.facts.Store(int64(to))
	return true, nil
}
