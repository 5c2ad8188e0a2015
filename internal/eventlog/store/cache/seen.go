package cache

import (
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Seen remembers what rows of PostgreSQL mean, so that a row that has not changed since it was last read is not decoded
// again. It never answers by itself: where an object stands is asked for anew each time, and only a record that
// stands exactly there is used. The zero value remembers nothing.
type Seen struct{ records *Cache }

// NewSeen makes one that remembers.
func NewSeen(kinds event.TokenKinds) Seen { return Seen{New(kinds)} }

// Written remembers the records that a batch has written, and forgets those of destroyed keys.
func (s Seen) Written(changes *event.Changes) {
	if s.records != nil {
		s.records.mu.Lock()
		defer s.records.mu.Unlock()
		s.records.applyRecords(changes)
	}
}

// Reuse spares records that were just read the decoding, where they have not changed since they were last seen. Others
// are forgotten as they were seen.
func (s Seen) Reuse(records map[event.Ref]*event.Record) {
	if s.records == nil {
		return
	}
	for _, r := range records {
		old := s.Same(r)
		if old == nil {
			s.records.drop(r.Ref)
			continue
		}
		if r.Reuse(old); lacksKey(old) && !lacksKey(r) {
			s.records.replace(r)
		}
	}
}

// All gives objects to write and to read as they were last seen; nil unless all of them were, and those to write with
// the key of what is personal in them. They may have changed since: who goes by them has to check that they have not.
func (s Seen) All(write, read map[event.Kind][]string) map[event.Ref]*event.Record {
	if s.records == nil || len(write)+len(read) == 0 {
		return nil
	}
	found := make(map[event.Ref]*event.Record, len(write)+len(read))
	s.records.mu.RLock()
	defer s.records.mu.RUnlock()
	for kind, ids := range write {
		for _, id := range ids {
			r := s.records.records[event.Ref{Kind: kind, ID: id}]
			if r == nil || lacksKey(r) {
				return nil
			}
			found[r.Ref] = r
		}
	}
	for kind, ids := range read {
		for _, id := range ids {
			r := s.records.records[event.Ref{Kind: kind, ID: id}]
			if r == nil {
				return nil
			}
			found[r.Ref] = r
		}
	}
	return found
}

// lacksKey tells that a record has something personal and came without the key of it: it was read to be shown, or the
// key was destroyed.
func lacksKey(r *event.Record) bool { return r.KeyID != "" && r.WrappedKey == nil }

// Has tells whether an object was read before.
func (s Seen) Has(ref event.Ref) bool { return s.records != nil && s.records.record(ref) != nil }

// Same gives the record that was read at this sequence, with this hash and shape; nil when there is none.
func (s Seen) Same(now *event.Record) *event.Record {
	if s.records == nil {
		return nil
	}
	old := s.records.Same(now)
	s.records.Records.count(old != nil)
	return old
}

// Lookups counts how often the record was the same; nil where nothing is remembered.
func (s Seen) Lookups() *Lookups {
	if s.records == nil {
		return nil
	}
	return &s.records.Records
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
		s.records.keepNewer(r)
	}
	return r
}
