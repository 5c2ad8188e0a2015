package server

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// acceptSays is the time between two lines in the log about connections that cannot be accepted.
const acceptSays = 10 * time.Second

// accepting is a listener that says in the log why new connections cannot be accepted. net/http goes on trying, and
// says nothing that an operator sees.
type accepting struct {
	net.Listener
	log  *slog.Logger
	said time.Time
}

func (a *accepting) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && time.Since(a.said) >= acceptSays {
		a.said = time.Now()
		advice := ""
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			advice = ": raise the limit of open files (ulimit -n, or LimitNOFILE= in a systemd unit), or have the proxy keep fewer connections"
		}
		a.log.Warn("new connections cannot be accepted"+advice, "error", err)
	}
	return conn, err
}
