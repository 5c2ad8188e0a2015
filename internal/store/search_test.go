package store

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/searching"
)

func searchIsBounded(t *testing.T, s *Store) {
	// Nobody has both words, and many have one of them.
	q := event.Search{Kind: "user", Words: []string{"common", "w0"}, Limit: 10}
	for range 3 {
		found, next, err := searching.Run(t.Context(), s.engine, q, 40)
		if err != nil || len(found) > 0 {
			t.Fatalf("%v, %v", found, err)
		}
		if next == nil || *next == q.After {
			t.Fatalf("%v after %v: it does not go on behind what it has looked at", next, q.After)
		}
		q.After = *next
	}
	for range 2 { // with a larger number the rest comes at once, and that is the end where there are few
		if _, next, err := searching.Run(t.Context(), s.engine, q, 1_000_000); err != nil || next != nil {
			t.Fatalf("%v, %v", next, err)
		}
	}
}

// That an index is used does not say how much of it is read: behind these words there are thousands of others.
func searchReadsItsPart(t *testing.T, s *Store) {
	read := func(text string, args []any) (pages int) {
		err := s.engine.Query(context.Background(), "EXPLAIN (ANALYZE, BUFFERS) "+text, args, func(scan engine.Scanner) error {
			var line string
			if err := scan(&line); err != nil {
				return err
			}
			if found := regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`).FindStringSubmatch(line); found != nil && pages == 0 {
				hit, _ := strconv.Atoi(found[1])
				missed, _ := strconv.Atoi(found[2])
				pages = hit + missed
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return pages
	}
	for _, org := range []string{"", "org_0", "org_1"} {
		text, args := searching.CountText(org, "nobody", 20_000)
		if pages := read(text, args); pages == 0 || pages > 20 {
			t.Errorf("counting in %q reads %d pages", org, pages)
		}
		text, args = searching.AlongText(event.Search{Org: org, Words: []string{"nobody", "common"}}, "nobody", event.Cursor{Value: "nobody"}, 2000)
		if pages := read(text, args); pages == 0 || pages > 20 {
			t.Errorf("searching in %q reads %d pages", org, pages)
		}
	}
}
