package rpc

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
)

// The text mode of gRPC-Web is the binary one in base64, which is how browsers can read a stream before its end.
// Padding may stand wherever a sender had nothing more to send, so each part is decoded by itself.

// base64Reader reads what a body in base64 stands for.
type base64Reader struct {
	body    io.Reader
	text    [4 << 10]byte
	decoded []byte // not read yet; a part of text
}

// newBase64Reader makes a Text of a body.
func newBase64Reader(body io.Reader) *base64Reader { return &base64Reader{body: body} }

// Read implements io.Reader.
func (t *base64Reader) Read(p []byte) (int, error) {
	for len(t.decoded) == 0 {
		n, err := io.ReadFull(t.body, t.text[:])
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), err == nil:
		default:
			return 0, err
		}
		if t.decoded, err = decodeBase64(t.text[:n]); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.decoded)
	t.decoded = t.decoded[n:]
	return n, nil
}

// decodeBase64 decodes base64 in place. Padding ends a part, not the text.
func decodeBase64(text []byte) ([]byte, error) {
	decoded := text[:0]
	for len(text) > 0 {
		part := text
		if padding := bytes.IndexByte(text, '='); padding >= 0 {
			part = text[:min(padding/4*4+4, len(text))]
		}
		n, err := base64.StdEncoding.Decode(text, part)
		if err != nil {
			return nil, malformed("the body is not base64, as the content type says")
		}
		decoded, text = append(decoded, text[:n]...), text[len(part):]
	}
	return decoded, nil
}

// encodeBase64 replaces what a buffer holds by the same in base64.
func encodeBase64(buf *bytes.Buffer) {
	text := base64.StdEncoding.AppendEncode(nil, buf.Bytes())
	buf.Reset()
	buf.Write(text)
}
