package docs

import (
	"bytes"
	_ "embed"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed page.html
var layout string

var parsed = sync.OnceValue(func() *template.Template { return template.Must(template.New("").Parse(layout)) })

// sheet is what the layout shows.
type sheet struct {
	Title            string
	Style, Own, Mark string // addresses
	Groups           []group
	Content          template.HTML
	Index            bool
}

// render makes the HTML of a page.
func (d *Docs) render(p *page) []byte {
	s := sheet{Title: p.title, Style: d.Pages.Asset("style.css"), Own: d.Pages.Asset("docs.css"),
		Mark: d.Pages.Asset("mark.svg"), Index: p.file == ""}
	for _, g := range d.groups {
		marked := group{Title: g.Title}
		for _, e := range g.Pages {
			e.Current = e.Address == Path+p.at
			marked.Pages = append(marked.Pages, e)
		}
		s.Groups = append(s.Groups, marked)
	}
	if p.file != "" {
		source, err := fs.ReadFile(d.Files, p.file)
		if err != nil {
			panic(err) // it was there when the pages were listed
		}
		s.Content = d.content(p, source)
	}
	var out bytes.Buffer
	if err := parsed().Execute(&out, s); err != nil {
		panic(err) // the layout takes every page
	}
	return out.Bytes()
}

// content is the part of a page that comes from its file. Goldmark leaves raw HTML out and makes no link of anything
// that a browser would run.
func (d *Docs) content(p *page, source []byte) template.HTML {
	if path.Ext(p.file) != ".md" {
		return template.HTML("<h1>" + template.HTMLEscapeString(p.title) + `</h1><pre tabindex="0"><code>` +
			template.HTMLEscapeString(string(source)) + "</code></pre>")
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(),
			parser.WithASTTransformers(util.Prioritized(links{d, path.Dir(p.file)}, 500))))
	var out bytes.Buffer
	if err := markdown.Convert(source, &out); err != nil {
		panic(err) // a buffer takes everything
	}
	html := heading.ReplaceAllString(out.String(),
		`<h$1 id="$2">$3 <a class="anchor" href="#$2" aria-label="Link to this section">#</a></h$1>`)
	// What is wider than the page scrolls by itself, with the keyboard, too. In text, these tags are escaped.
	return template.HTML(wide.Replace(html))
}

var (
	heading = regexp.MustCompile(`<h([2-6]) id="([^"]*)">(.*)</h[2-6]>`)
	wide    = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>",
		`<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>",
		"<!-- raw HTML omitted -->", "")
)

// links leads links between files to their pages. Those to files that are not served become text, and so do pictures.
type links struct {
	docs   *Docs
	folder string // of the file
}

// Transform implements parser.ASTTransformer.
func (l links) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	var gone []ast.Node
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it fails only if this does
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, ok := l.address(string(n.Destination))
			if n.Destination = []byte(to); !ok {
				gone = append(gone, n)
			}
		case *ast.Image:
			gone = append(gone, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range gone {
		parent := n.Parent()
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
		parent.RemoveChild(parent, n)
	}
}

// address is where a link leads, if it leads anywhere.
func (l links) address(to string) (string, bool) {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return "", false
	case u.Scheme != "":
		return to, u.Scheme == "https" || u.Scheme == "http"
	case u.Path == "":
		return to, u.Fragment != ""
	}
	p := l.docs.pages[addressOf(path.Join(l.folder, u.Path))]
	if p == nil {
		return "", false
	}
	address := url.URL{Path: Path + p.at, Fragment: u.Fragment}
	return address.String(), true
}
