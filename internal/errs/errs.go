// Package errs is the one error model of Signet.
//
// A rule that refuses says what kind of refusal it is, a stable reason a program can act on, and a sentence that
// tells a person what to do. No transport is known here: package rpc turns an Error into a status, and any
// error that is not an *Error is a bug whose text never leaves the server.
//
// Reasons are declared as constants in the package that raises them; docs/api/reasons.txt lists all of them and a
// test keeps that list complete. A reason never changes its meaning.
package errs

import (
	"errors"
	"strings"
	"time"
)

// Kind is the class of a refusal. It decides the status code on every protocol.
type Kind int

// The kinds, in the words of the API's documentation.
const (
	Internal Kind = iota // a bug, or something nobody foresaw
	InvalidArgument
	Unauthenticated
	PermissionDenied
	NotFound
	AlreadyExists
	Aborted
	FailedPrecondition
	ResourceExhausted
	Unimplemented
	Unavailable
	DeadlineExceeded
)

// Reason names one cause in upper case, such as USER_NAME_TAKEN.
type Reason string

// InvalidRequest is the reason of every refusal that comes with field violations.
const InvalidRequest Reason = "INVALID_REQUEST"

// Violation is one field that breaks its rule. Field is the path in JSON names, such as human.email.email or roles[1].
type Violation struct {
	Field   string
	Message string
}

// Error is a refusal. Message and Fields are shown to the caller, so they never hold a secret; Cause is only logged.
type Error struct {
	Kind       Kind
	Reason     Reason
	Message    string
	Fields     []Violation
	RetryAfter time.Duration // how long to wait before trying again; zero says nothing
	Cause      error
}

// New makes an Error of the given kind.
func New(kind Kind, reason Reason, message string) *Error {
	return &Error{Kind: kind, Reason: reason, Message: message}
}

// Invalid makes an InvalidArgument error out of field violations.
func Invalid(fields ...Violation) *Error {
	message := "the request is not valid"
	if len(fields) > 0 {
		parts := make([]string, len(fields))
		for i, f := range fields {
			parts[i] = strings.TrimSpace(f.Field + " " + f.Message)
		}
		message += ": " + strings.Join(parts, "; ")
	}
	return &Error{Kind: InvalidArgument, Reason: InvalidRequest, Message: message, Fields: fields}
}

// Because returns a copy of e that remembers its cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.Message
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is compare by kind and reason, so that declared errors work as sentinels.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Reason == e.Reason
}

// KindOf gives the kind of err; an error that is not an *Error is Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
