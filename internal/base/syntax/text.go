package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// How many characters texts may have. The definition of the API says the same; a test in package api compares them.
const (
	MaxName        = 200 // of people and things, and of what is found at an address
	MaxDescription = 500
	MaxLanguage    = 10
	MaxPhone       = 50
	MaxPassword    = 72 // that somebody chooses from now on
	MaxScope       = 100
	MaxScopes      = 20 // of a provider
)

// What is wrong with texts, whatever they are for.
const (
	Empty   = mustNotBeEmpty
	NotUTF8 = "must be valid UTF-8"
	HasNUL  = "must not contain the character U+0000"
)

// TooMany says that a text has more characters, or a list more elements, than it may.
func TooMany(most int, what string) string {
	return "must have at most " + strconv.Itoa(most) + " " + what
}

// Text judges a text that may be empty.
func Text(s string, most int) (problem string) {
	switch {
	case !utf8.ValidString(s):
		return NotUTF8
	case strings.ContainsRune(s, 0):
		return HasNUL
	case utf8.RuneCountInString(s) > most:
		return TooMany(most, "characters")
	}
	return ""
}

// Name judges a text that may not be empty.
func Name(s string) (problem string) {
	if s == "" {
		return Empty
	}
	return Text(s, MaxName)
}
