package proxies

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/test/testkit"
)

func TestBehindProxies(t *testing.T) {
	w := newBackend(t)
	refusals := w.refusals(t)
	for i, p := range all {
		t.Run(p.name, func(t *testing.T) {
			way := w.through(t, p)
			t.Run("the five operations succeed over every protocol",
				func(t *testing.T) { w.succeed(t, way, fmt.Sprint(i)) })
			t.Run("refusals arrive as they were sent", func(t *testing.T) { refusals.arrive(t, way) })
			t.Run("gRPC's own library sees the same", func(t *testing.T) { w.library(t, way) })
			t.Run("early errors arrive before the largest bodies have", func(t *testing.T) { w.early(t, way) })
			t.Run("the text mode of gRPC-Web arrives", func(t *testing.T) { w.text(t, way) })
			t.Run("only the proxy says where a request comes from",
				func(t *testing.T) { w.origin(t, way, fmt.Sprint(i)) })
			t.Run("events arrive as they happen", func(t *testing.T) { w.follow(t, way, fmt.Sprint(i)) })
		})
	}
}

func TestEarlyErrorsArriveOverHTTP2(t *testing.T) {
	w := newBackend(t)
	w.early(t, w.direct)
}

// early sends bodies of 3.9 MB that are refused before they are read: without a token, and to a method that does not
// exist. Each answer has to arrive, though clients and proxies are still sending. SIGNET_EARLY_ERRORS says how many
// (make clients: 200 of each).
func (w *backend) early(t *testing.T, v *way) {
	n := 4
	if text := os.Getenv("SIGNET_EARLY_ERRORS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	large := bytes.Repeat([]byte(" "), 3_900_000)
	var lost atomic.Int32
	for want, r := range map[string]request{
		"401\n": {"an import without a token", "POST", "/v1/users/_import",
			w.header(jsonType, false), large},
		"\nGrpc-Status: 16": {"an import without a token, by gRPC", "POST", "/signet.v1.UserService/ImportUsers",
			w.header(grpcType, false), frame(large)},
		"\nGrpc-Status: 12": {"an unknown method", "POST", "/signet.v1.UserService/Nope",
			w.header(grpcType, true), frame(large)},
	} {
		var all sync.WaitGroup
		for i := range min(n, 4) {
			all.Go(func() {
				for range (n + 3 - i) / 4 {
					if answer, err := r.send(v); err != nil || !strings.Contains(answer, want) {
						lost.Add(1)
						t.Errorf("%s: %v %.200s", r.name, err, answer)
					}
				}
			})
		}
		all.Wait()
	}
	t.Logf("%d of %d lost", lost.Load(), 3*n)
}

// request is one to be sent on several ways.
type request struct {
	name         string
	method, path string
	header       map[string]string
	body         []byte
}

// send gives all of the answer that a client goes by: status, reason and details.
func (r request) send(v *way) (string, error) {
	req, err := http.NewRequest(r.method, v.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Request-Id", "behind-a-proxy") // or answers would differ in it
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := v.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	answer := fmt.Sprintf("%d\n", resp.StatusCode)
	for _, name := range []string{"Content-Type", "Www-Authenticate", "Retry-After", "Allow", "Location",
		"X-Request-Id", "Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin"} {
		value := resp.Header.Get(name)
		if value == "" {
			value = resp.Trailer.Get(name)
		}
		answer += name + ": " + value + "\n"
	}
	return answer + string(body), nil
}

// frame makes a message one of gRPC.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

const grpcType, webType, jsonType, formType = "application/grpc", "application/grpc-web+proto", "application/json", "application/x-www-form-urlencoded"

// header of a request by the protocol.
func (w *backend) header(contentType string, authorized bool) map[string]string {
	h := map[string]string{"Content-Type": contentType}
	if contentType == grpcType {
		h["Te"] = "trailers"
	}
	if authorized {
		h["Authorization"] = "Bearer " + w.token
	}
	return h
}

func (w *backend) succeed(t *testing.T, v *way, unique string) {
	person := w.change("POST", "/v1/users/human", map[string]any{
		"userName": "person-" + unique,
		"password": "a password",
		"email":    map[string]any{"email": "person@example.com"},
		"profile":  map[string]any{"firstName": "A", "lastName": "Person"},
	})["userId"].(string)
	provider := w.change("POST", "/v1/idps/jwt", map[string]any{
		"name":         "Provider",
		"jwtEndpoint":  "https://idp.example.com/jwt",
		"issuer":       "https://idp.example.com",
		"keysEndpoint": "https://idp.example.com/keys",
	})["idpId"].(string)
	for _, contentType := range []string{jsonType, grpcType, webType} {
		for _, op := range []struct {
			procedure, method, path string
			request                 proto.Message
		}{
			{"UserService/UpdateMyProfile", "PUT", "/v1/users/me/profile",
				&signetv1.UpdateMyProfileRequest{FirstName: "First", LastName: "Administrator",
					DisplayName: "First Administrator"}},
			{"IdentityProviderService/UpdateJWTIdentityProvider", "PUT", "/v1/idps/" + provider + "/jwt_config",
				&signetv1.UpdateJWTIdentityProviderRequest{
					IdpId: provider, JwtEndpoint: "https://idp.example.com/jwt", Issuer: "https://idp.example.com",
					KeysEndpoint: "https://idp.example.com/keys"}},
			{"OrganizationService/SetupOrganization", "POST", "/v1/orgs/_setup", &signetv1.SetupOrganizationRequest{
				Org: &signetv1.SetupOrganizationRequest_Org{Name: "Behind"},
				Human: &signetv1.SetupOrganizationRequest_Human{
					UserName: "owner",
					Password: "a password",
					Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: "owner@example.com"},
					Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "An", LastName: "Owner"},
				},
			}},
			{"IdentityProviderService/UpdateIdentityProvider", "PUT", "/v1/idps/" + provider,
				&signetv1.UpdateIdentityProviderRequest{IdpId: provider, Name: "Provider"}},
			{"UserService/SetUserPassword", "POST", "/v1/users/" + person + "/password",
				&signetv1.SetUserPasswordRequest{UserId: person, Password: "another password"}},
		} {
			r := request{op.procedure, op.method, op.path, w.header(contentType, true), nil}
			var err error
			if contentType == jsonType {
				r.body, err = protojson.Marshal(op.request)
			} else {
				r.method, r.path = "POST", "/signet.v1."+op.procedure
				r.body, err = proto.Marshal(op.request)
				r.body = frame(r.body)
			}
			must(t, err)
			answer, err := r.send(v)
			if err != nil {
				t.Errorf("%s as %s: %v", r.name, contentType, err)
				continue
			}
			switch {
			case !strings.HasPrefix(answer, "200\n"),
				contentType == grpcType && !strings.Contains(answer, "\nGrpc-Status: 0\n"),
				contentType == webType && !strings.Contains(answer, "grpc-status: 0\r\n"):
				t.Errorf("%s as %s: %s", r.name, contentType, answer)
			}
		}
	}
}

