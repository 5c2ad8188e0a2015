package testdb

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// Wire stands between a test and its PostgreSQL server, and can be frozen: everything is still connected, new
// connections too, and nobody answers. A server looks like that when it is stopped, or its machine has no time for it.
type Wire struct {
	Database // through the wire

	server  string
	gate    sync.RWMutex // held by those who pass something on
	frozen  bool
	mu      sync.Mutex
	open    map[net.Conn]bool
	changes sync.Mutex
}

// NewWire makes one to a database of PostgreSQL.
func NewWire(t testing.TB, db Database) *Wire {
	t.Helper()
	address, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal("the address is not a URL")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{server: address.Host, open: map[net.Conn]bool{}}
	address.Host = listener.Addr().String()
	w.Database = Database{Engine: Postgres, URL: address.String()}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go w.connect(c)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		w.Resume()
		w.Cut()
	})
	return w
}

// Host is where the wire begins.
func (w *Wire) Host() string {
	address, err := url.Parse(w.URL)
	if err != nil {
		panic(err) // it was made above
	}
	return address.Host
}

// Freeze keeps everything from passing. Connections stay, and new ones are taken.
func (w *Wire) Freeze() {
	w.changes.Lock()
	defer w.changes.Unlock()
	if !w.frozen {
		w.frozen = true
		w.gate.Lock()
	}
}

// Resume lets everything pass that has waited.
func (w *Wire) Resume() {
	w.changes.Lock()
	defer w.changes.Unlock()
	if w.frozen {
		w.frozen = false
		w.gate.Unlock()
	}
}

// Cut ends all connections.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
}

func (w *Wire) connect(client net.Conn) {
	w.gate.RLock()
	server, err := net.Dial("tcp", w.server)
	w.gate.RUnlock()
	if err != nil {
		client.Close()
		return
	}
	go w.pass(client, server)
	w.pass(server, client)
}

func (w *Wire) pass(from, to net.Conn) {
	w.mu.Lock()
	w.open[from] = true
	w.mu.Unlock()
	defer func() {
		from.Close()
		to.Close()
		w.mu.Lock()
		delete(w.open, from)
		w.mu.Unlock()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.gate.RLock()
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		w.gate.RUnlock()
		if err != nil {
			return
		}
	}
}
