package member_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// asked has the owner usr_me of org_a, who sees the users of org_b, and usr_p of org_b.
func asked(t *testing.T, then ...event.Fact[user.User]) (*eventtest.Store, member.Members) {
	t.Helper()
	s := newInstallation(t)
	me := access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwnerViewer}}
	membertest.User(t, s, "usr_me", "org_a", me)
	membertest.User(t, s, "usr_p", "org_b", nil, then...)
	return s, inOrg(t, "org_a", me)
}

var person = &access.Caller{UserID: "usr_p", OrgID: "org_b"}

func give(t *testing.T, s event.Store, m member.Members, roles ...string) member.Set {
	t.Helper()
	set, err := m.Set(t.Context(), s, "usr_p", event.IfMatch{}, roles)
	must(t, err)
	return set
}

func held(t *testing.T, s *eventtest.Store) []access.Role {
	t.Helper()
	return eventtest.State(t, s, user.Kind, "usr_p").Data.Memberships["org_a"]
}

func offers(t *testing.T, s *eventtest.Store) (ids []string) {
	t.Helper()
	all, err := member.OffersTo(t.Context(), s, "usr_p", s.Now())
	must(t, err)
	for _, o := range all {
		ids = append(ids, o.Offer.ID)
	}
	return ids
}

func TestRolesElsewhereCountOnlyOnceTheyAreAccepted(t *testing.T) {
	s, m := asked(t)
	before := eventtest.State(t, s, user.Kind, "usr_p").Sequence
	set := give(t, s, m, "ORG_OWNER")
	if u := eventtest.State(t, s, user.Kind, "usr_p"); u.Sequence != before || user.IsGuest(u, "org_a") {
		t.Errorf("the offer touched the person: %+v", u.Data.Memberships)
	}
	if o := eventtest.State(t, s, member.OfferKind, set.Offer); o.Org != "org_a" || o.Details() != set.Details ||
		!slices.Equal(offers(t, s), []string{set.Offer}) {
		t.Errorf("offered %+v", o)
	}
	_, err := member.AcceptOffer(t.Context(), s, &access.Caller{UserID: "usr_me", OrgID: "org_a"}, set.Offer,
		event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotFound)
	mark := s.Mark()
	_, err = member.AcceptOffer(t.Context(), s, person, set.Offer, event.IfMatch{})
	must(t, err)
	if facts := s.Since(t, mark); len(facts) != 3 {
		t.Errorf("recorded %v", facts)
	}
	if !slices.Equal(held(t, s), []access.Role{access.OrgOwner}) || offers(t, s) != nil {
		t.Errorf("holds %v", held(t, s))
	}
	_, err = member.AcceptOffer(t.Context(), s, person, set.Offer, event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotOpen)

	// Within what was accepted nobody is asked, and what takes away is done at once.
	if set := give(t, s, m, "ORG_USER_MANAGER"); set.Offer != "" ||
		!slices.Equal(held(t, s), []access.Role{access.OrgUserManager}) {
		t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
	}
	if set := give(t, s, m, "ORG_OWNER"); set.Offer != "" || !slices.Equal(held(t, s), []access.Role{access.OrgOwner}) {
		t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
	}
}

func TestMoreThanWasAcceptedIsOfferedAndTheRestIsTakenAwayAtOnce(t *testing.T) {
	s, m := asked(t)
	accept := func(id string) {
		t.Helper()
		_, err := member.AcceptOffer(t.Context(), s, person, id, event.IfMatch{})
		must(t, err)
	}
	accept(give(t, s, m, "ORG_USER_MANAGER", "ORG_OWNER_VIEWER").Offer)
	set := give(t, s, m, "ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER")
	if set.Offer == "" || !slices.Equal(held(t, s), []access.Role{access.OrgUserManager}) {
		t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
	}
	accept(set.Offer)
	if !slices.Equal(held(t, s), []access.Role{access.OrgSettingsManager, access.OrgUserManager}) {
		t.Errorf("holds %v", held(t, s))
	}
	// Who leaves takes the acceptance along.
	_, err := member.Leave(t.Context(), s, person, "org_a", event.IfMatch{})
	must(t, err)
	if set := give(t, s, m, "ORG_USER_MANAGER"); set.Offer == "" || held(t, s) != nil {
		t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
	}
}

