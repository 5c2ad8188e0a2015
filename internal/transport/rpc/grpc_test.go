package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	gzipcodec "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/test/testkit"
)

func frameOf(flags byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message))), message...)
}

func zipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

// frame sends bytes as they are to an RPC path, and reads the answer of gRPC-Web or gRPC without a library's help.
func (l *lab) frame(t *testing.T, client *http.Client, contentType, procedure string, body []byte,
	header http.Header) outcome {
	t.Helper()
	return l.frameAt(t, client, contentType, "signet.v1."+procedure, body, header)
}

// frameAt is frame at any path.
func (l *lab) frameAt(t *testing.T, client *http.Client, contentType, path string, body []byte,
	header http.Header) outcome {
	t.Helper()
	client = withText(client, contentType)
	r, err := http.NewRequest("POST", l.url+"/"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answered := resp.Header.Get("Content-Type"); resp.StatusCode != 200 ||
		answered != contentType && !isText(contentType) {
		t.Fatalf("got %s, %q", resp.Status, resp.Header.Get("Content-Type"))
	}
	o := outcome{header: resp.Header}
	trailer := resp.Trailer
	if strings.Contains(contentType, "grpc-web") {
		trailer = http.Header{}
	}
	for len(raw) > 0 {
		size := binary.BigEndian.Uint32(raw[1:])
		content := raw[5 : 5+size]
		if raw[0] == 0 {
			o.body = content
		} else {
			for line := range strings.SplitSeq(strings.TrimSuffix(string(content), "\r\n"), "\r\n") {
				k, v, _ := strings.Cut(line, ": ")
				trailer.Add(k, v)
			}
		}
		raw = raw[5+size:]
	}
	code, err := strconv.Atoi(trailer.Get("Grpc-Status"))
	if err != nil {
		t.Fatalf("there is no status in %v", trailer)
	}
	if code == 0 {
		return o
	}
	bin, err := base64.RawStdEncoding.DecodeString(trailer.Get("Grpc-Status-Details-Bin"))
	if err != nil {
		t.Fatal(err)
	}
	var st spb.Status
	if err := proto.Unmarshal(bin, &st); err != nil {
		t.Fatal(err)
	}
	o.fill(t, &st)
	if text, err := url.PathUnescape(trailer.Get("Grpc-Message")); err != nil || text != o.message ||
		int(o.code) != code {
		t.Errorf("grpc-message is %q, the status says %q", text, o.message)
	}
	return o
}

// withText makes a client speak text where the content type says so.
func withText(client *http.Client, contentType string) *http.Client {
	if !isText(contentType) {
		return client
	}
	return &http.Client{Transport: testkit.TextMode{Next: client.Transport}}
}

func TestFrames(t *testing.T) {
	l := newLab(t)
	valid, _ := proto.Marshal(profile)
	large := bytes.Repeat([]byte{'x'}, maxBody)
	badText := []byte("\x0a\x02\xff\xfe\x12\x01b\x22\x01c") // firstName is not UTF-8
	nested := append([]byte{0x12, 8, 0x12, 6, 0x0a, 4}, "ab\xffc"...)
	gz := bearerOf("owner", "grpc-encoding", "gzip")
	for _, tt := range []struct {
		name   string
		body   []byte
		header http.Header
		code   int32
		reason string
		field  string
		says   string
	}{
		{"a message", frameOf(0, valid), nil, 0, "", "", ""},
		{"a compressed message", frameOf(1, zipped(valid)), gz, 0, "", "", ""},
		{"a plain message where compression was announced", frameOf(0, valid), gz, 0, "", "", ""},
		{"unknown fields are passed over", frameOf(0, append(bytes.Clone(valid), 0xfa, 0x7f, 1, 0)), nil,
			0, "", "", ""},
		{"no message", nil, nil, 3, "INVALID_REQUEST", "", "contains no message"},
		{"an empty message is judged by the rules", frameOf(0, nil), nil, 3, "INVALID_REQUEST", "firstName",
			"must not be empty"},
		{"two messages", append(frameOf(0, valid), frameOf(0, valid)...), nil, 3, "INVALID_REQUEST", "",
			"more than one message"},
		{"a stray byte", append(frameOf(0, valid), 0), nil, 3, "INVALID_REQUEST", "", "more than one message"},
		{"half a head", []byte{0, 0, 0}, nil, 3, "INVALID_REQUEST", "", "ends too early"},
		{"half a message", frameOf(0, valid)[:12], nil, 3, "INVALID_REQUEST", "", "ends too early"},
		{"unknown flags", frameOf(2, valid), nil, 3, "INVALID_REQUEST", "", "unknown flags"},
		{"a trailer frame from a client", frameOf(0x80, valid), nil, 3, "INVALID_REQUEST", "", "unknown flags"},
		{"compressed without saying how", frameOf(1, zipped(valid)), nil, 3, "INVALID_REQUEST", "", "does not say how"},
		{"compressed otherwise", frameOf(1, zipped(valid)), bearerOf("owner", "grpc-encoding", "br"), 12,
			"UNSUPPORTED_ENCODING", "", "gzip"},
		{"not compressed at all", frameOf(1, valid), gz, 3, "INVALID_REQUEST", "", "not compressed with gzip"},
		{"damaged compression", frameOf(1, zipped(valid)[:15]), gz, 3, "INVALID_REQUEST", "", "damaged"},
		{"too large", frameOf(0, append(large, 'x')), nil, 8, "BODY_TOO_LARGE", "", "too large"},
		{"a promise that is too large", []byte{0, 0xff, 0xff, 0xff, 0xff}, nil, 8, "BODY_TOO_LARGE", "", "too large"},
		{"too large once unpacked", frameOf(1, zipped(append(large, 'x'))), gz, 8, "BODY_TOO_LARGE", "", "too large"},
		{"not a message", frameOf(0, []byte{0xff, 0xff}), nil, 3, "INVALID_REQUEST", "",
			"not a valid signet.v1.UpdateMyProfileRequest"},
		{"text that is not UTF-8", frameOf(0, badText), nil, 3, "INVALID_REQUEST", "firstName", "must be valid UTF-8"},
		{"no credential before any of it", []byte{2, 0xff}, http.Header{}, 16, "UNAUTHENTICATED", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.header == nil {
				tt.header = bearerOf("owner")
			}
			for _, contentType := range []string{"application/grpc", "application/grpc+proto", "application/grpc-web",
				"application/grpc-web+proto", "application/grpc-web-text"} {
				for _, client := range []*http.Client{l.h1, l.h2} {
					o := l.frame(t, client, contentType, "UserService/UpdateMyProfile", tt.body, tt.header)
					if o.code != tt.code || o.reason != tt.reason {
						t.Fatalf("%s: got %d %s %s", contentType, o.code, o.reason, o.message)
					}
					if tt.says != "" && !strings.Contains(o.message, tt.says) ||
						tt.field != "" && o.violations[tt.field] != tt.says {
						t.Errorf("%s: got %q %q", contentType, o.message, o.violations)
					}
				}
			}
		})
	}
	t.Run("more violations than anybody reads", func(t *testing.T) {
		raw, _ := proto.Marshal(&signetv1.SetupOrganizationRequest{Roles: slices.Repeat([]string{"\x00"}, 1000)})
		o := l.frame(t, l.h2, "application/grpc", "OrganizationService/SetupOrganization", frameOf(0, raw),
			bearerOf("admin"))
		if o.code != 3 || len(o.violations) != 50 || o.violations["roles[49]"] != strict.ProblemNUL {
			t.Errorf("got %d violations", len(o.violations))
		}
	})
	t.Run("text that is not UTF-8 deep in a message", func(t *testing.T) {
		o := l.frame(t, l.h2, "application/grpc", "OrganizationService/SetupOrganization", frameOf(0, nested),
			bearerOf("admin"))
		if o.violations["human.profile.firstName"] != "must be valid UTF-8" {
			t.Errorf("got %+v", o)
		}
	})
}

