package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/signet-idm/signet/internal/transport/web"
)

// Limits of a connection. A request has 30 s (package rpc); these are for clients that are slow on purpose.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 35 * time.Second
	writeTimeout      = 40 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxStreams        = 250
	stopTimeout       = 15 * time.Second
	newcomerTimeout   = 5 * time.Second // for the first request on a connection, when the server stops
)

func (s *Server) listen() (err error) {
	s.listener, s.metricsListener = s.config.Listener, s.config.MetricsListener
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", s.config.Listen); err != nil {
			return fmt.Errorf("--listen %s: %w", s.config.Listen, explainListen(err))
		}
	}
	s.config.listening(s.listener.Addr())
	if s.metricsListener != nil || s.config.MetricsListen == "" {
		return nil
	}
	if s.metricsListener, err = net.Listen("tcp", s.config.MetricsListen); err != nil {
		return fmt.Errorf("--metrics-listen %s: %w", s.config.MetricsListen, explainListen(err))
	}
	return nil
}

// explainListen says what to do about an address that cannot be had.
func explainListen(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.New("another program uses this address: stop it, or choose another address")
	}
	return err
}

// Serve answers requests until ctx ends, then stops, see stop. ready is called once, when a request would
// be answered.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	main := NewHTTPServer(s.front, s.log)
	main.ConnState = s.front.ConnState
	servers := []*http.Server{main}
	failed := make(chan error, 2)
	accepted := make(chan struct{})
	listening := newLastCalls(s.listener)
	serve := func() error { return main.Serve(readingAhead{&accepting{Listener: listening, log: s.log}}) }
	if s.config.certificate != nil {
		main.TLSConfig.Certificates = []tls.Certificate{*s.config.certificate}
		serve = func() error { return main.ServeTLS(&accepting{Listener: listening, log: s.log}, "", "") }
	}
	go func() {
		defer close(accepted)
		failed <- serve()
	}()
	if s.metricsListener != nil {
		side := NewHTTPServer(&web.Front{Next: s.metricsHandler(), Log: s.log}, s.log)
		servers = append(servers, side)
		go func() { failed <- side.Serve(&accepting{Listener: s.metricsListener, log: s.log}) }()
	}
	if ready != nil {
		ready()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.stop(servers, listening, accepted)
	return nil
}

// NewHTTPServer makes a server with our limits for HTTP/1.1 and HTTP/2, with and without TLS.
func NewHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols: &http.Protocols{}, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ConnContext: web.ConnContext,
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server
}
