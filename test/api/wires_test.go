package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
)

// restWire sends JSON over HTTP/1.1.
type restWire struct {
	client *http.Client
	base   string
}

func (restWire) name() string { return "rest" }

func (r restWire) call(ctx context.Context, op *operation, req proto.Message, h Header) (*Answer, error) {
	path, body, err := op.asREST(req)
	if err != nil {
		return nil, err
	}
	h = merge([]Header{h})
	if body != nil {
		h["content-type"] = []string{"application/json"}
	}
	if op.md.IsStreamingServer() {
		return r.first(ctx, op, path, h)
	}
	a, err := r.do(ctx, op.verb, path, h, body)
	if err != nil || a.status != nil {
		return a, err
	}
	a.message = op.output.New().Interface()
	if err := protojson.Unmarshal(a.body, a.message); err != nil {
		return nil, fmt.Errorf("%s: %w", a.body, err)
	}
	var object map[string]any
	if err := json.Unmarshal(a.body, &object); err != nil {
		return nil, err
	}
	return a, scalarsPresent(op.md.Output(), object, "")
}

// do sends any request. The answer has a status where it is not 200, and no message yet.
func (r restWire) do(ctx context.Context, method, path string, h Header, body []byte) (*Answer, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, reader)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(h.on(req))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &Answer{wire: "rest", header: resp.Header, http: resp.StatusCode}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || method == http.MethodHead {
		return a, nil
	}
	a.status = &spb.Status{}
	if err := protojson.Unmarshal(a.body, a.status); err != nil {
		return nil, fmt.Errorf("HTTP %d is not an error of ours: %w\n%.300s", resp.StatusCode, err, a.body)
	}
	if resp.Header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("content-type %q", resp.Header.Get("Content-Type"))
	}
	return a, errorShape(a.body)
}

// errorShape looks at an error body as a client without protobuf does: a number, a text, objects with "@type".
func errorShape(body []byte) error {
	var shape struct {
		Code    *int32           `json:"code"`
		Message *string          `json:"message"`
		Details []map[string]any `json:"details"`
	}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&shape); err != nil {
		return fmt.Errorf("%s: %w", body, err)
	}
	if shape.Code == nil || shape.Message == nil || len(shape.Details) < 2 {
		return fmt.Errorf("an error body without code, message or details: %s", body)
	}
	for _, d := range shape.Details {
		if name, _ := d["@type"].(string); !strings.HasPrefix(name, "type.googleapis.com/google.rpc.") {
			return fmt.Errorf("a detail of the type %q: %s", name, body)
		}
	}
	return nil
}

// scalarsPresent checks that an answer carries all plain fields, also those that are empty.
func scalarsPresent(md protoreflect.MessageDescriptor, object map[string]any, path string) error {
	if md.ParentFile().Package() == "google.protobuf" {
		return nil
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		value, sent := object[fd.JSONName()]
		if !sent && !fd.HasPresence() {
			return fmt.Errorf("the answer lacks %s%s", path, fd.JSONName())
		}
		if inner, is := value.(map[string]any); is && fd.Message() != nil {
			if err := scalarsPresent(fd.Message(), inner, path+fd.JSONName()+"."); err != nil {
				return err
			}
		}
		if _, is := value.(string); fd.Kind() == protoreflect.Uint64Kind && !is {
			return fmt.Errorf("%s%s is not a decimal string", path, fd.JSONName())
		}
	}
	return nil
}

// asREST gives path and body of a request; the body is nil where the operation has none.
func (op *operation) asREST(req proto.Message) (path string, body []byte, err error) {
	req = proto.Clone(req)
	m := req.ProtoReflect()
	segments := strings.Split(op.path, "/")
	for i, s := range segments {
		if name, is := strings.CutPrefix(s, "{"); is {
			fd := m.Descriptor().Fields().ByName(protoreflect.Name(strings.TrimSuffix(name, "}")))
			segments[i] = url.PathEscape(m.Get(fd).String())
			m.Clear(fd)
		}
	}
	path = strings.Join(segments, "/")
	if op.verb == http.MethodGet || op.verb == http.MethodDelete {
		query, err := asQuery(m)
		if query != "" {
			path += "?" + query
		}
		return path, nil, err
	}
	body, err = protojson.MarshalOptions{}.Marshal(req)
	return path, body, err
}

