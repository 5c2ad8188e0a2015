package syntax

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// NameKey returns the form in which two names are compared: NFKC, full Unicode case folding, NFKC again.
//
// It never refuses a name. Names that differ only in case, in width, in ligatures or in the way their accents are
// encoded have the same key; white space and punctuation still tell names apart. NameKey(NameKey(s)) == NameKey(s),
// and a key is always valid UTF-8: each run of octets that is not counts as one U+FFFD.
//
// The key of a name with characters younger than the Unicode tables of this build may change with the tables, so keep
// the key that was computed when the name was taken.
func NameKey(s string) string {
	if isASCII(s) {
		return strings.ToLower(s) // NFKC leaves ASCII alone, and folding it is lower-casing it
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return norm.NFKC.String(fold(norm.NFKC.String(s)))
}

// PlainKey is NameKey without Unicode's tables: only ASCII letters fold. It stands in where no key was recorded, since
// it gives the same for ever.
func PlainKey(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// fold applies full case folding. A Caser may keep state, so each call has its own.
//
// Cherokee, alone of all scripts, folds to its capitals. The Caser swaps the case of its letters instead (x/text
// v0.42.0), which would tell the two cases apart, so its small letters are put right afterwards.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 0xAB70 <= r && r <= 0xABBF:
			return r - 0xAB70 + 0x13A0
		case 0x13F8 <= r && r <= 0x13FD:
			return r - 0x13F8 + 0x13F0
		default:
			return r
		}
	}, cases.Fold().String(s))
}

// BeforeAt is what comes before the first character of s that NameKey makes an @: no part of it is taken for an address.
func BeforeAt(s string) string {
	for i, c := range s {
		if c == '@' || c >= utf8.RuneSelf && NameKey(string(c)) == "@" {
			return s[:i]
		}
	}
	return s
}
