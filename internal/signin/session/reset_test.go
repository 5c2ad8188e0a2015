package session

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const next = "battery staple"

func forgot(t *testing.T, s *Sessions, name, orgID string) {
	t.Helper()
	must(t, s.RequestReset(t.Context(),
		ResetRequest{LoginName: name, OrgID: orgID, Peer: home, UserAgent: "browser", RequestID: "req_1"}))
	must(t, s.AnswerWaitingResets(t.Context()))
}

var requested = eventtest.Fact{Object: "sgi_jo", Type: "sign_in.password_reset_requested.v1", Payload: `{}`,
	Personal: `{"address":"192.0.2.1","userAgent":"browser"}`}

func TestWhoHasForgottenThePasswordIsFoundLikeAtSignIn(t *testing.T) {
	for name, in := range map[string]string{"jo": "", "JO@def.test": "", "jo@mail.test": "", "Jo": "org_def"} {
		s, sessions := world(t)
		withPassword(t, s, cheap())
		mark := s.Mark()
		forgot(t, sessions, name, in)
		s.Then(t, mark, requested)
	}
}

func TestWhoMayNotUseAPasswordIsToldHowElseByMail(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	only(t, s, policy.WithProvider)
	mark := s.Mark()
	forgot(t, sessions, "jo", "")
	told := requested
	told.Payload = `{"noPassword":true}`
	s.Then(t, mark, told)
}

func TestAResetIsMailedToNobodyElse(t *testing.T) {
	for name, given := range map[string]func(t *testing.T, s *eventtest.Store){
		"nobody of that name": func(*testing.T, *eventtest.Store) {},
		"an address that is not verified": func(t *testing.T, s *eventtest.Store) {
			no := false
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.EmailChanged{Verified: &no})
		},
		"a user who is switched off": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.Deactivated{})
		},
		"a user who is locked": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		},
		"an organization that is switched off": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			given(t, s)
			mark := s.Mark()
			who := "jo"
			if strings.HasPrefix(name, "nobody") {
				who = "nobody-at-all"
			}
			forgot(t, sessions, who, "")
			s.Then(t, mark)
			if s.Stored(t, "nobody-at-all") {
				t.Error("the name is stored: people type passwords there")
			}
		})
	}
}

func TestAResetIsMailedOnceAMinuteAndNobodyIsTold(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	mark := s.Mark()
	for range 3 {
		forgot(t, sessions, "jo", "")
		forgot(t, sessions, "jo@mail.test", "")
	}
	s.Then(t, mark, requested)
	s.Advance(time.Minute)
	mark = s.Mark()
	forgot(t, sessions, "jo", "")
	s.Then(t, mark, requested)
}

// resetCode is a code for jo.
func resetCode(t *testing.T, s *eventtest.Store) string {
	t.Helper()
	d, err := user.ResetCode(t.Context(), s, s.Master, "usr_jo")
	must(t, err)
	if d.Address != "jo@mail.test" || s.Stored(t, d.Text) {
		t.Errorf("%+v, or it is stored", d)
	}
	return d.Text
}

func reset(t *testing.T, s *Sessions, id, code string, peer netip.Addr) error {
	t.Helper()
	_, err := s.Reset(t.Context(),
		Reset{UserID: id, Code: code, Password: next, Peer: peer, UserAgent: "browser", RequestID: "req_1"})
	return err
}

func wrongCode(t *testing.T, err error) {
	t.Helper()
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "code")
}

func wrong(code string) string {
	if code[0] == 'A' {
		return "B" + code[1:]
	}
	return "A" + code[1:]
}

func TestAResetReplacesThePasswordAndEndsSessionsAndTokens(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	in := signIn(t, sessions)
	caller, err := sessions.Authenticate(t.Context(), in.Token)
	must(t, err)
	pat, err := sessions.IssueOwn(t.Context(), caller, NewToken{Name: "x"})
	must(t, err)
	code := resetCode(t, s)
	mark := s.Mark()
	d, err := sessions.Reset(t.Context(),
		Reset{UserID: "usr_jo", Code: strings.ToLower(code), Password: next, Peer: home, RequestID: "req_1"})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.password_reset.v1", Payload: `{}`})
	u := eventtest.State(t, s, user.Kind, "usr_jo")
	if d != u.Details() || u.Data.Password != (user.Password{Version: 2}) {
		t.Errorf("%+v, %+v", d, u.Data.Password)
	}
	for _, token := range []string{in.Token, pat.Token} {
		_, err := sessions.Authenticate(t.Context(), token)
		eventtest.As(t, err, access.ErrUnauthenticated)
	}
	_, err = sessions.SignIn(t.Context(), try("jo", right, home))
	eventtest.As(t, err, ErrSignInFailed)
	_, err = sessions.SignIn(t.Context(), try("jo", next, home))
	must(t, err)
	wrongCode(t, reset(t, sessions, "usr_jo", code, home)) // used
	if row, err := s.Row(t.Context(), user.ResetRow("usr_jo")); row != nil || err != nil {
		t.Error("the code is still there")
	}
}

