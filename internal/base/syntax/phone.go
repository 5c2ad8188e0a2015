package syntax

import (
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
)

var (
	notAPhone = errs.Plain("must be an international telephone number such as +41-31-555-01-23: " +
		"a plus sign and digits, with no spaces")
	notPhoneParameters = errs.Plain("must have parameters such as ;ext=12 after the number, or none")
)

// Phone checks that s is a global-number of RFC 3966 and returns the number alone as a plus sign and its digits.
//
// The number may hold the visual separators - . ( ) anywhere after the plus sign. Parameters may follow, each a
// semicolon, a name and mostly a value; they are checked against the grammar and then left out of the normal form, so
// two extensions of one number share it. Where the grammar is ambiguous, a semicolon begins a new parameter, and ext
// and isub have the values that the RFC gives them. The order and the repetition of parameters are not judged, nor is
// whether the country code exists or how many digits there are.
//
// The normal form is itself a valid number and its own normal form.
func Phone(s string) (normal string, problem *errs.Problem) {
	if s == "" {
		return "", Empty
	}
	number, parameters, more := strings.Cut(s, ";")
	digits, plus := strings.CutPrefix(number, "+")
	if !plus || !every(digits, isPhoneDigit) {
		return "", notAPhone
	}
	var b strings.Builder
	b.WriteByte('+')
	for i := range len(digits) {
		if isDigit(digits[i]) {
			b.WriteByte(digits[i])
		}
	}
	if b.Len() == 1 {
		return "", notAPhone
	}
	for more {
		var p string
		p, parameters, more = strings.Cut(parameters, ";")
		if !isPhoneParameter(p) {
			return "", notPhoneParameters
		}
	}
	return b.String(), nil
}

// isPhoneParameter reports whether p, without its semicolon, is a par of the RFC.
func isPhoneParameter(p string) bool {
	name, value, valued := strings.Cut(p, "=")
	switch {
	case strings.EqualFold(name, "ext"):
		return value != "" && every(value, isPhoneDigit)
	case strings.EqualFold(name, "isub"):
		return value != "" && isEscaped(value, isURIC)
	case name == "" || !every(name, func(c byte) bool { return isAlnum(c) || c == '-' }):
		return false
	case valued:
		return value != "" && isEscaped(value, isParamChar)
	default:
		return true
	}
}

// isPhoneDigit reports whether c is a digit or a visual separator.
func isPhoneDigit(c byte) bool {
	return isDigit(c) || c == '-' || c == '.' || c == '(' || c == ')'
}

// isURIC reports whether c is an unreserved or reserved character of a URI, apart from the semicolon.
func isURIC(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("/?:@&=+$,", c) >= 0
}

// isParamChar reports whether c may stand unescaped in the value of a parameter.
func isParamChar(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("[]/:&+$", c) >= 0
}

// isUnreserved reports whether c is an unreserved character as RFC 3966 takes them from RFC 2396.
func isUnreserved(c byte) bool {
	return isAlnum(c) || strings.IndexByte("-_.!~*'()", c) >= 0
}

// isEscaped reports whether s has allowed characters and percent escapes only.
func isEscaped(s string, allowed func(byte) bool) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '%':
			if !allowed(s[i]) {
				return false
			}
		case i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}

// isHex reports whether c is a hexadecimal digit.
func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// every reports whether all octets of s are allowed.
func every(s string, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}
