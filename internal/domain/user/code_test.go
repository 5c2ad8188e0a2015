package user_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// unproven is a person, usr_a, whose contacts nobody has proven.
func unproven(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, user.Kind)
	n := jo
	n.EmailVerified, n.PhoneVerified = false, false
	must(t, human(t, s, "usr_a", "org_a", n))
	return s
}

func code(t *testing.T, s *eventtest.Store, by user.Contact) string {
	t.Helper()
	c, err := user.CreateCode(t.Context(), s, s.Master, permit(t, "org_a", manager), "usr_a", by)
	must(t, err)
	return c.Text
}

func verify(t *testing.T, s *eventtest.Store, by user.Contact, code string) error {
	t.Helper()
	_, err := user.VerifyMine(t.Context(), s, s.Master, me, by, event.IfMatch{}, code)
	return err
}

func refusedCode(t *testing.T, err error) {
	t.Helper()
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "code")
}

// another is a code of the right form that is not c.
func another(c string) string {
	last := "2"
	if strings.HasSuffix(c, last) {
		last = "3"
	}
	return c[:len(c)-1] + last
}

var contacts = []user.Contact{user.ByEmail, user.ByPhone}

func TestACodeProvesWhatItWasMadeForOnce(t *testing.T) {
	for _, by := range contacts {
		t.Run(string(by), func(t *testing.T) {
			s := unproven(t)
			mark := s.Mark()
			c, err := user.CreateCode(t.Context(), s, s.Master, permit(t, "org_a", manager), "usr_a", by)
			must(t, err)
			if !regexp.MustCompile(`^[2-9A-HJ-NP-Z]{8}$`).MatchString(c.Text) ||
				!c.Expires.Equal(eventtest.Start.Add(time.Hour)) {
				t.Errorf("made %+v", c)
			}
			s.Then(t, mark) // that there is a code says nothing about the user
			if s.Stored(t, c.Text) || s.Stored(t, strings.ToLower(c.Text)) {
				t.Error("the code is stored")
			}
			d, err := user.VerifyMine(t.Context(), s, s.Master, me, by, event.IfMatch{Set: true, Sequence: 1},
				strings.ToLower(c.Text))
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: event.Type("user." + string(by) + "_verified.v1"),
				// the manager has seen the code
				Payload: map[user.Contact]string{user.ByEmail: `{` + vouched + `}`, user.ByPhone: `{}`}[by]})
			u := eventtest.State(t, s, user.Kind, "usr_a")
			if h := u.Data.Human; h.Email.Verified != (by == user.ByEmail) ||
				h.Phone.Verified != (by == user.ByPhone) || d != u.Details() {
				t.Errorf("state %+v, details %+v", h, d)
			}
			before := s.Fingerprint()
			refusedCode(t, verify(t, s, by, c.Text))
			if s.Fingerprint() != before {
				t.Error("a used code wrote something")
			}
		})
	}
}

func TestACodeThatDoesNotCount(t *testing.T) {
	for _, by := range contacts {
		other := user.ByPhone
		if by == user.ByPhone {
			other = user.ByEmail
		}
		set := func(t *testing.T, s *eventtest.Store, email, phone string) {
			_, err := user.SetMyEmail(t.Context(), s, me, event.IfMatch{}, email)
			must(t, err)
			_, err = user.SetMyPhone(t.Context(), s, me, event.IfMatch{}, phone)
			must(t, err)
		}
		for _, c := range []struct {
			name    string
			happens func(*testing.T, *eventtest.Store)
			change  func(string) string
			by      user.Contact
			counts  bool
		}{
			{"at once", nil, nil, by, true},
			{"just before it expires",
				func(_ *testing.T, s *eventtest.Store) { s.Advance(time.Hour - time.Microsecond) }, nil, by, true},
			{"when it has expired", func(_ *testing.T, s *eventtest.Store) { s.Advance(time.Hour) }, nil, by, false},
			{"a wrong one", nil, another, by, false},
			{"with something on", nil, func(c string) string { return c + "2" }, by, false},
			{"cut short", nil, func(c string) string { return c[:7] }, by, false},
			{"nothing", nil, func(string) string { return "" }, by, false},
			{"for the other contact", nil, nil, other, false},
			{"after the next one was made", func(t *testing.T, s *eventtest.Store) { code(t, s, by) }, nil, by, false},
			{"after one was made for the other contact", func(t *testing.T, s *eventtest.Store) { code(t, s, other) },
				nil, by, true},
			{"after the address changed", func(t *testing.T, s *eventtest.Store) { set(t, s, "new@example.org", "+1") },
				nil, by, false},
			{"after the address changed and came back", func(t *testing.T, s *eventtest.Store) {
				set(t, s, "new@example.org", "+1")
				set(t, s, jo.Email, jo.Phone)
			}, nil, by, false},
			{"after the same address was set again",
				func(t *testing.T, s *eventtest.Store) { set(t, s, jo.Email, jo.Phone) }, nil, by, true},
			{"after four wrong ones", func(t *testing.T, s *eventtest.Store) { wrong(t, s, by, 4) }, nil, by, true},
			{"after five wrong ones", func(t *testing.T, s *eventtest.Store) { wrong(t, s, by, 5) }, nil, by, false},
			{"after five wrong ones with a sequence that does not hold", func(t *testing.T, s *eventtest.Store) {
				for range 5 {
					_, err := user.VerifyMine(t.Context(), s, s.Master, me, by,
						event.IfMatch{Set: true, Sequence: 9}, "x")
					refusedCode(t, err)
				}
			}, nil, by, false},
			{"after the right one with a sequence that does not hold", func(t *testing.T, s *eventtest.Store) {
				made := code(t, s, by)
				_, err := user.VerifyMine(t.Context(), s, s.Master, me, by, event.IfMatch{Set: true, Sequence: 9}, made)
				eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
				must(t, verify(t, s, by, made))
			}, nil, by, false},
		} {
			t.Run(string(by)+"/"+c.name, func(t *testing.T) {
				s := unproven(t)
				made := code(t, s, by)
				if c.happens != nil {
					c.happens(t, s)
				}
				if c.change != nil {
					made = c.change(made)
				}
				mark := s.Mark()
				err := verify(t, s, c.by, made)
				if c.counts {
					must(t, err)
					return
				}
				refusedCode(t, err)
				s.Then(t, mark)
			})
		}
	}
}

