//go:build rolling

package rolling

import (
	"os"
	"strconv"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

// rounds is how often every node is replaced.
func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("SIGNET_ROLLING_ROUNDS"))
	if err != nil {
		return 2
	}
	return n
}

// TestRollingRestartIsInvisible: no request has an unknown outcome, and none is refused for longer than a try more.
func TestRollingRestartIsInvisible(t *testing.T) {
	binary, err := testkit.Program(t.TempDir())
	must(t, err)
	c := newCluster(t, binary)
	l := newLoad(c)
	l.begin()
	for round := range rounds(t) {
		for i := range c.nodes {
			stopped, started := c.replace(i, binary)
			t.Logf("round %d, node %d: stopped in %.1f s, ready after %.1f s", round+1, i+1, stopped.Seconds(), started.Seconds())
		}
	}
	l.settle()
	if l.unknown > 0 {
		t.Errorf("%d requests have an unknown outcome", l.unknown)
	}
	c.finish(binary)
}
