package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// Trouble is why a call failed, as far as it may be told to whoever chose the address. An address that is not called is
// one trouble, whatever is there: it is told before anything is sent.
type Trouble int

// The troubles of a call.
const (
	Unclear     Trouble = iota // none of the others
	NotCalled                  // ErrRefused
	UnknownName                // DNS does not know the host
	NoRoute                    // the network of the address cannot be reached
	Closed                     // nothing listens at the port
	Hungup                     // the other side ended the connection before its answer
	Late                       // it did not answer in time
	Untrusted                  // its certificate
	NoTLS                      // it does not speak TLS at this port, or no version or cipher of ours
)

// TroubleOf tells what a call failed with.
func TroubleOf(err error) Trouble {
	_, dns := errors.AsType[*net.DNSError](err)
	timeout, network := errors.AsType[net.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	side, op := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, ErrRefused):
		return NotCalled
	case errors.Is(err, context.DeadlineExceeded), network && timeout.Timeout():
		return Late
	case dns:
		return UnknownName
	case certificate:
		return Untrusted
	case record, op && (side.Op == "remote error" || side.Op == "local error"): // what crypto/tls calls its alerts
		return NoTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return Closed
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return NoRoute
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return Hungup
	}
	return Unclear
}