func wrong(t *testing.T, s *eventtest.Store, by user.Contact, times int) {
	t.Helper()
	for range times {
		refusedCode(t, verify(t, s, by, "wrong"))
	}
}

// A wrong code renews nothing: it would live for ever otherwise.
func TestAWrongCodeDoesNotProlongTheRightOne(t *testing.T) {
	s := unproven(t)
	made := code(t, s, user.ByEmail)
	s.Advance(59 * time.Minute)
	wrong(t, s, user.ByEmail, 1)
	s.Advance(time.Minute)
	refusedCode(t, verify(t, s, user.ByEmail, made))
}

// The row belongs to the user and the very address, whoever has copied or kept it.
func TestACodeIsBoundToUserAndAddress(t *testing.T) {
	s := unproven(t)
	n := jo
	n.UserName, n.EmailVerified = "twin", false
	must(t, human(t, s, "usr_b", "org_a", n))
	made := code(t, s, user.ByEmail)
	row, err := s.Row(t.Context(), user.CodeRow("usr_a", user.ByEmail))
	must(t, err)
	copied := *row
	copied.RowKey = user.CodeRow("usr_b", user.ByEmail)
	s.GivenRow(copied)
	_, err = user.VerifyMine(t.Context(), s, s.Master, &access.Caller{UserID: "usr_b"}, user.ByEmail,
		event.IfMatch{}, made)
	refusedCode(t, err)
	_, err = user.SetMyEmail(t.Context(), s, me, event.IfMatch{}, "new@example.org")
	must(t, err)
	s.GivenRow(*row)
	refusedCode(t, verify(t, s, user.ByEmail, made))
}

func TestOfManyAttemptsAtOnceWithTheRightCodeOneCounts(t *testing.T) {
	s := unproven(t)
	made := code(t, s, user.ByEmail)
	var good atomic.Int32
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			if err := verify(t, s, user.ByEmail, made); err == nil {
				good.Add(1)
			}
		})
	}
	if wait.Wait(); good.Load() != 1 {
		t.Errorf("it counted %d times", good.Load())
	}
}

// loser loses the first race of each command, and what it decided then.
type loser struct {
	event.Store
	meanwhile func()
}

func (l loser) Do(ctx context.Context, c event.Command) error {
	lost, first := errors.New("lost"), c
	first.Decide = func(tx *event.Tx) error { return errors.Join(c.Decide(tx), lost) }
	if err := l.Store.Do(ctx, first); !errors.Is(err, lost) {
		return err
	}
	l.meanwhile()
	return l.Store.Do(ctx, c)
}

func TestACodeThatWasUsedWhileTheRaceWasLostDoesNotCount(t *testing.T) {
	s := unproven(t)
	made := code(t, s, user.ByEmail)
	race := loser{s, func() { must(t, verify(t, s, user.ByEmail, made)) }}
	_, err := user.VerifyMine(t.Context(), race, s.Master, me, user.ByEmail, event.IfMatch{}, made)
	refusedCode(t, err)
}

