package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/transport/strict"

	"github.com/signet-idm/signet/internal/transport/web"
)

const validProfile = `{"firstName":"Ada","lastName":"King","displayName":"Ada King"}`

func TestRESTBodies(t *testing.T) {
	l := newLab(t)
	const noType = "none"
	for _, tt := range []struct {
		name, verb, path, contentType, body string
		http                                int
		reason                              string
		violations                          map[string]string
	}{
		{"JSON", "PUT", "/v1/users/me/profile", "application/json", validProfile, 200, "", nil},
		{"JSON in UTF-8", "PUT", "/v1/users/me/profile", `Application/JSON; charset="UTF-8"`,
			validProfile, 200, "", nil},
		{"names as the proto has them", "PUT", "/v1/users/me/profile", "application/json",
			`{"first_name":"a","last_name":"b","display_name":"c"}`, 200, "", nil},
		{"JSON in another charset", "PUT", "/v1/users/me/profile", "application/json; charset=iso-8859-1", validProfile,
			415, "UNSUPPORTED_MEDIA_TYPE", nil},
		{"another type", "PUT", "/v1/users/me/profile", "text/plain", validProfile, 415, "UNSUPPORTED_MEDIA_TYPE", nil},
		{"a form", "POST", "/v1/users/u/password", "application/x-www-form-urlencoded", "password=x", 415,
			"UNSUPPORTED_MEDIA_TYPE", nil},
		{"gRPC at a REST path", "PUT", "/v1/users/me/profile", "application/grpc", "x", 415,
			"UNSUPPORTED_MEDIA_TYPE", nil},
		{"no type", "PUT", "/v1/users/me/profile", noType, validProfile, 415, "UNSUPPORTED_MEDIA_TYPE", nil},
		{"a type that is none", "PUT", "/v1/users/me/profile", "application/json; charset", validProfile, 415,
			"UNSUPPORTED_MEDIA_TYPE", nil},
		{"no body", "PUT", "/v1/users/me/profile", noType, "", 400, "INVALID_REQUEST",
			map[string]string{"": "the body must be a JSON object"}},
		{"a list", "PUT", "/v1/users/me/profile", "application/json", "[]", 400, "INVALID_REQUEST",
			map[string]string{"": "the body must be a JSON object"}},
		{"unknown, repeated and wrongly typed fields", "PUT", "/v1/users/me/profile", "application/json",
			`{"firstName":1,"lastname":"b","displayName":"c","displayName":"d"}`, 400, "INVALID_REQUEST",
			map[string]string{"firstName": "must be a string", "lastname": "is not a known field",
				"lastName": "must not be empty", "displayName": "is given more than once"}},
		{"the path's parameter again", "POST", "/v1/users/usr_9/password", "application/json",
			`{"userId":"usr_9","password":"p"}`, 200, "", nil},
		{"another value for the path's parameter", "POST", "/v1/users/usr_9/password", "application/json",
			`{"user_id":"usr_8","password":""}`, 400, "INVALID_REQUEST",
			map[string]string{"userId": "must be the same as in the path, or be left out",
				"password": "must not be empty"}},
		{"a query where there is a body", "PUT", "/v1/users/me/profile?firstName=x&%0a=1", "application/json",
			validProfile, 400, "INVALID_REQUEST",
			map[string]string{"firstName": "must be in the body: this operation has no query parameters",
				"\ufffd": "must be in the body: this operation has no query parameters"}},
		{"unknown query parameters", "GET", "/v1/users/usr_9?userId=usr_8&a=1&a=2", noType, "", 400, "INVALID_REQUEST",
			map[string]string{"userId": "is not a known parameter", "a": "is not a known parameter"}},
		{"a broken query", "GET", "/v1/users/usr_9?a;b=%zz", noType, "", 400, "INVALID_REQUEST",
			map[string]string{"": "the query of the URL is not valid: it must be name=value pairs separated by &"}},
		{"a body on a read", "GET", "/v1/users/usr_9", "application/json", `{"userId":"usr_9"}`, 400, "INVALID_REQUEST",
			map[string]string{"": "this operation takes no body"}},
		{"an empty object on a removal", "DELETE", "/v1/sessions/ses_1", "application/json", " {}\n", 200, "", nil},
		{"a NUL in the body under the name of a path's parameter", "POST", "/v1/users/%00/password", "application/json",
			`{"userId":"\u0000","password":"p"}`, 400, "INVALID_REQUEST",
			map[string]string{"userId": strict.ProblemNUL}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, client := range []*http.Client{l.h1, l.h2} {
				h := bearerOf("owner")
				if tt.contentType != noType {
					h.Set("Content-Type", tt.contentType)
				} else {
					h["Content-Type"] = []string{}
				}
				o := l.rest(t, client, tt.verb, tt.path, tt.body, h)
				if o.http != tt.http || o.reason != tt.reason || !maps.Equal(o.violations, tt.violations) {
					t.Errorf("got %d %s %q", o.http, o.reason, o.violations)
				}
				if o.header.Get("X-Content-Type-Options") != "nosniff" || o.header.Get("Cache-Control") != "no-store" {
					t.Errorf("got the headers %v", o.header)
				}
			}
		})
	}
	t.Run("an encoded body", func(t *testing.T) {
		o := l.rest(t, l.h1, "PUT", "/v1/users/me/profile", string(zipped([]byte(validProfile))),
			bearerOf("owner", "content-encoding", "gzip"))
		if o.http != 415 || o.reason != "UNSUPPORTED_ENCODING" {
			t.Errorf("got %+v", o)
		}
		if o := l.rest(t, l.h1, "PUT", "/v1/users/me/profile", validProfile,
			bearerOf("owner", "content-encoding", "identity")); o.http != 200 {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("a large body without its length", func(t *testing.T) {
		for _, client := range []*http.Client{l.h1, l.h2} {
			for size, want := range map[int]int{maxBody: 400, maxBody + 1: 413} {
				r, _ := http.NewRequest("PUT", l.url+"/v1/users/me/profile",
					io.MultiReader(strings.NewReader(strings.Repeat(" ", size))))
				r.Header = bearerOf("owner", "content-type", "application/json")
				if o := l.do(t, client, r); o.http != want {
					t.Errorf("%d bytes: got %d %s", size, o.http, o.reason)
				}
			}
		}
	})
	t.Run("an answer", func(t *testing.T) {
		o := l.rest(t, l.h1, "PUT", "/v1/users/me/profile", validProfile, bearerOf("owner"))
		want := `{"details":{"sequence":"7","changeDate":"2023-11-14T22:13:20Z","resourceOwner":"org_own"}}` + "\n"
		if string(o.body) != want {
			t.Errorf("got %s", o.body)
		}
	})
	t.Run("an error body", func(t *testing.T) {
		o := l.rest(t, l.h1, "GET", "/v1/users/me", "", http.Header{"X-Request-Id": {"r-7"}})
		want := `{"code":16,"message":"` + access.ErrNoToken.Message + `","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"signet","metadata":{}},` +
			`{"@type":"type.googleapis.com/google.rpc.RequestInfo","requestId":"r-7","servingData":""}]}` + "\n"
		if string(o.body) != want {
			t.Errorf("got %s", o.body)
		}
	})
}

// TestOddPaths holds that nothing but the exact spelling of a path leads anywhere, and never past the credential.
func TestOddPaths(t *testing.T) {
	l := newLab(t)
	for _, path := range []string{"/", "", "//", "/v1", "/v1/", "/v1/users/", "//v1/users/me", "/v1//users/me",
		"/v1/users//me", "/v1/users/me/", "/v1/users/me//profile",
		"/V1/users/me", "/v1/Users/me", "/v1%2fusers%2fme", "/%761/users/me", "/v1/./users/me", "/v1/../v1/users/me",
		"/v1/users/../orgs/x", "/v1/users/usr_9/", "/v1/users//password",
		"/v1/users/usr_9/password/x", "/healthz/", "/openapi.json/", "/v1/sessions/a/b", "/v1/users/me/profile/",
		"/v1/users/a/b", "/signet.v1.UserService", "/signet.v1.UserService/",
		"/favicon.ico", "/debug/pprof/", "/metrics"} {
		for _, verb := range []string{"GET", "PUT", "POST", "DELETE", "OPTIONS"} {
			for _, token := range []string{"owner", "stranger"} {
				if o := l.raw(t, verb, path, bearerOf(token)); o != 404 {
					t.Errorf("%s %s: got %d", verb, path, o)
				}
			}
		}
	}
	// These are parameters, odd as they look: the operation will not know such an identifier.
	for path, id := range map[string]string{
		"/v1/users/a%2fpassword": "a/password", "/v1/users/..": "..", "/v1/users/%2e%2e": "..", "/v1/users/%6de": "me",
		"/v1/users/Me":    "Me",
		"/v1/users/me%2f": "me/", "/v1/users/%252f": "%2f", "/v1/users/a;b=c": "a;b=c", "/v1/users/me.": "me.",
		"/v1/users/a+b": "a+b",
	} {
		if got := l.raw(t, "GET", path, bearerOf("stranger")); got != 401 {
			t.Errorf("%s without a credential: got %d", path, got)
		}
		if got := l.raw(t, "GET", path, bearerOf("owner")); got != 200 {
			t.Errorf("%s: got %d", path, got)
		}
		if got := l.fake.req.(*signetv1.GetUserRequest).GetUserId(); got != id {
			t.Errorf("%s: the id is %q", path, got)
		}
	}
	// The absolute form of a URI, as proxies send it, is the same path.
	if got := l.raw(t, "GET", "http://elsewhere.example/v1/users/me", nil); got != 401 {
		t.Errorf("absolute form: got %d", got)
	}
	if got := l.raw(t, "GET", "http://elsewhere.example//v1/users/me", nil); got != 404 {
		t.Errorf("absolute form: got %d", got)
	}
}

// raw sends a request line exactly as given.
func (l *lab) raw(t *testing.T, verb, target string, header http.Header) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if target == "" {
		target = "/"
	}
	var head strings.Builder
	head.WriteString(verb + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
	header.Write(&head)
	io.WriteString(conn, head.String()+"\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestMethods(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct {
		name, verb, path string
		http             int
		allow            string
	}{
		{"a read by POST", "POST", "/v1/orgs/org_x", 405, "DELETE, GET, HEAD, OPTIONS, PUT"},
		{"a change by PATCH", "PATCH", "/v1/users/me/profile", 405, "OPTIONS, PUT"},
		{"several methods", "POST", "/v1/idps/idp_9", 405, "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"},
		{"a fixed segment without the method leaves it to the parameter", "POST", "/v1/users/me/password", 401, ""},
		{"neither the fixed segment nor the parameter has the method", "DELETE", "/v1/users/me/password", 405,
			"OPTIONS, POST, PUT"},
		{"all methods of a path that can be read in two ways", "OPTIONS", "/v1/users/me/password", 204,
			"OPTIONS, POST, PUT"},
		{"a fixed segment that has the method wins over a parameter", "HEAD", "/v1/users/me", 401, ""},
		{"TRACE", "TRACE", "/v1/users/me", 405, "DELETE, GET, HEAD, OPTIONS"},
		{"a method nobody knows", "BREW", "/healthz", 405, "GET, HEAD, OPTIONS"},
		{"a probe by POST", "POST", "/readyz", 405, "GET, HEAD, OPTIONS"},
		{"OPTIONS", "OPTIONS", "/v1/users/me", 204, "DELETE, GET, HEAD, OPTIONS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := l.rest(t, l.h1, tt.verb, tt.path, "", nil)
			if o.http != tt.http || o.header.Get("Allow") != tt.allow ||
				o.http == 405 && (o.code != 12 || o.reason != "METHOD_NOT_ALLOWED") {
				t.Errorf("got %d %d %s, allow %q", o.http, o.code, o.reason, o.header.Get("Allow"))
			}
		})
	}
	t.Run("HEAD is GET without a body", func(t *testing.T) {
		if o := l.rest(t, l.h1, "HEAD", "/v1/users/me", "", bearerOf("owner")); o.http != 200 || len(o.body) != 0 ||
			o.header.Get("Etag") != `"7"` {
			t.Errorf("got %+v", o)
		}
		if o := l.rest(t, l.h1, "HEAD", "/v1/users/me", "", nil); o.http != 401 || len(o.body) != 0 {
			t.Errorf("got %+v", o)
		}
	})
}

func TestStandardPaths(t *testing.T) {
	l := newLab(t)
	for path, body := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ok"}`,
		"/openapi.json": `{"openapi":"3.1.0"}`} {
		if o := l.rest(t, l.h1, "GET", path, "", nil); o.http != 200 || string(o.body) != body+"\n" {
			t.Errorf("%s: got %d %s", path, o.http, o.body)
		}
	}
}

