// Command pack compresses the built console: every file of one directory, with .gz at its name, into another. Go's gzip
// gives the same bytes on every machine; that of Node depends on the processor.
//
//	go run ./web/console/pack [-check] FROM TO
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("pack: ")
	check := flag.Bool("check", false, "write nothing, fail if TO does not hold what FROM gives")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: pack [-check] FROM TO")
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		log.Fatal(err)
	}
}

func run(from, to string, check bool) error {
	built, err := read(from, ".")
	if err != nil {
		return err
	}
	packed, err := read(to, ".gz")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if check {
		return compare(built, packed)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(built)) {
		content, err := compress(built[name])
		if err != nil {
			return err
		}
		total += len(content)
		target := filepath.Join(to, filepath.FromSlash(name)+".gz")
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("console: %d files, %d bytes compressed\n", len(built), total)
	return nil
}

// compare compares contents, not compressed bytes: another version of Go may compress differently.
func compare(built, packed map[string][]byte) error {
	for name, content := range built {
		if !bytes.Equal(content, packed[name]) {
			return fmt.Errorf("web/console/dist is not what the sources give (%s differs): run scripts/console.sh and commit the result", name)
		}
	}
	for name := range packed {
		if _, ok := built[name]; !ok {
			return fmt.Errorf("web/console/dist holds %s, which the sources do not give: run scripts/console.sh and commit the result", name)
		}
	}
	fmt.Println("web/console/dist is up to date")
	return nil
}

// read gives the content of every file below a directory by its slash path. With the suffix .gz, it decompresses them
// and cuts the suffix off.
func read(dir, suffix string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if suffix == ".gz" {
			if filepath.Ext(name) != suffix {
				return fmt.Errorf("%s is not compressed", path)
			}
			name = name[:len(name)-len(suffix)]
			if content, err = decompress(content); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		files[name] = content
		return nil
	})
	return files, err
}

func compress(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decompress(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
