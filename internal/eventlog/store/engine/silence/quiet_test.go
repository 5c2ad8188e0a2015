//go:build unix

package silence

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// TestQuiet: a connection is quiet until something arrives, and again when that was read, until its server ends it.
func TestQuiet(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	calm := usual
	calm.patience = time.Hour // nobody answers here, and a machine that does much else may take its time
	d := start(calm, func(bool) {})
	defer d.Close()
	c, err := d.Dial(t.Context(), "tcp", listener.Addr().String())
	testkit.Must(t, err)
	defer c.Close()
	server, err := listener.Accept()
	testkit.Must(t, err)
	defer server.Close()
	both := func(want bool) bool {
		return Quiet(c) == want && Quiet(tls.Client(c, &tls.Config{})) == want // what TLS sends lies in the same place
	}
	if !both(true) {
		t.Error("a new connection is not quiet")
	}
	read := make(chan error)
	go func() { // as pgx does while it writes something large
		_, err := io.ReadFull(c, make([]byte, 1))
		read <- err
	}()
	testkit.Await(t, "somebody reads", func() bool {
		stacks := make([]byte, 1<<20)
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("[IO wait"))
	})
	if !both(true) {
		t.Error("a connection on which somebody waits for something is not quiet")
	}
	_, err = server.Write([]byte("N"))
	testkit.Must(t, err)
	testkit.Must(t, testkit.Receive(t, read, "the byte is read"))
	_, err = server.Write([]byte("N"))
	testkit.Must(t, err)
	testkit.Await(t, "something has arrived", func() bool { return both(false) })
	_, err = io.ReadFull(c, make([]byte, 1))
	testkit.Must(t, err)
	if !both(true) {
		t.Error("a connection on which all was read is not quiet")
	}
	testkit.Must(t, server.Close())
	testkit.Await(t, "the end has arrived", func() bool { return both(false) })
	c.Close()
	if !both(false) {
		t.Error("a closed connection is quiet")
	}
	if Quiet(&net.UnixConn{}) {
		t.Error("what cannot be asked is quiet")
	}
}
