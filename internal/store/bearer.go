package store

import (
	"context"
	"runtime"
	"slices"
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

// bearerText reads of the user and the organization only what judges a credential, and what tells whether their records are
// the ones known already.
func bearerText(tokens int) string {
	return "SELECT " + tokenColumns + ", s.id, s.sequence, s.hash, s.shape, s.standing, o.id, o.sequence, o.hash, o.shape, o.standing " +
		"FROM tokens t JOIN users s ON s.id = t.user_id JOIN orgs o ON o.id = s.org_id WHERE t.hash IN (" + placeholders(tokens) + ")"
}

// Bearer implements event.Reader.
func (s *Store) Bearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	if len(tokenHash) != 32 {
		return nil, nil
	}
	hash := [32]byte(tokenHash)
	if t, user, org := s.cache.Bearer(hash); org != nil {
		return &event.Bearer{Token: *t, UserID: user.ID, OrgID: org.ID, UserStanding: s.standing(user), OrgStanding: s.standing(org), User: user, Org: org}, nil
	}
	moment := s.cache.Moment()
	found, err := s.lookUp(ctx, hash)
	if s.cache != nil && found != nil && err == nil {
		t := found.Token
		s.cache.KeepToken(moment, &t)
		for _, ref := range []event.Ref{{Kind: "user", ID: found.UserID}, {Kind: "org", ID: found.OrgID}} {
			if _, err := s.Record(ctx, ref); err != nil { // leaves it in the cache for the next time
				return nil, err
			}
		}
	}
	return found, err
}

// standing gives the column of that name.
func (s *Store) standing(r *event.Record) string {
	return r.Columns[slices.Index(s.byName[r.Kind].Columns(), event.Standing)]
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
		user, org := event.Record{Ref: event.Ref{Kind: "user"}}, event.Record{Ref: event.Ref{Kind: "org"}}
		if err := scan(append(scanToken(&b.Token), &user.ID, &user.Sequence, &user.Hash, &user.Shape, &b.UserStanding,
			&org.ID, &org.Sequence, &org.Hash, &org.Shape, &b.OrgStanding)...); err != nil {
			return err
		}
		b.UserID, b.OrgID = user.ID, org.ID
		b.User, b.Org = s.seen.same(&user), s.seen.same(&org)
		found[[32]byte(b.Token.Hash)] = b
		return nil
	})
	return found, err
}

// findRecords reads objects, of one kind or of several. Of those that were seen before it asks only where they stand.
func (s *Store) findRecords(ctx context.Context, refs []event.Ref) (map[event.Ref]*event.Record, error) {
	unseen, stand := map[event.Kind][]string{}, map[event.Kind][]string{}
	for _, ref := range refs {
		if s.seen.has(ref) {
			stand[ref.Kind] = append(stand[ref.Kind], ref.ID)
		} else {
			unseen[ref.Kind] = append(unseen[ref.Kind], ref.ID)
		}
	}
	found := make(map[event.Ref]*event.Record, len(refs))
	for kind, ids := range stand {
		err := s.queryEach(ctx, &s.sql.stand, kind, ids, func(scan scanner) error {
			r := event.Record{Ref: event.Ref{Kind: kind}}
			if err := scan(&r.ID, &r.Sequence, &r.Hash, &r.Shape); err != nil {
				return err
			}
			if same := s.seen.same(&r); same != nil {
				found[r.Ref] = same
			} else {
				unseen[kind] = append(unseen[kind], r.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for kind, ids := range unseen {
		err := s.queryEach(ctx, &s.sql.record, kind, ids, func(scan scanner) error {
			r, dest := scanRecord(s.byName[kind], false)
			if err := scan(dest...); err != nil {
				return err
			}
			found[r.Ref] = s.seen.keep(s.byName[kind], r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// queryEach runs the statement that asks for so many objects of a kind.
func (s *Store) queryEach(ctx context.Context, texts *byKind, kind event.Kind, ids []string, each func(scanner) error) error {
	args, size := filled(ids, func(id string) any { return id })
	return s.engine.query(ctx, (*texts)[kind][size], args, each)
}
