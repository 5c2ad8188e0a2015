package session

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// robot is a service user in the default organization.
func robot(t *testing.T, s *eventtest.Store, id string, roles ...access.Role) {
	t.Helper()
	eventtest.Given(t, s, user.Kind, id, "org_def", []event.Claim{user.NameClaim("org_def", syntax.NameKey(id))},
		user.ServiceAdded{Personal: user.ServiceFacts{UserName: id, UserNameKey: syntax.NameKey(id), Name: "R"}})
	if len(roles) > 0 {
		eventtest.Given(t, s, user.Kind, id, "", nil, user.MembershipSet{Scope: "org_def", Roles: roles})
	}
}

// manager is the permit of a user manager of an organization.
func manager(t *testing.T, orgID string) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_admin", RequestID: "req_1",
		Memberships: access.Memberships{orgID: {access.OrgUserManager}}}).In(orgID, access.CredentialWrite)
	must(t, err)
	return p
}

func TestHowLongATokenMayLive(t *testing.T) {
	now := eventtest.Start
	for name, c := range map[string]struct {
		after time.Duration
		ok    bool
	}{
		"a microsecond":              {time.Microsecond, true},
		"less than that":             {999 * time.Nanosecond, false},
		"no time":                    {0, false},
		"over already":               {-time.Hour, false},
		"366 days":                   {366 * 24 * time.Hour, true},
		"366 days and a microsecond": {366*24*time.Hour + time.Microsecond, false},
	} {
		at := now.Truncate(time.Microsecond).Add(c.after)
		wrong := NewToken{Expires: &at}.Violations(now.Truncate(time.Microsecond))
		if ok := len(wrong) == 0; ok != c.ok || !ok && wrong[0].Field != "expirationDate" {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	zero := time.Time{}
	if wrong := (NewToken{Expires: &zero}).Violations(now); len(wrong) != 1 {
		t.Error("the first moment of the first year counts as left out")
	}
	if wrong := (NewToken{}).Violations(now); wrong != nil {
		t.Errorf("left out: %v", wrong)
	}
}

func TestAPersonWhoIsSignedInMakesATokenOfTheirOwn(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	caller, err := sessions.Authenticate(t.Context(), session(t, s, "ses_1"))
	must(t, err)
	mark, before := s.Mark(), eventtest.State(t, s, user.Kind, "usr_jo").Sequence
	made, err := sessions.IssueOwn(t.Context(), caller, NewToken{Name: "Jo's laptop"})
	must(t, err)
	if !made.Expires.Equal(s.Now().Add(90 * 24 * time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("it expires at %v", made.Expires)
	}
	facts := s.Since(t, mark)
	if len(facts) != 1 || facts[0].Object != IDFor("usr_jo") || !strings.Contains(facts[0].Payload, made.TokenID) {
		t.Errorf("recorded %+v", facts)
	}
	if eventtest.State(t, s, user.Kind, "usr_jo").Sequence != before {
		t.Error("the user's own sequence moved")
	}
	if stored, _ := s.TokenByID(t.Context(), made.TokenID); stored.Name != "Jo's laptop" || s.Stored(t, made.Token) {
		t.Errorf("stored %+v", stored)
	}
	holder, err := sessions.Authenticate(t.Context(), made.Token)
	if err != nil || holder.UserID != "usr_jo" || holder.TokenID != made.TokenID {
		t.Errorf("it opens %+v, %v", holder, err)
	}
	// The name is in the row of the token, and nowhere else.
	if must(t, sessions.Revoke(t.Context(), Own(caller), made.TokenID)); s.Stored(t, "Jo's laptop") {
		t.Error("its name is left")
	}
	exact := s.Now().Add(time.Hour)
	made, err = sessions.IssueOwn(t.Context(), caller, NewToken{Expires: &exact})
	if err != nil || !made.Expires.Equal(exact.Truncate(time.Microsecond)) {
		t.Errorf("%v, %v", made.Expires, err)
	}
}

func TestWhoMakesNoTokenOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		name    string
		caller  func(t *testing.T, s *eventtest.Store, sessions *Sessions) *access.Caller
		refusal *errs.Error
	}{
		{"who comes with a token", func(t *testing.T, s *eventtest.Store, sessions *Sessions) *access.Caller {
			caller, err := sessions.Authenticate(t.Context(), pat(t, s))
			must(t, err)
			return caller
		}, ErrSessionRequired},
		{"a service user, whatever it comes with", func(t *testing.T, s *eventtest.Store, _ *Sessions) *access.Caller {
			robot(t, s, "usr_robot")
			return &access.Caller{UserID: "usr_robot", OrgID: "org_def", TokenKind: string(secret.PAT)}
		}, errNotAPerson},
		{"whose sessions were ended at that moment",
			func(t *testing.T, s *eventtest.Store, sessions *Sessions) *access.Caller {
				caller, err := sessions.Authenticate(t.Context(), session(t, s, "ses_1"))
				must(t, err)
				eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.SessionsEnded{})
				return caller
			}, errSessionsMoved},
		{"who was removed at that moment", func(t *testing.T, s *eventtest.Store, sessions *Sessions) *access.Caller {
			caller, err := sessions.Authenticate(t.Context(), session(t, s, "ses_1"))
			must(t, err)
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
			return caller
		}, user.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			person(t, s, "usr_jo", "org_def", "jo", "")
			caller := c.caller(t, s, sessions)
			before := s.Fingerprint()
			made, err := sessions.IssueOwn(t.Context(), caller, NewToken{})
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before || made != (Issued{}) {
				t.Error("a token was made")
			}
		})
	}
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	caller, err := sessions.Authenticate(t.Context(), session(t, s, "ses_1"))
	must(t, err)
	over := s.Now()
	_, err = sessions.IssueOwn(t.Context(), caller, NewToken{Expires: &over})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "expirationDate")
}

