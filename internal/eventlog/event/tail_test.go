package event

import (
	"context"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// numbered makes the events of a piece of the log.
func numbered(first, last int64, payload int) []Event {
	var events []Event
	for position := first; position <= last; position++ {
		events = append(events, Event{Position: position, Payload: make([]byte, payload)})
	}
	return events
}

func TestATailGivesWhatItHasAndSaysWhatItHasNot(t *testing.T) {
	for _, c := range []struct {
		name        string
		added       [][]Event // behind position 10
		maxBytes    int
		after       int64
		limit       int
		first, last int64 // both 0: nothing
		covered     bool
	}{
		{"nothing has come: whoever is at its beginning has everything", nil, 1e6, 10, 5, 0, 0, true},
		{"nothing has come, and somebody is behind its beginning", nil, 1e6, 9, 5, 0, 0, false},
		{"all there is", [][]Event{numbered(11, 13, 0)}, 1e6, 10, 5, 11, 13, true},
		{"from the middle on", [][]Event{numbered(11, 12, 0), numbered(13, 14, 0)}, 1e6, 11, 5, 12, 14, true},
		{"no more than asked for", [][]Event{numbered(11, 14, 0)}, 1e6, 10, 2, 11, 12, true},
		{"nothing behind the end", [][]Event{numbered(11, 13, 0)}, 1e6, 13, 5, 0, 0, true},
		{"nothing ahead of the end", [][]Event{numbered(11, 13, 0)}, 1e6, 99, 5, 0, 0, true},
		{"somebody is behind its beginning", [][]Event{numbered(11, 13, 0)}, 1e6, 9, 5, 0, 0, false},
		{"the oldest make room for new ones", [][]Event{numbered(11, 13, 0), numbered(14, 16, 0)}, 1e6, 12,
			5, 13, 16, true},
		{"and are missing then", [][]Event{numbered(11, 13, 0), numbered(14, 16, 0)}, 1e6, 11, 5, 0, 0, false},
		{"large ones take the room of many", [][]Event{numbered(11, 13, 1000)}, 3100, 11, 5, 12, 13, true},
		{"and are missing then", [][]Event{numbered(11, 13, 1000)}, 3100, 10, 5, 0, 0, false},
		{"one that is too large is not kept, and is not skipped", [][]Event{numbered(11, 11, 9000)}, 3100, 10,
			5, 0, 0, false},
		{"others come behind it", [][]Event{numbered(11, 11, 9000), numbered(12, 12, 0)}, 3100, 11, 5, 12, 12, true},
		{"nothing is nothing", [][]Event{{}}, 1e6, 10, 5, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tail := &Tail{MaxEvents: 4, MaxBytes: c.maxBytes}
			tail.Begin(10)
			for _, events := range c.added {
				tail.Add(events)
			}
			found, covered := tail.After(c.after, c.limit)
			if covered != c.covered {
				t.Errorf("covered: %v", covered)
			}
			if c.first == 0 {
				if len(found) > 0 {
					t.Errorf("found %d", len(found))
				}
				return
			}
			if int64(len(found)) != c.last-c.first+1 || found[0].Position != c.first ||
				found[len(found)-1].Position != c.last {
				t.Errorf("found %v", found)
			}
		})
	}
}

func TestATailThatHasNotBegunKnowsOfNothing(t *testing.T) {
	tail := &Tail{MaxEvents: 4, MaxBytes: 1e6}
	if _, begun := tail.End(); begun {
		t.Error("it has begun")
	}
	if found, covered := tail.After(3, 5); len(found) > 0 || !covered {
		t.Errorf("%v, %v", found, covered)
	}
	tail.Begin(10)
	tail.Add(numbered(11, 12, 0))
	tail.Begin(20) // elsewhere
	if end, begun := tail.End(); end != 20 || !begun {
		t.Errorf("%d, %v", end, begun)
	}
	if found, covered := tail.After(11, 5); len(found) > 0 || covered {
		t.Errorf("it remembers %v", found)
	}
}

// Events lie in blocks in memory, which nobody who reads them notices.
func TestATailGivesEventsOfSeveralBlocks(t *testing.T) {
	const last = 5*blockEvents/2 + 10
	tail := &Tail{MaxEvents: 2 * blockEvents, MaxBytes: 1e9}
	tail.Begin(10)
	for position := int64(11); position <= last; position += 7 {
		tail.Add(numbered(position, min(position+6, last), 0))
	}
	kept := int64(last - 2*blockEvents)
	for after := kept; after < last; after += 61 {
		for _, limit := range []int{1, 100, blockEvents, 3 * blockEvents} {
			found, covered := tail.After(after, limit)
			if want := min(limit, int(last-after)); !covered || len(found) != want {
				t.Fatalf("behind %d: %d of %d, covered: %v", after, len(found), want, covered)
			}
			for i := range found {
				if found[i].Position != after+int64(i)+1 {
					t.Fatalf("behind %d: position %d at %d", after, found[i].Position, i)
				}
			}
		}
	}
	if _, covered := tail.After(kept-1, 1); covered {
		t.Error("it has more than it may keep")
	}
}

// What was given stays as it was, whatever happens to the tail.
func TestWhoReadsATailKeepsWhatWasRead(t *testing.T) {
	tail := &Tail{MaxEvents: 4, MaxBytes: 1e6}
	tail.Begin(0)
	given := map[int64][]Event{}
	for position := int64(1); position < 30; position += 2 {
		tail.Add(numbered(position, position+1, 0))
		after := max(0, position-3)
		given[after], _ = tail.After(after, 4)
	}
	for after, events := range given {
		for i := range events {
			if got, want := events[i].Position, after+int64(i)+1; got != want {
				t.Errorf("position %d became %d", want, got)
			}
		}
	}
	// Nobody can write into the tail by appending to what was given.
	tail.Begin(0)
	tail.Add(numbered(1, 3, 0))
	found, _ := tail.After(0, 2)
	_ = append(found, Event{Position: 99})
	if now, _ := tail.After(2, 1); now[0].Position != 3 {
		t.Errorf("position %d where 3 was", now[0].Position)
	}
}

func TestAwait(t *testing.T) {
	closed, never := make(chan struct{}), make(chan struct{})
	close(closed)
	tick := make(chan time.Time, 1)
	ended, end := context.WithCancel(t.Context())
	end()
	if !Await(t.Context(), closed, nil, time.Nanosecond) {
		t.Error("something was written, and it ended")
	}
	if Await(ended, never, nil, time.Nanosecond) {
		t.Error("the context ended, and it went on")
	}
	tick <- time.Time{}
	if !Await(t.Context(), never, tick, time.Hour) { // what others have written has gathered already
		t.Error("a tick came, and it ended")
	}
	// While events gather the context can end.
	gathering, stop := context.WithCancel(t.Context())
	over := make(chan bool)
	go func() { over <- Await(gathering, closed, nil, time.Hour) }()
	stop()
	if testkit.Receive(t, over, "it ends") {
		t.Error("the context ended, and it went on")
	}
}
