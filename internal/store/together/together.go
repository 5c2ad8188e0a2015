// Package together answers lookups that wait at the same moment with one query: one round trip, one read transaction.
// Nothing is kept between queries: a lookup is answered by a query that began after it.
package together

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Most is how many are answered at once.
const Most = 64

// ErrStopped is the answer when there is nobody to ask any more.
var ErrStopped = errors.New("together: stopped")

const (
	queued    = 4096
	queryTime = 10 * time.Second
)

// Lookups answers what waits together. K is what is looked for, V what is found.
type Lookups[K comparable, V any] struct {
	queue   chan *waiting[K, V]
	stopped <-chan struct{}
	find    func(ctx context.Context, keys []K) (map[K]V, error)
}

// waiting is somebody who waits for an answer.
type waiting[K comparable, V any] struct {
	key   K
	found V
	err   error
	done  chan struct{}
}

// Start starts one reader, which works until stopped is closed. A second one would only halve what each query answers:
// the work is the database's, and it costs by the query more than by the row.
func Start[K comparable, V any](stopped <-chan struct{}, find func(ctx context.Context, keys []K) (map[K]V, error)) *Lookups[K, V] {
	l := &Lookups[K, V]{queue: make(chan *waiting[K, V], queued), stopped: stopped, find: find}
	go l.read()
	return l
}

func (l *Lookups[K, V]) read() {
	batch := make([]*waiting[K, V], 0, Most)
	for {
		clear(batch[:cap(batch)])
		select {
		case first := <-l.queue:
			batch = append(batch[:0], first)
		case <-l.stopped:
			return
		}
		runtime.Gosched() // whoever is about to ask comes along: larger queries, fewer of them
		for more := true; more && len(batch) < Most; {
			select {
			case next := <-l.queue:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		l.answer(batch)
	}
}

func (l *Lookups[K, V]) answer(batch []*waiting[K, V]) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	keys := make([]K, len(batch))
	for i, w := range batch {
		keys[i] = w.key
	}
	found, err := l.find(ctx, keys)
	for _, w := range batch {
		w.found, w.err = found[w.key], err
		close(w.done)
	}
}

// Get waits for the answer about one key. Errors: what find failed with; that of ctx; ErrStopped.
func (l *Lookups[K, V]) Get(ctx context.Context, key K) (found V, err error) {
	w := &waiting[K, V]{key: key, done: make(chan struct{})}
	select {
	case l.queue <- w:
	case <-ctx.Done():
		return found, ctx.Err()
	case <-l.stopped:
		return found, ErrStopped
	}
	select {
	case <-w.done:
		return w.found, w.err
	case <-ctx.Done():
		return found, ctx.Err()
	case <-l.stopped:
		return found, ErrStopped
	}
}
