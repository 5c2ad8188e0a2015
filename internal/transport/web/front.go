package web

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// These constants bound how much of an unwanted body is read before its answer goes out. A client that sends more, or
// slower, is answered all the same, but the connection (the stream, in HTTP/2) may close before it reads the answer.
const (
	leastRest = 1 << 20 // what HTTP/2 has on its way at most without waiting for us
	// the largest request there is (an import of 4 MiB), also in base64 (gRPC-Web in text mode)
	maxRest     = 6 << 20
	maxRestTime = 3 * time.Second // for each restStep: who sends slower than that is not waited for
	restStep    = 256 << 10
)

// Front is what every request comes through first, whatever it is for. It bounds what bodies take up in memory (see
// Budget), and sees to it that answers arrive:
//
// Who answers without having read the body (no credential, an unknown path, a body that is too large) makes net/http
// reset the stream in HTTP/2 behind the answer. Proxies and clients that are still sending take that for a failure, and
// the answer is lost. So the rest of the body is read first, up to a limit.
//
// Connections on which far more requests are given up than answered are closed, see connection; those of trusted
// proxies are not.
type Front struct {
	Next           http.Handler
	Budget         Budget
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	Log            *slog.Logger   // nil: nothing is logged

	restTime time.Duration // for tests; 0: maxRestTime
	ending   atomic.Int32  // the newest version of HTTP whose connections end with their next answer

	newcomers newcomers
}

// EndConnections has each connection of HTTP/1.1 closed with its next answer, which says so. With all, the same goes
// for HTTP/2 (GOAWAY).
func (f *Front) EndConnections(all bool) {
	f.ending.Store(1)
	if all {
		f.ending.Store(2)
	}
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ending := f.ending.Load(); ending > 0 {
		f.newcomers.asks(r)
		if int32(r.ProtoMajor) <= ending {
			w.Header()["Connection"] = []string{"close"} // in HTTP/2: go away
		}
	}
	if r.ProtoMajor == 2 {
		growStack(0)
	}
	c := connectionOf(r)
	if c == nil {
		f.serve(w, r)
		return
	}
	defer c.end()
	if !c.begin() {
		w.Header().Set("Connection", "close") // in HTTP/2: go away
		w.Header()[RequestIDHeader] = []string{RequestID(r.Header)}
		http.Error(w, "Too many requests were cancelled on this connection: use another one, and wait for answers.",
			http.StatusTooManyRequests)
		return
	}
	f.serve(w, r)
	if r.Context().Err() == nil {
		c.answered.Add(1)
	} else if c.givenUp(time.Now()) {
		f.tooManyGivenUp(c, r.RemoteAddr)
	}
}

// stackRoom makes a stack of 16 KiB, the largest of which every processor keeps some at hand. Most requests need that
// much.
const stackRoom = 12 << 10

// growStack gives a goroutine the stack that a request needs, while there is next to nothing on it. HTTP/2 has a
// goroutine for each request, which begins with a small stack. Growing it step by step in the depth of the handlers
// costs 31 µs of the 65 µs that a read of the own user takes there; this costs 7 µs. Over HTTP/1.1, requests have the
// goroutine of their connection, which has grown with the first.
//
//go:noinline
func growStack(i int) byte {
	var room [stackRoom]byte
	return room[i]
}

// tooManyGivenUp cuts a connection off. That of a trusted proxy has the requests of many people on it, and stays.
func (f *Front) tooManyGivenUp(c *connection, from string) {
	says := "too many requests are cancelled on a connection of a trusted proxy, which stays open"
	if direct, _ := parseAddr(from); !contain(f.TrustedProxies, direct) {
		says = "a connection is closed: too many of its requests were cancelled"
		c.cutOff()
	}
	if f.Log != nil {
		f.Log.Warn(says, "peer", from)
	}
}