func TestAResetIsHeldToThePolicyOfTheOrganization(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	eventtest.Given(t, s, org.Kind, "org_def", "", nil,
		org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{PasswordMinLength: int64(len(next) + 1)})})
	code := resetCode(t, s)
	eventtest.Refused(t, reset(t, sessions, "usr_jo", code, home), errs.InvalidArgument,
		errs.InvalidRequest, "newPassword")
	if _, err := sessions.SignIn(t.Context(), try("jo", right, home)); err != nil {
		t.Errorf("the password before: %v", err)
	}
	_, err := sessions.Reset(t.Context(),
		Reset{UserID: "usr_jo", Code: code, Password: next + "!", Peer: home, RequestID: "req_1"})
	must(t, err) // the code was not used up
}

func TestAResetLeavesTheSecondFactorRequired(t *testing.T) {
	var u user.User
	u.SecondFactor, u.SessionEpoch, u.TokenEpoch = true, 3, 4
	user.PasswordReset{}.Apply(&u)
	if !u.SecondFactor || u.SessionEpoch != 4 || u.TokenEpoch != 5 {
		t.Errorf("%+v", u.Standing)
	}
}

func TestWhatEndsAResetCode(t *testing.T) {
	other, key, yes := "jo@other.test", "jo@other.test", true
	for name, end := range map[string]func(t *testing.T, s *eventtest.Store, sessions *Sessions, code string){
		"an hour":       func(_ *testing.T, s *eventtest.Store, _ *Sessions, _ string) { s.Advance(time.Hour) },
		"the next code": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) { resetCode(t, s) },
		"another address": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil,
				user.EmailChanged{Verified: &yes, Personal: user.EmailFacts{Email: &other, EmailKey: &key}})
		},
		"an address that is no longer verified": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) {
			no := false
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.EmailChanged{Verified: &no})
		},
		"another password": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.PasswordChanged{})
		},
		"a locked user": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		},
		"an organization that is switched off": func(t *testing.T, s *eventtest.Store, _ *Sessions, _ string) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
		},
		"five wrong ones from five networks": func(t *testing.T, _ *eventtest.Store, sessions *Sessions, code string) {
			for i := range 5 {
				wrongCode(t, reset(t, sessions, "usr_jo", wrong(code), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			code := resetCode(t, s)
			end(t, s, sessions, code)
			mark := s.Mark()
			wrongCode(t, reset(t, sessions, "usr_jo", code, home))
			s.Then(t, mark)
		})
	}
	s, sessions := world(t)
	withPassword(t, s, cheap())
	code := resetCode(t, s)
	for range 4 {
		wrongCode(t, reset(t, sessions, "usr_jo", wrong(code), home))
	}
	must(t, reset(t, sessions, "usr_jo", code, home))
	wrongCode(t, reset(t, sessions, "usr_nobody", code, home))
}

func TestGuessingResetCodesIsSlowedDownForUsersThereAreNotToo(t *testing.T) {
	for _, id := range []string{"usr_jo", "usr_nobody"} {
		s, sessions := world(t)
		withPassword(t, s, cheap())
		mark := s.Mark()
		for range 5 {
			wrongCode(t, reset(t, sessions, id, "22222222", home))
		}
		eventtest.Refused(t, reset(t, sessions, id, "22222222", home), errs.ResourceExhausted, SignInThrottled)
		s.Then(t, mark) // it is not a failed sign-in
		_, err := sessions.SignIn(t.Context(), try("jo", right, home))
		must(t, err) // and does not hold up one
		s.Advance(time.Second)
		wrongCode(t, reset(t, sessions, id, "22222222", home))
	}
}

func TestOneOfManyResetsAtOnceCounts(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	code := resetCode(t, s)
	mark := s.Mark()
	errors := make([]error, 64)
	var all sync.WaitGroup
	for i := range errors {
		all.Go(func() { errors[i] = reset(t, sessions, "usr_jo", code, netip.AddrFrom4([4]byte{10, 0, byte(i), 1})) })
	}
	all.Wait()
	good := 0
	for _, err := range errors {
		switch errs.KindOf(err) {
		case errs.InvalidArgument, errs.ResourceExhausted, errs.Unavailable:
		default:
			if err != nil {
				t.Error(err)
			}
			good++
		}
	}
	if good != 1 {
		t.Errorf("%d resets counted", good)
	}
	s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.password_reset.v1", Payload: `{}`})
}
