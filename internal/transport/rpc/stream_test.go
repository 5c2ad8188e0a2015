package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

// radio streams whatever a test has it say.
type radio struct {
	signetv1connect.UnimplementedEventServiceHandler
	play func(ctx context.Context, r *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error
}

func (r *radio) StreamEvents(ctx context.Context, req *signetv1.StreamEventsRequest,
	send func(*signetv1.StreamEventsResponse) error) error {
	return r.play(ctx, req, send)
}

func newRadio(t *testing.T, limits StreamLimits) (*lab, *radio) {
	r := &radio{}
	l := newLab(t, func(c *Config) {
		c.Services = append(c.Services, Service{signetv1connect.EventServiceName, r})
		c.Streams = limits
	})
	t.Cleanup(l.handler.EndStreams)
	return l, r
}

// message is the n-th of a stream.
func message(n int) *signetv1.StreamEventsResponse {
	return &signetv1.StreamEventsResponse{Event: &signetv1.Event{EventId: strconv.Itoa(n)},
		Cursor: "c" + strconv.Itoa(n)}
}

// listener reads a stream in one of the protocols: messages until it ends, and how it ended.
type listener interface {
	next() (*signetv1.StreamEventsResponse, error) // io.EOF: it ended well
	stop()
}

// refusal is how a stream ended.
type refusal struct{ outcome }

func (r refusal) Error() string { return r.reason + ": " + r.message }

// tune begins to listen.
var doors = map[string]func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest, h http.Header) listener{
	"server-sent events over HTTP/1.1": func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest,
		h http.Header) listener {
		return l.events(t, l.h1, req, h)
	},
	"server-sent events over HTTP/2": func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest,
		h http.Header) listener {
		return l.events(t, l.h2, req, h)
	},
	"gRPC": func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest, h http.Header) listener {
		return l.receive(t, l.h2, req, h, connect.WithGRPC())
	},
	"gRPC-Web over HTTP/1.1": func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest, h http.Header) listener {
		return l.receive(t, l.h1, req, h, connect.WithGRPCWeb())
	},
	"gRPC-Web over HTTP/2": func(t *testing.T, l *lab, req *signetv1.StreamEventsRequest, h http.Header) listener {
		return l.receive(t, l.h2, req, h, connect.WithGRPCWeb())
	},
}

// frames reads by connect's client.
type frames struct {
	t      *testing.T
	stream *connect.ServerStreamForClient[signetv1.StreamEventsResponse]
	cancel context.CancelFunc
	failed error
}

func (l *lab) receive(t *testing.T, client *http.Client, req *signetv1.StreamEventsRequest, h http.Header,
	option connect.ClientOption) listener {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ctx, info := connect.NewClientContext(ctx)
	maps.Copy(info.RequestHeader(), h)
	stream, err := signetv1connect.NewEventServiceClient(client, l.url, option).StreamEvents(ctx, req)
	return &frames{t, stream, cancel, err}
}

func (f *frames) next() (*signetv1.StreamEventsResponse, error) {
	err := f.failed
	if err == nil && f.stream.Receive() {
		return proto.Clone(f.stream.Msg()).(*signetv1.StreamEventsResponse), nil
	}
	if err == nil {
		err = f.stream.Err()
	}
	if err == nil {
		return nil, io.EOF
	}
	ce, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil, err
	}
	o := outcome{header: ce.Meta()}
	st := &spb.Status{Code: int32(ce.Code()), Message: ce.Message()}
	for _, d := range ce.Details() {
		m, err := d.Value()
		if err != nil {
			f.t.Fatal(err)
		}
		detail, err := anypb.New(m)
		if err != nil {
			f.t.Fatal(err)
		}
		st.Details = append(st.Details, detail)
	}
	if len(st.Details) == 0 {
		return nil, err
	}
	o.fill(f.t, st)
	return nil, refusal{o}
}

func (f *frames) stop() { f.cancel() }

// events reads server-sent events as the standard says, by hand.
type events struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	id     string // the last one
	retry  string
	failed error
}

func (l *lab) events(t *testing.T, client *http.Client, req *signetv1.StreamEventsRequest, h http.Header) *events {
	e, err := l.tryEvents(t, client, req, h)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (l *lab) tryEvents(t *testing.T, client *http.Client, req *signetv1.StreamEventsRequest,
	h http.Header) (*events, error) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	query := ""
	if req.GetCursor() != "" {
		query = "?cursor=" + req.GetCursor()
	}
	r, err := http.NewRequestWithContext(ctx, "GET", l.url+"/v1/events/_stream"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h.Clone()
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { resp.Body.Close() })
	e := &events{t: t, resp: resp, lines: bufio.NewReader(resp.Body), cancel: cancel}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		e.failed = e.refused(body)
	} else if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content-type: %q", got)
	}
	return e, nil
}