func TestContentTypesOfRPCPaths(t *testing.T) {
	l := newLab(t)
	for _, contentType := range []string{"", "application/json", "application/proto", "application/connect+proto",
		"application/grpc+json",
		"application/grpc-web-text+json", "application/grpc-web+json", "text/plain", "application/grpcx"} {
		for _, path := range []string{"/signet.v1.UserService/GetMyUser", "/grpc.health.v1.Health/Check",
			"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
			o := l.rest(t, l.h1, "POST", path, "x", bearerOf("owner", "content-type", contentType))
			if o.http != 415 || o.code != 12 || o.reason != "UNSUPPORTED_MEDIA_TYPE" {
				t.Errorf("%s at %s: got %d %d %s", contentType, path, o.http, o.code, o.reason)
			}
		}
	}
	for _, verb := range []string{"GET", "PUT", "DELETE", "PATCH", "HEAD"} {
		o := l.rest(t, l.h1, verb, "/signet.v1.UserService/GetMyUser", "",
			bearerOf("owner", "content-type", "application/grpc"))
		if o.http != 405 || o.header.Get("Allow") != "OPTIONS, POST" {
			t.Errorf("%s: got %d, allow %q", verb, o.http, o.header.Get("Allow"))
		}
	}
	if o := l.frame(t, l.h1, "application/grpc-web", "UserService/GetMyUser", frameOf(0, nil),
		bearerOf("owner")); o.code != 0 {
		t.Errorf("got %+v", o)
	}
	r, _ := http.NewRequest("POST", l.url+"/signet.v1.UserService/GetMyUser", bytes.NewReader(frameOf(0, nil)))
	r.Header = bearerOf("owner", "content-type", "Application/gRPC-Web+Proto; charset=utf-8")
	resp, err := l.h1.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/grpc-web+proto" {
		t.Errorf("got %s %v", resp.Status, resp.Header)
	}
}