// FuzzREST holds that whatever comes in, JSON comes out, and that nothing panics.
func FuzzREST(f *testing.F) {
	fake := &fake{}
	api, err := New(Config{Services: fake.services(), Authenticate: lookup})
	if err != nil {
		f.Fatal(err)
	}
	h, err := web.New(web.Config{API: api})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("PUT", "/v1/users/me/profile", "", "application/json", validProfile)
	f.Add("POST", "/v1/users/a%2fb/password", "a=b", "application/json", `{"userId":"x","password":"p"}`)
	f.Add("GET", "/v1/users/me", "pageSize=1&x", "", "")
	f.Add("POST", "/v1/orgs/_setup", "", "application/json; charset=utf-8",
		`{"org":{"name":"x"},"human":{"profile":{"gender":"GENDER_MALE"}},"roles":["a",null]}`)
	f.Add("DELETE", "/v1/sessions/%00", ";", "", "{}")
	f.Add("POST", "/signet.v1.UserService/GetMyUser", "", "application/json", "{}")
	f.Fuzz(func(t *testing.T, method, path, query, contentType, body string) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method = method
		r.URL.RawPath, r.URL.Path, r.URL.RawQuery = path, path, query
		r.Header = bearerOf("admin", "content-type", contentType)
		if protocol, _ := grpcProtocol(r.Header); protocol != "" {
			return // the other door
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusNoContent && method == http.MethodOptions {
			return
		}
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("a bug: %s", w.Body)
		}
		if w.Header().Get("Content-Type") != "application/json" || !isObject(w.Body.Bytes()) {
			t.Fatalf("%d is not JSON: %s", w.Code, w.Body)
		}
	})
}

