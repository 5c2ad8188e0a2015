package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// How many requests may be given up on one connection of HTTP/2 before they are answered. Honest clients give up now
// and then, or all at once when somebody closes a page; a client that does nothing else makes work past the limit on
// streams that are open at the same time.
const (
	givenUpAtOnce    = 1000
	givenUpPerSecond = 100
	answersPerGiveUp = 4 // so many answers make up for one request that was given up

	lastAnswers = time.Second      // for the last answer to arrive, before a connection that was cut off is closed
	lastWork    = 30 * time.Second // for requests that are still running on it
)

// givingUp takes answersPerGiveUp tokens for each request that is given up. An answer brings one back.
var givingUp = ratelimit.Rate{
	Requests: givenUpAtOnce * answersPerGiveUp,
	Per:      givenUpAtOnce * time.Second / givenUpPerSecond,
}

// connection is one of HTTP/2, and what has been given up on it.
type connection struct {
	conn     net.Conn
	answered atomic.Int64 // since the last one that was given up
	running  atomic.Int64 // requests
	cut      atomic.Bool
	closing  atomic.Bool

	mu     sync.Mutex
	tokens ratelimit.Bucket
	told   bool
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

// begin counts a request that runs. It tells whether it may.
func (c *connection) begin() bool {
	c.running.Add(1)
	return !c.cut.Load()
}

// end counts that it has ended. The last one on a connection that was cut off closes it, a moment later.
func (c *connection) end() {
	if c.running.Add(-1) == 0 && c.cut.Load() && !c.closing.Swap(true) {
		c.closeAfter(lastAnswers)
	}
}

// givenUp counts a request that nobody waits for any more. It tells, once, that they have become too many.
func (c *connection) givenUp(now time.Time) (tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.GiveBack(givingUp, int(c.answered.Swap(0)))
	if c.tokens.Take(time.Duration(now.UnixNano()), givingUp, answersPerGiveUp) == 0 || c.told {
		return false
	}
	c.told = true
	return true
}

// cutOff has requests that come from now on refused with the word that the connection is not to be used any more. It is
// closed when none is running on it, or when they take too long.
func (c *connection) cutOff() {
	c.cut.Store(true)
	c.closeAfter(lastWork)
}

func (c *connection) closeAfter(wait time.Duration) {
	time.AfterFunc(wait, func() { _ = c.conn.Close() })
}
