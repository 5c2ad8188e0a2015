package notify

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	now   = int64(1_000_000_000)
	pause = 5 * time.Second
)

var errAway = errors.New("the store is away")

// testRules are those of a worker that tries three times and sends two events at a time.
func testRules() *Rules {
	return &Rules{
		Life:       30 * time.Second,
		Poll:       time.Second,
		SaveAfter:  4,
		MaxParked:  3,
		KeepFailed: true,
		Slots:      func() int { return 2 },
		Retry: func(p *Parked, r *Result, _ int64) (time.Duration, bool) {
			return max(pause, r.RetryAfter), p.Tries < 3
		},
	}
}

// ev is an event of an object, at a position of the log.
func ev(object string, sequence uint64, position int64) event.Event {
	return event.Event{ObjectID: object, Sequence: sequence, Position: position, Type: "app.added.v1", Org: "org_a"}
}

// all wants every event but those of one object.
func all(e *event.Event) (string, bool) { return e.ObjectID, e.ObjectID != "unwanted" }

// TestWhatBecomesOfALaneAfterATry is the state machine of this package.
func TestWhatBecomesOfALaneAfterATry(t *testing.T) {
	first, second := ev("a", 1, 10), ev("a", 2, 11)
	both := []event.Event{first, second}
	failed := func(tries int, since, next int64, forGood bool) *Parked {
		return &Parked{Retry: Retry{Position: 10, Org: "org_a", Tries: tries, Next: next}, Sequence: 1,
			Type: "app.added.v1", Since: since, Last: now, Status: 500, Problem: "no", Failed: forGood}
	}
	no := Outcome{Status: 500, Problem: "no"}
	later := now + pause.Microseconds()
	for _, c := range []struct {
		name   string
		before lane
		result Result
		keep   bool // what was tried often enough
		want   lane
	}{
		{"its last event is sent", lane{events: both[:1]}, Result{}, true, lane{events: []event.Event{}, done: true}},
		{"its first event is sent", lane{events: both}, Result{}, true, lane{events: both[1:]}},
		{"its first event fails, the others wait in the log", lane{events: both}, Result{Outcome: no}, true,
			lane{parked: failed(1, now, later, false)}},
		{"it is refused", lane{events: both}, Result{Outcome: Outcome{Problem: "no", Status: 500, Refused: true}},
			true, func() lane {
				p := failed(1, now, later, false)
				p.Refused = true
				return lane{parked: p}
			}()},
		{"the other side wants a longer pause", lane{events: both},
			Result{Outcome: Outcome{Status: 500, Problem: "no", RetryAfter: time.Minute}}, true,
			lane{parked: failed(1, now, now+time.Minute.Microseconds(), false)}},
		{"nobody knows what came of it", lane{events: both}, Result{Err: errAway}, true, lane{events: both}},
		{"nobody knows, and it was tried before", lane{events: both, parked: failed(2, 7, 8, false)},
			Result{Outcome: no, Err: errAway, Try: 3}, true,
			lane{events: both, parked: failed(2, 7, 8, false)}},
		{"what was parked is sent", lane{events: both, parked: failed(2, 7, 8, false)}, Result{Try: 3}, true,
			lane{events: both[1:], parked: &Parked{Sequence: 2}}},
		{"what was parked fails again", lane{events: both, parked: failed(1, 7, 8, false)}, Result{Outcome: no, Try: 2},
			true, lane{parked: failed(2, 7, later, false)}},
		{"what was resumed fails", lane{events: both, parked: &Parked{Sequence: 1}}, Result{Outcome: no}, true,
			lane{parked: failed(1, now, later, false)}},
		{"it fails for the last time, and stays", lane{events: both, parked: failed(2, 7, 8, false)},
			Result{Outcome: no, Try: 3}, true, lane{parked: failed(3, 7, 0, true)}},
		{"it fails for the last time, and is given up", lane{events: both, parked: failed(2, 7, 8, false)},
			Result{Outcome: no, Try: 3}, false,
			lane{parked: failed(3, 7, 0, false), done: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := testRules()
			rules.KeepFailed = c.keep
			c.before.sending, c.result.Event, c.result.Try = true, first, max(c.result.Try, 1)
			if got := c.before.after(&c.result, now, rules); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v %+v,\nwant %+v %+v", got, got.parked, c.want, c.want.parked)
			}
		})
	}
}

