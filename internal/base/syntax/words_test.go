package syntax_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  []string
	}{
		{[]string{"Anna"}, []string{"anna"}},
		{[]string{"anna.schmidt@example.com", "Anna", "Schmidt", "Anna Schmidt"},
			[]string{"anna.schmidt@example.com", "com", "example.com", "schmidt@example.com"}},
		{[]string{"  Anna\t Maria\u00A0van\u3000der  "}, []string{"anna", "der", "maria", "van"}},
		{[]string{"Müller-Lüdenscheidt"}, []string{"lüdenscheidt", "müller-lüdenscheidt"}},
		{[]string{"Mu\u0308ller", "MÜLLER"}, []string{"müller"}},
		{[]string{"ＡＮＮＡ＠Ｅｘ．ｃｏｍ"}, []string{"anna@ex.com", "com", "ex.com"}},
		{[]string{"O'Brien (IT)"}, []string{"brien", "it", "o'brien"}},
		{[]string{"O’Brien", "„Anna“"}, []string{"anna", "brien", "o’brien"}},
		{[]string{"STRASSE", "Straße"}, []string{"strasse"}},
		{[]string{"山田太郎", "ヤマダ・タロウ"}, []string{"タロウ", "ヤマダ・タロウ", "山田太郎"}},
		{[]string{"", " ", "-.-", "@"}, nil},
		{[]string{"a", "ab", "abc", "b"}, []string{"abc", "b"}},
		{[]string{"\xff\xfeanna"}, []string{"\uFFFDanna"}},
		{[]string{"user_1+tag@x.org"}, []string{"1+tag@x.org", "org", "tag@x.org", "user_1+tag@x.org", "x.org"}},
	} {
		if got := syntax.Words(c.texts...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.texts, got, c.want)
		}
	}
}

func TestWordsAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "w%03d ", i)
	}
	if got := syntax.Words(many.String()); len(got) != syntax.MaxWords || got[0] != "w000" {
		t.Errorf("%d words: %q", len(got), got)
	}
	address := strings.Repeat("a.", 100) + "example"
	if got := syntax.Words(address, address, "Anna Maria Berg"); len(got) > syntax.MaxWords ||
		!slices.Contains(got, "anna") || !slices.Contains(got, "berg") {
		t.Errorf("a name is hidden by an address of many words: %q", got)
	}
	for _, long := range []string{strings.Repeat("x", 1000), strings.Repeat("ü", 1000), "x" + strings.Repeat("ü", 1000),
		strings.Repeat("\U00020000", 1000)} {
		got := syntax.Words(long)
		if len(got) != 1 || len(got[0]) > syntax.MaxWord || len(got[0]) < syntax.MaxWord-3 ||
			!utf8.ValidString(got[0]) {
			t.Errorf("%q", got)
		}
	}
}

func TestQueryWords(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		query       string
		words, full []string
	}{
		{"", nil, nil},
		{" @ - ", nil, nil},
		{"Anna", []string{"anna"}, nil},
		{"a anna A", []string{"anna"}, nil},
		{"Smith, John", []string{"john", "smith"}, nil},
		{"@Example.COM", []string{"example.com"}, nil},
		{"jo@ex", []string{"jo@ex"}, nil},
		{"b " + long, []string{"b", long[:64]}, []string{"b", long}},
		{"a\x00b", []string{"a", "b"}, nil},
	} {
		words, full := syntax.QueryWords(c.query)
		if !slices.Equal(words, c.words) || !slices.Equal(full, c.full) {
			t.Errorf("%q: %q, %q", c.query, words, full)
		}
	}
}

func TestHasWord(t *testing.T) {
	for _, c := range []struct {
		text, beginning string
		want            bool
	}{
		{"anna.schmidt@example.com", "schmidt@ex", true},
		{"anna.schmidt@example.com", "midt", false},
		{strings.Repeat("x", 100), strings.Repeat("x", 100), true},
		{strings.Repeat("x", 99), strings.Repeat("x", 100), false},
	} {
		if got := syntax.HasWord(c.text, c.beginning); got != c.want {
			t.Errorf("%q in %q: %v", c.beginning, c.text, got)
		}
	}
}

// A character that a build's tables may know one day, and do not today, stays as it is: or states would not fold to the
// same words for ever.
func TestSearchKeyLeavesYoungCharactersAlone(t *testing.T) {
	for _, young := range []string{"\uA7C7", "\U00010570", "\uA7CB"} { // capitals of Unicode 13, 14 and 16
		if got := syntax.SearchKey("Ä" + young + "B"); got != "ä"+young+"b" {
			t.Errorf("%+q: %+q", young, got)
		}
	}
	if got := syntax.SearchKey("\uA7C7"); got == syntax.NameKey("\uA7C7") {
		t.Error("the tables of this build do not fold U+A7C7, so this test shows nothing")
	}
}

func FuzzWords(f *testing.F) {
	f.Add("Anna.Schmidt@example.com", "sch")
	f.Fuzz(func(t *testing.T, text, query string) {
		words := syntax.Words(text)
		if !slices.IsSorted(words) || len(words) > syntax.MaxWords {
			t.Fatalf("%q", words)
		}
		for _, w := range words {
			if w == "" || len(w) > syntax.MaxWord || !utf8.ValidString(w) || strings.ContainsAny(w, " \x00") {
				t.Fatalf("%q of %q", w, text)
			}
			// Whoever types a word finds it.
			if asked, _ := syntax.QueryWords(w); len(asked) == 1 &&
				!slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, asked[0]) }) {
				t.Fatalf("%q is not found by %q", text, w)
			}
		}
		syntax.QueryWords(query)
	})
}
