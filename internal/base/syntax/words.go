package syntax

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// Bounds of what is kept of a text to find it by its words: names of the usual kind stay far below, and nobody makes
// the index large with a strange one.
const (
	MaxWord  = 64 // bytes of a word
	MaxWords = 64 // words of one object
)

// Words gives what texts are found by: from every place where a word begins, the text up to the next white space, in
// its comparison form, sorted, cut to MaxWord. What begins with "ann", "schmidt@ex" or "example.c" is then found in
// "Anna.Schmidt@example.com" as the beginning of one of them. A word that another one begins with is left out: whatever
// finds it finds the other one. If there are more than MaxWords, each text has its share: nobody can hide a name behind
// an address of many words.
//
// It gives the same for ever, so that states need not keep what it gave, see SearchKey.
func Words(texts ...string) []string {
	words := make([]string, 0, 24)
	for _, text := range texts {
		words = appendWords(words, text)
	}
	if len(words) > MaxWords {
		words = shared(texts)
	}
	for i, w := range words {
		words[i] = CutWord(w)
	}
	return outermost(words)
}

// WordsOfBoth gives Words of two lists of texts. What stands at the same place in both is looked at once: it is for an
// object before and after a change.
func WordsOfBoth(before, after []string) (wordsBefore, wordsAfter []string) {
	if len(before) != len(after) {
		return Words(before...), Words(after...)
	}
	same := make([]string, 0, 24)
	for i, text := range before {
		if text == after[i] {
			same = appendWords(same, text)
		}
	}
	of := func(texts, others []string) []string {
		words := append(make([]string, 0, len(same)+8), same...)
		for i, text := range texts {
			if text != others[i] {
				words = appendWords(words, text)
			}
		}
		if len(words) > MaxWords {
			return Words(texts...)
		}
		for i, w := range words {
			words[i] = CutWord(w)
		}
		return outermost(words)
	}
	return of(before, after), of(after, before)
}

// shared gives MaxWords words of texts that have more, in turn one of each.
func shared(texts []string) []string {
	of := make([][]string, len(texts))
	for i, text := range texts {
		of[i] = appendWords(nil, text)
	}
	words := make([]string, 0, MaxWords)
	for i := range MaxWords {
		for _, its := range of {
			if i < len(its) && len(words) < MaxWords {
				words = append(words, its[i])
			}
		}
	}
	return words
}

// appendWords appends the words of a text in full, as they come.
func appendWords(words []string, text string) []string {
	text = SearchKey(text)
	begins, inside := [8]int{}, false
	begun, end := begins[:0], 0
	for i, r := range text {
		switch {
		case inWord(r):
			if !inside {
				begun = append(begun, i)
			}
			inside, end = true, i+utf8.RuneLen(r)
		case isSpace(r):
			words, begun, inside = appendFrom(words, text[:end], begun), begun[:0], false
		default:
			inside = false
		}
	}
	return appendFrom(words, text[:end], begun)
}

// appendFrom appends what a text is from some starts on.
func appendFrom(words []string, text string, starts []int) []string {
	for _, at := range starts {
		words = append(words, text[at:])
	}
	return words
}

// HasWord tells whether a text has a word that begins with another one, in full.
func HasWord(text, beginning string) bool {
	var room [16]string
	return slices.ContainsFunc(appendWords(room[:0], text),
		func(word string) bool { return strings.HasPrefix(word, beginning) })
}

// QueryWords gives the words that somebody looks for: each is the beginning of one of Words. They are cut alike; in
// full they are given where that matters.
func QueryWords(query string) (words, full []string) {
	long := false
	for token := range strings.FieldsFuncSeq(SearchKey(query), isSpace) {
		if token = trimmed(token); token != "" {
			word := CutWord(token)
			words, full, long = append(words, word), append(full, token), long || word != token
		}
	}
	if words = outermost(words); !long {
		full = nil
	}
	return words, full
}

// CutWord cuts a word to MaxWord, between characters.
func CutWord(word string) string {
	if len(word) <= MaxWord {
		return word
	}
	cut := MaxWord
	for !utf8.RuneStart(word[cut]) {
		cut--
	}
	return word[:cut]
}

// outermost sorts words and leaves out those that others begin with. In order, such a word stands right before one of
// them.
func outermost(words []string) []string {
	slices.Sort(words)
	kept := words[:0]
	for i, w := range words {
		if i+1 == len(words) || !strings.HasPrefix(words[i+1], w) {
			kept = append(kept, w)
		}
	}
	return kept
}

// trimmed is a text without what belongs to no word at its ends.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return !inWord(r) })
}

// settled are the characters whose comparison form never changes: Unicode promises that for those it has assigned.
var settled = rangetable.Assigned("12.0.0")

// SearchKey is NameKey for texts whose key nobody keeps: characters that are younger than settled stay as they are, so
// that it gives the same whatever tables a build has.
func SearchKey(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var key strings.Builder
	for s != "" {
		young := strings.IndexFunc(s, func(r rune) bool { return !unicode.Is(settled, r) })
		if young < 0 {
			young = len(s)
		}
		key.WriteString(NameKey(s[:young]))
		if s = s[young:]; s != "" {
			_, size := utf8.DecodeRuneInString(s)
			key.WriteString(s[:size])
			s = s[size:]
		}
	}
	return key.String()
}

// isSpace tells what stands between words and belongs to none: white space as far as SearchKey leaves it, by a list
// that does not change.
func isSpace(r rune) bool {
	switch r {
	case 0x1680, 0x200B, 0x2028, 0x2029, 0x3000:
		return true
	}
	return r <= ' ' || 0x7F <= r && r <= 0xA0
}

// inWord tells letters, digits and marks from punctuation, by a list that does not change: everything that is not known
// as punctuation is in a word.
func inWord(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return isAlnum(byte(r))
	case r <= 0xBF, r == 0xD7, r == 0xF7: // of Latin-1
		return r == 0xAA || r == 0xB2 || r == 0xB3 || r == 0xB5 || r == 0xB9 || r == 0xBA
	case 0x2010 <= r && r <= 0x2027, 0x2030 <= r && r <= 0x205E: // dashes, quotes, …
		return false
	case 0x3001 <= r && r <= 0x3003, 0x3008 <= r && r <= 0x3011, 0x3014 <= r && r <= 0x301F, r == 0x30FB: // of Chinese and Japanese
		return false
	}
	return !isSpace(r)
}
