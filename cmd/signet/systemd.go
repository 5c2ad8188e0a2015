package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/signet-idm/signet/cmd/signet/remote"
	"github.com/signet-idm/signet/internal/base/systemd"
	"github.com/signet-idm/signet/internal/ops/server"
)

// metricsSocket is the name of the socket of systemd for metrics (FileDescriptorName=).
const metricsSocket = "metrics"

// passedSockets are those that systemd has opened for the server; nil: it opens its own.
func passedSockets() (main, metrics net.Listener, err error) {
	sockets, err := systemd.Sockets()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range sockets {
		if _, ok := s.Addr().(*net.TCPAddr); !ok {
			return nil, nil, fmt.Errorf("the socket %q of systemd must be a TCP socket: set ListenStream= to an address and a port", s.Name)
		}
		listener := &main
		if s.Name == metricsSocket {
			listener = &metrics
		}
		if *listener != nil {
			return nil, nil, fmt.Errorf("systemd passes more than one socket where the server needs one: use one ListenStream= for requests, and one with FileDescriptorName=%s for metrics", metricsSocket)
		}
		*listener = s.Listener
	}
	return main, metrics, nil
}

// tellSystemd says that the server is ready, that it stops when it does, and meanwhile that it is alive: that it
// answers requests. Whether it is ready does not count. A restart would help neither a database that is away nor a full
// disk, and would end the reads that still work.
func tellSystemd(ctx context.Context, log *slog.Logger, listening net.Addr, config server.Config) {
	tell := func(state string) {
		if err := systemd.Notify(state); err != nil {
			log.Warn(err.Error())
		}
	}
	tell(systemd.Ready)
	context.AfterFunc(ctx, func() { tell(systemd.Stopping) })
	alive := func(ctx context.Context) error {
		return remote.Probe(ctx, listening.String(), config.TLSCert != "", "/healthz")
	}
	go systemd.Watch(ctx, alive, func(err error) {
		log.Warn("the watchdog of systemd is not told that the server is alive", "error", err)
	})
}
