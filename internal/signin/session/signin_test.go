package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const place = `{"address":"192.0.2.1","userAgent":"browser"}`

func TestASignInIsAFactAboutTheCompanionAndNotAboutTheUser(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	before := eventtest.State(t, s, user.Kind, "usr_jo")
	mark := s.Mark()
	in := signIn(t, sessions)
	s.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.succeeded.v1",
		Payload: `{"sessionId":"` + in.SessionID + `","method":"pwd"}`, Personal: place})
	if after := eventtest.State(t, s, user.Kind, "usr_jo"); after.Details() != before.Details() {
		t.Errorf("the user moved from %+v to %+v", before.Details(), after.Details())
	}
	if in.UserID != "usr_jo" || in.ChangeRequired || !in.Expires.Equal(s.Now().Add(12*time.Hour)) {
		t.Errorf("got %+v", in)
	}
	token, err := s.TokenByID(t.Context(), in.SessionID)
	must(t, err)
	if token.UserID != "usr_jo" || token.Kind != string(secret.Session) || token.Expires != event.Micros(in.Expires) {
		t.Errorf("token %+v", token)
	}
	if s.Stored(t, in.Token) || s.Stored(t, right) {
		t.Error("a secret is stored in the clear")
	}
	caller, err := sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	if caller.UserID != "usr_jo" || caller.OrgID != "org_def" || caller.TokenID != in.SessionID ||
		caller.MustChangePassword {
		t.Errorf("caller %+v", caller)
	}
	events := events(t, s, mark)
	if events[0].Origin != (event.Origin{Actor: "usr_jo", RequestID: "req_1"}) || events[0].Org != "org_def" {
		t.Errorf("event %+v", events[0])
	}
	if user, _ := s.Record(t.Context(), user.Kind.Ref("usr_jo")); user.KeyID != events[0].KeyID {
		t.Error("the place is not sealed with the user's own key")
	}
}

// failedAs is the payload of failures that have the same reason.
func failedAs(m Method, why Reason, n int) string {
	return fmt.Sprintf(`{"count":%d,"by":[{"method":"%s","reason":"%s","count":%d}]}`, n, m, why, n)
}

// events are those since a mark.
func events(t *testing.T, s *eventtest.Store, mark int64) []event.Event {
	t.Helper()
	found, err := s.Events(t.Context(), mark, 100)
	must(t, err)
	return found
}

// withoutPasswords lets nobody of the default organization sign in with one.
func withoutPasswords(t *testing.T, s *eventtest.Store) {
	t.Helper()
	eventtest.Given(t, s, org.Kind, "org_def", "", nil,
		org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{SignIn: policy.SignIn{
			SignInMethods: []policy.Way{policy.WithProvider}}})})
}

func TestEveryFailedSignInLooksTheSame(t *testing.T) {
	for _, c := range []struct {
		name     string
		given    func(*testing.T, *eventtest.Store)
		attempt  Attempt
		recorded Reason // unknown names are only counted
	}{
		{"a wrong password", nil, try("jo", "wrong-secret-1", home), WrongPassword},
		{"an unknown name", nil, try("unheard-of-name-1", right, home), ""},
		{"an inactive user", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.Deactivated{})
		}, try("jo", right, home), UserInactive},
		{"a locked user", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		}, try("jo", right, home), UserLocked},
		{"a locked user and a wrong password", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		}, try("jo", "wrong-secret-1", home), UserLocked},
		{"a removed user", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
		}, try("jo", right, home), ""},
		{"an inactive organization", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
		}, try("jo", right, home), OrgInactive},
		{"an organization without passwords", withoutPasswords, try("jo", right, home), WayNotAllowed},
		{"a wrong one where there are none", withoutPasswords, try("jo", "wrong-secret-1", home), WayNotAllowed},
		{"a wrong one of an owner, who keeps it", func(t *testing.T, s *eventtest.Store) {
			withoutPasswords(t, s)
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil,
				user.MembershipSet{Scope: "org_def", Roles: []access.Role{access.OrgOwner}})
		}, try("jo", "wrong-secret-1", home), WrongPassword},
		{"a user without a password", func(t *testing.T, s *eventtest.Store) {
			person(t, s, "usr_none", "org_def", "none", "")
		}, try("none", right, home), NoPassword},
		{"a hash that cannot be used", func(t *testing.T, s *eventtest.Store) {
			password(t, s, "usr_jo", []byte("rubbish"), user.PasswordSet{})
		}, try("jo", "rubbish", home), WrongPassword},
		{"a service user", func(t *testing.T, s *eventtest.Store) {
			key := syntax.NameKey("robot")
			eventtest.Given(t, s, user.Kind, "usr_robot", "org_def", []event.Claim{user.NameClaim("org_def", key)},
				user.ServiceAdded{Personal: user.ServiceFacts{UserName: "robot", UserNameKey: key, Name: "Robot"}})
			s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_robot"), Value: cheap()})
		}, try("robot", right, home), NotAPerson},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			if c.given != nil {
				c.given(t, s)
			}
			mark := s.Mark()
			_, err := sessions.SignIn(t.Context(), c.attempt)
			if err != error(ErrSignInFailed) {
				t.Errorf("got %v", err)
			}
			var want []eventtest.Fact
			if c.recorded != "" {
				u, _, _ := sessions.find(t.Context(), c.attempt.LoginName, NameScope{})
				want = []eventtest.Fact{{Object: IDFor(u.ID), Type: "sign_in.failed.v1",
					Payload: failedAs(ByPassword, c.recorded, 1), Personal: place}}
			}
			s.Then(t, mark, want...)
			for _, e := range events(t, s, mark) {
				if e.Origin != (event.Origin{Actor: event.System, RequestID: "req_1"}) {
					t.Errorf("caused by %+v", e.Origin)
				}
			}
			for _, typed := range []string{"wrong-secret-1", "unheard-of-name-1", right} {
				if s.Stored(t, typed) {
					t.Errorf("%q was stored", typed)
				}
			}
		})
	}
}

