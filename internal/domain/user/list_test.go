package user_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhoIsListed(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	long := strings.Repeat("𝕊", 150) // one character of four bytes becomes one letter of one byte
	wide := strings.Repeat("字", 150)
	for _, p := range []struct{ id, org, userName, name, email string }{
		{"usr_1", "org_a", "Zoë", "Émile", "Zoe@Example.org"},
		{"usr_2", "org_a", "zora", "emil", "emil@example.org"},
		{"usr_3", "org_a", "adam", "ÉMILE the 2nd", "adam@example.org"},
		{"usr_4", "org_a", "gone", "Émile", "gone@example.org"},
		{"usr_5", "org_b", "zoë", "Émile", "zoe@example.org"},
		{"usr_6", "org_a", wide + "1", "x", "x1@example.org"},
		{"usr_7", "org_a", wide + "2", "x", "x2@example.org"},
	} {
		n := user.NewHuman{UserName: p.userName, Email: p.email,
			Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: p.name}}
		must(t, s.Do(t.Context(), event.Command{
			Write:  []event.Ref{user.Kind.Ref(p.id)},
			Claims: []event.Claim{user.NameClaim(p.org, syntax.NameKey(p.userName))},
			Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, p.id, p.org, &n); return err },
		}))
	}
	must(t, service(t, s, "usr_8", "org_a", "zobot"))
	eventtest.Given(t, s, user.Kind, "usr_2", "", nil, user.Deactivated{})
	eventtest.Given(t, s, user.Kind, "usr_3", "", nil, user.WasLocked{})
	eventtest.Given(t, s, user.Kind, "usr_4", "", nil, user.WasRemoved{})
	p := permit(t, "org_a", manager)
	for _, c := range []struct {
		name   string
		filter user.Filter
		want   string
	}{
		{"everybody, the oldest first", user.Filter{}, "[1 2 3 6 7 8]"},
		{"by user name, in the order of names", user.Filter{UserName: "ZO"}, "[8 2 1]"},
		{"by user name in full width", user.Filter{UserName: "Ｚｏ"}, "[8 2 1]"},
		{"by user name with an accent", user.Filter{UserName: "ZOË"}, "[1]"},
		{"by display name, also that of services", user.Filter{Name: "É"}, "[1 3]"},
		{"by the name of a service", user.Filter{Name: "ROB"}, "[8]"},
		{"by e-mail", user.Filter{Email: "ZOE@example"}, "[1]"},
		{"by an e-mail that nobody can have", user.Filter{Email: "ｚ"}, "[]"},
		{"no pattern", user.Filter{UserName: "z%"}, "[]"},
		{"a beginning only", user.Filter{UserName: "obot"}, "[]"},
		{"by state", user.Filter{State: user.Inactive}, "[2]"},
		{"by type", user.Filter{Type: user.IsService}, "[8]"},
		{"by all of it", user.Filter{UserName: "z", State: user.Active, Type: user.IsHuman}, "[1]"},
		{"removed users are in no list", user.Filter{State: user.Removed}, "[]"},
		{"by more than the column holds", user.Filter{UserName: wide + "2"}, "[7]"},
		{"by a text that folds to less", user.Filter{UserName: long}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, limit := range []int{100, 1} {
				ids := []string{}
				after := event.Cursor{}
				for range 20 {
					found, next, err := user.List(t.Context(), s, p, c.filter, after, limit)
					must(t, err)
					for _, u := range found {
						ids = append(ids, strings.TrimPrefix(u.ID, "usr_"))
					}
					if next == nil {
						break
					}
					after = *next
				}
				if fmt.Sprint(ids) != c.want {
					t.Errorf("pages of %d: got %v, want %s", limit, ids, c.want)
				}
			}
		})
	}
	if _, _, err := user.List(t.Context(), s, access.Permit{}, user.Filter{}, event.Cursor{}, 10); err == nil {
		t.Error("without a permit, everybody everywhere is listed")
	}
	other, _, err := user.List(t.Context(), s, permit(t, "org_b", access.Memberships{"org_b": {access.OrgOwner}}),
		user.Filter{}, event.Cursor{}, 10)
	if must(t, err); !slices.ContainsFunc(other, func(u *event.Object[user.User]) bool { return u.ID == "usr_5" }) ||
		len(other) != 1 {
		t.Errorf("%d users are in the other organization", len(other))
	}
}
