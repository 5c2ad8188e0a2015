package errs

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Panicked is a recovered panic, for the log. It holds no value that code has panicked with, which may quote a caller.
type Panicked struct {
	what  string
	Stack string
}

func (p *Panicked) Error() string { return "panic: " + p.what }

// Recovered makes an error of what recover has returned.
func Recovered(value any) *Panicked {
	what := fmt.Sprintf("a %T", value)
	if e, ok := value.(runtime.Error); ok {
		what = e.Error()
	}
	return &Panicked{what: what, Stack: string(debug.Stack())}
}

// Guarded makes an error of a panic. A goroutine needs it: a panic there ends the process.
func Guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(p)
		}
	}()
	return f()
}
