package testkit

import (
	"net"
	"testing"
)

func TestAFreePortIsNobodyElses(t *testing.T) {
	had := map[string]bool{}
	for range 200 {
		port := FreePort(t)
		if had[port] {
			t.Fatalf("%s was given twice", port)
		}
		had[port] = true
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+FreePort(t))
	Must(t, err)
	Must(t, listener.Close())
}
