package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Program gives the path of the program of this version. It is the one that SIGNET_TEST_PROGRAM names, which
// scripts/test.sh builds once for all tests; without it, the program is built into dir.
func Program(dir string) (string, error) {
	if built := os.Getenv("SIGNET_TEST_PROGRAM"); built != "" {
		_, err := os.Stat(built) // by this, go test also knows that a cached result is of another program
		return built, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "signet")
	build := exec.Command("go", "build", "-o", path, "github.com/signet-idm/signet/cmd/signet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, output)
	}
	return path, nil
}

// RunWithProgram runs the tests of a package, with the path of the program of this version in binary. It gives the exit
// code.
func RunWithProgram(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "signet-program")
	if err == nil {
		defer os.RemoveAll(dir)
		*binary, err = Program(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Command prepares a run of the program. No setting of the tests' own environment gets through to it.
func Command(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "SIGNET_") || strings.HasPrefix(v, "PG")
	})
	return cmd
}
