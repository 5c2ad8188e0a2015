package syntax

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func TestDomainAccepts(t *testing.T) {
	for _, c := range []struct{ name, in, form string }{
		{"an ordinary domain", "example.org", "example.org"},
		{"capitals, folded", "Example.ORG", "example.org"},
		{"a single label", "localhost", "localhost"},
		{"umlauts, in ASCII form", "Bücher.Example", "xn--bcher-kva.example"},
		{"umlauts written with a combining mark", "Bu\u0308cher.example", "xn--bcher-kva.example"},
		{"the ASCII form in capitals", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"sharp s as a letter of its own", "faß.example", "xn--fa-hia.example"},
		{"a dotted capital I with its dot", "İ.example", "xn--i-9bb.example"},
		{"ideographic full stops", "例え。テスト", "xn--r8jz45g.xn--zckzah"},
		{"full-width letters", "ＥＸＡＭＰＬＥ．ｏｒｇ", "example.org"},
		{"a soft hyphen, dropped", "exam\u00adple.org", "example.org"},
		{"right-to-left letters", "אבג.example", "xn--4dbcd.example"},
		{"a symbol", "☕.example", "xn--53h.example"},
		{"underscores and other ASCII", `_a!b*c%d\.example`, `_a!b*c%d\.example`},
		{"an underscore beside umlauts", "_dmarc.bücher.example", "_dmarc.xn--bcher-kva.example"},
		{"hyphens where IDNA has none", "-a.b-.r3---sn.example", "-a.b-.r3---sn.example"},
		{"an A-label that cannot be decoded", "XN--A.example", "xn--a.example"},
		{"an A-label with nothing in it", "xn--", "xn--"},
		{"a dot at the end", "example.org.", "example.org."},
		{"empty labels", "a..b", "a..b"},
		{"only a dot", ".", "."},
		{"a label that is longer than DNS has them", strings.Repeat("A", 100), strings.Repeat("a", 100)},
		{"a long label with an umlaut", strings.Repeat("a", 80) + "ü", "xn--" + strings.Repeat("a", 80) + "-jji"},
		{"what IDNA refuses, in lower case", "Ä\u200dB.Example", "ä\u200db.example"},
		{"what the bidi rule refuses", "1א.Example", "1א.example"},
		{"a spacing accent", "A¨b", "a¨b"},
		{"octets that are not UTF-8", "A\xff", "a\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if form, problem := Domain(c.in); form != c.form || problem != nil {
				t.Errorf("Domain(%q) = %q, %q; want %q", c.in, form, problem, c.form)
			}
		})
	}
}

func TestDomainRefuses(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"nothing", ""},
		{"a space", "a b"},
		{"a space before", " example.org"},
		{"a line feed after", "example.org\n"},
		{"a tab", "a\tb"},
		{"a no-break space", "a\u00a0b"},
		{"an ideographic space", "a\u3000b"},
		{"a line separator", "a\u2028b"},
		{"a NUL", "a\x00"},
		{"a delete character", "a\x7f"},
		{"a control character of the second set", "a\u0085b\u0090"},
		{"an at sign", "user@example.org"},
		{"a URL", "https://example.org"},
		{"a path", "example.org/a"},
		{"a port", "example.org:443"},
		{"an IPv6 address", "[::1]"},
		{"a full-width at sign", "user＠example.org"},
		{"a small at sign", "user﹫example.org"},
		{"a full-width solidus", "example.org／a"},
		{"a full-width colon", "example.org：443"},
		{"a sign that stands for a solidus", "℅.example"},
		{"a full-width at sign where IDNA has no form", "a＠1א"},
		{"only characters that are dropped", "\u00ad\u200b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if form, problem := Domain(c.in); form != "" || problem == nil {
				t.Errorf("Domain(%q) = %q, %q; want a problem", c.in, form, problem)
			}
		})
	}
}

func TestDomainOfEveryCharacterKeepsItsPromises(t *testing.T) {
	for r := range characters {
		checkDomain(t, "a"+string(r)+"b.example")
	}
}