func TestANewDecisionEndsTheOfferOfBefore(t *testing.T) {
	s, m := asked(t)
	first := give(t, s, m, "ORG_OWNER").Offer
	second := give(t, s, m).Offer
	_, err := member.AcceptOffer(t.Context(), s, person, first, event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotOpen)
	if !slices.Equal(offers(t, s), []string{second}) {
		t.Errorf("open: %v", offers(t, s))
	}
	_, err = member.AcceptOffer(t.Context(), s, person, second, event.IfMatch{})
	must(t, err)
	third := give(t, s, m, "ORG_OWNER").Offer
	if set := give(t, s, m); set.Offer != "" { // a guest is a guest
		t.Errorf("offered %q", set.Offer)
	}
	_, err = member.AcceptOffer(t.Context(), s, person, third, event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotOpen)
	fourth := give(t, s, m, "ORG_OWNER").Offer
	_, err = m.Remove(t.Context(), s, "usr_p", event.IfMatch{})
	must(t, err)
	_, err = member.AcceptOffer(t.Context(), s, person, fourth, event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotOpen)
}

func TestTheGiverDoesNotLearnThatAnOfferWasDeclined(t *testing.T) {
	s, m := asked(t)
	set := give(t, s, m, "ORG_OWNER")
	mark := s.Mark()
	must(t, member.DeclineOffer(t.Context(), s, person, set.Offer))
	if facts := s.Since(t, mark); len(facts) != 0 {
		t.Errorf("recorded %v", facts)
	}
	if o := eventtest.State(t, s, member.OfferKind, set.Offer); o.Data.StateAt(s.Now()) != member.OfferOpen ||
		o.Details() != set.Details || offers(t, s) != nil {
		t.Errorf("the offer is %+v", o)
	}
	_, err := member.AcceptOffer(t.Context(), s, person, set.Offer, event.IfMatch{})
	eventtest.As(t, err, member.ErrOfferNotOpen)
	eventtest.As(t, member.DeclineOffer(t.Context(), s, person, set.Offer), member.ErrOfferNotOpen)
	if again := give(t, s, m, "ORG_OWNER"); again.Offer == "" || !slices.Equal(offers(t, s), []string{again.Offer}) {
		t.Errorf("offered again: %+v", again)
	}
}

func TestWhatKeepsAnOfferFromBeingAccepted(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(t *testing.T, s *eventtest.Store, m member.Members, id string)
		want  *errs.Error
	}{
		{"it was withdrawn", func(t *testing.T, s *eventtest.Store, _ member.Members, id string) {
			permit, err := (&access.Caller{UserID: "usr_me", Memberships: ownerOfA}).In("org_a", access.MemberWrite)
			must(t, err)
			_, err = member.Withdraw(t.Context(), s, permit, id, event.IfMatch{})
			must(t, err)
			_, err = member.Withdraw(t.Context(), s, permit, id, event.IfMatch{})
			eventtest.As(t, err, member.ErrOfferNotOpen)
		}, member.ErrOfferNotOpen},
		{"it has expired", func(_ *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			s.Advance(member.OfferLife)
		}, member.ErrOfferNotOpen},
		{"the organization is off", func(t *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.Deactivated{})
		}, member.ErrOfferNotOpen},
		{"the giver may no longer", func(t *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_me", "", nil,
				user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgUserManager}})
		}, member.ErrGiverMayNot},
		{"the giver is locked", func(t *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_me", "", nil, user.WasLocked{})
		}, member.ErrGiverMayNot},
		{"somebody else has set the password", func(t *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_p", "", nil, user.PasswordSet{})
		}, user.ErrPasswordGiven},
		{"which the person has changed", func(t *testing.T, s *eventtest.Store, _ member.Members, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_p", "", nil, user.PasswordSet{}, user.PasswordChanged{})
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := asked(t)
			id := give(t, s, m, "ORG_OWNER").Offer
			c.given(t, s, m, id)
			before := s.Fingerprint()
			_, err := member.AcceptOffer(t.Context(), s, person, id, event.IfMatch{})
			eventtest.As(t, err, c.want)
			if c.want != nil && (s.Fingerprint() != before || held(t, s) != nil) {
				t.Errorf("holds %v", held(t, s))
			}
		})
	}
}

