package user_test

import (
	"errors"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// helper is the permit of somebody of support.
func helper(t *testing.T) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_support",
		Memberships: access.Memberships{access.Installation: {access.IAMSupport}}}).In("org_a", access.UserSupport)
	must(t, err)
	return p
}

// An administrator's word becomes the owner's by a code, and the owner's own word stays the older one, which counts for
// more.
func TestAVerifiedAddressIsProvenAgain(t *testing.T) {
	for _, before := range []user.Verifier{user.VerifiedByOwner, user.VerifiedByAdministrator} {
		s := place(t)
		must(t, human(t, s, "usr_a", "org_a", jo))
		was := user.Verification{By: before, At: event.Micros(s.Now())}
		eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.EmailVerified{Verification: &was})
		s.Advance(time.Hour)
		must(t, user.SendVerification(t.Context(), s, s.Master, helper(t), "usr_a", true))
		d, err := user.MailedCode(t.Context(), s, s.Master, "usr_a", true, nil)
		must(t, err)
		must(t, verify(t, s, user.ByEmail, d.Text))
		want := user.Verification{By: user.VerifiedByOwner, At: event.Micros(s.Now())}
		if before == user.VerifiedByOwner {
			want = was
		}
		email := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Email
		if !email.Verified || email.Verification != want {
			t.Errorf("verified by %s before: %+v", before, email)
		}
	}
}

func TestSupportSendsNoCodeToAnAddressThatIsNotVerified(t *testing.T) {
	s := place(t)
	must(t, human(t, s, "usr_a", "org_a", jo))
	verified := true
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.EmailChanged{Verified: &verified})
	must(t, user.SendVerification(t.Context(), s, s.Master, helper(t), "usr_a", true))
	// Somebody changes the address before the mail is written.
	verified = false
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.EmailChanged{Verified: &verified})
	_, err := user.MailedCode(t.Context(), s, s.Master, "usr_a", true, nil)
	eventtest.As(t, err, user.ErrEmailNotVerified)
	s.Advance(time.Hour)
	eventtest.As(t, user.SendVerification(t.Context(), s, s.Master, helper(t), "usr_a", true), user.ErrEmailNotVerified)
	verified = true
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.EmailChanged{Verified: &verified})
	eventtest.As(t, user.SendVerification(t.Context(), s, s.Master, helper(t), "usr_a", false),
		user.ErrDeliveryNotConfigured)
}

func TestAThrottleIsClearedThreeTimesWithinADay(t *testing.T) {
	s := place(t)
	must(t, human(t, s, "usr_a", "org_a", jo))
	clear := func() error {
		_, err := user.ClearThrottle(t.Context(), s, s.Master, helper(t), "usr_a", event.IfMatch{})
		return err
	}
	for range 3 {
		must(t, clear())
		s.Advance(time.Hour)
	}
	err := clear()
	if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Reason != user.ClearedTooOften || e.RetryAfter != 21*time.Hour {
		t.Errorf("the fourth time: %v", err)
	}
	s.Advance(21 * time.Hour)
	must(t, clear())
	if cleared := eventtest.State(t, s, user.Kind, "usr_a").Data.Password.Cleared; cleared != 4 {
		t.Errorf("cleared %d times", cleared)
	}
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.PasswordSet{})
	if cleared := eventtest.State(t, s, user.Kind, "usr_a").Data.Password.Cleared; cleared != 0 {
		t.Errorf("of another password, %d times", cleared)
	}
}

func TestARequestToRemoveAFactorEnds(t *testing.T) {
	f := user.Factor{Removal: &user.RemovalRequest{By: "usr_support", At: 1}}
	week := (7 * 24 * time.Hour).Microseconds()
	if f.RemovalAsked(week) == nil || f.RemovalAsked(week+1) != nil || (&user.Factor{}).RemovalAsked(1) != nil {
		t.Error("it does not count for seven days")
	}
}
