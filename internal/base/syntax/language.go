package syntax

import (
	"errors"
	"strings"

	"golang.org/x/text/language"
)

// maxLanguage is more than any language tag has: reading one costs the square of its length.
const maxLanguage = 100

// Language reads a preferred language. It is false, with language.Und, where s is not a tag of RFC 3066: words of one
// to eight letters or digits with hyphens between them, the first of letters only.
//
// A well-formed tag with a part that nobody has registered is read without that part, and false where its language is
// the unknown part. Case does not matter. An underscore in place of the hyphen is refused.
func Language(s string) (language.Tag, bool) {
	if len(s) > maxLanguage || !isLanguageTag(s) {
		return language.Und, false
	}
	tag, err := language.Parse(s)
	var unknown language.ValueError
	switch {
	case err == nil:
		return tag, true
	case errors.As(err, &unknown):
		// Raw, because Base would guess a language from the rest of the tag.
		if base, _, _ := tag.Raw(); base.String() != "und" {
			return tag, true
		}
	}
	return language.Und, false
}

// isLanguageTag reports whether s has the form that RFC 3066 gives a tag.
func isLanguageTag(s string) bool {
	first := true
	for word := range strings.SplitSeq(s, "-") {
		if len(word) < 1 || len(word) > 8 || !every(word, isAlnum) {
			return false
		}
		if first && !every(word, func(c byte) bool { return !isDigit(c) }) {
			return false
		}
		first = false
	}
	return true
}
