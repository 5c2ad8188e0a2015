package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
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
		"it is made": {func(c *Cache) {
			c.Apply(&event.Changes{Created: []*event.Record{there}})
		}, false},
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
	seen.records.keepNewer(&event.Record{Ref: ref})
	if seen.Same(moved) != nil || seen.Same(&event.Record{Ref: ref, Sequence: 1}) == nil || !seen.Has(ref) {
		t.Error("only what has not moved is the same")
	}
	is("what was seen", seen.Lookups(), 1, 2)
	if none := (Seen{}); none.Lookups() != nil || none.Has(ref) || none.Same(moved) != nil {
		t.Error("nothing is remembered, and something is found")
	}
}

func TestRowsAreKnownAsTheyAre(t *testing.T) {
	counter, secret := event.RowKey{Table: event.Throttle, Key: "k"}, event.RowKey{Table: event.Secrets, Key: "k"}
	row := func(key event.RowKey, value string) *event.Row { return &event.Row{RowKey: key, Value: []byte(value)} }
	const unknown, none = "unknown", "none"
	says := func(c *Cache, key event.RowKey) string {
		switch r, known := c.Row(key); {
		case !known:
			return unknown
		case r == nil:
			return none
		default:
			return string(r.Value)
		}
	}
	put := func(key event.RowKey, value string) func(*Cache) {
		return func(c *Cache) { c.Apply(&event.Changes{Put: []event.Row{*row(key, value)}}) }
	}
	large := strings.Repeat("x", maxRow+1)
	for name, c := range map[string]struct {
		key     event.RowKey
		kept    *event.Row
		happens func(*Cache)
		want    string
	}{
		"a counter":             {counter, row(counter, "1"), func(*Cache) {}, "1"},
		"no counter":            {counter, nil, func(*Cache) {}, none},
		"a counter that is put": {counter, nil, put(counter, "2"), "2"},
		"a counter that is changed": {counter, row(counter, "1"),
			func(c *Cache) { c.Apply(&event.Changes{Updates: []event.Row{*row(counter, "2")}}) }, "2"},
		"a counter that is inserted": {counter, nil,
			func(c *Cache) { c.Apply(&event.Changes{Inserted: []event.Row{*row(counter, "2")}}) }, "2"},
		"a counter that is dropped": {counter, row(counter, "1"),
			func(c *Cache) { c.Apply(&event.Changes{Dropped: []event.RowKey{counter}}) }, none},
		"a counter that becomes too large": {counter, row(counter, "1"), put(counter, large), unknown},
		"a counter that is too large":      {counter, row(counter, large), func(*Cache) {}, unknown},
		"another counter is put": {counter, row(counter, "1"),
			put(event.RowKey{Table: event.Throttle, Key: "other"}, "2"), "1"},
		"a secret":                 {secret, row(secret, "1"), func(*Cache) {}, "1"},
		"no secret":                {secret, nil, func(*Cache) {}, none},
		"a secret that is changed": {secret, row(secret, "1"), put(secret, "2"), unknown},
		"a secret that is dropped": {secret, row(secret, "1"),
			func(c *Cache) { c.Apply(&event.Changes{Dropped: []event.RowKey{secret}}) }, unknown},
		"changes that nobody told of": {counter, row(counter, "1"), (*Cache).Clear, unknown},
		"a table of which nothing is kept": {event.RowKey{Table: event.Flows, Key: "k"},
			row(event.RowKey{Table: event.Flows, Key: "k"}, "1"), func(*Cache) {}, unknown},
		"a key that strangers have made up": {event.RowKey{Table: event.Secrets, Key: large}, nil,
			func(*Cache) {}, unknown},
		"so many others of the same table": {counter, row(counter, "1"), manyRows(event.Throttle), unknown},
		"so many others of another table":  {counter, row(counter, "1"), manyRows(event.Secrets), "1"},
	} {
		held := New(event.TokenKinds{})
		held.KeepRow(held.Moment(), c.key, c.kept)
		if c.happens(held); says(held, c.key) != c.want {
			t.Errorf("%s: %s, want %s", name, says(held, c.key), c.want)
		}
	}
	held := New(event.TokenKinds{})
	if put(counter, "1")(held); says(held, counter) != unknown {
		t.Error("a row is kept that nobody has looked for")
	}
	moment := held.Moment()
	held.Apply(&event.Changes{})
	if held.KeepRow(moment, counter, nil); says(held, counter) != unknown {
		t.Error("what was found before a commit counts after it")
	}
	var nothing *Cache
	if nothing.KeepRow(0, counter, nil); says(nothing, counter) != unknown {
		t.Error("no cache knows something")
	}
}

func manyRows(table event.SideTable) func(*Cache) {
	return func(c *Cache) {
		for i := range maxRows {
			c.KeepRow(c.Moment(), event.RowKey{Table: table, Key: fmt.Sprint(i)}, nil)
		}
	}
}

func TestHoldersOfClaimsAreKnownUntilTheyChange(t *testing.T) {
	digest := [32]byte{1}
	for name, c := range map[string]struct {
		happens func(*Cache)
		known   bool
	}{
		"nothing else": {func(*Cache) {}, true},
		"another claim changes": {func(c *Cache) {
			c.Apply(&event.Changes{Claims: []event.ClaimChange{{Digest: [32]byte{2}, Holder: "usr_2"}}})
		}, true},
		"the claim is taken": {func(c *Cache) {
			c.Apply(&event.Changes{Claims: []event.ClaimChange{{Digest: digest, Holder: "usr_2"}}})
		}, false},
		"the claim is released": {func(c *Cache) {
			c.Apply(&event.Changes{Claims: []event.ClaimChange{{Digest: digest}}})
		}, false},
		"changes that nobody told of": {(*Cache).Clear, false},
		"so many others are asked for": {func(c *Cache) {
			for i := range maxHolders {
				c.KeepHolder(c.Moment(), [32]byte{9, byte(i), byte(i >> 8)}, "")
			}
		}, false},
	} {
		for _, holder := range []string{"usr_1", ""} {
			held := New(event.TokenKinds{})
			held.KeepHolder(held.Moment(), digest, holder)
			c.happens(held)
			if got, known := held.Holder(digest); known != c.known || known && got != holder {
				t.Errorf("%s: held by %q, known: %t", name, got, known)
			}
		}
	}
	held := New(event.TokenKinds{})
	moment := held.Moment()
	held.Apply(&event.Changes{})
	held.KeepHolder(moment, digest, "usr_1")
	if _, known := held.Holder(digest); known {
		t.Error("what was found before a commit counts after it")
	}
	var nothing *Cache
	nothing.KeepHolder(0, digest, "usr_1")
	if _, known := nothing.Holder(digest); known {
		t.Error("no cache knows something")
	}
}
