// Command pack puts the built console into one archive: every file of a directory, compressed, with .gz at its name.
// Go's gzip gives the same bytes on every machine; that of Node depends on the processor.
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
	"slices"
	"strings"
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
// version of Go may compress differently.
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
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name + ".gz", Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if err := compress(w, files[name]); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

func unpack(path string) (map[string][]byte, error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	compressed, err := read(archive)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, content := range compressed {
		plain, ok := strings.CutSuffix(name, ".gz")
		if !ok {
			return nil, fmt.Errorf("%s is not compressed", name)
		}
		if files[plain], err = decompress(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

func compress(to io.Writer, content []byte) error {
	w, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

func decompress(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
