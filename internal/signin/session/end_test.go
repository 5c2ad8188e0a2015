package session

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// give stores a token of a kind that lives for an hour.
func give(s *eventtest.Store, id, userID string, kind secret.TokenKind) (token string) {
	token, hash := secret.NewToken(kind)
	s.GivenToken(event.Token{ID: id, Hash: hash, Kind: string(kind), UserID: userID, Name: "n " + id,
		Created: event.Micros(s.Now()), Expires: event.Micros(s.Now().Add(time.Hour))})
	return token
}

func TestWhatAnAdministratorEnds(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	person(t, s, "usr_ann", "org_def", "ann", "")
	robot(t, s, "usr_owner", access.OrgOwner)
	person(t, s, "usr_gone", "org_def", "gone", "")
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	tokens := map[string]string{}
	for id, userID := range map[string]string{"ses_jo": "usr_jo", "ses_ann": "usr_ann", "ses_owner": "usr_owner",
		"ses_gone": "usr_gone"} {
		tokens[id] = give(s, id, userID, secret.Session)
	}
	for id, userID := range map[string]string{"pat_jo": "usr_jo", "pat_ann": "usr_ann", "pat_owner": "usr_owner",
		"pat_gone": "usr_gone"} {
		tokens[id] = give(s, id, userID, secret.PAT)
	}
	for _, c := range []struct {
		name    string
		permit  access.Permit
		user    string
		id      string // without its prefix
		refusal bool   // of what is ended
		before  *errs.Error
	}{
		{"somebody else's", manager(t, "org_def"), "usr_jo", "ann", true, nil},
		{"an unknown one", manager(t, "org_def"), "usr_jo", "x", true, nil},
		{"of who holds more", manager(t, "org_def"), "usr_owner", "owner", false, access.ErrTargetHoldsMore},
		{"of who holds more, unknown", manager(t, "org_def"), "usr_owner", "x", false, access.ErrTargetHoldsMore},
		{"of a removed user", manager(t, "org_def"), "usr_gone", "gone", false, user.ErrNotFound},
		{"of an unknown user", manager(t, "org_def"), "usr_x", "jo", false, user.ErrNotFound},
		{"of a user of another organization", manager(t, "org_b"), "usr_jo", "jo", false, user.ErrNotFound},
		{"without a permit", access.Permit{}, "usr_jo", "jo", false, user.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Fingerprint()
			session, token := c.before, c.before
			if c.refusal {
				session, token = ErrNotFound, ErrTokenNotFound
			}
			eventtest.As(t, sessions.End(t.Context(), Of(c.permit, c.user), "ses_"+c.id), session)
			eventtest.As(t, sessions.Revoke(t.Context(), Of(c.permit, c.user), "pat_"+c.id), token)
			// What is of the other kind is not there.
			if c.refusal {
				eventtest.As(t, sessions.End(t.Context(), Of(c.permit, c.user), "pat_jo"), ErrNotFound)
				eventtest.As(t, sessions.Revoke(t.Context(), Of(c.permit, c.user), "ses_jo"), ErrTokenNotFound)
			}
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
	mark := s.Mark()
	must(t, sessions.End(t.Context(), Of(manager(t, "org_def"), "usr_jo"), "ses_jo"))
	must(t, sessions.Revoke(t.Context(), Of(manager(t, "org_def"), "usr_jo"), "pat_jo"))
	s.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.session_ended.v1",
		Payload: `{"sessionId":"ses_jo"}`},
		eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.token_revoked.v1", Payload: `{"tokenId":"pat_jo"}`})
	for _, id := range []string{"ses_jo", "pat_jo"} {
		_, err := sessions.Authenticate(t.Context(), tokens[id])
		eventtest.As(t, err, access.ErrUnauthenticated)
	}
	for _, id := range []string{"ses_ann", "pat_ann"} {
		if _, err := sessions.Authenticate(t.Context(), tokens[id]); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestWhatDoesNotCountIsNeitherListedNorEnded(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *eventtest.Store){
		"it expired": func(_ *testing.T, s *eventtest.Store) { s.Advance(time.Hour) },
		"the password was set": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.PasswordSet{})
		},
		"the user came back": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.Deactivated{}, user.Reactivated{})
		},
		"the user is locked": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		},
		"the organization came back": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{}, org.Reactivated{})
		},
		"the organization is inactive": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, sessions := world(t)
			person(t, s, "usr_jo", "org_def", "jo", "")
			give(s, "ses_1", "usr_jo", secret.Session)
			give(s, "pat_1", "usr_jo", secret.PAT)
			jo := Of(manager(t, "org_def"), "usr_jo")
			count := func() (n int) {
				for _, kind := range []secret.TokenKind{secret.Session, secret.PAT} {
					shown, _, err := sessions.List(t.Context(), jo, kind, event.Cursor{}, 10)
					must(t, err)
					n += len(shown)
				}
				return n
			}
			if n := count(); n != 2 {
				t.Fatalf("%d are listed to begin with", n)
			}
			happens(t, s)
			if n := count(); n != 0 {
				t.Errorf("%d are listed", n)
			}
			eventtest.As(t, sessions.End(t.Context(), jo, "ses_1"), ErrNotFound)
			eventtest.As(t, sessions.Revoke(t.Context(), jo, "pat_1"), ErrTokenNotFound)
		})
	}
}

