// Package silence tells a PostgreSQL server that has gone silent from one that is slow, and closes the connections to a
// silent one.
//
// A server that is frozen or cut off ends no connection, so a client would wait for its answer for ever. A time limit
// for every statement would also end statements that take long for a reason. So when a connection has waited for a
// moment, this package opens a new one and asks the server whether it speaks TLS. Every server that speaks PostgreSQL's
// protocol answers that at once, without a login, even while it starts, is full, or works on something large. A server
// that does not answer counts as silent, unless something arrived on another connection in the meantime. On a machine
// that is too busy to run this process, the time when it was not run does not count.
package silence

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// times that a Dialer takes. All of them together, a silent server is given up within 3 s.
type times struct {
	patience time.Duration // how long a connection waits before the server is asked
	answer   time.Duration // how long the server has to answer that
	slice    time.Duration // the part of answer that one read waits for
	looks    time.Duration // at who waits
	interest time.Duration // how long a silent server is asked again after somebody last wanted it
}

var usual = times{patience: time.Second, answer: 1500 * time.Millisecond, slice: 50 * time.Millisecond,
	looks: 250 * time.Millisecond, interest: time.Minute}

const dialing = 2 * time.Second // for TCP alone, not for the login

// Err is what everybody gets who waits for a silent server, or wants a connection to it.
var Err net.Error = silent{}

type silent struct{}

func (silent) Error() string   { return "the server has gone silent" }
func (silent) Timeout() bool   { return false } // the driver would keep a connection for which it is true
func (silent) Temporary() bool { return false }

// Dialer makes connections that end when their server goes silent. Close it in the end.
type Dialer struct {
	times
	changed func(silent bool) // for the log; called once per change of a server
	dialer  net.Dialer
	stop    chan struct{}
	closing sync.Once

	mu      sync.Mutex
	servers map[where]*server
}

type where struct{ network, address string }

type server struct {
	conns  map[*conn]struct{}
	silent bool
	asking bool
	wanted time.Time    // when somebody last wanted a connection
	heard  atomic.Int64 // how often something arrived from it
}

// New starts to watch. changed is told when a server goes silent, and when it is back.
func New(changed func(silent bool)) *Dialer { return start(usual, changed) }

func start(t times, changed func(silent bool)) *Dialer {
	d := &Dialer{
		times:   t,
		changed: changed,
		stop:    make(chan struct{}),
		servers: map[where]*server{},
		dialer: net.Dialer{
			// where the machine is gone the address may be another's by now: only the connection itself can tell
			Timeout: dialing, Control: control,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2},
		},
	}
	go d.watch()
	return d
}

// Close ends the watch. The connections stay, and no change is told any more.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing.Do(func() { close(d.stop) })
}

// Dial connects. A server that is known to be silent is refused at once: another one of the same address may be there.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to := where{network, address}
	if d.want(to) {
		return nil, Err
	}
	inner, err := d.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.at(to)
	c := &conn{Conn: inner, dialer: d, to: to, heard: &s.heard}
	s.conns[c] = struct{}{}
	return c, nil
}

func (d *Dialer) want(to where) (isSilent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.at(to)
	s.wanted = time.Now()
	return s.silent
}

func (d *Dialer) at(to where) *server {
	s := d.servers[to]
	if s == nil {
		s = &server{conns: map[*conn]struct{}{}}
		d.servers[to] = s
	}
	return s
}

func (d *Dialer) watch() {
	ticks := time.NewTicker(d.looks)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			d.look(time.Now())
		case <-d.stop:
			return
		}
	}
}

// look asks every server for which somebody has waited for too long, and those that are silent.
func (d *Dialer) look(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for to, s := range d.servers {
		ask := s.silent
		for c := range s.conns {
			ask = ask || c.reading.longer(d.patience, now) || c.writing.longer(d.patience, now)
		}
		switch {
		case s.asking:
		case len(s.conns) == 0 && now.Sub(s.wanted) > d.interest:
			delete(d.servers, to)
		case ask:
			s.asking = true
			go d.ask(to, s.heard.Load())
		}
	}
}

// ask finds out whether a server is silent. heard is how often something had arrived from it before.
func (d *Dialer) ask(to where, heard int64) {
	answered := d.answers(to)
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.stop:
		return
	default:
	}
	s := d.at(to)
	s.asking = false
	answered = answered || s.heard.Load() > heard
	if s.silent == answered {
		s.silent = !answered
		d.changed(s.silent)
	}
	if s.silent {
		for c := range s.conns { // also those on which nobody waits: the next statement on one of them would
			c.cut.Store(true)
			_ = c.Conn.Close() // nobody is there to be told
		}
		clear(s.conns)
	}
}

// answers asks for TLS, and waits for any answer at all. It waits in slices, and each counts as long as it was meant to
// be, however long it took.
func (d *Dialer) answers(to where) bool {
	probe := net.Dialer{Timeout: d.answer}
	c, err := probe.Dial(to.network, to.address)
	if err != nil {
		return false
	}
	defer c.Close()
	// SSLRequest: it fits into any buffer
	if _, err := c.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}); err != nil {
		return false
	}
	for waited := time.Duration(0); waited < d.answer; waited += d.slice {
		if err := c.SetReadDeadline(time.Now().Add(d.slice)); err != nil {
			return false
		}
		_, err := c.Read(make([]byte, 1))
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err == nil
		}
	}
	return false
}

// conn is a connection that knows since when somebody waits on it.
type conn struct {
	net.Conn
	dialer           *Dialer
	to               where
	reading, writing waiting // the driver may do both at once
	heard            *atomic.Int64
	cut              atomic.Bool
}

// waiting is since when somebody waits, in nanoseconds; 0 while nobody does.
type waiting struct{ since atomic.Int64 }

func (w *waiting) longer(than time.Duration, now time.Time) bool {
	since := w.since.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) > than
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.wait(&c.reading, c.Conn.Read, b)
	if n > 0 {
		c.heard.Add(1)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) { return c.wait(&c.writing, c.Conn.Write, b) }

func (c *conn) wait(w *waiting, on func([]byte) (int, error), b []byte) (int, error) {
	w.since.Store(time.Now().UnixNano())
	n, err := on(b)
	w.since.Store(0)
	if err != nil && c.cut.Load() {
		err = Err
	}
	return n, err
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.at(c.to).conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
