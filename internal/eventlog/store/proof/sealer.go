package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// patience is how long after the first of some events all of them are sealed, at the latest, while a node runs. It
// takes a second; the rest is for nodes that have much to do, or were killed and are replaced.
const patience = time.Minute

// page is how many events are sealed in one transaction.
const page = span

// Sealer seals the log of a database. Each node has one, and whichever comes first seals what all of them have written.
type Sealer struct {
	Engine engine.Engine
	Root   secret.MasterKey
	Log    *slog.Logger
	Delay  time.Duration // before Run begins

	Remembered *Mark // the end of the log when this node last ran; nil: it does not know
	// is given the end of the log now and then, to be Remembered by the next one; nil: nobody wants to know
	Remember func(Mark) error

	// Durable is the position up to which the log is on the disk, where that can be behind what is committed: only that
	// is given to Remember. Else a loss of power would look like a database that has lost events. Nil: all that is
	// committed is on the disk.
	Durable func() int64

	// Recent gives events behind a position that were written lately, without asking the database; false where it does
	// not have all. Nil: it never does.
	Recent func(position int64, limit int) (events []event.Event, covered bool)

	mu     sync.Mutex // held by Seal
	known  int64      // how far the log was sealed when this one last looked
	begun  bool
	gone   bool // the log has gone back: Recent has events that it has not
	memory memory
	lost   atomic.Int64

	end, sealed, sealedAt atomic.Int64 // see Seen
}

// Seen tells where the log ended when the sealer last looked, up to where it is sealed, and when it was last seen to be
// sealed up to its end; zero: not yet.
func (s *Sealer) Seen() (end, sealed int64, at time.Time) {
	if micros := s.sealedAt.Load(); micros != 0 {
		at = event.Time(micros)
	}
	return s.end.Load(), s.sealed.Load(), at
}

func (s *Sealer) saw(end int64) {
	s.end.Store(end)
	s.sealed.Store(s.known)
	if s.begun && s.known >= end {
		s.sealedAt.Store(event.Micros(time.Now()))
	}
}

// Seal seals what is not sealed yet, in bounded steps. busy tells that another node was doing that: it may have missed
// the last events. Safe for concurrent use, beside Run as well.
func (s *Sealer) Seal(ctx context.Context) (busy bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for more := true; more && err == nil && !busy && ctx.Err() == nil; {
		var before, end int64
		if s.Durable != nil {
			before = s.Durable()
		}
		if end, err = logEnd(ctx, s.Engine); err != nil {
			return false, err
		}
		s.gone = end < before
		if s.begun && end == s.known && end >= s.memory.end {
			s.saw(end)
			return false, nil // mostly, and without a transaction
		}
		if more, busy, err = s.step(ctx, end); err == nil && !busy {
			s.saw(max(end, s.known))
		}
	}
	return busy, err
}

func logEnd(ctx context.Context, x reader) (position int64, err error) {
	err = x.Query(ctx, "SELECT position FROM log_head WHERE id = 1", nil, func(scan engine.Scanner) error {
		return scan(engine.Exactly([]any{&position})...)
	})
	if errors.Is(err, engine.ErrOtherType) {
		err = fmt.Errorf("%w: %w", errForgedEnd, err)
	}
	return position, err
}

// step seals one page of a log that ended at a position, or behind it.
func (s *Sealer) step(ctx context.Context, end int64) (more, busy bool, err error) {
	var sealed int64
	var next memory
	err = s.Engine.Aside(ctx, func(x engine.Executor) error {
		head, err := readCheckpoint(ctx, x, 0, s.Engine.SkipLocked())
		if err != nil {
			return err
		}
		if head == nil {
			if head, err = readCheckpoint(ctx, x, 0, ""); err == nil && head == nil {
				err = errNoHead
			}
			busy = head != nil
			return err
		}
		if !head.genuine(s.Root) {
			return errForgedHead
		}
		if head.position < s.known {
			if err := s.wentBack(ctx, x, head.position); err != nil {
				return err
			}
		}
		if err := s.compare(ctx, x, head); err != nil {
			return err
		}
		full, events, err := s.extend(ctx, x, head, end)
		if err != nil {
			return err
		}
		more, sealed, next = events == page, head.position, memory{end: head.position, head: *head}
		if events == 0 {
			return nil
		}
		for _, c := range full {
			err := x.Exec(ctx, "INSERT INTO checkpoints ("+checkpointColumns+") VALUES (?, ?, ?, ?, ?)", c.number,
				c.position, c.digest, c.tags, c.computeSeal(s.Root))
			if err != nil {
				return err
			}
		}
		return x.Exec(ctx, "UPDATE checkpoints SET position = ?, digest = ?, tags = ?, seal = ? WHERE number = 0",
			head.position, head.digest, head.tags, head.computeSeal(s.Root))
	})
	if err != nil || busy {
		return false, busy, err
	}
	next.kept, next.keptWhen = s.memory.kept, s.memory.keptWhen
	s.known, s.begun, s.memory = sealed, true, next
	return more, false, nil
}