func (e *events) refused(body []byte) error {
	var st spb.Status
	if err := protojson.Unmarshal(body, &st); err != nil {
		e.t.Fatalf("%v: %s", err, body)
	}
	o := outcome{header: e.resp.Header, http: e.resp.StatusCode}
	o.fill(e.t, &st)
	return refusal{o}
}

func (e *events) stop() { e.cancel() }

func (e *events) next() (*signetv1.StreamEventsResponse, error) {
	if e.failed != nil {
		return nil, e.failed
	}
	var name, data string
	for moved := false; ; {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id, moved = value, true
		case "event":
			name = value
		case "data":
			data = value
		case "retry":
			e.retry = value
		}
		if line != "\n" {
			continue
		}
		switch {
		case name == "error":
			return nil, e.refused([]byte(data))
		case data != "":
			m := &signetv1.StreamEventsResponse{}
			if err := protojson.Unmarshal([]byte(data), m); err != nil {
				e.t.Fatalf("%v: %s", err, data)
			}
			if m.GetCursor() != e.id {
				e.t.Errorf("the cursor is %q, the id %q", m.GetCursor(), e.id)
			}
			return m, nil
		case moved:
			return &signetv1.StreamEventsResponse{Cursor: e.id}, nil
		}
	}
}

// expect reads messages that must come.
func expect(t *testing.T, l listener, want ...*signetv1.StreamEventsResponse) {
	t.Helper()
	for _, w := range want {
		got, err := l.next()
		if err != nil {
			t.Fatalf("instead of %v: %v", w, err)
		}
		if !proto.Equal(got, w) {
			t.Fatalf("got %v, want %v", got, w)
		}
	}
}

// expectEnd reads the end of a stream.
func expectEnd(t *testing.T, l listener, reason string) refusal {
	t.Helper()
	m, err := l.next()
	r, is := errors.AsType[refusal](err)
	if !is || r.reason != reason {
		t.Fatalf("got %v, %v, want the end by %s", m, err, reason)
	}
	return r
}

func TestAStreamOnEveryDoor(t *testing.T) {
	for name, tune := range doors {
		t.Run(name, func(t *testing.T) {
			l, r := newRadio(t, StreamLimits{})
			goOn, failure := make(chan struct{}), error(access.ErrUnauthenticated)
			r.play = func(ctx context.Context, req *signetv1.StreamEventsRequest,
				send func(*signetv1.StreamEventsResponse) error) error {
				if req.GetCursor() != "begin" || call.From(ctx).Caller.UserID != "usr_1" ||
					call.From(ctx).Permit.Org() != "org_own" {
					t.Errorf("%v, %+v", req, call.From(ctx))
				}
				for i, m := range []*signetv1.StreamEventsResponse{message(0), {Cursor: "quiet"}, message(2)} {
					if i > 0 {
						<-goOn // nothing may be held back: the client has seen the one before
					}
					if err := send(m); err != nil {
						return err
					}
				}
				<-goOn
				return failure
			}
			in := tune(t, l, &signetv1.StreamEventsRequest{Cursor: "begin"},
				bearerOf("owner", "accept-encoding", "gzip"))
			for _, want := range []*signetv1.StreamEventsResponse{message(0), {Cursor: "quiet"}, message(2)} {
				expect(t, in, want)
				goOn <- struct{}{}
			}
			expectEnd(t, in, "UNAUTHENTICATED")
		})
	}
}

func TestAStreamThatEndsWell(t *testing.T) {
	for name, tune := range doors {
		t.Run(name, func(t *testing.T) {
			l, r := newRadio(t, StreamLimits{})
			r.play = func(_ context.Context, _ *signetv1.StreamEventsRequest,
				send func(*signetv1.StreamEventsResponse) error) error {
				return send(message(1))
			}
			in := tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner"))
			expect(t, in, message(1))
			if m, err := in.next(); err != io.EOF {
				t.Errorf("%v, %v", m, err)
			}
		})
	}
}

