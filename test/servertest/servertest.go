// Package servertest runs servers for tests, in the process of the test.
package servertest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testkit"
)

// Start serves until the test ends, on a port of this machine, in a directory of its own and with passwords that cost
// nothing unless config says otherwise. The server logs to log.
func Start(t testing.TB, config server.Config, log io.Writer) *server.Server {
	t.Helper()
	config.Listen = cmp.Or(config.Listen, "127.0.0.1:0")
	if config.DataDir == "" {
		config.DataDir = t.TempDir()
	}
	if config.Hasher == nil {
		config.Hasher = secret.NewCheapHasher()
	}
	s, err := server.Open(t.Context(), config, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(testkit.Receive(t, stopped, "the server has stopped"), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}
