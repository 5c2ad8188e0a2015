package program

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func newRequest(t *testing.T, method, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer sends a request and reads the whole answer.
func answer(t *testing.T, c *http.Client, r *http.Request) *http.Response {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

// slow is a request whose handler runs and waits for the rest of its body.
type slow struct {
	body   *io.PipeWriter
	status chan int // 0: no answer
}

// hold sends a request as far as its handler: the server asks for the body only when somebody reads it.
func hold(t *testing.T, c *client, name string) slow {
	t.Helper()
	reader, writer := io.Pipe()
	running := make(chan struct{})
	ctx := httptrace.WithClientTrace(context.Background(),
		&httptrace.ClientTrace{Got100Continue: func() { close(running) }})
	r, err := http.NewRequestWithContext(ctx, "POST", c.base+"/v1/orgs/_setup", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	s := slow{body: writer, status: make(chan int, 1)}
	transport := &http.Transport{ExpectContinueTimeout: patience}
	go func() {
		defer transport.CloseIdleConnections()
		resp, err := transport.RoundTrip(r)
		if err != nil {
			s.status <- 0
			return
		}
		resp.Body.Close()
		s.status <- resp.StatusCode
	}()
	select {
	case <-running:
	case status := <-s.status:
		t.Fatalf("%s: answered with %d before the body was sent", name, status)
	case <-time.After(patience):
		t.Fatalf("%s: nobody reads the body", name)
	}
	return s
}

func TestStopLetsRequestsFinish(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, "--metrics-listen", "localhost:0")
		c := newClient(t, p, s.admin(t).Token)
		// Idle connections of both kinds must not hold it up.
		c.want(t, 200, "GET", "/v1/users/me", nil)
		h2c := &http.Client{Transport: cleartext2()}
		answer(t, h2c, newRequest(t, "GET", p.url+"/healthz"))

		var running []slow
		for i := range 3 {
			running = append(running, hold(t, c, fmt.Sprint("request ", i)))
		}
		p.terminate(t)
		p.await(t, "stopping")
		refusesConnections(t, p.listen)
		for i, r := range running {
			body, err := json.Marshal(newOrg(fmt.Sprint("Late ", i), "a password")) // which takes a hash
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.body.Write(body); err != nil {
				t.Fatal(err)
			}
			r.body.Close()
		}
		for i, r := range running {
			if status := testkit.Receive(t, r.status, "a request that runs is answered"); status != 200 {
				t.Errorf("request %d ends with %d", i, status)
			}
		}
		if code := p.exit(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		refusesConnections(t, p.metrics)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	hold(t, newClient(t, p, s.admin(t).Token), "request")
	began := time.Now()
	p.terminate(t)
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("it took %v, and should have waited for 15 s", took)
	}
}

func TestASecondSignalEndsItAtOnce(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	hold(t, newClient(t, p, s.admin(t).Token), "request")
	p.terminate(t)
	p.await(t, "stopping")
	p.terminate(t)
	if code := p.exit(t); code == 0 { // as it would say after the usual stop
		t.Error("it says that all went well")
	}
}

// cleartext2 speaks HTTP/2 without TLS.
func cleartext2() *http.Transport {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return transport
}

// selfSigned makes a certificate for localhost.
func selfSigned(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert = writeFile(t, filepath.Join(dir, "cert.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
	key = writeFile(t, filepath.Join(dir, "key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), 0o600)
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return cert, key, roots
}

// grpcUser asks over gRPC whose token it is.
func grpcUser(t *testing.T, transport *http.Transport, url, token string) string {
	t.Helper()
	defer transport.CloseIdleConnections()
	users := signetv1connect.NewUserServiceClient(&http.Client{Transport: transport}, url, connect.WithGRPC())
	ctx, call := connect.NewClientContext(t.Context())
	call.RequestHeader().Set("Authorization", "Bearer "+token)
	resp, err := users.GetMyUser(ctx, &signetv1.GetMyUserRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetUser().GetUserId()
}

func TestTLS(t *testing.T) {
	s := embedded(t)
	cert, key, roots := selfSigned(t)
	p := s.start(t, "--tls-cert", cert, "--tls-key", key)
	admin := s.admin(t)
	if !strings.HasPrefix(admin.URL, "https://localhost:") {
		t.Errorf("the URL is %s", admin.URL)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, two := range []bool{false, true} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: version},
				ForceAttemptHTTP2: two}
			if !two {
				transport.Protocols = new(http.Protocols)
				transport.Protocols.SetHTTP1(true)
			}
			resp := answer(t, &http.Client{Transport: transport}, newRequest(t, "GET", p.url+"/readyz"))
			transport.CloseIdleConnections()
			if resp.StatusCode != 200 || resp.TLS.Version != version || (resp.ProtoMajor == 2) != two {
				t.Errorf("TLS %x, HTTP/2 %v: status %d, TLS %x, %s", version, two, resp.StatusCode,
					resp.TLS.Version, resp.Proto)
			}
		}
	}
	if id := grpcUser(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}, p.url,
		admin.Token); id != admin.ServiceUserID {
		t.Errorf("over gRPC the token is of %s", id)
	}
	// An old client is refused, one that does not speak TLS is told so.
	conn, err := tls.Dial("tcp", p.listen,
		&tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10,
			MaxVersion: tls.VersionTLS11})
	if err == nil {
		conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
	resp := answer(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		newRequest(t, "GET", "http://"+p.listen+"/healthz"))
	if resp.StatusCode != 400 {
		t.Errorf("cleartext on the TLS port gets %d", resp.StatusCode)
	}
}

func TestCleartext(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	admin := s.admin(t)
	resp := answer(t, newClient(t, p, "").http, newRequest(t, "GET", p.url+"/readyz"))
	if resp.StatusCode != 200 || resp.ProtoMajor != 1 {
		t.Errorf("%d %s", resp.StatusCode, resp.Proto)
	}
	transport := cleartext2()
	defer transport.CloseIdleConnections()
	resp = answer(t, &http.Client{Transport: transport}, newRequest(t, "GET", p.url+"/readyz"))
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%d %s", resp.StatusCode, resp.Proto)
	}
	if id := grpcUser(t, cleartext2(), p.url, admin.Token); id != admin.ServiceUserID {
		t.Errorf("over gRPC the token is of %s", id)
	}
}

func TestStandardPaths(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "--metrics-listen", "localhost:0")
	c := newClient(t, p, "")
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := c.want(t, 200, "GET", path, nil); got["status"] != "ok" {
			t.Errorf("%s answers %v", path, got)
		}
	}
	document := c.want(t, 200, "GET", "/openapi.json", nil)
	if paths := at[object](t, document, "paths"); paths["/v1/users/me/profile"] == nil {
		t.Errorf("the description of the API has the paths %v", paths)
	}
	if got := c.want(t, 404, "GET", "/metrics", nil); got["code"] != 5.0 {
		t.Errorf("the metrics on the API's port: %v", got)
	}
	read := func(path string) (int, string) {
		resp := answer(t, c.http, newRequest(t, "GET", "http://"+p.metrics+path))
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	c.want(t, 401, "GET", "/v1/users/me", nil)
	status, text := read("/metrics")
	for _, want := range []string{"signet_requests_total{", "go_goroutines", "process_resident_memory_bytes",
		`code="UNAUTHENTICATED"`} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("the metrics (%d) have no %s:\n%.2000s", status, want, text)
		}
	}
	if status, _ := read("/v1/users/me"); status != 404 {
		t.Errorf("the API on the port for metrics answers %d", status)
	}
	p.stop(t)
	if plain := s.start(t); plain.metrics != "" {
		t.Errorf("there are metrics on %s that nobody asked for", plain.metrics)
	}
}

