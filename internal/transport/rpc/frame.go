// The frames of gRPC and gRPC-Web.

package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/web"
)

// A frame of gRPC is one byte of flags, the length of the message in four bytes, and the message.
const (
	head            = 5
	flagCompressed  = 0x01
	flagWebTrailers = 0x80
)

// errFrameTooLarge is the end of reading a message that has more bytes than it may.
var errFrameTooLarge = errors.New("frame: the message is too large")

func malformed(message string) error { return errs.Invalid(errs.Violation{Message: message}) }

// readFrame reads the only message of a request, of at most limit bytes, into buf. It stops at the first byte that is
// too many.
func readFrame(r io.Reader, buf *bytes.Buffer, compressed bool, limit int64) error {
	var start [head]byte
	switch _, err := io.ReadFull(r, start[:]); err {
	case nil:
	case io.EOF:
		return malformed("the request contains no message")
	default:
		return err
	}
	size := int64(binary.BigEndian.Uint32(start[1:]))
	flags := start[0]
	switch {
	case size > limit:
		return errFrameTooLarge
	case flags&^flagCompressed != 0:
		return malformed("the frame of the message has unknown flags")
	case flags == flagCompressed && !compressed:
		return malformed("the message is compressed, but the header grpc-encoding does not say how")
	}
	if flags == 0 {
		if err := readExactly(r, buf, size); err != nil {
			return err
		}
	} else if err := readCompressed(r, buf, size, limit); err != nil {
		return err
	}
	switch _, err := io.ReadFull(r, start[:1]); err {
	case io.EOF:
		return nil
	case nil:
		return malformed("the request contains more than one message")
	default:
		return err
	}
}

func readExactly(r io.Reader, buf *bytes.Buffer, size int64) error {
	// The buffer grows with what arrives, not with what was promised.
	n, err := buf.ReadFrom(io.LimitReader(r, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func readCompressed(r io.Reader, buf *bytes.Buffer, size, limit int64) error {
	packed := buffers.Get()
	defer buffers.Put(packed)
	if err := readExactly(r, packed, size); err != nil {
		return err
	}
	if packed.Len() == 0 {
		return nil
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return malformed("the message is not compressed with gzip")
	}
	n, err := buf.ReadFrom(io.LimitReader(inflated{unpacked, r}, limit+1))
	_, refused := errors.AsType[*errs.Error](err)
	switch {
	case refused:
		return err
	case n > limit:
		return errFrameTooLarge
	case err != nil:
		return malformed("the compressed message is damaged")
	}
	return nil
}

// inflated reads what the body of a request unpacks to, as far as there is room for it.
type inflated struct {
	io.Reader
	body io.Reader
}

func (i inflated) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if text, ok := i.body.(*base64Reader); ok {
		i.body = text.body
	}
	if full := web.Unpacked(i.body, n); full != nil {
		return 0, full
	}
	return n, err
}

// checkedBody passes on the uncompressed frames of a body, as many as there are, and fails at the first one that is
// none.
type checkedBody struct {
	io.Closer
	body io.Reader
	fail func(error) error
	head [head]byte
	have int   // bytes of the head that have passed
	left int64 // bytes of the message that have not
}

// newCheckedBody makes a Checked of a body. What Read fails with is what fail makes of it.
func newCheckedBody(body io.ReadCloser, fail func(error) error) *checkedBody {
	return &checkedBody{Closer: body, body: body, fail: fail}
}

// Read implements io.Reader.
func (c *checkedBody) Read(p []byte) (int, error) {
	inside, rest := c.left > 0, c.left
	if !inside {
		rest = int64(head - c.have)
	}
	n, err := c.body.Read(p[:min(int64(len(p)), rest)])
	if inside {
		c.left -= int64(n)
	} else {
		copy(c.head[c.have:], p[:n])
		if c.have += n; c.have == head {
			if c.head[0] != 0 {
				return 0, c.fail(malformed("the frame of the message has unknown flags"))
			}
			c.have, c.left = 0, int64(binary.BigEndian.Uint32(c.head[1:]))
		}
	}
	switch {
	case err == nil, err == io.EOF && c.have == 0 && c.left == 0:
		return n, err
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, c.fail(err)
}

// appendFrame writes a message as one frame.
func appendFrame(buf *bytes.Buffer, m proto.Message) error {
	raw, err := proto.MarshalOptions{}.MarshalAppend(append(buf.AvailableBuffer(), make([]byte, head)...), m)
	if err != nil {
		return fmt.Errorf("frame: encode the answer: %w", err)
	}
	binary.BigEndian.PutUint32(raw[1:], uint32(len(raw)-head))
	buf.Write(raw)
	return nil
}

// appendTrailer writes the last frame of gRPC-Web, which looks like the headers of HTTP/1 with names in lower case.
func appendTrailer(buf *bytes.Buffer, trailer [][2]string) {
	size := 0
	for _, t := range trailer {
		size += len(t[0]) + len(t[1]) + len(": \r\n")
	}
	buf.Write(binary.BigEndian.AppendUint32([]byte{flagWebTrailers}, uint32(size)))
	for _, t := range trailer {
		buf.WriteString(strings.ToLower(t[0]) + ": " + t[1] + "\r\n")
	}
}

// percentEncode writes a message as gRPC wants it in a header: printable ASCII as it is, all else escaped.
func percentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool { return ' ' <= c && c <= '~' && c != '%' }
	i := 0
	for i < len(s) && plain(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	out := []byte(s[:i])
	for ; i < len(s); i++ {
		if c := s[i]; plain(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}
