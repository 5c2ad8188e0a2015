package syntax

import "unicode/utf8"

// MaxTypedDomain is the length of the longest form of a domain in ASCII.
const MaxTypedDomain = 2000

// TooLong says that nobody can have this login name, and that folding it, which comes before any throttle, is not worth
// its price. Names in ASCII fold at no cost, and may be e-mail addresses of any length. A character beyond it may be
// typed as three, such as a syllable of Hangul.
func TooLong(loginName string) bool {
	const mostBeyondASCII = 3 * (MaxName + MaxDomain)
	if len(loginName) <= mostBeyondASCII {
		return false
	}
	all, beyond := 0, 0
	for _, r := range loginName {
		if all++; r >= utf8.RuneSelf {
			beyond++
		}
		if beyond > mostBeyondASCII {
			return true
		}
	}
	return beyond > 0 && all > mostBeyondASCII+1+MaxTypedDomain
}
