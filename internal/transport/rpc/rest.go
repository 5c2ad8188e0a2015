package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/packing"
	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/internal/transport/web"
)

// binding is one way to reach an operation by REST.
type binding struct {
	op       *operation
	verb     string
	template string
	params   []protoreflect.FieldDescriptor // set by the path, in its order
	// set by the query, under JSON and proto names; nil if there is a body
	query map[string]protoreflect.FieldDescriptor
}

// newBinding understands as much of google.api.http as the API uses, and refuses the rest of it.
func newBinding(op *operation, rule *annotations.HttpRule) (*binding, error) {
	b := &binding{op: op}
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		b.verb, b.template = http.MethodGet, p.Get
	case *annotations.HttpRule_Put:
		b.verb, b.template = http.MethodPut, p.Put
	case *annotations.HttpRule_Post:
		b.verb, b.template = http.MethodPost, p.Post
	case *annotations.HttpRule_Patch:
		b.verb, b.template = http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		b.verb, b.template = http.MethodDelete, p.Delete
	case *annotations.HttpRule_Custom:
		b.verb, b.template = p.Custom.GetKind(), p.Custom.GetPath()
	default:
		return nil, errors.New("its REST path has no method")
	}
	if rule.GetResponseBody() != "" {
		return nil, errors.New("response_body is not supported")
	}
	fields := op.input.Descriptor().Fields()
	for segment := range strings.SplitSeq(b.template, "/") {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		name, ok := strings.CutSuffix(segment[1:], "}")
		fd := fields.ByName(protoreflect.Name(name))
		if !ok || fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
			return nil, fmt.Errorf("%s in the path %s is not a string field of the request", segment, b.template)
		}
		b.params = append(b.params, fd)
	}
	switch hasBody := b.verb != http.MethodGet && b.verb != http.MethodDelete; {
	case rule.GetBody() == "*" && hasBody:
		return b, nil
	case rule.GetBody() != "" || hasBody:
		return nil, fmt.Errorf("%s with body %q is not supported", b.verb, rule.GetBody())
	}
	b.query = map[string]protoreflect.FieldDescriptor{}
	for i := range fields.Len() {
		if fd := fields.Get(i); !slices.Contains(b.params, fd) {
			b.query[fd.JSONName()], b.query[string(fd.Name())] = fd, fd
		}
	}
	return b, nil
}

func (b *binding) serve(c *Call, values []string) {
	c.begin(b.op, "rest")
	c.decode = func(ctx context.Context, req proto.Message) ([]errs.Violation, error) {
		return b.decode(ctx, c, values, req)
	}
	if b.op.streams {
		c.serveStream(&eventStream{c})
		return
	}
	if b.verb == http.MethodGet {
		c.names = values
	}
	var body []byte
	var packed *bytes.Buffer
	c.marshal = func(resp proto.Message) (err error) {
		if body, err = strict.MarshalJSON(resp); err == nil {
			packed = c.packBody(body)
		}
		return err
	}
	err := c.perform()
	if packed != nil {
		defer buffers.Put(packed)
	}
	c.varies()
	switch {
	case err != nil:
		c.refuse(err)
	case packed != nil:
		c.Header()["Content-Encoding"] = []string{packing.Gzip}
		c.write(http.StatusOK, packed.Bytes())
	default:
		c.answer(http.StatusOK, body)
	}
}

// decode fills the request from the body or the query, and then from the path.
func (b *binding) decode(ctx context.Context, c *Call, values []string, req proto.Message) ([]errs.Violation, error) {
	buf := buffers.Get()
	defer buffers.Put(buf)
	if err := c.readBody(ctx, buf); err != nil {
		return nil, err
	}
	var query url.Values
	if raw := c.Request.URL.RawQuery; raw != "" {
		var err error
		if query, err = url.ParseQuery(raw); err != nil {
			c.problem("", "the query of the URL is not valid: it must be name=value pairs separated by &")
		}
	}
	var unreadable []errs.Violation
	m := req.ProtoReflect()
	if b.query == nil {
		if buf.Len() > 0 {
			if err := checkJSONType(c.Request.Header); err != nil {
				return nil, err
			}
		}
		// Where the path says everything, nobody has to send an empty object.
		if buf.Len() > 0 || m.Descriptor().Fields().Len() > len(b.params) {
			found, complete := strict.UnmarshalJSON(buf.Bytes(), req)
			if complete {
				c.problems = append(c.problems, found...)
			} else {
				unreadable = found
			}
		}
		for _, name := range sortedKeys(query) {
			c.problem(readable(name), "must be in the body: this operation has no query parameters")
		}
	} else {
		if body := bytes.TrimSpace(buf.Bytes()); len(body) > 0 && string(body) != "{}" {
			c.problem("", "this operation takes no body")
		}
		b.setQuery(c, m, query)
		if b.op.streams {
			c.setCursor(m)
		}
	}
	for i, fd := range b.params {
		if sent := m.Get(fd).String(); sent != "" && sent != values[i] {
			c.problem(fd.JSONName(), "must be the same as in the path, or be left out")
		}
		m.Set(fd, protoString(strict.Storable(values[i])))
	}
	return unreadable, nil
}

