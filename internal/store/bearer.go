package store

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/event"
)

// Every request looks up its token, so this is the busiest read. As with commands, whatever waits at the same moment
// is taken together: one query, one round trip, one read transaction. Nothing is kept between queries: a
// lookup is answered by a query that began after it.

// lookup is a token somebody waits for.
type lookup struct {
	hash  [32]byte
	found *event.Bearer
	err   error
	done  chan struct{}
}

// lookupSizes are the numbers of tokens a query may ask for; it is filled up by asking for the last one again. Few
// sizes mean few prepared statements.
var lookupSizes = [...]int{1, 2, 4, 8, 16, 32, 64}

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
	if t, user, org := s.cache.bearer(hash); org != nil {
		return &event.Bearer{Token: *t, User: user, Org: org}, nil
	}
	moment := s.cache.moment()
	found, err := s.lookUp(ctx, hash)
	if found != nil && err == nil {
		t := found.Token
		s.cache.keepToken(moment, &t)
		s.cache.keepRecord(moment, found.User)
		s.cache.keepRecord(moment, found.Org)
	}
	return found, err
}

// lookUp asks the database.
func (s *Store) lookUp(ctx context.Context, hash [32]byte) (*event.Bearer, error) {
	l := &lookup{hash: hash, done: make(chan struct{})}
	if s.lookups == nil { // read-only
		s.answerLookups(ctx, []*lookup{l})
		return l.found, l.err
	}
	select {
	case s.lookups <- l:
	case <-ctx.Done():
		return nil, away(ctx, ctx.Err())
	case <-s.stopping:
		return nil, errStopping
	}
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, away(ctx, ctx.Err())
	case <-s.stopping:
		return nil, errStopping
	}
}

// serveLookups starts as many readers as there are cores to run them.
func (s *Store) serveLookups() {
	s.lookups = make(chan *lookup, maxQueue)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			var batch []*lookup
			for {
				select {
				case l := <-s.lookups:
					batch = append(batch[:0], l)
				case <-s.stopping:
					return
				}
				for more := true; more && len(batch) < lookupSizes[len(lookupSizes)-1]; {
					select {
					case l := <-s.lookups:
						batch = append(batch, l)
					default:
						more = false
					}
				}
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				s.answerLookups(ctx, batch)
				cancel()
			}
		}()
	}
}

func (s *Store) answerLookups(ctx context.Context, batch []*lookup) {
	size := 0
	for size < len(lookupSizes)-1 && lookupSizes[size] < len(batch) {
		size++
	}
	args := make([]any, lookupSizes[size])
	for i := range args {
		args[i] = batch[min(i, len(batch)-1)].hash[:]
	}
	found := make(map[[32]byte]*event.Bearer, len(batch))
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
	for _, l := range batch {
		l.found, l.err = found[l.hash], away(ctx, err)
		close(l.done)
	}
}
