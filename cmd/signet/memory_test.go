package main

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheMemoryLimitFollowsFromCoresAndCgroup(t *testing.T) {
	const mebibyte = 1 << 20
	for _, c := range []struct {
		cores        int
		cgroup, want int64
	}{
		{2, 0, 160 * mebibyte},
		{1, 0, 136 * mebibyte},
		{16, 0, 496 * mebibyte},
		{2, 1024 * mebibyte, 160 * mebibyte},
		{2, 100 * mebibyte, 75 * mebibyte},
		{64, 1024 * mebibyte, 768 * mebibyte},
	} {
		if got := memoryLimit(c.cores, c.cgroup); got != c.want {
			t.Errorf("%d cores, %d bytes for the cgroup: %d, want %d", c.cores, c.cgroup, got, c.want)
		}
	}
}

func TestTheLimitOfACgroup(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no cgroups", nil, 0},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1000\n"}, 1000},
		{"without a limit", map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n"}, 0},
		{"the limit of a parent",
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n",
				"sys/fs/cgroup/a/memory.max": "900\n"}, 900},
		{"in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "800\n"}, 800},
		{"version 1", map[string]string{
			"proc/self/cgroup": "6:cpu,cpuacct:/x\n5:memory:/a\n1:name=systemd:/s\n0::/u\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "700\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/x/memory.max":                   "1\n",
		}, 700},
		{"version 1 in a container that sees the path of the host", map[string]string{
			"proc/self/cgroup":                           "5:memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "600\n",
		}, 600},
		{"outside of its own namespace",
			map[string]string{"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "500\n"}, 500},
		{"something else", map[string]string{"proc/self/cgroup": "nothing\n", "sys/fs/cgroup/memory.max": "500\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupMemory(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestTheOperatorsMemoryLimitWins runs itself again with GOMEMLIMIT, which the runtime reads when a process starts.
func TestTheOperatorsMemoryLimitWins(t *testing.T) {
	const variable = "GOMEMLIMIT"
	if os.Getenv(variable) != "" {
		tuneMemory()
		os.Stdout.WriteString("limit " + strconv.FormatInt(debug.SetMemoryLimit(-1), 10) + "\n")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=77MiB")
	if out, err := cmd.CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "limit "+strconv.Itoa(77<<20)+"\n") {
		t.Errorf("%v: %s", err, out)
	}
	before := debug.SetMemoryLimit(-1)
	percent := debug.SetGCPercent(100)
	defer func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	}()
	if tuneMemory(); debug.SetMemoryLimit(-1) == before {
		t.Error("nobody has set a limit")
	}
}
