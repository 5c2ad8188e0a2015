package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// session gives jo a session without signing in.
func session(t *testing.T, s *eventtest.Store, id string) (token string) {
	t.Helper()
	token, hash := secret.NewToken(secret.Session)
	epoch := eventtest.State(t, s, user.Kind, "usr_jo").Data.SessionEpoch
	s.GivenToken(event.Token{ID: id, Hash: hash, Kind: string(secret.Session), UserID: "usr_jo", Epoch: epoch,
		Created: event.Micros(s.Now()), Expires: event.Micros(s.Now().Add(Life))})
	return token
}

func TestTokensEndWithThePasswordWhereThatIsWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		s, sessions := world(t)
		sessions.Audience = "signet"
		withPassword(t, s, usual())
		in := signIn(t, sessions)
		tokens := map[string]string{"a personal access token": pat(t, s)}
		for id, of := range map[string]string{"oat_1": in.SessionID, "oat_2": ""} {
			token, hash := secret.NewToken(secret.Access)
			s.GivenToken(event.Token{
				ID:      id,
				Hash:    hash,
				Kind:    string(secret.Access),
				UserID:  "usr_jo",
				Session: of,
				Epoch:   1,
				Expires: event.Micros(s.Now().Add(time.Hour)),
				Data:    Given{Audience: []string{"signet"}}.Text(),
			})
			tokens["an application's with the session "+of] = token
		}
		_, err := sessions.ChangePassword(t.Context(), as(t, sessions, in.Token), event.IfMatch{},
			ChangePassword{Current: right, New: "another one", EndTokens: wanted, Peer: home})
		must(t, err)
		as(t, sessions, in.Token)
		for name, token := range tokens {
			if _, err := sessions.Authenticate(t.Context(), token); (err != nil) != wanted {
				t.Errorf("%s, wanted: %t: %v", name, wanted, err)
			}
		}
	}
}

func TestAChangedPasswordEndsEverySessionButItsOwn(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	password(t, s, "usr_jo", cheap(), user.PasswordSet{ChangeRequired: true})
	own, other := session(t, s, "ses_own"), session(t, s, "ses_other")
	token := pat(t, s)
	caller, err := sessions.Authenticate(t.Context(), own)
	must(t, err)
	if !caller.MustChangePassword {
		t.Fatal("the session is not restricted to begin with")
	}
	caller.RequestID = "req_3"
	mark := s.Mark()
	d, err := sessions.ChangePassword(t.Context(), caller, event.IfMatch{Set: true, Sequence: 2},
		ChangePassword{Current: right, New: "battery staple", Peer: home})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.password_changed.v1", Payload: `{}`})
	if u := eventtest.State(t, s, user.Kind, "usr_jo"); d != u.Details() || d.Sequence != 3 ||
		u.Data.Password.ChangeRequired || u.Data.Password.Version != 2 {
		t.Errorf("details %+v, state %+v", d, u.Data)
	}
	caller, err = sessions.Authenticate(t.Context(), own)
	if err != nil || caller.MustChangePassword {
		t.Errorf("the own session: %+v, %v", caller, err)
	}
	_, err = sessions.Authenticate(t.Context(), other)
	eventtest.As(t, err, access.ErrUnauthenticated)
	if _, err := sessions.Authenticate(t.Context(), token); err != nil {
		t.Errorf("the personal access token: %v", err)
	}
	row, err := s.Row(t.Context(), user.PasswordRow("usr_jo"))
	must(t, err)
	if ok, _, _ := hasher.Verify(t.Context(), row.Value, "battery staple"); !ok {
		t.Error("the new password does not count")
	}
	for _, text := range []string{right, "battery staple"} {
		if s.Stored(t, text) {
			t.Errorf("%q is stored", text)
		}
	}

	// The next change counts from the new epoch on.
	eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.PasswordSet{})
	_, err = sessions.Authenticate(t.Context(), own)
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestAChangeByAPersonalAccessTokenEndsAllSessions(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	own, token := session(t, s, "ses_own"), pat(t, s)
	caller, err := sessions.Authenticate(t.Context(), token)
	must(t, err)
	_, err = sessions.ChangePassword(t.Context(), caller, event.IfMatch{},
		ChangePassword{Current: right, New: "kettle-brume", Peer: home})
	must(t, err)
	_, err = sessions.Authenticate(t.Context(), own)
	eventtest.As(t, err, access.ErrUnauthenticated)
	if _, err := sessions.Authenticate(t.Context(), token); err != nil {
		t.Error(err)
	}
}

