package syntax

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxTerm is how many bytes of a term an index has.
const MaxTerm = 16

// Terms gives what an index has to have of words to find them by their beginnings: of each the letters and digits up to
// the first other character, as one term, or as two where digits follow at least two letters: "smith123@example.com"
// gives "smith" and "123". So names and the addresses made from them share few terms, which many objects have: an index
// that keeps the objects of a term together is small then, and quickly read. Terms are sorted, and cut to MaxTerm.
//
// Words begins a word at every such place, so what stands further behind in one is the beginning of another.
func Terms(words []string) []string {
	terms := make([]string, 0, len(words)+4)
	for _, w := range words {
		head, tail := termsOf(w)
		if terms = append(terms, head); tail != "" {
			terms = append(terms, tail)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// termsOf gives the terms of one word: one, or two.
func termsOf(word string) (head, tail string) {
	head, tail = splitRun(word[:runOf(word)])
	return cutTerm(head), cutTerm(tail)
}

// TermsWithout gives those of Terms that other words do not have. Both are sorted, and most words are in both: it is for
// what a change of an object changes.
func TermsWithout(words, others []string) (terms []string) {
	const few = 4
	var only []string
	for _, w := range words {
		if _, inBoth := slices.BinarySearch(others, w); !inBoth {
			only = append(only, w)
		}
	}
	if len(only) == 0 {
		return nil
	}
	has := func(term string) bool {
		return slices.ContainsFunc(others, func(w string) bool {
			head, tail := termsOf(w)
			return head == term || tail == term
		})
	}
	if len(only) > few {
		all := Terms(others)
		has = func(term string) bool { _, found := slices.BinarySearch(all, term); return found }
	}
	return slices.DeleteFunc(Terms(only), has)
}

// QueryTerm is what a term of an object has to be, or to begin with.
type QueryTerm struct {
	Text  string
	Whole bool
}

// Fits tells whether a term of an object is one that is looked for.
func (q QueryTerm) Fits(term string) bool {
	return term == q.Text || !q.Whole && strings.HasPrefix(term, q.Text)
}

// QueryTerms gives the terms that an object has if it has words that begin with these, see QueryWords. The reverse does
// not hold: where they stand, and what stands between them, only the object's words say. A term that others begin with
// is left out.
func QueryTerms(words []string) (terms []QueryTerm) {
	add := func(text string, whole bool) {
		cut := cutTerm(text)
		terms = append(terms, QueryTerm{cut, whole || cut != text})
	}
	for _, w := range words {
		for w != "" {
			run := runOf(w)
			last := run == len(w)
			if head, tail := splitRun(w[:run]); tail != "" {
				add(head, true)
				add(tail, !last)
			} else {
				add(head, !last)
			}
			if w = w[run:]; w != "" {
				w = strings.TrimLeftFunc(w, func(r rune) bool { return !inWord(r) })
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(terms), func(q QueryTerm) bool {
		return slices.ContainsFunc(terms,
			func(other QueryTerm) bool { return q != other && !q.Whole && q.Fits(other.Text) })
	})
}

// runOf is the length of the letters and digits that a word begins with. A word begins with at least one.
func runOf(word string) int {
	if i := strings.IndexFunc(word, func(r rune) bool { return !inWord(r) }); i > 0 {
		return i
	}
	return len(word)
}

// splitRun separates the digits, and what follows them, from at least two letters before them.
func splitRun(run string) (head, tail string) {
	digit := strings.IndexAny(run, "0123456789")
	if digit < 2 || utf8.RuneCountInString(run[:digit]) < 2 {
		return run, ""
	}
	return run[:digit], run[digit:]
}

func cutTerm(term string) string {
	if len(term) <= MaxTerm {
		return term
	}
	cut := MaxTerm
	for !utf8.RuneStart(term[cut]) {
		cut--
	}
	return term[:cut]
}
