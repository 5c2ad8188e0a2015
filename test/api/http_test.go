package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/test/testkit"
)

// httpCases are about HTTP itself: methods, content types, paths.
func httpCases(t *testing.T, w *World) {
	s := w.scene(t)
	profileBody := `{"firstName":"a","lastName":"b","displayName":"c"}`
	mediaType := refused(codes.Unimplemented, "UNSUPPORTED_MEDIA_TYPE")
	methodNotAllowed := refused(codes.Unimplemented, "METHOD_NOT_ALLOWED")
	unknownPath := refused(codes.NotFound, "UNKNOWN_PATH")
	for _, x := range []struct {
		name, method, path string
		as                 *Actor
		header             Header
		body               string
		want               Want
		status             int
		allow              string // methods that must be listed
	}{
		{"unknown path", "GET", "/v1/nothing", s.user, nil, "", unknownPath, 404, ""},
		{"unknown path without credential", "GET", "/v1/nothing", nil, nil, "", unknownPath, 404, ""},
		{"nothing behind the version", "GET", "/v1", s.user, nil, "", unknownPath, 404, ""},
		{"a version there is not", "GET", "/v2/users/me", s.user, nil, "", unknownPath, 404, ""},
		{"wrong method", "PATCH", "/v1/users/me/profile", s.user, nil, profileBody, methodNotAllowed, 405, "PUT"},
		{"wrong method without credential", "DELETE", "/v1/orgs", nil, nil, "", methodNotAllowed, 405, "GET"},
		{"two methods allowed", "POST", "/v1/idps/" + s.idp, s.owner, nil, "{}", methodNotAllowed, 405, "GET, PUT"},
		{"PATCH at a set-up", "PATCH", "/v1/orgs/_setup", w.root, nil, "{}", methodNotAllowed, 405, "POST"},
		{"my password is no other method's", "DELETE", "/v1/users/me/password", s.owner, nil, "", methodNotAllowed,
			405, "POST, PUT"},
		{"a user called me without credential", "POST", "/v1/users/me/password", nil, nil, `{"password":"x"}`,
			unauthenticated, 401, ""},
		{"a user called me without permission", "POST", "/v1/users/me/password", s.user, nil, `{"password":"x"}`,
			permissionDenied, 403, ""},
		{"a user called me", "POST", "/v1/users/me/password", s.owner, nil, `{"password":"x"}`, noUser, 404, ""},
		{"an organization called _setup", "GET", "/v1/orgs/_setup", w.root, nil, "", noOrg, 404, ""},
		{"an identifier that is not UTF-8 without credential", "GET", "/v1/users/%ff", nil, nil, "",
			unauthenticated, 401, ""},
		{"an identifier that is not UTF-8 without permission", "GET", "/v1/users/%ff", s.user, nil, "",
			permissionDenied, 403, ""},
		{"a user's identifier that is not UTF-8", "GET", "/v1/users/%ff", s.owner, nil, "", noUser, 404, ""},
		{"a user's identifier with NUL", "GET", "/v1/users/%00", s.owner, nil, "", noUser, 404, ""},
		{"an organization's identifier that is not UTF-8", "GET", "/v1/orgs/%c0%80", w.root, nil, "", noOrg, 404, ""},
		{"a provider's identifier that is not UTF-8", "PUT", "/v1/idps/" + s.idp + "%fe", s.owner, nil, `{"name":"x"}`,
			noIDP, 404, ""},
		{"a session's identifier that is not UTF-8", "DELETE", "/v1/sessions/%ed%a0%80", s.user, nil, "",
			noSession, 404, ""},
		{"no content type", "PUT", "/v1/users/me/profile", s.user, header("content-type", ""), profileBody,
			mediaType, 415, ""},
		{"plain text", "PUT", "/v1/users/me/profile", s.user, header("content-type", "text/plain"), profileBody,
			mediaType, 415, ""},
		{"a form", "POST", "/v1/sessions", nil, header("content-type", "application/x-www-form-urlencoded"),
			"loginName=a&password=b", mediaType, 415, ""},
		{"another charset", "PUT", "/v1/users/me/profile", s.user,
			header("content-type", "application/json; charset=latin1"), profileBody, mediaType, 415, ""},
		{"gRPC at a REST path", "PUT", "/v1/users/me/profile", s.user, header("content-type", "application/grpc"),
			profileBody, mediaType, 415, ""},
		{"two content types", "PUT", "/v1/users/me/profile", s.user,
			header("content-type", "application/json", "content-type", "text/plain"), profileBody, mediaType, 415, ""},
		{"wrong content type without credential", "PUT", "/v1/users/me/profile", nil,
			header("content-type", "text/plain"), profileBody, unauthenticated, 401, ""},
		{"UTF-8 said", "PUT", "/v1/users/me/profile", s.user, header("content-type", "application/json; charset=UTF-8"),
			profileBody, ok, 200, ""},
		{"compressed", "PUT", "/v1/users/me/profile", s.user, header("content-encoding", "gzip"), profileBody,
			refused(codes.Unimplemented, "UNSUPPORTED_ENCODING"), 415, ""},
		{"JSON at an RPC path", "POST", "/signet.v1.UserService/GetMyUser", s.user, nil, "{}", mediaType, 415, ""},
		{"Connect at an RPC path", "POST", "/signet.v1.UserService/GetMyUser", s.user,
			header("connect-protocol-version", "1"), "{}", mediaType, 415, ""},
		{"proto at an RPC path", "POST", "/signet.v1.UserService/GetMyUser", s.user,
			header("content-type", "application/proto"), "x", mediaType, 415, ""},
		{"GET at an RPC path", "GET", "/signet.v1.UserService/GetMyUser?message={}", s.user, nil, "",
			methodNotAllowed, 405, "POST"},
		{"a query where there is none", "GET", "/v1/users/me?verbose=1", s.user, nil, "", invalid("verbose"), 400, ""},
		{"a query beside a body", "PUT", "/v1/users/me/profile?firstName=x", s.user, nil, profileBody,
			invalid("firstName"), 400, ""},
		{"a body where there is none", "DELETE", "/v1/sessions/ses_x", s.user, nil, `{"sessionId":"x"}`,
			invalid(""), 400, ""},
		{"a method in the header does not count", "GET", "/v1/idps/" + s.idp, s.owner,
			header("x-http-method-override", "PUT"), "", ok, 200, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := w.raw(t, x.method, x.path, x.as, x.header, x.body)
			a.mustBe(t, x.want)
			same(t, "status", a.http, x.status)
			if x.allow != "" {
				allowed := strings.Split(a.header.Get("Allow"), ", ")
				for m := range strings.SplitSeq(x.allow, ", ") {
					if !slices.Contains(allowed, m) || slices.Contains(allowed, x.method) {
						t.Errorf("allow: %s", a.header.Get("Allow"))
					}
				}
			}
		})
	}
	// A deprecated operation says so however it is refused.
	for _, op := range operations {
		if !op.deprecated() {
			continue
		}
		for name, a := range map[string]*Answer{
			"no credential": w.raw(t, op.verb, strings.ReplaceAll(op.path, "{idp_id}", s.idp), nil, nil, "{}"),
			"wrong content type": w.raw(t, op.verb, strings.ReplaceAll(op.path, "{idp_id}", s.idp), s.owner,
				header("content-type", "text/plain"), "{}"),
			"not JSON": w.raw(t, op.verb, strings.ReplaceAll(op.path, "{idp_id}", s.idp), s.owner, nil, "{"),
			"too large": w.raw(t, op.verb, strings.ReplaceAll(op.path, "{idp_id}", s.idp), s.owner, nil,
				strings.Repeat(" ", 1<<20+1)),
			"Connect": w.raw(t, "POST", "/"+op.procedure(), s.owner, nil, "{}"),
		} {
			if a.status == nil || !strings.HasPrefix(a.header.Get("Deprecation"), "@") {
				t.Errorf("%s, %s: deprecation %q", op.name(), name, a.header.Get("Deprecation"))
			}
		}
	}
	// JSON goes over HTTP/2 as well.
	h2 := &http.Transport{Protocols: new(http.Protocols)}
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	a, err := restWire{&http.Client{Transport: h2}, w.rest.base}.do(t.Context(), "GET", "/v1/users/me",
		header("authorization", "Bearer "+s.user.Token), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.mustBe(t, ok)

	head := w.raw(t, "HEAD", "/v1/users/me", s.user, nil, "")
	same(t, "HEAD", head.http, 200)
	same(t, "HEAD has a tag", head.header.Get("Etag") != "", true)
	same(t, "HEAD without credential", w.raw(t, "HEAD", "/v1/users/me", nil, nil, "").http, 401)
}