// refusals are requests that are refused, mostly before anybody has read them, and what they are answered without a
// proxy.
type refusals struct {
	requests []request
	want     []string
}

const rounds = 20 // of each refusal on each way

func (w *backend) refusals(t *testing.T) *refusals {
	t.Helper()
	const password = "/signet.v1.UserService/SetUserPassword"
	var all refusals
	for _, size := range []int{0, 60 << 10} {
		padding := strings.Repeat("x", size)
		// In protobuf an unknown field is passed over, so that the message is as long as it may be and still wrong.
		message := frame(append(binary.AppendUvarint([]byte{0xfa, 0x3f}, uint64(size)), padding...))
		object := []byte(`{"password":"","x":"` + padding + `"}`)
		form := []byte("grant_type=authorization_code&code=none&client_id=nobody&state=" + padding[:min(size, 60000)])
		all.requests = append(all.requests, []request{
			{"REST, no credential", "POST", "/v1/users/any/password", w.header(jsonType, false), object},
			{"REST, invalid", "POST", "/v1/users/any/password", w.header(jsonType, true), object},
			{"REST, unknown path", "POST", "/v1/nothing", w.header(jsonType, true), object},
			{"REST, wrong method", "POST", "/v1/users/any", w.header(jsonType, true), object},
			{"REST, another type", "POST", "/v1/users/any/password", w.header("text/plain", true), object},
			{"gRPC, no credential", "POST", password, w.header(grpcType, false), message},
			{"gRPC, invalid", "POST", password, w.header(grpcType, true), message},
			{"gRPC, unknown method", "POST", "/signet.v1.UserService/Nothing", w.header(grpcType, true), message},
			{"gRPC, a stream", "POST", "/signet.v1.EventService/StreamEvents", w.header(grpcType, false), message},
			{"gRPC-Web, no credential", "POST", password, w.header(webType, false), message},
			{"gRPC-Web, invalid", "POST", password, w.header(webType, true), message},
			{"OAuth, unknown client", "POST", "/oauth/token", w.header(formType, false), form},
			{"OAuth, wrong method", "PUT", "/oauth/token", w.header(formType, false), form},
			{"OAuth, another type", "POST", "/oauth/token", w.header(jsonType, false), form},
			{"a page from elsewhere", "POST", "/login",
				map[string]string{"Content-Type": formType, "Sec-Fetch-Site": "cross-site"}, form},
			{"a page without a cookie", "POST", "/login",
				map[string]string{"Content-Type": formType, "Sec-Fetch-Site": "same-origin"}, form},
		}...)
	}
	for _, r := range all.requests {
		answer, err := r.send(w.direct)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		all.want = append(all.want, answer)
	}
	return &all
}

