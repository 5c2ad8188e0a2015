package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/test/testkit"
)

// The answer to a stream is its first message, as far as the tables and the matrix are concerned: it comes at once.

func (r restWire) first(ctx context.Context, op *operation, path string, h Header) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := r.listen(ctx, path, h)
	if err != nil {
		return nil, err
	}
	defer s.body.Close()
	a := &Answer{wire: "rest", header: s.header, http: s.status}
	m, st, err := s.next()
	if a.status = st; m != nil {
		a.message = m
	}
	return a, err
}

func (g grpcWire) first(ctx context.Context, op *operation, req any, md metadata.MD) (*Answer, error) {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, md))
	defer cancel()
	s, err := openStream(ctx, g.conn, op, req)
	if err != nil {
		return nil, err
	}
	a := &Answer{message: op.output.New().Interface(), header: http.Header{}}
	failed := s.RecvMsg(a.message)
	head, err := s.Header()
	if err != nil {
		return nil, err
	}
	for k, values := range metadata.Join(head, s.Trailer()) {
		a.header[textproto.CanonicalMIMEHeaderKey(k)] = values
	}
	return a.ended(failed)
}

func firstOf(ctx context.Context, client *connect.Client[dynamicpb.Message, dynamicpb.Message], op *operation,
	req *connect.Request[dynamicpb.Message]) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := client.CallServerStream(ctx, req)
	if err != nil {
		return refusedWith(err)
	}
	defer s.Close()
	if !s.Receive() {
		return refusedWith(s.Err())
	}
	a := &Answer{message: op.output.New().Interface(), header: s.ResponseHeader()}
	return a, convert(s.Msg(), a.message)
}

// sse reads server-sent events as the standard says.
type sse struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	header http.Header
	status int
	id     string
}

// listen begins to read a stream over REST.
func (r restWire) listen(ctx context.Context, path string, h Header) (*sse, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(h.on(req))
	if err != nil {
		return nil, err
	}
	return &sse{body: resp.Body, lines: bufio.NewReader(resp.Body), header: resp.Header, status: resp.StatusCode}, nil
}

// next is the next message, or how the stream ended.
func (s *sse) next() (*signetv1.StreamEventsResponse, *spb.Status, error) {
	refusal := func(body []byte) (*signetv1.StreamEventsResponse, *spb.Status, error) {
		st := &spb.Status{}
		if err := protojson.Unmarshal(body, st); err != nil {
			return nil, nil, fmt.Errorf("%w: %s", err, body)
		}
		return nil, st, errorShape(body)
	}
	if s.status != http.StatusOK {
		body, err := io.ReadAll(s.body)
		if err != nil {
			return nil, nil, err
		}
		return refusal(body)
	}
	var name, data string
	for moved := false; ; {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return nil, nil, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			s.id, moved = value, true
		case "event":
			name = value
		case "data":
			data = value
		}
		switch {
		case line != "\n":
		case name == "error":
			return refusal([]byte(data))
		case data != "":
			m := &signetv1.StreamEventsResponse{}
			return m, nil, protojson.Unmarshal([]byte(data), m)
		case moved:
			return &signetv1.StreamEventsResponse{Cursor: s.id}, nil, nil
		}
	}
}

// radio is a stream that is being read, over any content type. A message is nil where it has ended.
type radio struct {
	next func() (*signetv1.StreamEventsResponse, *Answer)
	stop context.CancelFunc
}

// tune begins to follow events, over the content type of the client. The first message, which says where it begins, has
// been read.
func (c *Client) tune(t *testing.T, as *Actor, req *signetv1.StreamEventsRequest, h ...Header) *radio {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	op := operationFor(req)
	all := merge(h)
	all["authorization"] = []string{"Bearer " + as.Token}
	r := &radio{stop: cancel}
	ended := func(a *Answer, err error) (*signetv1.StreamEventsResponse, *Answer) {
		t.Helper()
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return nil, a
	}
	switch w := c.wire.(type) {
	case restWire:
		path, _, err := op.asREST(req)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.listen(ctx, path, all)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.body.Close() })
		r.next = func() (*signetv1.StreamEventsResponse, *Answer) {
			m, st, err := s.next()
			if err != nil || st != nil {
				return ended(&Answer{status: st}, err)
			}
			return m, nil
		}
	case grpcWire:
		md := metadata.MD{}
		for k, v := range all {
			md.Append(k, v...)
		}
		s, err := openStream(metadata.NewOutgoingContext(ctx, md), w.conn, op, req)
		if err != nil {
			t.Fatal(err)
		}
		r.next = func() (*signetv1.StreamEventsResponse, *Answer) {
			m := &signetv1.StreamEventsResponse{}
			if err := s.RecvMsg(m); err != nil {
				return ended((&Answer{}).ended(err))
			}
			return m, nil
		}
	case webWire:
		client := connect.NewClient[signetv1.StreamEventsRequest, signetv1.StreamEventsResponse](w.client,
			w.base+"/"+op.procedure(), connect.WithGRPCWeb())
		out := connect.NewRequest(req)
		for k, values := range all {
			for _, v := range values {
				out.Header().Add(k, v)
			}
		}
		s, err := client.CallServerStream(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		r.next = func() (*signetv1.StreamEventsResponse, *Answer) {
			if s.Receive() {
				return proto.Clone(s.Msg()).(*signetv1.StreamEventsResponse), nil
			}
			return ended(refusedWith(s.Err()))
		}
	}
	if m, end := r.next(); end != nil || m.GetEvent() != nil || m.GetCursor() == "" {
		t.Fatalf("the first message is %v, %v", m, end)
	}
	return r
}

func openStream(ctx context.Context, conn *grpc.ClientConn, op *operation, req any) (grpc.ClientStream, error) {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+op.procedure())
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(req); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

// event reads on to the next event, which must come.
func (r *radio) event(t *testing.T) (e *signetv1.Event, cursor string) {
	t.Helper()
	for {
		m, end := r.next()
		if m == nil {
			t.Fatalf("the stream ended: %v", end.summary())
		}
		if m.GetEvent() != nil {
			return m.GetEvent(), m.GetCursor()
		}
	}
}

// end reads on to the end of the stream.
func (r *radio) end(t *testing.T) *Answer {
	t.Helper()
	for {
		if m, end := r.next(); m == nil {
			return end
		}
	}
}
