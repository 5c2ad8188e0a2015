package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

func claims(t testing.TB, text string) tokenClaims {
	t.Helper()
	c, err := readClaims([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNamesAreComparedExactly(t *testing.T) {
	c := claims(t, `{"SUB":"a","Email_Verified":true}`)
	if _, err := c.Subject(); err == nil || c.True("email_verified") {
		t.Error("a name of another case counts")
	}
}

func TestSubjectsAreReadExactly(t *testing.T) {
	for text, want := range map[string]struct{ text, number string }{
		`1000`: {"", "1000"}, `1e3`: {"", ""}, `1000.0`: {"", ""}, `1E3`: {"", ""}, `-0`: {"", ""}, `-7`: {"", "-7"},
		`0`: {"", "0"}, `9007199254740993`: {"", "9007199254740993"},
		`"1000"`: {"1000", "1000"}, `" a "`: {" a ", " a "}, `"\u00e4"`: {"ä", "ä"}, `"\ud800"`: {"", ""},
		`"�"`: {"", ""}, `""`: {"", ""}, `"a\u0000"`: {"", ""}, `true`: {"", ""}, `null`: {"", ""}, `{}`: {"", ""},
	} {
		c := claims(t, `{"sub":`+text+`}`)
		if got, _ := c.Subject(); got != want.text {
			t.Errorf("%s is read as %q, want %q", text, got, want.text)
		}
		if got, _ := c.SubjectIn("sub", true); got != want.number {
			t.Errorf("%s, where numbers count, is read as %q, want %q", text, got, want.number)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{`1767323045`: 1767323045, `1767323045.9`: 1767323045, `"1767323045"`: 0,
		`null`: 0, `-1`: 0, `0`: 0, `1e30`: 0, `true`: 0} {
		at, ok := claims(t, `{"exp":`+text+`}`).Time("exp")
		if ok != (want != 0) || ok && at.Unix() != want {
			t.Errorf("%s is read as %v, %t", text, at, ok)
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add("eyJhbGciOiJFUzI1NiJ9.e30.AAAA")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("a.b.c.d.e")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := readToken(text, signatureAlgorithms)
		if err != nil {
			if failed, ok := err.(*failure.Failure); !ok || failed.Hint == "" {
				t.Errorf("got %v", err)
			}
			return
		}
		if token.Verify(nil) == nil || token.Algorithm == "" || token.Algorithm == "none" || token.Algorithm[0] == 'H' {
			t.Errorf("%q is taken", text)
		}
		token.Digest()
	})
}

func FuzzSubject(f *testing.F) {
	for _, seed := range []string{`1`, `1e3`, `"a"`, `-0`, `1.0`, `"\ud800"`, ` 5 `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readClaims([]byte(`{"id":` + text + `}`))
		if err != nil {
			return
		}
		got, err := c.SubjectIn("id", true)
		if err != nil {
			return
		}
		// Whatever is read stands for itself alone: written as a text, or as that number, it is the same again.
		again, _ := json.Marshal(got)
		if second, err := claims(t, `{"id":`+string(again)+`}`).SubjectIn("id", true); err != nil || second != got {
			t.Errorf("%q reads as %q, and that as %q, %v", text, got, second, err)
		}
	})
}

// An assertion may fit several rules. All keys together are tried a few times only.
func TestFewKeysAreTriedForOneToken(t *testing.T) {
	right, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	wrong, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: right}, nil)
	must(t, err)
	signed, err := signer.Sign([]byte(`{"iss":"x"}`))
	must(t, err)
	text, err := signed.CompactSerialize()
	must(t, err)
	token, err := readToken(text, signatureAlgorithms)
	must(t, err)
	for range mostTries {
		if token.Verify([]jose.JSONWebKey{{Key: &wrong.PublicKey}}) == nil {
			t.Fatal("another key has signed")
		}
	}
	if token.Verify([]jose.JSONWebKey{{Key: &right.PublicKey}}) == nil {
		t.Error("a key more was tried")
	}
}
