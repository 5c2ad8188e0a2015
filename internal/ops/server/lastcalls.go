package server

import (
	"net"
	"sync/atomic"
	"time"
)

// lastCalls is a listener that serves everybody who has connected before it is closed. A listener that is just closed
// resets the connections that nobody has accepted yet, although a request may be on them already.
type lastCalls struct {
	net.Listener
	stopping atomic.Bool
	stopped  chan struct{} // closed once it is

	waiting []net.Conn // of the goroutine that accepts
	ended   bool       // likewise
}

func newLastCalls(l net.Listener) *lastCalls {
	return &lastCalls{Listener: l, stopped: make(chan struct{})}
}

// stop closes the listener, and returns when that is done. Somebody must be in Accept, or come to it.
func (l *lastCalls) stop() {
	l.stopping.Store(true)
	if tcp, ok := l.Listener.(*net.TCPListener); !ok || tcp.SetDeadline(time.Now()) != nil {
		_ = l.Listener.Close() // Accept says so
	}
	<-l.stopped
}

// Accept implements net.Listener.
func (l *lastCalls) Accept() (net.Conn, error) {
	if !l.stopping.Load() {
		conn, err := l.Listener.Accept()
		if err == nil || !l.stopping.Load() {
			return conn, err
		}
	}
	if !l.ended {
		l.ended = true
		if tcp, ok := l.Listener.(*net.TCPListener); ok {
			l.waiting = acceptWaiting(tcp)
		}
		_ = l.Listener.Close() // nothing was written
		close(l.stopped)
	}
	if len(l.waiting) == 0 {
		return nil, net.ErrClosed
	}
	conn := l.waiting[0]
	l.waiting = l.waiting[1:]
	return conn, nil
}