// People type their password where the name belongs. Neither may be found anywhere afterwards, however often it is
// tried, in whatever spelling and also once the throttle steps in.
func TestWhatIsTypedInAFailedAttemptIsRecordedNowhere(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for range 2 {
		for _, a := range []Attempt{
			try("Hunter2-Typed-As-Name", "Also-A-Secret-9", home), try("Hunter2-Typed-As-Name@def.test", "x", home),
			try("jo", "Hunter2-Typed-As-Name", home),
			{LoginName: "jo", Password: "Also-A-Secret-9", OrgID: "org_b", Peer: home},
		} {
			if _, err := sessions.SignIn(t.Context(), a); err == nil {
				t.Fatal("it went in")
			}
		}
	}
	for _, typed := range []string{"Hunter2-Typed-As-Name", "Also-A-Secret-9"} {
		for _, spelling := range []string{typed, strings.ToLower(typed), syntax.NameKey(typed)} {
			if s.Stored(t, spelling) {
				t.Errorf("%q is stored", spelling)
			}
		}
	}
}

// stopAfterEnter ends the caller's context as soon as the throttle has let the attempt pass: an attempt that hashes
// notices.
type stopAfterEnter struct {
	event.Store
	stop context.CancelFunc
}

func (s stopAfterEnter) Do(ctx context.Context, c event.Command) error {
	defer s.stop()
	return s.Store.Do(context.WithoutCancel(ctx), c) // the store itself must not notice, or it would look like a hash
}

func TestThePasswordIsHashedForWhoeverIsNamed(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	person(t, s, "usr_none", "org_def", "none", "")
	for _, name := range []string{"jo", "none", "nobody", "nobody@b.test"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			stopping := *sessions
			stopping.Store = stopAfterEnter{s, cancel}
			if _, err := stopping.SignIn(ctx, try(name, "wrong", home)); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v: no hash was asked for", err)
			}
		})
	}
}

// during lets something happen while a password is being checked.
type during struct {
	event.Store
	once    bool
	happens func()
}

func (d *during) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	row, err := d.Store.Row(ctx, key)
	if !d.once {
		d.once = true
		d.happens()
	}
	return row, err
}

func TestWhatHappensWhileThePasswordIsCheckedWins(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(*testing.T, *eventtest.Store)
	}{
		{"a new password", func(t *testing.T, s *eventtest.Store) {
			password(t, s, "usr_jo", cheap(), user.PasswordSet{})
		}},
		{"the user is deactivated", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.Deactivated{})
		}},
		{"the user is removed", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
		}},
		{"the organization is deactivated", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, usual())
			sessions.Store = &during{Store: s, happens: func() { c.happens(t, s) }}
			_, err := sessions.SignIn(t.Context(), try("jo", right, home))
			eventtest.As(t, err, ErrSignInFailed)
			if c.name == "the user is removed" { // nothing is recorded of somebody who is gone
				if companion, err := s.Record(t.Context(), Kind.Ref(IDFor("usr_jo"))); companion != nil || err != nil {
					t.Errorf("recorded %+v, %v", companion, err)
				}
			} else if state := eventtest.State(t, s, Kind, IDFor("usr_jo")).Data; state.Succeeded != 0 ||
				state.Failed != 1 {
				t.Errorf("recorded %+v", state)
			}
		})
	}
}

func TestASignInUpgradesAnOldHashWithoutAFact(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	before := eventtest.State(t, s, user.Kind, "usr_jo").Details()
	signIn(t, sessions)
	row, err := s.Row(t.Context(), user.PasswordRow("usr_jo"))
	must(t, err)
	if string(row.Value) == string(cheap()) {
		t.Error("the hash is still the old one")
	}
	if eventtest.State(t, s, user.Kind, "usr_jo").Details() != before {
		t.Error("the user moved")
	}
	signIn(t, sessions)
}

func TestAPasswordThatMustBeChangedRestrictsTheSession(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	password(t, s, "usr_jo", usual(), user.PasswordSet{ChangeRequired: true})
	in := signIn(t, sessions)
	caller, err := sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	if !in.ChangeRequired || !caller.MustChangePassword {
		t.Errorf("got %+v and %+v", in, caller)
	}
}

func TestALongUserAgentIsCutToWholeCharacters(t *testing.T) {
	p := RequestSourceOf(home, strings.Repeat("x", 199)+"ü")
	if p.UserAgent != strings.Repeat("x", 199) {
		t.Errorf("got %q", p.UserAgent)
	}
	if p := RequestSourceOf(Attempt{}.Peer, "x"); p.Address != "" {
		t.Errorf("an unknown address became %q", p.Address)
	}
}

func TestABusyServerSaysSoAndDoesNotSayWrong(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	ctx, cancel := context.WithCancel(t.Context())
	stopping := *sessions
	stopping.Store = stopAfterEnter{s, cancel}
	_, err := stopping.SignIn(ctx, try("jo", right, home))
	if errs.KindOf(err) == errs.Unauthenticated {
		t.Errorf("got %v", err)
	}
}
