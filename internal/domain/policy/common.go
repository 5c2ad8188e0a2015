package policy

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/signet-idm/signet/internal/base/syntax"
)

// words are what people make passwords of: one a line, in the form of syntax.NameKey, in order.
//
//go:embed words.txt
var words string

var known = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.Lines(words) {
		set[strings.TrimSuffix(word, "\n")] = true
	}
	return set
})

// endings are what people add to a word that alone is not enough.
var endings = sync.OnceValue(func() []string {
	all := []string{"!", "!!", "!1", "#", "#1", "$", "*", ".", "?", "@", "@1", "@12", "@123", "@1234", "_",
		"_1", "_123", "-1",
		"0", "00", "000", "007", "01", "02", "03", "1", "1!", "10", "100", "101", "11", "111", "12", "12!", "123",
		"123!", "123#", "123$", "123.", "123@", "1234", "1234!", "12345", "123456",
		"1234567", "12345678", "123456789", "13", "2", "21", "22", "222", "23", "24", "3", "321", "33", "4", "42",
		"4321", "44", "5", "55", "6", "66", "666", "69", "7", "77", "777",
		"8", "88", "888", "9", "99", "999", "a", "abc", "s", "x", "z"}
	for year := 1940; year < 2040; year++ {
		digits := []byte{byte('0' + year/1000), byte('0' + year/100%10), byte('0' + year/10%10), byte('0' + year%10)}
		all = append(all, string(digits), string(digits)+"!", "@"+string(digits))
		if year >= 1970 {
			all = append(all, string(digits[2:]))
		}
	}
	return all
})

// lines are what fingers and children follow, in either direction.
var lines = []string{"012345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop[]", "qwertzuiopü", "azertyuiop",
	"asdfghjkl;'", "qsdfghjklm", "zxcvbnm,./", "yxcvbnm", "wxcvbn",
	"!@#$%^&*()_+", "!\"§$%&/()=", "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/",
	"1qazxsw23edcvfr4", "q1w2e3r4t5y6u7i8o9p0", "qazwsxedcrfvtgbyhnujmikolp", "zaq12wsxcde34rfvbgt56yhn",
	"qweasdzxc", "qweasd123", "123qweasdzxc", "147258369", "741852963", "789456123", "159357", "159753", "135792468",
	"13579", "24680", "112233445566778899", "121212121212", "123123123123", "123321", "12344321",
	"1234554321", "123454321",
	"aabbccddeeff", "a1b2c3d4e5f6", "1a2b3c4d5e", "abc123abc123", "123abc", "1234abcd", "abcd1234", "qwer1234",
	"1234qwer", "asdf1234", "zxcv1234", "qwe123", "123qwe123", "asd123", "zxc123", "qwerty123456", "123456qwerty",
	"abcabcabc", "xyzxyz"}

// Common tells whether a password is among those that are guessed first: a well-known word, spelled with digits and
// signs for letters or not, with one of the usual endings or not, twice in a row; the same character all over; a row of
// keys, letters or digits; a date. Upper and lower case are alike.
func Common(password string) bool {
	key := syntax.NameKey(password)
	if word(key) || line(key) || date(key) {
		return true
	}
	if half := key[:len(key)/2]; half+half == key && (word(half) || line(half)) {
		return true
	}
	return slices.ContainsFunc(endings(), func(ending string) bool {
		base, has := strings.CutSuffix(key, ending)
		return has && (word(base) || len(base) >= 3 && line(base))
	})
}

var (
	asI = strings.NewReplacer("@", "a", "4", "a", "0", "o", "1", "i", "!", "i", "3", "e", "$", "s", "5", "s", "7", "t")
	asL = strings.NewReplacer("@", "a", "4", "a", "0", "o", "1", "l", "!", "l", "3", "e", "$", "s", "5", "s", "7", "t")
)

func word(key string) bool {
	k := known()
	return k[key] || k[asI.Replace(key)] || k[asL.Replace(key)]
}

func line(key string) bool {
	runes := []rune(key)
	if len(runes) == 0 {
		return false
	}
	if strings.Count(key, string(runes[0])) == len(runes) {
		return true
	}
	slices.Reverse(runes)
	back := string(runes)
	return slices.ContainsFunc(lines,
		func(l string) bool { return strings.Contains(l, key) || strings.Contains(l, back) })
}

// date tells whether digits are a day: of six or eight, with or without a sign between them, in any order of day, month
// and year.
func date(key string) bool {
	digits := strings.NewReplacer(".", "", "-", "", "/", "").Replace(key)
	if strings.Trim(digits, "0123456789") != "" {
		return false
	}
	number := func(from, to int) (n int) {
		for _, c := range digits[from:to] {
			n = 10*n + int(c-'0')
		}
		return n
	}
	day := func(a, b int) bool { return a >= 1 && b >= 1 && min(a, b) <= 12 && max(a, b) <= 31 }
	year := func(y int) bool { return y >= 1930 && y < 2040 }
	switch len(digits) {
	case 6:
		return day(number(0, 2), number(2, 4)) || day(number(2, 4), number(4, 6))
	case 8:
		return year(number(4, 8)) && day(number(0, 2), number(2, 4)) ||
			year(number(0, 4)) && day(number(4, 6), number(6, 8))
	}
	return false
}
