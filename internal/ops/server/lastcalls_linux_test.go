package server

import (
	"errors"
	"net"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

func TestWhoeverHasConnectedIsServedWhenTheListenerCloses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const waiting = 5
	for range waiting {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	l := newLastCalls(inner)
	l.stopping.Store(true) // before anybody accepts
	for i := range waiting {
		conn, err := l.Accept()
		if err != nil {
			t.Fatalf("connection %d of %d: %v", i+1, waiting, err)
		}
		conn.Close()
	}
	if conn, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("behind the last one: %v, %v", conn, err)
	}
	if conn, err := net.Dial("tcp", inner.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener is still open")
	}
	l.stop() // is done already
}

func TestAcceptReturnsWhenTheListenerStops(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLastCalls(inner)
	accepted := make(chan error)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	l.stop()
	if err := testkit.Receive(t, accepted, "Accept returns"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
}
