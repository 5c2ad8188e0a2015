package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/signet-idm/signet/internal/base/packing"
)

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// AssetsPath is where Assets has to be mounted.
const AssetsPath = "/assets/"

type asset struct {
	contentType string
	content     []byte
	packed      func() []byte // the same, compressed; once, when the first client asks for it
}

// assets knows each file by its own name and by the path it is served at.
type assets struct {
	paths  map[string]string
	byPath map[string]asset
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// loadAssets gives each file a name that changes with its content, so that browsers may keep it for good.
func loadAssets() (assets, error) {
	a := assets{paths: map[string]string{}, byPath: map[string]asset{}}
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, err
	}
	for _, f := range files {
		content, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			return a, err
		}
		extension := path.Ext(f.Name())
		contentType, ok := assetTypes[extension]
		if !ok {
			return a, fmt.Errorf("asset %s is of no known type", f.Name())
		}
		sum := sha256.Sum256(content)
		at := AssetsPath + strings.TrimSuffix(f.Name(), extension) + "." + hex.EncodeToString(sum[:8]) + extension
		a.paths[f.Name()], a.byPath[at] = at, asset{contentType: contentType, content: content,
			packed: sync.OnceValue(func() []byte { return packing.Once(content) })}
	}
	return a, nil
}

func (a assets) path(name string) (string, error) {
	at, ok := a.paths[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return at, nil
}

// Asset is the address of a file, for pages that other packages make.
func (p *Pages) Asset(name string) string {
	at, err := p.assets.path(name)
	if err != nil {
		panic(err) // it was renamed
	}
	return at
}

// Matches tells whether the client has what an entity tag stands for. A proxy may have made it a weak one.
func Matches(h http.Header, tag string) bool {
	for _, line := range h["If-None-Match"] {
		for had := range strings.SplitSeq(line, ",") {
			if had = strings.TrimSpace(had); had == "*" || strings.TrimPrefix(had, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// Assets serves the stylesheet, the script and the pictures.
func (p *Pages) Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		p.Harden(h)
		found, ok := p.assets.byPath[r.URL.Path]
		switch {
		case !ok:
			h.Set("Cache-Control", "no-store") // a node of another version may have it
			http.Error(w, "there is no such file", http.StatusNotFound)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "files can only be read", http.StatusMethodNotAllowed)
			return
		}
		content := found.content
		h.Set("Vary", "Accept-Encoding")
		if packing.Choose(r.Header, packing.Gzip) != "" {
			if packed := found.packed(); packed != nil {
				content = packed
				h.Set("Content-Encoding", packing.Gzip)
			}
		}
		h.Set("Content-Type", found.contentType)
		h.Set("Content-Length", strconv.Itoa(len(content)))
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, _ = w.Write(content)
		}
	})
}
