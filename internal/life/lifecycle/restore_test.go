package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
)

// taken is jo's account, whose verified address was first@mail.test, and a thief in it.
type taken struct {
	*eventtest.Store
	t       *testing.T
	factors *factor.Factors
}

func take(t *testing.T) *taken {
	t.Helper()
	s := newInstallation(t)
	factors, err := factor.New(s.Master, "https://id.signet.test")
	must(t, err)
	email := "first@mail.test"
	eventtest.Given(t, s, user.Kind, "usr_jo", "org_a", []event.Claim{user.NameClaim("org_a", "jo")},
		user.HumanAdded{EmailVerified: true,
			Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo", Email: email, EmailKey: email,
				Profile: user.Profile{DisplayName: "Jo"}}},
		user.PasswordSet{})
	s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_jo"), Value: []byte("hash")})
	return &taken{Store: s, t: t, factors: factors}
}

func (a *taken) jo() *event.Object[user.User] {
	return eventtest.State(a.t, a.Store, user.Kind, "usr_jo")
}

// changes sets the address as the person, or whoever is in the session, does. It gives the code of the mail to the
// address before; empty where that has no link.
func (a *taken) changes(to string) string {
	a.t.Helper()
	_, err := user.SetMyEmail(a.t.Context(), a, &access.Caller{UserID: "usr_jo"}, event.IfMatch{}, to)
	must(a.t, err)
	return a.code()
}

func (a *taken) code() string {
	a.t.Helper()
	d, err := user.LeftAddress(a.t.Context(), a, a.Master, "usr_jo", a.jo().Sequence)
	if err != nil && !errors.Is(err, user.ErrNothingBefore) {
		a.t.Fatal(err)
	}
	return d.Text
}

func (a *taken) verifies() {
	eventtest.Given(a.t, a.Store, user.Kind, "usr_jo", "", nil, user.EmailVerified{})
}

func (a *taken) restore(code string) (string, error) {
	return lifecycle.Restore{UserID: "usr_jo", Code: code, RequestID: "req_1"}.Do(a.t.Context(), a, a.Master, a.factors)
}

// has tells what the address is and whether it is verified.
func (a *taken) has(address string, verified bool) {
	a.t.Helper()
	if got := a.jo().Data.Human.Email; got.Address != address || got.Key != address || got.Verified != verified {
		a.t.Errorf("the address is %+v, want %s, verified: %t", got, address, verified)
	}
}

func (a *taken) useless(code, why string) {
	a.t.Helper()
	before := a.Fingerprint()
	_, err := a.restore(code)
	eventtest.Refused(a.t, err, errs.InvalidArgument, errs.InvalidRequest, "code")
	if a.Fingerprint() != before {
		a.t.Errorf("%s: something was written", why)
	}
}

func TestAnAddressIsTakenBackWithAllThatAThiefCouldHaveLeft(t *testing.T) {
	a := take(t)
	day := func() int64 { return event.Micros(a.Now()) }
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.TOTPAdded{FactorID: "fac_old", Created: day()},
		user.RecoveryCodesMade{Count: 10})
	a.GivenRow(event.Row{RowKey: user.FactorsRow("usr_jo"),
		Value: []byte(`{"totp":[{"id":"fac_old"},{"id":"fac_just"},{"id":"fac_new"}],"recovery":["YQ=="]}`)})
	eventtest.Given(t, a.Store, oauth.Kind, oauth.IDFor("usr_jo"), "org_a", nil,
		oauth.Given{AppID: "app_old", Asked: true, At: day()})
	a.Advance(time.Microsecond)
	// What a thief adds just before the change is no more the owner's than what comes after it.
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.TOTPAdded{FactorID: "fac_just", Created: day()})
	eventtest.Given(t, a.Store, oauth.Kind, oauth.IDFor("usr_jo"), "", nil,
		oauth.Given{AppID: "app_just", Asked: true, At: day()})
	a.Advance(24 * time.Hour)
	code := a.changes("thief@mail.test")
	a.verifies()
	a.Advance(time.Hour)
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.TOTPAdded{FactorID: "fac_new", Created: day()})
	eventtest.Given(t, a.Store, oauth.Kind, oauth.IDFor("usr_jo"), "", nil,
		oauth.Given{AppID: "app_new", Asked: true, At: day()})
	was := a.jo().Data
	a.useless("", "no code")
	a.useless("WRONGWRONGWRONGWRONG", "another code")

	fresh, err := a.restore(code)
	must(t, err)
	a.has("first@mail.test", true)
	now := a.jo().Data
	if now.SessionEpoch != was.SessionEpoch+1 || now.TokenEpoch != was.TokenEpoch+1 ||
		now.Password.Version != was.Password.Version+1 || now.Password.ChangeRequired {
		t.Errorf("sessions, tokens and password: %+v, before %+v", now.Standing, was.Standing)
	}
	if row, err := a.Row(t.Context(), user.PasswordRow("usr_jo")); err != nil || row != nil {
		t.Errorf("there is a password: %v", err)
	}
	if f := now.Human.Factors; len(f) != 1 || f[0].ID != "fac_old" || now.Human.RecoveryCodes != 0 {
		t.Errorf("left are %+v and %d codes", f, now.Human.RecoveryCodes)
	}
	if apps := eventtest.State(t, a.Store, oauth.Kind, oauth.IDFor("usr_jo")).Data.Apps; len(apps) != 1 ||
		apps["app_old"].Since == 0 {
		t.Errorf("left are %v", apps)
	}
	// The way to a new password is open, once.
	a.useless(code, "used")
	row, err := a.Row(t.Context(), user.ResetRow("usr_jo"))
	if must(t, err); row == nil || fresh == "" {
		t.Error("no new password can be chosen")
	}
	// The address that was replaced is told, and can take nothing back.
	d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", a.jo().Sequence)
	if must(t, err); d.Address != "thief@mail.test" || d.Text != "" {
		t.Errorf("told is %+v", d)
	}
}

