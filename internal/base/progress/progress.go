// Package progress shows a person at a terminal how far a long command has come. If the output is a log file, it writes
// a line now and then.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	redraw = 100 * time.Millisecond // on a terminal
	report = 10 * time.Second       // elsewhere: a line each
	width  = 30
)

// Bar shows how much of something is done. A nil one shows nothing. Safe for concurrent use.
type Bar struct {
	out      io.Writer
	what     string // such as "events"
	terminal bool
	clock    func() time.Time

	mu          sync.Mutex
	done, total int64 // total 0: nobody knows
	before      int64 // of done
	began, last time.Time
	drawn       bool
}

// New makes a bar on out. terminal says that a line can be drawn over.
func New(out io.Writer, terminal bool, what string, total int64) *Bar {
	b := &Bar{out: out, terminal: terminal, what: what, total: total, clock: time.Now}
	b.began = b.clock()
	b.last = b.began
	return b
}

// Before says that so much was done before this began, which tells nothing about how fast it is.
func (b *Bar) Before(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.before = b.done+n, b.before+n
}

// Visible writes out what a terminal would obey instead of showing it, as \\u and its number: control characters but
// for line breaks and tabs, and those that turn the direction of text. Within JSON it means the same as before.
func Visible(text string) string {
	return escaped(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

// Line is Visible without line breaks and tabs, for a text of others within a line of ours: it cannot look like a line
// of its own.
func Line(text string) string { return escaped(text, unicode.IsControl) }

func escaped(text string, control func(rune) bool) string {
	hidden := func(r rune) bool {
		return control(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
			r == utf8.RuneError
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Say writes a line that stays.
func (b *Bar) Say(line string) {
	if b == nil {
		return
	}
	line = Line(line)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.terminal {
		fmt.Fprintln(b.out, line)
		return
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s\n", line)
	b.draw(b.clock())
}

// Add says that so much more is done.
func (b *Bar) Add(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	now, pause := b.clock(), report
	if b.terminal {
		pause = redraw
	}
	if now.Sub(b.last) >= pause {
		b.last = now
		b.draw(now)
	}
}

// End shows the last state. It is for what comes to an end and for what is given up alike.
func (b *Bar) End() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw(b.clock())
	if b.terminal && b.drawn {
		fmt.Fprintln(b.out)
	}
}

func (b *Bar) draw(now time.Time) {
	took := now.Sub(b.began)
	line := fmt.Sprintf("%d %s", b.done, b.what)
	if b.total > 0 {
		part := min(float64(b.done)/float64(b.total), 1)
		full := int(part * width)
		line = fmt.Sprintf("[%s%s] %3.0f %%  %d of %d %s", strings.Repeat("#", full), strings.Repeat("-", width-full),
			100*part, b.done, b.total, b.what)
	}
	if seconds, here := took.Seconds(), b.done-b.before; seconds > 0 {
		line += fmt.Sprintf("  %.0f/s", float64(here)/seconds)
		if left := b.total - b.done; left > 0 && here > 0 {
			line += "  " + time.Duration(float64(took)*float64(left)/float64(here)).Round(time.Second).String() + " left"
		}
	}
	if b.terminal {
		fmt.Fprintf(b.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(b.out, line)
	}
	b.drawn = true
}