// queueAt is a queue that was saved just now, with a fresh lease, up to position 100.
func queueAt(alter ...func(*Queue)) *Queue {
	q := newQueue(testRules(), Progress{Position: 100, Until: now + (30 * time.Second).Microseconds()}, nil, now)
	for _, f := range alter {
		f(q)
	}
	return q
}

func with(key string, l lane) func(*Queue) { return func(q *Queue) { q.lanes[key] = l } }

// left sets what is left of the lease, and how long ago it was renewed.
func left(d, ago time.Duration) func(*Queue) {
	return func(q *Queue) { q.saved.Until, q.savedAt = now+d.Microseconds(), now-ago.Microseconds() }
}

func TestWhatToDoNext(t *testing.T) {
	events := func(n int) (list []event.Event) {
		for i := range n {
			list = append(list, ev("a", uint64(i+1), int64(101+i)))
		}
		return list
	}
	live := func(ticket int) lane { return lane{events: events(1), ticket: ticket} }
	sending := func(ticket int) lane { return lane{events: events(1), ticket: ticket, sending: true} }
	parked := func(next int64) lane { return lane{parked: &Parked{Retry: Retry{Tries: 1, Next: next}}} }
	more := func(q *Queue) { q.more = true }
	unsaved := func(n int) func(*Queue) { return func(q *Queue) { q.unsaved = n } }
	scanned := func(to int64) func(*Queue) { return func(q *Queue) { q.scanned = to } }
	sendTime := func(q *Queue) { q.rules.SendTime = 20 * time.Second }
	for _, c := range []struct {
		name string
		q    *Queue
		do   action
		key  string
	}{
		{"nothing", queueAt(), wait, ""},
		{"the log may have more", queueAt(more, with("a", live(1))), read, ""},
		{"enough was read", queueAt(more, with("a", lane{events: events(window)})), send, "a"},
		{"what is parked is not counted",
			queueAt(more, with("a",
				lane{events: events(window), parked: &Parked{Retry: Retry{Next: now + 1}}})), read, ""},
		{"no more keys may fail",
			queueAt(more, with("a", parked(now+1)), with("b", parked(now+1)), with("c", parked(now+1))), wait, ""},
		{"any number may fail",
			queueAt(more, with("a", parked(now+1)), with("b", parked(now+1)), with("c", parked(now+1)),
				func(q *Queue) { q.rules.MaxParked = 0 }), read, ""},

		{"the lowest ticket is first", queueAt(with("a", live(3)), with("b", live(2)), with("c", live(4))), send, "b"},
		{"one is on its way already", queueAt(with("a", sending(1)), with("b", live(2))), send, "b"},
		{"as many are on their way as may be",
			queueAt(with("a", sending(1)), with("b", sending(2)), with("c", live(3))), wait, ""},
		{"after a try of which nothing is known",
			queueAt(with("a", live(1)), func(q *Queue) { q.pause = now + 1 }), wait, ""},
		{"the pause is over", queueAt(with("a", live(1)), func(q *Queue) { q.pause = now }), send, "a"},
		{"parked, and not due", queueAt(with("a", parked(now+1))), wait, ""},
		{"parked, and due", queueAt(with("a", parked(now))), fetch, "a"},
		{"parked, due, and read again", queueAt(with("a", lane{events: events(1), parked: &Parked{}})), send, "a"},
		{"failed for good", queueAt(with("a", lane{parked: &Parked{Retry: Retry{Tries: 3}, Failed: true}})), wait, ""},
		{"due, and new ones stand in line", queueAt(with("a", parked(now)), with("b", live(2))), fetch, "a"},

		{"half of the lease is over",
			queueAt(more, with("a", live(1)), left(15*time.Second-1000, 15*time.Second)), save, ""},
		{"almost", queueAt(with("a", live(1)), left(15*time.Second, 15*time.Second)), send, "a"},
		{"renewed just now, by a slow store",
			queueAt(with("a", live(1)), left(time.Millisecond, time.Second)), send, "a"},
		{"and the lease is over already", queueAt(with("a", live(1)), left(0, 0)), save, ""},
		{"not enough of the lease is left to send",
			queueAt(sendTime, with("a", live(1)), left(19*time.Second, 11*time.Second)), save, ""},
		{"but there is nothing to send",
			queueAt(sendTime, with("a", sending(1)), left(19*time.Second, 11*time.Second)), wait, ""},

		{"some results, and more on their way", queueAt(unsaved(3), with("a", sending(1))), wait, ""},
		{"some results, and nothing on its way", queueAt(unsaved(1)), save, ""},
		{"some results, and more to send", queueAt(unsaved(3), with("a", live(1))), send, "a"},
		{"many results", queueAt(unsaved(4), with("a", live(1))), save, ""},
		{"some results for a while",
			queueAt(unsaved(1), with("a", sending(1)), left(29*time.Second, saveTime)), save, ""},
		{"many events that mean nothing", queueAt(scanned(100 + lag)), save, ""},
		{"not so many", queueAt(scanned(99 + lag)), wait, ""},
		{"many, behind one that is on its way", queueAt(scanned(100+lag), with("a", sending(1))), wait, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if do, key := c.q.next(now); do != c.do || key != c.key {
				t.Errorf("got %d %q, want %d %q", do, key, c.do, c.key)
			}
		})
	}
}

