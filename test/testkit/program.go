package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