func (all *refusals) arrive(t *testing.T, v *way) {
	turns := make(chan int)
	var running sync.WaitGroup
	var mu sync.Mutex
	wrong := map[string]int{}
	for range 8 {
		running.Go(func() {
			for i := range turns {
				r := all.requests[i]
				answer, err := r.send(v)
				if err == nil && answer == all.want[i] {
					continue
				}
				mu.Lock()
				name := fmt.Sprintf("%s, %d bytes", r.name, len(r.body))
				if wrong[name]++; wrong[name] == 1 {
					t.Errorf("%s: got %v\n%.600s\nwant\n%.600s", name, err, answer, all.want[i])
				}
				mu.Unlock()
			}
		})
	}
	for range rounds {
		for i := range all.requests {
			turns <- i
		}
	}
	close(turns)
	running.Wait()
	if len(wrong) > 0 {
		t.Errorf("of %d each: %v", rounds, wrong)
	}
}

// library calls with the client that most people have.
func (w *backend) library(t *testing.T, v *way) {
	conn := v.grpc(t, w.roots)
	authorized := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+w.token)
	if err := conn.Invoke(authorized, "/signet.v1.UserService/GetMyUser", &signetv1.GetMyUserRequest{},
		&signetv1.GetMyUserResponse{}); err != nil {
		t.Error(err)
	}
	err := conn.Invoke(authorized, "/zitadel.admin.v1.AdminService/SetUpOrg", &signetv1.SetupOrganizationRequest{},
		&signetv1.SetupOrganizationResponse{})
	if s := status.Convert(err); s.Code() != codes.InvalidArgument || len(s.Details()) < 3 {
		t.Errorf("under another name: %v, %v", err, s.Details())
	}
	health, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	if m, err := health.Recv(); err != nil || m.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("watching the health: %v, %v", m, err)
	}
	for range 50 {
		err := conn.Invoke(authorized, "/signet.v1.UserService/SetUserPassword",
			&signetv1.SetUserPasswordRequest{UserId: "any"}, &signetv1.SetUserPasswordResponse{})
		if s := status.Convert(err); s.Code() != codes.InvalidArgument || len(s.Details()) < 3 {
			t.Fatalf("a wrong request: %v, %v", err, s.Details())
		}
		err = conn.Invoke(t.Context(), "/signet.v1.UserService/SetUserPassword",
			&signetv1.SetUserPasswordRequest{UserId: "any", Password: strings.Repeat("x", 60<<10)},
			&signetv1.SetUserPasswordResponse{})
		if s := status.Convert(err); s.Code() != codes.Unauthenticated || len(s.Details()) < 2 {
			t.Fatalf("no credential: %v, %v", err, s.Details())
		}
	}
}

