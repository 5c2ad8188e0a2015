package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testdb"
)

// organization has one domain that somebody vouches for, and perhaps one that DNS has proven.
func organization(t *testing.T, s event.Store, id, vouched, proven string) {
	t.Helper()
	claims := []event.Claim{org.DomainClaim(vouched), org.DomainClaim(proven), org.ProvenClaim(proven)}
	facts := []event.Fact[org.Org]{org.Added{Name: id}, org.DomainAdded{Domain: vouched, Verified: true, Primary: true}}
	if proven != "" {
		facts = append(facts, org.DomainAdded{Domain: proven, Challenge: "c"},
			org.DomainVerified{Domain: proven, Proven: true})
	}
	eventtest.Given(t, s, org.Kind, id, id, claims, facts...)
}

// verified puts somebody into an organization whose address is verified. The user name is the id.
func verified(t *testing.T, s event.Store, id, orgID, email string, v user.Verification) {
	t.Helper()
	facts := user.HumanFacts{UserName: id, UserNameKey: syntax.NameKey(id), Email: email, EmailKey: email}
	eventtest.Given(t, s, user.Kind, id, orgID, []event.Claim{user.NameClaim(orgID, facts.UserNameKey)},
		user.HumanAdded{EmailVerified: true, Verification: &v, Personal: facts})
}

// eachWorld has the default organization, that of an application, one that has proven p.test by DNS, and another, on
// each engine.
func eachWorld(t *testing.T, test func(t *testing.T, sessions *Sessions)) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, installation.Kind, org.Kind, user.Kind, Kind)
		s := nodes.Open(t)
		organization(t, s, "org_def", "def.test", "")
		organization(t, s, "org_app", "app.test", "")
		organization(t, s, "org_p", "vouched.test", "p.test")
		organization(t, s, "org_x", "x.test", "")
		test(t, &Sessions{Store: s, Hasher: hasher, Master: s.RootKey(), Clock: nodes.Clock.Now, DefaultOrg: "org_def",
			Standings: &Standings{}})
	})
}

var (
	byOwner   = user.Verification{By: user.VerifiedByOwner, At: 5}
	byAll     = user.Verification{By: user.VerifiedByInstallation, At: 5}
	byAdmin   = user.Verification{By: user.VerifiedByAdministrator, At: 5}
	byDefault = user.Verification{By: user.VerifiedByProvider, At: 5, Org: "org_def"}
	byX       = user.Verification{By: user.VerifiedByProvider, At: 5, Org: "org_x"}
	byP       = user.Verification{By: user.VerifiedByProvider, At: 5, Org: "org_p"}
)

// found is who a name leads to.
func (s *Sessions) found(t *testing.T, login string, at NameScope) string {
	t.Helper()
	u, _, err := s.find(t.Context(), login, at)
	must(t, err)
	return idOf(u)
}