func TestAPersonSeesTwentyOffersAndOthersWaitForRoom(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_p", "org_b", nil)
	membertest.Owner(t, s, "usr_me", "org_d")
	var all []string
	for i := range member.MaxOffers + 2 {
		id := fmt.Sprintf("org_%02d", i)
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
		all = append(all, give(t, s, inOrg(t, id, iam), "ORG_OWNER").Offer)
	}
	slices.Sort(all)
	if got := offers(t, s); !slices.Equal(got, all[:member.MaxOffers]) {
		t.Errorf("%d offers are shown", len(got))
	}
	must(t, member.DeclineOffer(t.Context(), s, person, all[0]))
	if got := offers(t, s); !slices.Equal(got, all[1:member.MaxOffers+1]) {
		t.Errorf("%d offers are shown, the last is %s", len(got), got[len(got)-1])
	}
}

// What is done about somebody's credentials is told to every other organization that the person is in, in one command:
// their number has a bound.
func TestAPersonIsInAThousandOtherOrganizations(t *testing.T) {
	s := newInstallation(t)
	membertest.Owner(t, s, "usr_me", "org_d")
	// neither is another one
	holds := access.Memberships{"org_b": {access.OrgOwner}, access.Installation: {access.IAMOwnerViewer}}
	for i := range user.MaxGuest - 1 {
		holds[fmt.Sprint("org_", i)] = []access.Role{access.OrgOwner}
	}
	membertest.User(t, s, "usr_p", "org_b", holds)
	for _, id := range []string{"org_y", "org_z"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	accept := func(id string, roles ...string) error {
		_, err := member.AcceptOffer(t.Context(), s, person, give(t, s, inOrg(t, id, iam), roles...).Offer,
			event.IfMatch{})
		return err
	}
	must(t, accept("org_y", "ORG_USER_MANAGER"))
	eventtest.As(t, accept("org_z", "ORG_OWNER"), user.ErrTooManyOrganizations)
	must(t, accept("org_y", "ORG_OWNER")) // more in one of them
	_, err := member.Leave(t.Context(), s, person, "org_y", event.IfMatch{})
	must(t, err)
	must(t, accept("org_z", "ORG_OWNER"))
}

func TestPeopleOfTheDefaultOrganizationAreNotAskedByAnOwnerOfTheInstallation(t *testing.T) {
	for _, c := range []struct {
		name  string
		me    access.Memberships
		home  string
		asked bool
	}{
		{"by an owner of the installation", iam, "org_d", false},
		{"others are asked", iam, "org_b", true},
		{"by somebody else", access.Memberships{"org_a": {access.OrgOwner}, "org_d": {access.OrgOwnerViewer}},
			"org_d", true},
		{"by somebody who sees everything",
			access.Memberships{"org_a": {access.OrgOwner}, access.Installation: {access.IAMOwnerViewer}},
			"org_d", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_p", c.home, nil)
			set := give(t, s, inOrg(t, "org_a", c.me), "ORG_OWNER")
			if asked := set.Offer != ""; asked != c.asked || (held(t, s) == nil) != c.asked {
				t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
			}
			if u := eventtest.State(t, s, user.Kind, "usr_p"); !c.asked && user.Unaccepted(u, "org_a") {
				t.Error("it looks like roles from before")
			}
		})
	}
}

