package silence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

var quick = times{patience: 20 * time.Millisecond, answer: 100 * time.Millisecond, slice: 10 * time.Millisecond,
	looks: 5 * time.Millisecond, interest: time.Minute}

// speaker takes connections, and answers their first bytes unless it is silent. It never says anything more, but to
// talk.
type speaker struct {
	net.Listener
	silent atomic.Bool
	asked  atomic.Int64
}

var talk = []byte("talk, on")

func newSpeaker(t *testing.T) *speaker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s := &speaker{Listener: listener}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				first := make([]byte, 8)
				if _, err := io.ReadFull(c, first); err != nil {
					return
				}
				if bytes.Equal(first, talk) {
					for range time.Tick(time.Millisecond) { // as often as somebody who works through a long answer
						if _, err := c.Write([]byte{'.'}); err != nil {
							return
						}
					}
				}
				if s.asked.Add(1); !s.silent.Load() {
					_, _ = c.Write([]byte{'N'})
				}
			}()
		}
	}()
	return s
}

func (s *speaker) dial(d *Dialer) (net.Conn, error) {
	return d.Dial(context.Background(), "tcp", s.Addr().String())
}

func TestWhoWaitsForASlowServerGoesOnWaiting(t *testing.T) {
	s := newSpeaker(t)
	patient := quick
	patient.answer = testkit.Patience
	d := start(patient, func(silent bool) { t.Errorf("it is taken for silent: %v", silent) })
	defer d.Close()
	c, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	testkit.Await(t, "the server is asked again and again", func() bool { return s.asked.Load() >= 5 })
	select {
	case err := <-read:
		t.Errorf("it was ended: %v", err)
	default:
	}
	c.Close()
	testkit.Receive(t, read, "the reader ends")
}

// A server too busy for new connections goes on with those it has.
func TestAServerThatSendsOnAnotherConnectionIsNotSilent(t *testing.T) {
	t.Parallel()
	s := newSpeaker(t)
	s.silent.Store(true)
	patient := quick
	// 200 looks, in one of which a byte of those that are sent all the time has arrived
	patient.answer = 2 * time.Second
	d := start(patient, func(silent bool) { t.Errorf("it is taken for silent: %v", silent) })
	defer d.Close()
	waits, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	hears, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hears.Write(talk); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(hears, make([]byte, 1)); err != nil { // from now on it talks
		t.Fatal(err)
	}
	read := make(chan error, 2)
	for _, c := range []net.Conn{hears, waits} {
		go func() {
			_, err := io.Copy(io.Discard, c)
			read <- err
		}()
	}
	testkit.Await(t, "the server is asked again and again", func() bool { return s.asked.Load() >= 3 })
	select {
	case err := <-read:
		t.Errorf("it was ended: %v", err)
	default:
	}
	d.Close() // before the connections, on which nothing arrives any more
	waits.Close()
	hears.Close()
	for range 2 {
		testkit.Receive(t, read, "a reader ends")
	}
}

func TestASilentServerIsGivenUpAndComesBack(t *testing.T) {
	s := newSpeaker(t)
	changes := make(chan bool, 10)
	d := start(quick, func(silent bool) { changes <- silent })
	defer d.Close()
	waits, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	idle, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	s.silent.Store(true)
	if _, err := waits.Read(make([]byte, 1)); !errors.Is(err, Err) {
		t.Errorf("who waits gets %v", err)
	}
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, Err) {
		t.Errorf("who waits later gets %v", err)
	}
	if _, err := s.dial(d); !errors.Is(err, Err) {
		t.Errorf("who connects gets %v", err)
	}
	s.silent.Store(false)
	var again net.Conn
	testkit.Await(t, "it is back", func() bool {
		again, err = s.dial(d)
		return err == nil
	})
	again.Close()
	first, second := testkit.Receive(t, changes, "it is silent"), testkit.Receive(t, changes, "it is back")
	if !first || second || len(changes) > 0 {
		t.Errorf("told %v, %v and %d more", first, second, len(changes))
	}
}

// What nobody wants any more is not asked for ever.
func TestAServerThatNobodyWantsIsForgotten(t *testing.T) {
	s := newSpeaker(t)
	brief := quick
	brief.interest = 50 * time.Millisecond
	d := start(brief, func(bool) {})
	defer d.Close()
	c, err := s.dial(d)
	if err != nil {
		t.Fatal(err)
	}
	s.silent.Store(true)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, Err) {
		t.Fatal(err)
	}
	testkit.Await(t, "it is forgotten", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.servers) == 0
	})
}
