package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// programPages counts the kilobytes of the program itself that are in memory.
func programPages(t *testing.T) (kilobytes int) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	ours := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if strings.Contains(fields[0], "-") {
			ours = len(fields) == 6 && fields[5] == path && strings.HasPrefix(fields[1], "r-")
		}
		if ours && fields[0] == "Rss:" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		}
	}
	return kilobytes
}

func TestWhatOnlyTheStartNeededIsGivenBack(t *testing.T) {
	before := programPages(t)
	releaseStart()
	if after := programPages(t); after*2 > before {
		t.Errorf("%d kB of the program were in memory, and %d kB still are", before, after)
	}
}
