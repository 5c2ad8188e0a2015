package secret

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/zitadel/passwap/bcrypt"
	"github.com/zitadel/passwap/verifier"
)

// Hashes of "correct horse" made by other implementations: OpenSSL, libxcrypt and Python.
const (
	horse = "correct horse"

	importedArgon2Current  = "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$rk2Mi3E4dgRMg0fHaYaptWVZRKqs//6b6k3/nntqGJk"
	importedArgon2Weak     = "$argon2id$v=19$m=64,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$dPtrHTEawLtMiR9+/XloAkXZ+EtyrY+bvmHIbiufhk0"
	importedArgon2Strong   = "$argon2id$v=19$m=32768,t=2,p=2$MDEyMzQ1Njc4OWFiY2RlZg$3USF9LeclD7C+KwxrTXtDaw4jshvDYog596tnqfjD2I"
	importedArgon2OnePass  = "$argon2id$v=19$m=65536,t=1,p=4$MDEyMzQ1Njc4OWFiY2RlZg$TRFyy/n6xyJbBmoW/dgv9uf5eLdVWC0aoKP7Bhl/f5I"
	importedBcrypt         = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
	importedScrypt         = "$scrypt$ln=4,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$OAkZqUBelG6VIYdTJfYSENL5OmZRxMa3GwXn5oFliTg"
	importedPBKDF2SHA1     = "$pbkdf2$1000$MDEyMzQ1Njc4OWFiY2RlZg$aUfE2vx5Q7zgbb0jx49AaNpXUQQ"
	importedPBKDF2SHA256   = "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg$cBg8D2DungRB9k76szThf5ehfyBz991ay6PT8Srwk4M"
	importedPBKDF2Padded   = "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg==$cBg8D2DungRB9k76szThf5ehfyBz991ay6PT8Srwk4M="
	importedPBKDF2SHA512   = "$pbkdf2-sha512$1000$MDEyMzQ1Njc4OWFiY2RlZg$OM0FAoIqCVK1sWtxDiffVlBejtLa.ks4TP71JiecwuSZCG8iLbnlIEPOMoVX.i2B2wkSxjQ8CRGR9OkNGuIPMQ"
	currentParametersStart = "$argon2id$v=19$m=19456,t=2,p=1$"
)

func TestEveryByteOfAPasswordCounts(t *testing.T) {
	h := NewHasher(0, 0)
	tests := map[string]struct{ password, other string }{
		"one character":               {"a", "b"},
		"72 characters of four bytes": {strings.Repeat("𝔰", 71) + "𝔵", strings.Repeat("𝔰", 71) + "𝔶"},
		"10,000 characters":           {strings.Repeat("long ", 2000), strings.Repeat("long ", 1999) + "long!"},
		"bytes that are not UTF-8":    {"\xff\xfe\x80", "\xff\xfe\x81"},
		"zero byte at the end":        {"secret\x00", "secret"},
		"zero byte in the middle":     {"a\x00b", "a\x00c"},
		"space at the end":            {"secret ", "secret"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			encoded, err := h.Hash(t.Context(), test.password)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(encoded, []byte(currentParametersStart)) {
				t.Errorf("the hash has other parameters: %s", encoded)
			}
			ok, upgraded, err := h.Verify(t.Context(), encoded, test.password)
			if !ok || upgraded != nil || err != nil {
				t.Errorf("the password itself: got %v, %s, %v", ok, upgraded, err)
			}
			ok, upgraded, err = h.Verify(t.Context(), encoded, test.other)
			if ok || upgraded != nil || err != nil {
				t.Errorf("the other password: got %v, %s, %v", ok, upgraded, err)
			}
		})
	}
}

func TestTheSamePasswordHashesDifferentlyEachTime(t *testing.T) {
	h := NewHasher(0, 0)
	one, _ := h.Hash(t.Context(), horse)
	two, _ := h.Hash(t.Context(), horse)
	if bytes.Equal(one, two) {
		t.Error("both hashes have the same salt")
	}
}

