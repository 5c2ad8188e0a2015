package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// discreetError stands for one whose text tells where the database is, or who signs in to it.
type discreetError struct {
	text string
	err  error
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.err }

// discreet makes an error of PostgreSQL's driver fit for the log: what is wrong with a connection, and not its address,
// user or database. What the server says about a statement stays as it is.
func discreet(err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*discreetError](err); done {
		return err
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return &discreetError{"connecting to PostgreSQL failed: " + whatFailed(err), err}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return &discreetError{"the connection to PostgreSQL failed: " + whatFailed(err), err}
	}
	return err
}

func whatFailed(err error) string {
	// The server's own words quote the user or the database.
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "SQLSTATE " + pg.Code
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name was not found"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	for _, known := range []error{context.Canceled, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "this side refused the connection, for instance because of the certificate"
}
