package docs

import (
	"compress/gzip"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	written "github.com/signet-idm/signet/docs"
	"github.com/signet-idm/signet/internal/transport/pages"
)

func newDocs(t *testing.T, files fs.FS) *Docs {
	t.Helper()
	shown, err := pages.New(pages.Config{ExternalURL: &url.URL{Scheme: "https", Host: "id.test"},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &Docs{Files: files, Pages: shown}
}

func (d *Docs) get(method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result()
}

func said(t *testing.T, answer *http.Response) string {
	t.Helper()
	from := io.Reader(answer.Body)
	if answer.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		from = unpacked
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sample() fstest.MapFS {
	return fstest.MapFS{
		"faq.md":                      {Data: []byte("# Questions\n\n[one](guides/native.md#a-way) <b>bold</b> <script>run()</script>\n")},
		"guides/README.md":            {Data: []byte("# Guides\n\n## A `way` & more\n\n## A `way` & more\n")},
		"guides/native.md":            {Data: []byte("# Native\n\n[up](../faq.md) [here](#x) [list](README.md) [program](../../cmd/x.go) [**why**](../decisions/0001-a.md) [conf](a.conf) [out](https://example.org/a) [bad](javascript:run()) ![what it shows](p.svg)\n\n## A way\n\n```sh\na <table> & b\n```\n\n| a | b |\n|---|---|\n| 1 | `<pre>` |\n")},
		"guides/a.conf":               {Data: []byte("<script>run()</script>")},
		"operations/README.md":        {Data: []byte("# Operations\n")},
		"operations/proxies/x/y/z.md": {Data: []byte("# Deep\n")},
	}
}

func TestWhatIsAtAPathOfTheDocumentation(t *testing.T) {
	d := newDocs(t, sample())
	for path, want := range map[string]int{
		"/docs/": 200, "/docs/faq": 200, "/docs/guides/": 200, "/docs/guides/native": 200, "/docs/guides/a.conf": 200,
		"/docs/guides": 404, "/docs/faq.md": 404, "/docs/guides/README": 404, "/docs/faq/": 404, "/docs/nothing": 404,
		"/docs/../faq": 404, "/docs/guides/../faq": 404, "/docs/guides/%2e%2e/faq": 404, "/docs/guides%2fnative": 404,
		"/docs//faq": 404, "/docs/%00": 404, "/docs/..%2f..%2fgo.mod": 404, "/docs/FAQ": 404,
	} {
		for _, accept := range []string{"", "gzip"} {
			answer := d.get("GET", path, "Accept-Encoding", accept)
			h := answer.Header
			if answer.StatusCode != want || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; style-src 'self'; ") ||
				strings.Contains(h.Get("Content-Security-Policy"), "script-src") ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Strict-Transport-Security") == "" ||
				h.Get("Referrer-Policy") != "same-origin" {
				t.Errorf("%s: %d %v", path, answer.StatusCode, h)
			}
			if want == 404 {
				if h.Get("Cache-Control") != "no-store" || strings.Contains(h.Get("Content-Type"), "html") {
					t.Errorf("%s: %v", path, h)
				}
				continue
			}
			text := said(t, answer)
			if h.Get("Content-Encoding") != accept || h.Get("Vary") != "Accept-Encoding" ||
				h.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(text, "<!DOCTYPE html>") ||
				strings.Contains(text, "<script") || strings.Contains(text, " style=") {
				t.Errorf("%s: %v %s", path, h, text)
			}
			head := d.get("HEAD", path, "Accept-Encoding", accept)
			if body := said(t, &http.Response{Body: head.Body}); head.StatusCode != 200 || body != "" ||
				head.Header.Get("Content-Length") != h.Get("Content-Length") {
				t.Errorf("HEAD %s: %d %v", path, head.StatusCode, head.Header)
			}
			again := d.get("GET", path, "Accept-Encoding", accept, "If-None-Match", "W/"+h.Get("Etag"))
			if again.StatusCode != 304 || again.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s again: %d %v", path, again.StatusCode, again.Header)
			}
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for _, path := range []string{"/docs/faq", "/docs/nothing"} {
			if answer := d.get(method, path); answer.StatusCode != 405 || answer.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %v", method, path, answer.StatusCode, answer.Header)
			}
		}
	}
}

func TestLinksBetweenFilesLeadToTheirPages(t *testing.T) {
	d := newDocs(t, sample())
	text := said(t, d.get("GET", "/docs/guides/native"))
	_, text, _ = strings.Cut(text, "<main>")
	text, _, _ = strings.Cut(text, "</main>")
	for _, want := range []string{
		`<a href="/docs/faq">up</a> <a href="#x">here</a> <a href="/docs/guides/">list</a> program <strong>why</strong> ` +
			`<a href="/docs/guides/a.conf">conf</a> <a href="https://example.org/a">out</a> bad what it shows`,
		`<h2 id="a-way">A way <a class="anchor" href="#a-way"`,
		`<pre tabindex="0"><code class="language-sh">a &lt;table&gt; &amp; b`,
		`<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`, `<code>&lt;pre&gt;</code>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if faq := said(t, d.get("GET", "/docs/faq")); !strings.Contains(faq, `<a href="/docs/guides/native#a-way">one</a>`) ||
		strings.Contains(faq, "<b>") {
		t.Errorf("the other page: %s", faq)
	}
	if conf := said(t, d.get("GET", "/docs/guides/a.conf")); !strings.Contains(conf, "&lt;script&gt;run()") {
		t.Errorf("a file: %s", conf)
	}
	if list := said(t, d.get("GET", "/docs/guides/")); !strings.Contains(list, `href="/docs/guides/" aria-current="page">Guides</a>`) ||
		!strings.Contains(list, `id="a-way--more-1"`) {
		t.Errorf("the list: %s", list)
	}
}

func TestTheDocumentationMayBeElsewhere(t *testing.T) {
	d := newDocs(t, sample())
	d.Elsewhere = &url.URL{Scheme: "https", Host: "docs.test", Path: "/signet"}
	for path, want := range map[string]string{"/docs/": "https://docs.test/signet/",
		"/docs/guides/native": "https://docs.test/signet/guides/native", "/docs/guides/": "https://docs.test/signet/guides/"} {
		if answer := d.get("GET", path); answer.StatusCode != 303 || answer.Header.Get("Location") != want {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
	}
	// An address that somebody made up leads nowhere.
	for _, path := range []string{"/docs/nothing", "/docs//evil.test", "/docs/@evil.test"} {
		if answer := d.get("GET", path); answer.StatusCode != 404 || answer.Header.Get("Location") != "" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
	}
}

// Every page of the program is shown, in little memory, and every link in it leads somewhere.
func TestEveryPageIsShown(t *testing.T) {
	d := newDocs(t, written.Files())
	if answer := d.get("GET", "/docs/"); answer.StatusCode != 200 {
		t.Fatalf("the list is %d", answer.StatusCode)
	}
	if len(d.pages) < 40 || d.pages["decisions/0001-memberships-belong-to-the-user"] != nil || d.pages["docs.go"] != nil {
		t.Errorf("there are %d pages", len(d.pages))
	}
	ids, links, size := map[string]bool{}, map[string]string{}, 0
	for at := range d.pages {
		text := said(t, d.get("GET", Path+at))
		size += len(d.pages[at].made.packed)
		if strings.Contains(text, "<!--") {
			t.Errorf("%s has comments", at)
		}
		if strings.Count(text, "<h1") != 1 {
			t.Errorf("%s has not one title", at)
		}
		root, err := html.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		ids[Path+at] = true
		for n := range root.Descendants() {
			for _, a := range n.Attr {
				switch {
				case a.Key == "id":
					ids[Path+at+"#"+a.Val] = true
				case n.Data == "a" && a.Key == "href" && strings.HasPrefix(a.Val, "#"):
					links[Path+at+a.Val] = at
				case n.Data == "a" && a.Key == "href" && strings.HasPrefix(a.Val, "/"):
					links[a.Val] = at
				}
			}
		}
	}
	for to, from := range links {
		if !ids[to] {
			t.Errorf("%s leads to %s, where nothing is", from, to)
		}
	}
	t.Logf("%d pages, %d links, %d KiB kept", len(d.pages), len(links), size>>10)
	if size > 400<<10 {
		t.Errorf("all pages take up %d bytes", size)
	}
}
