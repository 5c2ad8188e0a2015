package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/event"
)

func TestWhatIsAbsentIsKnownUntilItIsThere(t *testing.T) {
	ref := event.Ref{Kind: "user", ID: "usr_1"}
	there := &event.Record{Ref: ref}
	for name, c := range map[string]struct {
		happens func(*Cache)
		absent  bool
	}{
		"nothing else": {func(*Cache) {}, true},
		"something else is made": {func(c *Cache) {
			c.Apply(&event.Changes{Created: []*event.Record{{Ref: event.Ref{Kind: "user", ID: "usr_2"}}}})
		}, true},
		"it is made":                  {func(c *Cache) { c.Apply(&event.Changes{Created: []*event.Record{there}}) }, false},
		"it is found after all":       {func(c *Cache) { c.KeepRecord(c.Moment(), there) }, false},
		"changes that nobody told of": {func(c *Cache) { c.Clear() }, false},
		"so many others that are absent": {func(c *Cache) {
			for i := range maxAbsent {
				c.KeepAbsent(c.Moment(), event.Ref{Kind: "user", ID: fmt.Sprint(i)})
			}
		}, false},
	} {
		held := New(event.TokenKinds{})
		held.KeepAbsent(held.Moment(), ref)
		if c.happens(held); held.Absent(ref) != c.absent {
			t.Errorf("%s: absent is %t", name, !c.absent)
		}
	}
	long := event.Ref{Kind: "user", ID: strings.Repeat("x", event.MaxID+1)}
	held := New(event.TokenKinds{})
	if held.KeepAbsent(held.Moment(), long); len(held.absent) != 0 || !held.Absent(long) {
		t.Errorf("what no object is called is kept: %d, absent is %t", len(held.absent), held.Absent(long))
	}
	moment := held.Moment()
	held.Apply(&event.Changes{})
	if held.KeepAbsent(moment, ref); held.Absent(ref) {
		t.Error("what was found before a commit counts after it")
	}
	var none *Cache
	if none.KeepAbsent(0, ref); none.Absent(ref) {
		t.Error("no cache knows something")
	}
}

func TestLookupsAreCounted(t *testing.T) {
	ref := event.Ref{Kind: "user", ID: "usr_1"}
	is := func(what string, l *Lookups, hits, misses int64) {
		t.Helper()
		if l.Hits.Load() != hits || l.Misses.Load() != misses {
			t.Errorf("%s: %d hits and %d misses, want %d and %d", what, l.Hits.Load(), l.Misses.Load(), hits, misses)
		}
	}
	c := New(event.TokenKinds{})
	c.Record(ref)
	c.KeepRecord(c.Moment(), &event.Record{Ref: ref})
	c.Record(ref)
	c.Record(ref)
	c.TokenContext([32]byte{})
	is("records", &c.Records, 2, 1)
	is("tokens", &c.Tokens, 0, 1)

	seen := NewSeen(event.TokenKinds{})
	moved := &event.Record{Ref: ref, Sequence: 2}
	seen.Same(moved)
	seen.records.KeepRecord(seen.records.Moment(), &event.Record{Ref: ref, Sequence: 1})
	if seen.Same(moved) != nil || seen.Same(&event.Record{Ref: ref, Sequence: 1}) == nil || !seen.Has(ref) {
		t.Error("only what has not moved is the same")
	}
	is("what was seen", seen.Lookups(), 1, 2)
	if none := (Seen{}); none.Lookups() != nil || none.Has(ref) || none.Same(moved) != nil {
		t.Error("nothing is remembered, and something is found")
	}
}
