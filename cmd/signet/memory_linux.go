package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram gives back the pages of the program itself that are in memory. Starting up walks through most of the
// program, serving needs a part of it: what is used again comes back from the page cache, a few pages at a time.
func releaseProgram() {
	path, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// 00400000-0142c000 r-xp 00000000 fe:00 1234  /usr/bin/signet
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || fields[5] != path || !strings.HasPrefix(fields[1], "r-") { // what is writable is not in the file
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), syscall.MADV_DONTNEED) // it is only advice
	}
}
