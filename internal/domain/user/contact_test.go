package user_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// pend gives usr_a a pending code for both contacts, whatever they are.
func pend(s *eventtest.Store) {
	for _, by := range []user.Contact{user.ByEmail, user.ByPhone} {
		s.GivenRow(event.Row{RowKey: user.CodeRow("usr_a", by), Value: []byte(`{}`),
			Expires: event.Micros(s.Now()) + 1})
	}
}

func pending(t *testing.T, s *eventtest.Store, by user.Contact) bool {
	t.Helper()
	row, err := s.Row(t.Context(), user.CodeRow("usr_a", by))
	must(t, err)
	return row != nil
}

func TestAnEmailIsReplaced(t *testing.T) {
	before := user.Verification{By: user.VerifiedByAdministrator, At: 1767323045678901}
	since := user.Verification{By: user.VerifiedByAdministrator, At: 1767323105678901}
	for _, c := range []struct {
		name              string
		mine              bool
		to                string
		verified          bool // on an administrator's word
		payload, personal string
		want              user.Email
		codeStays         bool
	}{
		{"by oneself: unverified", true, "New@Example.org", false, `{"verified":false}`,
			`{"email":"New@Example.org","emailKey":"new@example.org"}`,
			user.Email{Address: "New@Example.org", Key: "new@example.org"}, false},
		{"by oneself, the same text: as before", true, jo.Email, false, `{}`, ``,
			user.Email{Address: jo.Email, Key: "jo@example.org", Verified: true, Verification: before}, false},
		{"by oneself, in another case: another address", true, "jo@example.org", false, `{"verified":false}`,
			`{"email":"jo@example.org"}`,
			user.Email{Address: "jo@example.org", Key: "jo@example.org"}, false},
		{"by an administrator who vouches for it", false, "new@example.org", true,
			`{"verification":{"by":"administrator","at":1767323105678901}}`,
			`{"email":"new@example.org","emailKey":"new@example.org"}`,
			user.Email{Address: "new@example.org", Key: "new@example.org", Verified: true, Verification: since}, false},
		{"by an administrator who does not", false, "new@example.org", false, `{"verified":false}`,
			`{"email":"new@example.org","emailKey":"new@example.org"}`,
			user.Email{Address: "new@example.org", Key: "new@example.org"}, false},
		{"by an administrator, the same one unverified", false, jo.Email, false, `{"verified":false}`, ``,
			user.Email{Address: jo.Email, Key: "jo@example.org"}, true},
		{"by an administrator, the same one verified", false, jo.Email, true, `{}`, ``,
			user.Email{Address: jo.Email, Key: "jo@example.org", Verified: true, Verification: before}, false},
		{"by an administrator, the same one in another case, verified: the older word stays", false, "jo@example.org",
			true, `{}`, `{"email":"jo@example.org"}`,
			user.Email{Address: "jo@example.org", Key: "jo@example.org", Verified: true, Verification: before}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			s.Advance(time.Minute)
			pend(s)
			mark := s.Mark()
			var d event.Details
			var err error
			if c.mine {
				d, err = user.SetMyEmail(t.Context(), s, me, event.IfMatch{Set: true, Sequence: 1}, c.to)
			} else {
				d, err = user.SetEmail(t.Context(), s, permit(t, "org_a", manager), "usr_a", event.IfMatch{},
					c.to, c.verified)
			}
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.email_changed.v1", Payload: c.payload,
				Personal: c.personal})
			u := eventtest.State(t, s, user.Kind, "usr_a")
			if u.Data.Human.Email != c.want || d != u.Details() {
				t.Errorf("e-mail %+v, details %+v", u.Data.Human.Email, d)
			}
			if got := pending(t, s, user.ByEmail); got != c.codeStays || !pending(t, s, user.ByPhone) {
				t.Errorf("the code is still there: %t, that of the phone: %t", got, pending(t, s, user.ByPhone))
			}
			found, err := s.RecordsWhere(t.Context(), "user", "org_a", user.VerifiedEmail, user.EmailDigest(c.want.Key),
				user.FirstByEmail, 2)
			if must(t, err); (len(found) == 1) != c.want.Verified {
				t.Errorf("a sign-in by the address finds %d", len(found))
			}
		})
	}
}

func TestACodeStaysWhenTheSameUnverifiedAddressIsSetAgain(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	n := jo
	n.EmailVerified, n.PhoneVerified = false, false
	must(t, human(t, s, "usr_a", "org_a", n))
	pend(s)
	_, err := user.SetMyEmail(t.Context(), s, me, event.IfMatch{}, n.Email)
	must(t, err)
	_, err = user.SetMyPhone(t.Context(), s, me, event.IfMatch{}, n.Phone)
	must(t, err)
	if !pending(t, s, user.ByEmail) || !pending(t, s, user.ByPhone) {
		t.Error("a code is gone")
	}
}

