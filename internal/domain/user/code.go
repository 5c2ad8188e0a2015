package user

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/json"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// A code that comes back proves that the person who reads the mail at an address, or answers a phone, is the user. It
// is bound to the user and the very address, and only a MAC of it is stored, in a side table. The next code replaces
// it; the right answer, too many wrong ones, an hour, or another address end it.
const (
	codeLife  = time.Hour
	codeTries = 5 // wrong answers that end a code
)

// Contact is a way to reach a person.
type Contact string

// The contacts.
const (
	ByEmail Contact = "email"
	ByPhone Contact = "phone"
)

// address gives what a person is reached at, and whether it is proven; empty where there is none.
func (c Contact) address(h *Human) (address string, verified bool) {
	switch {
	case c == ByEmail:
		return h.Email.Address, h.Email.Verified
	case h.Phone != nil:
		return h.Phone.Number, h.Phone.Verified
	}
	return "", false
}

// proven is the fact that the address is the person's, on somebody's word.
func (c Contact) proven(tx *event.Tx, h *Human, by Verifier) event.Fact[User] {
	if c != ByEmail {
		return PhoneVerified{}
	}
	if before := h.Email.Verification; h.Email.Verified && before.By == by {
		return EmailVerified{Verification: &before} // the older word counts for more
	}
	return EmailVerified{Verification: Said(tx, true, by)}
}

// proves is the type of that fact.
func (c Contact) proves() event.Type {
	if c == ByEmail {
		return EmailVerified{}.EventType()
	}
	return PhoneVerified{}.EventType()
}

// CodeRow is where the pending code for a contact of a user lives.
func CodeRow(id string, c Contact) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/" + string(c) + "_code"}
}

// pendingCode is what the row holds.
type pendingCode struct {
	MAC   []byte `json:"mac"`
	Wrong int    `json:"wrong,omitempty"` // wrong answers so far

	// Shown is who was shown the code and so may be the one who sends it back; empty: it went to the address.
	Shown Verifier `json:"shown,omitempty"`
}

func codeMAC(master secret.MasterKey, id string, c Contact, address, code string) []byte {
	return master.MAC("contact code", []byte(id), []byte(c), []byte(address), []byte(code))
}

// Reasons around codes.
const (
	NothingToVerify       errs.Reason = "NOTHING_TO_VERIFY"
	AlreadyVerified       errs.Reason = "ALREADY_VERIFIED"
	DeliveryNotConfigured errs.Reason = "CODE_DELIVERY_NOT_CONFIGURED"
	DeliveryFailed        errs.Reason = "CODE_DELIVERY_FAILED"
)

// Errors around codes.
var (
	ErrNothingToVerify = errs.New(errs.FailedPrecondition, NothingToVerify,
		"there is no phone number to verify: set one first")
	ErrAlreadyVerified       = errs.New(errs.FailedPrecondition, AlreadyVerified, "this is already verified")
	ErrDeliveryNotConfigured = errs.New(errs.FailedPrecondition, DeliveryNotConfigured,
		"this installation cannot send codes: ask an administrator for help")
	errDeliveryFailed = &errs.Error{Kind: errs.Unavailable, Reason: DeliveryFailed, RetryAfter: 10 * time.Second,
		Message: "the code could not be sent: request another one shortly"}
)

// ErrWrongCode is the one answer to a code that does not count, whatever is wrong with it.
func ErrWrongCode() error {
	return errs.Invalid(errs.Violation{Field: "code",
		Message: "is wrong, used or expired: after five wrong attempts, request a new one"})
}

// Code is a code that was just made. It is stored nowhere in this form.
type Code struct {
	Text    string
	Expires time.Time
}

// Delivery is a code on its way to a person.
type Delivery struct {
	Code
	UserID   string
	By       Contact
	Address  string
	Name     string // the display name
	Language string // preferred by the person; empty: none
	Delayed  bool   // there is no code before Expires
}

// CreateCode makes a code for a person's contact, for an administrator to hand over. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotHuman; ErrNothingToVerify; ErrAlreadyVerified.
func CreateCode(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, id string,
	by Contact) (Code, error) {
	// The code itself is no event. What it leads to would be the person's own act, so hosts hear of it now.
	d, err := makeCode(ctx, s, master, givesAccess(permit, id, by.proves()), by, VerifierOf(permit), false, nil)
	return d.Code, err
}

