package server

import (
	"context"
	"net/http"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/rpc"
)

// maxShutdownDelay is longer than any proxy takes to notice.
const maxShutdownDelay = 5 * time.Minute

var errStopping = &errs.Error{Kind: errs.Unavailable, Reason: rpc.NotReady, RetryAfter: time.Second,
	Message: "the server is stopping"}

// ready tells whether requests should be sent here. A server that is about to stop says no while it still answers them.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errStopping
	}
	return s.store.Ready(ctx)
}

// stop takes the server out of service so that nobody notices who comes through a proxy (docs/operations/upgrade.md):
// first it is not ready and connections of HTTP/1.1 end with their next answer. In the second half of the delay those
// of HTTP/2 do, too: not sooner, because a proxy that has several requests on one connection may lose those that meet
// the GOAWAY on their way. Then the listener is closed, whoever has connected by then gets to ask, streams are ended, and
// what still runs finishes. accepted is closed when all connections have been accepted.
func (s *Server) stop(servers []*http.Server, listening *lastCalls, accepted <-chan struct{}) {
	s.front.EndConnections(false)
	s.stopping.Store(true)
	if delay := s.config.ShutdownDelay; delay > 0 {
		s.log.Info("stopping: not ready from now on", "delay", delay.String())
		<-time.After(delay / 2)
		s.front.EndConnections(true)
		<-time.After(delay / 2)
	}
	s.log.Info("stopping", "timeout", stopTimeout.String())
	s.front.EndConnections(true)
	listening.stop()
	<-accepted
	s.awaitNewcomers()
	s.endStreams()
	stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, server := range servers {
		if err := server.Shutdown(stop); err != nil {
			s.log.Warn("running requests were cancelled", "error", err)
			server.Close()
		}
	}
}

func (s *Server) awaitNewcomers() {
	ctx, cancel := context.WithTimeout(context.Background(), newcomerTimeout)
	defer cancel()
	s.front.AwaitNewcomers(ctx)
}
