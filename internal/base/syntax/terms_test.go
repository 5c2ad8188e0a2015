package syntax_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Anna", []string{"anna"}},
		{"Maria Smith maria.smith123@example.com", []string{"123", "com", "example", "maria", "smith"}},
		{"annabel anna anna.b", []string{"anna", "annabel", "b"}},
		{"user000123 u1 3f2a9c sm1th2", []string{"000123", "1th2", "3f2a9c", "sm", "u1", "user"}},
		{"Müller2", []string{"2", "müller"}},
		{"ü1", []string{"ü1"}},
		{strings.Repeat("w", 50), []string{strings.Repeat("w", 16)}},
		{strings.Repeat("w", 15) + "ü", []string{strings.Repeat("w", 15)}},
		{strings.Repeat("w", 20) + "7", []string{"7", strings.Repeat("w", 16)}},
		{"-.-", nil},
	} {
		if got := syntax.Terms(syntax.Words(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	for _, c := range []struct {
		query string
		want  string
	}{
		{"anna", "anna*"},
		{"anna.", "anna*"}, // nobody types a point to find what has one
		{"anna.s", "anna s*"},
		{"smith1", "smith 1*"},
		{"smith1@ex", "smith 1 ex*"},
		{"s1", "s1*"},
		{"maria smith", "maria* smith*"},
		{"ann anna.b", "anna b*"},
		{"smith smith1", "smith 1*"},
		{strings.Repeat("w", 17), strings.Repeat("w", 16)},
		{"", ""},
	} {
		words, _ := syntax.QueryWords(c.query)
		var got []string
		for _, term := range syntax.QueryTerms(words) {
			got = append(got, term.Text+map[bool]string{false: "*"}[term.Whole])
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%q: got %q, want %q", c.query, text, c.want)
		}
	}
}

// What has the words has the terms.
func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"anna.schmidt@example.com|anna.s ex", "Maria Smith7|smith7", "sm1|sm", "a1b2|a1b",
		"Müller-Lüdenscheidt|müller-l", "a|a", strings.Repeat("ü", 9) + "1x|" + strings.Repeat("ü", 9) + "1"} {
		text, query, _ := strings.Cut(seed, "|")
		f.Add(text, query)
	}
	f.Fuzz(func(t *testing.T, text, query string) {
		if len(text) > 60 { // so it has fewer words than are kept
			return
		}
		words := syntax.Words(text)
		looked, _ := syntax.QueryWords(query)
		for _, beginning := range looked {
			if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, beginning) }) {
				return
			}
		}
		terms := syntax.Terms(words)
		if len(terms) > 2*syntax.MaxWords ||
			slices.ContainsFunc(terms, func(term string) bool { return term == "" || len(term) > syntax.MaxTerm }) {
			t.Errorf("%q: %q", text, terms)
		}
		for _, q := range syntax.QueryTerms(looked) {
			if !slices.ContainsFunc(terms, q.Fits) {
				t.Errorf("%q has the words of %q, and not %s of its terms", text, query, fmt.Sprint(q))
			}
		}
	})
}

// What a change of texts changes is what differs between all words and terms before and after.
func FuzzAChangeOfTexts(f *testing.F) {
	many := strings.Repeat("a.b ", 40)
	for _, seed := range []string{"Anna|Smith|anna@example.com>Anna|Smith7|anna@example.com", "a|b>a|b",
		"ann|x>ann|anna", "|>|x", "a|b>a", many + "|x>" + many + "|y",
		many + "|" + many + ">" + many + "|x", "a1 b2 c3 d4 e5 f6 g7|same>h8 i9 j0 k1 l2 m3 n4|same"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, texts string) {
		first, second, _ := strings.Cut(texts, ">")
		before, after := strings.Split(first, "|"), strings.Split(second, "|")
		wordsBefore, wordsAfter := syntax.WordsOfBoth(before, after)
		if want := syntax.Words(before...); !slices.Equal(wordsBefore, want) {
			t.Errorf("before: %q, want %q", wordsBefore, want)
		}
		if want := syntax.Words(after...); !slices.Equal(wordsAfter, want) {
			t.Errorf("after: %q, want %q", wordsAfter, want)
		}
		without := func(words, others []string) []string {
			terms := syntax.Terms(others)
			return slices.DeleteFunc(syntax.Terms(words),
				func(term string) bool { return slices.Contains(terms, term) })
		}
		if got, want := syntax.TermsWithout(wordsBefore, wordsAfter),
			without(wordsBefore, wordsAfter); !slices.Equal(got, want) {
			t.Errorf("lost: %q, want %q", got, want)
		}
		if got, want := syntax.TermsWithout(wordsAfter, wordsBefore),
			without(wordsAfter, wordsBefore); !slices.Equal(got, want) {
			t.Errorf("found: %q, want %q", got, want)
		}
	})
}
