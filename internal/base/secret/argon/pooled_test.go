//go:build !argon_library

package argon_test

import (
	"os/exec"
	"testing"
)

// The way out that the build tag is must be open on the day it is needed.
func TestTheBuildTagGivesTheSameKeys(t *testing.T) {
	if out, err := exec.Command("go", "test", "-tags", "argon_library", ".").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