func TestListsGoPageByPage(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	person(t, s, "usr_ann", "org_def", "ann", "")
	for i := range 5 {
		give(s, fmt.Sprintf("pat_%d", i), "usr_jo", secret.PAT)
		give(s, fmt.Sprintf("ses_%d", i), "usr_jo", secret.Session)
		give(s, fmt.Sprintf("pat_a%d", i), "usr_ann", secret.PAT)
	}
	s.GivenToken(event.Token{ID: "pat_2", Hash: make([]byte, 32), Kind: string(secret.PAT), UserID: "usr_jo", Epoch: 7,
		Expires: event.Micros(s.Now().Add(time.Hour))})
	jo := &access.Caller{UserID: "usr_jo", OrgID: "org_def"}
	for _, whose := range []Whose{Own(jo), Of(manager(t, "org_def"), "usr_jo")} {
		var ids []string
		var sizes []int
		for after := (event.Cursor{}); ; {
			shown, next, err := sessions.List(t.Context(), whose, secret.PAT, after, 2)
			must(t, err)
			sizes = append(sizes, len(shown))
			for _, one := range shown {
				ids = append(ids, one.ID)
				if one.Name != "n "+one.ID || !one.Expires.Equal(event.Time(event.Micros(s.Now().Add(time.Hour)))) ||
					!one.Created.Equal(event.Time(event.Micros(s.Now()))) {
					t.Errorf("shown: %+v", one)
				}
			}
			if next == nil {
				break
			}
			after = *next
		}
		if fmt.Sprint(ids, sizes) != "[pat_0 pat_1 pat_3 pat_4] [2 1 1]" {
			t.Errorf("listed %v in %v", ids, sizes)
		}
	}
	for name, whose := range map[string]Whose{
		"another organization": Of(manager(t, "org_b"), "usr_jo"),
		"nobody":               Of(manager(t, "org_def"), "usr_x"),
		"no permit":            Of(access.Permit{}, "usr_jo"),
		"nothing":              {},
		"a caller who is gone": Own(&access.Caller{UserID: "usr_x", OrgID: "org_def"}),
	} {
		if shown, _, err := sessions.List(t.Context(), whose, secret.PAT, event.Cursor{}, 10); shown != nil {
			t.Errorf("%s: %v", name, shown)
		} else {
			eventtest.As(t, err, user.ErrNotFound)
		}
	}
}

func TestOfTwoWhoEndTheSameOneSucceeds(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	jo := Of(manager(t, "org_def"), "usr_jo")
	give(s, "pat_1", "usr_jo", secret.PAT)
	mark := s.Mark()
	slow := *sessions
	slow.Store = &eventtest.Meanwhile{Store: s, Happens: func() { must(t, sessions.Revoke(t.Context(), jo, "pat_1")) }}
	eventtest.As(t, slow.Revoke(t.Context(), jo, "pat_1"), ErrTokenNotFound)
	if facts := s.Since(t, mark); len(facts) != 1 {
		t.Errorf("recorded %+v", facts)
	}
	// Something else that happens to the user is no reason to give up.
	give(s, "pat_2", "usr_jo", secret.PAT)
	give(s, "pat_3", "usr_jo", secret.PAT)
	slow.Store = &eventtest.Meanwhile{Store: s, Happens: func() { must(t, sessions.Revoke(t.Context(), jo, "pat_2")) }}
	must(t, slow.Revoke(t.Context(), jo, "pat_3"))

	give(s, "ses_1", "usr_jo", secret.Session)
	mark = s.Mark()
	var wait sync.WaitGroup
	results := make([]error, 64)
	for i := range results {
		wait.Go(func() { results[i] = sessions.End(t.Context(), jo, "ses_1") })
	}
	wait.Wait()
	ended := 0
	for _, err := range results {
		if err == nil {
			ended++
		} else {
			eventtest.As(t, err, ErrNotFound)
		}
	}
	if facts := s.Since(t, mark); ended != 1 || len(facts) != 1 {
		t.Errorf("%d ended it, recorded %+v", ended, facts)
	}
}

