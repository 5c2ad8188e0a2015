package syntax

import (
	"testing"

	"golang.org/x/text/language"
)

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a language", "de", "de"},
		{"a language with a region", "de-CH", "de-CH"},
		{"any case", "DE-ch", "de-CH"},
		{"a script", "sr-Latn-RS", "sr-Latn-RS"},
		{"three letters", "gsw", "gsw"},
		{"a registered tag", "i-klingon", "tlh"},
		{"the undetermined language", "und", "und"},
		{"an unknown variant is left out", "de-abcdef", "de"},
		{"nothing cannot be read", "", ""},
		{"an unknown language cannot be read", "zz", ""},
		{"an unknown language with a region cannot be read", "zz-DE", ""},
		{"the English name of a language cannot be read", "English", ""},
		{"an underscore cannot be read", "de_CH", ""},
		{"a space cannot be read", "de CH", ""},
		{"a locale of POSIX cannot be read", "C", ""},
		{"a trailing hyphen cannot be read", "de-", ""},
		{"a doubled hyphen cannot be read", "de--CH", ""},
		{"a leading digit cannot be read", "1de", ""},
		{"a digit in the language cannot be read", "d3", ""},
		{"a quality cannot be read", "de;q=1", ""},
		{"letters beyond ASCII cannot be read", "dé", ""},
		{"a NUL cannot be read", "de\x00", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tag, ok := Language(c.in)
			if ok != (c.want != "") || ok && tag.String() != c.want || !ok && tag != language.Und {
				t.Errorf("Language(%q) = %v, %v; want %q", c.in, tag, ok, c.want)
			}
		})
	}
}

func FuzzLanguage(f *testing.F) {
	for _, s := range []string{"", "de-CH", "i-klingon", "en-u-co-phonebk", "x-a", "zz-DE", "de-XY-abcde"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tag, ok := Language(s)
		if !ok && tag != language.Und {
			t.Errorf("Language(%q) = %v, false", s, tag)
		}
		// A replaced subtag may have a replacement itself, so the tag need not come back as it was.
		if _, again := Language(tag.String()); ok && !again {
			t.Errorf("Language(%q) = %v, which cannot be read", s, tag)
		}
	})
}
