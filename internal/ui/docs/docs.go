// Package docs shows the documentation at /docs/: the Markdown of docs/ as pages in the look of the hosted ones, without
// scripts. A page is made when somebody first asks for it, one at a time, and kept compressed: there are some fifty.
package docs

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/signet-idm/signet/internal/base/packing"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// Path is where the documentation is.
const Path = "/docs/"

// policy allows a page its style sheets and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// Docs serves the documentation.
type Docs struct {
	Files     fs.FS // as package docs of the repository has them
	Pages     *pages.Pages
	Elsewhere *url.URL // where it is instead, under the same paths; nil: here

	once   sync.Once
	pages  map[string]*page // by path below Path
	groups []group

	making sync.Mutex
}

// page is a page, and a file of it is one, too: its name without .md, or a folder for its README.
type page struct {
	file  string // docs/guides/native.md is guides/native.md
	at    string // guides/native
	title string
	made  made
}

// made is what is sent. It is empty until somebody has asked for it.
type made struct {
	packed []byte
	tag    string
}

// group is a folder in the list of pages.
type group struct {
	Title string
	Pages []entry
}

type entry struct {
	Address, Title string
	Current        bool
}

// Mount registers the pages.
func (d *Docs) Mount(site *web.Site) {
	site.HandleTree(Path, web.Entry{Handler: d, Counted: web.AsStatic})
	site.Handle(strings.TrimSuffix(Path, "/"), d.Pages.SameOrigin(http.HandlerFunc(d.slash)))
}

// slash adds the slash that an address typed by hand lacks.
func (d *Docs) slash(w http.ResponseWriter, r *http.Request) {
	if d.refused(w, r) {
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", Path)
	w.WriteHeader(http.StatusSeeOther)
}

// refused answers what is not a read.
func (d *Docs) refused(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	d.Pages.HardenPage(h, policy)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	h.Set("Allow", "GET, HEAD")
	http.Error(w, "the documentation can only be read", http.StatusMethodNotAllowed)
	return true
}

// ServeHTTP answers with the page at exactly this path.
func (d *Docs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.refused(w, r) {
		return
	}
	h := w.Header()
	d.once.Do(d.list)
	p := d.pages[strings.TrimPrefix(r.URL.EscapedPath(), Path)]
	switch {
	case p == nil:
		h.Set("Cache-Control", "no-store") // another version may have it
		http.Error(w, "The documentation has no such page. All pages are listed at "+Path, http.StatusNotFound)
	case d.Elsewhere != nil:
		h.Set("Cache-Control", "no-store")
		h.Set("Location", d.Elsewhere.JoinPath("/"+p.at).String())
		w.WriteHeader(http.StatusSeeOther)
	default:
		d.serve(w, r, d.make(p))
	}
}

func (d *Docs) serve(w http.ResponseWriter, r *http.Request, m made) {
	h, content := w.Header(), m.packed
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", "en")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	tag := `"` + m.tag + `"`
	if packing.Choose(r.Header, packing.Gzip) != "" {
		tag = `"` + m.tag + `-gzip"`
		h.Set("Content-Encoding", packing.Gzip)
	} else {
		content = unpacked(content)
	}
	h.Set("Etag", tag)
	if pages.Matches(r.Header, tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the person has gone: nobody is left to tell
	}
}

func unpacked(packed []byte) []byte {
	var out bytes.Buffer
	from, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		_, err = out.ReadFrom(from)
	}
	if err != nil {
		panic(err) // we have packed it
	}
	return out.Bytes()
}

// make gives what is sent for a page.
func (d *Docs) make(p *page) made {
	d.making.Lock()
	defer d.making.Unlock()
	if p.made.packed == nil {
		content := d.render(p)
		sum := sha256.Sum256(content)
		p.made = made{packing.Once(content), hex.EncodeToString(sum[:8])}
	}
	return p.made
}

// names of the folders in the list of pages, in its order; the empty one is docs/ itself.
var folders = []struct{ folder, title string }{
	{"guides", "Guides"}, {"guides/providers", "Identity providers"}, {"operations", "Operations"}, {"api", "API"},
	{".", "About Signet"},
}

// list finds all pages.
func (d *Docs) list() {
	d.pages = map[string]*page{"": {title: "Documentation"}}
	err := fs.WalkDir(d.Files, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		p := &page{file: file, at: addressOf(file), title: path.Base(file)}
		if path.Ext(file) == ".md" {
			text, err := fs.ReadFile(d.Files, file)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(string(text), "\n")
			p.title = strings.ReplaceAll(strings.TrimPrefix(first, "# "), "`", "")
		}
		d.pages[p.at] = p
		return nil
	})
	if err != nil {
		panic(err) // the program was built without it
	}
	for _, f := range folders {
		g := group{Title: f.title}
		for _, p := range d.pages {
			if path.Ext(p.file) == ".md" && path.Dir(p.file) == f.folder {
				g.Pages = append(g.Pages, entry{Address: Path + p.at, Title: p.title})
			}
		}
		// The page about all of a folder comes first.
		slices.SortFunc(g.Pages, func(a, b entry) int {
			return cmp.Or(cmp.Compare(overview(b.Address), overview(a.Address)), strings.Compare(a.Title, b.Title))
		})
		d.groups = append(d.groups, g)
	}
}

func overview(address string) int {
	if strings.HasSuffix(address, "/") {
		return 1
	}
	return 0
}

// addressOf is the path of the page of a file, below Path.
func addressOf(file string) string {
	name, isPage := strings.CutSuffix(file, ".md")
	if folder, of := strings.CutSuffix(name, "README"); isPage && of {
		return folder
	}
	return name
}
