package account

import (
	"reflect"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/transport/pages"
)

func TestTheProfileChoosesItsTextsByReason(t *testing.T) {
	first := func(p user.Profile) errs.Violation { return p.Violations()[0] }
	long := strings.Repeat("x", syntax.MaxName+1)
	for _, c := range []struct {
		name  string
		wrong errs.Violation
		want  pages.Message
	}{
		{"an empty name", first(user.Profile{}), pages.Required()},
		{"a long name", first(user.Profile{FirstName: long}), pages.TooLong(syntax.MaxName)},
		{"a name that is not UTF-8", first(user.Profile{FirstName: "\xff"}), pages.NotValid()},
		{"other words for empty", errs.Violation{Reason: syntax.IsEmpty, Message: "x"}, pages.Required()},
		{"other words for long", errs.Violation{Reason: syntax.IsTooLong, Message: "x"}, pages.TooLong(syntax.MaxName)},
		{"the same words without a reason", errs.Violation{Message: syntax.Empty.Message}, pages.NotValid()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := inWords(c.wrong); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v is shown as %+v, want %+v", c.wrong, got, c.want)
			}
		})
	}
}
