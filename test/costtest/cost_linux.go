package costtest

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Most is what reading the request of a stranger may cost, besides one password hash.
const Most = 50 * time.Millisecond

// below is too short to tell how a cost grows.
const below = 10 * time.Millisecond

// CPU measures the processor time of some work, not the time on the wall: the machine may be busy. The work has to be
// done by the goroutine that calls. The best of several runs counts; one that is cheap is enough.
func CPU(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Hour
	for range 5 {
		before := used()
		work()
		if best = min(best, used()-before); best < below || best > 10*Most {
			break
		}
	}
	return best
}

// used is the processor time of this thread so far. What getrusage tells is only as fine as the kernel's ticks.
func used() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// Bounded fails where the work for a text costs more than Most at its full size, in bytes, or grows faster than the
// text does.
func Bounded(t *testing.T, size int, work func(text string)) {
	t.Helper()
	for _, a := range Alphabets {
		Grows(t, a.Name, size, Most, func(size int) func() {
			text := a.Text(size)
			return func() { work(text) }
		})
	}
}

// Grows is Bounded for one kind of input and another bound. make prepares the work for a size.
func Grows(t *testing.T, name string, size int, most time.Duration, make func(size int) func()) {
	t.Helper()
	size = max(size/slower, min(size, 4000))
	if part := CPU(make(size / 16)); part > most { // nobody wants to wait for the rest
		t.Errorf("%s: %d bytes cost %v", name, size/16, part)
		return
	}
	whole := CPU(make(size))
	if whole > most {
		t.Errorf("%s: %d bytes cost %v", name, size, whole)
	}
	if whole < below {
		return
	}
	// Where it grows with the square, a quarter of the size costs a sixteenth. Caches and a busy machine account for
	// the rest.
	if quarter := CPU(make(size / 4)); whole > 9*quarter {
		t.Errorf("%s: %d bytes cost %v, and four times as many %v", name, size/4, quarter, whole)
	}
}
