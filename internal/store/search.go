package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/readbatch"
	"github.com/signet-idm/signet/internal/store/searching"
)

// maxSearched is how many entries of the index a search looks at for one page. Users with a frequent first name stand there by their last names: those with one of them may all
// come late. The number is as large as what is counted to choose the word, so that whatever one word of the query finds less often is found in one page.
const maxSearched = 20_000

// Search implements event.Reader.
func (s *Store) Search(ctx context.Context, q event.Search) (event.Page, error) {
	if _, known := s.byName[q.Kind]; !known {
		return event.Page{}, fmt.Errorf("store: unknown kind %q", q.Kind)
	}
	if len(q.Words) == 0 || slices.ContainsFunc(q.Words, func(w string) bool { return w == "" || !storable(w) }) {
		return event.Page{}, nil
	}
	found, next, err := searching.Run(ctx, s.engine, q, maxSearched)
	if err != nil {
		return event.Page{}, engine.Away(ctx, err)
	}
	refs := make([]event.Ref, len(found))
	for i, c := range found {
		refs[i] = event.Ref{Kind: q.Kind, ID: c.ID}
	}
	records, err := s.Records(ctx, refs)
	if err != nil {
		return event.Page{}, err
	}
	page := event.Page{Next: next}
	for _, ref := range refs {
		if r := records[ref]; r != nil {
			page.Records = append(page.Records, r)
		}
	}
	return page, nil
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
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref event.Ref) bool { return s.byName[ref.Kind] == nil || !possible(ref.ID) })
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