func TestWhenAPasswordIsNotChanged(t *testing.T) {
	key := syntax.NameKey("robot")
	for _, c := range []struct {
		name   string
		given  func(*testing.T, *eventtest.Store)
		caller string
		match  event.IfMatch
		change ChangePassword
		kind   errs.Kind
		reason errs.Reason
		fields []string
		wrote  bool
	}{
		{"a wrong current password", nil, "usr_jo", event.IfMatch{},
			ChangePassword{Current: "wrong", New: "kettle-brume"}, errs.InvalidArgument, errs.InvalidRequest,
			[]string{"currentPassword"}, true},
		{"a wrong current password and another sequence", nil, "usr_jo", event.IfMatch{Set: true, Sequence: 1},
			ChangePassword{Current: "wrong", New: "kettle-brume"}, errs.InvalidArgument, errs.InvalidRequest,
			[]string{"currentPassword"}, true},
		{"another sequence", nil, "usr_jo", event.IfMatch{Set: true, Sequence: 1},
			ChangePassword{Current: right, New: "kettle-brume"}, errs.Aborted, event.SequenceMismatch, nil, false},
		{"a service user", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_robot", "org_def", []event.Claim{user.NameClaim("org_def", key)},
				user.ServiceAdded{Personal: user.ServiceFacts{UserName: "robot", UserNameKey: key, Name: "Robot"}})
		}, "usr_robot", event.IfMatch{}, ChangePassword{Current: right, New: "kettle-brume"}, errs.FailedPrecondition,
			user.NotHuman, nil, false},
		{"a removed user", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
		}, "usr_jo", event.IfMatch{}, ChangePassword{Current: right, New: "kettle-brume"}, errs.NotFound,
			user.NotFound, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			if c.given != nil {
				c.given(t, s)
			}
			before := s.Fingerprint()
			_, err := sessions.ChangePassword(t.Context(), &access.Caller{UserID: c.caller, OrgID: "org_def"},
				c.match, c.change)
			eventtest.Refused(t, err, c.kind, c.reason, c.fields...)
			if wrote := s.Fingerprint() != before; wrote != c.wrote {
				t.Errorf("wrote: %t", wrote)
			}
			if row, _ := s.Row(t.Context(), user.PasswordRow("usr_jo")); string(row.Value) != string(cheap()) {
				t.Error("the hash changed")
			}
		})
	}
}

func TestAWrongCurrentPasswordCountsLikeAFailedSignIn(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	own := session(t, s, "ses_own")
	caller, err := sessions.Authenticate(t.Context(), own)
	must(t, err)
	caller.RequestID = "req_4"
	sequence := eventtest.State(t, s, user.Kind, "usr_jo").Sequence
	mark := s.Mark()
	guess := func() string {
		_, err := sessions.ChangePassword(t.Context(), caller, event.IfMatch{},
			ChangePassword{Current: "Guessed-Secret-5", New: "kettle-brume", Peer: home, UserAgent: "browser"})
		return answer(err)
	}
	for i := range pairFree - 1 {
		if got := guess(); got != "INVALID_REQUEST" {
			t.Fatalf("guess %d: %s", i+1, got)
		}
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
		t.Errorf("signing in: %v", err)
	}
	if got := guess(); got != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("changing: %s", got)
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("signing in: %v", err)
	}
	s.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.failed.v1",
		Payload: failedAs(ByPassword, WrongPassword, 1), Personal: place})
	if got := eventtest.State(t, s, user.Kind, "usr_jo").Sequence; got != sequence {
		t.Errorf("the user moved from %d to %d", sequence, got)
	}
	if _, err := sessions.Authenticate(t.Context(), own); err != nil {
		t.Errorf("the session ended: %v", err)
	}
	if s.Stored(t, "Guessed-Secret-5") {
		t.Error("the guess is stored")
	}
}

