package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// How many requests may be given up on one connection of HTTP/2 before they are answered. Honest clients give up now and then, or all at once
// when somebody closes a page; a client that does nothing else makes work past the limit on streams that are open at the same time.
const (
	givenUpAtOnce    = 1000
	givenUpPerSecond = 100
	answersPerGiveUp = 4 // so many answers make up for one request that was given up

	lastAnswers = time.Second // between the word that a connection is not to be used any more and its end
)

// connection is one of HTTP/2, and what has been given up on it.
type connection struct {
	conn     net.Conn
	answered atomic.Int64 // since the last one that was given up
	cut      atomic.Bool

	mu    sync.Mutex
	level float64
	last  time.Time
}

type connectionKey struct{}

// ConnContext is for http.Server: it lets Front tell connections apart.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{conn: conn})
}

// connectionOf gives the connection of a request where one connection has many requests at once.
func connectionOf(r *http.Request) *connection {
	if r.ProtoMajor < 2 {
		return nil
	}
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

func (c *connection) isCut() bool { return c.cut.Load() }

// givenUp counts a request that nobody waits for any more. It tells when they have become too many: requests that come after that are
// refused with the word that the connection is not to be used any more, and a moment later it is closed.
func (c *connection) givenUp(now time.Time) (tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level -= now.Sub(c.last).Seconds()*givenUpPerSecond + float64(c.answered.Swap(0))/answersPerGiveUp
	c.level, c.last = max(c.level, 0)+1, now
	if c.level <= givenUpAtOnce || c.cut.Swap(true) {
		return false
	}
	time.AfterFunc(lastAnswers, func() { _ = c.conn.Close() })
	return true
}