// TestDatabaseAway: a server whose PostgreSQL is gone says so and lives on, and needs no restart when it is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.New(t, testdb.Postgres))
	p := s.start(t)
	admin := s.admin(t)
	c := newClient(t, p, "")
	c.token = c.signIn(t, admin.LoginName, admin.Password)
	c.want(t, 200, "PUT", "/v1/users/me/profile", profile("before"))

	name := s.URL[strings.LastIndex(s.URL, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	server := &site{Database: testdb.Database{Engine: testdb.Postgres, URL: os.Getenv("SIGNET_TEST_POSTGRES")}}
	db := server.open(t)
	defer db.Close()
	allow := func(yes bool) {
		t.Helper()
		if _, err := db.Exec(fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %v", name, yes)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
			name); err != nil {
			t.Fatal(err)
		}
	}
	allow(false)
	// readiness does not wait for what it has not found out in time
	testkit.Await(t, "the server has noticed", func() bool {
		status, _, err := c.do(t.Context(), "GET", "/readyz", nil)
		testkit.Must(t, err)
		return status == 503
	})
	for _, call := range []struct {
		method, path string
		body         object
	}{{"GET", "/readyz", nil}, {"GET", "/v1/users/me", nil}, {"PUT", "/v1/users/me/profile", profile("away")}} {
		got := c.want(t, 503, call.method, call.path, call.body)
		if got["code"] != 14.0 || !strings.Contains(fmt.Sprint(got["details"]), "google.rpc.ErrorInfo") {
			t.Errorf("%s answers %v", call.path, got)
		}
		for _, secret := range []string{name, "127.0.0.1", "SQLSTATE", "pgx"} {
			if strings.Contains(fmt.Sprint(got), secret) {
				t.Errorf("%s gives %q away: %v", call.path, secret, got)
			}
		}
	}
	c.want(t, 200, "GET", "/healthz", nil)
	allow(true)
	for end := time.Now().Add(patience); ; { // connections that die meanwhile are noticed when they are used
		status, _, err := c.do(t.Context(), "GET", "/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it never gets ready again")
		}
	}
	c.want(t, 200, "PUT", "/v1/users/me/profile", profile("after"))
	if got := at[string](t, c.want(t, 200, "GET", "/v1/users/me", nil), "user", "human", "profile",
		"nickName"); got != "after" {
		t.Errorf("the name is %q", got)
	}
}