func TestEveryLinkOfAChainLeadsToTheOldestAddress(t *testing.T) {
	for _, link := range []int{0, 1, 2} {
		a := take(t)
		codes := []string{a.changes("second@mail.test")}
		a.verifies()
		a.Advance(time.Hour)
		codes = append(codes, a.changes("third@mail.test"))
		a.verifies()
		a.Advance(time.Hour)
		codes = append(codes, a.changes("fourth@mail.test")) // never verified
		if codes[0] == "" || codes[1] == "" || codes[2] == "" || a.changes("fifth@mail.test") != "" {
			t.Fatalf("the links are %q", codes)
		}
		_, err := a.restore(codes[link])
		must(t, err)
		a.has("first@mail.test", true)
		for _, code := range codes {
			a.useless(code, "one was used")
		}
	}
}

func TestALinkHoldsForSevenDays(t *testing.T) {
	const week = 7 * 24 * time.Hour
	a := take(t)
	first := a.changes("second@mail.test")
	a.verifies()
	a.Advance(week - time.Hour)
	second := a.changes("third@mail.test")
	a.Advance(time.Hour)
	a.useless(first, "too old")
	// The later one leads to the oldest address that is not too old.
	_, err := a.restore(second)
	must(t, err)
	a.has("second@mail.test", true)

	a = take(t)
	code := a.changes("second@mail.test")
	a.Advance(week - time.Microsecond)
	_, err = a.restore(code)
	must(t, err)
	a.has("first@mail.test", true)
}

func TestWhatAnAdministratorDidIsNotUndone(t *testing.T) {
	a := take(t)
	code := a.changes("second@mail.test")
	a.verifies()
	permit := in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	_, err := user.SetEmail(t.Context(), a, permit, "usr_jo", event.IfMatch{}, "third@mail.test", true)
	must(t, err)
	d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", a.jo().Sequence)
	if must(t, err); d.Address != "second@mail.test" || d.Text != "" {
		t.Errorf("the notice is %+v", d)
	}
	a.useless(code, "an administrator has changed it since")
	a.has("third@mail.test", true)
	if d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo"); err != nil || d.Delayed || d.Text == "" {
		t.Errorf("a reset: %+v, %v", d, err)
	}
	// A mail that is late says what is true by now: there is nothing to undo.
	a = take(t)
	_, err = user.SetMyEmail(t.Context(), a, &access.Caller{UserID: "usr_jo"}, event.IfMatch{}, "second@mail.test")
	must(t, err)
	sequence := a.jo().Sequence
	_, err = user.SetEmail(t.Context(), a, permit, "usr_jo", event.IfMatch{}, "third@mail.test", true)
	must(t, err)
	if d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", sequence); err != nil ||
		d.Address != "first@mail.test" || d.Text != "" {
		t.Errorf("late: %+v, %v", d, err)
	}
	// Who administers an organization and changes the own address is a person like others.
	a = take(t)
	caller := &access.Caller{UserID: "usr_jo", Memberships: access.Memberships{"org_a": {access.OrgOwner}}}
	own, err := caller.In("org_a", access.UserWrite)
	must(t, err)
	_, err = user.SetEmail(t.Context(), a, own, "usr_jo", event.IfMatch{}, "second@mail.test", true)
	must(t, err)
	_, err = a.restore(a.code())
	must(t, err)
	a.has("first@mail.test", true)
}