func TestImportedHashesVerifyAndAreReplacedWhenWeaker(t *testing.T) {
	h := NewHasher(0, 0)
	tests := map[string]struct {
		encoded string
		upgrade bool
	}{
		"argon2id of the current cost":          {importedArgon2Current, false},
		"argon2id of a lower cost":              {importedArgon2Weak, true},
		"argon2id of a higher cost":             {importedArgon2Strong, false},
		"argon2id of one pass over more memory": {importedArgon2OnePass, false},
		"bcrypt":                                {importedBcrypt, true},
		"scrypt":                                {importedScrypt, true},
		"PBKDF2 with SHA-1":                     {importedPBKDF2SHA1, true},
		"PBKDF2 with SHA-256":                   {importedPBKDF2SHA256, true},
		"PBKDF2 with SHA-256, padded":           {importedPBKDF2Padded, true},
		"PBKDF2 with SHA-512":                   {importedPBKDF2SHA512, true},
		"PBKDF2 in the PHC form": {strings.Replace(importedPBKDF2SHA256, "$1000$",
			"$i=1000,l=32$", 1), true},
		"PBKDF2 in the PHC form without length": {strings.Replace(importedPBKDF2SHA256, "$1000$",
			"$i=1000$", 1), true},
		"bcrypt under the name that PHP uses":    {"$2y" + importedBcrypt[3:], true},
		"bcrypt under the name that OpenBSD had": {"$2a" + importedBcrypt[3:], true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, wrong := range []string{horse[:len(horse)-1] + "f", horse + "\x00", horse + "\x00" + horse, ""} {
				ok, upgraded, err := h.Verify(t.Context(), []byte(test.encoded), wrong)
				if ok || upgraded != nil || err != nil {
					t.Errorf("wrong password %q: got %v, %s, %v", wrong, ok, upgraded, err)
				}
			}
			if problem := HashProblem(test.encoded); problem != "" {
				t.Errorf("it cannot be imported: it %s", problem)
			}
			ok, upgraded, err := h.Verify(t.Context(), []byte(test.encoded), horse)
			if !ok || err != nil || (upgraded != nil) != test.upgrade {
				t.Fatalf("right password: got %v, %s, %v", ok, upgraded, err)
			}
			if !test.upgrade {
				return
			}
			ok, again, err := h.Verify(t.Context(), upgraded, horse)
			if !ok || again != nil || err != nil {
				t.Errorf("the new hash: got %v, %s, %v", ok, again, err)
			}
		})
	}
}

// TestACheapHashTakesTheWorkOfOursToo: a wrong password for somebody who was imported takes no less than one for
// nobody.
func TestACheapHashTakesTheWorkOfOursToo(t *testing.T) {
	h := NewHasher(0, 0)
	var spent int
	argon2 := h.verifiers[algorithmArgon2]
	h.verifiers[algorithmArgon2] = verifier.VerifyFunc(func(encoded, password string) (verifier.Result, error) {
		if encoded == nothing {
			spent++
		}
		return argon2.Verify(encoded, password)
	})
	for encoded, want := range map[string]int{importedArgon2Weak: 1, importedBcrypt: 1, importedScrypt: 1,
		importedPBKDF2SHA1: 1, importedArgon2Current: 0} {
		spent = 0
		if ok, _, err := h.Verify(t.Context(), []byte(encoded), "wrong"); ok || err != nil {
			t.Fatal(ok, err)
		}
		if spent != want {
			t.Errorf("%s: the work of ours was done %d times, want %d", encoded, spent, want)
		}
	}
}

func TestBcryptDoesNotAcceptWhatItCutsOff(t *testing.T) {
	h := NewHasher(0, 0)
	password := strings.Repeat("x", 72)
	encoded, err := bcrypt.New(bcrypt.MinCost).Hash(password)
	if err != nil {
		t.Fatal(err)
	}
	// This is why the length is checked here. If it fails, the library has changed and the check may go.
	if result, _ := bcrypt.Verify(encoded, password+"y"); result != verifier.OK {
		t.Error("the library does not cut passwords off any more")
	}
	tests := map[string]struct {
		password string
		want     bool
	}{
		"72 bytes":                        {password, true},
		"72 bytes and another":            {password + "y", false},
		"72 bytes and a zero byte":        {password + "\x00", false},
		"72 bytes, the last one differs":  {password[:71] + "y", false},
		"72 bytes and 10,000 others":      {password + strings.Repeat("z", 10_000), false},
		"71 bytes, of which all the same": {password[:71], false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ok, upgraded, err := h.Verify(t.Context(), []byte(encoded), test.password)
			if ok != test.want || (upgraded != nil) != test.want || err != nil {
				t.Errorf("got %v, %s, %v", ok, upgraded, err)
			}
		})
	}
}

