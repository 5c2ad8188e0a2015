package mail

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/signin/session"
)

// moves changes an address as the person does.
func (p *post) moves(t *testing.T, name, to string) {
	t.Helper()
	_, err := user.SetMyEmail(t.Context(), p.Store, &access.Caller{UserID: "usr_" + name}, event.IfMatch{}, to)
	must(t, err)
	must(t, p.deliver(t))
}

func TestTheAddressBeforeIsToldOfAChange(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.moves(t, "jo", "new@mail.test")
	m := p.one(t)
	u, err := url.Parse(link.FindString(m.Text))
	must(t, err)
	if m.To != "jo@mail.test" || m.Kind != EmailChanged ||
		u.Scheme+"://"+u.Host+u.Path != "https://id.example.org/restore" ||
		u.Query().Get("user") != "usr_jo" || len(u.Query().Get("code")) != 20 || m.Code != "" {
		t.Errorf("%+v", m)
	}
	if p.Stored(t, u.Query().Get("code")) {
		t.Error("the code is stored")
	}
	if strings.Contains(m.Text+m.HTML, "new@mail.test") {
		t.Error("whoever reads the old mailbox learns the new address")
	}
	p.moves(t, "jo", "newer@mail.test")
	p.none(t, "the address that was replaced was not verified")
	p.person(t, "lax", false, jo)
	p.moves(t, "lax", "lax2@mail.test")
	p.none(t, "there was no verified address")
}

func TestAnAddressThatIsReplacedAgainAndAgainGetsItsLinkEachTime(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	for range 12 {
		p.Advance(time.Second)
		p.moves(t, "jo", "new@mail.test")
		if m := p.one(t); m.Kind != EmailChanged || m.To != "jo@mail.test" {
			t.Errorf("%+v", m)
		}
		p.moves(t, "jo", "jo@mail.test")
		p.happened(t, "jo", user.EmailVerified{})
		p.sent = nil
	}
}

func TestAChangeThatNobodyHeardOfForDaysIsToldAllTheSame(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	_, err := user.SetMyEmail(t.Context(), p.Store, &access.Caller{UserID: "usr_jo"}, event.IfMatch{}, "new@mail.test")
	must(t, err)
	p.Advance(3 * 24 * time.Hour)
	must(t, p.deliver(t))
	if m := p.one(t); m.Kind != EmailChanged {
		t.Errorf("%+v", m)
	}
	p.moves(t, "jo", "newer@mail.test")
	p.Advance(8 * 24 * time.Hour)
	p.none(t, "nothing can be undone any more")
}

func TestWhatAnAdministratorChangesIsToldWithoutALink(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	admin := &access.Caller{UserID: "usr_admin", Memberships: access.Memberships{"org_a": {access.OrgOwner}}}
	permit, err := admin.In("org_a", access.UserWrite)
	must(t, err)
	_, err = user.SetEmail(t.Context(), p.Store, permit, "usr_jo", event.IfMatch{}, "new@mail.test", true)
	must(t, err)
	must(t, p.deliver(t))
	if m := p.one(t); m.To != "jo@mail.test" || m.Kind != EmailReplaced || m.Link != "" ||
		strings.Contains(m.Text, "/restore") {
		t.Errorf("%+v", m)
	}
}

func TestBothAddressesAreToldOfARestore(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.moves(t, "jo", "new@mail.test")
	code := ""
	if u, err := url.Parse(link.FindString(p.one(t).Text)); err == nil {
		code = u.Query().Get("code")
	}
	must(t, p.Do(t.Context(), event.Command{
		Write: []event.Ref{user.Kind.Ref("usr_jo")},
		Rows:  []event.RowKey{user.BeforeRow("usr_jo")},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, "usr_jo")
			if err != nil {
				return err
			}
			back, _, right, err := user.Restorable(tx, p.Master, "usr_jo", code)
			if err != nil || !right {
				t.Errorf("the code is not right: %v", err)
			}
			_, err = user.RestoreEmail(tx, p.Master, u, back)
			return err
		},
	}))
	must(t, p.deliver(t))
	if len(p.sent) != 2 || p.sent[0].To != "jo@mail.test" || p.sent[1].To != "new@mail.test" ||
		p.sent[0].Kind != EmailRestored || p.sent[1].Kind != EmailRestored || p.sent[1].Link != "" {
		t.Errorf("sent: %+v", p.sent)
	}
}

func TestAResetThatHasToWaitSaysUntilWhen(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.moves(t, "jo", "new@mail.test")
	p.happened(t, "jo", user.EmailVerified{})
	p.sent = nil
	until := p.Now().Add(24 * time.Hour).UTC().Format("2 Jan 2006, 15:04 UTC")
	p.companion(t, "jo", session.PasswordResetRequested{})
	must(t, p.deliver(t))
	if m := p.one(t); m.To != "new@mail.test" || m.Kind != ResetDelayed || m.Link != "" || m.Code != "" ||
		!strings.Contains(m.Text, until) {
		t.Errorf("%+v", m)
	}
}

