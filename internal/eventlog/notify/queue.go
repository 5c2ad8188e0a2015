package notify

import (
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	MaxParked = 1000                   // keys; with more, a worker waits
	Page      = 200                    // events read at once
	window    = 128                    // events read and not yet sent, with which there is no need to read on
	saveTime  = 500 * time.Millisecond // after which results are saved, while there is more to do
	lag       = 2000                   // events that mean nothing to a worker are noted when there are so many
)

// Outcome is what came of one try to send an event. Nothing in it comes from the other side but numbers.
type Outcome struct {
	Status     int // of an HTTP answer; 0: there was none
	Took       time.Duration
	Problem    string        // in our words; empty: the event is sent
	Refused    bool          // the other side answers, but does not take this one event
	ForGood    bool          // another try most likely changes nothing
	Gone       bool          // the other side wants nothing any more
	RetryAfter time.Duration // the other side asks for this pause
}

// Result is the end of one try.
type Result struct {
	Key   string
	Event event.Event
	Try   int
	Outcome
	// nobody knows what came of it, so it does not count: the store was away, nothing may be sent, or the node stops
	Err error
}

// Retry is what a follower's row holds of a parked event.
type Retry struct {
	Position int64  `json:"position,omitempty"`
	Org      string `json:"org,omitempty"`
	Tries    int    `json:"tries,omitempty"`
	Next     int64  `json:"next,omitempty"` // when it is tried again
	Refused  bool   `json:"refused,omitempty"`
}

