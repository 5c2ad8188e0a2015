package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnArchiveHoldsWhatTheBuildGave(t *testing.T) {
	dir, archive := t.TempDir(), filepath.Join(t.TempDir(), "dist.zip")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(wanted string) {
		t.Helper()
		if err := run(dir, archive, true); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("the check before: %v", err)
		}
		if err := run(dir, archive, false); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, archive, true); err != nil {
			t.Errorf("the check afterwards: %v", err)
		}
	}
	write("index.html", "<!doctype html>")
	write("assets/app-1.js", strings.Repeat("run();", 1000))
	write("assets/empty-1.js", "")
	pack("no such file")
	first, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}

	write("assets/app-1.js", "walk();")
	pack("assets/app-1.js differs")
	if err := os.Remove(filepath.Join(dir, "assets", "empty-1.js")); err != nil {
		t.Fatal(err)
	}
	pack("assets/empty-1.js differs")
	write("assets/new-1.js", "")
	pack("assets/new-1.js differs")

	// Equal files give equal bytes, whatever the archive was before: here what a merge may leave.
	if err := os.RemoveAll(filepath.Join(dir, "assets")); err != nil {
		t.Fatal(err)
	}
	write("assets/app-1.js", strings.Repeat("run();", 1000))
	write("assets/empty-1.js", "")
	if err := os.WriteFile(archive, []byte("<<<<<<< ours"), 0o644); err != nil {
		t.Fatal(err)
	}
	pack("not a valid zip file")
	if again, err := os.ReadFile(archive); err != nil || !bytes.Equal(again, first) {
		t.Errorf("the archive differs: %v", err)
	}
}

// An archive that lacks a copy of a file, or has two that differ, is not taken for one that is up to date.
func TestBothCopiesOfAFileAreCompared(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.js"), []byte("run()"), 0o644); err != nil {
		t.Fatal(err)
	}
	for wanted, texts := range map[string][]string{
		"a.js is not there in every coding":        {"run()"},
		"a.js holds something else in each coding": {"run()", "walk()"},
		"a.js differs": {"walk()", "walk()"},
	} {
		path := filepath.Join(t.TempDir(), "dist.zip")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		archive := zip.NewWriter(file)
		for i, text := range texts {
			w, err := archive.Create("a.js" + codings[i].ending)
			if err != nil {
				t.Fatal(err)
			}
			if err := codings[i].compress(w, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, path, true); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q: %v", wanted, err)
		}
	}
}
