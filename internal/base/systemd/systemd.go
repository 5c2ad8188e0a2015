// Package systemd talks to systemd: it takes over the sockets that systemd has opened, and reports when the service is
// ready, alive and stopping. If systemd did not start the service, its environment variables are missing and the
// functions do nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// What a service tells systemd (sd_notify(3)).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	watchdog = "WATCHDOG=1"
)

// firstFD is the first descriptor that systemd passes on; others follow it.
const firstFD = 3

// Notify tells systemd a state. Where nobody listens, it does nothing.
func Notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	// a leading @ is the abstract namespace, for both
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling systemd %s: %w", state, err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("telling systemd %s: %w", state, err)
	}
	return nil
}

// Socket is a listener that systemd has opened.
type Socket struct {
	Name string // FileDescriptorName= of the socket unit; without it, the name of the unit
	net.Listener
}

// Sockets gives the sockets that systemd has passed on to this process. It takes the variables out of the environment:
// they are for this process alone, and once.
func Sockets() (sockets []Socket, err error) {
	defer func() {
		for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			err = errors.Join(err, os.Unsetenv(name))
		}
		if err != nil {
			for _, s := range sockets {
				s.Close()
			}
			sockets = nil
		}
	}()
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	count, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || count < 0 {
		return nil, errors.New("LISTEN_FDS must be the number of sockets")
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for i := range count {
		name := ""
		if len(names) == count {
			name = names[i]
		}
		file := os.NewFile(uintptr(firstFD+i), name)
		listener, err := net.FileListener(file) // has a descriptor of its own
		if err = errors.Join(err, file.Close()); err != nil {
			return sockets, fmt.Errorf("the socket %q of systemd: %w", name, err)
		}
		sockets = append(sockets, Socket{Name: name, Listener: listener})
	}
	return sockets, nil
}

// Watch tells systemd that the service is alive for as long as alive says so, until ctx ends. If the service hangs,
// systemd hears nothing and restarts it. It does nothing unless the unit has WatchdogSec=. failed hears of answers that
// were no good.
func Watch(ctx context.Context, alive func(ctx context.Context) error, failed func(error)) {
	limit := watchdogTime()
	if limit == 0 {
		return
	}
	every := time.NewTicker(limit / 3) // one answer may get lost
	defer every.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, limit/3)
		err := alive(asked)
		cancel()
		if err == nil {
			err = Notify(watchdog)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed(err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// watchdogTime is within which time systemd wants to hear from this process; 0: it does not.
func watchdogTime() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || micros <= 0 {
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}