func TestForWhomTokensAreMade(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	robot(t, s, "usr_robot")
	robot(t, s, "usr_owner", access.OrgOwner)
	robot(t, s, "usr_off")
	eventtest.Given(t, s, user.Kind, "usr_off", "", nil, user.Deactivated{})
	robot(t, s, "usr_locked")
	eventtest.Given(t, s, user.Kind, "usr_locked", "", nil, user.WasLocked{})
	robot(t, s, "usr_gone")
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	robot(t, s, "usr_person_off")
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		refusal *errs.Error
	}{
		{"a service user", manager(t, "org_def"), "usr_robot", nil},
		{"a person makes their own", manager(t, "org_def"), "usr_jo", user.ErrNotService},
		{"who holds more", manager(t, "org_def"), "usr_owner", access.ErrTargetHoldsMore},
		{"who is inactive", manager(t, "org_def"), "usr_off", ErrUserNotActive},
		{"who is locked", manager(t, "org_def"), "usr_locked", ErrUserNotActive},
		{"who was removed", manager(t, "org_def"), "usr_gone", user.ErrNotFound},
		{"who is in another organization", manager(t, "org_b"), "usr_robot", user.ErrNotFound},
		{"nobody", manager(t, "org_def"), "usr_x", user.ErrNotFound},
		{"without a permit", access.Permit{}, "usr_robot", user.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Fingerprint()
			made, err := sessions.IssueFor(t.Context(), c.permit, c.id, NewToken{})
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) ||
				(made.Token != "") != (c.refusal == nil) {
				t.Errorf("wrote: %t, token %q", wrote, made.Token)
			}
		})
	}
	eventtest.Given(t, s, org.Kind, "org_def", "", nil, org.Deactivated{})
	_, err := sessions.IssueFor(t.Context(), manager(t, "org_def"), "usr_robot", NewToken{})
	eventtest.As(t, err, ErrOrgNotActive)
}
