package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/transport/web"
)

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatalf("it is not compressed: %v", err)
	}
	r.Multistream(false) // browsers read one part only
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// exactly sends a request with exactly these headers.
func (l *lab) exactly(t *testing.T, method, path string, body []byte, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, l.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = bearerOf("owner", header...)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, content
}

func TestListsAreCompressedForWhoAcceptsIt(t *testing.T) {
	l := newLab(t)
	const long, short = "/v1/users?pageSize=100", "/v1/users?pageSize=1"
	_, plain := l.exactly(t, "GET", long, nil)
	for _, c := range []struct {
		path, accept string
		packed       bool
	}{
		{long, "", false}, {long, "gzip", true}, {long, "gzip, deflate, br, zstd", true}, {long, "gzip;q=0", false},
		{long, "br", false}, {short, "gzip", false},
	} {
		answer, body := l.exactly(t, "GET", c.path, nil, "accept-encoding", c.accept)
		coding := answer.Header.Get("Content-Encoding")
		if answer.StatusCode != 200 || (coding == "gzip") != c.packed || coding != "" && coding != "gzip" ||
			answer.Header.Get("Vary") != "Accept-Encoding" || answer.ContentLength != int64(len(body)) ||
			answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %v", c, answer.StatusCode, answer.Header)
		}
		if c.packed {
			if got := unpack(t, body); !bytes.Equal(got, plain) || len(body) > len(plain)/3 {
				t.Errorf("%v: %d bytes become %d, not %d", c, len(body), len(got), len(plain))
			}
		}
	}
	answer, body := l.exactly(t, "HEAD", long, nil, "accept-encoding", "gzip")
	if answer.Header.Get("Content-Encoding") != "gzip" || len(body) != 0 {
		t.Errorf("the head is %v", answer.Header)
	}
	// An object has an entity tag, and a change may answer with a secret.
	for _, path := range []string{"/v1/users/me", "/openapi.json", "/healthz"} {
		if answer, _ := l.exactly(t, "GET", path, nil, "accept-encoding", "gzip"); answer.Header.Get("Content-Encoding") != "" ||
			answer.Header.Get("Vary") != "" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
	l.fake.err = errors.New(strings.Repeat("long ", 1000))
	if answer, body := l.exactly(t, "GET", long, nil, "accept-encoding", "gzip"); answer.StatusCode != 500 ||
		answer.Header.Get("Content-Encoding") != "" || body[0] != '{' {
		t.Errorf("a failure: %d %v %q", answer.StatusCode, answer.Header, body)
	}
}

func TestListsOverGRPCAreCompressedForWhoAcceptsIt(t *testing.T) {
	l := newLab(t)
	const procedure, inBrowsers = "/signet.v1.UserService/ListUsers", "application/grpc-web+proto"
	frame := func(n int32) []byte {
		raw, err := proto.Marshal(&signetv1.ListUsersRequest{PageSize: n})
		if err != nil {
			t.Fatal(err)
		}
		return frameOf(0, raw)
	}
	long := frame(100)
	ask := func(contentType string, body []byte, header ...string) (*http.Response, []byte) {
		t.Helper()
		return l.exactly(t, "POST", procedure, body, append(header, "content-type", contentType)...)
	}
	_, plain := ask(inBrowsers, long)
	if n := binary.BigEndian.Uint32(plain[1:]); plain[0] != 0 || len(plain) < int(n)+head ||
		!strings.HasSuffix(string(plain), "grpc-status: 0\r\n") {
		t.Fatalf("an answer that is not compressed: %q", plain)
	}
	message := plain[head : head+binary.BigEndian.Uint32(plain[1:])]

	// A browser: the whole body, its trailer included.
	answer, body := ask(inBrowsers, long, "accept-encoding", "gzip, deflate, br, zstd")
	if got := unpack(t, body); answer.Header.Get("Content-Encoding") != "gzip" || !bytes.Equal(got, plain) ||
		answer.ContentLength != int64(len(body)) || answer.Header.Get("Grpc-Encoding") != "" {
		t.Errorf("a browser got %v, %d bytes", answer.Header, len(got))
	}
	// A client that unpacks messages.
	for contentType, ending := range map[string]string{inBrowsers: "grpc-status: 0\r\n", "application/grpc": ""} {
		answer, body := ask(contentType, long, "grpc-accept-encoding", "br, gzip")
		n := binary.BigEndian.Uint32(body[1:])
		if answer.Header.Get("Grpc-Encoding") != "gzip" || answer.Header.Get("Content-Encoding") != "" ||
			body[0] != flagCompressed || !bytes.Equal(unpack(t, body[head:head+n]), message) ||
			!strings.HasSuffix(string(body[head+n:]), ending) || ending == "" && len(body) != int(n)+head {
			t.Errorf("%s: %v %q", contentType, answer.Header, body)
		}
	}
	// What is short, what nobody asked for, and what fails.
	for _, c := range []struct {
		body   []byte
		header []string
		fails  bool
	}{
		{frame(1), []string{"accept-encoding", "gzip", "grpc-accept-encoding", "gzip"}, false},
		{long, nil, false},
		{long, []string{"accept-encoding", "gzip;q=0", "grpc-accept-encoding", "identity"}, false},
		{long, []string{"accept-encoding", "gzip", "grpc-accept-encoding", "gzip"}, true},
	} {
		l.fake.err = nil
		if c.fails {
			l.fake.err = errors.New("no")
		}
		answer, body := ask(inBrowsers, c.body, c.header...)
		if answer.Header.Get("Content-Encoding") != "" || answer.Header.Get("Grpc-Encoding") != "" ||
			body[0]&flagCompressed != 0 {
			t.Errorf("%v: %v", c.header, answer.Header)
		}
	}
}

