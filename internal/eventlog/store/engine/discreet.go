package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signet-idm/signet/internal/eventlog/store/engine/silence"
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
		problem, _ := whatFailed(err)
		return &discreetError{"connecting to PostgreSQL failed: " + problem, err}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		problem, _ := whatFailed(err)
		return &discreetError{"the connection to PostgreSQL failed: " + problem, err}
	}
	return err
}

// whatFailed names the problem of each server that was tried. passing tells that one of the problems may be over
// without anybody's help.
func whatFailed(err error) (problem string, passing bool) {
	var problems []string
	for _, one := range tried(err) {
		text, may := whatFailedOnce(one)
		if passing = passing || may; !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
	}
	return strings.Join(problems, "; "), passing
}

// tried gives the errors of single servers, which the driver joins.
func tried(err error) []error {
	failed, connecting := errors.AsType[*pgconn.ConnectError](err)
	if !connecting {
		return []error{err}
	}
	for inner := error(failed); inner != nil; inner = errors.Unwrap(inner) {
		if joined, ok := inner.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return []error{err}
}

func whatFailedOnce(err error) (problem string, may bool) {
	// The server's own words quote the user or the database.
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "SQLSTATE " + pg.Code, passing(pg)
	}
	if errors.Is(err, errWrongRole) {
		return errWrongRole.Error(), true
	}
	if errors.Is(err, silence.Err) {
		return silence.Err.Error(), true
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error(), true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name was not found", true
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() ||
		errors.Is(err, context.DeadlineExceeded) {
		return "timeout", true
	}
	for _, known := range []error{context.Canceled, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error(), true
		}
	}
	return "this side refused the connection, for instance because of the certificate", false
}
