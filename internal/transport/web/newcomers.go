package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// newcomers are the connections that were opened since a front ends connections and on which nobody has asked for
// anything yet. A server that shuts down serves none of their requests: net/http closes a connection of HTTP/1.1
// behind the first request that it reads then, and tells one of HTTP/2 to go away before it has read any. A proxy that
// has sent the request does not know whether it was served.
type newcomers struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	none  chan struct{} // closed when there are no more; nil: nobody waits for that
}

// ConnState is for http.Server: it lets Front know who has come and gone.
func (f *Front) ConnState(conn net.Conn, state http.ConnState) {
	switch {
	case f.ending.Load() == 0:
	case state == http.StateNew:
		f.newcomers.add(conn)
	case state == http.StateClosed, state == http.StateHijacked:
		f.newcomers.remove(conn)
	}
}

// AwaitNewcomers waits until everybody who has connected since EndConnections has asked for something, or has gone. It
// is for when no more connections are accepted, and gives up with ctx.
func (f *Front) AwaitNewcomers(ctx context.Context) {
	select {
	case <-f.newcomers.gone():
	case <-ctx.Done():
	}
}

// asks says that a request has come.
func (n *newcomers) asks(r *http.Request) {
	if c, _ := r.Context().Value(connectionKey{}).(*connection); c != nil {
		n.remove(c.conn)
	}
}

func (n *newcomers) add(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		n.conns = map[net.Conn]struct{}{}
	}
	n.conns[conn] = struct{}{}
}

func (n *newcomers) remove(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
	n.tell()
}

func (n *newcomers) gone() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.none = make(chan struct{})
	gone := n.none
	n.tell()
	return gone
}

func (n *newcomers) tell() {
	if len(n.conns) == 0 && n.none != nil {
		close(n.none)
		n.none = nil
	}
}
