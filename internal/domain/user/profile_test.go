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

var me = &access.Caller{UserID: "usr_a", OrgID: "org_a", RequestID: "req_7"}

func TestAProfileIsReplacedAndOnlyWhatDiffersIsRecorded(t *testing.T) {
	full := jo.Profile
	for _, c := range []struct {
		name     string
		to       user.Profile
		personal string
	}{
		{"nothing differs: an event without content", full, ""},
		{"one field", with(full, func(p *user.Profile) { p.FirstName = "Joe" }), `{"firstName":"Joe"}`},
		{"every field", user.Profile{FirstName: "A", LastName: "B", NickName: "C", DisplayName: "D",
			PreferredLanguage: "en", Gender: user.Female},
			`{"firstName":"A","lastName":"B","nickName":"C","displayName":"D","nameKey":"d","preferredLanguage":"en","gender":"female"}`},
		{"a nick name left out is empty afterwards", with(full, func(p *user.Profile) { p.NickName = "" }),
			`{"nickName":""}`},
		{"a gender left out is unspecified afterwards", with(full, func(p *user.Profile) { p.Gender = "" }),
			`{"gender":""}`},
		{"everything optional left out is empty afterwards",
			user.Profile{FirstName: "Jo", LastName: "Doe", DisplayName: "Jo D."},
			`{"nickName":"","preferredLanguage":"","gender":""}`},
		{"a language nobody can read is kept as sent", with(full, func(p *user.Profile) { p.PreferredLanguage = "??" }),
			`{"preferredLanguage":"??"}`},
		{"white space is not trimmed", with(full, func(p *user.Profile) { p.LastName = " Doe" }),
			`{"lastName":" Doe"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			s.Advance(time.Minute)
			mark := s.Mark()
			d, err := user.ReplaceProfile(t.Context(), s, me, event.IfMatch{}, c.to)
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.profile_changed.v1", Payload: `{}`,
				Personal: c.personal})
			u := eventtest.State(t, s, user.Kind, "usr_a")
			if u.Data.Human.Profile != c.to {
				t.Errorf("profile %+v", u.Data.Human.Profile)
			}
			if d.Sequence != 2 || d.Org != "org_a" || !d.Changed.Equal(eventtest.Start.Add(time.Minute)) ||
				d != u.Details() {
				t.Errorf("details %+v", d)
			}
			if u.Data.Human.Email.Address != jo.Email || u.Data.UserName != jo.UserName || u.Data.Human.Phone == nil {
				t.Errorf("a profile changed something else: %+v", u.Data)
			}
		})
	}
}

func with(p user.Profile, change func(*user.Profile)) user.Profile {
	change(&p)
	return p
}

func TestTheSequenceGrowsWithEveryReplaceAndNamesWhoDidIt(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	for want := uint64(2); want < 5; want++ {
		d, err := user.ReplaceProfile(t.Context(), s, me, event.IfMatch{}, jo.Profile)
		if err != nil || d.Sequence != want {
			t.Errorf("sequence %d, want %d (%v)", d.Sequence, want, err)
		}
	}
	events, err := s.Events(t.Context(), 3, 1)
	must(t, err)
	if events[0].Origin != me.Origin() {
		t.Errorf("origin %+v", events[0].Origin)
	}
}

func TestAProfileIsOnlyReplacedWhereTheRulesHold(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	must(t, service(t, s, "usr_robot", "org_a", "robot"))
	must(t, human(t, s, "usr_gone", "org_a", user.NewHuman{UserName: "gone", Email: "g@x", Profile: jo.Profile}))
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	moved := errs.New(errs.Aborted, event.SequenceMismatch, "")
	for _, c := range []struct {
		name    string
		id      string
		match   event.IfMatch
		refusal *errs.Error
	}{
		{"a service user has no profile", "usr_robot", event.IfMatch{}, user.ErrNotHuman},
		{"a removed user is not found", "usr_gone", event.IfMatch{}, user.ErrNotFound},
		{"an older sequence", "usr_a", event.IfMatch{Set: true, Sequence: 0}, moved},
		{"a newer sequence", "usr_a", event.IfMatch{Set: true, Sequence: 2}, moved},
		{"the wrong type comes before the wrong sequence", "usr_robot", event.IfMatch{Set: true, Sequence: 9},
			user.ErrNotHuman},
		{"the sequence last seen", "usr_a", event.IfMatch{Set: true, Sequence: 1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Fingerprint()
			_, err := user.ReplaceProfile(t.Context(), s, &access.Caller{UserID: c.id, OrgID: "org_a"},
				c.match, jo.Profile)
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
}
