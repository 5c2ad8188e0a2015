package user

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// An attacker who takes over an account changes its e-mail address first. So the address before is told, if it was
// verified, and can be restored for a while; and for a shorter while a mail to the new address alone does not reset the
// password. A side row holds the addresses before, with MACs of the links that were sent to them.
const (
	// RestoreLife is how long an address can be had back.
	RestoreLife = 7 * 24 * time.Hour

	resetPause = 24 * time.Hour // how long a reset needs more than a mail, after the person's own change
	// An attacker may add a second factor just before the change of the address as well as after it, and let
	// applications in. So everything that was added less than this time before the change is taken for the attacker's.
	// The owner has as long to act on the mail about it.
	suspectLead = 24 * time.Hour

	mostBefore = 50 // addresses that are remembered; the oldest that can be had back always is
)

// EmailRestored records that somebody at an address from before took it back. Whatever a thief could have left ends
// with it: sessions, tokens and the password.
type EmailRestored struct {
	At           int64         `json:"at"` // when: the link that was sent there proves the address once more
	Verification *Verification `json:"verification,omitempty"`
	Personal     EmailFacts    `json:"-"`
}

// EventType implements event.Fact.
func (EmailRestored) EventType() event.Type { return "user.email_restored.v1" }

// Apply implements event.Fact.
func (e EmailRestored) Apply(u *User) {
	if u.Human != nil {
		event.Set(&u.Human.Email.Address, e.Personal.Email)
		event.Set(&u.Human.Email.Key, e.Personal.EmailKey)
		u.Human.Email.Verified, u.Human.Email.Verification = true, Verification{}
		event.Set(&u.Human.Email.Verification, e.Verification)
	}
	u.Password = Password{Version: u.Password.Version + 1}
	u.endAll()
}

// ApplyAt implements event.EventAware.
func (e EmailRestored) ApplyAt(u *User, at *event.Event) {
	if e.Apply(u); u.Human != nil && e.Verification == nil {
		u.Human.Email.assume(VerifiedByOwner, at)
	}
}

// BeforeRow is where it is kept which addresses a user had before.
func BeforeRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/addresses_before"}
}

// before is an address that was replaced.
type before struct {
	Sequence uint64 `json:"sequence"` // of the event that replaced it, which the mail is about
	At       int64  `json:"at"`
	Address  string `json:"address"`
	Key      string `json:"key"`

	Verification Verification `json:"verification,omitzero"` // that it had

	Own bool   `json:"own,omitempty"` // the person did it, and can have it back
	MAC []byte `json:"mac,omitempty"` // of the link; none before its mail is sent
}

// over tells that it is too late to do anything about the change.
func (b before) over(now int64) bool { return now >= b.At+RestoreLife.Microseconds() }

// live tells whether the address can be had back.
func (b before) live(now int64) bool { return b.Own && !b.over(now) }

// suspectFrom is the time from which additions to the account may come from the attacker who replaced the address.
func (b before) suspectFrom() int64 { return b.At - suspectLead.Microseconds() }

func parseBefore(row *event.Row, err error) ([]before, error) {
	if err != nil || row == nil {
		return nil, err
	}
	var kept []before
	if err := json.Unmarshal(row.Value, &kept); err != nil {
		return nil, fmt.Errorf("addresses at %s: %w", row.Key, err)
	}
	return kept, nil
}

func putBefore(tx *event.Tx, id string, kept []before) error {
	kept = slices.DeleteFunc(kept, func(b before) bool { return b.over(tx.Now()) })
	if len(kept) == 0 {
		tx.DropRow(BeforeRow(id))
		return nil
	}
	value, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: BeforeRow(id), Value: value,
		Expires: kept[len(kept)-1].At + RestoreLife.Microseconds()})
	return nil
}

// leave notes that the event to come replaces the user's address, or lets it be unverified, inside a command that
// declared BeforeRow. own says that the person does it: only the user's own changes can be undone.
func leave(tx *event.Tx, u *event.Object[User], own bool) error {
	kept, err := parseBefore(tx.Row(BeforeRow(u.ID)))
	if err != nil {
		return err
	}
	if !own {
		for i := range kept {
			kept[i].Own, kept[i].MAC = false, nil
		}
	}
	if old := u.Data.Human.Email; old.Verified {
		if len(kept) >= mostBefore {
			i := slices.IndexFunc(kept, func(b before) bool { return !b.live(tx.Now()) })
			if i < 0 { // the newest is the least likely to be the owner's
				i = len(kept) - 1
			}
			kept = slices.Delete(kept, i, i+1)
		}
		kept = append(kept, before{Sequence: u.Sequence + 1, At: tx.Now(), Address: old.Address, Key: old.Key,
			Verification: old.Verification, Own: own})
	}
	return putBefore(tx, u.ID, kept)
}