// Who was tried goes to the end of the line, unless nobody knows what came of it.
func TestKeysTakeTurns(t *testing.T) {
	q := queueAt()
	q.rules.SaveAfter = 100
	q.add([]event.Event{ev("a", 1, 101), ev("b", 1, 102), ev("a", 2, 103), ev("c", 1, 104)}, all)
	var order []string
	for i := range 5 {
		do, key := q.next(now)
		if do != send {
			t.Fatalf("%d is next", do)
		}
		r := q.take(key)
		if order = append(order, fmt.Sprint(key, r.Event.Sequence)); i == 1 {
			r.Err = errAway
		}
		q.settle(&r, now)
		q.pause = 0
	}
	if want := []string{"a1", "b1", "b1", "c1", "a2"}; !slices.Equal(order, want) {
		t.Errorf("sent: %q, want %q", order, want)
	}
	if s := q.survey(now); s.position != 104 || len(q.lanes) != 0 {
		t.Errorf("%+v is left", s)
	}
}

func TestATryOfWhichNothingIsKnownIsNotSaved(t *testing.T) {
	for _, c := range []struct {
		result  Result
		unsaved bool
		pauses  bool
	}{
		{Result{}, true, false},
		{Result{Outcome: Outcome{Problem: "no"}}, true, false},
		{Result{Err: errAway}, false, true},
		// for its sink has something to remember
		{Result{Outcome: Outcome{Problem: "gone", Gone: true}, Err: errAway}, true, true},
	} {
		q := queueAt()
		q.add([]event.Event{ev("a", 1, 101)}, all)
		r := q.take("a")
		r.Outcome, r.Err = c.result.Outcome, c.result.Err
		p := q.settle(&r, now)
		if q.Unsaved() != c.unsaved || (q.pause == now+time.Second.Microseconds()) != c.pauses ||
			(p != nil) != (r.Problem != "" && r.Err == nil) {
			t.Errorf("%+v: unsaved is %t, nothing is sent before %d, parked is %+v", c.result, q.Unsaved(), q.pause, p)
		}
	}
}

func TestWhatIsSavedIsNotSavedAgain(t *testing.T) {
	q := queueAt()
	q.add([]event.Event{ev("a", 1, 101)}, all)
	r := q.take("a")
	r.Problem = "no"
	q.settle(&r, now)
	if do, _ := q.next(now); do != save || !q.Changed()["a"] || q.Parked()["a"] == nil {
		t.Errorf("to be saved are %v of %v", q.Changed(), q.Parked())
	}
	q.wrote(Progress{Position: 101, Until: q.saved.Until}, now)
	if do, _ := q.next(now); do != wait || len(q.Changed()) > 0 || q.Unsaved() {
		t.Errorf("to be saved are %v of %v", q.Changed(), q.Parked())
	}
}

