package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

// fake implements all services. It remembers the last call, and answers err if that is set.
type fake struct {
	// What has no answer of its own below is never called.
	signetv1connect.UnimplementedUserServiceHandler
	signetv1connect.UnimplementedSessionServiceHandler
	signetv1connect.UnimplementedOrganizationServiceHandler
	signetv1connect.UnimplementedIdentityProviderServiceHandler

	mu   sync.Mutex
	info *call.Info
	req  proto.Message
	err  error
	hook func(ctx context.Context) error
}

var (
	_ signetv1connect.UserServiceHandler             = (*fake)(nil)
	_ signetv1connect.SessionServiceHandler          = (*fake)(nil)
	_ signetv1connect.OrganizationServiceHandler     = (*fake)(nil)
	_ signetv1connect.IdentityProviderServiceHandler = (*fake)(nil)
)

var details = &signetv1.Details{Sequence: 7, ChangeDate: timestamppb.New(time.Unix(1700000000, 0)),
	ResourceOwner: "org_own"}

func answer[Res any](f *fake, ctx context.Context, req proto.Message, res *Res) (*Res, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info := *call.From(ctx)
	f.info, f.req = &info, req
	if f.hook != nil {
		if err := f.hook(ctx); err != nil {
			return nil, err
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return res, nil
}

func (f *fake) UpdateMyProfile(ctx context.Context,
	req *signetv1.UpdateMyProfileRequest) (*signetv1.UpdateMyProfileResponse, error) {
	return answer(f, ctx, req, &signetv1.UpdateMyProfileResponse{Details: details})
}

func (f *fake) SetUserPassword(ctx context.Context,
	req *signetv1.SetUserPasswordRequest) (*signetv1.SetUserPasswordResponse, error) {
	return answer(f, ctx, req, &signetv1.SetUserPasswordResponse{Details: details})
}

func (f *fake) ChangeMyPassword(ctx context.Context,
	req *signetv1.ChangeMyPasswordRequest) (*signetv1.ChangeMyPasswordResponse, error) {
	return answer(f, ctx, req, &signetv1.ChangeMyPasswordResponse{Details: details})
}

func (f *fake) GetMyUser(ctx context.Context, req *signetv1.GetMyUserRequest) (*signetv1.GetMyUserResponse, error) {
	return answer(f, ctx, req, &signetv1.GetMyUserResponse{User: &signetv1.User{UserId: "usr_1", Details: details}})
}

func (f *fake) GetUser(ctx context.Context, req *signetv1.GetUserRequest) (*signetv1.GetUserResponse, error) {
	return answer(f, ctx, req,
		&signetv1.GetUserResponse{User: &signetv1.User{UserId: req.GetUserId(), Details: details}})
}

func (f *fake) ListUsers(ctx context.Context, req *signetv1.ListUsersRequest) (*signetv1.ListUsersResponse, error) {
	res := &signetv1.ListUsersResponse{}
	for i := range req.GetPageSize() {
		res.Users = append(res.Users, &signetv1.User{UserId: fmt.Sprint("usr_", i), Details: details})
	}
	return answer(f, ctx, req, res)
}

func (f *fake) ImportUsers(ctx context.Context,
	req *signetv1.ImportUsersRequest) (*signetv1.ImportUsersResponse, error) {
	return answer(f, ctx, req, &signetv1.ImportUsersResponse{})
}

func (f *fake) CreateSession(ctx context.Context,
	req *signetv1.CreateSessionRequest) (*signetv1.CreateSessionResponse, error) {
	return answer(f, ctx, req, &signetv1.CreateSessionResponse{SessionId: "ses_1", Token: "t"})
}

func (f *fake) EndSession(ctx context.Context, req *signetv1.EndSessionRequest) (*signetv1.EndSessionResponse, error) {
	return answer(f, ctx, req, &signetv1.EndSessionResponse{})
}

func (f *fake) SetupOrganization(ctx context.Context,
	req *signetv1.SetupOrganizationRequest) (*signetv1.SetupOrganizationResponse, error) {
	return answer(f, ctx, req,
		&signetv1.SetupOrganizationResponse{Details: details, OrgId: "org_new", UserId: "usr_new"})
}

func (f *fake) GetOrganization(ctx context.Context,
	req *signetv1.GetOrganizationRequest) (*signetv1.GetOrganizationResponse, error) {
	return answer(f, ctx, req,
		&signetv1.GetOrganizationResponse{Org: &signetv1.Organization{OrgId: req.GetOrgId(), Details: details}})
}

func (f *fake) UpdateJWTIdentityProvider(ctx context.Context,
	req *signetv1.UpdateJWTIdentityProviderRequest) (*signetv1.UpdateJWTIdentityProviderResponse, error) {
	return answer(f, ctx, req, &signetv1.UpdateJWTIdentityProviderResponse{Details: details})
}

func (f *fake) UpdateIdentityProvider(ctx context.Context,
	req *signetv1.UpdateIdentityProviderRequest) (*signetv1.UpdateIdentityProviderResponse, error) {
	return answer(f, ctx, req, &signetv1.UpdateIdentityProviderResponse{Details: details})
}

func (f *fake) AddJWTIdentityProvider(ctx context.Context,
	req *signetv1.AddJWTIdentityProviderRequest) (*signetv1.AddJWTIdentityProviderResponse, error) {
	return answer(f, ctx, req, &signetv1.AddJWTIdentityProviderResponse{Details: details, IdpId: "idp_new"})
}

func (f *fake) GetIdentityProvider(ctx context.Context,
	req *signetv1.GetIdentityProviderRequest) (*signetv1.GetIdentityProviderResponse, error) {
	return answer(f, ctx, req,
		&signetv1.GetIdentityProviderResponse{Idp: &signetv1.IdentityProvider{IdpId: req.GetIdpId(), Details: details}})
}

func (f *fake) services() []Service {
	return []Service{
		{signetv1connect.UserServiceName, f}, {signetv1connect.SessionServiceName, f},
		{signetv1connect.OrganizationServiceName, f}, {signetv1connect.IdentityProviderServiceName, f},
	}
}

// callers are the tokens that the test server knows.
var callers = map[string]*access.Caller{
	"owner":  {UserID: "usr_1", OrgID: "org_own", Memberships: access.Memberships{"org_own": {access.OrgOwner}}},
	"nobody": {UserID: "usr_2", OrgID: "org_own"},
	"admin": {UserID: "usr_3", OrgID: "org_own",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}},
	"elsewhere": {UserID: "usr_5", OrgID: "org_own",
		Memberships: access.Memberships{"org_else": {access.OrgUserManager}}},
	"neighbour": {UserID: "usr_7", OrgID: "org_other",
		Memberships: access.Memberships{"org_other": {access.OrgOwner}}},
	"restricted": {UserID: "usr_4", OrgID: "org_own", MustChangePassword: true,
		Memberships: access.Memberships{"org_own": {access.OrgOwner}}},
}

func lookup(_ context.Context, token string) (*access.Caller, error) {
	if token == "broken" {
		return nil, errors.New("dial tcp 10.0.0.5:5432: connection refused")
	}
	if c := callers[token]; c != nil {
		return c, nil
	}
	return nil, access.ErrUnauthenticated
}

// lab is a running server with a client for each protocol.
type lab struct {
	fake     *fake
	handler  *Handler
	site     *web.Site
	registry *prometheus.Registry
	front    *web.Front // as everywhere outside of tests
	url      string
	logged   *bytes.Buffer
	logLock  sync.Mutex
	h1, h2   *http.Client
	grpc     *grpc.ClientConn
}

type lockedWriter struct{ l *lab }

func (w lockedWriter) Write(b []byte) (int, error) {
	w.l.logLock.Lock()
	defer w.l.logLock.Unlock()
	return w.l.logged.Write(b)
}

func newLab(t testing.TB, change ...func(*Config)) *lab {
	t.Helper()
	return newLabAt(t, time.Now, change...)
}

func newLabAt(t testing.TB, now func() time.Time, change ...func(*Config)) *lab {
	t.Helper()
	l := &lab{fake: &fake{}, logged: &bytes.Buffer{}}
	config := Config{
		Services: l.fake.services(), Authenticate: lookup, OpenAPI: []byte(`{"openapi":"3.1.0"}`),
		Log:    slog.New(slog.NewTextHandler(lockedWriter{l}, nil)),
		Proven: func(context.Context, *access.Caller, bool, bool) error { return nil },
		// What a test lets wait is answered, however slow the machine is.
		TimeLimit: testkit.Patience,
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	if l.handler, err = New(config); err != nil {
		t.Fatal(err)
	}
	l.registry = prometheus.NewPedanticRegistry()
	metrics, err := web.NewMetrics(l.registry)
	if err != nil {
		t.Fatal(err)
	}
	if l.site, err = web.New(web.Config{API: l.handler, Log: config.Log, Metrics: metrics, Now: now}); err != nil {
		t.Fatal(err)
	}
	l.front = &web.Front{Next: l.site}
	l.url = serve(t, l.front)
	l.h1 = &http.Client{Transport: &http.Transport{}}
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	l.h2 = &http.Client{Transport: two}
	if l.grpc, err = grpc.NewClient(strings.TrimPrefix(l.url, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.grpc.Close()
		l.h1.CloseIdleConnections()
		two.CloseIdleConnections()
	})
	return l
}

// serve runs a handler on HTTP/1.1 and cleartext HTTP/2 until the test ends.
func serve(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String()
}

// logs gives what was logged so far. Small answers leave the server only after their line has been written.
func (l *lab) logs() string {
	l.logLock.Lock()
	defer l.logLock.Unlock()
	return l.logged.String()
}

// outcome is an answer in whatever protocol, in terms they share.
type outcome struct {
	code       int32
	reason     string
	message    string
	violations map[string]string
	retry      time.Duration
	requestID  string
	header     http.Header // headers or leading and trailing metadata
	http       int         // REST only
	body       []byte      // a success: JSON or proto
}

func (o *outcome) fill(t *testing.T, st *spb.Status) {
	t.Helper()
	o.code, o.message = st.GetCode(), st.GetMessage()
	for _, detail := range st.GetDetails() {
		m, err := detail.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *errdetails.ErrorInfo:
			o.reason = m.GetReason()
			if m.GetDomain() != "signet" {
				t.Errorf("the domain is %q", m.GetDomain())
			}
		case *errdetails.RequestInfo:
			o.requestID = m.GetRequestId()
		case *errdetails.RetryInfo:
			o.retry = m.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			o.violations = map[string]string{}
			for _, v := range m.GetFieldViolations() {
				o.violations[v.GetField()] = v.GetDescription()
			}
		}
	}
	if o.code != 0 && (o.reason == "" || o.requestID == "") {
		t.Errorf("the error has no reason or no request id: %v", st)
	}
}

// ask is a request that can be sent in every protocol.
type ask struct {
	procedure string // UserService/GetUser
	verb      string
	path      string
	msg       proto.Message
	header    http.Header
}

func (l *lab) rest(t *testing.T, client *http.Client, verb, path, body string, header http.Header) outcome {
	t.Helper()
	r, err := http.NewRequest(verb, l.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	if body != "" && r.Header["Content-Type"] == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return l.do(t, client, r)
}

func (l *lab) do(t *testing.T, client *http.Client, r *http.Request) outcome {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	o := outcome{header: resp.Header, http: resp.StatusCode}
	if o.body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusNoContent || r.Method == http.MethodHead {
		return o
	}
	if resp.Header.Get("Content-Type") != "application/json" || !json.Valid(o.body) {
		t.Fatalf("the answer %d is %q: %s", resp.StatusCode, resp.Header.Get("Content-Type"), o.body)
	}
	if resp.StatusCode != http.StatusOK {
		var st spb.Status
		if err := protojson.Unmarshal(o.body, &st); err != nil {
			t.Fatalf("%v: %s", err, o.body)
		}
		o.fill(t, &st)
	}
	return o
}

// rawCodec lets a connect client send any bytes as a message.
type rawCodec struct{}

type rawMessage struct{ b []byte }

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(m any) ([]byte, error) { return m.(*rawMessage).b, nil }

func (rawCodec) Unmarshal(b []byte, m any) error {
	if raw, ok := m.(*rawMessage); ok {
		raw.b = bytes.Clone(b)
		return nil
	}
	return proto.Unmarshal(b, m.(proto.Message)) // the status of an error
}

func (l *lab) connect(t *testing.T, client *http.Client, procedure string, raw []byte, header http.Header,
	options ...connect.ClientOption) outcome {
	t.Helper()
	options = append([]connect.ClientOption{connect.WithCodec(rawCodec{})}, options...)
	c := connect.NewClient[rawMessage, rawMessage](client, l.url+"/signet.v1."+procedure, options...)
	req := connect.NewRequest(&rawMessage{raw})
	maps.Copy(req.Header(), header)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	resp, err := c.CallUnary(ctx, req)
	if err == nil {
		return outcome{header: resp.Header(), body: resp.Msg.b}
	}
	ce, ok := errors.AsType[*connect.Error](err)
	if !ok {
		t.Fatal(err)
	}
	o := outcome{header: ce.Meta()}
	st := &spb.Status{Code: int32(ce.Code()), Message: ce.Message()}
	for _, d := range ce.Details() {
		m, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		packed, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		st.Details = append(st.Details, packed)
	}
	o.fill(t, st)
	return o
}

func (l *lab) grpcgo(t *testing.T, procedure string, req, resp proto.Message, header http.Header) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for k, values := range header {
		for _, v := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, k, v)
		}
	}
	var leading, trailing metadata.MD
	err := l.grpc.Invoke(ctx, "/signet.v1."+procedure, req, resp, grpc.Header(&leading), grpc.Trailer(&trailing))
	o := outcome{header: http.Header{}}
	for k, v := range metadata.Join(leading, trailing) {
		o.header[http.CanonicalHeaderKey(k)] = v
	}
	st, ok := status.FromError(err)
	if !ok {
		t.Fatal(err)
	}
	if err != nil {
		o.fill(t, st.Proto())
		return o
	}
	if o.body, err = proto.Marshal(resp); err != nil {
		t.Fatal(err)
	}
	return o
}

