package errs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
)

func TestAnErrorOfAnotherTypeIsInternal(t *testing.T) {
	refusal := errs.New(errs.NotFound, "THING_NOT_FOUND", "there is no such thing")
	for _, c := range []struct {
		name string
		err  error
		want errs.Kind
	}{
		{"a plain error", errors.New("disk on fire"), errs.Internal},
		{"no error at all", nil, errs.Internal},
		{"a refusal", refusal, errs.NotFound},
		{"a refusal wrapped in context", fmt.Errorf("reading: %w", refusal), errs.NotFound},
		{"a refusal with a cause", refusal.Because(errors.New("disk on fire")), errs.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errs.KindOf(c.err); got != c.want {
				t.Errorf("kind %d, want %d", got, c.want)
			}
		})
	}
}

func TestRefusalsCompareByKindAndReason(t *testing.T) {
	declared := errs.New(errs.NotFound, "THING_NOT_FOUND", "there is no such thing")
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"itself", declared, true},
		{"another message", errs.New(errs.NotFound, "THING_NOT_FOUND", "gone"), true},
		{"with a cause", declared.Because(errors.New("x")), true},
		{"inside another error", fmt.Errorf("reading: %w", declared), true},
		{"another reason", errs.New(errs.NotFound, "OTHER_NOT_FOUND", "there is no such thing"), false},
		{"another kind", errs.New(errs.Aborted, "THING_NOT_FOUND", "there is no such thing"), false},
		{"a plain error", errors.New("THING_NOT_FOUND: there is no such thing"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errors.Is(c.err, declared); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestACauseIsKeptForTheLogAndOutOfTheMessage(t *testing.T) {
	declared := errs.New(errs.Unavailable, "STORAGE", "try again")
	cause := errors.New("postgres://secret@db refused")
	err := declared.Because(cause)
	if !errors.Is(err, cause) {
		t.Error("the cause cannot be found")
	}
	if err.Message != "try again" {
		t.Errorf("the message became %q", err.Message)
	}
	if declared.Cause != nil {
		t.Error("the declared error was changed for everybody")
	}
	if !strings.Contains(err.Error(), cause.Error()) {
		t.Error("the log would not show the cause")
	}
}

func TestAStatusBelongsToACopy(t *testing.T) {
	declared := errs.New(errs.Unimplemented, "NO_SUCH_METHOD", "use another method")
	if err := declared.WithStatus(405); err.Status != 405 || !errors.Is(err, declared) || declared.Status != 0 {
		t.Errorf("got %+v of %+v", err, declared)
	}
}

func TestInvalidSaysNoMoreThanAnAnswerHolds(t *testing.T) {
	many := func(n, size int) (all []errs.Violation) {
		for i := range n {
			all = append(all, errs.Violation{Field: fmt.Sprintf("f%d", i), Message: strings.Repeat("x", size)})
		}
		return all
	}
	for _, c := range []struct {
		name       string
		fields     []errs.Violation
		kept, said int
		ending     string
	}{
		{"five", many(5, 10), 5, 5, "f4 xxxxxxxxxx"},
		{"one more than the message names", many(6, 10), 6, 5, "; and 1 more"},
		{"as many as there may be", many(errs.MaxViolations, 10), errs.MaxViolations, 5, "; and 45 more"},
		{"more than there may be", many(1000, 10), errs.MaxViolations, 5, "; and 995 more"},
		{"long ones", many(20, 400), 7, 1, "; and 19 more"},
		{"a very long one is there all the same", many(2, 5000), 1, 1, "; and 1 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := errs.Invalid(c.fields...)
			if len(err.Fields) != c.kept ||
				strings.Count(err.Message, "x f")+strings.Count(err.Message, "x; f")+1 != c.said ||
				!strings.HasSuffix(err.Message, c.ending) {
				t.Errorf("%d violations: %s", len(err.Fields), err.Message)
			}
		})
	}
}

func TestViolationsKeepTheReasonsOfTheirProblems(t *testing.T) {
	var wrong errs.Violations
	wrong.Add("a", nil)
	wrong.Add("b", errs.Plain(""))
	if wrong.Err() != nil || errs.Wrong("a", nil) != nil {
		t.Errorf("no problem became %v", wrong)
	}
	wrong.Add("c", errs.Plain("is odd"))
	wrong.Add("d", &errs.Problem{Reason: "WRONG", Message: "is wrong"})
	want := []errs.Violation{{Field: "c", Message: "is odd"}, {Field: "d", Reason: "WRONG", Message: "is wrong"}}
	refused, ours := errors.AsType[*errs.Error](wrong.Err())
	if !ours || !slices.Equal(refused.Fields, want) {
		t.Fatalf("got %+v, want %+v", wrong, want)
	}
	if strings.Contains(refused.Error(), "WRONG") {
		t.Errorf("the reason of a problem leaves the server: %v", refused)
	}
}

func TestInvalidNamesEveryField(t *testing.T) {
	for _, c := range []struct {
		name    string
		fields  []errs.Violation
		message string
	}{
		{"none", nil, "the request is not valid"},
		{"one", []errs.Violation{{Field: "org.name", Message: "must not be empty"}},
			"the request is not valid: org.name must not be empty"},
		{"two", []errs.Violation{{Field: "a", Message: "is wrong"}, {Field: "b[1]", Message: "too"}},
			"the request is not valid: a is wrong; b[1] too"},
		{"the body as a whole", []errs.Violation{{Message: "is not JSON"}}, "the request is not valid: is not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := errs.Invalid(c.fields...)
			if err.Kind != errs.InvalidArgument || err.Reason != errs.InvalidRequest ||
				len(err.Fields) != len(c.fields) {
				t.Errorf("got %+v", err)
			}
			if err.Message != c.message {
				t.Errorf("message %q, want %q", err.Message, c.message)
			}
		})
	}
}
