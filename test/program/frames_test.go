package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// elsewhere is the address that attackers come from, so that the tests' own requests are those of another network.
var elsewhere = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}

// frames is a connection of HTTP/2 on which a test writes what it likes.
type frames struct {
	*http2.Framer
	conn    net.Conn
	encoder *hpack.Encoder
	block   bytes.Buffer
	ended   map[uint32]string // how a stream ended: its status, and what came with it
	status  map[uint32]string
	window  int  // how much may be sent
	away    bool // the server has said that the connection is not to be used any more
}

// dialFrames connects from elsewhere. The server's settings are acknowledged.
func dialFrames(t *testing.T, p *process) *frames {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: elsewhere}).Dial("tcp", p.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	f := &frames{Framer: http2.NewFramer(conn, conn), conn: conn, ended: map[uint32]string{},
		status: map[uint32]string{}, window: 65535}
	f.encoder = hpack.NewEncoder(&f.block)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteSettings(), f.WriteSettingsAck()); err != nil {
		t.Fatal(err)
	}
	return f
}

// request opens a stream whose body is open.
func (f *frames) request(id uint32, fields ...string) error {
	f.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.block.Bytes(), EndHeaders: true})
}

func post(path string, more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":authority", "localhost", ":path", path}, more...)
}

// send sends a part of a body when the server has room for it.
func (f *frames) send(id uint32, end bool, part []byte) error {
	for f.window < len(part) {
		if _, err := f.next(); err != nil {
			return err
		}
	}
	f.window -= len(part)
	return f.WriteData(id, end, part)
}

// next reads a frame, and notes what it says about the streams.
func (f *frames) next() (http2.Frame, error) {
	frame, err := f.ReadFrame()
	if err != nil {
		return nil, err
	}
	id := frame.Header().StreamID
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		if status := frame.PseudoValue("status"); status != "" {
			f.status[id] = status
		}
		for _, field := range frame.RegularFields() {
			if field.Name == "grpc-status" {
				f.status[id] += " grpc-status " + field.Value
			}
		}
		if frame.StreamEnded() {
			f.ended[id] = f.status[id]
		}
	case *http2.DataFrame:
		if frame.StreamEnded() {
			f.ended[id] = f.status[id]
		}
	case *http2.RSTStreamFrame:
		f.ended[id] = strings.TrimSpace(f.ended[id] + " reset: " + frame.ErrCode.String())
	case *http2.WindowUpdateFrame:
		if id == 0 {
			f.window += int(frame.Increment)
		}
	case *http2.GoAwayFrame:
		f.away = true
	}
	return frame, nil
}

// settle waits until the server has seen all that was written: it answers a ping behind that.
func (f *frames) settle(t *testing.T) {
	t.Helper()
	if err := f.seen(); err != nil {
		t.Fatal(err)
	}
}

func (f *frames) seen() error {
	if err := f.WritePing(false, [8]byte{1}); err != nil {
		return err
	}
	for {
		frame, err := f.next()
		if err != nil {
			return err
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			return nil
		}
	}
}

// awaitEnds waits until so many streams have ended.
func (f *frames) awaitEnds(t *testing.T, n int) {
	t.Helper()
	for len(f.ended) < n {
		if _, err := f.next(); err != nil {
			t.Fatalf("%d of %d streams have ended: %v", len(f.ended), n, err)
		}
	}
}

// ends counts how the streams have ended.
func (f *frames) ends() string {
	counts := map[string]int{}
	for _, how := range f.ended {
		counts[how]++
	}
	return fmt.Sprint(counts)
}