// SendMyCode makes a code for the caller's contact and has it delivered; deliver is nil where the installation cannot.
// Errors: ErrDeliveryNotConfigured; ErrNotHuman; ErrNothingToVerify; ErrAlreadyVerified; Unavailable when delivery
// fails.
func SendMyCode(ctx context.Context, s event.Store, master secret.MasterKey, caller *access.Caller, by Contact,
	deliver func(context.Context, Delivery) error) (expires time.Time, err error) {
	if deliver == nil {
		return time.Time{}, ErrDeliveryNotConfigured
	}
	d, err := makeCode(ctx, s, master, Mine(caller), by, "", false, nil)
	if err != nil {
		return time.Time{}, err
	}
	if err := deliver(ctx, d); err != nil {
		return time.Time{}, errDeliveryFailed.Because(err)
	}
	return d.Expires, nil
}

// EmailCodeRequested records that the person asked for a mail with a code for the e-mail address, or somebody else for a
// code that proves a verified one again.
type EmailCodeRequested struct {
	Again bool `json:"again,omitempty"`
}

// EventType implements event.Fact.
func (EmailCodeRequested) EventType() event.Type { return "user.email_code_requested.v1" }

// Since implements event.Gated: a node of before would send no mail.
func (e EmailCodeRequested) Since() int {
	if e.Again {
		return 6
	}
	return 0
}

// Apply implements event.Fact.
func (EmailCodeRequested) Apply(*User) {}

// EmailCodes counts the mails with a code for the e-mail address of a user.
func EmailCodes(master secret.MasterKey, id string) mailcount.Count {
	return mailcount.Of(master, "email code", id)
}

// RequestMyEmailCode records that the caller wants a mail with a code; the mailer makes the code, see MailedCode. It
// will hold at least until expires. Errors: ErrNotHuman; ErrAlreadyVerified; ResourceExhausted when there were too many
// mails.
func RequestMyEmailCode(ctx context.Context, s event.Store, master secret.MasterKey,
	caller *access.Caller) (expires time.Time, err error) {
	count := EmailCodes(master, caller.UserID)
	who := Mine(caller).And(MustBeHuman).Needs(event.Command{Rows: []event.RowKey{count.Row}})
	_, err = who.Change(ctx, s, event.IfMatch{}, func(tx *event.Tx, u *event.Object[User]) error {
		if u.Data.Human.Email.Verified {
			return ErrAlreadyVerified
		}
		wait, err := count.Take(tx)
		if err != nil {
			return err
		}
		if wait > 0 {
			return mailcount.TooMany(wait)
		}
		expires = event.Time(tx.Now() + codeLife.Microseconds())
		return u.Append(EmailCodeRequested{})
	})
	return expires, err
}

// MailedCode makes a code for a mail to a person's e-mail address, again for one that is verified. count is nil where
// the mail was counted when it was asked for. Errors: ErrNotFound; ErrNotHuman; ErrAlreadyVerified;
// ErrEmailNotVerified; ResourceExhausted when there were too many mails.
func MailedCode(ctx context.Context, s event.Store, master secret.MasterKey, id string, again bool,
	count *mailcount.Count) (Delivery, error) {
	who := event.Target[User]{Kind: Kind, ID: id, Origin: event.Origin{Actor: event.System}, Reach: present}
	return makeCode(ctx, s, master, who, ByEmail, "", again, count)
}