// Where names are looked for, and who is found: wherever the sign-in is at, by whatever name, on whosever word an
// address counts.
func TestWhoIsFoundWhere(t *testing.T) {
	eachWorld(t, func(t *testing.T, s *Sessions) {
		for _, id := range []string{"org_def", "org_app", "org_p", "org_x"} {
			facts := user.HumanFacts{UserName: "jo", UserNameKey: "jo"}
			eventtest.Given(t, s.Store, user.Kind, "usr_jo_"+id, id, []event.Claim{user.NameClaim(id, "jo")},
				user.HumanAdded{Personal: facts})
		}
		for _, p := range []struct {
			id, org, email string
			v              user.Verification
		}{
			{"usr_def", "org_def", "def@mail.test", byAdmin}, {"usr_app", "org_app", "app@mail.test", byAdmin},
			{"usr_defp", "org_def", "def@p.test", byAdmin},
			{"usr_owner", "org_x", "owner@mail.test", byOwner}, {"usr_all", "org_x", "all@mail.test", byAll},
			{"usr_admin", "org_x", "admin@mail.test", byAdmin},
			{"usr_bydef", "org_x", "bydef@mail.test", byDefault}, {"usr_byx", "org_x", "byx@mail.test", byX},
			{"usr_padmin", "org_p", "padmin@p.test", byAdmin}, {"usr_pv", "org_p", "admin@vouched.test", byAdmin},
			{"usr_pm", "org_p", "padmin@mail.test", byAdmin},
			{"usr_xowner", "org_x", "xowner@p.test", byOwner}, {"usr_xadmin", "org_x", "xadmin@p.test", byAdmin},
			{"usr_xbyp", "org_x", "xbyp@p.test", byP},
			{"usr_xbyx", "org_x", "xbyx@p.test", byX}, {"usr_mbyp", "org_x", "mbyp@mail.test", byP},
		} {
			verified(t, s.Store, p.id, p.org, p.email, p.v)
		}
		app, x := NameScope{App: "org_app"}, NameScope{Org: "org_x"}
		for _, c := range []struct {
			name      string
			at        NameScope
			login     string
			want, off string // off: where addresses are not looked for in other organizations
		}{
			{"a bare name: the default organization", NameScope{}, "jo", "usr_jo_org_def", "usr_jo_org_def"},
			{"a domain of another one", NameScope{}, "jo@x.test", "usr_jo_org_x", "usr_jo_org_x"},
			{"a domain that DNS has proven", NameScope{}, "jo@p.test", "usr_jo_org_p", "usr_jo_org_p"},
			{"an address there, on whatever word", NameScope{}, "def@mail.test", "usr_def", "usr_def"},
			{"elsewhere, by its owner", NameScope{}, "owner@mail.test", "usr_owner", ""},
			{"in any case and width", NameScope{}, "OWNER＠Mail.test", "usr_owner", ""},
			{"elsewhere, by the installation", NameScope{}, "all@mail.test", "usr_all", ""},
			{"elsewhere, by a provider of the default organization", NameScope{}, "bydef@mail.test", "usr_bydef", ""},
			{"elsewhere, by a provider of its own", NameScope{}, "byx@mail.test", "", ""},
			{"elsewhere, by a provider of one that has proven another domain", NameScope{}, "mbyp@mail.test", "", ""},
			{"elsewhere, by an administrator", NameScope{}, "admin@mail.test", "", ""},
			{"elsewhere, by an administrator of one that has proven another domain", NameScope{},
				"padmin@mail.test", "", ""},
			{"elsewhere, at a domain that is only vouched for", NameScope{}, "admin@vouched.test", "", ""},
			{"at a domain that DNS has proven, there", NameScope{}, "padmin@p.test", "usr_padmin", "usr_padmin"},
			{"at a proven domain, not there, by its owner", NameScope{}, "xowner@p.test", "usr_xowner", ""},
			{"at a proven domain, not there, by a provider of the one that has proven it", NameScope{}, "xbyp@p.test",
				"usr_xbyp", ""},
			{"at a proven domain, not there, by an administrator", NameScope{}, "xadmin@p.test", "", ""},
			{"at a proven domain, not there, by another provider", NameScope{}, "xbyx@p.test", "", ""},
			{"at a proven domain, but in the default organization: the place is chosen once", NameScope{},
				"def@p.test", "", ""},

			{"an application: a bare name of its organization", app, "jo", "usr_jo_org_app", "usr_jo_org_app"},
			{"an application: no bare name of the default one", app, "usr_def", "", ""},
			{"an application: a domain of another one", app, "jo@x.test", "usr_jo_org_x", "usr_jo_org_x"},
			{"an application: an address there", app, "app@mail.test", "usr_app", "usr_app"},
			{"an application: no address of the default one", app, "def@mail.test", "", ""},
			{"an application: by its owner", app, "owner@mail.test", "usr_owner", ""},
			{"an application: by the installation", app, "all@mail.test", "usr_all", ""},
			{"an application: by an administrator", app, "admin@mail.test", "", ""},
			{"an application: by an administrator of the one that has proven it", app, "padmin@p.test",
				"usr_padmin", ""},

			{"named: a bare name", x, "jo", "usr_jo_org_x", "usr_jo_org_x"},
			{"named: its own domain", x, "jo@x.test", "usr_jo_org_x", "usr_jo_org_x"},
			{"named: another domain", x, "jo@def.test", "", ""},
			{"named: an address there, on whatever word", x, "admin@mail.test", "usr_admin", "usr_admin"},
			{"named: an address of the default one", x, "def@mail.test", "", ""},
			{"named: at a domain that another one has proven", x, "padmin@p.test", "", ""},
			{"named: the one that has proven it", NameScope{Org: "org_p"}, "padmin@p.test", "usr_padmin", "usr_padmin"},
			{"named: an owner's address elsewhere", NameScope{Org: "org_p"}, "owner@mail.test", "", ""},
			{"named comes before an application", NameScope{Org: "org_x", App: "org_app"}, "app@mail.test", "", ""},
		} {
			for off, want := range map[bool]string{false: c.want, true: c.off} {
				s.EmailsPerOrganization = off
				if got := s.found(t, c.login, c.at); got != want {
					t.Errorf("%s (switched off: %t): found %q, want %q", c.name, off, got, want)
				}
			}
		}
	})
}

