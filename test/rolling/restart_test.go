//go:build rolling

package rolling

import (
	"os"
	"strconv"
	"testing"
	"time"

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
			t.Logf("round %d, node %d: stopped in %.1f s, ready after %.1f s", round+1, i+1, stopped.Seconds(),
				started.Seconds())
		}
	}
	l.settle()
	if l.unknown > 0 {
		t.Errorf("%d requests have an unknown outcome", l.unknown)
	}
	c.finish(binary)
}

// beside is how long nodes of both versions run under load before the next one is replaced.
const beside = 10 * time.Second

// TestRollingUpgradeIsInvisible: the version before is replaced node by node. Clients repeat what its nodes refuse to
// change, no request has an unknown outcome, and nothing is lost or doubled.
func TestRollingUpgradeIsInvisible(t *testing.T) {
	before := testkit.ProgramBefore(t)
	binary, err := testkit.Program(t.TempDir())
	must(t, err)
	c := newCluster(t, before)
	l := newLoad(c)
	l.begin()
	for i := range c.nodes {
		wait(l.ctx, beside)
		stopped, started := c.replace(i, binary)
		t.Logf("node %d: stopped in %.1f s, ready after %.1f s", i+1, stopped.Seconds(), started.Seconds())
	}
	wait(l.ctx, beside)
	l.settle()
	if l.unknown > 0 {
		t.Errorf("%d requests have an unknown outcome", l.unknown)
	}
	c.finish(binary)
}
