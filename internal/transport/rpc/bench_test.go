package rpc

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	h      http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Flush()                      {}

// benchmark measures what a handler costs, without network, server and client.
func benchmark(b *testing.B, h http.Handler, verb, path, contentType string, body []byte) {
	b.ReportAllocs()
	r, err := http.NewRequest(verb, "http://localhost"+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header = bearerOf("owner", "content-type", contentType, "user-agent", "bench", "x-request-id", "r-1")
	r.RemoteAddr = "127.0.0.1:1234"
	if body != nil {
		r.ContentLength = int64(len(body))
	}
	for b.Loop() {
		w := &sink{h: http.Header{}}
		if body != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		h.ServeHTTP(w, r)
		if w.status != 0 && w.status != 200 {
			b.Fatal(w.status)
		}
	}
}

func BenchmarkREST(b *testing.B) {
	h := newLab(b).site
	b.Run("read", func(b *testing.B) { benchmark(b, h, "GET", "/v1/users/me", "", nil) })
	b.Run("change", func(b *testing.B) {
		benchmark(b, h, "PUT", "/v1/users/me/profile", "application/json", []byte(validProfile))
	})
}

func BenchmarkGRPC(b *testing.B) {
	h := newLab(b).site
	raw, _ := proto.Marshal(profile)
	b.Run("read", func(b *testing.B) {
		benchmark(b, h, "POST", "/signet.v1.UserService/GetMyUser", "application/grpc", frameOf(0, nil))
	})
	b.Run("change", func(b *testing.B) {
		benchmark(b, h, "POST", "/signet.v1.UserService/UpdateMyProfile", "application/grpc", frameOf(0, raw))
	})
	b.Run("change over gRPC-Web", func(b *testing.B) {
		benchmark(b, h, "POST", "/signet.v1.UserService/UpdateMyProfile", "application/grpc-web+proto", frameOf(0, raw))
	})
}

// BenchmarkConnect is the comparison: the library's own handler with nothing in front of the same operation.
func BenchmarkConnect(b *testing.B) {
	raw, _ := proto.Marshal(profile)
	f := &fake{}
	bare := connect.NewUnaryHandlerSimple("/signet.v1.UserService/UpdateMyProfile", f.UpdateMyProfile)
	benchmark(b, bare, "POST", "/signet.v1.UserService/UpdateMyProfile", "application/grpc", frameOf(0, raw))
}

// BenchmarkWhole has a real server and a real client on both sides of the loopback interface.
func BenchmarkWhole(b *testing.B) {
	l := newLab(b)
	b.Run("REST over HTTP/1.1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, _ := http.NewRequest("PUT", l.url+"/v1/users/me/profile", strings.NewReader(validProfile))
			r.Header = bearerOf("owner", "content-type", "application/json")
			resp, err := l.h1.Do(r)
			if err != nil || resp.StatusCode != 200 {
				b.Fatal(resp, err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	invoke := func(b *testing.B, url string) {
		b.ReportAllocs()
		c := connect.NewClient[signetv1.UpdateMyProfileRequest, signetv1.UpdateMyProfileResponse](l.h2,
			url+"/signet.v1.UserService/UpdateMyProfile", connect.WithGRPC())
		for b.Loop() {
			req := connect.NewRequest(profile)
			req.Header().Set("Authorization", "Bearer owner")
			if _, err := c.CallUnary(context.Background(), req); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("gRPC", func(b *testing.B) { invoke(b, l.url) })
	b.Run("gRPC by connect's handler", func(b *testing.B) {
		bare := connect.NewUnaryHandlerSimple("/signet.v1.UserService/UpdateMyProfile", l.fake.UpdateMyProfile)
		invoke(b, serve(b, bare))
	})
}
