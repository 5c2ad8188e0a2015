package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

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

// askedWhileItStops judges a server that stops with a delay; false: the delay was over before it was asked.
func askedWhileItStops(t *testing.T, delay time.Duration) bool {
	s, err := Open(t.Context(),
		Config{Data: Data{DataDir: t.TempDir()}, Listen: "127.0.0.1:0", Hasher: secret.NewCheapHasher(),
			ShutdownDelay: delay}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, nil) }()
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
	stop()
	for err == nil {
		var status int
		if status, _, err = get(one, "/readyz"); status == 503 {
			break
		}
	}
	first, closes, oneErr := get(one, "/openapi.json")
	second, _, twoErr := get(two, "/openapi.json")
	if err := errors.Join(err, oneErr, twoErr); err != nil && time.Since(began) >= delay {
		testkit.Must(t, testkit.Receive(t, stopped, "it has stopped"))
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
	testkit.Must(t, testkit.Receive(t, stopped, "it has stopped"))
	if took := time.Since(began); took < delay {
		t.Errorf("it stopped after %v", took)
	}
	if _, _, err := get(one, "/readyz"); err == nil {
		t.Error("it answers after it has stopped")
	}
	return true
}