func TestLimits(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	c := newClient(t, p, s.admin(t).Token)
	t.Run("large headers", func(t *testing.T) {
		for size, want := range map[int]int{16 << 10: 200, 64 << 10: 431} {
			r := newRequest(t, "GET", p.url+"/healthz")
			r.Header.Set("X-Filler", strings.Repeat("x", size))
			if got := answer(t, c.http, r).StatusCode; got != want {
				t.Errorf("%d bytes: status %d, want %d", size, got, want)
			}
		}
	})
	t.Run("large body", func(t *testing.T) {
		c.want(t, 413, "POST", "/v1/idps/jwt", newProvider(strings.Repeat("x", 1<<20)))
	})
	t.Run("many streams on one connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", p.listen)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(conn, conn)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("the first frame is %v", frame)
		}
		streams, _ := settings.Value(http2.SettingMaxConcurrentStreams)
		headers, _ := settings.Value(http2.SettingMaxHeaderListSize)
		if streams == 0 || streams > 250 || headers == 0 || headers > 40<<10 {
			t.Errorf("a connection may have %d streams with headers of %d bytes", streams, headers)
		}
		if err := framer.WriteSettingsAck(); err != nil {
			t.Fatal(err)
		}
		// Requests that never end, one more than there may be.
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for i := range streams + 1 {
			block.Reset()
			for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", p.listen},
				{":path", "/v1/sessions"}, {"content-type", "application/json"}} {
				if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block.Bytes(),
				EndHeaders: true}); err != nil {
				t.Fatal(err)
			}
		}
		for refused := false; !refused; {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatalf("the connection ends (%v) before a stream is refused", err)
			}
			switch f := frame.(type) {
			case *http2.RSTStreamFrame:
				refused = f.StreamID == 2*streams+1
			case *http2.GoAwayFrame:
				refused = true
			}
		}
	})
	c.want(t, 200, "GET", "/v1/users/me", nil)
}

func TestStopEndsStreams(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		var streams []*bufio.Reader
		for _, client := range []*http.Client{{Transport: &http.Transport{}}, {Transport: cleartext2()}} {
			req := newRequest(t, "GET", p.url+"/v1/events/_stream")
			req.Header.Set("authorization", "Bearer "+s.admin(t).Token)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
			lines := bufio.NewReader(resp.Body)
			if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "retry:") {
				t.Fatalf("%q, %v", line, err)
			}
			streams = append(streams, lines)
		}
		began := time.Now()
		p.terminate(t)
		for _, lines := range streams {
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "\n\nevent: error\ndata: ") ||
				!strings.Contains(string(rest), "STOPPING") {
				t.Errorf("%v\n%s", err, rest)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if code := p.exit(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}
