package main

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret/argon"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
)

// tuneMemory fits the garbage collector to a server whose live data is a few megabytes: it collects when there is
// something to gain, and the limit makes it collect in time when much is in use. GOGC and GOMEMLIMIT win.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(runtime.GOMAXPROCS(0), cgroupMemory(os.DirFS("/"))))
	}
}

// releaseMemory gives back to the system what the first start has used and nothing needs again: the memory of a
// password hash, which a pool keeps over one collection, and what making keys has left.
func releaseMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}

// memoryLimit is how much memory the Go runtime should get along with: room for requests, for the cache, and for a
// password hash and its surroundings on every core. With 640 callers, 60 MiB of requests are in use, half of it a batch
// of imports: with less room than 96 MiB the collector does not rest, and everybody waits for it. Of what the cgroup
// allows it takes three quarters at most: SQLite and the kernel need some, too. No cgroup limit is 0.
func memoryLimit(cores int, cgroup int64) int64 {
	const requests, perCore = 96 << 20, argon.MemoryKiB<<10 + 5<<20
	limit := requests + cache.MaxBytes + int64(cores)*perCore
	if cgroup > 0 {
		limit = min(limit, cgroup/4*3)
	}
	return limit
}

// cgroupMemory is the smallest memory limit of the cgroups that this process is in, version 1 or 2; 0 where there is
// none. In a container the path may be the host's, so a directory that is not there says nothing, and the root counts
// always.
func cgroupMemory(root fs.FS) (least int64) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(groups)) { // 0::/a/b, or 5:memory:/a/b
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if slices.Contains(strings.Split(parts[1], ","), "memory") {
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for group := path.Join("/", parts[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(dir, group, file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 &&
				(least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
