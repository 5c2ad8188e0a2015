// Package errs is the one error model of Signet.
//
// A rule that refuses says what kind of refusal it is, a stable reason a program can act on, and a sentence that
// tells a person what to do. The table in package web says how callers see each kind. An error that is not an *Error
// is a bug: its text never leaves the server.
//
// Reasons are declared as constants in the package that raises them; docs/api/reasons.txt lists all of them and a
// test keeps that list complete. A reason never changes its meaning.
package errs

import (
	"errors"
	"fmt"
	"strconv"
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
	Cancelled // by the caller

	Kinds // how many there are
)

// Reason names one cause in upper case, such as USER_NAME_TAKEN.
type Reason string

// InvalidRequest is the reason of every refusal that comes with field violations.
const InvalidRequest Reason = "INVALID_REQUEST"

// CallerGone is the reason of what ended because nobody waits for it any more.
const CallerGone Reason = "CANCELLED"

// ErrGone is the answer that nobody reads.
var ErrGone = New(Cancelled, CallerGone, "the caller cancelled the request")

// Problem is what is wrong with a value; nil is nothing. Message continues the name of the field ("must not be empty")
// and never repeats the value.
//
// Reason is for code that tells problems apart, such as a page that has a text of its own for one. It is empty where no
// code does. Code never compares messages: they are for people, and may be reworded (test/repo checks it).
type Problem struct {
	Reason  ProblemReason
	Message string
}

// ProblemReason names one problem in upper case, such as EMPTY. It is declared as a constant in the package that finds
// the problem. Unlike a Reason it never leaves the server.
type ProblemReason string

// Plain is a problem without a reason; an empty message is no problem.
func Plain(message string) *Problem {
	if message == "" {
		return nil
	}
	return &Problem{Message: message}
}

// Violation is one field that breaks its rule. Field is the path in JSON names, such as human.email.email or roles[1].
// Reason and Message are those of a Problem.
type Violation struct {
	Field   string
	Reason  ProblemReason
	Message string
}

// Violations collects what is wrong with a request.
type Violations []Violation

// Add notes what is wrong with a field, if anything is.
func (v *Violations) Add(field string, problem *Problem) {
	if problem != nil {
		*v = append(*v, Violation{field, problem.Reason, problem.Message})
	}
}

// Err is the refusal, nil where nothing is wrong.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return Invalid(v...)
}

// Wrong refuses one field, if anything is wrong with it.
func Wrong(field string, problem *Problem) error {
	var wrong Violations
	wrong.Add(field, problem)
	return wrong.Err()
}

// Error is a refusal. Message and Fields are shown to the caller, so they never hold a secret; Cause and Note are only
// logged.
type Error struct {
	Kind       Kind
	Status     int // the HTTP status, if it is not that of the kind
	Reason     Reason
	Message    string
	Fields     []Violation
	RetryAfter time.Duration // how long to wait before trying again; zero says nothing
	Cause      error
	// what the operator should know and the caller should not; of what the caller sent, addresses alone, as
	// syntax.LoggedURL gives them
	Note string
	// Kept is for the code that answers: what the package that refuses keeps of it. It is neither shown nor logged.
	Kept any
}

// New makes an Error of the given kind.
func New(kind Kind, reason Reason, message string) *Error {
	return &Error{Kind: kind, Reason: reason, Message: message}
}

// Seconds is a wait in whole seconds, as callers are told it. It is rounded up: a caller who comes back then is served.
func Seconds(wait time.Duration) string {
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}

// How much of what is wrong an error says. Over gRPC all of it travels in trailers, the message twice and the rest in
// base64, and many clients take no more than 8 KiB of them.
const (
	MaxViolations = 50 // per error

	maxText  = 3 << 10 // bytes of violations
	maxNamed = 5       // violations in the message
	maxNames = 500     // bytes of them, but for the first
)

// Invalid makes an InvalidArgument error out of field violations. It keeps as many of them, from the front, as an
// answer can hold; its message names the first few and counts the others.
func Invalid(fields ...Violation) *Error {
	message := "the request is not valid"
	kept, named, text, names := 0, 0, 0, 0
	for i, f := range fields {
		said := strings.TrimSpace(f.Field + " " + f.Message)
		if text += len(said); i > 0 && (i == MaxViolations || text > maxText) {
			break
		}
		kept++
		if names += len(said); named == i && (i == 0 || i < maxNamed && names <= maxNames) {
			message += separators[min(i, 1)] + said
			named++
		}
	}
	if more := len(fields) - named; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return &Error{Kind: InvalidArgument, Reason: InvalidRequest, Message: message, Fields: fields[:kept]}
}

var separators = [...]string{": ", "; "}

// Because returns a copy of e that remembers its cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Noting returns a copy of e that tells the operator more than the caller.
func (e *Error) Noting(why string) *Error {
	c := *e
	c.Note = why
	return &c
}

// WithStatus returns a copy of e that has an HTTP status of its own.
func (e *Error) WithStatus(status int) *Error {
	c := *e
	c.Status = status
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
