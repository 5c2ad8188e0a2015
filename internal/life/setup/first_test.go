package setup_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/signin/session"
)

func keepNothing(setup.FirstAdmin) error { return nil }

func sessions(s *eventtest.Store, defaultOrg string) *session.Sessions {
	return &session.Sessions{Store: s, Hasher: hasher, Master: s.Master, Clock: s.Now, DefaultOrg: defaultOrg,
		Standings: &session.Standings{}}
}

func TestTheFirstStartMakesEverythingOnce(t *testing.T) {
	s, set := world(t)
	var kept setup.FirstAdmin
	first, err := set.First(t.Context(), func(f setup.FirstAdmin) error {
		if s.Mark() != 0 {
			t.Error("something was written before it was kept")
		}
		kept = f
		return nil
	})
	must(t, err)
	if kept != first || first.LoginName != "admin@default.id.test" || first.Password == "" {
		t.Errorf("kept %+v, got %+v", kept, first)
	}
	i, err := installation.Read(t.Context(), s)
	must(t, err)
	if i.Data.DefaultOrg != first.OrgID || !slices.Equal(i.Data.Owners, []string{first.UserID, first.ServiceUserID}) {
		t.Errorf("installation %+v", i.Data)
	}
	for _, id := range []string{first.UserID, first.ServiceUserID} {
		u := eventtest.State(t, s, user.Kind, id)
		if !slices.Equal(u.Data.Memberships[access.Installation], []access.Role{access.IAMOwner}) ||
			u.Org != first.OrgID {
			t.Errorf("%s: %+v", id, u.Data)
		}
	}
	events, err := s.Events(t.Context(), 0, 100)
	must(t, err)
	for _, e := range events {
		if e.Actor != event.System {
			t.Errorf("%s was done by %q", e.Type, e.Actor)
		}
	}
	for _, secret := range []string{first.Password, first.Token} {
		if s.Stored(t, secret) {
			t.Error("a secret is stored in the clear")
		}
	}

	t.Run("the administrator can sign in and need not change the password", func(t *testing.T) {
		in, err := sessions(s, first.OrgID).SignIn(t.Context(),
			session.Attempt{LoginName: first.LoginName, Password: first.Password})
		must(t, err)
		if in.UserID != first.UserID || in.ChangeRequired {
			t.Errorf("got %+v", in)
		}
	})
	t.Run("the token works for 90 days", func(t *testing.T) {
		caller, err := sessions(s, first.OrgID).Authenticate(t.Context(), first.Token)
		must(t, err)
		if caller.UserID != first.ServiceUserID || !caller.Memberships.Hold(access.OrgSetup, access.Installation) {
			t.Errorf("got %+v", caller)
		}
		s.Advance(90*24*time.Hour - time.Microsecond)
		if _, err := sessions(s, first.OrgID).Authenticate(t.Context(), first.Token); err != nil {
			t.Errorf("just before: %v", err)
		}
		s.Advance(time.Microsecond)
		_, err = sessions(s, first.OrgID).Authenticate(t.Context(), first.Token)
		eventtest.As(t, err, access.ErrUnauthenticated)
	})
	t.Run("a second start makes nothing", func(t *testing.T) {
		before := s.Fingerprint()
		_, err := set.First(t.Context(), keepNothing)
		eventtest.As(t, err, setup.ErrAlreadySetUp)
		if s.Fingerprint() != before {
			t.Error("something was written")
		}
	})
}

// TestAnotherFirstStartBetweenTwoReads: a node may see the name that another one's first start took, and not yet its
// installation.
func TestAnotherFirstStartBetweenTwoReads(t *testing.T) {
	s, set := world(t)
	domain := "default.id.test"
	must(t, s.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{org.Kind.Ref("org_a")},
		Claims: []event.Claim{org.DomainClaim(domain)},
		Decide: func(tx *event.Tx) error {
			_, err := org.Add(tx, "org_a", "Default", []string{domain})
			return err
		},
	}))
	_, err := set.First(t.Context(), keepNothing)
	eventtest.As(t, err, setup.ErrAlreadySetUp)
}