// Roles from before anybody was asked count as they are. More waits.
func TestRolesFromBeforeAnybodyWasAsked(t *testing.T) {
	before := user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgUserManager}}
	t.Run("count, and more is offered", func(t *testing.T) {
		s, m := asked(t, before)
		if u := eventtest.State(t, s, user.Kind, "usr_p"); !user.Unaccepted(u, "org_a") {
			t.Error("they look accepted")
		}
		set := give(t, s, m, "ORG_OWNER", "ORG_USER_MANAGER")
		if set.Offer == "" || !slices.Equal(held(t, s), []access.Role{access.OrgUserManager}) {
			t.Errorf("offered %q, holds %v", set.Offer, held(t, s))
		}
	})
	t.Run("a group gives more, which waits", func(t *testing.T) {
		s, _ := asked(t, before)
		groupGives(t, s, access.OrgOwner)
		u := eventtest.State(t, s, user.Kind, "usr_p")
		if !slices.Equal(held(t, s), []access.Role{access.OrgUserManager}) ||
			!slices.Equal(u.Data.Waiting("org_a"), []access.Role{access.OrgOwner}) || !user.Unaccepted(u, "org_a") {
			t.Errorf("holds %v, waiting %v", held(t, s), u.Data.Waiting("org_a"))
		}
		for _, roles := range [][]string{nil, {"ORG_OWNER"}, {"ORG_OWNER", "ORG_USER_MANAGER", "ORG_OWNER_VIEWER"}} {
			_, err := member.AcceptRoles(t.Context(), s, person, "org_a", event.IfMatch{}, roles, nil)
			eventtest.As(t, err, member.ErrRolesChanged)
		}
		_, err := member.AcceptRoles(t.Context(), s, person, "org_a", event.IfMatch{},
			[]string{"ORG_USER_MANAGER", "ORG_OWNER"}, nil)
		must(t, err)
		if u := eventtest.State(t, s, user.Kind, "usr_p"); len(held(t, s)) != 2 || user.Unaccepted(u, "org_a") ||
			u.Data.Waiting("org_a") != nil {
			t.Errorf("holds %v", held(t, s))
		}
	})
	t.Run("are accepted as they are", func(t *testing.T) {
		s, _ := asked(t, before)
		_, err := member.AcceptRoles(t.Context(), s, person, "org_a", event.IfMatch{}, []string{"ORG_USER_MANAGER"}, nil)
		must(t, err)
		if u := eventtest.State(t, s, user.Kind, "usr_p"); user.Unaccepted(u, "org_a") ||
			!slices.Equal(held(t, s), []access.Role{access.OrgUserManager}) {
			t.Errorf("holds %v", held(t, s))
		}
		_, err = member.AcceptRoles(t.Context(), s, person, "org_b", event.IfMatch{}, nil, nil)
		eventtest.As(t, err, member.ErrOwnOrganization)
		_, err = member.AcceptRoles(t.Context(), s, person, "org_d", event.IfMatch{}, nil, nil)
		eventtest.As(t, err, member.ErrNotFound)
	})
	t.Run("and somebody else has set the password", func(t *testing.T) {
		s, _ := asked(t, before, user.PasswordSet{})
		_, err := member.AcceptRoles(t.Context(), s, person, "org_a", event.IfMatch{}, []string{"ORG_USER_MANAGER"}, nil)
		eventtest.As(t, err, user.ErrPasswordGiven)
	})
}

// groupGives records that a group of org_a gives usr_p a role, as package group does.
func groupGives(t *testing.T, s event.Store, role access.Role) {
	t.Helper()
	must(t, s.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: "usr_me"},
		Write:  []event.Ref{user.Kind.Ref("usr_p")},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, "usr_p")
			if err != nil {
				return err
			}
			if err := member.Give(u, "org_a", []access.Role{role}, ""); err != nil {
				return err
			}
			return u.Append(user.GroupJoined{Org: "org_a", Group: "grp_g", Roles: []access.Role{role}})
		},
	}))
}

func TestWhoAnswersForAServiceUserAcceptsForIt(t *testing.T) {
	s, m := asked(t)
	eventtest.Given(t, s, user.Kind, "usr_h", "org_b", []event.Claim{user.NameClaim("org_b", "h")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "h", UserNameKey: "h", Email: "h@b.test",
			EmailKey: "h@b.test"}})
	in := func(id string, holds access.Memberships) access.Permit {
		permit, err := (&access.Caller{UserID: "usr_x", Memberships: holds}).In(id, access.CredentialWrite)
		must(t, err)
		return permit
	}
	manager := access.Memberships{"org_b": {access.OrgUserManager}}
	id := give(t, s, m, "ORG_OWNER").Offer
	for _, c := range []struct {
		name   string
		permit access.Permit
		user   string
		want   *errs.Error
	}{
		{"somebody of another organization", in("org_a", ownerOfA), "usr_p", user.ErrNotFound},
		{"for a person", in("org_b", manager), "usr_h", user.ErrNotService},
		{"at home", in("org_b", manager), "usr_p", nil},
	} {
		_, err := member.OffersToService(t.Context(), s, c.permit, c.user, s.Now())
		eventtest.As(t, err, c.want)
		_, err = member.AcceptOfferFor(t.Context(), s, c.permit, c.user, id, event.IfMatch{})
		eventtest.As(t, err, c.want)
	}
	if !slices.Equal(held(t, s), []access.Role{access.OrgOwner}) {
		t.Errorf("holds %v", held(t, s))
	}
	_, err := member.Leave(t.Context(), s, person, "org_a", event.IfMatch{})
	must(t, err)
	must(t, member.DeclineOfferFor(t.Context(), s, in("org_b", manager), "usr_p", give(t, s, m, "ORG_OWNER").Offer))
	if offers(t, s) != nil {
		t.Error("it is still shown")
	}
}
