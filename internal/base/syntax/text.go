package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/errs"
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

// The problems that pages have texts of their own for.
const (
	IsEmpty   errs.ProblemReason = "EMPTY"
	IsTooLong errs.ProblemReason = "TOO_LONG"
)

// Empty is the problem that every grammar shares.
var Empty = &errs.Problem{Reason: IsEmpty, Message: "must not be empty"}

// What else is wrong with texts, whatever they are for.
const (
	NotUTF8 = "must be valid UTF-8"
	HasNUL  = "must not contain the character U+0000"
)

// TooMany says that a list has more elements than it may.
func TooMany(most int, elements string) *errs.Problem { return errs.Plain(atMost(most, elements)) }

func tooLong(most int) *errs.Problem {
	return &errs.Problem{Reason: IsTooLong, Message: atMost(most, "characters")}
}

func atMost(most int, what string) string {
	return "must have at most " + strconv.Itoa(most) + " " + what
}

// Text judges a text that may be empty.
func Text(s string, most int) *errs.Problem {
	switch {
	case !utf8.ValidString(s):
		return errs.Plain(NotUTF8)
	case strings.ContainsRune(s, 0):
		return errs.Plain(HasNUL)
	case utf8.RuneCountInString(s) > most:
		return tooLong(most)
	}
	return nil
}

// Name judges a text that may not be empty.
func Name(s string) *errs.Problem {
	if s == "" {
		return Empty
	}
	return Text(s, MaxName)
}