// text reads a call and the beginning of a stream in the text mode of gRPC-Web, while the stream lasts.
func (w *backend) text(t *testing.T, v *way) {
	for method, want := range map[string]string{"UserService/GetMyUser": "grpc-status: 0",
		"EventService/StreamEvents": ""} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", v.url+"/signet.v1."+method,
			strings.NewReader("AAAAAAA="))
		must(t, err)
		req.Header = http.Header{"Content-Type": {"application/grpc-web-text"}, "Authorization": {"Bearer " + w.token}}
		resp, err := v.http.Do(req)
		must(t, err)
		defer resp.Body.Close()
		text := make([]byte, 8)
		_, err = io.ReadFull(resp.Body, text)
		must(t, err)
		if want != "" {
			rest, err := io.ReadAll(resp.Body)
			must(t, err)
			text = append(text, rest...)
		}
		if got, err := base64.StdEncoding.DecodeString(string(text)); err != nil || got[0] != 0 ||
			!strings.Contains(string(got), want) {
			t.Errorf("%s: %q, %v", method, got, err)
		}
	}
}

// origin sends the address of somebody else along. The client has another address than the proxy, which is trusted.
func (w *backend) origin(t *testing.T, v *way, unique string) {
	transport := v.http.Transport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	from := &http.Client{Transport: transport, Timeout: patience}
	for _, path := range []string{"/v1/users/me", "/login", "/signet.v1.UserService/GetMyUser"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", v.url+path, nil)
		must(t, err)
		id := "origin-" + unique + strings.ReplaceAll(path, "/", "-")
		req.Header = http.Header{"X-Forwarded-For": {"192.0.2.66"}, "X-Request-Id": {id}, "Content-Type": {webType}}
		resp, err := from.Do(req)
		must(t, err)
		resp.Body.Close()
		testkit.Await(t, "the line of the request", func() bool { return w.log.Has(id) })
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, id) && !strings.Contains(line, "peer=127.0.0.2") {
				t.Errorf("%s: %s", path, line)
			}
		}
	}
}

// follow opens streams, and waits for an event that happens afterwards.
func (w *backend) follow(t *testing.T, v *way, unique string) {
	req, err := http.NewRequestWithContext(t.Context(), "GET", v.url+"/v1/events/_stream", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+w.token)
	resp, err := v.http.Do(req)
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry:") {
		t.Fatalf("the stream begins with %q: %v", lines.Text(), lines.Err())
	}
	conn := v.grpc(t, w.roots)
	stream, err := conn.NewStream(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+w.token),
		&grpc.StreamDesc{ServerStreams: true}, "/signet.v1.EventService/StreamEvents")
	must(t, err)
	must(t, stream.SendMsg(&signetv1.StreamEventsRequest{}))
	must(t, stream.CloseSend())
	message := &signetv1.StreamEventsResponse{}
	must(t, stream.RecvMsg(message)) // a sign of life: it is open

	added := w.change("POST", "/v1/users/service",
		map[string]any{"userName": "service-" + unique, "name": "Service"})["userId"].(string)
	for !strings.Contains(lines.Text(), added) {
		if !lines.Scan() {
			t.Fatalf("the stream ends before the event: %v", lines.Err())
		}
	}
	for !strings.Contains(fmt.Sprint(message), added) {
		must(t, stream.RecvMsg(message))
	}
}
