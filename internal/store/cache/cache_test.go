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
