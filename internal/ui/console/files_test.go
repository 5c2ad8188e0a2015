package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"

	"github.com/signet-idm/signet/internal/transport/pages"
	built "github.com/signet-idm/signet/web/console"
)

func packed(text, coding string) *fstest.MapFile {
	var out bytes.Buffer
	var w io.WriteCloser = brotli.NewWriter(&out)
	if coding == ".gz" {
		w = gzip.NewWriter(&out)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return &fstest.MapFile{Data: out.Bytes()}
}

// add stores a file as pack does.
func add(to fstest.MapFS, name, text string) fstest.MapFS {
	for _, ending := range endings {
		to[name+ending] = packed(text, ending)
	}
	return to
}

const start = "<!doctype html><title>Signet</title>"

func newFiles(t *testing.T, with fstest.MapFS) *files {
	t.Helper()
	shown, err := pages.New(pages.Config{ExternalURL: &url.URL{Scheme: "https", Host: "id.test"},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &files{from: with, pages: shown}
}

func application() fstest.MapFS {
	built := fstest.MapFS{}
	for name, text := range map[string]string{
		"index.html":       start,
		"assets/app-1.js":  "run()",
		"assets/app-1.css": "a{}",
		"assets/f-1.woff2": "font",
		"assets/sub/x.svg": "<svg/>",
		"favicon.svg":      "<svg/>",
		"assets/odd-1.xyz": "odd",
	} {
		add(built, name, text)
	}
	return built
}

func (f *files) get(method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	var from io.Reader = resp.Body
	switch resp.Header.Get("Content-Encoding") {
	case "br":
		from = brotli.NewReader(resp.Body)
	case "gzip":
		unpacked, err := gzip.NewReader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = unpacked
	}
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestWhatIsAtAPathOfTheConsole(t *testing.T) {
	f := newFiles(t, application())
	const page, forEver, asked = "text/html; charset=utf-8", forGood, "no-cache"
	for path, want := range map[string]struct {
		status      int
		text        string
		contentType string
		cache       string
	}{
		"/console/":                          {200, start, page, asked},
		"/console/index.html":                {200, start, page, asked},
		"/console/users":                     {200, start, page, asked},
		"/console/users/usr_1/events?a=b":    {200, start, page, asked},
		"/console/orgs/a.b/":                 {200, start, page, asked},
		"/console/assets":                    {200, start, page, asked},
		"/console/..%2fassets/app-1.js":      {200, start, page, asked},
		"/console/%00":                       {200, start, page, asked},
		"/console/a%5cb":                     {200, start, page, asked},
		"/console/favicon.svg":               {200, "<svg/>", "image/svg+xml", asked},
		"/console/assets/app-1.js":           {200, "run()", "text/javascript; charset=utf-8", forEver},
		"/console/assets/app-1.css":          {200, "a{}", "text/css; charset=utf-8", forEver},
		"/console/assets/f-1.woff2":          {200, "font", "font/woff2", forEver},
		"/console/assets/sub/x.svg":          {200, "<svg/>", "image/svg+xml", forEver},
		"/console/assets/odd-1.xyz":          {200, "odd", "application/octet-stream", forEver},
		"/console/assets/":                   {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/app-2.js":           {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/app-1.js.gz":        {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/app-1.js.br":        {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/sub":                {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/../index.html":      {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
		"/console/assets/%2e%2e/favicon.svg": {404, "there is no such file\n", "text/plain; charset=utf-8", "no-store"},
	} {
		for accept, wantCoding := range map[string]string{"gzip, br": "br", "gzip": "gzip", "br": "br", "": "",
			"identity": "", "br;q=0.1, gzip;q=0.2": "gzip"} {
			got := f.get(http.MethodGet, path, "Accept-Encoding", accept)
			h := got.Header
			said := text(t, got)
			if want.status != 200 {
				wantCoding = ""
			}
			if got.StatusCode != want.status || said != want.text || h.Get("Content-Type") != want.contentType ||
				h.Get("Cache-Control") != want.cache || h.Get("Content-Encoding") != wantCoding {
				t.Errorf("%s with %q: %d %q %v", path, accept, got.StatusCode, said, h)
			}
			if want.status == 200 && h.Get("Vary") != "Accept-Encoding" ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Strict-Transport-Security") == "" ||
				h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: the headers are %v", path, h)
			}
			head := f.get(http.MethodHead, path, "Accept-Encoding", accept)
			if body := raw(t, head); want.status == 200 && body != "" || head.StatusCode != want.status ||
				head.Header.Get("Content-Type") != want.contentType || head.Header.Get("Etag") != h.Get("Etag") ||
				head.Header.Get("Content-Encoding") != wantCoding {
				t.Errorf("HEAD %s: %d %q %v", path, head.StatusCode, body, head.Header)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions,
		http.MethodConnect} {
		if got := f.get(method, "/console/users"); got.StatusCode != http.StatusMethodNotAllowed ||
			got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, got.StatusCode, got.Header)
		}
	}
}

// raw reads what is there, packed or not.
func raw(t *testing.T, resp *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestThePolicyOfTheConsole(t *testing.T) {
	h := newFiles(t, application()).get(http.MethodGet, "/console/users").Header
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; " +
			"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"Strict-Transport-Security": "max-age=31536000",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if !strings.Contains(h.Get("Permissions-Policy"), "publickey-credentials-get=(self)") {
		t.Errorf("what may be used is %q", h.Get("Permissions-Policy"))
	}
}

func TestTheStartPageIsKeptUntilItChanges(t *testing.T) {
	f := newFiles(t, application())
	tag := func(f *files, accept string) string {
		return f.get(http.MethodGet, "/console/", "Accept-Encoding", accept).Header.Get("Etag")
	}
	packedTag, otherTag, plainTag := tag(f, "gzip"), tag(f, "br"), tag(f, "")
	if packedTag == "" || plainTag == "" || packedTag == plainTag || packedTag == otherTag || otherTag == plainTag {
		t.Fatalf("the tags are %s, %s and %s", packedTag, otherTag, plainTag)
	}
	for had, want := range map[string]int{packedTag: 304, "W/" + packedTag: 304, `"x", ` + packedTag: 304, "*": 304,
		plainTag: 200, otherTag: 200, `"x"`: 200, "": 200} {
		got := f.get(http.MethodGet, "/console/users", "Accept-Encoding", "gzip", "If-None-Match", had)
		if got.StatusCode != want || got.Header.Get("Etag") != packedTag ||
			got.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("with %s: %d %v", had, got.StatusCode, got.Header)
		}
	}
	with := application()
	if tag(newFiles(t, add(with, index, start+"new")), "gzip") == packedTag {
		t.Error("another build has the same tag")
	}
}

// Whoever cannot unpack a file makes us do it: no file may become too much.
func TestAFileIsUnpackedUpToALimit(t *testing.T) {
	with := add(application(), "assets/bomb-1.js", strings.Repeat("a", maxUnpacked+1))
	f := newFiles(t, with)
	if got := text(t, f.get(http.MethodGet, "/console/assets/bomb-1.js")); len(got) != maxUnpacked {
		t.Errorf("it became %d bytes", len(got))
	}
	got := f.get(http.MethodGet, "/console/assets/bomb-1.js", "Accept-Encoding", "gzip")
	if n, _ := strconv.Atoi(got.Header.Get("Content-Length")); n != len(with["assets/bomb-1.js.gz"].Data) {
		t.Errorf("its length is said to be %d", n)
	}
}

func TestTheProgramHoldsAConsole(t *testing.T) {
	f := &files{from: built.Files(), pages: newFiles(t, nil).pages}
	for _, accept := range []string{"", "gzip", "br"} {
		got := f.get(http.MethodGet, "/console/", "Accept-Encoding", accept)
		if said := text(t, got); got.StatusCode != http.StatusOK || got.Header.Get("Content-Encoding") != accept ||
			!strings.Contains(strings.ToLower(said), "<!doctype html>") {
			t.Errorf("%q got %d %s", accept, got.StatusCode, said)
		}
	}
}