// Whatever an administrator of another organization does, nobody but the person is found by the person's address.
func TestAnAdministratorElsewhereTakesNobodysAddress(t *testing.T) {
	eachWorld(t, func(t *testing.T, s *Sessions) {
		later := func(v user.Verification) user.Verification { v.At = 1_000; return v }
		for i, v := range []user.Verification{byOwner, byAll, byAdmin, byDefault} {
			victim, email := fmt.Sprint("usr_victim", i), fmt.Sprintf("victim%d@mail.test", i)
			verified(t, s.Store, victim, "org_app", email, later(v))
			verified(t, s.Store, fmt.Sprint("usr_a", i), "org_x", email, byAdmin) // the oldest word of all
			verified(t, s.Store, fmt.Sprint("usr_b", i), "org_x", email, byX)
			verified(t, s.Store, fmt.Sprint("usr_c", i), "org_p", email, byP)
			for _, at := range []NameScope{{}, {App: "org_app"}, {Org: "org_app"}, {App: "org_def"}} {
				got := s.found(t, email, at)
				anywhere := at.Org == "" && at.App != "org_app"
				if got != victim && !(anywhere && v == byAdmin && got == "") {
					t.Errorf("%s's word, at %+v: %s leads to %q", v.By, at, email, got)
				}
			}
		}
		// Where nobody has proven anything, a domain that an administrator vouched for brings nobody's addresses.
		verified(t, s.Store, "usr_v", "org_app", "v@vouched.test", byOwner)
		verified(t, s.Store, "usr_twin", "org_p", "v@vouched.test", byAdmin)
		for _, at := range []NameScope{{}, {App: "org_app"}} {
			if got := s.found(t, "v@vouched.test", at); got != "usr_v" {
				t.Errorf("at %+v the address leads to %q", at, got)
			}
		}
	})
}

// Of several whose addresses count everywhere, it is the one that was verified first, the owner's before everybody
// else's.
func TestTheFirstOfSeveralIsFoundAnywhere(t *testing.T) {
	eachWorld(t, func(t *testing.T, s *Sessions) {
		at := func(v user.Verification, at int64) user.Verification { v.At = at; return v }
		for i, c := range []struct {
			first, second user.Verification
			want          int
		}{
			{at(byOwner, 6), at(byOwner, 5), 1}, {at(byOwner, 5), at(byOwner, 6), 0}, {at(byAll, 5), at(byOwner, 6), 1},
			{at(byDefault, 6), at(byAll, 5), 1},
			{at(byDefault, 5), at(byOwner, 6), 1}, {at(byAll, 5), at(byAll, 5), 0},
		} {
			email := fmt.Sprintf("twin%d@mail.test", i)
			ids := []string{fmt.Sprint("usr_", i, "a"), fmt.Sprint("usr_", i, "b")}
			verified(t, s.Store, ids[0], "org_x", email, c.first)
			verified(t, s.Store, ids[1], "org_app", email, c.second)
			if got := s.found(t, email, NameScope{}); got != ids[c.want] {
				t.Errorf("%+v and %+v: found %s", c.first, c.second, got)
			}
		}
	})
}

// A reset is for whom the same name would sign in, at the same place.
func TestAResetIsForWhomTheNameSignsInThere(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_def", "org_def", "jo", "def@mail.test")
	person(t, s, "usr_b", "org_b", "jo", "b@mail.test")
	verified(t, s, "usr_owner", "org_b", "owner@mail.test", byOwner)
	for _, c := range []struct {
		login, org, app, want string
	}{
		{"jo", "", "", "usr_def"}, {"jo", "", "org_b", "usr_b"}, {"jo", "org_def", "org_b", "usr_def"},
		{"b@mail.test", "", "org_b", "usr_b"}, {"b@mail.test", "", "", ""},
		{"owner@mail.test", "", "", "usr_owner"}, {"owner@mail.test", "org_def", "", ""},
	} {
		s.Advance(24 * time.Hour) // mails are few a day
		mark := s.Mark()
		must(t, sessions.RequestReset(t.Context(),
			ResetRequest{LoginName: c.login, OrgID: c.org, AppOrg: c.app, Peer: home, RequestID: "req_1"}))
		must(t, sessions.AnswerWaitingResets(t.Context()))
		events, err := s.Events(t.Context(), mark, 10)
		must(t, err)
		got := ""
		for _, e := range events {
			got += e.ObjectID
		}
		want := ""
		if c.want != "" {
			want = IDFor(c.want)
		}
		if got != want {
			t.Errorf("%s at %q, %q: %s, want %s", c.login, c.org, c.app, got, want)
		}
	}
}
