package program

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestFootprint: Signet should be ready within 100 ms on existing data and need less than 40 MiB while idle. Machines
// that run tests are busy, so only far more than that is a failure.
func TestFootprint(t *testing.T) {
	const ready, memory = 100 * time.Millisecond, 40 << 10 // KiB
	eachEngine(t, func(t *testing.T, s *site) {
		s.start(t).stop(t)
		best := time.Hour
		var p *process
		for range 3 {
			if p != nil {
				p.stop(t)
			}
			began := time.Now()
			p = s.start(t)
			best = min(best, time.Since(began))
		}
		resident := residentKiB(t, p)
		t.Logf("ready %v after the process was started (%s by its own clock), %.1f MiB resident", best.Round(time.Millisecond), p.took, float64(resident)/1024)
		if best > 5*ready {
			t.Errorf("ready only after %v", best)
		}
		if resident > 2*memory {
			t.Errorf("%d KiB of memory", resident)
		}
	})
}

func residentKiB(t *testing.T, p *process) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
