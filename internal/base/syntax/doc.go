// Package syntax holds the grammars and comparison forms of the values people type: names, e-mail addresses, telephone
// numbers, domains and language tags; and of public keys, which they paste.
//
// Everything here is a pure function: the answer depends on the argument alone, nothing is kept, and every function may
// be called from many goroutines at once. No function panics, whatever bytes it is given.
//
// A function that judges a value returns the form to keep and a problem. No problem means the value is fine. A problem
// comes with an empty form.
//
// Length limits belong to the callers, who know the field. They check them first, by Text and Name: the work done here
// grows with the length of the value. It grows no faster than that: what would is refused from the length on that
// nothing real has.
package syntax

import "unicode/utf8"

// isASCII reports whether s has seven-bit octets only.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isAlnum reports whether c is an ASCII letter or digit.
func isAlnum(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool {
	return '0' <= c && c <= '9'
}
