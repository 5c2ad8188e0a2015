package program

import (
	"bufio"
	"bytes"
	encoding "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/test/costtest"
)

// badSeed and the number of a request make the request: what fails can be sent again.
const badSeed = 20261117

// TestBadRequestsAreAnsweredAndLeaveNothingBehind sends what nobody should send to every entry point: operations over
// REST, gRPC and gRPC-Web, OAuth, the pages, the console, and bytes that are no HTTP at all. None may fail inside the
// server, and the memory that they took is free in the end. SIGNET_BAD_REQUESTS says how many; `make overload` sends
// 100,000.
func TestBadRequestsAreAnsweredAndLeaveNothingBehind(t *testing.T) {
	n := 1000
	if text := os.Getenv("SIGNET_BAD_REQUESTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := embedded(t)
	x := newTarget(t, s)
	g := newBadRequests(t, x)
	g.send(t, 0, n/10) // what is made once, such as connections and templates, is there from here on
	before := statusKiB(t, x.p, "RssAnon")
	began := time.Now()
	g.send(t, n/10, n)
	took, most := time.Since(began), statusKiB(t, x.p, "VmHWM")
	// The collector gives memory back when it has time to; what is above that is kept by something.
	after, end := statusKiB(t, x.p, "RssAnon"), time.Now().Add(patience)
	for after > before+16<<10 && time.Now().Before(end) {
		g.send(t, n, n+10)
		after = statusKiB(t, x.p, "RssAnon")
	}
	t.Logf("%d requests in %.1f s; private memory %.1f MiB before, %.1f MiB after, resident at most %.1f MiB; answers %v", n, took.Seconds(), float64(before)/1024, float64(after)/1024, float64(most)/1024, g.answers)
	if after > before+16<<10 {
		t.Errorf("%d KiB are not given back", after-before)
	}
	for text := range strings.Lines(x.p.stdout.String() + x.p.stderr.String()) {
		if strings.Contains(text, `"level":"ERROR"`) || strings.Contains(text, "panic") ||
			strings.Contains(text, "goroutine ") {
			t.Errorf("the log says %s", text)
		}
	}
	if status := x.send(&probe{method: "GET", path: "/v1/users/me", header: x.bearer()}); status != 200 {
		t.Errorf("the session did not last: %d", status)
	}
}

type badRequests struct {
	x       *target
	entries []entry
	one     *http.Client // HTTP/1.1
	two     *http.Client // cleartext HTTP/2

	mu      sync.Mutex
	answers map[int]int // by status
}

// entry is something that can be asked for.
type entry struct{ method, path, kind string }

func newBadRequests(t *testing.T, x *target) *badRequests {
	t.Helper()
	g := &badRequests{x: x, one: x.client, answers: map[int]int{}}
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(two.CloseIdleConnections)
	g.two = &http.Client{Transport: two, Timeout: patience, CheckRedirect: x.client.CheckRedirect}
	for _, o := range costtest.Operations() {
		if o.Method.IsStreamingServer() {
			continue // one that is fine would not end
		}
		method, path := restOf(proto.GetExtension(o.Method.Options(), annotations.E_Http).(*annotations.HttpRule))
		g.entries = append(g.entries, entry{method, path, "rest"},
			entry{"POST", fmt.Sprintf("/%s/%s", o.Method.Parent().FullName(), o.Method.Name()), "grpc"})
	}
	for range 5 { // there are fewer of them
		for _, path := range sitePathsOnce(t) {
			g.entries = append(g.entries, entry{"GET", path, "page"}, entry{"POST", path, "page"})
		}
		for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/", "/v1/", "/v1/nothing",
			"/console/token", "/grpc.health.v1.Health/Check",
			"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/signet.v1.UserService/Nothing"} {
			g.entries = append(g.entries, entry{"GET", path, "page"}, entry{"POST", path, "grpc"})
		}
	}
	return g
}

var sitePathsOnce = func() func(t *testing.T) []string {
	var once sync.Once
	var paths []string
	return func(t *testing.T) []string { once.Do(func() { paths = sitePaths(t) }); return paths }
}()

