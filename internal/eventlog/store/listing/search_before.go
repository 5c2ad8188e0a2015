package listing

// Until all terms are in word_blocks, objects are found by words, as in the version before: the words that one of those
// asked for begins are a range of an index. One of them, the most selective, is followed along it; what it finds is
// looked up by object for the others. A page looks at a bounded number of entries.

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Before gives a page of what a search finds by words, by looking at so many entries at most (mostly MaxBefore), and
// where the next one begins; nil: nowhere.
func Before(ctx context.Context, db Database, q event.Search,
	most int) (found []event.Cursor, next *event.Cursor, err error) {
	leading, err := leadingWord(ctx, db, q)
	if err != nil {
		return nil, nil, err
	}
	return alongWord(ctx, db, q, leading, most)
}

// MaxBefore is how many entries of the index a search looks at for one page. Users with a frequent first name stand
// there by their last names: those with one of them may all come late. The number is as large as what is counted to
// choose the word, so that whatever one word of the query finds less often is found in one page.
const MaxBefore = 20_000

// How many entries are counted to learn which word is the most selective: when all have more than the first number, up
// to the second one.
var counted = [...]int{500, 20_000}

// leadingWord gives the word along which a search goes: where it goes on, the one of before, which the cursor begins
// with; else the one that finds least.
func leadingWord(ctx context.Context, db Database, q event.Search) (string, error) {
	if q.After.Value != "" {
		for _, w := range q.Words {
			if strings.HasPrefix(q.After.Value, w) {
				return w, nil
			}
		}
		return "", errors.New("store: the cursor is not one of this search")
	}
	leading := q.Words[0]
	if len(q.Words) == 1 {
		return leading, nil
	}
	for _, most := range counted {
		finds := make([]int, len(q.Words))
		questions := make([]readbatch.Question, len(q.Words))
		for i, w := range q.Words {
			text, args := CountText(q.Org, w, most)
			questions[i] = readbatch.Question{SQL: text, Args: args,
				Each: func(scan func(...any) error) error { return scan(&finds[i]) }}
		}
		if err := db.Ask(ctx, questions); err != nil {
			return "", err
		}
		least := 0
		for i, w := range q.Words {
			if finds[i] < finds[least] || finds[i] == finds[least] && len(w) > len(q.Words[least]) {
				least = i
			}
		}
		if leading = q.Words[least]; finds[least] < most {
			break
		}
	}
	return leading, nil
}

// wordRange is the part of an index with the words that begin with one of those asked for.
type wordRange struct {
	text, order string
	args        []any
}

// endOf is behind all words that begin with one.
func endOf(word string) string {
	if end, bounded := event.PrefixEnd(word); bounded {
		return end
	}
	return strings.Repeat("\U0010FFFF", syntax.MaxWord) // behind every word there can be
}

// rangeOf gives the range behind a cursor, in an organization or over all of them. Its end is put as plain conditions:
// PostgreSQL would not stop where a comparison of rows ends, but read on to the end of the organization. Each range
// says what only its own index has.
func rangeOf(org, word string, after event.Cursor) wordRange {
	end := endOf(word)
	if org == "" {
		return wordRange{"(w.word, w.object_id) > (?, ?) AND w.word < ? AND w.word <> ''", "w.word, w.object_id",
			[]any{after.Value, after.ID, end}}
	}
	return wordRange{"w.org_id = ? AND (w.word, w.object_id) > (?, ?) AND w.word < ?", "w.org_id, w.word, w.object_id",
		[]any{org, after.Value, after.ID, end}}
}

// CountText counts what a word finds, up to a number.
func CountText(org, word string, most int) (string, []any) {
	r := rangeOf(org, word, event.Cursor{Value: word})
	return "SELECT count(*) FROM (SELECT 1 FROM words w WHERE " + r.text + " LIMIT ?) c", append(r.args, int64(most))
}

// AlongText gives the next entries of the leading word behind a cursor, and of each whether it counts: the object does
// at the first of its words in the range, so it comes once, and if it has the other words. That stands among the
// columns and not among the conditions: no more than these entries are looked at.
func AlongText(q event.Search, leading string, after event.Cursor, entries int) (string, []any) {
	const ofObject = "(SELECT 1 FROM words d WHERE d.object_id = w.object_id AND d.word >= ? AND d.word < "
	counts, args := "CASE WHEN "+ofObject+"w.word LIMIT 1) IS NOT NULL THEN 0", []any{leading}
	for _, other := range q.Words {
		if other != leading {
			counts, args = counts+" WHEN "+ofObject+"? LIMIT 1) IS NULL THEN 0", append(args, other, endOf(other))
		}
	}
	r := rangeOf(q.Org, leading, after)
	return "SELECT w.word, w.object_id, " + counts + " ELSE 1 END FROM words w WHERE " + r.text + " ORDER BY " +
			r.order + " LIMIT ?",
		slices.Concat(args, r.args, []any{int64(entries)})
}

// alongWord follows the range of the leading word.
func alongWord(ctx context.Context, db Database, q event.Search, leading string,
	most int) (found []event.Cursor, next *event.Cursor, err error) {
	after := q.After
	if after.Value == "" {
		after.Value = leading
	}
	// Mostly the first entries are enough. Where other words have to fit, more are needed.
	step := 2 * (q.Limit + 1)
	if len(q.Words) > 1 {
		step *= 4
	}
	for looked := 0; looked < most; {
		step = min(step, most-looked)
		rows := 0
		text, args := AlongText(q, leading, after, step)
		err := db.Query(ctx, text, args, func(scan func(...any) error) error {
			var fits int64
			if err := scan(&after.Value, &after.ID, &fits); err != nil {
				return err
			}
			if rows++; fits == 1 && len(found) <= q.Limit {
				found = append(found, after)
			}
			return nil
		})
		switch {
		case err != nil:
			return nil, nil, err
		case len(found) > q.Limit:
			return found[:q.Limit], &found[q.Limit-1], nil
		case rows < step:
			return found, nil, nil
		}
		looked += rows
		step = 2000 // and not all at once, for somebody may be found soon
	}
	return found, &after, nil
}
