package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/listing"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Search implements event.Reader.
func (s *Store) Search(ctx context.Context, q event.Search) (event.Page, error) {
	k := s.byName[q.Kind]
	if k == nil {
		return event.Page{}, fmt.Errorf("store: unknown kind %q", q.Kind)
	}
	if len(q.Words) == 0 || slices.ContainsFunc(q.Words, func(w string) bool { return w == "" || !storable(w) }) {
		return event.Page{}, nil
	}
	if page, done, err := s.searchBefore(ctx, q); done || err != nil {
		return page, err
	}
	search := listing.Search{
		DB:     s.engine,
		Query:  q,
		Bounds: listing.UsualBounds,
		Look: func(ctx context.Context, numbers []int64) ([]listing.Found, error) {
			return s.lookAt(ctx, k, q, numbers)
		},
	}
	records, next, err := search.Run(ctx)
	if _, told := errors.AsType[*errs.Error](err); told {
		return event.Page{}, err
	}
	if err != nil {
		return event.Page{}, engine.Away(ctx, err)
	}
	return event.Page{Records: records, Next: next}, nil
}

// lookAt gives the objects with these numbers, as far as a search is for them.
func (s *Store) lookAt(ctx context.Context, k event.Definition, q event.Search,
	numbers []int64) ([]listing.Found, error) {
	ids, err := s.idsOf(ctx, numbers)
	if err != nil {
		return nil, err
	}
	refs := make([]event.Ref, len(ids))
	for i, id := range ids {
		refs[i] = event.Ref{Kind: k.Name(), ID: id}
	}
	records, err := s.Records(ctx, refs)
	if err != nil {
		return nil, err
	}
	found := make([]listing.Found, len(refs))
	for i, ref := range refs {
		r := records[ref]
		if r == nil || q.Org != "" && r.Org != q.Org {
			continue
		}
		words, err := k.Words(r)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(q.Words, func(beginning string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, beginning) })
		}) {
			found[i] = listing.Found{Record: r, Terms: syntax.Terms(words)}
		}
	}
	return found, nil
}

// idsAtOnce is how many numbers are looked up with one statement, which always has as many.
const idsAtOnce = 32

// idsOf gives the identifiers of the objects with these numbers.
func (s *Store) idsOf(ctx context.Context, numbers []int64) ([]string, error) {
	of := make(map[int64]string, len(numbers))
	var questions []readbatch.Question
	for some := range slices.Chunk(numbers, idsAtOnce) {
		questions = append(questions, readbatch.Question{
			SQL:  "SELECT position, object_id FROM events WHERE position IN (" + engine.Placeholders(idsAtOnce) + ")",
			Args: engine.Padded(some, idsAtOnce),
			Each: func(scan func(...any) error) error {
				var number int64
				var id string
				err := scan(&number, &id)
				of[number] = id
				return err
			},
		})
	}
	if err := s.engine.Ask(ctx, questions); err != nil {
		return nil, err
	}
	ids := make([]string, len(numbers))
	for i, number := range numbers {
		ids[i] = of[number]
	}
	return ids, nil
}

// Records implements event.Reader.
func (s *Store) Records(ctx context.Context, refs []event.Ref) (map[event.Ref]*event.Record, error) {
	records := make(map[event.Ref]*event.Record, len(refs))
	if s.records == nil { // there are no round trips to save
		for _, ref := range refs {
			r, err := s.Record(ctx, ref)
			if err != nil {
				return nil, err
			}
			if r != nil {
				records[ref] = r
			}
		}
		return records, nil
	}
	refs = slices.DeleteFunc(slices.Clone(refs),
		func(ref event.Ref) bool { return s.byName[ref.Kind] == nil || !possible(ref.ID) })
	ask := func(refs []event.Ref, questions func([]event.Ref, map[event.Ref]*event.Record) []readbatch.Question) error {
		var all []readbatch.Question
		for some := range slices.Chunk(refs, readbatch.Most) {
			all = append(all, questions(some, records)...)
		}
		if len(all) == 0 {
			return nil
		}
		return s.engine.Ask(ctx, all)
	}
	if err := ask(refs, s.askRecords); err != nil {
		return nil, engine.Away(ctx, err)
	}
	var changed []event.Ref
	for ref, r := range records {
		if r == moved {
			changed = append(changed, ref)
			delete(records, ref)
		}
	}
	if err := ask(changed, s.askWhole); err != nil {
		return nil, engine.Away(ctx, err)
	}
	return records, nil
}
