package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/domain/call"
)

// StreamLimits bounds what streams can take up. The zero value means the defaults.
type StreamLimits struct {
	Open      int           // at once on this server, of which one organization has half at most; 500
	PerCaller int           // of them, of one user; 10
	Patience  time.Duration // with somebody who reads nothing; a minute
}

// lastWords is how long the end of a stream may take to be sent.
const lastWords = 500 * time.Millisecond

// streams are those that are open on this server.
type streams struct {
	StreamLimits
	end     context.Context // ends with the server
	endAll  context.CancelFunc
	running sync.WaitGroup

	slots *fairqueue.Slots // organizations share them

	mu sync.Mutex
	of map[string]int // by user
}

func (s *streams) begin(limits StreamLimits) {
	s.StreamLimits = StreamLimits{Open: cmp.Or(limits.Open, 500), PerCaller: cmp.Or(limits.PerCaller, 10),
		Patience: cmp.Or(limits.Patience, time.Minute)}
	s.end, s.endAll = context.WithCancel(context.Background())
	s.of = map[string]int{}
	s.slots = fairqueue.New(fairqueue.Bounds{Slots: s.Open, Reserve: true, Full: errStreamsHere,
		UsedUp: errStreamsOfOrganization})
}

// EndStreams ends all streams, which takes less than a second, and waits for that. New ones are refused from then on.
func (h *Handler) EndStreams() {
	for _, s := range []*streams{&h.streams, &h.watches} {
		s.mu.Lock()
		s.endAll()
		s.mu.Unlock()
	}
	h.streams.running.Wait()
	h.watches.running.Wait()
}

// enter counts a stream in, where there is room for it.
func (s *streams) enter(user, org string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.end.Err() != nil:
		return nil, errStopping
	case s.of[user] >= s.PerCaller:
		return nil, errStreamsOfYours
	}
	claim := fairqueue.Claim{Org: org}
	if err := s.slots.Enter(context.Background(), claim); err != nil { // it answers at once
		return nil, err
	}
	s.of[user]++
	s.running.Add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.slots.Leave(claim)
		if s.of[user]--; s.of[user] == 0 {
			delete(s.of, user)
		}
		s.running.Done()
	}, nil
}

// streamChain is what every stream runs behind: the same as any operation, but for the time it may take and for how
// many there may be. Whether the caller may go on is judged again by the operation, see access.Permit.Renew.
func (h *Handler) streamChain() run {
	return link(carry, slices.Concat([]step{guard, h.lasting}, h.who(), []step{h.validate, h.authorize, h.admit})...)
}

// lasting lets a stream go on until its caller or the server ends it, and gives failures that come from that their
// name.
func (h *Handler) lasting(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.streams.end, cancel)()
	if c.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	_, err := next(call.With(ctx, &c.Info), c, req)
	_, bug := errors.AsType[*errs.Panicked](err)
	switch {
	case err == nil || bug:
		return nil, err
	case h.streams.end.Err() != nil:
		return nil, errStopping.Because(err)
	case errors.Is(err, errTooSlow):
		return nil, err
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, errDeadline.Because(err)
	case ctx.Err() != nil:
		return nil, errs.ErrGone.Because(err)
	}
	return nil, err
}

// admit makes room for the stream. From here on it counts as a use of the credential.
func (h *Handler) admit(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	user := ""
	if caller := c.Info.Caller; caller != nil {
		user = caller.UserID
		if caller.Used != nil {
			caller.Used()
		}
	}
	leave, err := h.streams.enter(user, c.Info.Org())
	if err != nil {
		return nil, err
	}
	defer leave()
	if c.bare {
		return nil, nil
	}
	return next(ctx, c, req)
}

// carry runs the operation of a stream.
func carry(ctx context.Context, c *Call, req proto.Message) (proto.Message, error) {
	return nil, c.op.follow(ctx, req, func(m proto.Message) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.send(m)
	})
}

// outlet is how a door writes a stream.
type outlet interface {
	// open sets the headers of the answer.
	open(h http.Header)
	// write puts a message into the buffer; first tells that it is the first one.
	write(buf *bytes.Buffer, m proto.Message, first bool) error
	// end puts the last of the stream into the buffer, and sets trailers.
	end(buf *bytes.Buffer, err error)
	// refuse answers where nothing was sent yet. err may be nil.
	refuse(err error)
}

// serveStream runs a stream. Its headers go out with its first message: until then it can be refused like any other
// call.
func (c *Call) serveStream(out outlet) {
	s := &stream{c: c, out: out, control: http.NewResponseController(c.ResponseWriter)}
	c.send, c.bare = s.send, c.Request.Method == http.MethodHead
	decode := c.decode
	c.decode = func(ctx context.Context, req proto.Message) ([]errs.Violation, error) {
		ctx, cancel := context.WithTimeout(ctx, c.h.config.TimeLimit) // a request is not a stream
		defer cancel()
		return decode(ctx, req)
	}
	// Who waits for a reader that does not read hears of the end all the same.
	told := make(chan struct{})
	unheard := context.AfterFunc(c.h.streams.end, func() {
		defer close(told)
		s.cutShort()
	})
	_, err := c.h.stream(c.Request.Context(), c, c.op.input.New().Interface())
	if !unheard() {
		<-told
	}
	if !s.opened {
		out.refuse(err)
		return
	}
	defer c.Metrics.StreamEnds(c.Info.Procedure, c.Protocol)
	s.cutShort()
	buf := buffers.Get()
	defer buffers.Put(buf)
	out.end(buf, err)
	_, _ = c.Write(buf.Bytes()) // who has gone is not told anything anyway
	_ = s.control.Flush()
}

// stream is one that is being sent.
type stream struct {
	c       *Call
	out     outlet
	control *http.ResponseController
	opened  bool

	mu    sync.Mutex
	ended bool
}

// send writes one message and waits until it is on its way: who reads slowly is sent nothing that waits in memory.
func (s *stream) send(m proto.Message) error {
	buf := buffers.Get()
	defer buffers.Put(buf)
	if err := s.out.write(buf, m, !s.opened); err != nil {
		return err
	}
	if !s.opened {
		s.open()
	}
	started := time.Now()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return errStopping
	}
	// A writer that cannot do it belongs to a test, where nobody is slow.
	_ = s.control.SetWriteDeadline(started.Add(s.c.h.streams.Patience))
	s.mu.Unlock()
	_, err := s.c.Write(buf.Bytes())
	if err == nil {
		err = s.control.Flush()
	}
	switch {
	case err == nil:
		if !s.c.op.isSign(m.ProtoReflect()) {
			s.c.Metrics.StreamSent(s.c.Info.Procedure, s.c.Protocol)
		}
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) || time.Since(started) >= s.c.h.streams.Patience:
		return errTooSlow.Because(err)
	}
	return errs.ErrGone.Because(err)
}

// open begins the answer.
func (s *stream) open() {
	s.opened = true
	s.c.Metrics.StreamBegins(s.c.Info.Procedure, s.c.Protocol)
	h := s.c.Header()
	h["Cache-Control"] = []string{"no-store"}
	h["X-Accel-Buffering"] = []string{"no"} // proxies that know it do not hold messages back
	if s.c.Request.ProtoMajor == 1 {
		h["Connection"] = []string{"close"} // with its deadlines
	}
	s.out.open(h)
	s.c.WriteHeader(http.StatusOK)
}

// cutShort gives what is still to be sent little time.
func (s *stream) cutShort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		_ = s.control.SetWriteDeadline(time.Now().Add(lastWords))
	}
}
