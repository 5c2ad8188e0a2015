package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// callersPerConn is how many callers share one HTTP/2 connection.
const callersPerConn = 16

// grpcConn is one HTTP/2 connection without TLS on which several callers make unary gRPC calls at the same time. Like
// restConn it knows no more than it needs: requests and answers of a few hundred bytes, no continuation frames.
type grpcConn struct {
	conn net.Conn

	// Writing. Whoever writes last of those that wait for the lock flushes for all of them.
	waiting atomic.Int32
	write   sync.Mutex
	framer  *http2.Framer
	out     *bufio.Writer
	block   bytes.Buffer
	encoder *hpack.Encoder
	next    uint32

	// Reading.
	decoder *hpack.Decoder
	status  string // grpc-status of the header block being read
	message string
	unacked uint32

	streams sync.Mutex
	open    map[uint32]*grpcCaller
	dead    error
}

// grpcCaller makes one call at a time.
type grpcCaller struct {
	conn    *grpcConn
	fields  []hpack.HeaderField
	body    *template
	length  int // of the answer so far
	answers chan error
}

func dialGRPC(address string, deadline time.Time) (*grpcConn, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	c := &grpcConn{conn: conn, out: bufio.NewWriterSize(conn, 32<<10), next: 1, open: map[uint32]*grpcCaller{}}
	c.framer = http2.NewFramer(c.out, bufio.NewReaderSize(conn, 32<<10))
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		switch f.Name {
		case "grpc-status":
			c.status = f.Value
		case "grpc-message":
			c.message = f.Value
		}
	})
	_, err = c.out.WriteString(http2.ClientPreface)
	err = errors.Join(conn.SetDeadline(deadline), err, c.framer.WriteSettings(), c.out.Flush())
	if err != nil {
		conn.Close()
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *grpcConn) close() { c.conn.Close() }

// caller prepares a call to be made often.
func (c *grpcConn) caller(what call) (*grpcCaller, error) {
	body, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 5), what.message)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(body[1:], uint32(len(body)-5))
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/" + what.procedure},
		{Name: ":authority", Value: "localhost"}, {Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
		{Name: "user-agent", Value: "bench"},
	}
	if what.token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + what.token})
	}
	if what.org != "" {
		fields = append(fields, hpack.HeaderField{Name: "x-service-orgid", Value: what.org})
	}
	return &grpcCaller{conn: c, fields: fields, body: newTemplate(body), answers: make(chan error, 1)}, nil
}

// do makes the call and waits for its status.
func (g *grpcCaller) do() error {
	c := g.conn
	c.waiting.Add(1)
	c.write.Lock()
	id := c.next
	c.next += 2
	g.length = 0
	c.streams.Lock()
	err := c.dead
	c.open[id] = g
	c.streams.Unlock()
	if err == nil {
		err = c.request(id, g)
	}
	if c.waiting.Add(-1) == 0 {
		err = errors.Join(err, c.out.Flush())
	}
	c.write.Unlock()
	if err != nil {
		return err
	}
	return <-g.answers
}

// request writes the frames of one call. What is on its way is far smaller than any flow-control window: sixteen
// callers with one small request each.
func (c *grpcConn) request(id uint32, g *grpcCaller) error {
	c.block.Reset()
	for _, f := range g.fields {
		if err := c.encoder.WriteField(f); err != nil {
			return err
		}
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(),
		EndHeaders: true})
	if err != nil {
		return err
	}
	return c.framer.WriteData(id, true, g.body.next())
}

// control writes frames that belong to no call.
func (c *grpcConn) control(write func() error) error {
	c.write.Lock()
	defer c.write.Unlock()
	return errors.Join(write(), c.out.Flush())
}

// read takes the answers in until the connection ends.
func (c *grpcConn) read() {
	var err error
	for err == nil {
		var frame http2.Frame
		if frame, err = c.framer.ReadFrame(); err == nil {
			err = c.take(frame)
		}
	}
	c.streams.Lock()
	defer c.streams.Unlock()
	c.dead = fmt.Errorf("the connection broke: %w", err)
	for id, g := range c.open {
		delete(c.open, id)
		g.answers <- c.dead
	}
}

func (c *grpcConn) take(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		if !f.HeadersEnded() {
			return errAnswer
		}
		c.status, c.message = "", ""
		if _, err := c.decoder.Write(f.HeaderBlockFragment()); err != nil {
			return err
		}
		if err := c.decoder.Close(); err != nil {
			return err
		}
		if f.StreamEnded() {
			c.end(f.StreamID, c.verdict(f.StreamID))
		}
	case *http2.DataFrame:
		if g := c.find(f.StreamID); g != nil {
			g.length += len(f.Data())
		}
		if f.StreamEnded() {
			c.end(f.StreamID, errors.New("the answer ended without trailers"))
		}
		if c.unacked += f.Length; c.unacked >= 16<<10 {
			n := c.unacked
			c.unacked = 0
			return c.control(func() error { return c.framer.WriteWindowUpdate(0, n) })
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.control(c.framer.WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.control(func() error { return c.framer.WritePing(true, f.Data) })
		}
	case *http2.RSTStreamFrame:
		if f.ErrCode != http2.ErrCodeNo { // after a complete answer, "no error" only says that nothing more is read
			c.end(f.StreamID, fmt.Errorf("the stream was reset: %s", f.ErrCode))
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server went away: %s", f.ErrCode)
	case *http2.ContinuationFrame:
		return errAnswer
	}
	return nil
}

// verdict of the trailers that were just read.
func (c *grpcConn) verdict(id uint32) error {
	if c.status != "0" {
		return fmt.Errorf("grpc-status %q: %s", c.status, c.message)
	}
	if g := c.find(id); g != nil && g.length < 5 {
		return errors.New("the answer holds no message")
	}
	return nil
}

func (c *grpcConn) find(id uint32) *grpcCaller {
	c.streams.Lock()
	defer c.streams.Unlock()
	return c.open[id]
}

func (c *grpcConn) end(id uint32, err error) {
	c.streams.Lock()
	g := c.open[id]
	delete(c.open, id)
	c.streams.Unlock()
	if g != nil {
		g.answers <- err
	}
}