func TestABodyIsRefusedByItsLengthAlone(t *testing.T) {
	r := httptest.NewRequest("PUT", "/", nil)
	r.Body, r.ContentLength = untouched{t}, 11
	x := &Call{Exchange: &web.Exchange{ResponseWriter: httptest.NewRecorder(), Request: r}, op: &operation{maxBody: 10}}
	if err := x.readBody(t.Context(), new(bytes.Buffer)); !errors.Is(err, errBodyTooLarge(10)) {
		t.Error(err)
	}
}

func TestInterruptedConnectionsAreNotReused(t *testing.T) {
	for major, want := range map[int]string{1: "close", 2: ""} {
		x := &Call{Exchange: &web.Exchange{ResponseWriter: httptest.NewRecorder(),
			Request: httptest.NewRequest("PUT", "/", nil)}}
		x.Request.ProtoMajor = major
		ctx, cancel := context.WithCancel(t.Context())
		end := x.interruptible(ctx)
		cancel()
		end()
		if got := x.Header().Get("Connection"); got != want {
			t.Errorf("HTTP/%d: connection is %q", major, got)
		}
		x.Header().Del("Connection")
		x.interruptible(t.Context())()
		if got := x.Header().Get("Connection"); got != "" {
			t.Errorf("HTTP/%d: nothing happened, and connection is %q", major, got)
		}
	}
}

