// Package console holds the built web console: what Vite made of the sources beside it, compressed. See package
// internal/ui/console for how it is served.
package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var built embed.FS

// Files are the built files, each under its name with .gz: index.html.gz, and assets/ with names that change with the
// content.
func Files() fs.FS {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // only for a name that is none
	}
	return files
}
