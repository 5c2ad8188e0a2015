package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/test/testkit"
)

// TestAServerThatStopsIsNotReadyFirst: it goes on answering meanwhile, and asks to come by another connection: of
// HTTP/1.1 at once, of HTTP/2 in the second half of the delay. On a machine that is too busy to ask it within the delay,
// the delay is made longer.
func TestAServerThatStopsIsNotReadyFirst(t *testing.T) {
	for delay := 1500 * time.Millisecond; !askedWhileItStops(t, delay); delay *= 2 {
		if delay > testkit.Patience {
			t.Fatalf("it does not say within %v that it stops", delay)
		}
	}
}

// TestWhoConnectsLastIsAnswered: over both versions of HTTP, who has connected while the server still took connections is
// answered, also where the first request comes after that, as a proxy's may. A machine that is too busy to send it
// within the time that the server gives it proves nothing.
func TestWhoConnectsLastIsAnswered(t *testing.T) {
	for began := time.Now(); !askedLast(t); {
		if time.Since(began) > testkit.Patience {
			t.Fatal("this machine is too busy")
		}
	}
}

// askedLast judges a server that stops; false: the time for a first request was over before it was sent.
func askedLast(t *testing.T) bool {
	const delay = 500 * time.Millisecond
	s := serveUntilStopped(t, delay)
	began := time.Now()
	s.stop()
	testkit.Await(t, "it is not ready", func() bool { return s.ready(t.Context()) != nil })
	one, oneErr := net.Dial("tcp", s.Addr().String())
	two, twoErr := net.Dial("tcp", s.Addr().String())
	if err := errors.Join(oneErr, twoErr); err != nil {
		if time.Since(began) < delay {
			t.Fatal(err)
		}
		return false
	}
	defer one.Close()
	defer two.Close()
	framer := http2.NewFramer(two, two)
	_, err := io.WriteString(two, http2.ClientPreface)
	testkit.Must(t, errors.Join(two.SetDeadline(time.Now().Add(testkit.Patience)),
		one.SetDeadline(time.Now().Add(testkit.Patience))))
	if err = errors.Join(err, framer.WriteSettings()); err == nil {
		_, err = framer.ReadFrame() // the server has seen that it is HTTP/2
	}
	if err != nil && time.Since(began) < delay {
		t.Fatal(err)
	} else if err != nil {
		return false
	}
	testkit.Await(t, "no more connections are taken", func() bool {
		late, err := net.Dial("tcp", s.Addr().String())
		if err == nil {
			late.Close()
		}
		return err != nil
	})

	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"},
		{":path", "/openapi.json"}} {
		testkit.Must(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	_, oneErr = io.WriteString(one, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	twoErr = errors.Join(framer.WriteSettingsAck(), framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true, EndStream: true}))
	sent := time.Since(began)
	if oneErr == nil {
		var resp *http.Response
		if resp, oneErr = http.ReadResponse(bufio.NewReader(one), nil); oneErr == nil && resp.StatusCode != 200 {
			oneErr = errors.New(resp.Status)
		}
	}
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for twoErr == nil {
		var frame http2.Frame
		if frame, twoErr = framer.ReadFrame(); twoErr != nil {
			break
		}
		if answer, ok := frame.(*http2.MetaHeadersFrame); ok {
			if status := answer.PseudoValue("status"); status != "200" {
				twoErr = errors.New(status)
			}
			break
		}
		if away, ok := frame.(*http2.GoAwayFrame); ok && away.LastStreamID == 0 {
			twoErr = errors.New("the server goes away before it has seen the request")
		}
	}
	one.Close()
	two.Close()
	testkit.Must(t, testkit.Receive(t, s.stopped, "it has stopped"))
	if oneErr == nil && twoErr == nil {
		return true
	}
	if sent < delay+newcomerTimeout/2 {
		t.Fatalf("HTTP/1.1: %v; HTTP/2: %v", oneErr, twoErr)
	}
	return false
}

// untilStopped is a server that serves until stop is called.
type untilStopped struct {
	*Server
	stop    context.CancelFunc
	stopped <-chan error
}

func serveUntilStopped(t *testing.T, delay time.Duration) *untilStopped {
	t.Helper()
	s, err := Open(t.Context(),
		Config{Data: Data{DataDir: t.TempDir()}, Listen: "127.0.0.1:0", Hasher: secret.NewCheapHasher(),
			ShutdownDelay: delay}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, nil) }()
	return &untilStopped{Server: s, stop: stop, stopped: stopped}
}

// askedWhileItStops judges a server that stops with a delay; false: the delay was over before it was asked.
func askedWhileItStops(t *testing.T, delay time.Duration) bool {
	s := serveUntilStopped(t, delay)
	one := &http.Client{Transport: &http.Transport{}}
	two := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	two.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	get := func(client *http.Client, path string) (status int, closes bool, err error) {
		resp, err := client.Get("http://" + s.Addr().String() + path)
		if err != nil {
			return 0, false, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Close, err
	}
	for _, client := range []*http.Client{one, two} {
		if status, closes, err := get(client, "/readyz"); status != 200 || closes || err != nil {
			t.Fatalf("before: %d %v %v", status, closes, err)
		}
	}
	began := time.Now()
	s.stop()
	var err error
	for err == nil {
		var status int
		if status, _, err = get(one, "/readyz"); status == 503 {
			break
		}
	}
	first, closes, oneErr := get(one, "/openapi.json")
	second, _, twoErr := get(two, "/openapi.json")
	if err := errors.Join(err, oneErr, twoErr); err != nil && time.Since(began) >= delay {
		testkit.Must(t, testkit.Receive(t, s.stopped, "it has stopped"))
		return false
	} else if err != nil {
		t.Fatalf("while it stops: %v", err)
	}
	if first != 200 || !closes {
		t.Errorf("HTTP/1.1 while it stops: %d, closes %v", first, closes)
	}
	if second != 200 {
		t.Errorf("HTTP/2 while it stops: %d", second)
	}
	testkit.Must(t, testkit.Receive(t, s.stopped, "it has stopped"))
	if took := time.Since(began); took < delay {
		t.Errorf("it stopped after %v", took)
	}
	if _, _, err := get(one, "/readyz"); err == nil {
		t.Error("it answers after it has stopped")
	}
	return true
}
