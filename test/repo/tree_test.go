package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/signet-idm/signet/"
)

// file is a Go file of this repository.
type file struct {
	path    string // from the root
	dir     string // the folder: also the package, as the rules call it
	test    bool
	lines   int
	imports []string // ours without the name of the module, others as they are
	syntax  *ast.File
}

var fileSet = token.NewFileSet()

// tree parses all Go files of the module but the generated ones. tools has a module of its own.
var tree = sync.OnceValues(func() ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root &&
				(strings.HasPrefix(name, ".") ||
					slices.Contains([]string{"gen", "tools", "testdata", "node_modules"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(fileSet, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		f := &file{path: rel, dir: pathDir(rel), test: strings.HasSuffix(rel, "_test.go"),
			lines: strings.Count(string(text), "\n"), syntax: syntax}
		for _, i := range syntax.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, strings.TrimPrefix(name, module))
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

func pathDir(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

func files(t *testing.T) []*file {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files found: this test looks in the wrong place", len(all))
	}
	return all
}

// imported gives the name by which a file knows a package; empty where it does not import it.
func (f *file) imported(path string) string {
	for _, i := range f.syntax.Imports {
		if name, _ := strconv.Unquote(i.Path.Value); name == path {
			if i.Name != nil {
				return i.Name.Name
			}
			return path[strings.LastIndexByte(path, '/')+1:]
		}
	}
	return ""
}