func TestTheFirstStartRecordsTheseFacts(t *testing.T) {
	s, set := world(t)
	first, err := set.First(t.Context(), keepNothing)
	must(t, err)
	var got []string
	names := map[string]string{first.OrgID: "org", first.UserID: "admin", first.ServiceUserID: "service",
		installation.ID: "installation", session.IDFor(first.ServiceUserID): "companion"}
	for _, f := range s.Since(t, 0) {
		got = append(got, names[f.Object]+" "+string(f.Type))
	}
	slices.Sort(got)
	want := []string{
		"admin user.human_added.v1", "admin user.membership_set.v1", "admin user.password_set.v1",
		"companion sign_in.token_issued.v1",
		"installation installation.added.v1", "installation installation.owner_added.v1",
		"installation installation.owner_added.v1",
		"org org.added.v1", "org org.domain_added.v1", "service user.membership_set.v1",
		"service user.service_added.v1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatCannotBeKeptIsNotMade(t *testing.T) {
	s, set := world(t)
	full := errors.New("the disk is full")
	_, err := set.First(t.Context(), func(setup.FirstAdmin) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	empty, _ := world(t)
	if s.Fingerprint() != empty.Fingerprint() {
		t.Error("something was written")
	}
	if _, err := set.First(t.Context(), keepNothing); err != nil {
		t.Errorf("the next start: %v", err)
	}
}

func TestRecoverMakesAnOwnerWithATokenForADay(t *testing.T) {
	s, set := world(t)
	_, err := set.Recover(t.Context())
	eventtest.Refused(t, err, errs.FailedPrecondition, setup.NotSetUp)
	s.Then(t, 0)

	first, err := set.First(t.Context(), keepNothing)
	must(t, err)
	// Nobody can get in any more, and tokens of the organization belong to a later epoch.
	eventtest.Given(t, s, user.Kind, first.UserID, "", nil, user.WasLocked{})
	eventtest.Given(t, s, user.Kind, first.ServiceUserID, "", nil, user.Deactivated{})
	eventtest.Given(t, s, org.Kind, first.OrgID, "", nil, org.Deactivated{}, org.Reactivated{})

	r, err := set.Recover(t.Context())
	must(t, err)
	if !r.Expires.Equal(s.Now().Add(24 * time.Hour)) {
		t.Errorf("expires %v", r.Expires)
	}
	auth := sessions(s, first.OrgID)
	caller, err := auth.Authenticate(t.Context(), r.Token)
	must(t, err)
	if caller.UserID != r.UserID || caller.OrgID != first.OrgID ||
		!caller.Memberships.Hold(access.SystemWrite, access.Installation) {
		t.Errorf("got %+v", caller)
	}
	i, err := installation.Read(t.Context(), s)
	must(t, err)
	if !slices.Contains(i.Data.Owners, r.UserID) {
		t.Errorf("owners %q", i.Data.Owners)
	}
	if s.Stored(t, r.Token) {
		t.Error("the token is stored in the clear")
	}
	again, err := set.Recover(t.Context())
	if err != nil || again.UserID == r.UserID || again.Token == r.Token || r.Removed != 0 || again.Removed != 1 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	_, err = auth.Authenticate(t.Context(), r.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	i, err = installation.Read(t.Context(), s)
	must(t, err)
	if slices.Contains(i.Data.Owners, r.UserID) || !slices.Contains(i.Data.Owners, again.UserID) ||
		!slices.Contains(i.Data.Owners, first.UserID) {
		t.Errorf("owners %q", i.Data.Owners)
	}
	s.Advance(24 * time.Hour)
	_, err = auth.Authenticate(t.Context(), again.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
}