// send sends the requests with these numbers, some at a time.
func (g *badRequests) send(t *testing.T, from, to int) {
	t.Helper()
	next := make(chan int)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range next {
				g.try(t, i)
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	all.Wait()
}

// try makes the request with a number, sends it and judges the answer.
func (g *badRequests) try(t *testing.T, i int) {
	r := &maker{rand.New(rand.NewPCG(badSeed, uint64(i))), g.x}
	if r.IntN(10) == 0 {
		g.raw(t, i, r)
		return
	}
	e := g.entries[r.IntN(len(g.entries))]
	method, path := e.method, r.path(e.path)
	if r.IntN(6) == 0 {
		method = pick(r, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X")
	}
	header := r.header(e.kind)
	var body []byte
	if method != "GET" && method != "HEAD" || r.IntN(10) == 0 {
		body = r.body(e.kind)
	}
	request := httptest.NewRequest("GET", "/", nil).WithContext(t.Context())
	request.RequestURI, request.Method, request.Host = "", method, ""
	request.URL.Scheme, request.URL.Host, request.URL.Opaque = "http", strings.TrimPrefix(g.x.p.url, "http://"), ""
	request.URL.Path, request.URL.RawPath, request.URL.RawQuery = decodedPath(path), path, r.query()
	request.Header = header
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
	} else if r.IntN(8) == 0 {
		request.ContentLength = -1 // in chunks
	}
	client := g.one
	if e.kind == "grpc" && r.IntN(2) == 0 {
		client = g.two
	}
	resp, err := client.Do(request)
	if err != nil {
		return // not even the client sends it, or the server has had enough
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	g.judge(t, i, fmt.Sprintf("%s %s %v", method, path, header), resp.StatusCode, text)
	status := resp.Trailer.Get("Grpc-Status")
	if _, rest, web := strings.Cut(strings.ToLower(string(text)), "grpc-status: "); web {
		status, _, _ = strings.Cut(rest, "\r\n")
	}
	switch status {
	case "2", "13", "14", "15":
		t.Errorf("request %d of seed %d, %s %s: gRPC status %s", i, badSeed, method, path, status)
	}
}

func (g *badRequests) judge(t *testing.T, i int, what string, status int, text []byte) {
	g.mu.Lock()
	g.answers[status]++
	g.mu.Unlock()
	// net/http itself answers what is not HTTP 1.1 and encodings of transfer that nobody knows with these.
	if status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported {
		t.Errorf("request %d of seed %d: %s: %d %.300s", i, badSeed, what, status, text)
	}
}

// raw sends bytes that are not quite HTTP.
func (g *badRequests) raw(t *testing.T, i int, r *maker) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.x.p.url, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	e := g.entries[r.IntN(len(g.entries))]
	var text string
	switch r.IntN(6) {
	case 0:
		text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + string(r.bytes(200))
	case 1:
		text = string(r.bytes(400))
	case 2:
		text = e.method + " " + e.path + " HTTP/" + pick(r, "1.1", "1.0", "2.0", "9.9", "x") + "\r\nHost: " + pick(r,
			"localhost", "", "a b", "\x00") + "\r\n" + r.text(20) + ": " + r.text(50) + "\r\n\r\n"
	case 3:
		text = e.method + " " + e.path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + pick(r, "-1", "5",
			"99999999999999999999", "0x5", "5, 6") + "\r\nTransfer-Encoding: " + pick(r, "chunked", "gzip",
			"chunked, chunked", "") + "\r\n\r\n5\r\nhello\r\nzz\r\n"
	case 4:
		text = r.text(10) + " " + r.text(30) + "\r\n\r\n"
	case 5:
		text = e.method + " http://[::1" + r.text(5) + e.path + " HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a",
			r.IntN(40<<10)) + "\r\n\r\n"
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	if resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil); err == nil {
		g.judge(t, i, strconv.Quote(text[:min(len(text), 200)]), resp.StatusCode, answer)
	}
}

// maker makes parts of requests.
type maker struct {
	*rand.Rand
	x *target
}

func pick[T any](r *maker, of ...T) T { return of[r.IntN(len(of))] }

