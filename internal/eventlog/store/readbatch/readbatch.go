// Package readbatch answers lookups that wait at the same moment with one query of each kind, in one round trip and one
// read transaction. It caches nothing: the round trip that answers a lookup began after the lookup.
package readbatch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/tracing"
)

// Most is how many of one kind are answered at once.
const Most = 64

// ErrStopped is the answer when there is nobody to ask any more.
var ErrStopped = errors.New("readbatch: stopped")

const queryTime = 10 * time.Second

// Question is one query.
type Question struct {
	SQL  string
	Args []any
	Each func(scan func(dest ...any) error) error // what to do with a row
}

// Reader asks the database what lookups of several kinds want to know.
type Reader struct {
	// OnRoundTrip is called after every round trip with the number of lookups that it answered and how long it took. It
	// is set before the first lookup; nil: nothing is called.
	OnRoundTrip func(lookups int, took time.Duration)

	ask     func(ctx context.Context, questions []Question) error
	stopped <-chan struct{}
	wake    chan struct{} // holds something while anybody waits

	readers int
	pace    fairqueue.Pace // of round trips

	single *Lookups[*Question, struct{}] // queries that are asked for themselves

	mu    sync.Mutex
	kinds []kind
}

// kind is Lookups without its types.
type kind interface {
	// take gives those that have waited longest, and whether others are left.
	take() (t turn, more bool)
}

// turn is what is asked for one kind of lookups in one round trip.
type turn interface {
	questions() []Question
	size() int
	answer(err error)
}

// Start starts reading, until stopped is closed. As a rule one round trip at a time is best: a second one would only
// halve what each answers, and the work is the database's, which costs by the query more than by the row. Machines with
// many cores can use more.
func Start(stopped <-chan struct{}, ask func(ctx context.Context, questions []Question) error) *Reader {
	r := &Reader{ask: ask, stopped: stopped, wake: make(chan struct{}, 1), readers: max(1, runtime.GOMAXPROCS(0)/4)}
	r.single = Add(r, func(asked []*Question, _ map[*Question]struct{}) (questions []Question) {
		for _, q := range asked {
			questions = append(questions, *q)
		}
		return questions
	})
	for range r.readers {
		go r.read()
	}
	return r
}

func (r *Reader) read() {
	for {
		select {
		case <-r.wake:
		case <-r.stopped:
			return
		}
		runtime.Gosched() // lets goroutines that are about to ask join: larger queries, fewer of them
		if turns := r.take(); len(turns) > 0 {
			r.answer(turns)
		}
	}
}

func (r *Reader) take() (turns []turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := false
	for _, k := range r.kinds {
		t, more := k.take()
		if t != nil {
			turns = append(turns, t)
		}
		left = left || more
	}
	if left {
		r.call()
	}
	return turns
}

// call makes sure that somebody looks.
func (r *Reader) call() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Reader) answer(turns []turn) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	var questions []Question
	lookups := 0
	for _, t := range turns {
		questions = append(questions, t.questions()...)
		lookups += t.size()
	}
	begun := time.Now()
	err := r.ask(ctx, questions)
	took := time.Since(begun)
	r.pace.Moved(1, took)
	if r.OnRoundTrip != nil {
		r.OnRoundTrip(lookups, took)
	}
	for _, t := range turns {
		t.answer(err)
	}
}

// Lookups are of one kind. K is what is looked for, V what is found.
type Lookups[K comparable, V any] struct {
	reader  *Reader
	ask     func(keys []K, found map[K]V) []Question
	waiting []*Asked[K, V] // guarded by the reader's lock
}

// Asked is a lookup that will be answered.
type Asked[K comparable, V any] struct {
	reader *Reader
	key    K
	found  V
	err    error
	done   chan struct{}
	ahead  int         // round trips before its own
	gone   atomic.Bool // who asked has left
}

// Add adds a kind of lookups. ask gives the queries that put what there is into found.
func Add[K comparable, V any](r *Reader, ask func(keys []K, found map[K]V) []Question) *Lookups[K, V] {
	l := &Lookups[K, V]{reader: r, ask: ask}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = append(r.kinds, l)
	return l
}

// Ask looks for one key, in the next round trip that anybody waits for.
func (l *Lookups[K, V]) Ask(key K) *Asked[K, V] {
	a := &Asked[K, V]{reader: l.reader, key: key, done: make(chan struct{})}
	l.reader.mu.Lock()
	a.ahead = len(l.waiting) / Most / l.reader.readers
	l.waiting = append(l.waiting, a)
	full := len(l.waiting) >= Most
	l.reader.mu.Unlock()
	if full {
		l.reader.call() // in case nobody ever waits
	}
	return a
}

// Get waits for the answer. Errors: what the queries failed with; that of ctx; fairqueue.ErrBusy if ctx would end before
// the answer can come; ErrStopped.
func (a *Asked[K, V]) Get(ctx context.Context) (found V, err error) {
	select {
	case <-a.done: // by a round trip that others have waited for
		return a.found, a.err
	default:
		if err := a.reader.pace.Admit(ctx, a.ahead, fairqueue.ErrBusy); err != nil {
			a.gone.Store(true)
			return found, err
		}
		a.reader.call()
	}
	_, span := tracing.Start(ctx, "sql.shared")
	defer func() { span.End(err) }()
	select {
	case <-a.done:
		return a.found, a.err
	case <-ctx.Done():
		a.gone.Store(true)
		return found, ctx.Err()
	case <-a.reader.stopped:
		return found, ErrStopped
	}
}

// Along asks a question of its own in the next round trip of the lookups, and waits. Errors: those of Asked.Get. After
// an error the answer may still come, so what the question fills is not to be looked at.
func (l *Lookups[K, V]) Along(ctx context.Context, q Question) error {
	_, err := l.reader.single.Get(ctx, &q)
	return err
}

// Get asks and waits.
func (l *Lookups[K, V]) Get(ctx context.Context, key K) (V, error) { return l.Ask(key).Get(ctx) }

func (l *Lookups[K, V]) take() (turn, bool) {
	l.waiting = slices.DeleteFunc(l.waiting, func(a *Asked[K, V]) bool { return a.gone.Load() })
	if len(l.waiting) == 0 {
		return nil, false
	}
	b := &batch[K, V]{lookups: l, waiting: l.waiting}
	l.waiting = nil
	if len(b.waiting) > Most {
		b.waiting, l.waiting = b.waiting[:Most:Most], b.waiting[Most:]
	}
	return b, len(l.waiting) > 0
}

// batch is one turn of Lookups.
type batch[K comparable, V any] struct {
	lookups *Lookups[K, V]
	waiting []*Asked[K, V]
	found   map[K]V
}

func (b *batch[K, V]) questions() []Question {
	keys := make([]K, len(b.waiting))
	for i, w := range b.waiting {
		keys[i] = w.key
	}
	b.found = make(map[K]V, len(keys))
	return b.lookups.ask(keys, b.found)
}

func (b *batch[K, V]) size() int { return len(b.waiting) }

func (b *batch[K, V]) answer(err error) {
	for _, w := range b.waiting {
		w.found, w.err = b.found[w.key], err
		close(w.done)
	}
}