// extend adds the next page of events to the head, and gives the checkpoints that became full by that.
func (s *Sealer) extend(ctx context.Context, x engine.Executor, head *checkpoint,
	end int64) (full []checkpoint, events int, err error) {
	var earliest, latest int64 // of their times, which need not be in order
	tags := newTagger(s.Root)
	add := func(e *event.Event, hash []byte) error {
		if e.Position != head.position+1 {
			return fmt.Errorf("event %d is missing: run signet verify", head.position+1)
		}
		if events++; events == 1 {
			earliest, latest = e.Time, e.Time
		}
		earliest, latest = min(earliest, e.Time), max(latest, e.Time)
		head.position, head.digest = e.Position, chained(head.digest, e.Position, hash)
		head.tags = append(head.tags, tags.tag(e.Position, hash)...)
		if head.position%span == 0 {
			full = append(full,
				checkpoint{number: head.position / span, position: head.position, digest: head.digest, tags: head.tags})
			head.tags = []byte{}
		}
		return nil
	}
	if s.Recent != nil && !s.gone {
		if recent, covered := s.Recent(head.position, page); covered {
			// behind the end they are of a log that has gone back
			for i := range recent[:max(0, min(int64(len(recent)), end-head.position))] {
				if err := add(&recent[i], recent[i].WrittenHash()); err != nil {
					return nil, 0, err
				}
			}
			return full, events, nil
		}
	}
	var e event.Event
	row := scanEvent(&e)
	err = x.Query(ctx, selectEvents+" WHERE position > ? ORDER BY position LIMIT ?", []any{head.position, int64(page)},
		func(scan engine.Scanner) error {
			if err := scan(row...); err != nil {
				return fmt.Errorf("event %d cannot be read: run signet verify: %w", head.position+1, err)
			}
			return add(&e, e.Hash())
		})
	if !s.begun && latest > earliest+patience.Microseconds() {
		// Nobody can tell any more whether these are as they were written.
		s.Log.Warn("sealing older events: this is expected once after an upgrade", "from",
			head.position-int64(events)+1, "since", event.Time(earliest))
	}
	return full, events, err
}

const selectEvents = "SELECT " + engine.EventColumns + " FROM events"

func scanEvent(e *event.Event) []any { return engine.Exactly(engine.ScanEvent(e)) }

// wentBack judges a head that is older than one that was there before. Somebody who wants changed events sealed would
// do that. Where the whole log has gone back, the database has lost what it had answered, or an older copy was put in
// its place.
func (s *Sealer) wentBack(ctx context.Context, x engine.Executor, position int64) error {
	end, err := logEnd(ctx, x)
	if err != nil {
		return err
	}
	if end >= s.known {
		return fmt.Errorf("the head of the checkpoints went back from position %d to %d: run signet verify",
			s.known, position)
	}
	return nil // compare says so
}

// plenty is how many events are sealed without waiting for more, so that a busy log is sealed while Recent has them.
const plenty = 3 * page

// look is how often the sealer looks whether there are plenty.
const look = 100 * time.Millisecond

// gather waits for more events that are about to come, but for no more than plenty. Without Durable it does not know
// how many there are.
func (s *Sealer) gather(interval time.Duration, pause func(time.Duration) (on bool)) {
	if s.Durable == nil {
		pause(interval)
		return
	}
	for left := interval; left > 0 && s.Durable()-s.sealed.Load() < plenty && pause(min(left, look)); left -= look {
	}
}

// Run seals at intervals, once something was written, until stopping closes, and then once more after everything was
// answered.
func (s *Sealer) Run(interval time.Duration, written *event.Bell, stopping, answered <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-stopping
		cancel()
	}()
	pause := func(d time.Duration, wake <-chan struct{}) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	pause(s.Delay, nil)
	for ctx.Err() == nil {
		next := written.Next()
		busy, err := s.Seal(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Log.Error("the log cannot be sealed", "error", err)
			pause(10*interval, nil)
		case busy:
			pause(interval, nil)
		default:
			s.remember(false)
			pause(10*interval, next) // in the end without a ring, to see what others have left
			s.gather(interval, func(d time.Duration) bool { pause(d, nil); return ctx.Err() == nil })
		}
	}
	<-answered
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for busy := true; busy && ctx.Err() == nil; {
		var err error
		if busy, err = s.Seal(ctx); err != nil {
			s.Log.Error("the log cannot be sealed", "error", err)
		}
		if busy {
			pause(10*time.Millisecond, nil)
		}
	}
	s.remember(true)
}
