package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/signet-idm/signet/internal/base/errs"
)

// MaxDomain is how many characters a domain has at most, as people write it. Its form in ASCII may have more.
const MaxDomain = 200

var (
	domainTooLong    = tooLong(MaxDomain)
	domainHasSpace   = errs.Plain("must not contain white space or control characters")
	domainHasSpecial = errs.Plain(`must not contain "@", "/" or ":"`)
)

// domainProfile maps and checks as for a lookup, but leaves ASCII characters, hyphens and lengths alone: those are not
// ours to judge.
var domainProfile = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.VerifyDNSLength(false),
)

// Domain returns the form in which a domain is kept and compared: lower case, and in ASCII where IDNA has an ASCII form
// for it. Where IDNA has none, the form is s in lower case.
//
// It refuses the empty value, white space, control characters, @, / and :, and nothing else; labels may be empty, long
// or oddly made, and a dot at the end stays. That holds for what a value means as much as for how it looks: it is also
// refused when compatibility mapping brings an @, / or : into it, as it does with a full-width commercial at, or leaves
// nothing of it, as with a lone soft hyphen. So neither a form nor its NameKey ever has one of the three. Octets that
// are not UTF-8 count as U+FFFD.
//
// Text beyond ASCII of more than MaxDomain characters is refused unread: the work for IDNA grows with the square of its
// length. ASCII needs none of it, so its length is left to the callers.
//
// Domain(form) == form for every form that it returns. A form in ASCII can be longer than s.
func Domain(s string) (ascii string, problem *errs.Problem) {
	if len(s) > MaxDomain && !isASCII(s) && utf8.RuneCountInString(s) > MaxDomain {
		return "", domainTooLong
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if problem := domainProblem(s); problem != nil {
		return "", problem
	}
	// Mapping wants the letters as they were typed: lower-casing loses the dot of U+0130, say.
	lower := strings.ToLower(s)
	for _, candidate := range []string{s, lower} {
		if isASCII(candidate) {
			return strings.ToLower(candidate), nil
		}
		form, err := domainProfile.ToASCII(candidate)
		if err != nil || domainProblem(form) == domainHasSpace {
			continue // a spacing accent maps to a space and a mark: then IDNA has no form worth keeping
		}
		if problem := domainProblem(form); problem != nil {
			return "", problem
		}
		return form, nil
	}
	return lower, nil
}

// domainProblem says what is wrong with s as a domain.
func domainProblem(s string) *errs.Problem {
	switch {
	case s == "":
		return Empty
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return domainHasSpace
	case strings.ContainsAny(s, "@/:") || strings.ContainsAny(norm.NFKC.String(s), "@/:"):
		return domainHasSpecial
	}
	return nil
}

// maxLabel is the longest label that DomainLabel makes, in octets.
const maxLabel = 50

// plainLetters spells the letters that Unicode does not take apart into an ASCII letter and a mark.
var plainLetters = strings.NewReplacer(
	"æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ð", "d", "þ", "th", "ł", "l", "ħ", "h", "ŧ", "t", "ı", "i",
)

// DomainLabel makes a domain label out of the name of an organization: "Überlingen GmbH" becomes "uberlingen-gmbh".
//
// Letters lose their case and their accents, and every run of characters that are not ASCII letters or digits by then
// becomes one hyphen. The label matches [a-z0-9]+(-[a-z0-9]+)*, has at most 50 octets, and is "org" where nothing is
// left of the name. DomainLabel(DomainLabel(name)) == DomainLabel(name), and Domain returns a label as it is. Different
// names can have the same label.
func DomainLabel(name string) string {
	// The first decomposition bares the letters of the table, the second takes apart what folding has put in.
	plain := norm.NFKD.String(strings.ToValidUTF8(name, "\uFFFD"))
	plain = norm.NFKD.String(plainLetters.Replace(fold(plain)))
	label := make([]byte, 0, maxLabel)
	hyphen := false
	for _, r := range plain {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			if hyphen && len(label) > 0 {
				label = append(label, '-')
			}
			hyphen = false
			label = append(label, byte(r))
		case unicode.Is(unicode.M, r):
			// an accent: its letter stands without it
		default:
			hyphen = true
		}
		if len(label) >= maxLabel {
			break
		}
	}
	if len(label) > maxLabel { // a hyphen and a letter went in at once
		label = label[:maxLabel]
	}
	if len(label) == 0 {
		return "org"
	}
	return strings.TrimSuffix(string(label), "-")
}