func TestAPathIsReadAsLiterallyAsTheMethodAllows(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct {
		verb, path, body, procedure, id string
	}{
		{"PUT", "/v1/users/me/password", `{"currentPassword":"a","newPassword":"b"}`, "ChangeMyPassword", ""},
		{"POST", "/v1/users/me/password", `{"password":"p"}`, "SetUserPassword", "me"},
		{"GET", "/v1/users/me", "", "GetMyUser", ""},
		{"GET", "/v1/orgs/_setup", "", "GetOrganization", "_setup"},
		{"GET", "/v1/idps/jwt", "", "GetIdentityProvider", "jwt"},
	} {
		if o := l.rest(t, l.h1, tt.verb, tt.path, tt.body, bearerOf("admin")); o.http != 200 ||
			!strings.HasSuffix(l.fake.info.Procedure, "/"+tt.procedure) {
			t.Errorf("%s %s: %d from %s", tt.verb, tt.path, o.http, l.fake.info.Procedure)
			continue
		}
		var id string
		switch r := l.fake.req.(type) {
		case *signetv1.SetUserPasswordRequest:
			id = r.GetUserId()
		case *signetv1.GetOrganizationRequest:
			id = r.GetOrgId()
		case *signetv1.GetIdentityProviderRequest:
			id = r.GetIdpId()
		}
		if id != tt.id {
			t.Errorf("%s %s is about %q", tt.verb, tt.path, id)
		}
	}
}

