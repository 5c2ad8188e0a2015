package cache

import (
	"bytes"

	"github.com/signet-idm/signet/internal/event"
)

// Seen remembers what rows of PostgreSQL mean, so that a row that has not changed since it was last read is not decoded
// again. It never answers by itself: where an object stands is asked for anew each time, and only a record that
// stands exactly there is used. The zero value remembers nothing.
type Seen struct{ records *Cache }

// NewSeen makes one that remembers.
func NewSeen(kinds event.TokenKinds) Seen { return Seen{New(kinds)} }

// Forget is that of Cache.
func (s Seen) Forget(erased map[string]bool) { s.records.Forget(erased) }

// Has tells whether an object was read before.
func (s Seen) Has(ref event.Ref) bool { return s.records.Record(ref) != nil }

// Same gives the record that was read at this sequence, with this hash and shape; nil when there is none.
func (s Seen) Same(now *event.Record) *event.Record {
	old := s.records.Record(now.Ref)
	if old == nil || old.Sequence != now.Sequence || old.Shape != now.Shape || !bytes.Equal(old.Hash, now.Hash) {
		return nil
	}
	return old
}

// Keep gives the record to use for one that was just read: the same one, decoded already, or this one from now on.
func (s Seen) Keep(k event.Definition, r *event.Record) *event.Record {
	if s.records == nil {
		return r
	}
	if old := s.Same(r); old != nil {
		return old
	}
	if k.Prepare(r) == nil { // what cannot be decoded is for Open to complain about
		s.records.KeepRecord(s.records.Moment(), r)
	}
	return r
}
