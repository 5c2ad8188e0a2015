//go:build cost

package syntax

import (
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

// What a grammar costs grows with the length of the text at most: whoever sends one may not be known yet.
func TestNoGrammarCostsMoreThanItsTextIsLong(t *testing.T) {
	const request, page = 1 << 20, 64 << 10
	for _, c := range []struct {
		name string
		size int // the most that callers hand to it
		read func(string)
	}{
		{"Domain", request, func(s string) { Domain(s) }},
		{"Domain of the length of one", 3 * MaxDomain, func(s string) { Domain(s) }},
		{"Email", request, func(s string) { Email(s) }},
		{"Phone", request, func(s string) { Phone(s) }},
		{"Language", request, func(s string) { Language(s) }},
		{"PublicKey", request, func(s string) { PublicKey(s) }},
		{"PlainKey", request, func(s string) { _ = PlainKey(s) }},
		{"NameKey", page, func(s string) { NameKey(s) }},
		{"DomainLabel", page, func(s string) { DomainLabel(s) }},
	} {
		t.Run(c.name, func(t *testing.T) { costtest.Bounded(t, c.size, c.read) })
	}
}

func TestALongDomainIsRefusedUnread(t *testing.T) {
	long := costtest.Alphabets[0].Text(4 * (MaxDomain + 1))
	if form, problem := Domain(long); form != "" || problem != domainTooLong {
		t.Errorf("%d characters: %q, %q", MaxDomain+1, form, problem)
	}
	runes := []rune(long)
	form, problem := Domain(string(runes[:MaxDomain]))
	if problem != nil || len(form) <= MaxDomain {
		t.Fatalf("%d characters: %q, %q", MaxDomain, form, problem)
	}
	if again, problem := Domain(form); again != form || problem != nil { // the form in ASCII has more characters
		t.Errorf("the form of a long domain is not its own: %q", problem)
	}
}