func TestForWhomACodeIsMade(t *testing.T) {
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	none := jo
	none.UserName, none.Phone, none.EmailVerified = "none", "", false
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		by      user.Contact
		refusal *errs.Error
	}{
		{"an address that is verified", permit(t, "org_a", manager), "usr_proven", user.ByEmail,
			user.ErrAlreadyVerified},
		{"a number that is verified", permit(t, "org_a", manager), "usr_proven", user.ByPhone, user.ErrAlreadyVerified},
		{"no number", permit(t, "org_a", manager), "usr_none", user.ByPhone, user.ErrNothingToVerify},
		{"a service user", permit(t, "org_a", manager), "usr_robot", user.ByEmail, user.ErrNotHuman},
		{"somebody who holds more", permit(t, "org_a", manager), "usr_owner", user.ByEmail, access.ErrTargetHoldsMore},
		{"somebody elsewhere", permit(t, "org_b", iam), "usr_a", user.ByEmail, user.ErrNotFound},
		{"nobody", permit(t, "org_a", iam), "usr_x", user.ByEmail, user.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := unproven(t)
			must(t, human(t, s, "usr_none", "org_a", none))
			must(t, human(t, s, "usr_proven", "org_a",
				user.NewHuman{UserName: "proven", Profile: jo.Profile, Email: jo.Email, EmailVerified: true,
					Phone: jo.Phone, PhoneVerified: true}))
			must(t, human(t, s, "usr_owner", "org_a",
				user.NewHuman{UserName: "owner", Profile: jo.Profile, Email: jo.Email}))
			eventtest.Given(t, s, user.Kind, "usr_owner", "", nil,
				user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}})
			must(t, service(t, s, "usr_robot", "org_a", "robot"))
			before := s.Fingerprint()
			_, err := user.CreateCode(t.Context(), s, s.Master, c.permit, c.id, c.by)
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
}

func TestACodeIsSentToThePersonAndAnsweredToNobody(t *testing.T) {
	for _, by := range contacts {
		t.Run(string(by), func(t *testing.T) {
			s := unproven(t)
			before := s.Fingerprint()
			_, err := user.SendMyCode(t.Context(), s, s.Master, me, by, nil)
			eventtest.As(t, err, user.ErrDeliveryNotConfigured)
			if s.Fingerprint() != before {
				t.Error("a code was made that nobody gets")
			}
			var sent user.Delivery
			expires, err := user.SendMyCode(t.Context(), s, s.Master, me, by,
				func(_ context.Context, d user.Delivery) error { sent = d; return nil })
			must(t, err)
			want := jo.Email
			if by == user.ByPhone {
				want = jo.Phone
			}
			if sent.UserID != "usr_a" || sent.By != by || sent.Address != want || sent.Language != "de-CH" ||
				!sent.Expires.Equal(expires) || !expires.Equal(eventtest.Start.Add(time.Hour)) {
				t.Errorf("sent %+v, expires %v", sent, expires)
			}
			must(t, verify(t, s, by, sent.Text))
			_, err = user.SendMyCode(t.Context(), s, s.Master, me, by,
				func(context.Context, user.Delivery) error { t.Error("sent again"); return nil })
			eventtest.As(t, err, user.ErrAlreadyVerified)
		})
	}
	s := unproven(t)
	_, err := user.SendMyCode(t.Context(), s, s.Master, me, user.ByEmail,
		func(context.Context, user.Delivery) error { return errors.New("no line") })
	eventtest.Refused(t, err, errs.Unavailable, user.DeliveryFailed)
}

func TestTheRowsWithSecretsOfAUser(t *testing.T) {
	s := unproven(t)
	s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_a"), Value: []byte("hash")})
	s.GivenRow(event.Row{RowKey: user.SecretRow("usr_a"), Value: []byte("hash")})
	s.GivenRow(event.Row{RowKey: user.SignInSourcesRow("usr_a"), Value: []byte("places")})
	s.GivenRow(event.Row{RowKey: user.FactorsRow("usr_a"), Value: []byte("{}")})
	s.GivenRow(event.Row{RowKey: user.BeforeRow("usr_a"), Value: []byte("[]")})
	s.GivenRow(event.Row{RowKey: user.SetupRow("usr_a"), Value: []byte("{}")})
	s.GivenRow(event.Row{RowKey: user.DeclinedRow("usr_a"), Value: []byte("{}")})
	code(t, s, user.ByEmail)
	code(t, s, user.ByPhone)
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.EmailVerified{})
	_, err := user.ResetCode(t.Context(), s, s.Master, "usr_a")
	must(t, err)
	for _, key := range user.SecretRows("usr_a") {
		if row, err := s.Row(t.Context(), key); row == nil || err != nil || key.Table != event.Secrets {
			t.Errorf("there is nothing at %v (%v)", key, err)
		}
	}
	if len(user.SecretRows("usr_a")) < 10 {
		t.Error("some rows are not listed")
	}
}
