package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// call is one call of an operation, in whatever protocol.
type call struct {
	token string
	org   string // x-service-orgid
	verb  string
	path  string

	procedure string
	message   proto.Message

	// Of a call that is not of the API: the body is a form, and a client says who it is.
	form   url.Values
	client client
}

// changing is put where each call shall send something new. It has the width of the numbers that replace it.
const changing = "##########"

// counter makes what is sent different every time, over all callers.
var counter atomic.Int64

// template is a request made once and sent often.
type template struct {
	bytes  []byte
	places []int // of changing
}

func newTemplate(b []byte) *template {
	t := &template{bytes: b}
	for at := 0; ; at += len(changing) {
		i := bytes.Index(b[at:], []byte(changing))
		if i < 0 {
			break
		}
		at += i
		t.places = append(t.places, at)
	}
	t.next()
	return t
}

// next gives the bytes to send. They are good until it is called again.
func (t *template) next() []byte {
	if len(t.places) == 0 {
		return t.bytes
	}
	n := counter.Add(1)
	first := t.bytes[t.places[0] : t.places[0]+len(changing)]
	for i := len(first) - 1; i >= 0; i-- {
		first[i] = byte('0' + n%10)
		n /= 10
	}
	for _, at := range t.places[1:] {
		copy(t.bytes[at:], first)
	}
	return t.bytes
}

// rest makes the HTTP/1.1 request of a call.
func (c call) rest() (*template, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n", c.verb, c.path)
	if c.token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", c.token)
	}
	if c.client.id != "" {
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", c.client.basic())
	}
	if c.org != "" {
		fmt.Fprintf(&b, "X-Service-Orgid: %s\r\n", c.org)
	}
	if c.verb == "GET" {
		b.WriteString("\r\n")
		return newTemplate(b.Bytes()), nil
	}
	body, media := []byte(c.form.Encode()), "application/x-www-form-urlencoded"
	if c.form == nil {
		var err error
		if body, err = protojson.Marshal(c.message); err != nil {
			return nil, err
		}
		media = "application/json"
	}
	fmt.Fprintf(&b, "Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s", media, len(body), body)
	return newTemplate(b.Bytes()), nil
}

// restConn is one connection that asks and waits for the answer. It is no general client: it knows just what a server
// sends that gives the length of every answer, and costs a few microseconds where net/http takes tens.
type restConn struct {
	conn net.Conn
	r    *bufio.Reader
}

const maxAnswer = 64 << 10

func dialREST(address string, deadline time.Time) (*restConn, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, err
	}
	return &restConn{conn, bufio.NewReaderSize(conn, maxAnswer)}, nil
}

func (c *restConn) close() { c.conn.Close() }

var errAnswer = errors.New("the answer is not one this client understands")

// do sends a request. The body is good until the next call.
func (c *restConn) do(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	const prefix = "HTTP/1.1 "
	if len(line) < len(prefix)+3 || string(line[:len(prefix)]) != prefix {
		return 0, nil, errAnswer
	}
	if status, err = strconv.Atoi(string(line[len(prefix) : len(prefix)+3])); err != nil {
		return 0, nil, errAnswer
	}
	length := -1
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		const name = "Content-Length: "
		if len(line) > len(name) && (line[0] == 'C' || line[0] == 'c') &&
			strings.EqualFold(string(line[:len(name)]), name) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return 0, nil, errAnswer
			}
		}
	}
	if length < 0 || length > maxAnswer {
		return 0, nil, errAnswer
	}
	if body, err = c.r.Peek(length); err != nil {
		return 0, nil, err
	}
	_, err = c.r.Discard(length)
	return status, body, err
}

// must is do for requests that have to succeed.
func (c *restConn) must(request []byte) ([]byte, error) {
	status, body, err := c.do(request)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d: %s", status, clip(body))
	}
	return body, err
}

// restCaller gives a function that makes a call again and again on a connection of its own, and what closes that.
func restCaller(address string, what call, deadline time.Time) (again func() error, end func(), err error) {
	request, err := what.rest()
	if err != nil {
		return nil, nil, err
	}
	conn, err := dialREST(address, deadline)
	if err != nil {
		return nil, nil, err
	}
	return func() error {
		_, err := conn.must(request.next())
		return err
	}, conn.close, nil
}

// ask makes one call and reads its answer into response.
func (c *restConn) ask(what call, response proto.Message) error {
	t, err := what.rest()
	if err != nil {
		return err
	}
	body, err := c.must(t.bytes)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what.verb, what.path, err)
	}
	return protojson.Unmarshal(body, response)
}

func clip(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