func TestWhatHappensWhileTheCurrentPasswordIsCheckedWins(t *testing.T) {
	for _, c := range []struct {
		name   string
		facts  []event.Fact[user.User]
		kind   errs.Kind
		reason errs.Reason
	}{
		{"a new password", []event.Fact[user.User]{user.PasswordSet{}}, errs.Aborted, event.Contention},
		{"the user is deactivated", []event.Fact[user.User]{user.Deactivated{}}, errs.NotFound, user.NotFound},
		{"the user is deactivated and comes back: the session stays dead",
			[]event.Fact[user.User]{user.Deactivated{}, user.Reactivated{}}, errs.Aborted, event.Contention},
		{"the user is removed", []event.Fact[user.User]{user.WasRemoved{}}, errs.NotFound, user.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			own := session(t, s, "ses_own")
			caller, err := sessions.Authenticate(t.Context(), own)
			must(t, err)
			racing := *sessions
			racing.Store = &during{Store: s,
				happens: func() { eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, c.facts...) }}
			_, err = racing.ChangePassword(t.Context(), caller, event.IfMatch{},
				ChangePassword{Current: right, New: "kettle-brume", Peer: home})
			eventtest.Refused(t, err, c.kind, c.reason)
			_, err = sessions.Authenticate(t.Context(), own)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

func TestASequenceThatMovesWhileThePasswordIsCheckedIsAMismatch(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	sessions.Store = &during{Store: s,
		happens: func() { eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.ProfileChanged{}) }}
	_, err := sessions.ChangePassword(t.Context(), &access.Caller{UserID: "usr_jo"},
		event.IfMatch{Set: true, Sequence: 2}, ChangePassword{Current: right, New: "kettle-brume"})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
}

func TestARightCurrentPasswordIsNeverHeldAgainstAnybody(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for range 2 * pairFree {
		_, err := sessions.ChangePassword(t.Context(), &access.Caller{UserID: "usr_jo"},
			event.IfMatch{Set: true, Sequence: 1}, ChangePassword{Current: right, New: "kettle-brume", Peer: home})
		eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	}
}

func TestAChangedPasswordDoesNotForgetTheNetworkOfItsOwner(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	_, err := sessions.ChangePassword(t.Context(), &access.Caller{UserID: "usr_jo"}, event.IfMatch{},
		ChangePassword{Current: right, New: "a new one", Peer: home})
	must(t, err)
	hash, err := s.Row(t.Context(), user.PasswordRow("usr_jo"))
	must(t, err)
	s.GivenRow(joRow(cheap()))
	for i := range accountFree {
		_, _ = sessions.SignIn(t.Context(), try("jo", "wrong", net(i)))
	}
	s.GivenRow(*hash)
	if _, err := sessions.SignIn(t.Context(), try("jo", "a new one", away)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("from elsewhere: %s", answer(err))
	}
	if _, err := sessions.SignIn(t.Context(), try("jo", "a new one", home)); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

func TestAFloodOfSignInsDoesNotKeepAnybodyFromChangingThePassword(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	flood(t, sessions)
	current := right
	for _, next := range []string{"a second one", "a third one", "a fourth one"} {
		if _, err := sessions.ChangePassword(t.Context(), &access.Caller{UserID: "usr_jo"}, event.IfMatch{},
			ChangePassword{Current: current, New: next, Peer: home}); err != nil {
			t.Fatalf("to the %s: %v", next, err)
		}
		current = next
	}
}

func TestWhoHasToReplaceAPasswordNeedNotTypeItTwice(t *testing.T) {
	for name, c := range map[string]struct {
		must   bool
		later  time.Duration
		by     string // another way of signing in
		next   string
		field  string // that is wrong; empty: the password is changed
		reason errs.ProblemReason
	}{
		"just signed in":           {must: true, next: "kettle-brume"},
		"and keeps it":             {must: true, next: right, field: "newPassword", reason: UnchangedPassword},
		"and chooses a common one": {must: true, next: "password1", field: "newPassword"},
		"a while ago": {must: true, later: recentFor + time.Minute, next: "kettle-brume",
			field: "currentPassword"},
		"with a passkey": {must: true, by: `{"methods":["hwk","user"]}`, next: "kettle-brume",
			field: "currentPassword"},
		"who does not have to, either": {next: "kettle-brume", field: "currentPassword"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			in, err := sessions.SignIn(t.Context(), try("jo", right, home))
			must(t, err)
			caller := as(t, sessions, in.Token)
			caller.MustChangePassword = c.must
			if c.by != "" {
				proven := *caller.Session
				proven.Data = strings.Replace(c.by, "}", fmt.Sprintf(`,"at":%d}`, event.Micros(s.Now())), 1)
				caller.Session = &proven
			}
			s.Advance(c.later)
			_, err = sessions.ChangePassword(t.Context(), caller, event.IfMatch{},
				ChangePassword{New: c.next, Peer: home})
			if c.field != "" {
				eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, c.field)
				if e, ours := errors.AsType[*errs.Error](err); ours && e.Fields[0].Reason != c.reason {
					t.Errorf("got the reason %q, want %q", e.Fields[0].Reason, c.reason)
				}
				return
			}
			must(t, err)
			if _, err := sessions.SignIn(t.Context(), try("jo", c.next, home)); err != nil {
				t.Error(err)
			}
		})
	}
}
