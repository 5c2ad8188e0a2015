package secret

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// Tokens computed by an independent program.
const (
	goldenSession = "sgn_ses_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3A3UNv"
	goldenPAT     = "sgn_pat_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp11wIwfP"
	goldenZero    = "sgn_pat_00000000000000000000000000000000000000000003YoJNX"
)

func TestTokensHaveTheDocumentedForm(t *testing.T) {
	var rising, ones, zeros [32]byte
	for i := range rising {
		rising[i], ones[i] = byte(i), 0xff
	}
	tests := map[string]struct {
		kind   TokenKind
		random [32]byte
		token  string
		hash   string
	}{
		"a session": {Session, rising, goldenSession,
			"73369d246bb80549d5c2324c4b69338a84e6e1661d473a410db92fdf360eb58d"},
		"the greatest random part": {PAT, ones, goldenPAT,
			"304a654981a9d2e6bdb44a03b22b25ce6e103f936cb8725d19df25a9526c6075"},
		"the least random part": {PAT, zeros, goldenZero,
			"9ed135eba77a9864739c9a00b3a5ce1ed4b7cbe0806ddce815239840c2f56470"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := encodeToken(test.kind, test.random); string(got[:]) != test.token {
				t.Errorf("got %s, want %s", got, test.token)
			}
			kind, hash, ok := ParseToken(test.token)
			if kind != test.kind || hex.EncodeToString(hash) != test.hash || !ok {
				t.Errorf("parsed as %s, %x, %v", kind, hash, ok)
			}
		})
	}
}

func TestNewTokensParseToTheirKindAndHash(t *testing.T) {
	seen := map[string]bool{}
	for _, want := range []TokenKind{Session, PAT, Client} {
		for range 200 {
			token, wantHash := NewToken(want)
			kind, hash, ok := ParseToken(token)
			if kind != want || !bytes.Equal(hash, wantHash) || !ok {
				t.Fatalf("%s: got %s, %x, %v", token, kind, hash, ok)
			}
			if seen[token] {
				t.Fatal("the same token twice")
			}
			seen[token] = true
		}
	}
}

func TestNewTokenPanicsForAnUnknownKind(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not")
		}
	}()
	NewToken("xyz")
}

func TestMangledTokensAreNotTokens(t *testing.T) {
	// with ends head in a checksum that is right.
	with := func(head string) string {
		sum := checksum([]byte(head))
		return head + string(sum[:])
	}
	tests := map[string]string{
		"nothing":                            "",
		"the prefix alone":                   "sgn_ses_",
		"a character too few":                goldenSession[:len(goldenSession)-1],
		"a character too many":               goldenSession + "0",
		"a newline at the end":               goldenSession + "\n",
		"a space in front":                   " " + goldenSession[:len(goldenSession)-1],
		"another kind under an old checksum": "sgn_pat_" + goldenSession[8:],
		"an unknown kind":                    with("sgn_xyz_" + goldenSession[8:51]),
		"a kind in capitals":                 with("sgn_SES_" + goldenSession[8:51]),
		"another prefix":                     with("xyz_ses_" + goldenSession[8:51]),
		"another separator":                  with("sgn_ses-" + goldenSession[8:51]),
		"a character outside the alphabet":   with("sgn_ses_" + goldenSession[8:50] + "-"),
		"a zero byte":                        with("sgn_ses_" + goldenSession[8:50] + "\x00"),
		"letters in the other case":          "sgn_ses_" + strings.ToLower(goldenSession[8:]),
		"two characters exchanged":           goldenSession[:10] + "Ua" + goldenSession[12:],
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			if kind, hash, ok := ParseToken(token); kind != "" || hash != nil || ok {
				t.Errorf("%q parsed as %s", token, kind)
			}
		})
	}
}

func FuzzParseToken(f *testing.F) {
	for _, token := range []string{goldenSession, goldenPAT, goldenZero, "", "sgn_ses_", goldenSession + "0"} {
		f.Add(token, 8, byte(1))
	}
	f.Fuzz(func(t *testing.T, s string, at int, change byte) {
		kind, hash, ok := ParseToken(s)
		if !ok {
			if kind != "" || hash != nil {
				t.Fatalf("%q is refused but has a kind or a hash", s)
			}
			return
		}
		sum := sha256.Sum256([]byte(s))
		if len(s) != 57 || !strings.HasPrefix(s, "sgn_"+string(kind)+"_") || !bytes.Equal(hash, sum[:]) {
			t.Fatalf("%q parsed as %s, %x", s, kind, hash)
		}
		if at < 0 || at >= len(s) || change == 0 {
			return
		}
		mangled := []byte(s)
		mangled[at] ^= change
		if _, _, ok := ParseToken(string(mangled)); ok {
			t.Fatalf("%q and %q are both tokens", s, mangled)
		}
	})
}

func BenchmarkNewToken(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewToken(Session)
	}
}

func BenchmarkParseToken(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := ParseToken(goldenSession); !ok {
			b.Fatal("not a token")
		}
	}
}
