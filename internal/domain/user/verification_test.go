package user_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// vouched is what a fact says of an address that an administrator of the organization vouches for when the world
// begins.
const vouched = `"verification":{"by":"administrator","at":1767323045678901}`

func TestEveryWayToAVerifiedEmailRecordsOnWhoseWord(t *testing.T) {
	open := jo
	open.EmailVerified = false
	owner := access.Memberships{access.Installation: {access.IAMOwner}}
	viewer := access.Memberships{access.Installation: {access.IAMOwnerViewer}, "org_a": {access.OrgUserManager}}
	create := func(m access.Memberships) func(t *testing.T, s *eventtest.Store) string {
		return func(t *testing.T, s *eventtest.Store) string {
			added, err := user.CreateHuman{NewHuman: jo}.Do(t.Context(), s, secret.NewCheapHasher(),
				permit(t, "org_a", m), event.Once{})
			must(t, err)
			return added.ID
		}
	}
	bring := func(m access.Memberships) func(t *testing.T, s *eventtest.Store) string {
		return func(t *testing.T, s *eventtest.Store) string {
			added, err := user.Import{{NewHuman: jo}}.Each(t.Context(), s, permit(t, "org_a", m), event.Once{})
			must(t, err)
			return added[0].ID
		}
	}
	set := func(m access.Memberships) func(t *testing.T, s *eventtest.Store) string {
		return func(t *testing.T, s *eventtest.Store) string {
			must(t, human(t, s, "usr_a", "org_a", open))
			_, err := user.SetEmail(t.Context(), s, permit(t, "org_a", m), "usr_a", event.IfMatch{}, jo.Email, true)
			must(t, err)
			return "usr_a"
		}
	}
	byCode := func(send func(t *testing.T, s *eventtest.Store) string) func(t *testing.T, s *eventtest.Store) string {
		return func(t *testing.T, s *eventtest.Store) string {
			must(t, human(t, s, "usr_a", "org_a", open))
			must(t, verify(t, s, user.ByEmail, send(t, s)))
			return "usr_a"
		}
	}
	mailed := func(t *testing.T, s *eventtest.Store) string {
		d, err := user.MailedCode(t.Context(), s, s.Master, "usr_a", false, nil)
		must(t, err)
		return d.Text
	}
	shownTo := func(m access.Memberships) func(t *testing.T, s *eventtest.Store) string {
		return func(t *testing.T, s *eventtest.Store) string {
			c, err := user.CreateCode(t.Context(), s, s.Master, permit(t, "org_a", m), "usr_a", user.ByEmail)
			must(t, err)
			return c.Text
		}
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *eventtest.Store) (id string)
		want user.Verifier
	}{
		{"added by a manager of the users", create(manager), user.VerifiedByAdministrator},
		{"added by an owner of everything", create(owner), user.VerifiedByInstallation},
		{"added by a manager who has a role in the installation", create(viewer), user.VerifiedByInstallation},
		{"imported by a manager of the users", bring(manager), user.VerifiedByAdministrator},
		{"imported by an owner of everything", bring(owner), user.VerifiedByInstallation},
		{"set by a manager of the users", set(manager), user.VerifiedByAdministrator},
		{"set by an owner of everything", set(owner), user.VerifiedByInstallation},
		{"by a code in a mail", byCode(mailed), user.VerifiedByOwner},
		{"by a code that a manager was shown: it may be the manager who sends it", byCode(shownTo(manager)),
			user.VerifiedByAdministrator},
		{"by a code that an owner of everything was shown", byCode(shownTo(owner)), user.VerifiedByInstallation},
		{"by a code in a mail that came after a shown one", byCode(func(t *testing.T, s *eventtest.Store) string {
			shownTo(manager)(t, s)
			return mailed(t, s)
		}), user.VerifiedByOwner},
		{"by a shown code that came after one in a mail", byCode(func(t *testing.T, s *eventtest.Store) string {
			mailed(t, s)
			return shownTo(manager)(t, s)
		}), user.VerifiedByAdministrator},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			s.Advance(time.Minute)
			u := eventtest.State(t, s, user.Kind, c.do(t, s))
			if got, want := u.Data.Human.Email.Verification,
				(user.Verification{By: c.want, At: event.Micros(s.Now())}); got != want ||
				!u.Data.Human.Email.Verified {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestWhatIsNotVerifiedIsOnNobodysWord(t *testing.T) {
	s := place(t)
	must(t, human(t, s, "usr_a", "org_a", jo))
	_, err := user.SetMyEmail(t.Context(), s, me, event.IfMatch{}, "other@example.org")
	must(t, err)
	if got := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Email; got.Verified ||
		got.Verification != (user.Verification{}) {
		t.Errorf("got %+v", got)
	}
}

func TestOfSeveralWithOneEmailTheFirstVerifiedIsFound(t *testing.T) {
	at := func(by user.Verifier, at int64) *user.Verification { return &user.Verification{By: by, At: at} }
	for _, c := range []struct {
		name        string
		first, then *user.Verification // of usr_a and usr_b
		want        string
	}{
		{"the older of two owners", at(user.VerifiedByOwner, 5), at(user.VerifiedByOwner, 6), "usr_a"},
		{"the older of two owners, whatever the age of the users", at(user.VerifiedByOwner, 6),
			at(user.VerifiedByOwner, 5), "usr_b"},
		{"more digits are later", at(user.VerifiedByOwner, 10), at(user.VerifiedByOwner, 9), "usr_b"},
		{"the older of two that administrators vouch for", at(user.VerifiedByAdministrator, 6),
			at(user.VerifiedByAdministrator, 5), "usr_b"},
		{"an owner before an older word of an administrator", at(user.VerifiedByAdministrator, 5),
			at(user.VerifiedByOwner, 6), "usr_b"},
		{"an owner before an older word of the installation", at(user.VerifiedByInstallation, 5),
			at(user.VerifiedByOwner, 6), "usr_b"},
		{"the installation's word is not before an older one of an administrator", at(user.VerifiedByInstallation, 6),
			at(user.VerifiedByAdministrator, 5), "usr_b"},
		{"a provider's word is not an owner's", at(user.VerifiedByProvider, 5), at(user.VerifiedByOwner, 6), "usr_b"},
		{"an owner before what was not recorded", nil, at(user.VerifiedByOwner, 1<<60), "usr_b"},
		{"what was not recorded counts from its event on", at(user.VerifiedByAdministrator, 1<<60), nil, "usr_b"},
		{"and not from before", nil, at(user.VerifiedByAdministrator, 5), "usr_b"},
		{"the older user where nothing was recorded", nil, nil, "usr_a"},
		{"the older user where all else is the same", at(user.VerifiedByAdministrator, 5),
			at(user.VerifiedByAdministrator, 5), "usr_a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			for id, v := range map[string]*user.Verification{"usr_a": c.first, "usr_b": c.then} {
				eventtest.Given(t, s, user.Kind, id, "org_a", []event.Claim{user.NameClaim("org_a", id)},
					user.HumanAdded{
						EmailVerified: true,
						Verification:  v,
						Personal: user.HumanFacts{UserName: id, UserNameKey: id, Email: "jo@example.org",
							EmailKey: "jo@example.org"},
					})
			}
			found, err := s.RecordsWhere(t.Context(), user.Kind.Name(), "org_a", user.VerifiedEmail,
				user.EmailDigest("jo@example.org"), user.FirstByEmail, 1)
			if must(t, err); len(found) != 1 || found[0].ID != c.want {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// The first events did not record on whose word an address is verified. What they count as follows from which events
// they are.
func TestOnWhoseWordAnAddressOfOlderEventsCounts(t *testing.T) {
	yes, no := true, false
	facts := user.HumanFacts{UserName: "jo", UserNameKey: "jo", Email: "jo@example.org", EmailKey: "jo@example.org"}
	added, open := user.HumanAdded{EmailVerified: true, Personal: facts}, user.HumanAdded{Personal: facts}
	owner := user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}
	elsewhere := user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwner}}
	recorded := user.HumanAdded{EmailVerified: true,
		Verification: &user.Verification{By: user.VerifiedByAdministrator, At: event.Micros(eventtest.Start)},
		Personal:     facts}
	other := "other@example.org"
	type command []event.Fact[user.User]
	for _, c := range []struct {
		name     string
		commands []command // a minute apart
		want     user.Verifier
		minute   int // from when on it counts
	}{
		{"added", []command{{added}}, user.VerifiedByAdministrator, 0},
		{"added with a password", []command{{added, user.PasswordSet{}}}, user.VerifiedByAdministrator, 0},
		{"imported", []command{{user.HumanImported{EmailVerified: true, Personal: facts}}},
			user.VerifiedByAdministrator, 0},
		{"set up with an organization", []command{{added, user.PasswordSet{}, owner}}, user.VerifiedByInstallation, 0},
		{"added, and made an owner later", []command{{added, user.PasswordSet{}}, {owner}},
			user.VerifiedByAdministrator, 0},
		{"added with roles elsewhere", []command{{added, user.PasswordSet{}, elsewhere}},
			user.VerifiedByAdministrator, 0},
		{"added with roles, and it was recorded", []command{{recorded, user.PasswordSet{}, owner}},
			user.VerifiedByAdministrator, 0},
		{"proven by a code", []command{{open}, {user.EmailVerified{}}}, user.VerifiedByOwner, 1},
		{"proven by a code, and made an owner in that moment", []command{{open}, {user.EmailVerified{}, owner}},
			user.VerifiedByOwner, 1},
		{"set by an administrator", []command{{open}, {user.EmailChanged{Verified: &yes}}},
			user.VerifiedByAdministrator, 1},
		{"set again", []command{{open}, {user.EmailVerified{}}, {user.EmailChanged{}}}, user.VerifiedByOwner, 1},
		{"another one in its place",
			[]command{{open}, {user.EmailVerified{}},
				{user.EmailChanged{Personal: user.EmailFacts{Email: &other, EmailKey: &other}}}},
			user.VerifiedByAdministrator, 2},
		{"not verified any more", []command{{added}, {user.EmailChanged{Verified: &no}}}, "", 0},
		{"set up, then proven",
			[]command{{added, user.PasswordSet{}, owner}, {user.EmailChanged{Verified: &no}}, {user.EmailVerified{}}},
			user.VerifiedByOwner, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			begun := s.Now()
			for _, facts := range c.commands {
				eventtest.Given(t, s, user.Kind, "usr_a", "org_a",
					[]event.Claim{user.NameClaim("org_a", "jo")}, facts...)
				s.Advance(time.Minute)
			}
			got := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Email.Verification
			got.Assumed = false
			want := user.Verification{By: c.want, At: event.Micros(begun.Add(time.Duration(c.minute) * time.Minute))}
			if c.want == "" {
				want = user.Verification{}
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// An address that is set again keeps its verification, but the installation's word is worth more than an
// administrator's.
func TestTheInstallationsWordTakesThePlaceOfAnAdministrators(t *testing.T) {
	s := place(t)
	must(t, human(t, s, "usr_a", "org_a", jo))
	first := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Email.Verification
	for _, c := range []struct {
		by   access.Memberships
		want user.Verifier
	}{{manager, user.VerifiedByAdministrator},
		{access.Memberships{access.Installation: {access.IAMOwner}}, user.VerifiedByInstallation},
		{manager, user.VerifiedByInstallation}} {
		s.Advance(time.Minute)
		_, err := user.SetEmail(t.Context(), s, permit(t, "org_a", c.by), "usr_a", event.IfMatch{}, jo.Email, true)
		must(t, err)
		if got := eventtest.State(t, s, user.Kind,
			"usr_a").Data.Human.Email.Verification; got != (user.Verification{By: c.want, At: first.At}) {
			t.Errorf("got %+v, want the word of %s from %d on", got, c.want, first.At)
		}
	}
}

// Each word is one more lookup of every sign-in: none is looked for twice, and none that nobody can have.
func TestTrustedWordsAreThoseThatSomebodyCanHave(t *testing.T) {
	for prover, want := range map[string]int{"": 2, "org_def": 3, "org_b": 4} {
		words := user.TrustedWords("jo@mail.test", "org_def", prover)
		slices.Sort(words)
		if different := slices.Compact(slices.Clone(words)); len(words) != want || len(different) != want {
			t.Errorf("with a domain of %q: %d words, %d different ones", prover, len(words), len(different))
		}
	}
}