func TestWhatIsNoChangeOfAVerifiedAddressTellsNobody(t *testing.T) {
	a := take(t)
	if a.changes("first@mail.test") != "" {
		t.Error("the very same address is another one")
	}
	a.has("first@mail.test", true)
	code := a.changes("second@mail.test")
	if a.changes("third@mail.test") != "" || a.changes("first@mail.test") != "" {
		t.Error("an address that was never verified can be had back")
	}
	// A mail that is sent again has the link that works.
	_, err := user.SetMyEmail(t.Context(), a, &access.Caller{UserID: "usr_jo"}, event.IfMatch{}, "x@mail.test")
	must(t, err)
	_, err = a.restore(code)
	must(t, err)
	a = take(t)
	code = a.changes("second@mail.test")
	again := a.code()
	a.useless(code, "the mail was sent again")
	_, err = a.restore(again)
	must(t, err)
}

func TestNoAddressIsTakenBackForWhoIsNotActive(t *testing.T) {
	for name, c := range map[string]struct {
		happens, ends func(*taken)
		reason        errs.Reason
	}{
		"locked": {func(a *taken) { eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.WasLocked{}) },
			func(a *taken) { eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.Unlocked{}) },
			session.UserNotActive},
		"in an organization that is switched off": {func(a *taken) {
			eventtest.Given(t, a.Store, org.Kind, "org_a", "", nil, org.Deactivated{})
		},
			func(a *taken) { eventtest.Given(t, a.Store, org.Kind, "org_a", "", nil, org.Reactivated{}) },
			session.OrgNotActive},
	} {
		t.Run(name, func(t *testing.T) {
			a := take(t)
			code := a.changes("second@mail.test")
			c.happens(a)
			_, err := a.restore(code)
			eventtest.Refused(t, err, errs.FailedPrecondition, c.reason)
			a.has("second@mail.test", false)
			c.ends(a)
			_, err = a.restore(code)
			must(t, err)
			a.has("first@mail.test", true)
		})
	}
	a := take(t)
	code := a.changes("second@mail.test")
	_, err := lifecycle.RemoveUser(t.Context(), a, in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}}),
		"usr_jo", event.IfMatch{})
	must(t, err)
	a.useless(code, "removed")
	if row, err := a.Row(t.Context(), user.BeforeRow("usr_jo")); err != nil || row != nil {
		t.Errorf("an address of somebody who was removed is kept: %v", err)
	}
	_, err = lifecycle.Restore{UserID: "usr_nobody", Code: code}.Do(t.Context(), a, a.Master, a.factors)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "code")
}

func TestRightAfterAChangeAMailAloneResetsNothing(t *testing.T) {
	a := take(t)
	a.changes("second@mail.test")
	a.verifies()
	changed := a.Now()
	a.Advance(24*time.Hour - time.Microsecond)
	d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo")
	if must(t, err); !d.Delayed || d.Text != "" ||
		!d.Expires.Equal(event.Time(event.Micros(changed.Add(24*time.Hour)))) {
		t.Errorf("got %+v", d)
	}
	a.Advance(time.Microsecond)
	if d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo"); err != nil || d.Delayed || d.Text == "" {
		t.Errorf("a day later: %+v, %v", d, err)
	}
	a = take(t)
	code := a.changes("second@mail.test")
	a.verifies()
	_, err = a.restore(code)
	must(t, err)
	if d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo"); err != nil || d.Delayed || d.Text == "" {
		t.Errorf("after a restore: %+v, %v", d, err)
	}
	// Whoever has a second factor gets a code, and needs the factor with it. One that may be a thief's is none.
	for name, c := range map[string]struct {
		first time.Duration // between adding it and the first change
		held  bool
	}{"long before": {24*time.Hour + time.Microsecond, false}, "a day before": {24 * time.Hour, true},
		"just before": {time.Minute, true}} {
		a = take(t)
		eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil,
			user.TOTPAdded{FactorID: "fac_1", Created: event.Micros(a.Now())})
		a.Advance(c.first)
		a.changes("second@mail.test")
		a.verifies()
		a.Advance(23 * time.Hour)
		a.changes("third@mail.test") // a later change makes no factor older
		a.verifies()
		if d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo"); err != nil || d.Delayed != c.held ||
			(d.Text == "") != c.held {
			t.Errorf("with a factor from %s: %+v, %v", name, d, err)
		}
	}
}

