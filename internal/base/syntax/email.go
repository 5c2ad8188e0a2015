package syntax

import (
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

var notAnEmail = errs.Plain("must be an e-mail address such as name@example.org")

// Email checks that s is an addr-spec of RFC 2822, section 3.4.1, and returns the key to look it up with: s in lower
// case.
//
// The local part is a dot-atom or a quoted string, the domain a dot-atom or a domain literal. Only printable ASCII is
// taken, and a space only inside a quoted string or behind a backslash. Display names, angle brackets, lists, groups,
// comments, folding white space and the obsolete forms are refused. Nothing more is asked of either part: the domain
// needs no dot, a literal need not be an IP address, and there is no limit of length.
//
// The key is itself a valid address and its own key. Quoting is kept, so "a"@example.org and a@example.org have
// different keys.
func Email(s string) (key string, problem *errs.Problem) {
	if s == "" {
		return "", Empty
	}
	local := localPart(s)
	if local == 0 || local == len(s) || s[local] != '@' {
		return "", notAnEmail
	}
	domain := s[local+1:]
	if domain == "" || dotAtom(domain) != len(domain) && !isDomainLiteral(domain) {
		return "", notAnEmail
	}
	return strings.ToLower(s), nil
}

// localPart returns the length of the local part that s begins with, 0 where there is none.
func localPart(s string) int {
	if s[0] != '"' {
		return dotAtom(s)
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i++; i == len(s) || !isPrintable(s[i]) {
				return 0
			}
		case !isPrintable(c):
			return 0
		}
	}
	return 0 // the closing quote is missing
}

// dotAtom returns the length of the dot-atom that s begins with: atoms with single dots between them. It is 0 where
// there is none or where a dot is out of place.
func dotAtom(s string) int {
	dot := true // an atom has to begin here
	for i := range len(s) {
		switch {
		case isAtext(s[i]):
			dot = false
		case s[i] == '.' && !dot:
			dot = true
		case dot:
			return 0
		default:
			return i
		}
	}
	if dot {
		return 0
	}
	return len(s)
}

// isDomainLiteral reports whether all of s is a domain literal such as [192.0.2.1].
func isDomainLiteral(s string) bool {
	if len(s) < 2 || s[0] != '[' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == ']':
			return i == len(s)-1
		case c == '\\':
			if i++; i == len(s) || !isPrintable(s[i]) {
				return false
			}
		case c == '[' || c == ' ' || !isPrintable(c):
			return false
		}
	}
	return false // the closing bracket is missing
}

// isAtext reports whether c may stand in an atom.
func isAtext(c byte) bool {
	return isAlnum(c) || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

// isPrintable reports whether c is a printable ASCII character or the space.
func isPrintable(c byte) bool {
	return ' ' <= c && c <= '~'
}
