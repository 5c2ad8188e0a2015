package user_test

import (
	"errors"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// asked asks for a mail with a code.
func asked(t *testing.T, s *eventtest.Store) error {
	t.Helper()
	_, err := user.RequestMyEmailCode(t.Context(), s, s.Master, me)
	return err
}

func waits(t *testing.T, err error, want time.Duration) {
	t.Helper()
	eventtest.Refused(t, err, errs.ResourceExhausted, mailcount.Throttled)
	if e, _ := errors.AsType[*errs.Error](err); e == nil || e.RetryAfter != want {
		t.Errorf("%v: want to wait for %v", err, want)
	}
	if !errors.Is(err, mailcount.ErrTooMany) {
		t.Error("nobody could tell")
	}
}

func TestAskingForACodeIsAnEventWithoutTheCode(t *testing.T) {
	s := unproven(t)
	mark := s.Mark()
	expires, err := user.RequestMyEmailCode(t.Context(), s, s.Master, me)
	must(t, err)
	if !expires.Equal(eventtest.Start.Add(time.Hour)) {
		t.Errorf("expires %v", expires)
	}
	s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.email_code_requested.v1", Payload: `{}`})
	if row, err := s.Row(t.Context(), user.CodeRow("usr_a", user.ByEmail)); row != nil || err != nil {
		t.Error("a code was made before anybody sends it")
	}
	d, err := user.MailedCode(t.Context(), s, s.Master, "usr_a", false, nil)
	must(t, err)
	if d.Address != jo.Email || d.Name == "" || d.Language != "de-CH" || s.Stored(t, d.Text) {
		t.Errorf("%+v", d)
	}
	must(t, verify(t, s, user.ByEmail, d.Text))
	eventtest.As(t, asked(t, s), user.ErrAlreadyVerified)
	_, err = user.MailedCode(t.Context(), s, s.Master, "usr_a", false, nil)
	eventtest.As(t, err, user.ErrAlreadyVerified)
	_, err = user.MailedCode(t.Context(), s, s.Master, "usr_gone", false, nil)
	eventtest.As(t, err, user.ErrNotFound)
}

func TestThereIsOneMailAMinuteAndTenADay(t *testing.T) {
	s := unproven(t)
	must(t, asked(t, s))
	waits(t, asked(t, s), time.Minute)
	s.Advance(59 * time.Second)
	waits(t, asked(t, s), time.Second)
	s.Advance(time.Second)
	for range 9 {
		must(t, asked(t, s))
		s.Advance(time.Minute)
	}
	waits(t, asked(t, s), 24*time.Hour-10*time.Minute)
	s.Advance(24*time.Hour - 10*time.Minute)
	must(t, asked(t, s))
	s.Advance(30 * time.Second)
	waits(t, asked(t, s), 30*time.Second)
	s.Advance(30 * time.Second)
	must(t, asked(t, s)) // the second of the day before is a day old by now
}

func TestAMailAboutAnEventCountsOnceHoweverOftenItIsTried(t *testing.T) {
	s := unproven(t)
	at := event.Micros(s.Now())
	take := func(kind string, at int64) (wait time.Duration) {
		t.Helper()
		c := mailcount.Of(s.Master, kind, "usr_a").For(at)
		must(t, s.Do(t.Context(), event.Command{Rows: []event.RowKey{c.Row}, Decide: func(tx *event.Tx) (err error) {
			wait, err = c.Take(tx)
			return err
		}}))
		return wait
	}
	for range 3 {
		if take("news", at) != 0 {
			t.Error("the mail was not let through")
		}
		s.Advance(5 * time.Second)
	}
	if take("news", at+time.Second.Microseconds()) == 0 {
		t.Error("another one within the minute was let through")
	}
	if take("other news", at+time.Second.Microseconds()) != 0 {
		t.Error("kinds are not counted apart")
	}
}

func TestACodeProvesAnAddressForSomebodyWhoIsNotSignedIn(t *testing.T) {
	s := unproven(t)
	by := func(id, code string) error {
		_, err := user.VerifyEmailByCode(t.Context(), s, s.Master, event.Origin{Actor: id}, id, code)
		return err
	}
	c := code(t, s, user.ByEmail)
	refusedCode(t, by("usr_nobody", c))
	refusedCode(t, by("usr_a", another(c)))
	must(t, by("usr_a", c))
	if !eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Email.Verified {
		t.Error("the address is not verified")
	}
	refusedCode(t, by("usr_a", c))

	s = unproven(t)
	c = code(t, s, user.ByEmail)
	for range 5 {
		refusedCode(t, by("usr_a", another(c)))
	}
	refusedCode(t, by("usr_a", c))

	s = unproven(t)
	c = code(t, s, user.ByEmail)
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.WasLocked{})
	refusedCode(t, by("usr_a", c))
}
