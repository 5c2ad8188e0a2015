package store

import (
	"cmp"
	"context"
	"time"
)

// A command that erases somebody is answered once the files of the database hold nothing of the person any more.
// Somebody who reads for long, such as a backup or a check, may be in the way: then it is answered all the same after a
// while, or at once where the disk fails, and scrubbing goes on until it is done. A node that is stopped in between
// scrubs when it starts.
type scrubTimes struct {
	patience time.Duration // that an erasure waits
	pause    time.Duration // between tries while one waits
	interval time.Duration // and while none does
}

func (t scrubTimes) orUsual() scrubTimes {
	return scrubTimes{cmp.Or(t.patience, 5*time.Second), cmp.Or(t.pause, 100*time.Millisecond),
		cmp.Or(t.interval, 10*time.Second)}
}

// answerErased answers the commands that erased somebody. Those that come together share one scrubbing.
func (s *Store) answerErased() {
	defer close(s.stopped)
	owed, _ := s.scrub() // what the last run may have left
	said := false
	for open := true; open; {
		var again <-chan time.Time
		if owed {
			again = time.After(s.times.interval)
		}
		var waiting []*pending
		select {
		case p, more := <-s.erasing:
			if open = more; more {
				waiting = s.together(p)
				owed = true
			}
		case <-again:
		}
		failed := false
		for deadline := time.Now().Add(s.times.patience); owed; {
			if owed, failed = s.scrub(); !owed || failed || len(waiting) == 0 || time.Now().After(deadline) || !open {
				break
			}
			<-time.After(s.times.pause)
		}
		answer(waiting, nil)
		if owed && !said && !failed {
			s.log.Warn("a long-running reader keeps erased data in the write-ahead log: the server retries until it is truncated")
		}
		if !owed && said {
			s.log.Info("the write-ahead log contains no erased data any more")
		}
		said = owed
	}
}

// together gives a command with those that wait behind it.
func (s *Store) together(first *pending) []*pending {
	all := []*pending{first}
	for {
		select {
		case p, more := <-s.erasing:
			if !more {
				return all
			}
			all = append(all, p)
		default:
			return all
		}
	}
}

// scrub tries once, and tells whether it is still owed.
func (s *Store) scrub() (owed, failed bool) {
	done, err := s.engine.Scrub(context.Background())
	if err != nil {
		s.log.Warn("truncating the write-ahead log after an erasure failed: the server retries", "error", err)
	}
	return !done, err != nil
}