func TestAStreamIsRefusedLikeAnyCall(t *testing.T) {
	for name, tune := range doors {
		t.Run(name, func(t *testing.T) {
			l, r := newRadio(t, StreamLimits{})
			r.play = func(context.Context, *signetv1.StreamEventsRequest,
				func(*signetv1.StreamEventsResponse) error) error {
				return errs.Invalid(errs.Violation{Field: "cursor", Message: "is wrong"})
			}
			for _, c := range []struct {
				header http.Header
				cursor string
				reason string
			}{
				{http.Header{}, "", "UNAUTHENTICATED"},
				{bearerOf("nobody"), "", "PERMISSION_DENIED"},
				{bearerOf("restricted"), "", "PASSWORD_CHANGE_REQUIRED"},
				{bearerOf("owner", "x-service-orgid", "org_other"), "", "PERMISSION_DENIED"},
				{bearerOf("nobody", "x-service-org-id", "org_other"), "", "INVALID_REQUEST"},
				{bearerOf("owner"), strings.Repeat("x", 501), "INVALID_REQUEST"},
				{bearerOf("owner"), "", "INVALID_REQUEST"}, // by the operation
			} {
				end := expectEnd(t, tune(t, l, &signetv1.StreamEventsRequest{Cursor: c.cursor}, c.header), c.reason)
				if http := web.AnswerTo(&errs.Error{Kind: kindOf(end.code)}).REST; end.http != 0 && end.http != http {
					t.Errorf("HTTP %d for %s", end.http, c.reason)
				}
			}
		})
	}
}

func kindOf(code int32) errs.Kind {
	for kind := range errs.Kinds {
		if int32(web.AnswerTo(&errs.Error{Kind: kind}).GRPC) == code {
			return kind
		}
	}
	return errs.Internal
}

func TestAPanicInTheMiddleOfAStreamIsAnInternalError(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = func(_ context.Context, _ *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error {
		if err := send(message(1)); err != nil {
			return err
		}
		panic("a secret of ours")
	}
	for name, tune := range doors {
		in := tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner"))
		expect(t, in, message(1))
		if end := expectEnd(t, in, "INTERNAL"); strings.Contains(end.message, "secret") {
			t.Errorf("%s: %s", name, end.message)
		}
	}
	if logs := l.logs(); !strings.Contains(logs, "panic: a string") || !strings.Contains(logs, "stream_test.go") ||
		strings.Contains(logs, "secret") {
		t.Error("the log does not know where, or repeats what was said there")
	}
}

// forever sends one message and waits.
func forever(ctx context.Context, _ *signetv1.StreamEventsRequest,
	send func(*signetv1.StreamEventsResponse) error) error {
	if err := send(message(1)); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestTheServerEndsItsStreams(t *testing.T) {
	for name, tune := range doors {
		t.Run(name, func(t *testing.T) {
			l, r := newRadio(t, StreamLimits{})
			r.play = forever
			in := tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner"))
			expect(t, in, message(1))
			l.handler.EndStreams()
			if end := expectEnd(t, in, "STOPPING"); end.code != 14 || end.retry == 0 {
				t.Errorf("%+v", end)
			}
			expectEnd(t, tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner")), "STOPPING")
		})
	}
}

func TestAStreamOutlivesTheTimeOfARequest(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = func(ctx context.Context, _ *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error {
		if _, limited := ctx.Deadline(); limited {
			t.Error("it has a deadline")
		}
		return send(message(1))
	}
	expect(t, l.events(t, l.h1, &signetv1.StreamEventsRequest{}, bearerOf("owner")), message(1))
}

// The timeouts of the server are for requests. A stream that is served by one with short ones goes on. It has to begin
// within them: on a machine that is too busy for that, they are made longer.
func TestAStreamOutlivesTheTimeoutsOfTheServer(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run("HTTP/"+strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			l, r := newRadio(t, StreamLimits{})
			over := make(chan struct{})
			r.play = func(ctx context.Context, _ *signetv1.StreamEventsRequest,
				send func(*signetv1.StreamEventsResponse) error) error {
				if err := send(message(1)); err != nil {
					return err
				}
				select {
				case <-over:
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := send(message(2)); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}
			begin := func(timeout time.Duration) (in *events, address string) {
				socket, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				server := &http.Server{Handler: l.site, Protocols: new(http.Protocols), ReadTimeout: timeout,
					WriteTimeout: timeout}
				server.Protocols.SetHTTP1(true)
				server.Protocols.SetUnencryptedHTTP2(true)
				go server.Serve(socket)
				t.Cleanup(func() { server.Close() })
				l.url = "http://" + socket.Addr().String()
				began, first := time.Now(), &signetv1.StreamEventsResponse{}
				client := map[int]*http.Client{1: l.h1, 2: l.h2}[version]
				if in, err = l.tryEvents(t, client, &signetv1.StreamEventsRequest{}, bearerOf("owner")); err == nil {
					first, err = in.next()
				}
				switch {
				case err != nil && (time.Since(began) < timeout || timeout > testkit.Patience):
					t.Fatal(err)
				case err != nil:
					return nil, ""
				case !proto.Equal(first, message(1)):
					t.Fatalf("it begins with %v", first)
				}
				return in, socket.Addr().String()
			}
			var in *events
			var address string
			for timeout := 2 * time.Second; in == nil; timeout *= 2 {
				in, address = begin(timeout)
			}
			// The server closes a connection that began after the stream, and sends nothing, when the same timeouts are
			// over.
			silent, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			if n, err := silent.Read(make([]byte, 1)); n > 0 || err != io.EOF {
				t.Fatalf("a silent connection got %d bytes, %v", n, err)
			}
			close(over)
			expect(t, in, message(2))
		})
	}
}

func TestStreamsAreBoundedInNumber(t *testing.T) {
	l, r := newRadio(t, StreamLimits{Open: 3, PerCaller: 2})
	r.play = forever
	tune := doors["gRPC"]
	var open []listener
	for _, who := range []string{"owner", "owner", "neighbour"} {
		in := tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf(who))
		expect(t, in, message(1))
		open = append(open, in)
	}
	for name, tune := range doors {
		for _, who := range []string{"owner", "admin", "neighbour"} {
			if end := expectEnd(t, tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf(who)),
				"TOO_MANY_STREAMS"); end.code != 8 || end.retry == 0 {
				t.Errorf("%s: %+v", name, end)
			}
		}
	}
	open[2].stop()
	testkit.Await(t, "a stream is closed", func() bool { return l.openStreams() == 2 })
	// There is room, but not for an organization that has its share of it.
	for name, tune := range doors {
		if end := expectEnd(t, tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("admin")),
			"ORGANIZATION_SHARE_USED_UP"); end.code != 8 || end.retry == 0 {
			t.Errorf("%s: %+v", name, end)
		}
	}
	// Nor for somebody who has enough of it already.
	if end := expectEnd(t, tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("owner")),
		"TOO_MANY_STREAMS"); !strings.HasPrefix(end.message, "you have") {
		t.Errorf("%s", end.message)
	}
	expect(t, tune(t, l, &signetv1.StreamEventsRequest{}, bearerOf("neighbour")), message(1))
}

