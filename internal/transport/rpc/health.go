package rpc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

const (
	healthLooks   = time.Second          // between two looks at whether the server is ready, while somebody watches
	statusUnknown = grpchealth.Status(3) // SERVICE_UNKNOWN, which the library has no name for
)

// watchLimits bounds what strangers can hold open by watching the health of the server.
var watchLimits = StreamLimits{Open: 100, PerCaller: 5}

// health answers gRPC health checks, for the server as a whole and for each of its services, and tells watchers when it
// changes.
type health struct {
	h     *Handler
	names []string

	mu       sync.Mutex
	found    bool // by the last look: the server is ready
	watchers map[*watcher]bool
	stop     context.CancelFunc // ends the looks; nil while nobody watches
}

type watcher struct{ changed func() }

type watchingKey struct{}

// Check implements grpchealth.Checker. Watchers are told what the last look found, and of a service that does not exist
// as a state of it.
func (c *health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	watching := ctx.Value(watchingKey{}) != nil
	switch known := req.Service == "" || slices.Contains(c.names, req.Service); {
	case !known && watching:
		return &grpchealth.CheckResponse{Status: statusUnknown}, nil
	case !known:
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such service"))
	case watching && c.lastFound(), !watching && c.isReady(ctx):
		return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
}

// Watch implements grpchealth.Watcher. However many watch, the server looks at itself once a second.
func (c *health) Watch(ctx context.Context, _ *grpchealth.CheckRequest, changed func()) (stop func(), err error) {
	c.tell(c.isReady(ctx))
	w := &watcher{changed}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers[w] = true; c.stop == nil {
		ctx, c.stop = context.WithCancel(c.h.watches.end)
		go c.look(ctx)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.watchers, w); len(c.watchers) == 0 {
			c.stop()
			c.stop = nil
		}
	}, nil
}

func (c *health) look(ctx context.Context) {
	ticks := time.NewTicker(healthLooks)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			c.tell(c.isReady(ctx))
		}
	}
}

// tell lets all watchers know whether the server is ready, where that is new.
func (c *health) tell(ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == ready {
		return
	}
	c.found = ready
	for w := range c.watchers {
		w.changed()
	}
}

func (c *health) lastFound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

func (c *health) isReady(ctx context.Context) bool { return c.h.ready(ctx) == nil }

// watch lets a call last until its caller or the server ends it, where there is room.
func watch(c *Call) (context.Context, func(), error) {
	from := ratelimit.NetworkName(c.Info.Peer)
	leave, err := c.h.watches.enter(from, from)
	if err != nil {
		return nil, nil, err
	}
	// A writer that cannot do it belongs to a test, where nothing lasts.
	_ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.WithValue(c.Request.Context(), watchingKey{}, true))
	stop := context.AfterFunc(c.h.watches.end, cancel)
	return ctx, func() { stop(); cancel(); leave() }, nil
}
