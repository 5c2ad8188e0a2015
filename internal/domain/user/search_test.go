package user_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhoMaySearchWhere(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	long := strings.Repeat("x", 100)
	for i, id := range []string{"usr_1", "usr_2"} { // they are found by age
		org := []string{"org_a", "org_b"}[i]
		n := user.NewHuman{UserName: "anna", Email: "anna@" + org[4:] + ".example",
			Profile: user.Profile{FirstName: "Anna", LastName: long + org}}
		must(t, s.Do(t.Context(), event.Command{
			Write:  []event.Ref{user.Kind.Ref(id)},
			Claims: []event.Claim{user.NameClaim(org, syntax.NameKey("anna"))},
			Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, id, org, &n); return err },
		}))
	}
	in := func(scope string, roles ...access.Role) access.Permit {
		permit, err := (&access.Caller{UserID: "usr_caller", Memberships: access.Memberships{scope: roles}}).In("org_a",
			access.UserRead)
		must(t, err)
		return permit
	}
	supports, err := (&access.Caller{UserID: "usr_caller", Memberships: access.Memberships{
		"org_a": {access.OrgUserManager}, access.Installation: {access.IAMSupport}}}).In("org_a", access.UserRead)
	must(t, err)
	for _, c := range []struct {
		name       string
		permit     access.Permit
		query      string
		everywhere bool
		want       string
	}{
		{"in the own organization", in("org_a", access.OrgUserManager), "anna", false, "[usr_1]"},
		{"with a role of the installation", in(access.Installation, access.IAMOwnerViewer), "anna", false, "[usr_1]"},
		{"everywhere", in(access.Installation, access.IAMOwnerViewer), "anna", true, "[usr_1 usr_2]"},
		{"everywhere, by two words", in(access.Installation, access.IAMOwnerViewer), "b.ex anna", true, "[usr_2]"},
		{"everywhere, without a role of the installation", in("org_a", access.OrgOwner), "anna", true, "denied"},
		{"everywhere, as a manager of users who is support", supports, "anna", true, "[usr_1 usr_2]"},
		{"without a permit", access.Permit{}, "anna", false, "denied"},
		{"by a word that is longer than the index has it", in(access.Installation, access.IAMOwner), long + "org", true,
			"[usr_1 usr_2]"},
		{"by one that differs behind that", in(access.Installation, access.IAMOwner), long + "ORG_b", true, "[usr_2]"},
		{"by no word", in(access.Installation, access.IAMOwner), " - ", true, "[]"},
		{"by too many", in("org_a", access.OrgOwner), "a b c d e f g h i j k", false, "invalid"},
	} {
		found, next, err := user.Search(t.Context(), s, c.permit, c.query, c.everywhere, event.Cursor{}, 10)
		ids := []string{}
		for _, u := range found {
			ids = append(ids, u.ID)
		}
		got := fmt.Sprint(ids)
		if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.InvalidArgument {
			got = "invalid"
		} else if errors.Is(err, access.ErrDenied) {
			got = "denied"
		}
		if got != c.want || next != nil {
			t.Errorf("%s: %s, %v, %v, want %s", c.name, got, next, err, c.want)
		}
	}
}
