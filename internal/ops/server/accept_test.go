package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
)

type failing struct {
	net.Listener
	err error
}

func (f *failing) Accept() (net.Conn, error) { return nil, f.err }

func TestConnectionsThatCannotBeAcceptedAreSaidOnce(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // empty: nothing is said
	}{
		{&net.OpError{Op: "accept", Err: syscall.EMFILE}, "ulimit -n"},
		{errors.New("something else"), "something else"},
		{net.ErrClosed, ""},
	} {
		var log bytes.Buffer
		a := &accepting{Listener: &failing{err: c.err}, log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 100 {
			if _, err := a.Accept(); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
		}
		lines := strings.Count(log.String(), "\n")
		if c.want == "" && lines != 0 || c.want != "" && (lines != 1 || !strings.Contains(log.String(), c.want)) {
			t.Errorf("%v: the log says %q", c.err, log.String())
		}
	}
}
