// Package console holds the built web console: what Vite made of the sources beside it, compressed, in one archive. See
// package internal/ui/console for how it is served.
package console

import (
	"archive/zip"
	_ "embed"
	"io/fs"
	"strings"
	"sync"
)

//go:embed dist.zip
var archive string

// index reads the archive's directory once, when the first file is asked for: a start does not pay for it.
var index = sync.OnceValue(func() *zip.Reader {
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(err) // pack wrote something else
	}
	return r
})

type files struct{}

func (files) Open(name string) (fs.File, error) { return index().Open(name) }

// Files are the built files, each under its name with .br and with .gz: index.html.br, index.html.gz, and assets/ with
// names that change with the content.
func Files() fs.FS { return files{} }