// The operation gets an identifier that storage can be asked for, and that nothing has.
func TestAMalformedIdentifierIsAnUnknownOne(t *testing.T) {
	l := newLab(t)
	for path, want := range map[string]string{"/v1/users/a%00b": "a\ufffdb", "/v1/users/%ff%fe": "\ufffd",
		"/v1/users/%00": "\ufffd", "/v1/users/%ed%a0%80x": "\ufffdx"} {
		o := l.rest(t, l.h1, "GET", path, "", bearerOf("owner"))
		if got, _ := l.fake.req.(*signetv1.GetUserRequest); o.http != 200 || got.GetUserId() != want {
			t.Errorf("%s: %d, the operation sees %q", path, o.http, got.GetUserId())
		}
		l.fake.req = nil
	}
	for path, status := range map[string]map[string]int{
		"/v1/users/%00": {"nobody": 403, "stranger": 401}, "/v1/users/%ff": {"nobody": 403, "stranger": 401},
		"/v1/orgs/%00": {"owner": 403},
	} {
		for token, want := range status {
			if o := l.rest(t, l.h1, "GET", path, "", bearerOf(token)); o.http != want {
				t.Errorf("%s by %s: %d", path, token, o.http)
			}
		}
	}
	seen := func() string {
		switch r := l.fake.req.(type) {
		case *signetv1.GetUserRequest:
			return r.GetUserId()
		case *signetv1.GetOrganizationRequest:
			return r.GetOrgId()
		case *signetv1.EndSessionRequest:
			return r.GetSessionId()
		case *signetv1.UpdateJWTIdentityProviderRequest:
			return r.GetIdpId()
		}
		return ""
	}
	const id = "a\x00b"
	for _, a := range []ask{
		{"UserService/GetUser", "GET", "/v1/users/a%00b", &signetv1.GetUserRequest{UserId: id}, nil},
		{"OrganizationService/GetOrganization", "GET", "/v1/orgs/a%00b",
			&signetv1.GetOrganizationRequest{OrgId: id}, nil},
		{"SessionService/EndSession", "DELETE", "/v1/sessions/a%00b", &signetv1.EndSessionRequest{SessionId: id}, nil},
	} {
		t.Run(a.procedure, func(t *testing.T) {
			l.everywhere(t, a.as("admin"), func(t *testing.T, o outcome) {
				if got := seen(); o.code != 0 || got != "a\ufffdb" {
					t.Errorf("%d %s, the operation sees %q", o.code, o.message, got)
				}
				l.fake.req = nil
			})
		})
	}
	// Beside it, what is text stays a mistake.
	raw, _ := proto.Marshal(&signetv1.UpdateJWTIdentityProviderRequest{IdpId: id, JwtEndpoint: "e\x00", Issuer: "i",
		KeysEndpoint: "k"})
	o := l.frame(t, l.h2, "application/grpc", "IdentityProviderService/UpdateJWTIdentityProvider", frameOf(0, raw),
		bearerOf("owner"))
	if len(o.violations) != 1 || o.violations["jwtEndpoint"] != strict.ProblemNUL {
		t.Errorf("got %d %q", o.code, o.violations)
	}
}

func TestTheDocumentedErrorIsWhatIsSent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/api/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(example)); err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	o := l.rest(t, l.h1, "PUT", "/v1/users/me/profile", `{"lastName":"b","displayName":"c"}`,
		bearerOf("owner", "x-request-id", "KQ5XEMLBJ5UGC4DQPFWG6ZLEMI"))
	if got := strings.TrimSpace(string(o.body)); got != want.String() {
		t.Errorf("sent       %s\ndocumented %s", got, want.String())
	}
}