// Parked is an event that failed. Those of its key that come behind it wait in the log. Without Tries it was sent, or
// resumed by a command.
type Parked struct {
	Retry
	Sequence uint64     `json:"sequence"` // of the event that comes next
	Type     event.Type `json:"type,omitempty"`
	Since    int64      `json:"since,omitempty"` // when it failed first
	Last     int64      `json:"last,omitempty"`  // when it failed last
	Status   int        `json:"status,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Failed   bool       `json:"failed,omitempty"` // it is not tried again by itself
}

// Rules are what differs between workers.
type Rules struct {
	Life       time.Duration // of the lease
	SendTime   time.Duration // that the lease has to last when something is sent
	Poll       time.Duration // how often to look for work, and the pause after a try of which nothing is known
	Peek       time.Duration // how often to look at a lease that another node holds; 0: with every Poll
	SaveAfter  int           // results, while there is more to do
	MaxParked  int           // 0: any number
	KeepFailed bool          // what was tried often enough stays parked
	Slots      func() int    // how many events may be on their way
	// Retry tells how long an event that was parked waits; false: it was tried often enough.
	Retry func(p *Parked, r *Result, now int64) (time.Duration, bool)
}

// lane is the events of one key, which are sent one after the other.
type lane struct {
	events  []event.Event // the next ones: all that were read, or where it is parked, some that were read again
	parked  *Parked       // nil: none has failed
	ticket  int           // the lowest is sent first
	sending bool
	done    bool // nothing is left
}

// ready tells whether the next event can be sent.
func (l lane) ready(now int64) bool {
	return !l.sending && (l.parked == nil || !l.parked.Failed && l.parked.Next <= now)
}

// after is what becomes of a lane when a try of its first event has ended.
func (l lane) after(r *Result, now int64, rules *Rules) lane {
	l.sending = false
	switch {
	case r.Err != nil:
	case r.Problem != "":
		return l.park(r, now, rules)
	case l.parked != nil:
		l.events, l.parked = l.events[1:], &Parked{Sequence: r.Event.Sequence + 1}
	default:
		l.events, l.done = l.events[1:], len(l.events) == 1
	}
	return l
}

// park is after for a try that failed.
func (l lane) park(r *Result, now int64, rules *Rules) lane {
	e := &r.Event
	p := &Parked{
		Retry:    Retry{Position: e.Position, Org: e.Org, Tries: r.Try, Refused: r.Refused},
		Sequence: e.Sequence,
		Type:     e.Type,
		Since:    now,
		Last:     now,
		Status:   r.Status,
		Problem:  r.Problem,
	}
	if r.Try > 1 {
		p.Since = l.parked.Since
	}
	pause, again := rules.Retry(p, r, now)
	if again {
		p.Next = now + pause.Microseconds()
	}
	p.Failed = !again && rules.KeepFailed
	return lane{parked: p, done: !again && !rules.KeepFailed}
}

// Queue is what the node that holds a lease knows: up to where the log was read, and what of it is to be sent. It does
// nothing by itself: it takes in what was read, sent and saved, and says what to do next.
type Queue struct {
	rules   *Rules
	saved   Progress
	savedAt int64
	scanned int64 // up to here the log was read
	more    bool  // there may be more in the log
	lanes   map[string]lane
	tickets int   // that were given out
	unsaved int   // results since the row was saved
	pause   int64 // nothing is sent before that
	changed map[string]bool
}

func newQueue(rules *Rules, p Progress, parked map[string]*Parked, now int64) *Queue {
	q := &Queue{rules: rules, saved: p, savedAt: now, scanned: p.Position, lanes: map[string]lane{},
		changed: map[string]bool{}}
	for key, p := range parked {
		q.lanes[key] = lane{parked: p}
	}
	return q
}

// action is what to do next.
type action int

const (
	wait  action = iota // for a result, for new events, or for time to pass
	save                // how far it has come, which renews the lease
	read                // the next page of the log
	fetch               // the next events of a key that is parked
	send                // the next event of a key
)

// next says what to do, and with which key.
func (q *Queue) next(now int64) (do action, key string) {
	s := q.survey(now)
	left, age := micros(q.saved.Until-now), micros(now-q.savedAt)
	late := left < q.rules.Life/2 || s.next != "" && left < q.rules.SendTime
	switch {
	case left <= 0, late && age >= q.rules.Life/8, // where the store is slow, something else is done between two renewals
		q.unsaved >= q.rules.SaveAfter, q.unsaved > 0 && age >= saveTime, s.position-q.saved.Position >= lag:
		return save, ""
	case q.more && s.unsent < window && !q.full():
		return read, ""
	case s.next != "" && now >= q.pause && s.sending < q.rules.Slots():
		if len(q.lanes[s.next].events) == 0 {
			return fetch, s.next
		}
		return send, s.next
	case q.unsaved > 0 && s.sending == 0:
		return save, ""
	}
	return wait, ""
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// survey is what a look at all lanes shows.
type survey struct {
	next     string // key of the event to send next
	position int64  // up to here everything in the log was sent, or is parked
	unsent   int    // events that were read and are neither
	sending  int
}

func (q *Queue) survey(now int64) survey {
	s := survey{position: q.scanned}
	for key, l := range q.lanes {
		if l.parked == nil {
			s.unsent += len(l.events)
			s.position = min(s.position, l.events[0].Position-1)
		}
		if l.sending {
			s.sending++
		}
		if l.ready(now) && (s.next == "" || l.ticket < q.lanes[s.next].ticket) {
			s.next = key
		}
	}
	return s
}

// idle tells that there is nothing to do, and nothing parked.
func (q *Queue) idle() bool { return len(q.lanes) == 0 && q.unsaved == 0 && !q.more }

// full tells that no other key may fail.
func (q *Queue) full() bool { return q.rules.MaxParked > 0 && len(q.lanes) >= q.rules.MaxParked }

// add takes in a page of the log. What is parked finds its events again when it is sent.
func (q *Queue) add(events []event.Event, wants func(*event.Event) (string, bool)) {
	q.more = len(events) == Page
	for i := range events {
		if q.full() {
			q.more = true
			return
		}
		q.scanned = events[i].Position
		key, wanted := wants(&events[i])
		if l, known := q.lanes[key]; wanted && l.parked == nil {
			if l.events = append(l.events, events[i]); !known {
				q.tickets++
				l.ticket = q.tickets
			}
			q.lanes[key] = l
		}
	}
}

// fetched takes in the next events of a key that is parked. Where there are none up to where the log was read, it has
// caught up: add finds the others.
func (q *Queue) fetched(key string, events []event.Event, wants func(*event.Event) (string, bool)) {
	l, p := q.lanes[key], *q.lanes[key].parked
	l.done = true
	for i := range events {
		if events[i].Position > q.scanned {
			break
		}
		l.done = false
		if _, wanted := wants(&events[i]); wanted {
			l.events = append(l.events, events[i])
		} else if l.events == nil {
			p = Parked{Sequence: events[i].Sequence + 1}
		}
	}
	if len(l.events) > 0 {
		p.Sequence, p.Type = l.events[0].Sequence, l.events[0].Type
	}
	if l.parked = &p; l.done {
		q.unsaved++
	}
	q.put(key, l)
}

// take is the next event of a key, to be sent.
func (q *Queue) take(key string) Result {
	l := q.lanes[key]
	r := Result{Key: key, Event: l.events[0], Try: 1}
	if l.parked != nil {
		r.Try += l.parked.Tries
	}
	l.sending = true
	q.put(key, l)
	return r
}

// settle takes in what came of a try. It gives what was parked because of it.
func (q *Queue) settle(r *Result, now int64) *Parked {
	l := q.lanes[r.Key].after(r, now, q.rules)
	if r.Err != nil {
		q.pause = now + q.rules.Poll.Microseconds()
	} else {
		q.tickets++
		l.ticket = q.tickets
	}
	if r.Err == nil || r.Gone {
		q.unsaved++
	}
	q.put(r.Key, l)
	if r.Err != nil || r.Problem == "" {
		return nil
	}
	return l.parked
}

func (q *Queue) put(key string, l lane) {
	if l.parked != q.lanes[key].parked {
		q.changed[key] = true
	}
	if q.lanes[key] = l; l.done {
		delete(q.lanes, key)
	}
}

// wrote takes in that the row was saved.
func (q *Queue) wrote(p Progress, now int64) {
	q.saved, q.savedAt, q.unsaved = p, now, 0
	clear(q.changed)
}

// Unsaved tells whether there are results that are not saved.
func (q *Queue) Unsaved() bool { return q.unsaved > 0 }

// Changed gives the keys of which what is parked is not saved.
func (q *Queue) Changed() map[string]bool { return q.changed }

// Parked gives all that is parked, by key.
func (q *Queue) Parked() map[string]*Parked {
	all := map[string]*Parked{}
	for key, l := range q.lanes {
		if l.parked != nil {
			all[key] = l.parked
		}
	}
	return all
}

// Resume takes in that somebody has let what has failed be tried again. What this node has not yet saved itself stays.
func (q *Queue) Resume(key string, p *Parked) {
	if l := q.lanes[key]; l.parked != nil && l.parked.Failed && !p.Failed && !q.changed[key] {
		q.lanes[key] = lane{parked: p, ticket: l.ticket}
	}
}

// Drop gives up what is parked.
func (q *Queue) Drop(key string) { q.put(key, lane{done: true}) }