// asQuery gives the fields that are left for the query of a URL.
func asQuery(m protoreflect.Message) (query string, err error) {
	values := url.Values{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Kind() == protoreflect.StringKind:
			for i := range v.List().Len() {
				values.Add(fd.JSONName(), v.List().Get(i).String())
			}
		case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Timestamp":
			var text []byte
			if text, err = protojson.Marshal(v.Message().Interface()); err == nil {
				values.Set(fd.JSONName(), strings.Trim(string(text), `"`))
			}
		case fd.Message() != nil || fd.IsList():
			err = fmt.Errorf("%s has no place in a query", fd.FullName())
		case fd.Enum() != nil:
			text := strconv.Itoa(int(v.Enum()))
			if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
				text = string(value.Name())
			}
			values.Set(fd.JSONName(), text)
		default:
			values.Set(fd.JSONName(), v.String())
		}
		return err == nil
	})
	return values.Encode(), err
}

// grpcWire is the real gRPC client, over HTTP/2 without TLS.
type grpcWire struct{ conn *grpc.ClientConn }

func (grpcWire) name() string { return "grpc" }

func (g grpcWire) call(ctx context.Context, op *operation, req proto.Message, h Header) (*Answer, error) {
	return g.invoke(ctx, op, req, h)
}

func (g grpcWire) invoke(ctx context.Context, op *operation, req any, h Header,
	options ...grpc.CallOption) (*Answer, error) {
	md := metadata.MD{}
	for k, v := range h {
		md.Append(k, v...)
	}
	var head, trailer metadata.MD
	message := op.output.New().Interface()
	if op.md.IsStreamingServer() {
		return g.first(ctx, op, req, md)
	}
	err := g.conn.Invoke(metadata.NewOutgoingContext(ctx, md), "/"+op.procedure(), req, message,
		append(options, grpc.Header(&head), grpc.Trailer(&trailer))...)
	a := &Answer{message: message, header: http.Header{}}
	for k, values := range metadata.Join(head, trailer) {
		a.header[textproto.CanonicalMIMEHeaderKey(k)] = values
	}
	return a.ended(err)
}

// ended makes the answer one that was refused, where err says so.
func (a *Answer) ended(err error) (*Answer, error) {
	if err == nil {
		return a, nil
	}
	st, ok := status.FromError(err)
	if !ok || len(st.Details()) == 0 {
		return nil, fmt.Errorf("no error of ours: %w", err)
	}
	a.message, a.status = nil, st.Proto()
	return a, nil
}

// webWire is connect's client for gRPC-Web, over HTTP/1.1 as browsers behind old proxies have it.
type webWire struct {
	client *http.Client
	base   string
}

func (webWire) name() string { return "grpc-web" }

func (g webWire) call(ctx context.Context, op *operation, req proto.Message, h Header) (*Answer, error) {
	client := connect.NewClient[dynamicpb.Message, dynamicpb.Message](g.client, g.base+"/"+op.procedure(),
		connect.WithGRPCWeb(),
		connect.WithSchema(op.md), connect.WithResponseInitializer(func(_ connect.Spec, m any) error {
			if dynamic, is := m.(*dynamicpb.Message); is {
				*dynamic = *dynamicpb.NewMessage(op.md.Output())
			}
			return nil
		}))
	dynamic := dynamicpb.NewMessage(op.md.Input())
	if err := convert(req, dynamic); err != nil {
		return nil, err
	}
	out := connect.NewRequest(dynamic)
	for k, values := range h {
		for _, v := range values {
			out.Header().Add(k, v)
		}
	}
	if op.md.IsStreamingServer() {
		return firstOf(ctx, client, op, out)
	}
	resp, err := client.CallUnary(ctx, out)
	if err == nil {
		a := &Answer{message: op.output.New().Interface(), header: resp.Header()}
		return a, convert(resp.Msg, a.message)
	}
	return refusedWith(err)
}

// refusedWith is the answer that an error of connect's clients stands for.
func refusedWith(err error) (*Answer, error) {
	var refusal *connect.Error
	if !errors.As(err, &refusal) || len(refusal.Details()) == 0 {
		return nil, fmt.Errorf("no error of ours: %w", err)
	}
	a := &Answer{header: refusal.Meta(), status: &spb.Status{Code: int32(refusal.Code()), Message: refusal.Message()}}
	for _, d := range refusal.Details() {
		value, err := d.Value()
		if err != nil {
			return nil, err
		}
		packed, err := anypb.New(value)
		if err != nil {
			return nil, err
		}
		a.status.Details = append(a.status.Details, packed)
	}
	return a, nil
}

func convert(from, to proto.Message) error {
	raw, err := proto.Marshal(from)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, to)
}