func TestAPhoneIsReplacedAndRemoved(t *testing.T) {
	none, same := jo, jo
	none.Phone = ""
	for _, c := range []struct {
		name              string
		person            user.NewHuman
		mine              bool
		to                string // empty: removed
		verified          bool
		fact              event.Type
		payload, personal string
		want              user.Phone
		codeStays         bool
	}{
		{"by oneself: unverified", jo, true, "+1-2", false, "user.phone_changed.v1", `{"verified":false}`,
			`{"phone":"+1-2","phoneNormal":"+12"}`, user.Phone{Number: "+1-2", Normal: "+12"}, false},
		{"by oneself, the first one", none, true, "+1-2", false, "user.phone_changed.v1", `{}`,
			`{"phone":"+1-2","phoneNormal":"+12"}`, user.Phone{Number: "+1-2", Normal: "+12"}, false},
		{"by oneself, the same text: as before", same, true, jo.Phone, false, "user.phone_changed.v1", `{}`, ``,
			user.Phone{Number: jo.Phone, Normal: "+41445550123", Verified: true}, false},
		{"by oneself, another extension", jo, true, "+41-44-555(01)23;ext=8", false, "user.phone_changed.v1",
			`{"verified":false}`, `{"phone":"+41-44-555(01)23;ext=8"}`,
			user.Phone{Number: "+41-44-555(01)23;ext=8", Normal: "+41445550123"}, false},
		{"by an administrator who vouches for it", none, false, "+12", true, "user.phone_changed.v1",
			`{"verified":true}`, `{"phone":"+12","phoneNormal":"+12"}`,
			user.Phone{Number: "+12", Normal: "+12", Verified: true}, false},
		{"by an administrator, the same one unverified", jo, false, jo.Phone, false, "user.phone_changed.v1",
			`{"verified":false}`, ``, user.Phone{Number: jo.Phone, Normal: "+41445550123"}, true},
		{"removed by oneself", jo, true, "", false, "user.phone_removed.v1", `{}`, ``, user.Phone{}, false},
		{"removed by an administrator", jo, false, "", false, "user.phone_removed.v1", `{}`, ``, user.Phone{}, false},
		{"none, removed all the same", none, true, "", false, "user.phone_removed.v1", `{}`, ``, user.Phone{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", c.person))
			pend(s)
			mark := s.Mark()
			var err error
			admin, match := permit(t, "org_a", manager), event.IfMatch{Set: true, Sequence: 1}
			switch {
			case c.mine && c.to == "":
				_, err = user.RemoveMyPhone(t.Context(), s, me, match)
			case c.mine:
				_, err = user.SetMyPhone(t.Context(), s, me, match, c.to)
			case c.to == "":
				_, err = user.RemovePhone(t.Context(), s, admin, "usr_a", match)
			default:
				_, err = user.SetPhone(t.Context(), s, admin, "usr_a", match, c.to, c.verified)
			}
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: c.fact, Payload: c.payload, Personal: c.personal})
			var got user.Phone
			if p := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Phone; p != nil {
				got = *p
			}
			if got != c.want {
				t.Errorf("phone %+v", got)
			}
			if got := pending(t, s, user.ByPhone); got != c.codeStays || !pending(t, s, user.ByEmail) {
				t.Errorf("the code is still there: %t, that of the e-mail: %t", got, pending(t, s, user.ByEmail))
			}
		})
	}
}

func TestWrongAddressesAreRefused(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	before := s.Fingerprint()
	_, err := user.SetMyEmail(t.Context(), s, me, event.IfMatch{}, "Jo <jo@example.org>")
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "email")
	_, err = user.SetPhone(t.Context(), s, permit(t, "org_a", manager), "usr_a", event.IfMatch{}, "044", true)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "phone")
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
}

func TestAServiceUserHasNoContacts(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, service(t, s, "usr_robot", "org_a", "robot"))
	robot := &access.Caller{UserID: "usr_robot", OrgID: "org_a"}
	before := s.Fingerprint()
	_, err := user.SetMyEmail(t.Context(), s, robot, event.IfMatch{}, "a@b")
	eventtest.As(t, err, user.ErrNotHuman)
	_, err = user.SetMyPhone(t.Context(), s, robot, event.IfMatch{}, "+1")
	eventtest.As(t, err, user.ErrNotHuman)
	_, err = user.RemoveMyPhone(t.Context(), s, robot, event.IfMatch{})
	eventtest.As(t, err, user.ErrNotHuman)
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
}

func TestFactsAboutContactsSurviveAnErasedPerson(t *testing.T) {
	yes := true
	for _, u := range []user.User{{}, {Human: &user.Human{}}} {
		for _, f := range []event.Fact[user.User]{user.EmailChanged{Verified: &yes}, user.EmailVerified{},
			user.PhoneChanged{Verified: &yes}, user.PhoneVerified{},
			user.PhoneRemoved{}, user.PhoneVerified{}, user.ServiceChanged{}, user.UserNameChanged{}} {
			f.Apply(&u)
		}
		if u.UserName != "" || u.Human != nil && (u.Human.Email.Address != "" || u.Human.Phone != nil) {
			t.Errorf("got %+v", u)
		}
	}
}