// says sets the address as somebody with user.write does: who administers an organization may do that to themselves
// too.
func (a *taken) says(actor, address string, verified bool) {
	a.t.Helper()
	caller := &access.Caller{UserID: actor, Memberships: access.Memberships{"org_a": {access.OrgOwner}}}
	permit, err := caller.In("org_a", access.UserWrite)
	must(a.t, err)
	_, err = user.SetEmail(a.t.Context(), a, permit, "usr_jo", event.IfMatch{}, address, verified)
	must(a.t, err)
}

func TestAnAddressThatIsNoLongerVerifiedIsTheAddressBefore(t *testing.T) {
	a := take(t)
	a.says("usr_jo", "first@mail.test", false)
	code := a.code()
	a.Advance(time.Hour)
	a.says("usr_jo", "thief@mail.test", true)
	if d, err := user.ResetCode(t.Context(), a, a.Master, "usr_jo"); err != nil || !d.Delayed {
		t.Errorf("a reset: %+v, %v", d, err)
	}
	_, err := a.restore(code)
	must(t, err)
	a.has("first@mail.test", true)

	// It is had back also where nothing else has changed, and then there is no other address to tell.
	a = take(t)
	a.says("usr_jo", "first@mail.test", false)
	_, err = a.restore(a.code())
	must(t, err)
	a.has("first@mail.test", true)
	if a.code() != "" {
		t.Error("the address that was taken back can be taken back")
	}

	// By somebody else it is told, as every change.
	a = take(t)
	a.says("usr_admin", "first@mail.test", false)
	d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", a.jo().Sequence)
	if must(t, err); d.Address != "first@mail.test" || d.Text != "" {
		t.Errorf("the notice is %+v", d)
	}
}

// TestAMailThatIsTooLateIsNotSent: another address that is kept for longer does not keep the first one.
func TestAMailThatIsTooLateIsNotSent(t *testing.T) {
	a := take(t)
	a.says("usr_jo", "second@mail.test", true)
	sequence := a.jo().Sequence
	a.Advance(time.Hour)
	a.says("usr_jo", "third@mail.test", true)
	a.Advance(user.RestoreLife - time.Hour)
	if d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", sequence); !errors.Is(err,
		user.ErrNothingBefore) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := user.LeftAddress(t.Context(), a, a.Master, "usr_jo", a.jo().Sequence); err != nil || d.Text == "" {
		t.Errorf("the later one: %+v, %v", d, err)
	}
}

func TestNoNumberOfChangesDropsTheOwnersAddress(t *testing.T) {
	a := take(t)
	a.says("usr_admin", "owner@mail.test", true)
	a.Advance(time.Minute)
	code := a.changes("thief@mail.test")
	for i := range 60 {
		a.Advance(time.Minute)
		a.says("usr_jo", fmt.Sprintf("thief%d@mail.test", i), true)
	}
	_, err := a.restore(code)
	must(t, err)
	a.has("owner@mail.test", true)
}

func TestLinksThatAThiefCouldHaveAddedOrConfirmedAreTakenBack(t *testing.T) {
	a := take(t)
	link := func(id string, confirmed int64) {
		eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", []event.Claim{user.LinkClaim("idp_a", "i", id)},
			user.LinkAdded{LinkID: id, Provider: "idp_a", Created: event.Micros(a.Now()),
				Confirmed: user.Confirmation{By: "usr_jo", At: confirmed},
				Personal:  user.LinkFacts{Issuer: "i", Subject: id}})
	}
	link("lnk_old", 1)
	link("lnk_confirmed", 1)
	a.Advance(time.Microsecond)
	link("lnk_just", 1) // a day before the change
	a.Advance(24 * time.Hour)
	code := a.changes("thief@mail.test")
	a.verifies()
	a.Advance(time.Hour)
	link("lnk_new", 1)
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil,
		user.LinkConfirmed{LinkID: "lnk_confirmed",
			Confirmed: user.Confirmation{By: "usr_jo", At: event.Micros(a.Now())}})
	_, err := a.restore(code)
	must(t, err)
	if h := a.jo().Data; len(h.Human.Links) != 1 || h.Human.Links[0].ID != "lnk_old" || len(h.Links) != 1 {
		t.Errorf("left are %+v", h.Human.Links)
	}
	for id, held := range map[string]bool{"lnk_old": true, "lnk_new": false} {
		if holder, err := a.Holder(t.Context(), user.LinkClaim("idp_a", "i", id)); err != nil ||
			(holder != "") != held {
			t.Errorf("%s is held by %q: %v", id, holder, err)
		}
	}
}