// hold tells until when a reset needs more than a mail, and before which moment a second factor has to have been added
// to be that more; 0: it needs nothing.
func hold(kept []before, now int64) (until, factorBefore int64) {
	for _, b := range kept {
		if end := b.At + resetPause.Microseconds(); b.Own && now < end {
			until = max(until, end)
			if from := b.suspectFrom(); factorBefore == 0 || from < factorBefore {
				factorBefore = from
			}
		}
	}
	return until, factorBefore
}

// ResetDelay tells whether the password of a user is not reset by a mail alone, because the person has just changed the
// address that the mail goes to. Then it gives the moment before which a second factor has to have been added to help;
// else 0. The command declared BeforeRow.
func ResetDelay(tx *event.Tx, id string) (factorBefore int64, err error) {
	kept, err := parseBefore(tx.Row(BeforeRow(id)))
	_, factorBefore = hold(kept, tx.Now())
	return factorBefore, err
}

// AddressBefore gives the oldest address that can be had back; empty: there is none. Its owner is told what happens to
// the account.
func AddressBefore(ctx context.Context, r event.Reader, id string, now int64) (string, error) {
	kept, err := parseBefore(r.Row(ctx, BeforeRow(id)))
	if i := slices.IndexFunc(kept, func(b before) bool { return b.live(now) }); i >= 0 {
		return kept[i].Address, nil
	}
	return "", err
}

// ErrNothingBefore tells the mailer that there is no address to notify. No caller sees it.
var ErrNothingBefore = errors.New("there is no address from before")

func restoreMAC(master secret.MasterKey, id, code string) []byte {
	return master.MAC("address before", []byte(id), []byte(code))
}

// LeftAddress is what to tell an address that the event with this sequence replaced. Where the person did it, its code
// takes the address back; it replaces the code of an earlier try to send the mail. Errors: ErrNothingBefore.
func LeftAddress(ctx context.Context, s event.Store, master secret.MasterKey, id string,
	sequence uint64) (Delivery, error) {
	return mailAbout(ctx, s, id, func(u *User) bool { return u.Human != nil }, ErrNothingBefore,
		func(tx *event.Tx, u *event.Object[User], kept []before, d *Delivery) error {
			i := slices.IndexFunc(kept, func(b before) bool { return b.Sequence == sequence && !b.over(tx.Now()) })
			if i < 0 {
				return ErrNothingBefore
			}
			if d.Text = ""; kept[i].live(tx.Now()) {
				d.Text = secret.NewLinkCode()
				kept[i].MAC = restoreMAC(master, id, d.Text)
			}
			d.fill(u.Data.Human, kept[i].Address, kept[i].At+RestoreLife.Microseconds())
			return putBefore(tx, id, kept)
		})
}

// Restorable tells which address a code takes back: the oldest that can be, whatever change the code was sent about,
// for somebody who has taken an account over may have changed it more than once. since is from when on what was added
// to the account may not be the owner's. The command declared BeforeRow.
func Restorable(tx *event.Tx, master secret.MasterKey,
	id, code string) (back Email, since int64, right bool, err error) {
	kept, err := parseBefore(tx.Row(BeforeRow(id)))
	if err != nil {
		return Email{}, 0, false, err
	}
	mac := restoreMAC(master, id, code)
	for _, b := range kept {
		right = right || b.live(tx.Now()) && b.MAC != nil && hmac.Equal(b.MAC, mac)
	}
	first := slices.IndexFunc(kept, func(b before) bool { return b.live(tx.Now()) })
	if !right || first < 0 {
		return Email{}, 0, false, nil
	}
	return Email{Address: kept[first].Address, Key: kept[first].Key, Verification: kept[first].Verification},
		kept[first].suspectFrom(), true, nil
}

// RestoreEmail gives a user an address back, and makes a code that lets the person choose a new password at once. The
// command declared the user for writing and BeforeRow. No link works any more afterwards; the address that is replaced
// is kept for the mail about it.
func RestoreEmail(tx *event.Tx, master secret.MasterKey, u *event.Object[User], back Email) (code string, err error) {
	tx.DropRow(PasswordRow(u.ID))
	tx.DropRow(CodeRow(u.ID, ByEmail))
	var told []before
	if old := u.Data.Human.Email; old.Address != back.Address {
		told = append(told, before{Sequence: u.Sequence + 1, At: tx.Now(), Address: old.Address, Key: old.Key})
	}
	if err := putBefore(tx, u.ID, told); err != nil {
		return "", err
	}
	restored := EmailRestored{At: tx.Now(), Verification: &back.Verification,
		Personal: EmailFacts{Email: &back.Address, EmailKey: &back.Key}}
	if back.Verification.By != VerifiedByOwner { // the link has proven what was taken on somebody's word
		restored.Verification = Said(tx, true, VerifiedByOwner)
	}
	if err := u.Append(restored); err != nil {
		return "", err
	}
	code = secret.NewCode()
	_, err = putReset(tx, master, u, code)
	return code, err
}