func TestAllSessionsEndButTheOneThatCalls(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	own, other, token := session(t, s, "ses_own"), session(t, s, "ses_other"), pat(t, s)
	caller, err := sessions.Authenticate(t.Context(), own)
	must(t, err)
	rival, err := sessions.Authenticate(t.Context(), other)
	must(t, err)
	_, err = sessions.EndOthers(t.Context(), caller, event.IfMatch{Set: true, Sequence: 99})
	eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
	mark := s.Mark()
	d, err := sessions.EndOthers(t.Context(), caller, event.IfMatch{Set: true, Sequence: 1})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.sessions_ended.v1", Payload: `{}`})
	if d.Sequence != 2 {
		t.Errorf("details %+v", d)
	}
	counts := func(bearer string) bool {
		_, err := sessions.Authenticate(t.Context(), bearer)
		return err == nil
	}
	if !counts(own) || counts(other) || !counts(token) {
		t.Errorf("own %t, other %t, token %t", counts(own), counts(other), counts(token))
	}
	// The other one was let in just before, and must not end what has ended it; nor does the first one's look count any
	// more.
	for _, late := range []*access.Caller{rival, caller} {
		_, err = sessions.EndOthers(t.Context(), late, event.IfMatch{})
		eventtest.As(t, err, errSessionsMoved)
	}
	if !counts(own) {
		t.Error("the one that was left has ended")
	}
	again, err := sessions.Authenticate(t.Context(), own)
	must(t, err)
	_, err = sessions.EndOthers(t.Context(), again, event.IfMatch{})
	if err != nil || !counts(own) {
		t.Errorf("once more: %v", err)
	}
	byToken, err := sessions.Authenticate(t.Context(), token)
	must(t, err)
	_, err = sessions.EndOthers(t.Context(), byToken, event.IfMatch{})
	if err != nil || counts(own) || !counts(token) {
		t.Errorf("by a token: %v, own %t, token %t", err, counts(own), counts(token))
	}
}

func TestAnAdministratorSignsAUserOut(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	robot(t, s, "usr_owner", access.OrgOwner)
	in, token := session(t, s, "ses_1"), pat(t, s)
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		refusal *errs.Error
	}{
		{"who holds more", manager(t, "org_def"), "usr_owner", access.ErrTargetHoldsMore},
		{"who is in another organization", manager(t, "org_b"), "usr_jo", user.ErrNotFound},
		{"nobody", manager(t, "org_def"), "usr_x", user.ErrNotFound},
		{"without a permit", access.Permit{}, "usr_jo", user.ErrNotFound},
		{"at another sequence", manager(t, "org_def"), "usr_jo", errs.New(errs.Aborted, event.SequenceMismatch, "")},
	} {
		before := s.Fingerprint()
		_, err := sessions.EndAll(t.Context(), c.permit, c.id, event.IfMatch{Set: true, Sequence: 99})
		eventtest.As(t, err, c.refusal)
		if s.Fingerprint() != before {
			t.Errorf("%s: something was written", c.name)
		}
	}
	mark := s.Mark()
	_, err := sessions.EndAll(t.Context(), manager(t, "org_def"), "usr_jo", event.IfMatch{})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.sessions_ended.v1", Payload: `{}`})
	_, err = sessions.Authenticate(t.Context(), in)
	eventtest.As(t, err, access.ErrUnauthenticated)
	if _, err = sessions.Authenticate(t.Context(), token); err != nil {
		t.Error("the personal access token has ended, too")
	}
}

func TestTheSecretOfAServiceUserIsNoBearerToken(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	_, err := sessions.Authenticate(t.Context(), give(s, "sec_1", "usr_jo", secret.Client))
	eventtest.As(t, err, access.ErrUnauthenticated)
}
