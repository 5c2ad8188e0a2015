package secret

import (
	"bytes"
	"errors"
	"sync"
	"testing"
)

func TestOpenReturnsWhatSealWasGiven(t *testing.T) {
	key := NewDataKey()
	for name, plain := range map[string][]byte{
		"nothing": {}, "one byte": {7}, "a sentence": []byte("what belongs to one person"),
		"a megabyte": make([]byte, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			aad := []byte("user 1")
			sealed := key.Seal(plain, aad)
			if len(sealed) != len(plain)+29 {
				t.Errorf("%d bytes become %d", len(plain), len(sealed))
			}
			got, err := key.Open(sealed, aad)
			if err != nil || !bytes.Equal(got, plain) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if bytes.Equal(key.Seal(plain, aad), sealed) {
				t.Error("the same data seals to the same bytes")
			}
		})
	}
}

func TestOpenRefusesWhatWasNotSealedForIt(t *testing.T) {
	key := NewDataKey()
	plain, aad := []byte("plain"), []byte("user 1")
	sealed := key.Seal(plain, aad)
	tests := map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return NewDataKey().Open(sealed, aad) },
		"another owner": func() ([]byte, error) { return key.Open(sealed, []byte("user 2")) },
		"nothing":       func() ([]byte, error) { return key.Open(nil, aad) },
		"too little":    func() ([]byte, error) { return key.Open(sealed[:20], aad) },
		"a byte more":   func() ([]byte, error) { return key.Open(append(bytes.Clone(sealed), 0), aad) },
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := open(); got != nil || !errors.Is(err, ErrCannotOpen) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 0x80
		if _, err := key.Open(changed, aad); !errors.Is(err, ErrCannotOpen) {
			t.Errorf("byte %d changed: got %v", i, err)
		}
	}
}

func TestSealLeavesItsArgumentsAlone(t *testing.T) {
	key := NewDataKey()
	buffer := []byte("plain and what follows")
	sealed := key.Seal(buffer[:5], nil)
	if string(buffer) != "plain and what follows" {
		t.Errorf("Seal changed its argument to %q", buffer)
	}
	before := bytes.Clone(sealed)
	if _, err := key.Open(sealed, nil); err != nil || !bytes.Equal(sealed, before) {
		t.Errorf("Open changed its argument, or %v", err)
	}
}

func TestAWrappedDataKeyOpensWhatTheKeySealed(t *testing.T) {
	master, key := NewMasterKey(), NewDataKey()
	sealed := key.Seal([]byte("plain"), []byte("aad"))
	wrapped := master.WrapDataKey(key, "key 1")
	if bytes.Contains(wrapped, key.k().raw[:]) {
		t.Fatal("the wrapped key holds the key")
	}

	again, err := master.UnwrapDataKey(wrapped, "key 1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Open(sealed, []byte("aad")); err != nil || string(got) != "plain" {
		t.Errorf("got %q, %v", got, err)
	}

	tests := map[string]func() (DataKey, error){
		"another id":         func() (DataKey, error) { return master.UnwrapDataKey(wrapped, "key 2") },
		"another master key": func() (DataKey, error) { return NewMasterKey().UnwrapDataKey(wrapped, "key 1") },
		"a key of another purpose": func() (DataKey, error) {
			return master.UnwrapDataKey(master.Wrap("x", key.k().raw[:], []byte("key 1")), "key 1")
		},
		"a key of another length": func() (DataKey, error) {
			return master.UnwrapDataKey(master.Wrap(purposeDataKey, []byte("short"), []byte("key 1")), "key 1")
		},
	}
	for name, unwrap := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := unwrap(); got.k != nil || !errors.Is(err, ErrCannotOpen) {
				t.Errorf("got a key, or %v", err)
			}
		})
	}
}

func TestADataKeyIsSafeForConcurrentUse(t *testing.T) {
	key := NewDataKey()
	var done sync.WaitGroup
	for range 16 {
		done.Go(func() {
			if got, err := key.Open(key.Seal([]byte("plain"), nil), nil); err != nil || string(got) != "plain" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	done.Wait()
}

func BenchmarkSeal(b *testing.B) {
	key := NewDataKey()
	plain, aad := make([]byte, 512), make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		key.Seal(plain, aad)
	}
}

func BenchmarkOpen(b *testing.B) {
	key := NewDataKey()
	aad := make([]byte, 32)
	sealed := key.Seal(make([]byte, 512), aad)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := key.Open(sealed, aad); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewAndWrapDataKey(b *testing.B) {
	master := NewMasterKey()
	b.ReportAllocs()
	for b.Loop() {
		master.WrapDataKey(NewDataKey(), "0198e5a0-0000-7000-8000-000000000000")
	}
}

func BenchmarkUnwrapDataKey(b *testing.B) {
	master := NewMasterKey()
	wrapped := master.WrapDataKey(NewDataKey(), "id")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := master.UnwrapDataKey(wrapped, "id"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAKeyOfSomethingThatIsNotStoredNeedsAllOfIt(t *testing.T) {
	m := NewMasterKey()
	sealed := m.DataKeyOf("test", []byte("cookie")).Seal([]byte("text"), []byte("place"))
	if plain, err := m.DataKeyOf("test", []byte("cookie")).Open(sealed, []byte("place")); err != nil ||
		string(plain) != "text" {
		t.Fatalf("%q, %v", plain, err)
	}
	for name, key := range map[string]DataKey{
		"another key":     NewMasterKey().DataKeyOf("test", []byte("cookie")),
		"another purpose": m.DataKeyOf("tests", []byte("cookie")),
		"another owner":   m.DataKeyOf("test", []byte("cooky")),
	} {
		if _, err := key.Open(sealed, []byte("place")); err == nil {
			t.Errorf("%s opens it", name)
		}
	}
}
