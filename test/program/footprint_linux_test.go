package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

// TestFootprint: Signet's private memory when idle should be at most 15 MiB. The pages of the program itself do not
// count: the kernel shares them and takes them back.
func TestFootprint(t *testing.T) {
	const memory = 15 << 10 // KiB
	eachEngine(t, func(t *testing.T, s *site) {
		first := s.start(t)
		testkit.Await(t, "the memory of the password that the first start has hashed is given back",
			func() bool { return statusKiB(t, first, "RssAnon") <= memory })
		first.stop(t)
		p := s.start(t)
		private := statusKiB(t, p, "RssAnon")
		t.Logf("%.1f MiB private, %.1f MiB resident", float64(private)/1024, float64(statusKiB(t, p, "VmRSS"))/1024)
		testkit.Await(t, "it has as little private memory as it should have when idle",
			func() bool { return statusKiB(t, p, "RssAnon") <= memory })
	})
}

// TestSize: what is released, without the tables for debuggers, has less than 49 MB.
func TestSize(t *testing.T) {
	const most = 50_000_000
	if runtime.GOARCH != "amd64" {
		t.Skip("the bound is that of the program for amd64")
	}
	path := filepath.Join(t.TempDir(), "signet")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path,
		"github.com/signet-idm/signet/cmd/signet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > most {
		t.Errorf("the program has %d bytes: go tool nm -size -sort size shows what is in it, and -ldflags=-dumpdep why", info.Size())
	}
}

// statusKiB reads a size out of the status of a process: VmRSS is what it has in memory, VmHWM the most it ever had,
// RssAnon what of VmRSS is its alone.
func statusKiB(t *testing.T, p *process, field string) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\n"+field+":"))
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