// everywhere sends the same request in all protocols and hands each outcome to check. What is to be prepared is so
// before each of them.
func (l *lab) everywhere(t *testing.T, a ask, check func(t *testing.T, o outcome), prepare ...func()) {
	t.Helper()
	raw, err := proto.Marshal(a.msg)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []struct {
		name string
		send func(t *testing.T) outcome
	}{
		{"REST over HTTP/1.1",
			func(t *testing.T) outcome { return l.rest(t, l.h1, a.verb, a.path, a.json(t), a.header) }},
		{"REST over HTTP/2", func(t *testing.T) outcome {
			return l.rest(t, l.h2, a.verb, a.path, a.json(t), a.header)
		}},
		{"gRPC", func(t *testing.T) outcome {
			return l.connect(t, l.h2, a.procedure, slices.Clone(raw), a.header, connect.WithGRPC())
		}},
		{"gRPC by grpc-go", func(t *testing.T) outcome {
			return l.grpcgo(t, a.procedure, a.msg, responseOf(t, a.procedure), a.header)
		}},
		{"gRPC-Web over HTTP/1.1", func(t *testing.T) outcome {
			return l.connect(t, l.h1, a.procedure, slices.Clone(raw), a.header, connect.WithGRPCWeb())
		}},
		{"gRPC-Web over HTTP/2", func(t *testing.T) outcome {
			return l.connect(t, l.h2, a.procedure, slices.Clone(raw), a.header, connect.WithGRPCWeb())
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			for _, p := range prepare {
				p()
			}
			check(t, way.send(t))
		})
	}
}

func (a ask) json(t *testing.T) string {
	t.Helper()
	if a.verb == "GET" || a.verb == "DELETE" {
		return ""
	}
	b, err := protojson.Marshal(a.msg)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func bearerOf(token string, more ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + token}}
	for i := 0; i < len(more); i += 2 {
		k := http.CanonicalHeaderKey(more[i])
		h[k] = append(h[k], more[i+1])
	}
	return h
}

func responseOf(t *testing.T, procedure string) proto.Message {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("signet.v1." +
		strings.Replace(procedure, "/", ".", 1)))
	if err != nil {
		t.Fatal(err)
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.(protoreflect.MethodDescriptor).Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface()
}
