package server

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// countedConn gives texts, one with each read.
type countedConn struct {
	net.Conn
	texts []string
	asked []int // how much was asked for each time
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.asked = append(c.asked, len(p))
	if len(c.texts) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, c.texts[0])
	if c.texts[0] = c.texts[0][n:]; c.texts[0] == "" {
		c.texts = c.texts[1:]
	}
	return n, nil
}

func TestReadingAhead(t *testing.T) {
	long := strings.Repeat("x", readAhead+10)
	under := &countedConn{texts: []string{"head 1 body 1", "head 2", " body 2", long}}
	c := &aheadConn{Conn: under}
	var all strings.Builder
	for _, size := range []int{6, 1, 6, 6, 7, 1, readAhead, 100} {
		p := make([]byte, size)
		n, err := c.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(p[:n])
	}
	if got, want := all.String(), "head 1 body 1head 2 body 2"+long; got != want {
		t.Errorf("%d bytes were read, not %d: %.60s", len(got), len(want), got)
	}
	// Two small reads have one system call. One byte is asked for as it is, and so is as much as the buffer holds.
	if want := []int{readAhead, readAhead, readAhead, 1, readAhead, readAhead}; !slices.Equal(under.asked, want) {
		t.Errorf("asked for %d, want %d", under.asked, want)
	}
	for range 2 {
		if n, err := c.Read(make([]byte, 9)); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("at the end: %d, %v", n, err)
		}
	}
}

func TestHTTP1ReadsNothingAhead(t *testing.T) {
	c := &aheadConn{Conn: &countedConn{texts: []string{"GET / HTTP/1.1\r\n\r\n", "G"}}}
	for _, size := range []int{readAhead, 1} {
		if _, err := c.Read(make([]byte, size)); err != nil || c.buffer != nil {
			t.Errorf("a read of %d: %v, with a buffer of %d bytes", size, err, len(c.buffer))
		}
	}
}

// Whoever is still sending reads the answer to its end.
func TestReadingAheadEndsOneSide(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	there, err := net.Dial("tcp", listening.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here, err := readingAhead{listening}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := here.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := there.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := there.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := here.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