func TestHashesBeyondTheBoundsAreNotComputed(t *testing.T) {
	const salt, digest = "$MDEyMzQ1Njc4OWFiY2RlZg", "$rk2Mi3E4dgRMg0fHaYaptWVZRKqs//6b6k3/nntqGJk"
	tests := map[string]string{
		"nothing":                             "",
		"a plain password":                    horse,
		"an unknown algorithm":                "$1$salt$digest",
		"argon2d":                             "$argon2d$v=19$m=64,t=2,p=1" + salt + digest,
		"argon2 of an old version":            "$argon2id$v=16$m=64,t=2,p=1" + salt + digest,
		"argon2 with too much memory":         "$argon2id$v=19$m=262145,t=1,p=1" + salt + digest,
		"argon2 with too many passes":         "$argon2id$v=19$m=64,t=4294967295,p=1" + salt + digest,
		"argon2 with too much of both":        "$argon2id$v=19$m=262144,t=5,p=1" + salt + digest,
		"argon2 without a pass, which panics": "$argon2id$v=19$m=64,t=0,p=1" + salt + digest,
		"argon2 without a lane, which panics": "$argon2id$v=19$m=64,t=2,p=0" + salt + digest,
		"argon2 with too many lanes":          "$argon2id$v=19$m=64,t=2,p=17" + salt + digest,
		"argon2 with a number beyond 32 bits": "$argon2id$v=19$m=4294967360,t=2,p=1" + salt + digest,
		"argon2 with a signed number":         "$argon2id$v=19$m=+64,t=2,p=1" + salt + digest,
		"argon2 with an empty digest":         "$argon2id$v=19$m=64,t=2,p=1" + salt + "$",
		"argon2 with a digest of one byte":    "$argon2id$v=19$m=64,t=2,p=1" + salt + "$AA",
		"argon2 with a huge digest": "$argon2id$v=19$m=64,t=2,p=1" + salt + "$" +
			strings.Repeat("A", 400),
		"argon2 with a digest that is not base64": "$argon2id$v=19$m=64,t=2,p=1" + salt + "$" +
			strings.Repeat("!", 43),
		"argon2 with a field too many":             "$argon2id$v=19$m=64,t=2,p=1" + salt + digest + "$x",
		"argon2 with a field of one of the others": "$argon2id$v=19$ln=64,t=2,p=1" + salt + digest,
		"argon2 with a space":                      "$argon2id$v=19$m=64,t=2,p=1" + salt + " " + digest,
		"a hash of a megabyte":                     importedArgon2Weak + strings.Repeat("A", 1<<20),
		"bcrypt that takes hours":                  "$2b$31" + importedBcrypt[6:],
		"bcrypt that is cut off":                   importedBcrypt[:59],
		"bcrypt that is not base64":                importedBcrypt[:59] + "!",
		"bcrypt with a cost below the least":       "$2b$03" + importedBcrypt[6:],
		"scrypt with too much memory":              "$scrypt$ln=20,r=8,p=1" + salt + digest,
		"scrypt with a shift beyond the word":      "$scrypt$ln=64,r=8,p=1" + salt + digest,
		"scrypt with huge blocks":                  "$scrypt$ln=1,r=4294967295,p=1" + salt + digest,
		"scrypt with too many lanes":               "$scrypt$ln=4,r=8,p=17" + salt + digest,
		// 128 MiB, and 768 MiB beside them
		"scrypt with large blocks for a few lanes": "$scrypt$ln=1,r=524288,p=8" + salt + digest,
		"scrypt with a salt that is not base64":    "$scrypt$ln=4,r=8,p=1$!!!!" + digest,
		"scrypt with an empty digest":              "$scrypt$ln=4,r=8,p=1" + salt + "$",
		"PBKDF2 with too many rounds":              "$pbkdf2-sha256$4000001" + salt + digest,
		"PBKDF2 with too many rounds in all":       "$pbkdf2$2000001" + salt + digest,
		"PBKDF2 with no rounds":                    "$pbkdf2-sha256$0" + salt + digest,
		"PBKDF2 with an empty digest":              "$pbkdf2-sha256$1000" + salt + "$",
		"PBKDF2 with a padded empty digest":        "$pbkdf2-sha256$1000" + salt + "$" + strings.Repeat("=", 44),
		"PBKDF2 with two alphabets":                "$pbkdf2-sha256$1000$+.AA" + digest,
		"argon2 without a salt":                    "$argon2id$v=19$m=64,t=2,p=1$" + digest,
		"scrypt without a salt":                    "$scrypt$ln=4,r=8,p=1$" + digest,
		"PBKDF2 without a salt":                    "$pbkdf2-sha256$1000$" + digest,
		"PBKDF2 with a padded empty salt":          "$pbkdf2-sha256$1000$==" + digest,
		"PBKDF2 that names another length":         "$pbkdf2-sha256$i=1000,l=31" + salt + digest,
		"PBKDF2 with too many named rounds":        "$pbkdf2-sha256$i=4000001" + salt + digest,
		"PBKDF2 with MD5":                          "$pbkdf2-md5$1000" + salt + digest,
	}
	h := NewHasher(0, 0)
	var spent int
	h.verifiers[algorithmArgon2] = verifier.VerifyFunc(func(encoded, _ string) (verifier.Result, error) {
		if encoded != nothing {
			return verifier.Fail, errors.New("malformed " + encoded)
		}
		spent++
		return verifier.OK, nil
	})
	for name, encoded := range tests {
		t.Run(name, func(t *testing.T) {
			switch problem := HashProblem(encoded); {
			case problem == "":
				t.Error("it could be imported")
			case encoded != "" && strings.Contains(problem, encoded):
				t.Errorf("the problem quotes the hash: %s", problem)
			}
			spent = 0
			ok, upgraded, err := h.Verify(t.Context(), []byte(encoded), horse)
			if ok || upgraded != nil || !errors.Is(err, ErrUnusableHash) {
				t.Fatalf("got %v, %s, %v", ok, upgraded, err)
			}
			if spent != 1 {
				t.Error("it did not take the work of a wrong password")
			}
			if encoded != "" && strings.Contains(err.Error(), encoded) {
				t.Error("the error quotes the hash")
			}
		})
	}
}

