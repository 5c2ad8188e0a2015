//go:build cost

package factor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

// Strangers send assertions, and everybody who is signed in sends new passkeys.
func TestNoPasskeyCostsMuchToRead(t *testing.T) {
	const longest = 64 << 10 // by the rules of the API, and for a page
	read := func(text string) {
		_, _ = ReadAssertion("assertion", text)
		_, _ = ReadNewPasskey(text)
	}
	costtest.Bounded(t, longest, read)
	// The same in every part of an answer that is well-formed around it, and parts that nest as CBOR.
	cbor := func(head byte) func(int) string {
		return func(size int) string { return strings.Repeat(string([]byte{head}), size) }
	}
	alphabets := append([]costtest.Alphabet{{Name: "nested arrays", Text: cbor(0x81)},
		{Name: "nested maps", Text: cbor(0xa1)}, {Name: "nested tags", Text: cbor(0xc1)},
		{Name: "an array that does not end", Text: cbor(0x9f)}}, costtest.Alphabets...)
	for _, part := range []string{"clientDataJSON", "authenticatorData", "attestationObject", "signature",
		"userHandle", "publicKey"} {
		for _, a := range alphabets {
			costtest.Grows(t, part+" of "+a.Name, longest, costtest.Most, func(size int) func() {
				value := a.Text(size / 4 * 3)
				response := map[string]any{part: base64.RawURLEncoding.EncodeToString([]byte(value))}
				for _, other := range []string{"clientDataJSON", "authenticatorData", "signature"} {
					if other != part {
						response[other] = base64.RawURLEncoding.EncodeToString([]byte(`{"type":"webauthn.get","challenge":"AAAA","origin":"https://id.signet.test"}`))
					}
				}
				text, err := json.Marshal(map[string]any{"id": "AAAA", "rawId": "AAAA", "type": "public-key",
					"response": response})
				if err != nil {
					t.Fatal(err)
				}
				return func() { read(string(text)) }
			})
		}
	}
}
