package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/test/testkit"
)

// postgresCounter stands between the server and PostgreSQL, and counts what goes over the wire: the statements that are
// executed, the times that somebody waits for an answer to them, the rows that PostgreSQL says it has written, and the
// transactions that wrote something, each of which waits for the disk.
type postgresCounter struct {
	address string // to be used instead of the database's
	direct  *pgx.Conn

	mu  sync.Mutex
	got counts
	all int64 // statements
}

// countPostgres counts on every connection to the address that it gives.
func countPostgres(t *testing.T, database string) *postgresCounter {
	t.Helper()
	address, err := url.Parse(database)
	testkit.Must(t, err)
	if address.Query().Get("sslmode") != "disable" {
		t.Skip("what is encrypted cannot be counted: use sslmode=disable")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	real := address.Host
	address.Host = listener.Addr().String()
	c := &postgresCounter{address: address.String()}
	c.direct, err = pgx.Connect(t.Context(), database)
	testkit.Must(t, err)
	t.Cleanup(func() { c.direct.Close(context.Background()) })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", real)
			if err != nil {
				client.Close()
				continue
			}
			w := &wire{counter: c, texts: map[string]string{}, portals: map[string]string{}}
			for _, way := range []struct {
				from, to net.Conn
				begins   bool
				message  func(kind byte, body []byte)
			}{{client, server, true, w.asked}, {server, client, false, w.answered}} {
				go func() {
					_ = pass(way.from, way.to, way.begins, way.message)
					way.from.Close()
					way.to.Close()
				}()
			}
		}
	}()
	return c
}

// pass copies messages one way, and tells of each before it is sent. The first one of a client has no kind.
func pass(from io.Reader, to io.Writer, begins bool, message func(kind byte, body []byte)) error {
	r := bufio.NewReader(from)
	for {
		head := make([]byte, 5)
		if begins {
			head = head[1:]
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		if !begins {
			message(head[0], body)
		}
		begins = false
		if _, err := to.Write(append(head, body...)); err != nil {
			return err
		}
	}
}

// wire is one connection.
type wire struct {
	counter *postgresCounter
	mu      sync.Mutex
	texts   map[string]string // of prepared statements
	portals map[string]string // text
	open    bool              // a transaction is
	wrote   bool              // in the transaction that is open
	// something since somebody waited last: preparing a statement, once for each connection, is no round trip of a call
	ran bool
}

func (w *wire) asked(kind byte, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := bytes.SplitN(body, []byte{0}, 3)
	c := w.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case 'P': // a statement: name, text
		w.texts[string(parts[0])] = string(parts[1])
	case 'B': // a portal, and the name of its statement
		w.portals[string(parts[0])] = w.texts[string(parts[1])]
	case 'E':
		w.ran = true
		w.runs(w.portals[string(parts[0])])
	case 'Q':
		c.got.trips++
		w.runs(string(parts[0]))
	case 'S':
		if w.ran {
			c.got.trips++
		}
		w.ran = false
	}
}

// runs counts a statement.
func (w *wire) runs(text string) {
	c := w.counter
	c.all++
	c.got.statements++
	c.got.what = append(c.got.what, text)
	verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(text)), " ")
	w.open = w.open || verb == "BEGIN"
	if w.open {
		c.got.inside++
	}
	if verb == "COMMIT" || verb == "ROLLBACK" {
		w.open = false
	}
}

func (w *wire) answered(kind byte, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case 'C': // INSERT 0 2, UPDATE 1, DELETE 1, COPY 3, SELECT 4, COMMIT
		words := strings.Fields(strings.TrimRight(string(body), "\x00"))
		switch words[0] {
		case "INSERT", "UPDATE", "DELETE", "COPY":
			n, _ := strconv.ParseInt(words[len(words)-1], 10, 64)
			c.got.rows += n
			w.wrote = w.wrote || n > 0
			if n > 0 {
				c.got.what = append(c.got.what, fmt.Sprint(words))
			}
		case "ROLLBACK":
			w.wrote = false
		}
	case 'Z': // ready for the next query
		if body[0] == 'I' && w.wrote {
			c.got.syncs++
			w.wrote = false
		}
	}
}

func (c *postgresCounter) begun() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// written is how far PostgreSQL's write-ahead log has come.
func (c *postgresCounter) written(t *testing.T) (at int64) {
	testkit.Must(t, c.direct.QueryRow(context.Background(),
		"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&at))
	return at
}

func (c *postgresCounter) take() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = counts{}
	return got
}
