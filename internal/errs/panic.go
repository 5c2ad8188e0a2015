package errs

import "runtime/debug"

// Panicked is a recovered panic. What it was about may quote what a stranger typed, so only where it happened is told.
type Panicked struct{ stack []byte }

func (p *Panicked) Error() string { return "panic in a lookup or an answer:\n" + string(p.stack) }

// Guarded makes an error of a panic: nobody above a goroutine would, and the process would end for what one stranger typed.
func Guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panicked{debug.Stack()}
		}
	}()
	return f()
}
