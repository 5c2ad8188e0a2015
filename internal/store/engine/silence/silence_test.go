package silence

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

var quick = times{patience: 20 * time.Millisecond, answer: 100 * time.Millisecond, looks: 5 * time.Millisecond, interest: time.Minute}

// speaker takes connections, and answers their first byte unless it is silent. It never says anything more.
type speaker struct {
	net.Listener
	silent atomic.Bool
	asked  atomic.Int64
}

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
				if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
					return
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
	d := start(quick, func(silent bool) { t.Errorf("it is taken for silent: %v", silent) })
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
	<-read
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
	if first, second := <-changes, <-changes; !first || second || len(changes) > 0 {
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
