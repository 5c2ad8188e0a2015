package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
)

// TestAServerThatStopsIsNotReadyFirst: it goes on answering meanwhile, and asks to come by another connection: of
// HTTP/1.1 at once, of HTTP/2 in the second half of the delay.
func TestAServerThatStopsIsNotReadyFirst(t *testing.T) {
	const delay = 1500 * time.Millisecond
	s, err := Open(t.Context(), Config{Data: Data{DataDir: t.TempDir()}, Listen: "127.0.0.1:0", Hasher: secret.NewCheapHasher(), ShutdownDelay: delay}, slog.New(slog.NewTextHandler(io.Discard, nil)))
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
	for status := 200; status != 503; {
		if status, _, err = get(one, "/readyz"); err != nil {
			t.Fatal(err)
		}
	}
	if status, closes, err := get(one, "/openapi.json"); status != 200 || !closes || err != nil {
		t.Errorf("HTTP/1.1 while it stops: %d, closes %v, %v", status, closes, err)
	}
	if status, _, err := get(two, "/openapi.json"); status != 200 || err != nil {
		t.Errorf("HTTP/2 while it stops: %d, %v", status, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("it stopped after %v", took)
	}
	if _, _, err := get(one, "/readyz"); err == nil {
		t.Error("it answers after it has stopped")
	}
}