// oddPaths look for a way round the credential. A path is taken literally: whatever does not match is nothing.
func oddPaths(t *testing.T, w *World) {
	s := w.scene(t)
	for i, op := range operations {
		if op.rule.GetPublic() {
			continue
		}
		path, body, err := op.asREST(s.sample(op))
		if err != nil {
			t.Fatal(err)
		}
		path, query, asks := strings.Cut(path, "?") // what is odd is the path
		if asks {
			query = "?" + query
		}
		last := strings.LastIndexByte(path, '/')
		type odd struct {
			target string
			// may lead to an operation, which then wants a credential too: an escaped slash is part of an identifier
			found bool
		}
		for j, x := range []odd{
			{"/" + path, false}, {path + "/", false}, {path + "//", false}, {strings.ToUpper(path), false},
			{"/v1/" + path, false},
			{"/V1" + path[3:], false}, {path[:last] + "%2f" + path[last+1:], true},
			{path[:last] + "%2F" + path[last+1:], true},
			{"/v1%2f" + path[4:], false}, {"/." + path, false}, {"/x/.." + path, false}, {"/v1/x/.." + path[3:], false},
			{"/v1/sessions/../" + path[4:], false},
			{"/v1/%2e%2e/v1" + path[3:], false}, {"/v1\\" + path[4:], false}, {"/%76" + path[2:], false},
			{path + ";x=1", true}, {path + "%00", true}, {path + ".json", true},
			{path + "%20", true}, {"http://" + w.address + path, true}, {"http://elsewhere.example" + path, true},
			{"http://" + w.address + "/" + path, false},
			{"/" + op.procedure() + "/", false}, {"//" + op.procedure(), false},
			{"/" + strings.ToLower(op.procedure()), false},
		} {
			if (i+j)%3 != 0 {
				continue // paths are read in one place: each operation meets some of them
			}
			x.target += query
			status := w.rawTarget(t, op.verb, x.target, "", body)
			if status != 401 && status != 404 && status != 405 && (status != 400 || !strings.Contains(x.target, `\`)) {
				t.Errorf("%s %s without a credential: %d", op.verb, x.target, status)
			}
			if x.found && status == 401 {
				continue
			}
			if status == 401 && !x.found {
				t.Errorf("%s %s was taken for an operation", op.verb, x.target)
			}
			// With a credential it is no more there than without, and nobody is redirected.
			if status := w.rawTarget(t, op.verb, x.target, s.user.Token, body); status != 404 && status != 405 &&
				status != 400 {
				t.Errorf("%s %s: %d", op.verb, x.target, status)
			}
		}
	}
}

// rawTarget sends a request line that no client would, and gives the status.
func (w *World) rawTarget(t *testing.T, method, target, token string, body []byte) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", w.address, testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	w.requests.Add(1)
	var credential string
	if token != "" {
		credential = "Authorization: Bearer " + token + "\r\n"
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		method, target, w.address, credential, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	w.mu.Lock()
	w.answers.Write(answer)
	w.mu.Unlock()
	return resp.StatusCode
}

// requestSize: a mebibyte is the most, on every way in.
func requestSize(t *testing.T, w *World) {
	s := w.scene(t)
	const most = 1 << 20
	tooLarge := refused(codes.ResourceExhausted, "BODY_TOO_LARGE")
	body := `{"firstName":"a","lastName":"b","displayName":"c"}`
	w.raw(t, "PUT", "/v1/users/me/profile", s.user, nil, body+strings.Repeat(" ", most-len(body))).mustBe(t, ok)
	a := w.raw(t, "PUT", "/v1/users/me/profile", s.user, nil, body+strings.Repeat(" ", most-len(body)+1))
	a.mustBe(t, tooLarge)
	same(t, "status", a.http, 413)
	same(t, "without a credential nobody reads it",
		w.raw(t, "PUT", "/v1/users/me/profile", nil, nil, strings.Repeat(" ", most+1)).http, 401)

	// A body whose length nobody says is counted while it comes.
	req, err := http.NewRequestWithContext(t.Context(), "PUT", w.rest.base+"/v1/users/me/profile",
		io.LimitReader(spaces{}, most+100))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.user.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.rest.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	same(t, "chunked", resp.StatusCode, 413)

	fits := func(size int) proto.Message {
		req := &signetv1.UpdateMyProfileRequest{FirstName: strings.Repeat("x", size)}
		req.FirstName = req.FirstName[proto.Size(req)-size:]
		return req
	}
	for _, wire := range w.wires[1:] {
		c := &Client{w, wire}
		c.refused(t, tooLarge, s.user, fits(most+1))
		c.refused(t, invalid("firstName", "lastName", "displayName"), s.user, fits(most))
		c.refused(t, unauthenticated, nil, fits(most+1))
	}
	// What is small only while it is packed is too large as well.
	packed, err := w.grpc.invoke(t.Context(), operationNamed(t, "UpdateMyProfile"), fits(64*most),
		header("authorization", "Bearer "+s.user.Token), grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	packed.mustBe(t, tooLarge)
	// Headers have a limit too: the server's own answer, but an answer.
	same(t, "headers of 64 KiB", w.rawTarget(t, "GET", "/v1/users/me?x="+strings.Repeat("y", 64<<10), "", nil), 431)
}

// spaces never ends.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