// Memory of compressors is bounded: beside too many of them, answers are not compressed.
func TestFewAnswersAreCompressedAtATime(t *testing.T) {
	l := newLab(t)
	packersAtWork.Add(mostPackers)
	defer packersAtWork.Add(-mostPackers)
	answer, body := l.exactly(t, "GET", "/v1/users?pageSize=100", nil, "accept-encoding", "gzip")
	if answer.Header.Get("Content-Encoding") != "" || body[0] != '{' || answer.ContentLength != int64(len(body)) {
		t.Errorf("%v", answer.Header)
	}
	raw, err := proto.Marshal(&signetv1.ListUsersRequest{PageSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"accept-encoding", "grpc-accept-encoding"} {
		answer, body := l.exactly(t, "POST", "/signet.v1.UserService/ListUsers", frameOf(0, raw), "content-type",
			"application/grpc-web+proto", header, "gzip")
		if answer.Header.Get("Content-Encoding") != "" || answer.Header.Get("Grpc-Encoding") != "" || body[0] != 0 ||
			strings.Count(string(body), "grpc-status: 0") != 1 {
			t.Errorf("%s: %v", header, answer.Header)
		}
	}
}

// Who does not ask for it pays nothing: a list is answered with as many allocations as if nothing were ever compressed,
// but for the header that says what the answer depends on.
func TestAListThatIsNotCompressedCostsNothing(t *testing.T) {
	l := newLab(t)
	op := &operation{reads: true, bulk: true}
	c := &Call{h: l.handler, op: op, Exchange: &web.Exchange{Request: httptest.NewRequest("GET", "/v1/users", nil)}}
	body := bytes.Repeat([]byte("a"), 10_000)
	if n := testing.AllocsPerRun(100, func() {
		if c.packBody(body) != nil {
			t.Fatal("it is compressed")
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// TestNoReadAnswersWithASecret: what may be compressed holds nothing that must not be guessed from its length.
func TestNoReadAnswersWithASecret(t *testing.T) {
	reads := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				rule, ok := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
				if !ok || rule.GetGet() == "" {
					continue
				}
				reads++
				if field := secretIn(m.Output(), map[protoreflect.FullName]bool{}); field != "" {
					t.Errorf("%s answers with %s", m.FullName(), field)
				}
			}
		}
		return true
	})
	if reads < 50 {
		t.Errorf("only %d reads are found", reads)
	}
	if secretIn((&signetv1.CreateSessionResponse{}).ProtoReflect().Descriptor(), map[protoreflect.FullName]bool{}) == "" {
		t.Error("a secret is not found")
	}
}

func secretIn(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) protoreflect.FullName {
	if seen[m.FullName()] {
		return ""
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		if proto.GetExtension(fd.Options(), signetv1.E_Secret).(bool) {
			return fd.FullName()
		}
		if fd.Message() != nil {
			if found := secretIn(fd.Message(), seen); found != "" {
				return found
			}
		}
	}
	return ""
}

func BenchmarkList(b *testing.B) {
	h := newLab(b).site
	b.Run("plain", func(b *testing.B) { benchmark(b, h, "GET", "/v1/users?pageSize=100", "", nil) })
	b.Run("compressed", func(b *testing.B) {
		benchmark(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header["Accept-Encoding"] = []string{"gzip"}
			h.ServeHTTP(w, r)
		}), "GET", "/v1/users?pageSize=100", "", nil)
	})
}
