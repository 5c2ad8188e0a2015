package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// asked counts the mails with a code that somebody has asked for since.
func (w *site) asked(mark int64) (n int) {
	for _, f := range w.store.Since(w.t, mark) {
		if f.Type == (user.EmailCodeRequested{}).EventType() {
			n++
		}
	}
	return n
}

func TestConfirmNowSendsTheCode(t *testing.T) {
	w := newSite(t)
	b, mark := w.in("mara"), w.store.Mark()
	b.open(pages.PathAccount).press(pages.DoResend, "").leads("/verify?sent=1").follow().says(200,
		"We have sent an e‑mail with a code to <bdi>mara@mail.test</bdi>.")
	if n := w.asked(mark); n != 1 {
		t.Errorf("%d mails were asked for", n)
	}
	// who only looks gets none, and is not told otherwise
	if page := b.open("/verify"); strings.Contains(page.text, "We have sent") {
		t.Errorf("it says that a mail was sent: %s", page.text)
	}
	for range 10 {
		b.open(pages.PathAccount).press(pages.DoResend, "")
	}
	b.open(pages.PathAccount).press(pages.DoResend, "").says(422, "Too many attempts.")
	w.account.Mail = false
	if page := b.open(pages.PathAccount); strings.Contains(page.text, "Confirm now") {
		t.Error("without mail it offers to send one")
	}
}

func TestTheOwnEmailIsChanged(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	w.change(mara, user.EmailVerified{})
	mark := w.store.Mark()
	page := b.open(pages.PathContact).says(200, "mara@mail.test", "confirmed")
	page.press(pages.DoSetEmail, "", pages.FieldEmail, " ").says(422, `id="email-problem">Please fill this in.`)
	page.press(pages.DoSetEmail, "", pages.FieldEmail, "mara at home").says(422,
		`id="email-problem">Enter a complete e‑mail address`, `value="mara at home"`)
	if got := w.human(mara).Email; got.Address != "mara@mail.test" || !got.Verified {
		t.Fatalf("it is %+v already", got)
	}
	page.press(pages.DoSetEmail, "", pages.FieldEmail, " mara@new.test ").leads("/verify?sent=1").follow().says(200,
		"mara@new.test")
	if got := w.human(mara).Email; got.Address != "mara@new.test" || got.Verified || w.asked(mark) != 1 {
		t.Errorf("it is %+v, after %d mails", got, w.asked(mark))
	}
	// seen before the change
	page.press(pages.DoSetEmail, "", pages.FieldEmail, "mara@other.test").says(422, "This was changed elsewhere")
	page = b.open(pages.PathContact)
	w.wait(16 * time.Minute)
	b.get(pages.PathContact).leads(wish(pages.PathContact, "account", b.session().Token.ID, "again", "1"))
	before := w.user(mara).Sequence
	page.press(pages.DoSetEmail, "", pages.FieldEmail, "mara@late.test").leads(wish(pages.PathContact, "account",
		b.session().Token.ID, "again", "1"))
	if w.user(mara).Sequence != before {
		t.Error("it was changed without a recent proof")
	}
}

func TestTheOwnPhoneIsChangedProvenAndRemoved(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathContact).press(pages.DoSetPhone, "", pages.FieldPhone, "").says(422,
		`id="phone-problem">Please fill this in.`)
	b.open(pages.PathContact).press(pages.DoSetPhone, "", pages.FieldPhone, "020 7946").says(422,
		`id="phone-problem">Enter a complete phone number with its country code`, `value="020 7946"`)
	b.open(pages.PathContact).press(pages.DoSetPhone, "", pages.FieldPhone,
		"+44 20 7946 0018").leads("/account/contact?done=saved").follow().says(200, "+442079460018", "not confirmed")
	b.open(pages.PathContact).press(pages.DoSendPhone, "").says(200, "We have sent a code to <bdi>+442079460018</bdi>.")
	if len(w.delivered) != 1 || w.delivered[0].By != user.ByPhone {
		t.Fatalf("sent: %+v", w.delivered)
	}
	b.open(pages.PathContact).press(pages.DoPhoneCode, "", pages.FieldPhoneCode, "").says(422,
		`id="phoneCode-problem">Please fill this in.`)
	b.open(pages.PathContact).press(pages.DoPhoneCode, "", pages.FieldPhoneCode, "WRONG").says(422,
		`id="phoneCode-problem">This code is wrong`)
	b.open(pages.PathContact).press(pages.DoPhoneCode, "", pages.FieldPhoneCode,
		" "+w.delivered[0].Text+" ").leads("/account/contact?done=phone").follow().says(200,
		"Your phone number is confirmed.")
	if got := w.human(mara).Phone; got == nil || !got.Verified {
		t.Errorf("it is %+v", got)
	}
	b.open(pages.PathContact).press(pages.DoNoPhone, "").leads("/account/contact?done=saved")
	if got := w.human(mara).Phone; got != nil {
		t.Errorf("it is still %+v", got)
	}
	w.account.Deliver = nil
	w.change(mara, user.PhoneChanged{Personal: user.PhoneFacts{Phone: new("+1"), PhoneNormal: new("+1")}})
	if page := b.open(pages.PathContact); strings.Contains(page.text, "Send code") ||
		!strings.Contains(page.text, pages.FieldPhoneCode) {
		t.Errorf("a code cannot be sent, but an administrator may give one: %s", page.text)
	}
}
