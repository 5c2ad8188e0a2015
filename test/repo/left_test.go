package repo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

// The check of .ci/run names a process that a test has left behind, and no other.
func TestAProcessThatIsLeftBehindIsNamed(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("this system does not show the environment of processes")
	}
	const mark = "left-test"
	look := func() (string, error) {
		out, err := exec.Command("../../scripts/left-behind.sh", mark, "0").CombinedOutput()
		return string(out), err
	}
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), "TEST_RUN_MARK="+mark)
	other := exec.Command("sleep", "601")
	other.Env = append(os.Environ(), "TEST_RUN_MARK="+mark+"-of-another-run")
	for _, c := range []*exec.Cmd{left, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		testkit.Await(t, "the system shows its environment", func() bool { // a moment after the start
			environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.Process.Pid))
			return err == nil && bytes.Contains(environment, []byte(mark))
		})
	}
	if out, err := look(); err == nil || !strings.Contains(out, "sleep 600") || strings.Contains(out, "sleep 601") {
		t.Errorf("%v: %s", err, out)
	}
	_ = left.Process.Kill()
	_ = left.Wait()
	if out, err := look(); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
}
