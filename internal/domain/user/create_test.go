package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var manager = access.Memberships{"org_a": {access.OrgUserManager}}

// place is a store with the organization org_a.
func place(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "A"})
	return s
}

func TestAPersonIsCreatedWithOrWithoutAPassword(t *testing.T) {
	for _, c := range []struct {
		name   string
		create user.CreateHuman
		facts  []event.Type
		want   user.Password
	}{
		{"without one", user.CreateHuman{NewHuman: jo, ChangeRequired: true}, []event.Type{"user.human_added.v1"},
			user.Password{}},
		{"to be changed", user.CreateHuman{NewHuman: jo, Password: "correct horse", ChangeRequired: true},
			[]event.Type{"user.human_added.v1", "user.password_set.v1"},
			user.Password{Version: 1, ChangeRequired: true, Given: true}},
		{"to be kept", user.CreateHuman{NewHuman: jo, Password: "correct horse"},
			[]event.Type{"user.human_added.v1", "user.password_set.v1"}, user.Password{Version: 1, Given: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			mark := s.Mark()
			added, err := c.create.Do(t.Context(), s, hasher, permit(t, "org_a", manager), event.Once{})
			must(t, err)
			facts := s.Since(t, mark)
			for i, f := range facts {
				if f.Object != added.ID || i >= len(c.facts) || f.Type != c.facts[i] {
					t.Fatalf("recorded %+v", facts)
				}
			}
			u := eventtest.State(t, s, user.Kind, added.ID)
			if len(facts) != len(c.facts) || u.Data.Password != c.want || added.Details != u.Details() ||
				u.Org != "org_a" || u.Data.Human.Email.Address != jo.Email {
				t.Errorf("created %+v, details %+v", u, added.Details)
			}
			row, err := s.Row(t.Context(), user.PasswordRow(added.ID))
			must(t, err)
			if (row != nil) != (c.create.Password != "") {
				t.Fatalf("a hash is stored: %t", row != nil)
			}
			if row != nil {
				if right, _, err := hasher.Verify(t.Context(), row.Value, c.create.Password); !right || err != nil {
					t.Errorf("the password does not match what is stored (%v)", err)
				}
				if s.Stored(t, c.create.Password) {
					t.Error("the password itself is stored")
				}
			}
		})
	}
}

func TestAServiceUserIsCreated(t *testing.T) {
	s := place(t)
	mark := s.Mark()
	added, err := user.CreateService{UserName: "Robot", Name: "Röbot", Description: "does things"}.Do(t.Context(), s,
		permit(t, "org_a", manager), event.Once{})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: added.ID, Type: "user.service_added.v1", Payload: `{}`,
		Personal: `{"userName":"Robot","userNameKey":"robot","name":"Röbot","nameKey":"röbot","description":"does things"}`})
}

func TestWhoIsNotCreated(t *testing.T) {
	settings := access.Memberships{"org_a": {access.OrgSettingsManager}}
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	noCredentials := func(t *testing.T) access.Permit {
		p, err := (&access.Caller{UserID: "usr_admin", Memberships: settings}).In("org_a", access.IDPWrite)
		must(t, err)
		return p
	}
	taken, wrong := jo, jo
	taken.UserName, wrong.Email = "TAKEN", "Jo <jo@example.org>"
	for _, c := range []struct {
		name    string
		create  user.CreateHuman
		permit  access.Permit
		refusal *errs.Error
	}{
		{"a name that is taken", user.CreateHuman{NewHuman: taken, Password: "x"}, permit(t, "org_a", manager),
			user.ErrUserNameTaken},
		{"in an organization that was removed", user.CreateHuman{NewHuman: jo}, permit(t, "org_gone", iam),
			org.ErrNotFound},
		{"in an organization that never was", user.CreateHuman{NewHuman: jo}, permit(t, "org_x", iam), org.ErrNotFound},
		{"in the installation", user.CreateHuman{NewHuman: jo}, permit(t, access.Installation, iam), org.ErrNotFound},
		{"without a permit", user.CreateHuman{NewHuman: jo}, access.Permit{}, org.ErrNotFound},
		{"with a password, by somebody who may not set one", user.CreateHuman{NewHuman: jo, Password: "x"},
			noCredentials(t), access.ErrDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			must(t, service(t, s, "usr_taken", "org_a", "taken"))
			eventtest.Given(t, s, org.Kind, "org_gone", "org_gone", nil, org.Added{Name: "G"}, org.WasRemoved{})
			before := s.Fingerprint()
			_, err := c.create.Do(t.Context(), s, hasher, c.permit, event.Once{})
			eventtest.As(t, err, c.refusal)
			if c.refusal != access.ErrDenied {
				_, err = user.CreateService{UserName: c.create.UserName, Name: "N"}.Do(t.Context(), s,
					c.permit, event.Once{})
				eventtest.As(t, err, c.refusal)
			}
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
	// Nothing is hashed for somebody who may not: a request that is over would not get as far as that.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := user.CreateHuman{NewHuman: jo, Password: "x"}.Do(over, place(t), hasher, noCredentials(t), event.Once{})
	eventtest.As(t, err, access.ErrDenied)
	_, err = user.CreateHuman{NewHuman: wrong, Password: "x"}.Do(t.Context(), place(t), hasher,
		permit(t, "org_a", manager), event.Once{})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "email.email")
}

func TestAPersonIsNotCreatedByACallerWhoMayNoLongerOnceThePasswordIsHashed(t *testing.T) {
	for _, c := range []struct {
		name    string
		renewed func(*testing.T) (access.Permit, error)
		refusal *errs.Error
	}{
		{"still may", func(t *testing.T) (access.Permit, error) { return permit(t, "org_a", manager), nil }, nil},
		{"the credential has ended",
			func(*testing.T) (access.Permit, error) { return access.Permit{}, access.ErrUnauthenticated },
			access.ErrUnauthenticated},
		{"may no longer set passwords", func(t *testing.T) (access.Permit, error) {
			return (&access.Caller{UserID: "usr_admin",
				Memberships: access.Memberships{"org_a": {access.OrgOwnerViewer}}}).In("org_a", access.UserRead)
		}, access.ErrDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := place(t)
			before, asked := s.Fingerprint(), 0
			p := permit(t, "org_a", manager).Renewing(func(context.Context) (access.Permit, error) {
				asked++
				return c.renewed(t)
			})
			_, err := user.CreateHuman{NewHuman: jo, Password: "x"}.Do(t.Context(), s, hasher, p, event.Once{})
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; asked != 1 || wrote != (c.refusal == nil) {
				t.Errorf("asked %d times, wrote: %t", asked, wrote)
			}
		})
	}
}

func TestACreationThatIsSentAgainGivesTheFirstAnswer(t *testing.T) {
	s := place(t)
	once := event.Once{Key: "k", Request: []byte("r"), Expires: event.Micros(s.Now().Add(time.Hour))}
	first, err := user.CreateHuman{NewHuman: jo}.Do(t.Context(), s, hasher, permit(t, "org_a", manager), once)
	must(t, err)
	before := s.Fingerprint()
	again, err := user.CreateHuman{NewHuman: jo}.Do(t.Context(), s, hasher, permit(t, "org_a", manager), once)
	must(t, err)
	if again != first || s.Fingerprint() != before {
		t.Errorf("first %+v, then %+v", first, again)
	}
}