func FuzzDomain(f *testing.F) {
	for _, s := range []string{
		"", "Example.org", "bücher.example", "例え。テスト", "xn--bcher-kva", "xn--", "xn--a", "xn--.ü", "a＠b", "℀", "\u00ad",
		"¨", "İ", "K",
		"1א", "a\u200db", "ꭰ\u200d", "Ꭰ", "\xff", "..", "ﷺ", "ü.", "xn--\u00e9", "≯", "⒈com", "faß", "ǅ\u200d",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 2000 {
			return // callers bound the length; the encoding's effort grows with its square
		}
		checkDomain(t, s)
	})
}

// checkDomain checks what Domain promises for any value.
func checkDomain(t *testing.T, s string) {
	t.Helper()
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '@' || r == '/' || r == ':'
	}
	form, problem := Domain(s)
	if (form == "") != (problem != nil) {
		t.Errorf("Domain(%+q) = %+q, %q", s, form, problem)
	}
	if problem != nil {
		// Only soft hyphens and their like vanish, so a letter or digit is never "nothing".
		if !strings.ContainsFunc(s, bad) && !strings.ContainsAny(norm.NFKC.String(s), "@/:") &&
			(problem != Empty || strings.ContainsFunc(s, unicode.IsLetter)) {
			t.Errorf("Domain(%+q) refuses without a reason: %s", s, problem)
		}
		return
	}
	if again, problem := Domain(form); again != form || problem != nil {
		t.Errorf("Domain(%+q) = %+q, whose form is %+q, %q", s, form, again, problem)
	}
	if strings.ContainsFunc(s, bad) || strings.ContainsFunc(form, bad) || strings.ContainsAny(NameKey(form), "@/:") {
		t.Errorf("Domain(%+q) = %+q has characters that it refuses", s, form)
	}
	if form != strings.ToLower(form) {
		t.Errorf("Domain(%+q) = %+q is not in lower case", s, form)
	}
	if isASCII(s) && form != strings.ToLower(s) {
		t.Errorf("Domain(%+q) = %+q changes ASCII", s, form)
	}
}

func TestDomainLabel(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"umlauts lose their dots", "Überlingen GmbH", "uberlingen-gmbh"},
		{"sharp s is two letters", "Großbäckerei Weiß", "grossbackerei-weiss"},
		{"letters that have no accent to lose are spelled", "Ærø Łódź Đakovo Þór", "aero-lodz-dakovo-thor"},
		{"an accent on such a letter comes off", "Ǿ Ǽ", "o-ae"},
		{"full-width letters and ligatures come apart", "ＡＣＭＥ ﬁsh", "acme-fish"},
		{"runs of other characters become one hyphen", "A & B -- C, Inc.", "a-b-c-inc"},
		{"hyphens at the ends go", "  --Acme!  ", "acme"},
		{"digits stay", "3M 2.0", "3m-2-0"},
		{"an A-label cannot arise", "xn--bcher-kva", "xn-bcher-kva"},
		{"nothing is org", "", "org"},
		{"nothing left is org", "株式会社", "org"},
		{"only marks is org", "\u0301", "org"},
		{"a part in another script becomes a hyphen", "Foo 株式会社 Bar", "foo-bar"},
		{"octets that are not UTF-8 become a hyphen", "a\xffb", "a-b"},
		{"a long name is cut", strings.Repeat("x", 60), strings.Repeat("x", 50)},
		{"a name of just the length stays", strings.Repeat("x", 50), strings.Repeat("x", 50)},
		{"a hyphen at the cut goes", strings.Repeat("x", 49) + " yy", strings.Repeat("x", 49)},
		{"a letter that no longer fits behind its hyphen goes with it", strings.Repeat("x", 48) + " yy",
			strings.Repeat("x", 48) + "-y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DomainLabel(c.in); got != c.want {
				t.Errorf("DomainLabel(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

var label = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func FuzzDomainLabel(f *testing.F) {
	for _, s := range []string{"", "Überlingen GmbH", strings.Repeat("x", 49) + " yy", "株式会社", "\xff", "ǰ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := DomainLabel(s)
		if !label.MatchString(got) || len(got) > 50 {
			t.Errorf("DomainLabel(%+q) = %q", s, got)
		}
		if again := DomainLabel(got); again != got {
			t.Errorf("DomainLabel(%+q) = %q, whose label is %q", s, got, again)
		}
		if form, problem := Domain(got); form != got || problem != nil {
			t.Errorf("Domain(%q) = %q, %q", got, form, problem)
		}
	})
}
