package silence

import "syscall"

const tcpUserTimeout = 18 // of tcp(7); package syscall does not have it on every architecture

// control ends a connection whose machine has not confirmed for 3 s what was sent to it. The usual limit is a quarter
// of an hour.
func control(network, _ string, raw syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, 3000)
	}); err != nil {
		return err
	}
	return failed
}
