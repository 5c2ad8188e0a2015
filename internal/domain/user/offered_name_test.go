package user_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhatNameIsOffered(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	for _, name := range []string{"ann", "bob", "bob2", "bob3", "bob4"} {
		eventtest.Given(t, s, user.Kind, "usr_"+name, "org_a",
			[]event.Claim{user.NameClaim("org_a", name)}, user.ServiceAdded{Personal: user.ServiceFacts{UserName: name,
				UserNameKey: name}})
	}
	long := strings.Repeat("ö", syntax.MaxName)
	for _, c := range []struct{ like, org, want string }{
		{"colleague@acme.example", "org_a", "colleague"},
		{"Jo.Doe+news@acme.example", "org_a", "Jo.Doe+news"},
		{`"Jo Doe"@acme.example`, "org_a", "Jo Doe"},
		{`"jo\"@work"@acme.example`, "org_a", "jo"},
		{`"@"@acme.example`, "org_a", ""},
		{"jo＠acme.example", "org_a", "jo"},
		{"jo﹫acme.example@acme.example", "org_a", "jo"},
		{"jo", "org_a", "jo"},
		{" jo\t\n\x00 ", "org_a", "jo"},
		{"jo\xff", "org_a", "jo"},
		{"", "org_a", ""},
		{"@acme.example", "org_a", ""},
		{long, "org_a", long[:2*(syntax.MaxName-1)]},
		{"ANN@acme.example", "org_a", "ANN2"},
		{"ann@acme.example", "org_b", "ann"},
		{"bob@acme.example", "org_a", ""},
	} {
		got, err := user.OfferedName(t.Context(), s, c.org, c.like)
		if err != nil || got != c.want {
			t.Errorf("%q: got %q (%v), want %q", c.like, got, err, c.want)
		}
		if got != "" && (syntax.Name(got) != nil || user.ChosenName(got, "", false) != nil) {
			t.Errorf("%q is no name that anybody may choose", got)
		}
	}
}