func (r *maker) bytes(most int) []byte {
	out := make([]byte, r.IntN(most+1))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// text is one that a header or an address can have.
func (r *maker) text(most int) string {
	switch r.IntN(5) {
	case 0:
		return sendable(string(r.bytes(most)))
	case 1:
		return pick(r, "../../etc/passwd", "%00", "%2e%2e%2f", "'; DROP TABLE users;--", "<script>", "null", "-1",
			"1e999", "\u202e", "usr_1", "org_1", "0", "true", "{}", "${jndi}", "*")
	case 2:
		return strings.Repeat(pick(r, "a", "é", "漢", "%", "/", ".", "@", "🦄"), r.IntN(most+1))
	}
	out := make([]byte, r.IntN(most+1))
	for i := range out {
		out[i] = "abcdefghijklmnopqrstuvwxyz0123456789-_.~"[r.IntN(40)]
	}
	return string(out)
}

func (r *maker) path(path string) string {
	path = parameter.ReplaceAllStringFunc(strings.ReplaceAll(path, "*", "{any}"),
		func(string) string { return escaped(r.text(30)) })
	switch r.IntN(12) {
	case 0:
		return path + "/" + escaped(r.text(20))
	case 1:
		return "/" + path
	case 2:
		return path + pick(r, "/", "//", "/..", "/.", "%2f", "%00", ";a=b", "%")
	case 3:
		return strings.ToUpper(path)
	}
	return path
}

func (r *maker) query() string {
	if r.IntN(3) > 0 {
		return ""
	}
	return pick(r, "a=%zz", "pageSize=-1", "pageSize=99999999999", "pageToken="+escaped(r.text(60)),
		"request="+escaped(r.text(30)), "a=b&a=b&&;", "query="+escaped(r.text(40)),
		"client_id="+r.x.clientID+"&redirect_uri="+escaped(r.text(40)), escaped(r.text(200)))
}

func (r *maker) header(kind string) http.Header {
	h := http.Header{}
	switch r.IntN(4) {
	case 0:
		h = r.x.bearer()
	case 1:
		h["Authorization"] = []string{pick(r, "Bearer ", "bearer x", "Basic "+r.text(30), "Basic Og==",
			"Bearer "+r.text(100), "Bearer "+r.x.token+"x", r.text(30))}
	}
	switch kind {
	case "grpc":
		h["Content-Type"] = []string{pick(r, "application/grpc", "application/grpc-web+proto",
			"application/grpc-web-text", "application/grpc+json", "application/json", r.text(20))}
		h["Te"] = []string{"trailers"}
	case "rest":
		h["Content-Type"] = []string{pick(r, "application/json", "application/json", "application/json; charset=latin1",
			"text/plain", "multipart/form-data", r.text(20))}
	default:
		h["Content-Type"] = []string{pick(r, "application/x-www-form-urlencoded", "application/x-www-form-urlencoded",
			"application/json", "multipart/form-data; boundary=x", r.text(20))}
		h["Origin"] = []string{r.x.p.url}
	}
	for range r.IntN(4) {
		h[pick(r, "If-Match", "X-Service-Orgid", "Idempotency-Key", "Grpc-Timeout", "Grpc-Encoding", "Content-Encoding",
			"X-Request-Id", "Accept", "Accept-Language", "Cookie", "X-Forwarded-For", "Range", "If-None-Match",
			"If-Modified-Since", "Last-Event-Id", "Sec-Fetch-Site", "Expect", "Origin", "Host",
			"Access-Control-Request-Method", "User-Agent", "Upgrade", "X-Http-Method-Override")] =
			[]string{pick(r, "gzip", "1n", "99999999H", "*", "W/\"1\"", "\"7\"", "__Host-signet-browser="+r.text(26),
				"bytes=0-,5-", "100-continue", "websocket", "text/html", r.text(60))}
	}
	return h
}

func (r *maker) body(kind string) []byte {
	switch r.IntN(12) {
	case 0:
		return r.bytes(300)
	case 1:
		return []byte(strings.Repeat(pick(r, "[", `{"a":`, `{"profile":`, "(", "\x0a"), r.IntN(5000)))
	}
	switch kind {
	case "grpc":
		message := r.bytes(200)
		length := uint32(len(message))
		if r.IntN(5) == 0 {
			length = r.Uint32()
		}
		return append(encoding.BigEndian.AppendUint32([]byte{pick[byte](r, 0, 0, 0, 1, 2, 128, 255)},
			length), message...)
	case "rest":
		return []byte(r.json(3))
	}
	var out []string
	for range r.IntN(8) {
		out = append(out, pick(r, "client_id", "client_secret", "grant_type", "code", "redirect_uri", "refresh_token",
			"token", "loginName", "password", "step", "code_verifier", "assertion", "scope", "logout_token", "state",
			"csrf", r.text(10))+
			"="+pick(r, r.x.clientID, "refresh_token", "authorization_code", "client_credentials", "%zz",
			escaped(r.text(80))))
	}
	return []byte(strings.Join(out, "&"))
}

func (r *maker) json(depth int) string {
	switch n := r.IntN(9); {
	case n < 3 && depth > 0:
		var parts []string
		for range r.IntN(6) {
			parts = append(parts,
				strconv.Quote(pick(r, "userName", "profile", "email", "password", "org", "name", "roles", "pageSize",
					"metadata", "policy", "users", "loginName", "userId", "ids", "updateMask", r.text(8)))+":"+
					r.json(depth-1))
		}
		return "{" + strings.Join(parts, ",") + pick(r, "}", "}", "}", "}", "", ",}")
	case n == 3 && depth > 0:
		return "[" + r.json(depth-1) + "," + r.json(depth-1) + "]"
	case n == 4:
		return pick(r, "null", "true", "1e400", "-0", "12345678901234567890123", "0.1", "NaN", "\"\\ud800\"",
			"\"\\u0000\"", "'a'", "//")
	}
	return strconv.Quote(r.text(40))
}

func escaped(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// decodedPath goes with a path in its encoded form, if that is one at all.
func decodedPath(path string) string {
	r, err := http.NewRequest("GET", "http://x"+path, nil)
	if err != nil {
		return path
	}
	return r.URL.Path
}
