package console

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/signet-idm/signet/internal/base/packing"
	"github.com/signet-idm/signet/internal/transport/pages"
)

const (
	index  = "index.html"
	assets = "assets/" // names below it change with the content

	// maxUnpacked bounds what a file may become for a client that cannot unpack it.
	maxUnpacked = 8 << 20

	// policy is that of the hosted pages with what an application needs: its script, its fonts, and calls to this
	// server. Scripts cannot make markup of text, except by the one policy of the framework.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

	forGood = "public, max-age=31536000, immutable"
)

var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".ico":         "image/x-icon",
	".woff2":       "font/woff2",
	".json":        "application/json",
	".webmanifest": "application/manifest+json",
	".txt":         "text/plain; charset=utf-8",
}

// endings are those of the names under which a file is stored in each coding.
var endings = map[string]string{packing.Brotli: ".br", packing.Gzip: ".gz"}

// files serves the built application out of the program's own file: nothing of it is kept in memory.
type files struct {
	from  fs.FS
	pages *pages.Pages

	once sync.Once
	tag  string // of the index
}

// ServeHTTP answers with a file where there is one, and with the application everywhere else: it knows the addresses
// below it.
func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	f.pages.Harden(h)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "files can only be read", http.StatusMethodNotAllowed)
		return
	}
	coding := packing.Choose(r.Header, packing.Brotli, packing.Gzip)
	name := strings.TrimPrefix(r.URL.Path, pages.PathConsole)
	file, size, err := f.open(name, coding)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		if strings.HasPrefix(name, assets) {
			h.Set("Cache-Control", "no-store") // a node of another version may have it
			http.Error(w, "there is no such file", http.StatusNotFound)
			return
		}
		name = index
		file, size, err = f.open(name, coding)
	}
	if err != nil {
		panic(err) // the program was built without it
	}
	defer file.Close()
	f.serve(w, r, name, coding, file, size)
}

// open gives a file in a coding. For clients that take none, serve unpacks what it gives.
func (f *files) open(name, coding string) (fs.File, int64, error) {
	file, err := f.from.Open(name + endings[cmp.Or(coding, packing.Gzip)])
	if err != nil {
		return nil, 0, err
	}
	about, err := file.Stat()
	if err == nil && about.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, 0, err
	}
	return file, about.Size(), nil
}

func (f *files) serve(w http.ResponseWriter, r *http.Request, name, coding string, file io.Reader, size int64) {
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	switch {
	case name == index:
		f.pages.HardenPage(h, policy)
		tag := f.indexTag(coding)
		h.Set("Cache-Control", "no-cache")
		h.Set("Etag", tag)
		if pages.Matches(r.Header, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	case strings.HasPrefix(name, assets):
		h.Set("Cache-Control", forGood)
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	default:
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	}
	contentType, known := types[path.Ext(name)]
	if !known {
		contentType = "application/octet-stream"
	}
	h.Set("Content-Type", contentType)
	if coding != "" {
		h.Set("Content-Encoding", coding)
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if coding == "" {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			panic(err) // the program was built with something else
		}
		file = io.LimitReader(unpacked, maxUnpacked)
	}
	_, _ = io.Copy(w, file) // the person has gone: nobody is left to tell
}

// indexTag tells one build from another, and one coding from another.
func (f *files) indexTag(coding string) string {
	f.once.Do(func() {
		file, _, err := f.open(index, "")
		if err != nil {
			panic(err) // the program was built without it
		}
		defer file.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err != nil {
			panic(err)
		}
		f.tag = hex.EncodeToString(sum.Sum(nil)[:8])
	})
	if coding != "" {
		return `"` + f.tag + "-" + coding + `"`
	}
	return `"` + f.tag + `"`
}