func TestWhatIsReadOfTheLog(t *testing.T) {
	q := queueAt(with("parked", lane{parked: &Parked{Sequence: 1}}))
	q.add([]event.Event{ev("parked", 2, 101), ev("unwanted", 1, 102), ev("a", 1, 103), ev("a", 2, 104), ev("b", 1, 105),
		ev("c", 1, 106)}, all)
	if got := slices.Sorted(maps.Keys(q.lanes)); !slices.Equal(got, []string{"a", "b", "parked"}) ||
		len(q.lanes["a"].events) != 2 || len(q.lanes["parked"].events) != 0 {
		t.Errorf("to send: %q, %+v", got, q.lanes)
	}
	if s := q.survey(now); q.scanned != 105 || !q.more || s.position != 102 || s.unsent != 3 {
		t.Errorf("no more keys may fail, and it was read up to %d, more is %t, %+v", q.scanned, q.more, s)
	}
	q = queueAt()
	if q.add(make([]event.Event, Page), func(*event.Event) (string, bool) { return "", false }); !q.more {
		t.Error("a full page is not the end")
	}
	if q.add(nil, all); q.more {
		t.Error("an empty page is the end")
	}
}

func TestWhatIsReadOfAParkedKey(t *testing.T) {
	tried := Parked{Retry: Retry{Tries: 2}, Sequence: 3, Type: "app.added.v1"}
	for _, c := range []struct {
		name    string
		events  []event.Event
		next    uint64 // sequence of what is sent next; 0: nothing
		tries   int
		gone    bool
		ahead   int
		pending uint64 // sequence of what is parked
	}{
		{"the one that failed", []event.Event{ev("a", 3, 50), ev("a", 4, 60)}, 3, 2, false, 2, 3},
		{"what the log was not read up to", []event.Event{ev("a", 3, 50), ev("a", 4, 101)}, 3, 2, false, 1, 3},
		{"it has caught up", []event.Event{ev("a", 3, 101)}, 0, 2, true, 0, 3},
		{"there is none", nil, 0, 2, true, 0, 3},
		{"the one that failed is not wanted any more",
			[]event.Event{{ObjectID: "unwanted", Sequence: 3, Position: 50}, ev("a", 4, 60)}, 4, 0, false, 1, 4},
		{"none of them is wanted", []event.Event{{ObjectID: "unwanted", Sequence: 3, Position: 50}}, 0, 0, false, 0, 4},
		{"one between is not wanted",
			[]event.Event{ev("a", 3, 50), {ObjectID: "unwanted", Sequence: 4, Position: 51}, ev("a", 5, 60)}, 3,
			2, false, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := tried
			q := queueAt(with("a", lane{parked: &p}))
			q.fetched("a", c.events, all)
			l, there := q.lanes["a"]
			if there == c.gone || q.Unsaved() != c.gone || !q.changed["a"] || len(l.events) != c.ahead {
				t.Fatalf("%+v", l)
			}
			if c.gone {
				return
			}
			if l.parked.Sequence != c.pending || l.parked.Tries != c.tries || p != tried {
				t.Errorf("parked is %+v", l.parked)
			}
			if c.next != 0 {
				if r := q.take("a"); r.Event.Sequence != c.next || r.Try != c.tries+1 {
					t.Errorf("sent is %+v", r)
				}
			}
		})
	}
}

// What is replayed by command was written over what this node knows, unless this node has something newer to write.
func TestWhatHasFailedIsResumed(t *testing.T) {
	forGood, replayed := &Parked{Sequence: 3, Failed: true}, &Parked{Sequence: 3}
	for _, c := range []struct {
		name    string
		mine    *Parked
		unsaved bool
		stored  *Parked
		resumed bool
	}{
		{"replayed", forGood, false, replayed, true},
		{"not replayed", forGood, false, forGood, false},
		{"it has failed here since", forGood, true, replayed, false},
		{"it is tried here", &Parked{Sequence: 5}, false, replayed, false},
		{"it is unknown here", nil, false, replayed, false},
	} {
		q := queueAt()
		if c.mine != nil {
			q.lanes["a"], q.changed["a"] = lane{parked: c.mine}, c.unsaved
		}
		if q.Resume("a", c.stored); (q.lanes["a"].parked == c.stored && c.stored != c.mine) != c.resumed {
			t.Errorf("%s: %+v", c.name, q.lanes["a"].parked)
		}
	}
}

