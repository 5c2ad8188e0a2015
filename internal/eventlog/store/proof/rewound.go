package proof

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// A database that was rewound, by a cluster that lost its last writes or by an operator who has restored an older copy,
// is whole in itself: Verify finds nothing. Only somebody who has seen the log before can tell. Every node has, so it
// remembers the end of the log, and says so when that is not in the log any more.

// memory is the end of the log as a node has last seen it.
type memory struct {
	end  int64
	head checkpoint // zero: it has seen none

	kept     int64 // position that was last given to Remember
	keptWhen time.Time
}

// rememberEvery is how often a node writes down where the log ends.
const rememberEvery = 10 * time.Second

// Lost is how many events at least that a node had seen are not in the log any more, since the sealer began.
func (s *Sealer) Lost() int64 { return s.lost.Load() }

// compare says so where the log is not the one that this node has seen, with more events at its end.
func (s *Sealer) compare(ctx context.Context, x engine.Executor, head *checkpoint) error {
	end, err := logEnd(ctx, x)
	if err != nil {
		return err
	}
	if !s.begun {
		return s.compareRemembered(ctx, x, end)
	}
	seen := s.memory
	lost := seen.end - end
	if lost <= 0 {
		same, err := seen.continues(ctx, x, head)
		if err != nil || same {
			return err
		}
		lost = 1
	}
	s.rewound(seen.end, end, lost)
	s.known, s.memory = head.position, memory{end: end, kept: seen.kept, keptWhen: seen.keptWhen}
	return nil
}

// continues tells whether a head comes behind the one in memory, by the tags of their events: where others have sealed
// more since, the tags are in a full checkpoint.
func (m *memory) continues(ctx context.Context, x reader, head *checkpoint) (bool, error) {
	if m.head.position == 0 || head.position < m.head.position {
		return true, nil // it knows nothing, or wentBack has judged it
	}
	number := m.head.position / span
	if len(m.head.tags) == 0 { // it was just full
		full, err := readCheckpoint(ctx, x, number, "")
		return full != nil && bytes.Equal(full.digest, m.head.digest), err
	}
	in := head
	if head.first() != m.head.first() {
		var err error
		if in, err = readCheckpoint(ctx, x, number+1, ""); err != nil || in == nil {
			return false, err
		}
	}
	return bytes.HasPrefix(in.tags, m.head.tags), nil
}

// compareRemembered compares the log with what an earlier run has seen of it.
func (s *Sealer) compareRemembered(ctx context.Context, x reader, end int64) error {
	mark := s.Remembered
	if mark == nil {
		return nil
	}
	lost := mark.Position - end
	if lost > 0 && s.lost.Load() > 0 {
		return nil // Behind has said so
	}
	if lost <= 0 {
		digest, err := digestAt(ctx, x, mark.Position)
		if err != nil || bytes.Equal(digest, mark.Digest[:]) {
			return err
		}
		lost = 1
	}
	s.rewound(mark.Position, end, lost)
	s.Remembered = nil
	return nil
}

// digestAt computes the digest of the log up to a position, from the last full checkpoint before it. It is nil where
// that is missing.
func digestAt(ctx context.Context, x reader, position int64) ([]byte, error) {
	digest := noEvents
	if number := position / span; number > 0 {
		full, err := readCheckpoint(ctx, x, number, "")
		if err != nil || full == nil {
			return nil, err
		}
		digest = full.digest
	}
	var e event.Event
	row := scanEvent(&e)
	err := x.Query(ctx, selectEvents+" WHERE position > ? AND position <= ? ORDER BY position",
		[]any{position / span * span, position}, func(scan engine.Scanner) error {
			if err := scan(row...); err != nil {
				return err
			}
			digest = chained(digest, e.Position, e.Hash())
			return nil
		})
	if errors.Is(err, engine.ErrOtherType) {
		return nil, nil // it was changed
	}
	return digest, err
}

// Behind says so where the log ends before a position that was on the disk. It is called before the sealer runs.
func (s *Sealer) Behind(seen, end int64) { s.rewound(seen, end, seen-end) }

// rewound is said once, also where the log cannot be sealed at the moment: from then on, the log as it is counts.
func (s *Sealer) rewound(seen, end, lost int64) {
	s.lost.Add(lost)
	s.Log.Error("the log is behind what this node has seen of it: the database has lost events that were answered, or an older copy was put in its place. "+
		"This node goes on with the log as it is: see docs/operations/faults.md", "seen", seen, "end",
		end, "lost", lost)
}

// remember writes the end of the log down, at intervals or at last.
func (s *Sealer) remember(atLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.memory
	if s.Durable != nil && m.head.position > s.Durable() {
		return // the next time
	}
	if s.Remember == nil || m.head.position == 0 || m.head.position == m.kept ||
		!atLast && time.Since(m.keptWhen) < rememberEvery {
		return
	}
	if err := s.Remember(Mark{Position: m.head.position, Digest: [32]byte(m.head.digest)}); err != nil {
		s.Log.Warn("the end of the log could not be written down", "error", err)
	}
	m.kept, m.keptWhen = m.head.position, time.Now()
}
