package argon_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/signet-idm/signet/internal/base/secret/argon"
)

func theirs(password, salt []byte) []byte {
	return argon2.IDKey(password, salt, argon.Passes, argon.MemoryKiB, argon.Lanes, argon.KeyLength)
}

func TestAKeyIsWhatTheLibraryComputes(t *testing.T) {
	for _, password := range []string{"", "p", "correct horse battery staple", strings.Repeat("𐍈", 72),
		strings.Repeat("long", 2500)} {
		for _, salt := range []int{8, 16, 32} {
			t.Run(fmt.Sprintf("%d bytes with a salt of %d", len(password), salt), func(t *testing.T) {
				random := make([]byte, salt)
				rand.Read(random)
				if got, want := argon.Key([]byte(password), random),
					theirs([]byte(password), random); !bytes.Equal(got, want) {
					t.Errorf("got %x, want %x", got, want)
				}
			})
		}
	}
}

func TestParallelKeysDoNotShareTheirMemory(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			password, salt := fmt.Appendf(nil, "password %d", i), fmt.Appendf(nil, "the salt of no. %d", i)
			want := theirs(password, salt)
			for range 4 {
				if got := argon.Key(password, salt); !bytes.Equal(got, want) {
					t.Errorf("no. %d: got %x, want %x", i, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		argon.Key([]byte("correct horse battery staple"), []byte("sixteen bytes !!"))
	}
}

func BenchmarkLibrary(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		theirs([]byte("correct horse battery staple"), []byte("sixteen bytes !!"))
	}
}
