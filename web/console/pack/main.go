// Command pack puts the built console into one archive: every file of a directory, compressed twice, with .br and with
// .gz at its name. Browsers ask for Brotli only over https, so the server needs both. These two libraries give the same
// bytes on every machine; those of Node depend on the processor.
//
//	go run ./web/console/pack [-check] DIRECTORY ARCHIVE
package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("pack: ")
	check := flag.Bool("check", false, "write nothing, fail if ARCHIVE does not hold what DIRECTORY gives")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: pack [-check] DIRECTORY ARCHIVE")
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		log.Fatal(err)
	}
}

func run(directory, archive string, check bool) error {
	built, err := read(os.DirFS(directory))
	if err != nil {
		return err
	}
	packed, err := unpack(archive) // without -check, a missing or broken archive is written anew
	if err != nil && check {
		return fmt.Errorf("%s: %w: run scripts/console.sh and commit the result", archive, err)
	}
	differing := difference(built, packed)
	if differing == "" {
		fmt.Printf("%s is up to date\n", archive)
		return nil
	}
	if check {
		return fmt.Errorf("%s is not what the sources give (%s differs): run scripts/console.sh and commit the result",
			archive, differing)
	}
	content, err := pack(built)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d files, %d bytes\n", archive, len(built), len(content))
	return os.WriteFile(archive, content, 0o644)
}

// difference names a file that only one side has, or that differs. Contents count, not compressed bytes: another
// version of a compressor may compress differently.
func difference(built, packed map[string][]byte) string {
	for name, content := range built {
		if theirs, ok := packed[name]; !ok || !bytes.Equal(content, theirs) {
			return name
		}
	}
	for name := range packed {
		if _, ok := built[name]; !ok {
			return name
		}
	}
	return ""
}

// read gives the content of every file by its path.
func read(from fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(from, path)
		return err
	})
	return files, err
}

// pack stores the compressed files in the order of their names and without times, so that equal files give equal
// archives.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, c := range codings {
			w, err := archive.CreateHeader(&zip.FileHeader{Name: name + c.ending, Method: zip.Store})
			if err != nil {
				return nil, err
			}
			if err := c.compress(w, files[name]); err != nil {
				return nil, err
			}
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

func unpack(from string) (map[string][]byte, error) {
	archive, err := zip.OpenReader(from)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	compressed, err := read(archive)
	if err != nil {
		return nil, err
	}
	files, copies := map[string][]byte{}, map[string]int{}
	for name, content := range compressed {
		i := slices.IndexFunc(codings, func(c coding) bool { return c.ending == path.Ext(name) })
		if i < 0 {
			return nil, fmt.Errorf("%s is not compressed", name)
		}
		plain := strings.TrimSuffix(name, codings[i].ending)
		unpacked, err := codings[i].decompress(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if other, twice := files[plain]; twice && !bytes.Equal(unpacked, other) {
			return nil, fmt.Errorf("%s holds something else in each coding", plain)
		}
		files[plain] = unpacked
		copies[plain]++
	}
	for name, n := range copies {
		if n != len(codings) {
			return nil, fmt.Errorf("%s is not there in every coding", name)
		}
	}
	return files, nil
}

// coding is a way to compress files.
type coding struct {
	ending     string
	writer     func(io.Writer) (io.WriteCloser, error)
	decompress func([]byte) ([]byte, error)
}

var codings = []coding{
	{".br", func(to io.Writer) (io.WriteCloser, error) {
		return brotli.NewWriterLevel(to, brotli.BestCompression), nil
	}, func(content []byte) ([]byte, error) { return io.ReadAll(brotli.NewReader(bytes.NewReader(content))) }},
	{".gz", func(to io.Writer) (io.WriteCloser, error) {
		return gzip.NewWriterLevel(to, gzip.BestCompression)
	}, func(content []byte) ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}},
}

func (c coding) compress(to io.Writer, content []byte) error {
	w, err := c.writer(to)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}