func TestPeopleAreToldOfNewTokensAndPhones(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.companion(t, "jo", session.TokenIssued{TokenID: "pat_1"})
	must(t, p.deliver(t))
	if m := p.one(t); m.Kind != TokenAdded || m.To != "jo@mail.test" {
		t.Errorf("%+v", m)
	}
	number := "+1"
	for _, fact := range []event.Fact[user.User]{user.PhoneChanged{Personal: user.PhoneFacts{Phone: &number,
		PhoneNormal: &number}}, user.PhoneRemoved{}} {
		p.Advance(time.Hour)
		p.happened(t, "jo", fact)
		if m := p.one(t); m.Kind != PhoneChanged {
			t.Errorf("%+v", m)
		}
	}
}

func TestWhoChangesTheAddressSilencesNoNotice(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	// All at once: the mails go out after the change.
	eventtest.Given(t, p.Store, user.Kind, "usr_jo", "", nil, user.TOTPAdded{FactorID: "fac_1"})
	p.moves(t, "jo", "thief@mail.test")
	told := func(want ...string) {
		t.Helper()
		got := []string(nil)
		for _, m := range p.sent {
			got = append(got, string(m.Kind)+" "+m.To)
		}
		if p.sent = nil; !slices.Equal(got, want) {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	told("factor_added jo@mail.test", "email_changed jo@mail.test")
	p.Advance(time.Hour)
	p.happened(t, "jo", user.EmailVerified{}, user.PasswordChanged{}, user.PhoneRemoved{})
	p.companion(t, "jo", session.TokenIssued{TokenID: "pat_1"})
	must(t, p.deliver(t))
	told("password_changed thief@mail.test", "password_changed jo@mail.test", "phone_changed thief@mail.test",
		"phone_changed jo@mail.test",
		"token_added thief@mail.test", "token_added jo@mail.test")
	// After the seven days it is somebody else's mailbox.
	p.Advance(7 * 24 * time.Hour)
	p.happened(t, "jo", user.PasswordChanged{})
	told("password_changed thief@mail.test")
}

func TestAnAddressThatIsNoLongerVerifiedIsTold(t *testing.T) {
	for actor, kind := range map[string]Kind{"usr_jo": EmailChanged, "usr_admin": EmailReplaced} {
		p := newPost(t)
		p.person(t, "jo", true, jo)
		permit, err := (&access.Caller{UserID: actor,
			Memberships: access.Memberships{"org_a": {access.OrgOwner}}}).In("org_a", access.UserWrite)
		must(t, err)
		_, err = user.SetEmail(t.Context(), p.Store, permit, "usr_jo", event.IfMatch{}, "jo@mail.test", false)
		must(t, err)
		must(t, p.deliver(t))
		if m := p.one(t); m.To != "jo@mail.test" || m.Kind != kind {
			t.Errorf("by %s: %+v", actor, m)
		}
	}
}

// TestAReceiverThatIsRefusedKeepsNothingFromTheOther: whoever took an account over must not keep the owner from hearing
// of it by an address that refuses mail; and however often the mail is tried again, nobody gets it twice.
func TestAReceiverThatIsRefusedKeepsNothingFromTheOther(t *testing.T) {
	for _, forGood := range []bool{true, false} {
		p := newPost(t)
		p.person(t, "jo", true, jo)
		p.moves(t, "jo", "thief@mail.test")
		p.happened(t, "jo", user.EmailVerified{})
		must(t, p.deliver(t))
		p.sent = nil
		p.refuses = map[string]bool{"thief@mail.test": forGood}
		eventtest.Given(t, p.Store, user.Kind, "usr_jo", "", nil, user.PasswordChanged{})
		for range 3 {
			refusal, refused := errors.AsType[*notify.Refusal](p.deliver(t))
			if !refused || refusal.ForGood != forGood {
				t.Fatalf("for good %v: it ended with %v", forGood, refusal)
			}
		}
		if m := p.one(t); m.Kind != PasswordChanged || m.To != "jo@mail.test" {
			t.Errorf("for good %v: %s went to %s", forGood, m.Kind, m.To)
		}
		p.refuses = nil
		must(t, p.deliver(t))
		if m := p.one(t); m.To != "thief@mail.test" {
			t.Errorf("then it went to %s", m.To)
		}
	}
}

func TestARefusalThatMayPassIsTriedAgain(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.moves(t, "jo", "thief@mail.test")
	p.happened(t, "jo", user.EmailVerified{})
	must(t, p.deliver(t))
	for _, refuses := range []map[string]bool{{"thief@mail.test": true, "jo@mail.test": false},
		{"thief@mail.test": false, "jo@mail.test": true}} {
		p.refuses = refuses
		p.Advance(time.Hour)
		eventtest.Given(t, p.Store, user.Kind, "usr_jo", "", nil, user.PasswordChanged{})
		if refusal, refused := errors.AsType[*notify.Refusal](p.deliver(t)); !refused || refusal.ForGood {
			t.Errorf("%v: %v", refuses, refusal)
		}
		p.mark = p.Mark()
	}
}