// makeCode makes a code. shown is who gets to see it; empty: only the person who reads the messages to the address.
// again: the address must be verified, or else it must not. count is nil where nothing is counted.
func makeCode(ctx context.Context, s event.Store, master secret.MasterKey, who event.Target[User], by Contact,
	shown Verifier, again bool, count *mailcount.Count) (Delivery, error) {
	d := Delivery{UserID: who.ID, By: by, Code: Code{Text: secret.NewCode()}}
	var rows []event.RowKey
	if count != nil {
		rows = append(rows, count.Row)
	}
	// Nothing is recorded about the user, but the address must not change meanwhile.
	_, err := who.And(MustBeHuman).Needs(event.Command{Rows: rows}).Change(ctx, s, event.IfMatch{},
		func(tx *event.Tx, u *event.Object[User]) error {
			address, verified := by.address(u.Data.Human)
			switch {
			case address == "":
				return ErrNothingToVerify
			case again && !verified: // it was replaced meanwhile
				return ErrEmailNotVerified
			case verified && !again:
				return ErrAlreadyVerified
			}
			if count != nil {
				wait, err := count.Take(tx)
				if err != nil {
					return err
				}
				if wait > 0 {
					return mailcount.TooMany(wait)
				}
			}
			value, err := json.Marshal(pendingCode{MAC: codeMAC(master, u.ID, by, address, d.Text), Shown: shown})
			if err != nil {
				return err
			}
			expires := tx.Now() + codeLife.Microseconds()
			tx.PutRow(event.Row{RowKey: CodeRow(u.ID, by), Value: value, Expires: expires})
			d.fill(u.Data.Human, address, expires)
			return nil
		})
	return d, err
}

func (d *Delivery) fill(h *Human, address string, expires int64) {
	d.Address, d.Name, d.Language, d.Expires = address, h.Profile.DisplayName, h.Profile.PreferredLanguage,
		event.Time(expires)
}

// VerifyMine takes a code for the caller's contact, which counts as proven if it is right. A wrong one is counted, so
// the command succeeds also where the answer is a refusal. Errors: ErrNotHuman; InvalidArgument on code; Aborted when
// match does not hold.
func VerifyMine(ctx context.Context, s event.Store, master secret.MasterKey, caller *access.Caller, by Contact,
	match event.IfMatch, code string) (event.Details, error) {
	return verify(ctx, s, master, Mine(caller), by, match, code)
}

// VerifyEmailByCode takes a code for an e-mail address from somebody who is not signed in, but has the mail with the
// code and the user's identifier. Errors: InvalidArgument on code, whatever is wrong.
func VerifyEmailByCode(ctx context.Context, s event.Store, master secret.MasterKey, origin event.Origin,
	id, code string) (event.Details, error) {
	active := func(o *event.Object[User]) error {
		if o == nil || o.Data.State != Active || o.Data.Human == nil {
			return ErrWrongCode()
		}
		return nil
	}
	return verify(ctx, s, master, event.Target[User]{Kind: Kind, ID: id, Origin: origin, Reach: active}, ByEmail,
		event.IfMatch{}, code)
}

func verify(ctx context.Context, s event.Store, master secret.MasterKey, who event.Target[User], by Contact,
	match event.IfMatch, code string) (event.Details, error) {
	row := CodeRow(who.ID, by)
	code = strings.ToUpper(code)
	var right bool
	details, err := who.And(MustBeHuman).Needs(event.Command{Rows: []event.RowKey{row}}).Change(ctx, s, event.IfMatch{},
		func(tx *event.Tx, u *event.Object[User]) error {
			right = false
			kept, err := tx.Row(row)
			if err != nil || kept == nil {
				return err
			}
			var pending pendingCode
			if err := json.Unmarshal(kept.Value, &pending); err != nil {
				return err
			}
			address, _ := by.address(u.Data.Human)
			if !hmac.Equal(pending.MAC, codeMAC(master, u.ID, by, address, code)) {
				return countWrong(tx, kept, pending)
			}
			u.Expect(match) // of the right code only: a wrong one is refused, and counted, whatever was seen
			tx.DropRow(row)
			right = true
			return u.Append(by.proven(tx, u.Data.Human, cmp.Or(pending.Shown, VerifiedByOwner)))
		})
	if err == nil && !right {
		return event.Details{}, ErrWrongCode()
	}
	return details, err
}

// countWrong remembers one more wrong answer, or forgets the code after the last that is allowed.
func countWrong(tx *event.Tx, kept *event.Row, pending pendingCode) error {
	if pending.Wrong++; pending.Wrong >= codeTries {
		tx.DropRow(kept.RowKey)
		return nil
	}
	value, err := json.Marshal(pending)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: kept.RowKey, Value: value, Expires: kept.Expires})
	return nil
}