func (l *lab) openStreams() int {
	open, _ := l.handler.streams.slots.Load()
	return open
}

// A reader that takes nothing is cut off, and until then only what is on its way takes up memory. It does not keep the
// server from stopping either.
func TestWhoReadsNothingIsCutOff(t *testing.T) {
	for name, client := range map[string]func(l *lab) *http.Client{"HTTP/1.1": func(l *lab) *http.Client {
		return l.h1
	}, "HTTP/2": func(l *lab) *http.Client { return l.h2 }} {
		for _, patience := range []time.Duration{100 * time.Millisecond, time.Hour} {
			t.Run(name+" "+patience.String(), func(t *testing.T) {
				l, r := newRadio(t, StreamLimits{Patience: patience})
				ended := make(chan error, 1)
				full := make(chan struct{})
				r.play = func(_ context.Context, _ *signetv1.StreamEventsRequest,
					send func(*signetv1.StreamEventsResponse) error) (err error) {
					defer func() { ended <- err }()
					large := message(1)
					large.Event.Actor = strings.Repeat("x", 1<<20)
					stuck := time.AfterFunc(time.Second, sync.OnceFunc(func() { close(full) }))
					for {
						if err := send(large); err != nil {
							return err
						}
						stuck.Reset(time.Second)
					}
				}
				l.events(t, client(l), &signetv1.StreamEventsRequest{}, bearerOf("owner"))
				if patience == time.Hour {
					testkit.Receive(t, full, "no more goes through")
					begun := time.Now()
					l.handler.EndStreams()
					if took := time.Since(begun); took > time.Minute {
						t.Errorf("it took %v to end", took)
					}
				}
				err := testkit.Receive(t, ended, "the stream ends")
				if patience == time.Hour {
					return
				}
				if e, ours := errors.AsType[*errs.Error](err); !ours || e.Reason != ReaderTooSlow {
					t.Errorf("it ended with %v", err)
				}
			})
		}
	}
}

