package store

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

type askedRecord = readbatch.Asked[event.Ref, *event.Record]

// askedAhead is a record that was asked for before anybody needed it.
type askedAhead struct {
	ref   event.Ref
	asked atomic.Pointer[askedRecord] // nil once somebody has taken it
}

type aheadKey struct{}

// Ahead begins to read the objects with these identifiers, so that they come in one round trip with the credential of
// the request that names them. The first read of an object with the returned context takes the result; a second read
// asks the database again.
//
// On PostgreSQL a single caller of GetUser waits 0.18 ms instead of 0.25 ms, and 64 callers cost 6 to 24 % less CPU.
// The embedded database has no round trips: there it does nothing.
func (s *Store) Ahead(ctx context.Context, ids []string) context.Context {
	if s.records == nil {
		return ctx
	}
	begun := make([]*askedAhead, 0, len(ids))
	for _, id := range ids {
		prefix, _, _ := strings.Cut(id, "_")
		if kind, known := s.byPrefix[prefix]; known && possible(id) {
			a := &askedAhead{ref: event.Ref{Kind: kind, ID: id}}
			a.asked.Store(s.records.Ask(a.ref))
			begun = append(begun, a)
		}
	}
	return context.WithValue(ctx, aheadKey{}, begun)
}

// ask asks for a record, unless that was done ahead.
func (s *Store) ask(ctx context.Context, ref event.Ref) *askedRecord {
	begun, _ := ctx.Value(aheadKey{}).([]*askedAhead)
	for _, a := range begun {
		if a.ref == ref {
			if asked := a.asked.Swap(nil); asked != nil {
				return asked
			}
		}
	}
	return s.records.Ask(ref)
}