func TestVerifyNothingDoesTheWorkOfAWrongPassword(t *testing.T) {
	if m, problem := inspect(nothing); m != (measured{algorithm: algorithmArgon2, current: true}) || problem != "" {
		t.Errorf("the hash it compares with is not of the current cost: %s", nothing)
	}
	h := NewHasher(0, 0)
	var compared []string
	argon2 := h.verifiers[algorithmArgon2]
	h.verifiers[algorithmArgon2] = verifier.VerifyFunc(func(encoded, password string) (verifier.Result, error) {
		result, err := argon2.Verify(encoded, password)
		if result != verifier.Fail || err != nil {
			t.Errorf("got %v, %v", result, err)
		}
		compared = append(compared, encoded, password)
		return result, err
	})
	if err := h.VerifyNothing(t.Context(), horse); err != nil {
		t.Fatal(err)
	}
	if len(compared) != 2 || compared[0] != nothing || compared[1] != horse {
		t.Errorf("compared %q", compared)
	}
}

func FuzzInspect(f *testing.F) {
	for _, encoded := range []string{importedArgon2Weak, importedBcrypt, importedScrypt, importedPBKDF2SHA1,
		"$pbkdf2-sha256$i=1,l=32$A$rk2Mi3E4dgRMg0fHaYaptWVZRKqs//6b6k3/nntqGJk", ""} {
		f.Add(encoded)
	}
	h := NewHasher(0, 0)
	f.Fuzz(func(t *testing.T, encoded string) {
		m, problem := inspect(encoded)
		if problem != "" {
			return
		}
		if m.current && m.algorithm != algorithmArgon2 {
			t.Errorf("%s is called current", m.algorithm)
		}
		if h.verifiers[m.algorithm] == nil {
			t.Fatalf("nothing verifies %s", m.algorithm)
		}
		if m.costly {
			return
		}
		if _, _, err := h.Verify(t.Context(), []byte(encoded), horse); err != nil {
			t.Errorf("%s passes as a hash, and nothing could ever match it", encoded)
		}
	})
}

func TestNewPasswordIsEasyToTypeAndHardToGuess(t *testing.T) {
	if bits := passwordLength * math.Log2(float64(len(passwordAlphabet))); bits < 100 {
		t.Errorf("only %.0f bits", bits)
	}
	seen, used := map[string]bool{}, map[rune]bool{}
	for range 1000 {
		password := NewPassword()
		if len(password) != 20 {
			t.Fatalf("%d characters", len(password))
		}
		if strings.ContainsAny(password, "0Oo1lI") {
			t.Fatalf("%s has a character that is mistaken for another", password)
		}
		if seen[password] {
			t.Fatal("the same password twice")
		}
		seen[password] = true
		for _, c := range password {
			used[c] = true
		}
	}
	if len(used) != len(passwordAlphabet) {
		t.Errorf("%d of %d characters are used", len(used), len(passwordAlphabet))
	}
}

func BenchmarkHash(b *testing.B) {
	h := NewHasher(0, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Hash(b.Context(), horse); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNewCodeIsReadInAnyCase(t *testing.T) {
	seen := map[rune]bool{}
	codes := map[string]bool{}
	const many = 20_000
	for range many {
		code := NewCode()
		if len(code) != 8 || code != strings.ToUpper(code) || strings.ContainsAny(code, "01IO") {
			t.Fatalf("made %q", code)
		}
		for _, r := range code {
			seen[r] = true
		}
		codes[code] = true
	}
	// There are 2^40: two are the same in one of 5,000 runs, and three times two of them in none.
	if len(codes) < many-2 || len(seen) != 32 {
		t.Errorf("%d different codes out of %d different characters", len(codes), len(seen))
	}
}