func (f *Front) serve(w http.ResponseWriter, r *http.Request) {
	// HTTP/2 has a body of an unknown length, or one with a length that was sent, or none.
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		f.Next.ServeHTTP(w, r)
		return
	}
	b := bodies.Get().(*body)
	*b = body{front: f, r: r, from: r.Body, reserved: reservation{budget: &f.Budget}}
	r.Body = b
	defer func() {
		b.reserved.end()
		r.Body = b.from
		*b = body{}
		bodies.Put(b)
	}()
	f.Next.ServeHTTP(w, r)
	if b.err == nil && r.Context().Err() == nil && !b.awaitsInvitation() {
		b.finish(w)
	}
}

// body is that of one request. It must not be used when the request has been answered.
type body struct {
	front    *Front
	r        *http.Request
	from     io.ReadCloser
	reserved reservation
	begun    bool
	err      error // how it ended
	full     error // why no more of it is taken
}

var bodies = sync.Pool{New: func() any { return new(body) }}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.full != nil:
		return 0, b.full
	case b.from == nil:
		return 0, http.ErrBodyReadAfterClose
	case !b.begun:
		if b.full = b.reserved.begin(b.peer()); b.full != nil {
			return 0, b.full // who waits to be invited is not
		}
	}
	n, err := b.read(p)
	if b.full = b.reserved.add(n); b.full != nil {
		return 0, b.full
	}
	return n, err
}

func (b *body) peer() netip.Addr { return Peer(b.r, b.front.TrustedProxies) }

func (b *body) read(p []byte) (n int, err error) {
	b.begun = true
	n, err = b.from.Read(p)
	b.err = err
	return n, err
}

// Close implements io.Closer. What is left of the body may still be read by finish.
func (b *body) Close() error { return nil }

// Unpacked takes room for what the body of a request has become when it was unpacked, beside what has come.
func Unpacked(requestBody io.Reader, n int) error {
	if b, ok := requestBody.(*body); ok {
		return b.reserved.add(n)
	}
	return nil
}

// awaitsInvitation tells whether the client sends nothing before it is told to go on (100-continue), which it was not:
// reading would tell it. For HTTP/2, net/http keeps to itself that a client waits: what such a client then sends is
// read and thrown away like any other rest.
func (b *body) awaitsInvitation() bool {
	return !b.begun && b.r.ProtoMajor == 1 && b.r.Header["Expect"] != nil
}

// Buffers for bytes that are discarded. The first has 512 bytes, so that a client that sends nothing takes up little
// memory; the second is as large as the least that is counted for a body.
var (
	sips   = sync.Pool{New: func() any { return new([512]byte) }}
	scraps = sync.Pool{New: func() any { return new([leastBody]byte) }}
)

// finish reads the rest of a body that nobody wants, within its limits, and keeps nothing of it. It counts as a body
// that has begun, so that a network has only so many of them at a time; where there is no room for it, less is read.
func (b *body) finish(w http.ResponseWriter) {
	most := maxRest
	if b.reserved.taken == 0 && b.reserved.begin(b.peer()) != nil {
		most = leastRest
	}
	b.throwAway(http.NewResponseController(w), most)
	if !errors.Is(b.err, io.EOF) && b.r.ProtoMajor == 1 {
		w.Header()["Connection"] = []string{"close"}
	}
}

func (b *body) throwAway(w *http.ResponseController, most int) {
	// A writer that cannot do it belongs to a test, where nobody is slow.
	wait := func() { _ = w.SetReadDeadline(time.Now().Add(cmp.Or(b.front.restTime, maxRestTime))) }
	wait()
	sip := sips.Get().(*[512]byte)
	n, _ := b.read(sip[:])
	clear(sip[:n])
	sips.Put(sip)
	if b.err != nil {
		return
	}
	buf := scraps.Get().(*[leastBody]byte)
	defer func() {
		clear(buf[:])
		scraps.Put(buf)
	}()
	for left, step := most-n, restStep; left > 0 && b.err == nil; left -= n {
		n, _ = b.read(buf[:])
		if step -= n; step <= 0 {
			step = restStep
			wait()
		}
	}
}
