package progress

import (
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	var out strings.Builder
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	bar := func(terminal bool, total int64) *Bar {
		out.Reset()
		b := New(&out, terminal, "events", total)
		b.clock = func() time.Time { return now }
		b.began, b.last = now, now
		return b
	}
	b := bar(true, 200)
	b.Add(10)
	if out.Len() > 0 {
		t.Errorf("a terminal is drawn on too often: %q", out.String())
	}
	now = now.Add(time.Second)
	b.Add(90)
	if want := "\r\x1b[K[###############---------------]  50 %  100 of 200 events  100/s  1s left"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	now = now.Add(time.Second)
	b.Add(100)
	b.End()
	if want := "[##############################] 100 %  200 of 200 events  100/s\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want %q at the end", out.String(), want)
	}

	b = bar(false, 0)
	b.Add(1)
	now = now.Add(time.Second)
	b.Add(1)
	if out.Len() > 0 {
		t.Errorf("a file gets too many lines: %q", out.String())
	}
	now = now.Add(9 * time.Second)
	b.Add(8)
	if want := "10 events  1/s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}

	b.Say("the server is away")
	if want := "10 events  1/s\nthe server is away\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}

	b = bar(true, 1000)
	b.Before(800)
	now = now.Add(time.Second)
	b.Add(100)
	const drawn = "\r\x1b[K[###########################---]  90 %  900 of 1000 events  100/s  1s left"
	if out.String() != drawn {
		t.Errorf("what was done before counts as done now: %q, want %q", out.String(), drawn)
	}
	b.Say("the server is away")
	if want := drawn + "\r\x1b[Kthe server is away\n" + drawn; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}

	var none *Bar
	none.Add(1)
	none.Before(1)
	none.Say("nothing")
	none.End()
}
