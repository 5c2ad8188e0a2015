// A search finds objects by the beginnings of their words.

package listing

import (
	"cmp"
	"context"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Database is what a search asks.
type Database interface {
	Query(ctx context.Context, sql string, args []any, each func(scan func(dest ...any) error) error) error
	Ask(ctx context.Context, questions []readbatch.Question) error
}

// Found is an object that a search has looked at.
type Found struct {
	Record *event.Record // nil: it is not one that the search is for
	Terms  []string      // that it has, sorted
}

// Search is one page.
type Search struct {
	DB    Database
	Query event.Search
	// gives the objects with these numbers, in this order
	Look func(ctx context.Context, numbers []int64) ([]Found, error)

	Bounds Bounds
}

// Bounds of what one page costs.
type Bounds struct {
	First  int // rows that are read of each of several terms: enough, if one of them is rare
	Rows   int // rows that are read in all
	Looked int // objects that are looked at
}

// UsualBounds bounds: with a million users whose numbers follow each other, a term that all of them have takes 3,907
// rows.
var UsualBounds = Bounds{First: 256, Rows: 16_000, Looked: 1000}

// Run gives the objects of the page, and where the next one begins; nil: nowhere.
func (s *Search) Run(ctx context.Context) (page []*event.Record, next *event.Cursor, err error) {
	terms := syntax.QueryTerms(s.Query.Words)
	// a long one finds less, mostly
	slices.SortStableFunc(terms, func(a, b syntax.QueryTerm) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	after := s.Query.After
	switch {
	case len(terms) == 0:
		return nil, nil, nil
	case after.Value == "" && len(terms) > 1, after.Value == met:
		return s.meet(ctx, terms)
	}
	for _, term := range terms {
		if after.Value == "" || term.Fits(after.Value) {
			return s.along(ctx, term)
		}
	}
	return nil, nil, errCursor
}

// met is what the cursor of several terms begins with. No term is like it.
const met = "&"

// OwnCursor tells whether a cursor is one of searches in word_blocks, and not one of Before.
func OwnCursor(c event.Cursor) bool {
	_, err := searchCursorOf(c)
	return c.ID != "" && err == nil
}

// errCursor is the answer to a cursor of Before that comes after the change, or to one of another search.
var errCursor = errs.Invalid(errs.Violation{Field: "pageToken",
	Message: "is no longer valid: begin with the first page again"})

// searchCursor is where a page ends, among the objects of a term: in all organizations they come organization by
// organization.
type searchCursor struct{ org, number int64 }

// cursor gives it for a term, as it is sent.
func (p searchCursor) cursor(term string) *event.Cursor {
	return &event.Cursor{Value: term, ID: strconv.FormatInt(p.org, 10) + "." + strconv.FormatInt(p.number, 10)}
}

// searchCursorOf is where a page begins: behind this cursor. No cursor is the beginning.
func searchCursorOf(c event.Cursor) (p searchCursor, err error) {
	if c.ID == "" {
		return p, nil
	}
	org, number, _ := strings.Cut(c.ID, ".")
	if p.org, err = strconv.ParseInt(org, 10, 64); err == nil {
		p.number, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil {
		return p, errCursor
	}
	return p, nil
}

func (s *Search) org() int64 {
	if s.Query.Org == "" {
		return engine.EveryOrg
	}
	return engine.OrgNumber(s.Query.Org)
}

// What is read of rows: all, or what a set needs.
const (
	wholeRows = "SELECT org, term, block, m0, m1, m2, m3 FROM word_blocks WHERE "
	onlyMasks = "SELECT block, m0, m1, m2, m3 FROM word_blocks WHERE "
)

// Row is where a row of word_blocks stands.
type Row struct {
	Org   int64
	Term  string
	Block int64
}

// RowsText reads rows of a term from a row on, in an organization or in all of them. The end of a range is a plain
// condition: PostgreSQL would not stop where a comparison of rows ends, but read on to the end of the organization.
func RowsText(org int64, term syntax.QueryTerm, from Row, rows int) (string, []any) {
	return textOf(wholeRows, org, term, from, rows)
}

func textOf(columns string, org int64, term syntax.QueryTerm, from Row, rows int) (string, []any) {
	switch {
	case org == engine.EveryOrg && term.Whole:
		return columns + "term = ? AND (org, block) >= (?, ?) ORDER BY term, org, block LIMIT ?",
			[]any{term.Text, from.Org, from.Block, int64(rows)}
	case org == engine.EveryOrg:
		return columns + "(term, org, block) >= (?, ?, ?) AND term < ? ORDER BY term, org, block LIMIT ?",
			[]any{from.Term, from.Org, from.Block, endOf(term.Text), int64(rows)}
	case term.Whole:
		return columns + "org = ? AND term = ? AND block >= ? ORDER BY org, term, block LIMIT ?",
			[]any{org, term.Text, from.Block, int64(rows)}
	}
	return columns + "org = ? AND (term, block) >= (?, ?) AND term < ? ORDER BY org, term, block LIMIT ?",
		[]any{org, from.Term, from.Block, endOf(term.Text), int64(rows)}
}

type row struct {
	Row
	mask engine.Mask
}

func (r *row) scan(scan func(...any) error) error {
	var m [4]int64
	if err := scan(&r.Org, &r.Term, &r.Block, &m[0], &m[1], &m[2], &m[3]); err != nil {
		return err
	}
	r.mask = engine.MaskOf(m)
	return nil
}

// candidate is an object that may be looked for, and the term that has led to it.
type candidate struct {
	term string
	searchCursor
}

func (c candidate) cursor() *event.Cursor { return c.searchCursor.cursor(c.term) }

// fill looks at candidates until the page is full. more gives the next ones, in their order; none: there are no more.
func (s *Search) fill(ctx context.Context, more func(n int) ([]candidate, error),
	counts func(candidate, Found) bool) (page []*event.Record, next *event.Cursor, err error) {
	var last, accepted candidate
	for looked := 0; looked < s.Bounds.Looked; {
		some, err := more(min(max(s.Query.Limit+1-len(page), atOnce), s.Bounds.Looked-looked))
		if err != nil || len(some) == 0 {
			return page, nil, err
		}
		numbers := make([]int64, len(some))
		for i, c := range some {
			numbers[i] = c.number
		}
		found, err := s.Look(ctx, numbers)
		if err != nil {
			return nil, nil, err
		}
		for i, c := range some {
			if last = c; found[i].Record == nil || !counts(c, found[i]) {
				continue
			}
			if len(page) == s.Query.Limit {
				return page, accepted.cursor(), nil
			}
			page, accepted = append(page, found[i].Record), c
		}
		looked += len(some)
	}
	return page, last.cursor(), nil
}

// atOnce is how many objects are looked at together at least: where few of them fit, that saves round trips.
const atOnce = 32

// along follows the rows of one term. An object comes at the first of its terms that fit, and only there.
func (s *Search) along(ctx context.Context,
	term syntax.QueryTerm) (page []*event.Record, next *event.Cursor, err error) {
	after, err := searchCursorOf(s.Query.After)
	if err != nil {
		return nil, nil, err
	}
	from := cmp.Or(s.Query.After.Value, term.Text)
	at := row{Row: Row{Org: after.org, Term: from}}
	at.Block, _, _ = engine.Block(after.number)
	var waiting []candidate
	more := func(n int) ([]candidate, error) {
		for len(waiting) < n {
			rows := 0
			text, args := RowsText(s.org(), term, at.Row, n)
			err := s.DB.Query(ctx, text, args, func(scan func(...any) error) error {
				if len(waiting) >= n { // a row of a frequent term has up to 256 objects, one of a rare term has one
					return engine.ErrEnough
				}
				if err := at.scan(scan); err != nil {
					return err
				}
				rows++
				for number := range at.mask.All(at.Block) {
					if at.Term != from || at.Org != after.org || number > after.number {
						waiting = append(waiting, candidate{at.Term, searchCursor{at.Org, number}})
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if at.Block++; rows < n {
				break
			}
		}
		some := waiting[:min(n, len(waiting))]
		waiting = waiting[len(some):]
		return some, nil
	}
	return s.fill(ctx, more, func(c candidate, f Found) bool {
		first := slices.IndexFunc(f.Terms, term.Fits)
		return first >= 0 && f.Terms[first] == c.term
	})
}

// meet gives the objects that have all terms, in the order of their numbers.
func (s *Search) meet(ctx context.Context, terms []syntax.QueryTerm) ([]*event.Record, *event.Cursor, error) {
	after, err := searchCursorOf(s.Query.After)
	if err != nil {
		return nil, nil, err
	}
	// Mostly one of them is rare: then there are few candidates, and the objects say themselves whether they have the
	// others.
	var common *set
	questions := make([]readbatch.Question, len(terms))
	sets := make([]set, len(terms))
	for i, term := range terms {
		questions[i] = sets[i].question(s.org(), term, s.Bounds.First)
	}
	if err := s.DB.Ask(ctx, questions); err != nil {
		return nil, nil, err
	}
	for i := range sets {
		if sets[i].whole() {
			common = common.and(&sets[i])
		}
	}
	left := s.Bounds.Rows
	for i, term := range terms {
		if sets[i].whole() || common != nil && common.count() <= few || left <= 0 {
			continue
		}
		sets[i] = set{}
		q := sets[i].question(s.org(), term, left)
		if err := s.DB.Query(ctx, q.SQL, q.Args, q.Each); err != nil {
			return nil, nil, err
		}
		if left -= sets[i].rows; sets[i].whole() {
			common = common.and(&sets[i])
		}
	}
	switch {
	case common == nil && s.Query.After.Value == met: // since the page before they have become too many
		return nil, nil, errCursor
	case common == nil: // each has more rows than are read for a page
		return s.along(ctx, terms[0])
	}
	numbers := common.behind(after.number)
	more := func(n int) (some []candidate, _ error) {
		for ; len(some) < n && len(numbers) > 0; numbers = numbers[1:] {
			some = append(some, candidate{met, searchCursor{number: numbers[0]}})
		}
		return some, nil
	}
	return s.fill(ctx, more, func(candidate, Found) bool { return true })
}

// few candidates are looked at sooner than more rows are read.
const few = 64

// set is the numbers of a term, as far as they were read.
type set struct {
	blocks     map[int64]engine.Mask
	rows, most int
}

func (s *set) question(org int64, term syntax.QueryTerm, rows int) readbatch.Question {
	text, args := textOf(onlyMasks, org, term, Row{Term: term.Text}, rows+1)
	s.blocks, s.most = map[int64]engine.Mask{}, rows
	var block int64
	var m [4]int64
	into := []any{&block, &m[0], &m[1], &m[2], &m[3]}
	return readbatch.Question{SQL: text, Args: args, Each: func(scan func(...any) error) error {
		if err := scan(into...); err != nil {
			return err
		}
		s.rows++
		mask := s.blocks[block]
		for i := range mask {
			mask[i] |= uint64(m[i])
		}
		s.blocks[block] = mask
		return nil
	}}
}

// whole tells whether everything was read.
func (s *set) whole() bool { return s.rows <= s.most }

// and gives what both have; nil is everything.
func (s *set) and(other *set) *set {
	if s == nil {
		return other
	}
	both := &set{blocks: map[int64]engine.Mask{}}
	for block, mask := range s.blocks {
		with := other.blocks[block]
		for i := range mask {
			mask[i] &= with[i]
		}
		if mask != (engine.Mask{}) {
			both.blocks[block] = mask
		}
	}
	return both
}

func (s *set) count() (n int) {
	for _, mask := range s.blocks {
		for _, word := range mask {
			n += bits.OnesCount64(word)
		}
	}
	return n
}

// behind are the numbers above one, in order.
func (s *set) behind(after int64) (numbers []int64) {
	for _, block := range slices.Sorted(maps.Keys(s.blocks)) {
		for number := range s.blocks[block].All(block) {
			if number > after {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}
