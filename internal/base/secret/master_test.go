package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

const goldenKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func parsed(t testing.TB, text string) MasterKey {
	t.Helper()
	key, err := ParseMasterKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestParseMasterKeyReadsWhatTextWrites(t *testing.T) {
	key := NewMasterKey()
	for name, end := range map[string]string{"as it is": "", "with a newline": "\n",
		"with a newline of Windows": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			again := parsed(t, string(key.Text())+end)
			if !bytes.Equal(again.Text(), key.Text()) || !bytes.Equal(again.CheckValue(), key.CheckValue()) {
				t.Error("it is another key")
			}
		})
	}
	if bytes.Equal(NewMasterKey().Text(), key.Text()) {
		t.Error("two new keys are the same")
	}
}

func TestParseMasterKeyRefusesEverythingElseWithoutQuotingIt(t *testing.T) {
	tests := map[string]string{
		"nothing":                    "",
		"a newline":                  "\n",
		"31 bytes":                   base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"33 bytes":                   base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"32 bytes that are raw":      strings.Repeat("k", 32),
		"32 bytes in hexadecimal":    strings.Repeat("6b", 32),
		"no padding":                 goldenKey[:43],
		"two newlines":               goldenKey + "\n\n",
		"a newline inside":           goldenKey[:20] + "\n" + goldenKey[20:43],
		"a space in front":           " " + goldenKey,
		"bits that are not used":     goldenKey[:42] + "9=",
		"the alphabet of URLs":       "__" + goldenKey[2:],
		"text of the right length":   strings.Repeat("!", 44),
		"a key file with a comment":  "# key\n" + goldenKey,
		"a key of the right length=": strings.Repeat("=", 44),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMasterKey([]byte(text))
			if err == nil {
				t.Fatal("it is accepted")
			}
			trimmed := strings.TrimSpace(text)
			if trimmed != "" && strings.Contains(err.Error(), trimmed) {
				t.Errorf("the error quotes the text: %v", err)
			}
			if saysEmpty := errors.Is(err, errEmptyKey); saysEmpty != (trimmed == "") {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}

func TestKeysPrintAsSecret(t *testing.T) {
	type holder struct {
		Public  any
		private any
	}
	type nested struct{ master MasterKey }
	master := parsed(t, goldenKey)
	data := dataKeyOf(master.k().raw)
	// The bytes in hex are longer than an address: printed pointers are hex, too, and 0xc000102d30 is no leak.
	dirty := []string{goldenKey, goldenKey[:8], "0001020304050607", "0x00, 0x01", "0x0, 0x1", "0 1 2 3", "\x00\x01\x02"}
	check := func(t *testing.T, how, printed string) {
		t.Helper()
		for _, bad := range dirty {
			if strings.Contains(strings.ToLower(printed), strings.ToLower(bad)) {
				t.Errorf("%s shows the key: %s", how, printed)
			}
		}
	}

	for name, key := range map[string]any{"master key": master, "data key": data, "zero key": MasterKey{}} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b", "%t"} {
				if got := fmt.Sprintf(verb, key); got != "[secret]" {
					t.Errorf("%s gives %s", verb, got)
				}
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%t", "%p", "%w"} {
				check(t, verb, fmt.Sprintf(verb, key))
				check(t, verb+" inside a struct", fmt.Sprintf(verb, holder{key, key}))
				check(t, verb+" behind a pointer", fmt.Sprintf(verb, &holder{&key, &key}))
				check(t, verb+" in a slice", fmt.Sprintf(verb, []any{key}))
				check(t, verb+" in an unexported field", fmt.Sprintf(verb, nested{master}))
				check(t, verb+" in an unexported field", fmt.Sprintf(verb, struct{ data DataKey }{data}))
			}
			if got := key.(fmt.Stringer).String(); got != "[secret]" {
				t.Errorf("String gives %s", got)
			}
			if got := key.(fmt.GoStringer).GoString(); got != "[secret]" {
				t.Errorf("GoString gives %s", got)
			}

			var log bytes.Buffer
			for _, logger := range []*slog.Logger{
				slog.New(slog.NewTextHandler(&log, nil)), slog.New(slog.NewJSONHandler(&log, nil)),
			} {
				log.Reset()
				logger.Info("made", "key", key, "holder", holder{key, key}, slog.Group("group", "key", key))
				check(t, "slog", log.String())
				if strings.Count(log.String(), "[secret]") < 3 {
					t.Errorf("slog gives %s", &log)
				}
			}

			text, err := json.Marshal(map[string]any{"key": key, "holder": holder{key, key}})
			if err != nil || string(text) != `{"holder":{"Public":"[secret]"},"key":"[secret]"}` {
				t.Errorf("JSON gives %s, %v", text, err)
			}
			text, err = xml.Marshal(key)
			if err != nil || !bytes.Contains(text, []byte("[secret]")) {
				t.Errorf("XML gives %s, %v", text, err)
			}
		})
	}
}

