package testkit

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
)

// TextMode lets a client of gRPC-Web speak its text mode, as the one for browsers does: both bodies in base64, in parts
// that are padded where they end.
type TextMode struct{ Next http.RoundTripper }

const (
	webBinary = "application/grpc-web+proto"
	webText   = "application/grpc-web-text"
)

// RoundTrip implements http.RoundTripper.
func (m TextMode) RoundTrip(r *http.Request) (*http.Response, error) {
	binary, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	text := base64.StdEncoding.EncodeToString(binary)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
	r.Header.Set("Content-Type", webText)
	resp, err := m.Next.RoundTrip(r)
	if err != nil || resp.Header.Get("Content-Type") != webText {
		return resp, err
	}
	resp.Header.Set("Content-Type", webBinary)
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = &decodedBody{Closer: resp.Body, text: bufio.NewReader(resp.Body)}
	return resp, nil
}

// decodedBody decodes four characters at a time, so that padding may stand anywhere and nothing waits for more than it
// needs.
type decodedBody struct {
	io.Closer
	text *bufio.Reader
	left []byte
}

func (d *decodedBody) Read(p []byte) (int, error) {
	if len(d.left) == 0 {
		var four [4]byte
		if _, err := io.ReadFull(d.text, four[:]); err != nil {
			return 0, err
		}
		var err error
		if d.left, err = base64.StdEncoding.DecodeString(string(four[:])); err != nil {
			return 0, fmt.Errorf("%q: %w", four, err)
		}
	}
	n := copy(p, d.left)
	d.left = d.left[n:]
	return n, nil
}