func TestLastEventID(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = func(_ context.Context, req *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error {
		return send(&signetv1.StreamEventsResponse{Event: &signetv1.Event{EventId: req.GetCursor()}, Cursor: "next"})
	}
	for _, c := range []struct{ name, query, header, want string }{
		{"neither", "", "", ""},
		{"the parameter", "a", "", "a"},
		{"the header", "", "b", "b"},
		{"a browser that comes again sends both, and the header is newer", "a", "b", "b"},
	} {
		h := bearerOf("owner")
		if c.header != "" {
			h.Set("Last-Event-ID", c.header)
		}
		in := l.events(t, l.h1, &signetv1.StreamEventsRequest{Cursor: c.query}, h)
		m, err := in.next()
		if err != nil || m.GetEvent().GetEventId() != c.want || in.retry == "" {
			t.Errorf("%s: %v, %v, retry %q", c.name, m, err, in.retry)
		}
	}
	for _, bad := range [][]string{{"a", "b"}, {"\xff"}} {
		h := bearerOf("owner")
		h["Last-Event-Id"] = bad
		end := expectEnd(t, l.events(t, l.h1, &signetv1.StreamEventsRequest{}, h), "INVALID_REQUEST")
		if end.violations["last-event-id"] == "" {
			t.Errorf("%q: %v", bad, end.violations)
		}
	}
}

func TestTheHeadOfAStreamHasAnEnd(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = forever
	for token, want := range map[string]int{"owner": 200, "nobody": 403} {
		o := l.rest(t, l.h1, "HEAD", "/v1/events/_stream", "", bearerOf(token))
		if o.http != want || want == 200 && o.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %d %v", token, o.http, o.header)
		}
	}
	testkit.Await(t, "both requests are in the log",
		func() bool { return strings.Count(l.logs(), "StreamEvents") == 2 })
	if strings.Contains(l.logs(), "code=CANCELLED") || l.openStreams() != 0 {
		t.Errorf("%d streams are open\n%s", l.openStreams(), l.logs())
	}
}

func TestAStreamIsOneRequestInTheLog(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = forever
	in := l.events(t, l.h1, &signetv1.StreamEventsRequest{}, bearerOf("owner"))
	expect(t, in, message(1))
	in.stop()
	testkit.Await(t, "the stream is in the log",
		func() bool { return strings.Contains(l.logs(), "EventService/StreamEvents") })
	if logs := l.logs(); strings.Count(logs, "StreamEvents") != 1 || !strings.Contains(logs, "code=CANCELLED") ||
		!strings.Contains(logs, "user=usr_1") {
		t.Error(logs)
	}
}

// The last frame of a stream of gRPC-Web is one of trailers, and it comes once.
func TestTheFramesOfAStreamOverGRPCWeb(t *testing.T) {
	l, r := newRadio(t, StreamLimits{})
	r.play = func(_ context.Context, _ *signetv1.StreamEventsRequest,
		send func(*signetv1.StreamEventsResponse) error) error {
		if err := send(message(1)); err != nil {
			return err
		}
		return send(message(2))
	}
	for _, contentType := range []string{"application/grpc-web+proto", "application/grpc-web-text"} {
		req, err := http.NewRequest("POST", l.url+"/signet.v1.EventService/StreamEvents",
			bytes.NewReader(frameOf(0, nil)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = bearerOf("owner", "content-type", contentType)
		resp, err := withText(l.h1, contentType).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.Header.Get("Content-Length") != "" {
			t.Fatal(err, resp.Header)
		}
		var flags []byte
		for len(raw) > 0 {
			flags = append(flags, raw[0])
			raw = raw[5+binary.BigEndian.Uint32(raw[1:]):]
		}
		if string(flags) != "\x00\x00\x80" {
			t.Errorf("%s: the flags are %x", contentType, flags)
		}
	}
}

func FuzzLastEventID(f *testing.F) {
	f.Add("a", "b")
	f.Add("", "\xff")
	r := &radio{
		play: func(_ context.Context, req *signetv1.StreamEventsRequest,
			send func(*signetv1.StreamEventsResponse) error) error {
			return send(&signetv1.StreamEventsResponse{Event: &signetv1.Event{EventId: req.GetCursor()},
				Cursor: "next"})
		},
	}
	l := newLab(f, func(c *Config) { c.Services = append(c.Services, Service{signetv1connect.EventServiceName, r}) })
	f.Fuzz(func(t *testing.T, query, header string) {
		w := newRecorder()
		req, err := http.NewRequest("GET", "http://signet.test/v1/events/_stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = "cursor=" + query
		req.Header = http.Header{"Authorization": {"Bearer owner"}, "Last-Event-Id": {header}}
		l.site.ServeHTTP(w, req)
		if w.status != 200 && w.status != 400 {
			t.Errorf("%d: %s", w.status, w.body.String())
		}
		if body := w.body.String(); w.status == 200 && strings.Count(body, "\n\n") != 2 {
			t.Errorf("a message became %q", body)
		}
	})
}

// recorder is an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) Flush()                      {}
