package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// entry is a file or, with a name that ends in /, a directory of an archive.
type entry struct {
	name  string
	mode  fs.FileMode
	from  string // the file it is read from; empty: text
	text  []byte
	owner int // user and group
}

func (e entry) read() ([]byte, error) {
	if e.from == "" {
		return e.text, nil
	}
	return os.ReadFile(e.from)
}

// packTar gives the entries as a tar file. All times are that of the release.
func packTar(files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range files {
		text, err := e.read()
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(text)),
			ModTime: at, Uid: e.owner, Gid: e.owner, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if e.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// compress leaves out the time and the system that gzip would note.
func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func writeTarGz(path string, files []entry, at time.Time) error {
	packed, err := packTar(files, at)
	if err != nil {
		return err
	}
	if packed, err = compress(packed); err != nil {
		return err
	}
	return os.WriteFile(path, packed, 0o644)
}

func writeZip(path string, files []entry, at time.Time) error {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range files {
		text, err := e.read()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(e.mode)
		file, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, bytes.NewReader(text)); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
