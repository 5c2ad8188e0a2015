package rpc

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"
)

func TestLargeBuffersAreNotKept(t *testing.T) {
	for range 100 {
		b := buffers.Get()
		b.Grow(maxKept + 1)
		buffers.Put(b)
	}
	for range 100 {
		if b := buffers.Get(); b.Cap() > maxKept {
			t.Fatalf("a buffer of %d bytes was kept", b.Cap())
		}
	}
}

func FuzzTextOfGRPCWeb(f *testing.F) {
	f.Add([]byte("AAAA"), 1)
	f.Add([]byte("AA==AAA=AAAA"), 5)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		_, _ = io.ReadAll(newBase64Reader(bytes.NewReader(data))) // whatever it is
		if cut < 0 || cut > len(data) {
			return
		}
		text := base64.StdEncoding.EncodeToString(data[:cut]) + base64.StdEncoding.EncodeToString(data[cut:])
		if got, err := io.ReadAll(newBase64Reader(strings.NewReader(text))); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	})
}