func TestTextOfGRPCWeb(t *testing.T) {
	l := newLab(t)
	raw, _ := proto.Marshal(profile)
	whole := base64.StdEncoding.EncodeToString(frameOf(0, raw))
	parts := base64.StdEncoding.EncodeToString(frameOf(0,
		raw)[:4]) + base64.StdEncoding.EncodeToString(frameOf(0, raw)[4:])
	const message = "the body is not base64, as the content type says"
	for _, tt := range []struct{ name, body, says string }{
		{"at once", whole, ""},
		{"in parts", parts, ""},
		{"each byte by itself", func() (all string) {
			for _, b := range frameOf(0, raw) {
				all += base64.StdEncoding.EncodeToString([]byte{b})
			}
			return all
		}(), ""},
		{"binary", string(frameOf(0, raw)), message},
		{"half a character", whole + "AA", message},
		{"the alphabet of URLs", "____" + whole, message},
		{"nothing", "", "the request contains no message"},
		{"padding only", "====", message},
		{"more than one message", whole + whole, "the request contains more than one message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, contentType := range []string{"application/grpc-web-text", "application/grpc-web-text+proto"} {
				r, _ := http.NewRequest("POST", l.url+"/signet.v1.UserService/UpdateMyProfile",
					strings.NewReader(tt.body))
				r.Header = bearerOf("owner", "content-type", contentType)
				resp, err := l.h1.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil || resp.Header.Get("Content-Type") != contentType ||
					resp.Header.Get("Content-Length") != strconv.Itoa(len(text)) {
					t.Fatal(err, resp.Header)
				}
				answer, err := base64.StdEncoding.DecodeString(string(text))
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				if status := "grpc-status: " + map[bool]string{true: "0",
					false: "3"}[tt.says == ""]; !strings.Contains(string(answer), status) ||
					!strings.Contains(string(answer), tt.says) {
					t.Errorf("%q", answer)
				}
			}
		})
	}
}

func TestUnknownMethods(t *testing.T) {
	l := newLab(t)
	for _, procedure := range []string{"UserService/Nothing", "Nothing/GetMyUser", "UserService/GetMyUser/",
		"userservice/GetMyUser", "UserService//GetMyUser", "UserService%2fGetMyUser"} {
		for _, contentType := range []string{"application/grpc", "application/grpc-web+proto",
			"application/grpc-web-text"} {
			for _, client := range []*http.Client{l.h1, l.h2} {
				o := l.frame(t, client, contentType, procedure, frameOf(0, nil), bearerOf("owner"))
				if o.code != 12 || o.reason != "UNKNOWN_METHOD" || o.requestID != o.header.Get("X-Request-Id") {
					t.Errorf("%s: got %+v", procedure, o)
				}
			}
		}
		if o := l.rest(t, l.h1, "POST", "/signet.v1."+procedure, "{}", bearerOf("owner")); o.http != 404 ||
			o.reason != "UNKNOWN_PATH" {
			t.Errorf("%s as JSON: got %+v", procedure, o)
		}
	}
	if o := l.grpcgo(t, "UserService/Nothing", getMe.msg, &signetv1.GetMyUserResponse{}, nil); o.code != 12 ||
		o.reason != "UNKNOWN_METHOD" {
		t.Errorf("got %+v", o)
	}
}

func TestCompressingClients(t *testing.T) {
	l := newLab(t)
	raw, _ := proto.Marshal(profile)
	for _, option := range []connect.ClientOption{connect.WithGRPC(), connect.WithGRPCWeb()} {
		if o := l.connect(t, l.h2, putProfile.procedure, raw, bearerOf("owner"), option,
			connect.WithSendGzip()); o.code != 0 {
			t.Errorf("got %+v", o)
		}
	}
	ctx := t.Context()
	err := l.grpc.Invoke(ctx, "/signet.v1.SessionService/CreateSession", signIn.msg, &signetv1.CreateSessionResponse{},
		grpc.UseCompressor(gzipcodec.Name))
	if err != nil {
		t.Error(err)
	}
}

