//go:build unix

package silence

import (
	"net"
	"syscall"
)

// Quiet tells that a connection is there and that nothing has arrived on it since it was last read: its server has not
// ended it, as far as this machine has been told. It does not wait.
func Quiet(c net.Conn) (quiet bool) {
	switch outer := c.(type) {
	case interface{ NetConn() net.Conn }: // TLS
		return Quiet(outer.NetConn())
	case *conn:
		return Quiet(outer.Conn)
	case syscall.Conn:
		raw, err := outer.SyscallConn()
		if err != nil {
			return false
		}
		looked := raw.Control(func(fd uintptr) { // Read would wait for a goroutine that reads
			_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			quiet = err == syscall.EAGAIN
		})
		return looked == nil && quiet
	}
	return false
}
