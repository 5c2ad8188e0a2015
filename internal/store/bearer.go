package store

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/event"
)

// Every request looks up its token, and most reads are of one object. As with commands, whatever waits at the same
// moment is taken together: one query, one round trip, one read transaction. Nothing is kept between queries: a lookup is
// answered by a query that began after it.

// lookups answers what waits together. K is what is looked for, V what is found.
type lookups[K comparable, V any] struct {
	queue chan *lookup[K, V]
	find  func(ctx context.Context, keys []K) (map[K]V, error)
}

// lookup is something that somebody waits for.
type lookup[K comparable, V any] struct {
	key   K
	found V
	err   error
	done  chan struct{}
}

// lookupSizes are the numbers of keys a query may ask for; it is filled up by asking for the last one again. Few sizes
// mean few prepared statements.
var lookupSizes = [...]int{1, 2, 4, 8, 16, 32, 64}

const mostLookups = 64

// serveLookups starts as many readers as there are cores to run them. They stop with the store.
func serveLookups[K comparable, V any](s *Store, find func(ctx context.Context, keys []K) (map[K]V, error)) *lookups[K, V] {
	l := &lookups[K, V]{queue: make(chan *lookup[K, V], maxQueue), find: find}
	for range runtime.GOMAXPROCS(0) {
		go func() {
			batch := make([]*lookup[K, V], 0, mostLookups)
			for {
				clear(batch[:cap(batch)])
				select {
				case first := <-l.queue:
					batch = append(batch[:0], first)
				case <-s.stopping:
					return
				}
				for more := true; more && len(batch) < mostLookups; {
					select {
					case next := <-l.queue:
						batch = append(batch, next)
					default:
						more = false
					}
				}
				l.answer(batch)
			}
		}()
	}
	return l
}

func (l *lookups[K, V]) answer(batch []*lookup[K, V]) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	keys := make([]K, len(batch))
	for i, waiting := range batch {
		keys[i] = waiting.key
	}
	found, err := l.find(ctx, keys)
	for _, waiting := range batch {
		waiting.found, waiting.err = found[waiting.key], away(ctx, err)
		close(waiting.done)
	}
}

// get waits for the answer about one key.
func (l *lookups[K, V]) get(ctx context.Context, s *Store, key K) (found V, err error) {
	waiting := &lookup[K, V]{key: key, done: make(chan struct{})}
	select {
	case l.queue <- waiting:
	case <-ctx.Done():
		return found, away(ctx, ctx.Err())
	case <-s.stopping:
		return found, errStopping
	}
	select {
	case <-waiting.done:
		return waiting.found, waiting.err
	case <-ctx.Done():
		return found, away(ctx, ctx.Err())
	case <-s.stopping:
		return found, errStopping
	}
}

// filled gives the keys as arguments of a query of the next of lookupSizes, and which one that is.
func filled[K any](keys []K, argument func(K) any) (args []any, size int) {
	for size < len(lookupSizes)-1 && lookupSizes[size] < len(keys) {
		size++
	}
	args = make([]any, lookupSizes[size])
	for i := range args {
		args[i] = argument(keys[min(i, len(keys)-1)])
	}
	return args, size
}

func bearerText(users, orgs event.Definition, tokens int) string {
	return "SELECT " + tokenColumns + ", " + allColumns(users) + ", " + strings.ReplaceAll(allColumns(orgs), "s.", "o.") +
		" FROM tokens t JOIN users s ON s.id = t.user_id JOIN orgs o ON o.id = s.org_id WHERE t.hash IN (" + placeholders(tokens) + ")"
}

// Bearer implements event.Reader.
func (s *Store) Bearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	if len(tokenHash) != 32 {
		return nil, nil
	}
	hash := [32]byte(tokenHash)
	if t, user, org := s.cache.Bearer(hash); org != nil {
		return &event.Bearer{Token: *t, User: user, Org: org}, nil
	}
	moment := s.cache.Moment()
	found, err := s.lookUp(ctx, hash)
	if found != nil && err == nil {
		t := found.Token
		s.cache.KeepToken(moment, &t)
		s.cache.KeepRecord(moment, found.User)
		s.cache.KeepRecord(moment, found.Org)
	}
	return found, err
}

// lookUp asks the database.
func (s *Store) lookUp(ctx context.Context, hash [32]byte) (*event.Bearer, error) {
	if s.bearers == nil { // read-only
		found, err := s.findBearers(ctx, [][32]byte{hash})
		return found[hash], away(ctx, err)
	}
	return s.bearers.get(ctx, s, hash)
}

func (s *Store) findBearers(ctx context.Context, hashes [][32]byte) (map[[32]byte]*event.Bearer, error) {
	args, size := filled(hashes, func(hash [32]byte) any { return hash[:] })
	found := make(map[[32]byte]*event.Bearer, len(hashes))
	err := s.engine.query(ctx, s.sql.bearer[size], args, func(scan scanner) error {
		b := &event.Bearer{}
		var user, org []any
		b.User, user = scanRecord(s.byName["user"], false)
		b.Org, org = scanRecord(s.byName["org"], false)
		if err := scan(slices.Concat(scanToken(&b.Token), user, org)...); err != nil {
			return err
		}
		found[[32]byte(b.Token.Hash)] = b
		return nil
	})
	return found, err
}

// findRecords reads objects, of one kind or of several.
func (s *Store) findRecords(ctx context.Context, refs []event.Ref) (map[event.Ref]*event.Record, error) {
	byKind := map[event.Kind][]string{}
	for _, ref := range refs {
		byKind[ref.Kind] = append(byKind[ref.Kind], ref.ID)
	}
	found := make(map[event.Ref]*event.Record, len(refs))
	for kind, ids := range byKind {
		args, size := filled(ids, func(id string) any { return id })
		err := s.engine.query(ctx, s.sql.record[kind][size], args, func(scan scanner) error {
			r, dest := scanRecord(s.byName[kind], false)
			if err := scan(dest...); err != nil {
				return err
			}
			found[r.Ref] = r
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
