package rpc

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/transport/strict"
)

// eventStream writes server-sent events: the stream of REST.
type eventStream struct{ c *Call }

// retry is how many milliseconds a browser waits before it comes again.
const retry = "2000"

func (s *eventStream) open(h http.Header) {
	h["Content-Type"] = []string{"text/event-stream"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
}

// write writes a message as an event that has its cursor for an id. One that holds nothing but a cursor is no event: it
// only moves the id with which a browser comes again.
func (s *eventStream) write(buf *bytes.Buffer, m proto.Message, first bool) error {
	if first {
		buf.WriteString("retry: " + retry + "\n\n")
	}
	r := m.ProtoReflect()
	if s.c.op.isSign(r) {
		buf.WriteString(": nothing happened\n")
	} else {
		body, err := strict.MarshalJSON(m)
		if err != nil {
			return err
		}
		buf.WriteString("data: ")
		buf.Write(body)
		buf.WriteString("\n")
	}
	buf.WriteString("id: " + r.Get(s.c.op.nextCursor).String() + "\n\n")
	return nil
}

// end tells why: the name of the event is error, and its data is the error body.
func (s *eventStream) end(buf *bytes.Buffer, err error) {
	if err == nil {
		return
	}
	body, err := strict.MarshalJSON(statusOf(s.c.settle(err), s.c.Info.RequestID))
	if err != nil { // it cannot fail, see refuse
		body = []byte("{}")
	}
	buf.WriteString("event: error\ndata: ")
	buf.Write(body)
	buf.WriteString("\n\n")
}

func (s *eventStream) refuse(err error) {
	if err != nil {
		s.c.refuse(err)
		return
	}
	h := s.c.Header()
	h["Cache-Control"] = []string{"no-store"}
	s.open(h)
	s.c.WriteHeader(http.StatusOK)
}

// setCursor takes the header last-event-id for the cursor. It comes after the query: a browser that comes again sends
// the address as it was, and how far it has come beside it.
func (c *Call) setCursor(m protoreflect.Message) {
	values := c.Request.Header[keyLastEvent]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
	case len(values) > 1:
		c.problem(lastEventHeader, "must be sent only once")
	case !utf8.ValidString(values[0]):
		c.problem(lastEventHeader, strict.ProblemUTF8)
	default:
		m.Set(c.op.cursor, protoString(values[0]))
	}
}

// grpcStream writes the frames of gRPC and gRPC-Web.
type grpcStream struct {
	c           *Call
	contentType string
}

func (s *grpcStream) open(h http.Header) {
	h["Content-Type"] = []string{s.contentType}
	h["Grpc-Accept-Encoding"] = []string{"gzip"}
	if s.c.Protocol == "grpc" {
		h["Trailer"] = []string{"Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin"}
		h["Content-Length"] = nil // see endGRPC
	}
}

func (s *grpcStream) write(buf *bytes.Buffer, m proto.Message, _ bool) error {
	if err := appendFrame(buf, m); err != nil {
		return err
	}
	s.c.encode(buf)
	return nil
}

func (s *grpcStream) end(buf *bytes.Buffer, err error) {
	trailer := s.c.trailer(err)
	if s.c.Protocol == "grpc-web" {
		appendTrailer(buf, trailer)
		s.c.encode(buf)
		return
	}
	for _, t := range trailer {
		s.c.Header()[t[0]] = []string{t[1]}
	}
}

func (s *grpcStream) refuse(err error) { s.c.endGRPC(s.contentType, new(bytes.Buffer), err) }
