package engine

import (
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// TestWhatNeedsLocks: only a lock keeps an object in place while something else is written on the strength of it.
func TestWhatNeedsLocks(t *testing.T) {
	ref := func(id string) event.Ref { return event.Ref{Kind: "user", ID: id} }
	updated := []*event.Record{{Ref: ref("a")}}
	row := []event.Row{{}}
	for name, c := range map[string]struct {
		write   []string
		changes event.Changes
		needs   bool
	}{
		"an event":                               {[]string{"a"}, event.Changes{Updated: updated}, false},
		"nothing":                                {[]string{"a"}, event.Changes{}, false},
		"an event, and nothing of another":       {[]string{"a", "b"}, event.Changes{Updated: updated}, false},
		"an event and a row":                     {[]string{"a"}, event.Changes{Updated: updated, Put: row}, false},
		"a row":                                  {[]string{"a"}, event.Changes{Put: row}, true},
		"a row that goes":                        {[]string{"a"}, event.Changes{Dropped: []event.RowKey{{}}}, true},
		"a token":                                {[]string{"a"}, event.Changes{Tokens: []event.TokenChange{{}}}, true},
		"a name":                                 {[]string{"a"}, event.Changes{Claims: []event.ClaimChange{{}}}, true},
		"an event and a row, nothing of another": {[]string{"a", "b"}, event.Changes{Updated: updated, Put: row}, true},
		"a row, with an object only read":        {nil, event.Changes{Put: row}, false},
	} {
		if got := needsLocks(&Needs{Write: map[event.Kind][]string{"user": c.write}}, &c.changes); got != c.needs {
			t.Errorf("%s: %v", name, got)
		}
	}
}
