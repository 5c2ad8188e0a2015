package syntax

import (
	"net/mail"
	"strings"
	"testing"
)

func TestEmailAccepts(t *testing.T) {
	for _, c := range []struct{ name, in, key string }{
		{"one letter on each side", "a@b", "a@b"},
		{"dots, a tag and a subdomain", "a.b+c@sub.example.org", "a.b+c@sub.example.org"},
		{"capitals, folded in the key", "Ada.Lovelace@Example.ORG", "ada.lovelace@example.org"},
		{"every character of an atom", "!#$%&'*+-/=?^_`{|}~09azAZ@x", "!#$%&'*+-/=?^_`{|}~09azaz@x"},
		{"a quoted string with a space", `"john doe"@example.com`, `"john doe"@example.com`},
		{"a quoted string with special characters", `"a@b,c;<d>(e)[f]..:"@x`, `"a@b,c;<d>(e)[f]..:"@x`},
		{"a quoted quote and a quoted backslash", `"a\"B\\"@x`, `"a\"b\\"@x`},
		{"an empty quoted string", `""@x`, `""@x`},
		{"an IPv4 literal", "user@[192.0.2.1]", "user@[192.0.2.1]"},
		{"an IPv6 literal", "user@[IPv6:2001:DB8::1]", "user@[ipv6:2001:db8::1]"},
		{"a literal with quoted brackets", `user@[\[\]]`, `user@[\[\]]`},
		{"a domain with an underscore", "a@b_c", "a@b_c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if key, problem := Email(c.in); key != c.key || problem != nil {
				t.Errorf("Email(%q) = %q, %q; want the key %q", c.in, key, problem, c.key)
			}
		})
	}
}

func TestEmailRefuses(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"nothing", ""},
		{"only an at sign", "@"},
		{"no at sign", "example.org"},
		{"no local part", "@example.org"},
		{"no domain", "a@"},
		{"two at signs", "a@b@c"},
		{"a display name", "Ada <ada@example.org>"},
		{"a quoted display name", `"Ada" <ada@example.org>`},
		{"angle brackets", "<ada@example.org>"},
		{"a list", "a@example.org,b@example.org"},
		{"a list with a space", "a@example.org, b@example.org"},
		{"a group", "all:a@example.org;"},
		{"a comment in the local part", "a(b)@example.org"},
		{"a comment after the domain", "a@example.org(b)"},
		{"a space before", " a@example.org"},
		{"a space after", "a@example.org "},
		{"a space around the at sign", "a @ example.org"},
		{"a tab", "a\t@example.org"},
		{"a line feed after", "a@example.org\n"},
		{"a folded line in a quoted string", "\"a\r\n b\"@example.org"},
		{"a tab in a quoted string", "\"a\tb\"@example.org"},
		{"a quoted line feed", "\"a\\\nb\"@example.org"},
		{"a leading dot", ".a@example.org"},
		{"a trailing dot in the local part", "a.@example.org"},
		{"two dots in the local part", "a..b@example.org"},
		{"a leading dot in the domain", "a@.example.org"},
		{"a trailing dot in the domain", "a@example.org."},
		{"two dots in the domain", "a@example..org"},
		{"a quoted word between dots, which is obsolete", `a."b".c@example.org`},
		{"text after the quoted string", `"a"b@example.org`},
		{"a quoted string that does not end", `"a@example.org`},
		{"a quoted string that ends in a backslash", `"a\`},
		{"a quoted domain", `a@"example.org"`},
		{"a literal that does not end", "a@[192.0.2.1"},
		{"a literal that does not begin", "a@192.0.2.1]"},
		{"a literal with text after it", "a@[192.0.2.1]b"},
		{"a literal with a space", "a@[192.0.2.1 ]"},
		{"a literal within a literal", "a@[[1]]"},
		{"a literal that ends in a backslash", `a@[\`},
		{"a literal as the local part", "[192.0.2.1]@a"},
		{"eight-bit characters in the local part", "ä@example.org"},
		{"eight-bit characters in the domain", "a@bücher.example"},
		{"eight-bit characters in a quoted string", `"ä"@example.org`},
		{"a full-width at sign", "a＠example.org"},
		{"octets that are not UTF-8", "a\xff@example.org"},
		{"a NUL", "a\x00@example.org"},
		{"a NUL in a quoted string", "\"\x00\"@example.org"},
		{"a quoted NUL", "\"\\\x00\"@example.org"},
		{"a delete character", "a@b\x7f"},
		{"a control character in a literal", "a@[\x01]"},
		{"a mailto address", "mailto:a@example.org"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if key, problem := Email(c.in); key != "" || problem == nil {
				t.Errorf("Email(%q) = %q, %q; want a problem", c.in, key, problem)
			}
		})
	}
}

func FuzzEmail(f *testing.F) {
	for _, s := range []string{
		"", "a@b", "A.b+c@sub.example.org", `"john doe"@example.com`, "user@[192.0.2.1]", `"a\"b"@x`, `""@x`,
		"a@[IPv6:::1]",
		"Ada <a@b>", "a@b,c@d", "g:a@b;", "a(b)@c", "a@b.", `a."b"@c`, "a@[\\]]", "\"\t\"@b", "ü@b", " a@b", "a@b\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, problem := Email(s)
		address, err := mail.ParseAddress(s)
		if problem != nil {
			if key != "" {
				t.Errorf("Email(%q) = %q with the problem %q", s, key, problem)
			}
			// What the standard library reads and would write again just so is an addr-spec.
			if err == nil && address.String() == "<"+s+">" && every(s, isPrintable) {
				t.Errorf("Email(%q) refuses what net/mail writes", s)
			}
			return
		}
		if again, problem := Email(key); again != key || problem != nil {
			t.Errorf("Email(%q) = %q, whose key is %q, %q", s, key, again, problem)
		}
		if upper, problem := Email(strings.ToUpper(s)); upper != key || problem != nil {
			t.Errorf("Email(%q) = %q, in capitals %q, %q", s, key, upper, problem)
		}
		if !strings.EqualFold(s, key) || !every(s, isPrintable) {
			t.Errorf("Email(%q) = %q", s, key)
		}
		for _, more := range []string{s + "," + s, "<" + s + ">", s + " ", " " + s, s + ".", s + "@b", s + "\n"} {
			if _, problem := Email(more); problem == nil {
				t.Errorf("Email accepts %q and %q", s, more)
			}
		}
		if err != nil {
			return // net/mail wants more than the grammar, such as an IP address in a literal
		}
		n := localPart(s)
		if want := unquoted(s[:n]) + s[n:]; address.Address != want || address.Name != "" {
			t.Errorf("net/mail reads %q as %q <%s>, want <%s>", s, address.Name, address.Address, want)
		}
	})
}

// unquoted takes the quotes off a local part.
func unquoted(local string) string {
	if local[0] != '"' {
		return local
	}
	var b strings.Builder
	for i := 1; i < len(local)-1; i++ {
		if local[i] == '\\' {
			i++
		}
		b.WriteByte(local[i])
	}
	return b.String()
}
