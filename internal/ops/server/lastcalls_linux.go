package server

import (
	"net"
	"os"
	"syscall"
)

// acceptWaiting accepts all connections that wait in the listener's queue, and closes the listener. It waits for
// nothing and must be quick: a client that connects between the last accept and the close gets a reset.
func acceptWaiting(l *net.TCPListener) (waiting []net.Conn) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil
	}
	var accepted []int
	_ = raw.Control(func(listening uintptr) { // fails only when it is closed
		for {
			fd, _, err := syscall.Accept4(int(listening), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
			switch err {
			case nil:
				accepted = append(accepted, fd)
			case syscall.EINTR, syscall.ECONNABORTED:
			default: // mostly EAGAIN: no more
				return
			}
		}
	})
	_ = l.Close() // nothing was written
	for _, fd := range accepted {
		file := os.NewFile(uintptr(fd), "")
		if conn, err := net.FileConn(file); err == nil { // has a descriptor of its own
			waiting = append(waiting, conn)
		}
		_ = file.Close() // nothing was written
	}
	return waiting
}