// TestUnpackingStopsAtTheLimit holds that a small message which unpacks to a huge one takes no more room than allowed.
func TestUnpackingStopsAtTheLimit(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range 8 {
		w.Write(zeros)
	}
	w.Close()
	var buf bytes.Buffer
	if err := readFrame(bytes.NewReader(frameOf(1, packed.Bytes())), &buf, true, maxBody); !errors.Is(err,
		errFrameTooLarge) {
		t.Fatal(err)
	}
	if buf.Len() > maxBody+1 {
		t.Errorf("unpacked %d bytes", buf.Len())
	}
}

func TestPercentEncoding(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain text~": "plain text~", "100 %": "100 %25", "ä\n": "%C3%A4%0A", "a\x7f": "a%7F",
	} {
		if got := percentEncode(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestReflectionAndHealth(t *testing.T) {
	var unready error
	l := newLab(t, func(c *Config) { c.Ready = func(context.Context) error { return unready } })
	t.Run("reflection", func(t *testing.T) {
		stream := grpcreflect.NewClient(l.h2, l.url, connect.WithGRPC()).NewStream(t.Context())
		defer stream.Close()
		names, err := stream.ListServices()
		if err != nil || len(names) != 5 {
			t.Fatalf("got %v %v", names, err)
		}
		files, err := stream.FileContainingSymbol("signet.v1.UserService")
		if err != nil || len(files) == 0 {
			t.Errorf("got %v %v", files, err)
		}
	})
	health := grpc_health_v1.NewHealthClient(l.grpc)
	check := func(service string) (grpc_health_v1.HealthCheckResponse_ServingStatus, error) {
		resp, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		return resp.GetStatus(), err
	}
	for _, service := range []string{"", "signet.v1.UserService"} {
		if got, err := check(service); err != nil || got != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %v %v", service, got, err)
		}
	}
	for _, contentType := range []string{"application/grpc", "application/grpc-web", "application/grpc-web+proto"} {
		if o := l.frameAt(t, l.h2, contentType, "grpc.health.v1.Health/Check",
			frameOf(0, []byte("\x0a\x15signet.v1.UserService")), nil); o.code != 0 || string(o.body) != "\x08\x01" {
			t.Errorf("%s: %+v", contentType, o)
		}
	}
	if _, err := check("signet.v1.Nothing"); err == nil {
		t.Error("an unknown service is healthy")
	}
	unready = io.ErrUnexpectedEOF
	if got, err := check(""); err != nil || got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v %v", got, err)
	}
}

func TestWatchingHealth(t *testing.T) {
	var unready atomic.Bool
	l := newLab(t, func(c *Config) {
		c.Ready = func(context.Context) error {
			if unready.Load() {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
	})
	t.Cleanup(l.handler.EndStreams)
	health := grpc_health_v1.NewHealthClient(l.grpc)
	watch := func(service string) grpc.ServerStreamingClient[grpc_health_v1.HealthCheckResponse] {
		t.Helper()
		stream, err := health.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	next := func(stream grpc.ServerStreamingClient[grpc_health_v1.HealthCheckResponse],
		want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if m, err := stream.Recv(); err != nil || m.GetStatus() != want {
			t.Fatalf("got %v %v, not %v", m, err, want)
		}
	}
	all, one, none := watch(""), watch("signet.v1.UserService"), watch("signet.v1.Nothing")
	next(all, grpc_health_v1.HealthCheckResponse_SERVING)
	next(one, grpc_health_v1.HealthCheckResponse_SERVING)
	next(none, grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN)
	for _, state := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING} {
		unready.Store(state == grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		next(all, state)
		next(one, state)
	}

	// One network has five of them, so that strangers cannot hold the server's streams.
	next(watch(""), grpc_health_v1.HealthCheckResponse_SERVING)
	next(watch(""), grpc_health_v1.HealthCheckResponse_SERVING)
	_, err := watch("").Recv()
	if st := status.Convert(err); st.Code() != codes.ResourceExhausted || len(st.Details()) < 2 {
		t.Errorf("got %v", err)
	}
	l.handler.EndStreams()
	if m, err := all.Recv(); err != io.EOF {
		t.Errorf("a stopped server says %v %v", m, err)
	}
}
