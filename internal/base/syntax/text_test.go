package syntax

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
)

func TestTextsAreRefusedForReasons(t *testing.T) {
	most, tooLong := strings.Repeat("ü", MaxName), strings.Repeat("ü", MaxName+1)
	email := func(s string) *errs.Problem { _, problem := Email(s); return problem }
	phone := func(s string) *errs.Problem { _, problem := Phone(s); return problem }
	domain := func(s string) *errs.Problem { _, problem := Domain(s); return problem }
	text := func(s string) *errs.Problem { return Text(s, MaxName) }
	for _, c := range []struct {
		name   string
		judge  func(string) *errs.Problem
		in     string
		fine   bool
		reason errs.ProblemReason
	}{
		{"a name", Name, "Mara", true, ""},
		{"a name of the greatest length", Name, most, true, ""},
		{"a name that is empty", Name, "", false, IsEmpty},
		{"a name that is too long", Name, tooLong, false, IsTooLong},
		{"a name that is not UTF-8", Name, "a\xff", false, ""},
		{"a name with a NUL", Name, "a\x00", false, ""},
		{"a text that is empty", text, "", true, ""},
		{"a text that is too long", text, tooLong, false, IsTooLong},
		{"an e-mail address that is empty", email, "", false, IsEmpty},
		{"no e-mail address", email, "mara", false, ""},
		{"a telephone number that is empty", phone, "", false, IsEmpty},
		{"no telephone number", phone, "12", false, ""},
		{"a domain that is empty", domain, "", false, IsEmpty},
		{"a domain that is too long", domain, tooLong, false, IsTooLong},
		{"no domain", domain, "a b", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			problem := c.judge(c.in)
			if c.fine && problem != nil ||
				!c.fine && (problem == nil || problem.Message == "" || problem.Reason != c.reason) {
				t.Errorf("got %+v, want fine %t or the reason %q", problem, c.fine, c.reason)
			}
		})
	}
}
