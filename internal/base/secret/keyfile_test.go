package secret

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAMissingKeyFileIsMadeOnlyWhenAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")

	_, created, err := LoadOrCreateKeyFile(path, false)
	if created || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Fatalf("not asked for: got %v, %v", created, err)
	}

	key, created, err := LoadOrCreateKeyFile(path, true)
	if !created || err != nil {
		t.Fatalf("asked for: got %v, %v", created, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file: got %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != string(key.Text())+"\n" {
		t.Fatalf("the file does not hold the key, or %v", err)
	}

	for _, create := range []bool{false, true} {
		again, created, err := LoadOrCreateKeyFile(path, create)
		if created || err != nil || !bytes.Equal(again.Text(), key.Text()) {
			t.Errorf("the next start, create=%v: got %v, %v", create, created, err)
		}
	}
}

func TestAKeyFileThatCannotBeTrustedIsRefusedAndKept(t *testing.T) {
	tests := map[string]struct {
		content string
		mode    fs.FileMode
		says    string
	}{
		"readable by the group": {goldenKey, 0o640, "chmod 600"},
		"readable by everybody": {goldenKey, 0o644, "mode 0644"},
		"writable by others":    {goldenKey, 0o602, "chmod 600"},
		"empty":                 {"", 0o600, "empty"},
		"no key":                {"not the master key", 0o600, "base64"},
		"longer than any key":   {strings.Repeat(goldenKey, 100), 0o600, "base64"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := errors.Join(os.WriteFile(path, []byte(test.content), 0o600),
				os.Chmod(path, test.mode)); err != nil {
				t.Fatal(err)
			}
			_, created, err := LoadOrCreateKeyFile(path, true)
			if created || err == nil {
				t.Fatal("it is accepted")
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not help: %v", err)
			}
			if test.content != "" && strings.Contains(err.Error(), test.content) {
				t.Errorf("the error quotes the file: %v", err)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != test.content {
				t.Errorf("the file was changed, or %v", err)
			}
		})
	}
}

func TestAKeyFileThatOnlyTheOwnerReadsIsAccepted(t *testing.T) {
	for _, mode := range []fs.FileMode{0o400, 0o600} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(goldenKey), mode); err != nil {
			t.Fatal(err)
		}
		if key, _, err := LoadOrCreateKeyFile(path, false); err != nil || string(key.Text()) != goldenKey {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

func TestAKeyFileIsNotMadeInAMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "master.key")
	if _, created, err := LoadOrCreateKeyFile(path, true); created || err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("got %v, %v", created, err)
	}
}

func TestManyStartsAtOnceNeverGetDifferentKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	var done sync.WaitGroup
	var mu sync.Mutex
	var makers int
	keys := map[string]bool{}
	for range 8 {
		done.Go(func() {
			key, created, err := LoadOrCreateKeyFile(path, true)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if !errors.Is(err, errEmptyKey) { // it came between the making and the writing
					t.Error(err)
				}
				return
			}
			if created {
				makers++
			}
			keys[string(key.Text())] = true
		})
	}
	done.Wait()
	if makers != 1 || len(keys) != 1 {
		t.Errorf("%d made a key, %d keys are in use", makers, len(keys))
	}
}
