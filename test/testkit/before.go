package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ProgramBefore gives the path of the program of the version before, whose commit test/upgrade/VERSION names. In a
// clone without that commit the test fails where CI is set, and is skipped elsewhere.
func ProgramBefore(t testing.TB) string {
	t.Helper()
	binary, err := buildBefore()
	if errors.Is(err, errNoHistory) && os.Getenv("CI") == "" {
		t.Skip("NOT TESTED: ", err)
	}
	Must(t, err)
	return binary
}

var errNoHistory = errors.New("this clone does not have the commit that test/upgrade/VERSION names: fetch the whole history (git fetch --unshallow)")

// buildBefore builds the version before once: a commit does not change, so the program stays in .cache.
var buildBefore = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, "test/upgrade/VERSION"))
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(text))
	binary := filepath.Join(root, ".cache", "upgrade", commit)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if command(root, "git", "cat-file", "-e", commit+"^{commit}") != nil {
		return "", errNoHistory
	}
	source, err := os.MkdirTemp("", "signet-before")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source)
	if err := command(root, "sh", "-c", `git archive "$0" | tar -x -C "$1"`, commit, source); err != nil {
		return "", err
	}
	unfinished := fmt.Sprint(binary, ".", os.Getpid())
	if err := command(source, "go", "build", "-o", unfinished, "./cmd/signet"); err != nil {
		return "", err
	}
	return binary, os.Rename(unfinished, binary)
})

// repository is the directory of this repository: a test runs in that of its package.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "test/upgrade/VERSION")); err == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		err = errors.New("this is not the repository of Signet")
	}
	return "", err
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return nil
}