func (b *binding) setQuery(c *Call, m protoreflect.Message, query url.Values) {
	if len(query) == 0 {
		return
	}
	seen := map[protoreflect.FieldDescriptor]bool{}
	for _, name := range sortedKeys(query) {
		fd, texts := b.query[name], query[name]
		switch {
		case fd == nil:
			c.problem(readable(name), "is not a known parameter")
		case seen[fd] || len(texts) > 1 && !fd.IsList():
			c.problem(fd.JSONName(), "is given more than once")
		default:
			seen[fd] = true
			for _, text := range texts {
				if problem := strict.SetField(m, fd, text); problem != "" {
					c.problem(fd.JSONName(), problem)
					break
				}
			}
		}
	}
}

// problem notes something wrong beside the message itself. There is no use in noting more than are ever shown.
func (c *Call) problem(field, message string) {
	if len(c.problems) < strict.MaxViolations {
		c.problems = append(c.problems, errs.Violation{Field: field, Message: message})
	}
}

func sortedKeys(query url.Values) []string {
	keys := make([]string, 0, len(query))
	for k := range query {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// readable makes a name that a caller has sent fit to be repeated.
func readable(name string) string {
	var out []rune
	for _, r := range strings.ToValidUTF8(name, "\ufffd") {
		if !unicode.IsPrint(r) {
			r = '\ufffd'
		}
		if out = append(out, r); len(out) == 60 {
			break
		}
	}
	if len(out) == 0 {
		return `""`
	}
	return string(out)
}

// checkJSONType refuses bodies that do not say they are JSON in UTF-8.
func checkJSONType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) != 1 {
		return errNotJSON
	}
	if values[0] == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" {
		return errNotJSON
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return errNotJSON
	}
	return nil
}

// readBody reads what there is of a body, within the limits of size and time.
func (c *Call) readBody(ctx context.Context, buf *bytes.Buffer) error {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return nil
	}
	for _, encoding := range c.Request.Header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return errEncoding
		}
	}
	if c.Request.ContentLength > c.op.maxBody {
		return errBodyTooLarge(c.op.maxBody)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Most bodies fit into this. The buffer of a larger one grows with what arrives, not with what was promised.
	if n := c.Request.ContentLength; n > 0 {
		buf.Grow(int(min(n, 2<<10)) + bytes.MinRead)
	}
	defer c.interruptible(ctx)()
	_, err := buf.ReadFrom(http.MaxBytesReader(c.ResponseWriter, c.Request.Body, c.op.maxBody))
	return readError(ctx, err)
}

// interruptible makes reading the body fail once the request's time is over. The function it returns ends that.
func (c *Call) interruptible(ctx context.Context) (end func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		// A writer that cannot do it belongs to a test, where nobody is slow.
		_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(c.Start)
	})
	return func() {
		if stop() {
			return
		}
		<-done
		if c.Request.ProtoMajor == 1 && !c.Answered() {
			// net/http may take the deadline for the client's leaving, and would cancel what comes next.
			c.Header()["Connection"] = []string{"close"}
		}
	}
}

// readError says why a body could not be read.
func readError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, said := errors.AsType[*errs.Error](err); said {
		return err
	}
	if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
		return errBodyTooLarge(tooLarge.Limit)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errs.Invalid(errs.Violation{Message: "the body ends too early"})
	}
	return errs.Invalid(errs.Violation{Message: "the body could not be read"}).Because(err)
}

// answer sends a JSON body, with a line break behind it for those who read it in a terminal.
func (c *Call) answer(status int, body []byte) { c.write(status, append(body, '\n')) }

// write sends a body that is ready to be sent.
func (c *Call) write(status int, body []byte) {
	h := c.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = typeJSON, noStore, noSniff
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.WriteHeader(status)
	_, _ = c.Write(body) // who hangs up is not told anything anyway
}

// Values of headers that every answer has. Nobody changes them.
var typeJSON, noStore, noSniff = []string{"application/json"}, []string{"no-store"}, []string{"nosniff"}

// refuse sends an error as JSON.
func (c *Call) refuse(err error) {
	e := c.settle(err)
	if c.Answered() {
		return
	}
	body, err := strict.MarshalJSON(statusOf(e, c.Info.RequestID))
	if err != nil { // it cannot fail: all text in it is UTF-8 and all its types are known
		body = []byte("{}")
	}
	c.answer(web.AnswerTo(e).REST, body)
}
