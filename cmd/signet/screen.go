package main

import (
	"io"
	"os"

	"github.com/signet-idm/signet/internal/base/progress"
)

// stdout and stderr are the only ways to the operator's screen. What is printed may come from rows that somebody has
// changed, from files that somebody else has written and from servers elsewhere: no control character of it reaches the
// terminal.
var (
	stdout io.Writer = screen{os.Stdout}
	stderr io.Writer = screen{os.Stderr}
)

// screen writes everything but what a terminal would obey.
type screen struct{ to io.Writer }

func (s screen) Write(text []byte) (int, error) {
	if plain(text) {
		return s.to.Write(text)
	}
	if _, err := io.WriteString(s.to, progress.Visible(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// plain tells that a text has visible ASCII, spaces and line breaks alone, as nearly every line of the log does: each of
// its runes need not be looked up.
func plain(text []byte) bool {
	for _, b := range text {
		if (b < ' ' || b > '~') && b != '\n' {
			return false
		}
	}
	return true
}