func TestMACIsTheDocumentedFunction(t *testing.T) {
	// Computed by an independent program, so that no change of the code changes stored values.
	key := parsed(t, goldenKey)
	if got := hex.EncodeToString(key.CheckValue()); got != "f879784b4515f8d614a54e75cfeba1a8f7bfa96291d9839fc35b8a7404686d3a" {
		t.Errorf("check value: got %s", got)
	}
	got := hex.EncodeToString(key.MAC("page token", []byte("ab"), []byte("c")))
	if got != "62a6b44d17e28cb86a5031025ec0bc7e8326e6b2ddf1206906b75b2fd22f4855" {
		t.Errorf("MAC of two parts: got %s", got)
	}
}

func TestMACDependsOnKeyPurposeAndTheBordersOfParts(t *testing.T) {
	key, other := NewMasterKey(), NewMasterKey()
	a, b, ab, none := []byte("a"), []byte("b"), []byte("ab"), []byte{}
	macs := map[string][]byte{
		"two parts":                  key.MAC("one", a, b),
		"one part":                   key.MAC("one", ab),
		"an empty part in front":     key.MAC("one", none, ab),
		"an empty part at the end":   key.MAC("one", ab, none),
		"the other order":            key.MAC("one", b, a),
		"no part":                    key.MAC("one"),
		"one empty part":             key.MAC("one", none),
		"another purpose":            key.MAC("two", a, b),
		"another key":                other.MAC("one", a, b),
		"a purpose that has no name": key.MAC("", a, b),
	}
	seen := map[string]string{}
	for name, mac := range macs {
		if same, ok := seen[string(mac)]; ok {
			t.Errorf("%s and %s have the same MAC", name, same)
		}
		seen[string(mac)] = name
	}
	if !bytes.Equal(key.MAC("one", a, b), macs["two parts"]) {
		t.Error("the same call gives another MAC")
	}
}

func TestUnwrapNeedsTheSameKeyPurposeAndOwner(t *testing.T) {
	key := NewMasterKey()
	plain, aad := []byte("signing key"), []byte("id 1")
	wrapped := key.Wrap("one", plain, aad)
	if got, err := key.Unwrap("one", wrapped, aad); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("got %q, %v", got, err)
	}
	if bytes.Equal(key.Wrap("one", plain, aad), wrapped) {
		t.Error("the same plaintext wraps to the same bytes")
	}
	if bytes.Contains(wrapped, plain) {
		t.Error("the plaintext is in the wrapped form")
	}
	again := parsed(t, string(key.Text()))
	if got, err := again.Unwrap("one", wrapped, aad); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("after a restart: got %q, %v", got, err)
	}
	tests := map[string]func() ([]byte, error){
		"another key":     func() ([]byte, error) { return NewMasterKey().Unwrap("one", wrapped, aad) },
		"another purpose": func() ([]byte, error) { return key.Unwrap("two", wrapped, aad) },
		"another owner":   func() ([]byte, error) { return key.Unwrap("one", wrapped, []byte("id 2")) },
		"no owner":        func() ([]byte, error) { return key.Unwrap("one", wrapped, nil) },
		"nothing":         func() ([]byte, error) { return key.Unwrap("one", nil, aad) },
		"the first byte":  func() ([]byte, error) { return key.Unwrap("one", wrapped[:1], aad) },
		"a byte less":     func() ([]byte, error) { return key.Unwrap("one", wrapped[:len(wrapped)-1], aad) },
	}
	for name, unwrap := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := unwrap(); got != nil || !errors.Is(err, ErrCannotOpen) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for i := range wrapped {
		changed := bytes.Clone(wrapped)
		changed[i] ^= 1
		if _, err := key.Unwrap("one", changed, aad); !errors.Is(err, ErrCannotOpen) {
			t.Errorf("byte %d changed: got %v", i, err)
		}
	}
}

func TestAMasterKeyIsSafeForConcurrentUse(t *testing.T) {
	key := NewMasterKey()
	want := parsed(t, string(key.Text())).MAC("one", []byte("part"))
	var done sync.WaitGroup
	for range 16 {
		done.Go(func() {
			if !bytes.Equal(key.MAC("one", []byte("part")), want) {
				t.Error("another MAC")
			}
			if _, err := key.Unwrap("two", key.Wrap("two", []byte("plain"), nil), nil); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
}

func BenchmarkMAC(b *testing.B) {
	key := NewMasterKey()
	part := make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		key.MAC("benchmark", part, part)
	}
}
