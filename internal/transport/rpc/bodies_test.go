package rpc

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/transport/web"
)

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (untouched) Close() error { return nil }

func TestLargeBodiesAreNotReadFromWhoHoldsThePermissionNowhere(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct {
		token   string
		want    int
		refused bool // before the body is read
	}{
		{"nobody", 403, true}, {"restricted", 403, true}, {"unknown", 401, true}, {"elsewhere", 400, false},
		{"owner", 400, false}, {"admin", 400, false},
	} {
		for _, way := range []struct{ path, contentType string }{
			{"/v1/users/_import", "application/json"}, {"/signet.v1.UserService/ImportUsers", "application/grpc"},
			{"/signet.v1.UserService/ImportUsers", "application/grpc-web+proto"},
		} {
			r, err := http.NewRequest(http.MethodPost, way.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = bearerOf(tt.token, "content-type", way.contentType)
			r.ContentLength = 4 << 20
			if r.Body = io.NopCloser(strings.NewReader("{]")); tt.refused {
				r.Body = untouched{t}
			}
			w := &sink{h: http.Header{}}
			l.site.ServeHTTP(w, r)
			if way.contentType == "application/json" && w.status != tt.want {
				t.Errorf("%s: %d", tt.token, w.status)
			}
		}
	}
	// Where requests are small, what is wrong with them still comes first.
	if o := l.rest(t, l.h2, "POST", "/v1/idps/jwt", `{}`, bearerOf("nobody")); o.http != 400 {
		t.Errorf("a small one: %+v", o)
	}
}

func TestThereIsRoomForSoMuchOnly(t *testing.T) {
	l := newLab(t)
	l.front.Budget.OfNetwork = 64 << 10
	large := ask{"UserService/UpdateMyProfile", "PUT", "/v1/users/me/profile",
		&signetv1.UpdateMyProfileRequest{FirstName: strings.Repeat("x", 100<<10)}, bearerOf("owner")}
	l.everywhere(t, large, func(t *testing.T, o outcome) {
		if o.code != int32(code.Code_RESOURCE_EXHAUSTED) || o.reason != string(web.TooMuchAtOnce) || o.retry == 0 ||
			o.header.Get("Retry-After") != "1" {
			t.Errorf("got %+v", o)
		}
	})
	l.front.Budget.OfNetwork, l.front.Budget.Here = 0, 64<<10
	l.everywhere(t, large, func(t *testing.T, o outcome) {
		if o.code != int32(code.Code_UNAVAILABLE) || o.reason != string(web.TooMuchAtOnce) || o.retry == 0 {
			t.Errorf("got %+v", o)
		}
	})
	small := putProfile.as("owner")
	for range 100 { // what was taken is given back
		if o := l.rest(t, l.h2, small.verb, small.path, small.json(t), small.header); o.http != 200 {
			t.Fatalf("got %+v", o)
		}
	}
}

func TestWhatIsUnpackedNeedsRoomToo(t *testing.T) {
	l := newLab(t)
	l.front.Budget.OfNetwork = 64 << 10
	raw, err := proto.Marshal(&signetv1.UpdateMyProfileRequest{FirstName: strings.Repeat("x", 500<<10)})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(raw)
	w.Close()
	r, err := http.NewRequest(http.MethodPost, l.url+"/signet.v1.UserService/UpdateMyProfile",
		bytes.NewReader(frameOf(1, packed.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = bearerOf("owner", "content-type", "application/grpc", "grpc-encoding", "gzip")
	resp, err := l.h2.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if got := resp.Trailer.Get("Grpc-Status"); got != "8" {
		t.Errorf("%d bytes that unpack to %d: status %q", packed.Len(), len(raw), got)
	}
}

// TestGRPCAnswersHaveNoLength: nginx takes the end of that length for the end of the answer, and HAProxy does at times.
func TestGRPCAnswersHaveNoLength(t *testing.T) {
	l := newLab(t)
	raw, err := proto.Marshal(profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, token string
		body              []byte
		want              string
	}{
		{"a success", "/signet.v1.UserService/UpdateMyProfile", "owner", frameOf(0, raw), "0"},
		{"a refusal", "/signet.v1.UserService/UpdateMyProfile", "owner", frameOf(0, nil), "3"},
		{"no credential", "/signet.v1.UserService/UpdateMyProfile", "unknown", frameOf(0, raw), "16"},
		{"an unknown method", "/signet.v1.UserService/Nothing", "owner", frameOf(0, nil), "12"},
		{"health", "/grpc.health.v1.Health/Check", "owner", frameOf(0, nil), "0"},
		{"health of nothing", "/grpc.health.v1.Health/Check", "owner", frameOf(0, []byte("\x0a\x01x")), "5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, l.url+tt.path, bytes.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = bearerOf(tt.token, "content-type", "application/grpc", "te", "trailers")
			resp, err := l.h2.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.ContentLength != -1 || resp.Header["Content-Length"] != nil ||
				resp.Trailer.Get("Grpc-Status") != tt.want {
				t.Errorf("length %d, status %q", resp.ContentLength, resp.Trailer.Get("Grpc-Status"))
			}
		})
	}
}

// TestBrokenFramesAreNoInternalError: health and reflection are served by a library, which would take some of them for
// its own failure.
func TestBrokenFramesAreNoInternalError(t *testing.T) {
	l := newLab(t)
	for _, path := range []string{"grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
		"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "signet.v1.UserService/GetMyUser"} {
		for _, contentType := range []string{"application/grpc", "application/grpc-web+proto"} {
			for _, tt := range []struct {
				name string
				body []byte
				want int32
			}{
				{"compressed", frameOf(1, zipped([]byte("\x0a\x01x"))), 3},
				{"unknown flags", frameOf(2, nil), 3},
				{"trailers", frameOf(0x80, []byte("a: b\r\n")), 3},
				{"trailers that are none", frameOf(0x80, []byte("a")), 3},
				{"all flags", frameOf(255, []byte("\x0a\x01x")), 3},
				{"half a head", []byte{0, 0, 0}, 3},
				{"half a message", frameOf(0, []byte("\x0a\x02xy"))[:7], 3},
				{"no message at all", []byte{0, 0, 0, 0, 9}, 3},
				{"something else", frameOf(0, []byte("\xff\xff\xff")), 3},
				{"too large", []byte{0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, 8},
			} {
				if o := l.statusAt(t, contentType, path, tt.body); o != strconv.Itoa(int(tt.want)) {
					t.Errorf("%s at %s as %s: status %s, want %d", tt.name, path, contentType, o, tt.want)
				}
			}
		}
	}
}

// statusAt sends a body and gives the status of gRPC in the answer.
func (l *lab) statusAt(t *testing.T, contentType, path string, body []byte) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, l.url+"/"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = bearerOf("owner", "content-type", contentType, "te", "trailers")
	resp, err := l.h2.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, web := strings.Cut(string(text), "grpc-status: "); web {
		code, _, _ := strings.Cut(rest, "\r\n")
		return code
	}
	return resp.Header.Get("Grpc-Status") + resp.Trailer.Get("Grpc-Status")
}

// TestABodyGrowsWithWhatArrives: a promise alone takes no memory.
func TestABodyGrowsWithWhatArrives(t *testing.T) {
	l := newLab(t)
	for name, header := range map[string][]byte{"application/json": nil, "application/grpc": {0, 0, 0x0f, 0xff, 0xff}} {
		path := "/v1/sessions"
		if header != nil {
			path = "/signet.v1.SessionService/CreateSession"
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const requests = 100
		for range requests {
			r, err := http.NewRequest(http.MethodPost, path, bytes.NewReader(append(bytes.Clone(header), ' ')))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", name)
			r.ContentLength = maxBody
			l.site.ServeHTTP(&sink{h: http.Header{}}, r)
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / requests; got > 64<<10 {
			t.Errorf("%s: a promised body takes %d bytes", name, got)
		}
	}
}
