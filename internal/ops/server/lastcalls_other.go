//go:build !linux

package server

import "net"

// acceptWaiting is for Linux only, where servers run.
func acceptWaiting(*net.TCPListener) []net.Conn { return nil }
