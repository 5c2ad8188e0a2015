package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhoALoginNameFinds(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "jo@mail.test")
	person(t, s, "usr_jo_b", "org_b", "Jo", "jo@mail.test")
	person(t, s, "usr_at", "org_def", "ann@b.test", "")
	person(t, s, "usr_ann_b", "org_b", "ann", "")
	person(t, s, "usr_twin1", "org_def", "twin1", "twin@mail.test")
	person(t, s, "usr_twin2", "org_def", "twin2", "twin@mail.test")
	person(t, s, "usr_only_b", "org_b", "only", "only@mail.test")
	person(t, s, "usr_max", "org_def", "max", "max@mail.test")
	person(t, s, "usr_called", "org_def", "max@mail.test", "")
	person(t, s, "usr_una", "org_def", "una", "")
	person(t, s, "usr_gone", "org_def", "gone", "gone@mail.test")
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	for _, c := range []struct {
		name, login, org, want string
	}{
		{"a user name with a verified domain", "jo@def.test", "", "usr_jo"},
		{"in any case and width", "ＪＯ@DEF.Test", "", "usr_jo"},
		{"with the domain of another organization", "jo@b.test", "", "usr_jo_b"},
		{"with a domain that is not verified: nobody", "jo@nope.test", "", ""},
		{"with a domain nobody has: nobody", "jo@x.test", "", ""},
		{"with a domain whose organization has no such user: nobody", "una@b.test", "", ""},
		{"a bare name means the default organization", "jo", "", "usr_jo"},
		{"a bare name means the organization named", "jo", "org_b", "usr_jo_b"},
		{"a bare name of another organization: nobody", "only", "", ""},
		{"a verified e-mail in the default organization", "jo@mail.test", "", "usr_jo"},
		{"a verified e-mail in any case", "JO@Mail.TEST", "", "usr_jo"},
		{"a verified e-mail in the organization named", "jo@mail.test", "org_b", "usr_jo_b"},
		{"an e-mail of another organization: nobody", "only@mail.test", "", ""},
		{"an e-mail that two have: who was there first", "twin@mail.test", "", "usr_twin1"},
		{"an e-mail that is not verified: nobody", "una@mail.test", "", ""},
		{"the organization named has the domain", "jo@b.test", "org_b", "usr_jo_b"},
		{"the organization named does not have the domain: nobody", "jo@b.test", "org_def", ""},
		{"the domain comes before a user name with an @", "ann@b.test", "", "usr_ann_b"},
		{"a user name with an @ where the domain is of another organization", "ann@b.test", "org_def", "usr_at"},
		{"a user name with an @ and a domain", "ann@b.test@def.test", "", "usr_at"},
		{"a user name comes before an e-mail", "max@mail.test", "", "usr_called"},
		{"a removed user: nobody", "gone", "", ""},
		{"the e-mail of a removed user: nobody", "gone@mail.test", "", ""},
		{"an unknown organization: nobody", "jo", "org_x", ""},
		{"an unknown organization and a domain: nobody", "jo@def.test", "org_x", ""},
		{"nothing before the @: nobody", "@def.test", "", ""},
		{"nothing after the @: nobody", "jo@", "", ""},
		{"nothing: nobody", "", "", ""},
		{"white space counts", " jo", "", ""},
		{"a domain behind a full-width @", "jo＠def.test", "", "usr_jo"},
		{"a domain behind a small @", "jo﹫def.test", "", "usr_jo"},
		{"a verified e-mail in any width", "ｊo＠mail.test", "", "usr_jo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, _, err := sessions.find(t.Context(), c.login, NameScope{Org: c.org})
			must(t, err)
			got := ""
			if u != nil {
				got = u.ID
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// A thousand twins, however they came about, leave the owner of an address the way in, and cost no more than one.
func TestATwinNeverTakesSomebodysWayInAway(t *testing.T) {
	s, sessions := world(t)
	verified := func(id string, v *user.Verification) {
		eventtest.Given(t, s, user.Kind, id, "org_def", []event.Claim{user.NameClaim("org_def", id)}, user.HumanAdded{
			EmailVerified: true,
			Verification:  v,
			Personal: user.HumanFacts{UserName: id, UserNameKey: id, Email: "jo@mail.test",
				EmailKey: "jo@mail.test"},
		})
	}
	for i := range 1000 {
		verified(fmt.Sprintf("usr_%04d", i), &user.Verification{By: user.VerifiedByInstallation, At: int64(i + 1)})
	}
	verified("usr_owner", &user.Verification{By: user.VerifiedByOwner, At: 1_000_000})
	counting := &lookups{Store: s}
	sessions.Store = counting
	u, _, err := sessions.find(t.Context(), "JO@mail.test", NameScope{})
	must(t, err)
	if u == nil || u.ID != "usr_owner" || counting.queries != 2 {
		t.Errorf("found %v after %d queries", u, counting.queries)
	}
	eventtest.Given(t, s, user.Kind, "usr_owner", "", nil, user.WasRemoved{})
	if u, _, err = sessions.find(t.Context(), "jo@mail.test", NameScope{}); err != nil || u == nil ||
		u.ID != "usr_0000" {
		t.Errorf("found %v, %v", u, err)
	}
}

// A name that nobody has is written in as many ways as one that somebody has. The throttle must count all of them
// together in both cases, or the sixth attempt in another spelling tells whether the user exists.
func TestEverySpellingOfAnUnknownNameIsOneAccount(t *testing.T) {
	_, sessions := world(t)
	key := func(login, org string) string {
		_, nobody, err := sessions.find(t.Context(), login, NameScope{Org: org})
		must(t, err)
		return strings.Join(nobody.Parts(), "|")
	}
	want := key("bob", "")
	for _, c := range [][2]string{{"BOB", ""}, {"bob@def.test", ""}, {"Bob@DEF.test", ""}, {"bob", "org_def"},
		{"bob@def.test", "org_def"}} {
		if got := key(c[0], c[1]); got != want {
			t.Errorf("%q in %q is counted as %s, not %s", c[0], c[1], got, want)
		}
	}
	for _, c := range [][2]string{{"bob", "org_b"}, {"bob@b.test", ""}, {"bobby", ""}, {"bob@b.test", "org_def"}} {
		if got := key(c[0], c[1]); got == want {
			t.Errorf("%q in %q is another name, but counted together", c[0], c[1])
		}
	}
}

func TestALongLoginNameIsNotReadAsADomain(t *testing.T) {
	_, sessions := world(t)
	var name strings.Builder
	name.WriteString("jo@")
	for i := 0; name.Len() < 200_000; i++ {
		name.WriteRune(rune(0x4e00 + i%20000))
	}
	u, _, err := sessions.find(t.Context(), name.String(), NameScope{})
	if u != nil || err != nil {
		t.Errorf("found %v, %v", u, err)
	}
}

// lookups counts what is asked of the store.
type lookups struct {
	event.Store
	queries, ways int
}

func (l *lookups) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	l.queries++
	l.ways += len(ways)
	return l.Store.Find(ctx, ways)
}

// Folding such a name takes more than a second of a processor, for anybody and before any throttle.
func TestALoginNameThatNobodyCanHaveIsNotFoldedAndNotLookedUp(t *testing.T) {
	s, sessions := world(t)
	long := strings.Repeat("\ufdfa", 340_000)
	counting := &lookups{Store: s}
	sessions.Store = counting
	u, nobody, err := sessions.find(t.Context(), long, NameScope{})
	must(t, err)
	if u != nil || counting.ways != 0 {
		t.Errorf("found %v after %d lookups", u, counting.ways)
	}
	if size := len(strings.Join(nobody.Parts(), "")); size > 200 || nobody.Kind != "long name" {
		t.Errorf("the throttle is given %q and more, %d bytes", nobody.Kind, size)
	}
	if _, other, _ := sessions.find(t.Context(), long+"x", NameScope{}); other == nobody {
		t.Error("two long names are counted as one")
	}
	if _, other, _ := sessions.find(t.Context(), long, NameScope{Org: "org_b"}); other == nobody {
		t.Error("one name in two organizations is counted as one")
	}
}

func TestTheLongestNamesAreStillFound(t *testing.T) {
	s, sessions := world(t)
	name := strings.Repeat("\u1ed9", 200) // o with two marks: three characters each when taken apart
	email := strings.Repeat("x", 1<<19) + "@mail.test"
	person(t, s, "usr_long", "org_def", name, email)
	for what, login := range map[string]string{
		"the name":                       name,
		"the name with a domain":         name + "@def.test",
		"the name taken apart":           norm.NFD.String(name),
		"the name taken apart, a domain": norm.NFD.String(name) + "@def.test",
		"the e-mail address":             email,
		"the e-mail address in capitals": strings.ToUpper(email),
	} {
		if u, _, err := sessions.find(t.Context(), login, NameScope{}); err != nil || u == nil || u.ID != "usr_long" {
			t.Errorf("%s: found %v, %v", what, u, err)
		}
	}
}

func TestOnlyTheseCharactersFoldToAnAt(t *testing.T) {
	for r := range rune(0x40000) { // no character beyond is folded
		want := r == '@' || r == '\uFE6B' || r == '\uFF20'
		if got := strings.Contains(syntax.NameKey(string(r)), "@"); got != want {
			t.Errorf("%U: %t", r, got)
		}
	}
}
