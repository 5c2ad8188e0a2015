package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clockTick is the unit of CPU time in /proc/PID/stat: 1/100 s for programs, whatever the kernel's own clock is.
const clockTick = 10_000 // µs

// process is what /proc/PID/stat says of a process.
type process struct {
	parent   int
	own      float64 // CPU, µs
	children float64 // CPU of children that have ended, µs
}

func readProcess(pid int) (process, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseStat(string(raw))
}

func parseStat(text string) (process, error) {
	// The name is in parentheses and may hold anything, more parentheses too.
	_, rest, _ := strings.Cut(text, "(")
	end := strings.LastIndexByte(rest, ')')
	if end < 0 {
		return process{}, errors.New("/proc: unexpected stat")
	}
	fields := strings.Fields(rest[end+1:])
	const parent, user, system, childUser, childSystem = 1, 11, 12, 13, 14
	if len(fields) <= childSystem {
		return process{}, errors.New("/proc: unexpected stat")
	}
	var n [childSystem + 1]int64
	for _, i := range []int{parent, user, system, childUser, childSystem} {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return process{}, fmt.Errorf("/proc: unexpected stat: %w", err)
		}
	}
	return process{
		parent:   int(n[parent]),
		own:      float64(n[user]+n[system]) * clockTick,
		children: float64(n[childUser]+n[childSystem]) * clockTick,
	}, nil
}

// Sizes in the status of a process: what it has in memory, and what of that is its alone.
const (
	resident = "VmRSS:"
	private  = "RssAnon:"
)

// readMemory gives a size out of the status of a process, in bytes.
func readMemory(pid int, size string) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), size); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc: no " + size)
}

// family gives the CPU of a process and all its children, also of those that have ended.
func family(pid int) (float64, error) {
	parent, err := readProcess(pid)
	if err != nil {
		return 0, err
	}
	sum := parent.own + parent.children
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if p, err := readProcess(child); err == nil && p.parent == pid {
			sum += p.own
		}
	}
	return sum, nil
}

// readBusy gives the CPU that everything on the machine has used, with what other machines took on the same hardware.
func readBusy() (float64, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(raw))
}

func parseBusy(text string) (float64, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const user, nice, system, irq, softIRQ, steal = 1, 2, 3, 6, 7, 8
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, errors.New("/proc: unexpected stat")
	}
	var sum float64
	for _, i := range []int{user, nice, system, irq, softIRQ, steal} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc: unexpected stat: %w", err)
		}
		sum += float64(n) * clockTick
	}
	return sum, nil
}

// usage is what a measured time cost.
type usage struct {
	server, database, client float64 // CPU, µs; NaN where unknown
	busy                     float64 // CPU of the whole machine, µs
	rss                      int64
}

// others is the CPU that none of the measured processes used.
func (u usage) others() float64 {
	rest := u.busy - u.client
	for _, known := range []float64{u.server, u.database} {
		if !math.IsNaN(known) {
			rest -= known
		}
	}
	return max(0, rest)
}

// meter watches processes while something is measured. The zero value watches this process only.
type meter struct {
	server   int // process ids; 0: none
	database int

	from usage
	stop chan struct{}
	done sync.WaitGroup
	most int64
}

func (m *meter) read() (u usage, err error) {
	u.server, u.database = math.NaN(), math.NaN()
	self, err := readProcess(os.Getpid())
	if err != nil {
		return u, err
	}
	u.client = self.own
	if u.busy, err = readBusy(); err != nil {
		return u, err
	}
	if m.server != 0 {
		p, err := readProcess(m.server)
		if err != nil {
			return u, err
		}
		u.server = p.own
	}
	if m.database != 0 {
		if u.database, err = family(m.database); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (m *meter) begin() (err error) {
	if m.from, err = m.read(); err != nil {
		return err
	}
	m.most = 0
	m.stop = make(chan struct{})
	if m.server != 0 {
		m.done.Go(m.watch)
	}
	return nil
}

// watch looks at the server's memory from time to time.
func (m *meter) watch() {
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		if rss, err := readMemory(m.server, resident); err == nil {
			m.most = max(m.most, rss)
		}
		select {
		case <-m.stop:
			return
		case <-ticks.C:
		}
	}
}

func (m *meter) end() (usage, error) {
	to, err := m.read()
	close(m.stop)
	m.done.Wait()
	return usage{
		server:   to.server - m.from.server,
		database: to.database - m.from.database,
		client:   to.client - m.from.client,
		busy:     to.busy - m.from.busy,
		rss:      m.most,
	}, err
}

// inMemory lists file systems that no disk stands behind: what is durable there costs nothing.
var inMemory = map[string]bool{"tmpfs": true, "ramfs": true, "devtmpfs": true}

// fileSystem gives the type of the file system a directory is on, as far as that is known.
func fileSystem(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "unknown"
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "unknown"
	}
	return mountedAt(string(mounts), abs)
}

func mountedAt(mounts, dir string) string {
	kind, longest := "unknown", -1
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := fields[1]
		inside := point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
		if inside && len(point) >= longest { // the last one mounted at a place hides those before
			kind, longest = fields[2], len(point)
		}
	}
	return kind
}

// temporaryDirectory makes a directory that is on a disk: in the one that is given, or in the first that will do.
func temporaryDirectory(given string) (string, error) {
	if given != "" {
		made, err := os.MkdirTemp(given, "signet-bench-")
		if err != nil {
			return "", err
		}
		return filepath.Abs(made)
	}
	for _, dir := range []string{os.TempDir(), "/var/tmp", "."} {
		if inMemory[fileSystem(dir)] {
			continue
		}
		if made, err := os.MkdirTemp(dir, "signet-bench-"); err == nil {
			return filepath.Abs(made)
		}
	}
	return "", errors.New("no temporary directory is on a disk: name one with -dir")
}
