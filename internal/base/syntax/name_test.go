package syntax

import (
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestNameKey(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing stays nothing", "", ""},
		{"ASCII is lower-cased", "Ada.LOVELACE+1@[]^_`{|}~", "ada.lovelace+1@[]^_`{|}~"},
		{"white space and control characters stay", " a\tB\x00 ", " a\tb\x00 "},
		{"sharp s folds to two letters", "Straße", "strasse"},
		{"capital sharp s folds to two letters", "STRAẞE", "strasse"},
		{"a final sigma is a sigma", "ΟΔΥΣΣΕΎΣ Οδυσσεύς", "οδυσσεύσ οδυσσεύσ"},
		{"ligatures come apart", "ﬁsh", "fish"},
		{"full-width letters become narrow", "ＡｄＡ", "ada"},
		{"a no-break space is a space", "a\u00a0b", "a b"},
		{"accents are composed", "E\u0301A", "éa"},
		{"accents that cannot be composed are put in order", "x\u0301\u0323", "x\u0323\u0301"},
		{"a dotted capital I keeps its dot", "İ", "i\u0307"},
		{"a dotless i is a letter of its own", "ı", "ı"},
		{"the Kelvin sign is a k", "K", "k"},
		{"iota subscript becomes an iota", "ᾼ", "αι"},
		{"superscripts are digits", "x²", "x2"},
		{"Cherokee folds to capitals", "ꭰᏸ", "ᎠᏰ"},
		{"Cherokee capitals stay", "ᎠᏰ", "ᎠᏰ"},
		{"octets that are not UTF-8 become the replacement character", "a\xff\xfeB", "a\uFFFDb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NameKey(c.in); got != c.want {
				t.Errorf("NameKey(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestNameKeyOfEveryCharacterIsItsOwnKey(t *testing.T) {
	for r := range characters {
		for _, s := range []string{string(r), "x" + string(r) + "\u0301"} {
			key := NameKey(s)
			if again := NameKey(key); again != key {
				t.Errorf("NameKey(%+q) = %+q, whose key is %+q", s, key, again)
			}
		}
	}
}

func TestNameKeyIsTheSameInEveryCase(t *testing.T) {
	for r := range characters {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if a, b := NameKey(string(r)), NameKey(string(other)); a != b {
				t.Errorf("%+q has the key %+q, %+q has %+q", r, a, other, b)
			}
		}
	}
}

// characters yields every character worth trying alone: those that are assigned, without the large uniform blocks.
func characters(yield func(rune) bool) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf) ||
			unicode.In(r, unicode.Han, unicode.Hangul) && r%64 != 0 {
			continue
		}
		if !yield(r) {
			return
		}
	}
}

func TestNameKeyOfManyAccentsIsItsOwnKey(t *testing.T) {
	for _, mark := range []string{"\u0301", "\u0345", "\u0344", "\u0323\u0301", "\u0345\u0301", "\u0f73"} {
		for n := range 100 {
			for _, base := range []string{"", "a", "α", "ΐ", "ǰ", "ß"} {
				key := NameKey(base + strings.Repeat(mark, n))
				if again := NameKey(key); again != key {
					t.Fatalf("%d times %+q on %q: key %+q has the key %+q", n, mark, base, key, again)
				}
			}
		}
	}
}

func TestNameKeyIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if got := NameKey("ÜBERLINGEN Straße"); got != "überlingen strasse" {
					t.Errorf("NameKey = %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzNameKey(f *testing.F) {
	for _, s := range []string{"", "Ada", "Straße", "ᾼ\u0301", "İ", "ﬁ", "\xff", "a\u0345\u0301", "ﷺ", "가", "ｶﾞ",
		"\u0344\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := NameKey(s)
		if again := NameKey(key); again != key {
			t.Errorf("NameKey(%+q) = %+q, whose key is %+q", s, key, again)
		}
		if !utf8.ValidString(key) || !norm.NFKC.IsNormalString(key) {
			t.Errorf("NameKey(%+q) = %+q is not UTF-8 in NFKC", s, key)
		}
		if (key == "") != (s == "") {
			t.Errorf("NameKey(%+q) = %+q", s, key)
		}
		if strings.ContainsFunc(key, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
			t.Errorf("NameKey(%+q) = %+q has capitals", s, key)
		}
		// The fast path must agree with the long one.
		if slow := norm.NFKC.String(fold(norm.NFKC.String(strings.ToValidUTF8(s, "\uFFFD")))); key != slow {
			t.Errorf("NameKey(%+q) = %+q, want %+q", s, key, slow)
		}
		// The encoding of accents makes no difference.
		if valid := strings.ToValidUTF8(s,
			"\uFFFD"); NameKey(norm.NFC.String(valid)) != NameKey(norm.NFD.String(valid)) {
			t.Errorf("NFC and NFD of %+q have different keys", s)
		}
	})
}
