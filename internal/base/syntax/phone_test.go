package syntax

import (
	"regexp"
	"strings"
	"testing"
)

func TestPhoneAccepts(t *testing.T) {
	for _, c := range []struct{ name, in, normal string }{
		{"digits", "+41315550123", "+41315550123"},
		{"one digit", "+1", "+1"},
		{"every separator", "+1-(201).555-0123", "+12015550123"},
		{"separators before the first digit", "+-.()1", "+1"},
		{"separators at the end", "+1-.()", "+1"},
		{"an extension", "+1-201-555-0123;ext=12", "+12015550123"},
		{"an extension with separators", "+1;ext=1-2.(3)", "+1"},
		{"an extension in capitals", "+1;EXT=12", "+1"},
		{"an ISDN subaddress", "+1;isub=a1/?:@&=+$,-_.!~*'()%41", "+1"},
		{"a parameter without a value", "+1;x-private", "+1"},
		{"a parameter with every character", "+1;p-1=[]/:&+$aZ9-_.!~*'()%4f%FF", "+1"},
		{"several parameters", "+358-555-1234567;isub=12;ext=3;postd=pp22", "+3585551234567"},
		{"very many digits", "+" + strings.Repeat("1", 300), "+" + strings.Repeat("1", 300)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if normal, problem := Phone(c.in); normal != c.normal || problem != nil {
				t.Errorf("Phone(%q) = %q, %q; want %q", c.in, normal, problem, c.normal)
			}
		})
	}
}

func TestPhoneRefuses(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"nothing", ""},
		{"only a plus sign", "+"},
		{"only separators", "+-.()"},
		{"a local number", "0315550123"},
		{"two plus signs", "++1"},
		{"a plus sign at the end", "1+"},
		{"a space inside", "+41 31 555 01 23"},
		{"a space before", " +41"},
		{"a space after", "+41 "},
		{"a letter", "+1800FLOWERS"},
		{"a slash", "+41/31"},
		{"a hexadecimal digit of a local number", "+A1"},
		{"a tel URI", "tel:+41315550123"},
		{"a full-width digit", "+４1"},
		{"an Arabic digit", "+٤"},
		{"a full-width plus sign", "＋41"},
		{"a NUL", "+1\x00"},
		{"a line feed after", "+1\n"},
		{"a semicolon with nothing after it", "+1;"},
		{"an empty parameter in the middle", "+1;;ext=1"},
		{"a parameter without a name", "+1;=1"},
		{"a parameter without its value", "+1;a="},
		{"a name with an underscore", "+1;a_b=1"},
		{"a value with an equals sign", "+1;a=b=c"},
		{"a value with a space", "+1;a=b c"},
		{"a value with a quote", `+1;a="b"`},
		{"a value with eight-bit characters", "+1;a=ä"},
		{"a percent sign alone", "+1;a=%"},
		{"a percent sign with one digit", "+1;a=%4"},
		{"a percent sign without hexadecimal digits", "+1;a=%zz"},
		{"an extension without a value", "+1;ext"},
		{"an extension with nothing in it", "+1;ext="},
		{"an extension with letters", "+1;ext=abc"},
		{"a subaddress without a value", "+1;isub"},
		{"a subaddress with brackets", "+1;isub=[1]"},
		{"parameters without a number", "+;ext=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if normal, problem := Phone(c.in); normal != "" || problem == nil {
				t.Errorf("Phone(%q) = %q, %q; want a problem", c.in, normal, problem)
			}
		})
	}
}

var (
	normalPhone = regexp.MustCompile(`^\+[0-9]+$`)

	// globalNumber is the ABNF of RFC 3966 written down once more, ambiguities and all.
	globalNumber = regexp.MustCompile(`^\+[-.()0-9]*[0-9][-.()0-9]*` +
		`(;[-A-Za-z0-9]+(=([]\[/:&+$A-Za-z0-9\-_.!~*'()]|%[0-9A-Fa-f]{2})+)?` +
		`|;(?i:ext)=[-.()0-9]+` +
		`|;(?i:isub)=([;/?:@&=+$,A-Za-z0-9\-_.!~*'()]|%[0-9A-Fa-f]{2})+)*$`)

	// special finds the parameters for which Phone is stricter than the ABNF, which lets them pass as unknown ones.
	special = regexp.MustCompile(`(?i);(ext|isub)(=|;|$)`)
)

func FuzzPhone(f *testing.F) {
	for _, s := range []string{
		"", "+1", "+", "+1-(201).555-0123;ext=12", "+1;isub=1;x", "+1;a=%41", "+1;a=[]", "+1 2", "tel:+1", "+1;",
		"+1;ISUB=;", "+٤",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		normal, problem := Phone(s)
		grammatical := globalNumber.MatchString(s)
		if problem != nil {
			if normal != "" {
				t.Errorf("Phone(%q) = %q with the problem %q", s, normal, problem)
			}
			if grammatical && !special.MatchString(s) {
				t.Errorf("Phone(%q) refuses a global-number: %s", s, problem)
			}
			return
		}
		if !grammatical {
			t.Errorf("Phone(%q) accepts what is not a global-number", s)
		}
		if !normalPhone.MatchString(normal) {
			t.Errorf("Phone(%q) = %q", s, normal)
		}
		if again, problem := Phone(normal); again != normal || problem != nil {
			t.Errorf("Phone(%q) = %q, whose normal form is %q, %q", s, normal, again, problem)
		}
		number, _, _ := strings.Cut(s, ";")
		if bare := "+" + strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return r
			}
			return -1
		}, number); bare != normal {
			t.Errorf("Phone(%q) = %q, want %q", s, normal, bare)
		}
	})
}
