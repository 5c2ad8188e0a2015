package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/errs"
)

// grpcTypes maps the content types of gRPC to the protocol they stand for.
var grpcTypes = map[string]string{
	"application/grpc":                "grpc",
	"application/grpc+proto":          "grpc",
	"application/grpc-web":            "grpc-web",
	"application/grpc-web+proto":      "grpc-web",
	"application/grpc-web-text":       "grpc-web",
	"application/grpc-web-text+proto": "grpc-web",
}

// isText tells whether a content type of gRPC means the text mode of gRPC-Web.
func isText(contentType string) bool {
	return strings.HasPrefix(contentType, "application/grpc-web-text")
}

// grpcProtocol tells which of the two a request is, or gives an empty string.
func grpcProtocol(h http.Header) (protocol, contentType string) {
	values := h["Content-Type"]
	if len(values) != 1 {
		return "", ""
	}
	contentType, _, _ = strings.Cut(values[0], ";")
	contentType = strings.ToLower(strings.TrimSpace(contentType))
	return grpcTypes[contentType], contentType
}

// serveGRPC is the door for gRPC and gRPC-Web.
func (c *Call) serveGRPC(op *operation) {
	protocol, contentType := grpcProtocol(c.Request.Header)
	if protocol == "" {
		c.begin(op, "http")
		c.refuse(errNotGRPC)
		return
	}
	c.begin(op, protocol)
	c.text = isText(contentType)
	if values := c.Request.Header[keyTimeout]; len(values) > 0 {
		timeout, ok := parseTimeout(values)
		if !ok {
			c.problem(timeoutHeader, "must be at most eight digits and a unit, such as 500m")
		} else {
			c.limit = cmp.Or(min(c.limit, timeout), timeout)
		}
	}
	c.decode = c.decodeProto
	if op.streams {
		c.serveStream(&grpcStream{c, contentType})
		return
	}
	buf := buffers.Get()
	defer buffers.Put(buf)
	c.marshal = func(resp proto.Message) error {
		if err := appendFrame(buf, resp); err != nil {
			return err
		}
		c.packFrame(buf)
		return nil
	}
	err := c.perform()
	if err != nil {
		buf.Reset()
		c.coding, c.frameCoding = "", ""
	}
	c.endGRPC(contentType, buf, err)
}

// serveUnknown answers what no route matches, in the caller's protocol.
func (c *Call) serveUnknown() {
	protocol, contentType := grpcProtocol(c.Request.Header)
	path, method := errUnknownPath, errUnknownMethod
	if other := c.h.config.Alias; other != nil && other.has(c.Request.URL.Path) {
		path, method = other.Unserved, other.Unserved
	}
	if protocol == "" || c.Request.Method != http.MethodPost {
		c.refuse(path)
		return
	}
	c.Protocol, c.text = protocol, isText(contentType)
	c.endGRPC(contentType, new(bytes.Buffer), method)
}

// decodeProto reads the one message of a unary call.
func (c *Call) decodeProto(ctx context.Context, req proto.Message) ([]errs.Violation, error) {
	compressed := false
	switch encoding := c.Request.Header.Get("Grpc-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		compressed = true
	default:
		return nil, errGRPCEncoding
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	buf := buffers.Get()
	defer buffers.Put(buf)
	end := c.interruptible(ctx)
	body := io.Reader(c.Request.Body)
	if c.text {
		body = newBase64Reader(body)
	}
	err := readFrame(body, buf, compressed, c.op.maxBody)
	end()
	if errors.Is(err, errFrameTooLarge) {
		return nil, errBodyTooLarge(c.op.maxBody)
	}
	if err != nil {
		return nil, readError(ctx, err)
	}
	found, complete := c.op.proto.Unmarshal(buf.Bytes(), req, c.op.ids)
	if !complete {
		return found, nil
	}
	c.problems = append(c.problems, found...)
	return nil, nil
}

// endGRPC sends the answer and the status: gRPC has HTTP trailers for that, gRPC-Web a last frame.
func (c *Call) endGRPC(contentType string, message *bytes.Buffer, err error) {
	trailer := c.trailer(err)
	h := c.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = []string{"no-store"}
	h["Grpc-Accept-Encoding"] = []string{"gzip"}
	if c.frameCoding != "" {
		h["Grpc-Encoding"] = []string{c.frameCoding}
	}
	if c.Protocol == "grpc-web" {
		c.varies()
		if c.coding != "" {
			h["Content-Encoding"] = []string{c.coding} // the trailer is in it
		} else {
			appendTrailer(message, trailer)
			c.encode(message)
		}
		h["Content-Length"] = []string{strconv.Itoa(message.Len())}
		_, _ = c.Write(message.Bytes())
		return
	}
	names := make([]string, len(trailer))
	for i, t := range trailer {
		names[i] = t[0]
	}
	h["Trailer"] = names // announced, or net/http drops them where there is no body
	// A length would be that of the messages alone, and some proxies take its end for the end of the answer, trailers
	// and all.
	h["Content-Length"] = nil
	c.WriteHeader(http.StatusOK)
	if message.Len() > 0 {
		_, _ = c.Write(message.Bytes())
	}
	for _, t := range trailer {
		h[t[0]] = []string{t[1]}
	}
}

// encode gives what was written the form of the text mode, where that is spoken.
func (c *Call) encode(buf *bytes.Buffer) {
	if c.text {
		encodeBase64(buf)
	}
}

// trailer says how the call ended.
func (c *Call) trailer(err error) [][2]string {
	if err == nil {
		return [][2]string{{"Grpc-Status", "0"}}
	}
	return statusTrailer(statusOf(c.settle(err), c.Info.RequestID))
}

func statusTrailer(st *status.Status) [][2]string {
	trailer := [][2]string{
		{"Grpc-Status", strconv.Itoa(int(st.GetCode()))},
		{"Grpc-Message", percentEncode(st.GetMessage())},
	}
	if raw, err := proto.Marshal(st); err == nil {
		trailer = append(trailer, [2]string{"Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(raw)})
	}
	return trailer
}

// parseTimeout reads the header grpc-timeout.
func parseTimeout(values []string) (time.Duration, bool) {
	if len(values) != 1 || len(values[0]) < 2 || len(values[0]) > 9 {
		return 0, false
	}
	digits, unit := values[0][:len(values[0])-1], values[0][len(values[0])-1]
	var size time.Duration
	switch unit {
	case 'n':
		size = time.Nanosecond
	case 'u':
		size = time.Microsecond
	case 'm':
		size = time.Millisecond
	case 'S':
		size = time.Second
	case 'M':
		size = time.Minute
	case 'H':
		size = time.Hour
	default:
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, false
	}
	// Days are beyond every limit of ours; more of them would not fit a Duration.
	return time.Duration(min(n, uint64(24*time.Hour/size))) * size, true
}