// TestNothingIsLostAndOrderIsKeptWhateverHappens: receivers fail, results stay unknown, and nodes die and are followed
// by others, at random. Each event is sent at least once, and those of a key in order.
func TestNothingIsLostAndOrderIsKeptWhateverHappens(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var log []event.Event
		last := map[string]uint64{}
		for i := range 60 {
			key := fmt.Sprint("key_", dice.IntN(6))
			last[key]++
			log = append(log, ev(key, last[key], int64(i+1)))
		}
		sent := map[string]uint64{}
		(&model{t: t, dice: dice, log: log, sent: sent, rows: map[string]*Parked{}}).run()
		if !maps.Equal(sent, last) {
			t.Fatalf("seed %d: sent are %v, of %v", seed, sent, last)
		}
	}
}

// model is a log, a receiver, and what nodes have saved.
type model struct {
	t    *testing.T
	dice *rand.Rand
	log  []event.Event
	sent map[string]uint64 // up to here, by key
	row  Progress
	rows map[string]*Parked
	now  int64
}

// run lets node after node work until nothing is left.
func (m *model) run() {
	rules := testRules()
	rules.MaxParked = 4
	rules.Retry = func(*Parked, *Result, int64) (time.Duration, bool) { return time.Second, true }
	for node := 0; ; node++ {
		m.row.Until = m.now + rules.Life.Microseconds()
		q := newQueue(rules, m.row, maps.Clone(m.rows), m.now)
		var onWay []Result
		for step := 0; node > 20 || m.dice.IntN(200) > 0; step++ { // or it dies
			if m.now += 100_000; step > 100_000 {
				m.t.Fatal("it comes to no end")
			}
			do, key := q.next(m.now)
			q.more = q.more || do == wait
			if len(onWay) > 0 && (do == wait || m.dice.IntN(2) == 0) {
				i := m.dice.IntN(len(onWay))
				m.settle(q, onWay[i])
				onWay = slices.Delete(onWay, i, i+1)
				continue
			}
			if do == send {
				onWay = append(onWay, q.take(key))
				continue
			}
			m.do(q, do, key)
			if m.row.Position == int64(len(m.log)) && len(m.rows) == 0 {
				return
			}
		}
	}
}

func (m *model) do(q *Queue, do action, key string) {
	switch do {
	case save:
		for key := range q.Changed() {
			if m.rows[key] = q.Parked()[key]; m.rows[key] == nil {
				delete(m.rows, key)
			}
		}
		m.row = Progress{Position: q.survey(m.now).position, Until: m.now + q.rules.Life.Microseconds()}
		q.wrote(m.row, m.now)
	case read:
		q.add(m.log[q.scanned:min(q.scanned+int64(1+m.dice.IntN(10)), int64(len(m.log)))], all)
	case fetch:
		var events []event.Event
		for _, e := range m.log {
			if e.ObjectID == key && e.Sequence >= q.lanes[key].parked.Sequence && len(events) < 3 {
				events = append(events, e)
			}
		}
		q.fetched(key, events, all)
	}
}

// settle is what the receiver says, who may have taken an event also where nobody hears of it.
func (m *model) settle(q *Queue, r Result) {
	dice := m.dice.IntN(4)
	if dice == 1 {
		r.Problem = "no"
	}
	if dice == 2 {
		r.Err = errAway
	}
	if taken := dice == 0 || dice == 3 || m.dice.IntN(2) == 0; taken {
		if r.Event.Sequence > m.sent[r.Key]+1 {
			m.t.Fatalf("%s.%d comes after %d", r.Key, r.Event.Sequence, m.sent[r.Key])
		}
		m.sent[r.Key] = max(m.sent[r.Key], r.Event.Sequence)
	}
	q.settle(&r, m.now)
}
