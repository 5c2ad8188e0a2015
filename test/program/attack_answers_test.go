package program

import (
	"bytes"
	"testing"
)

// TestEarlyAnswersResetNoStream: an answer that is ready before its request was sent to the end waits for that end.
// Behind a reset, proxies and clients lose it.
func TestEarlyAnswersResetNoStream(t *testing.T) {
	const body = 60 << 10
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		const password = "/signet.v1.UserService/SetUserPassword"
		for _, tt := range []struct {
			name    string
			request []string
			want    string
		}{
			{"REST, no credential", post("/v1/users/_import", "content-type", "application/json"), "401"},
			{"REST, wrong method", post("/v1/users/me", "content-type", "application/json"), "405"},
			{"REST, encoded", post("/v1/sessions", "content-type", "application/json",
				"content-encoding", "br"), "415"},
			{"gRPC, no credential", post(password, "content-type", "application/grpc", "te", "trailers"),
				"200 grpc-status 16"},
			{"gRPC, unknown method",
				post("/signet.v1.UserService/Nothing", "content-type", "application/grpc", "te", "trailers"),
				"200 grpc-status 12"},
			{"gRPC, a stream",
				post("/signet.v1.EventService/StreamEvents", "content-type", "application/grpc", "te", "trailers"),
				"200 grpc-status 16"},
			{"gRPC, another type", post(password, "content-type", "application/xml"), "415"},
			{"gRPC-Web, no credential", post(password, "content-type", "application/grpc-web+proto"), "200"},
			{"an unknown path", post("/nothing/here"), "404"},
			{"a probe", post("/healthz"), "405"},
			{"a page, from elsewhere",
				post("/login", "content-type", "application/x-www-form-urlencoded", "sec-fetch-site",
					"cross-site"), "403"},
			{"a page of the account, another method",
				[]string{":method", "PUT", ":scheme", "http", ":authority", "localhost", ":path", "/account"}, "403"},
			{"OAuth, no form", post("/oauth/token", "content-type", "application/json"), "400"},
			{"OAuth, wrong method",
				[]string{":method", "DELETE", ":scheme", "http", ":authority", "localhost", ":path",
					"/oauth/token"}, "405"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				f := dialFrames(t, p)
				const streams = 16
				for i := range streams {
					if err := f.request(uint32(2*i+1), tt.request...); err != nil {
						t.Fatal(err)
					}
				}
				f.settle(t) // they are on their way, and their bodies are not
				part := bytes.Repeat([]byte("x"), body/4)
				for k := range 4 {
					for i := range streams {
						if err := f.send(uint32(2*i+1), k == 3, part); err != nil {
							t.Fatal(err)
						}
					}
				}
				f.awaitEnds(t, streams)
				f.settle(t)
				for id, how := range f.ended {
					if how != tt.want {
						t.Fatalf("stream %d ended with %q: %s", id, how, f.ends())
					}
				}
			})
		}
	})
}
