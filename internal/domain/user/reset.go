package user

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// PasswordReset records that the person chose a new password without knowing the old one, by a code that was sent to
// the verified e-mail address. It ends every session and token, as a password that an administrator sets does.
type PasswordReset struct{}

// EventType implements event.Fact.
func (PasswordReset) EventType() event.Type { return "user.password_reset.v1" }

// Apply implements event.Fact.
func (PasswordReset) Apply(u *User) {
	u.Password = Password{Version: u.Password.Version + 1}
	u.endAll()
}

// ResetRow is where the pending code that resets a user's password lives.
func ResetRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/reset_code"}
}

// resetMAC binds a code to the user, the address it was sent to and the password it is to replace: another address or
// another password ends it.
func resetMAC(master secret.MasterKey, u *event.Object[User], code string) []byte {
	return master.MAC("reset code", []byte(u.ID), []byte(u.Data.Human.Email.Address),
		[]byte(strconv.FormatInt(u.Data.Password.Version, 10)), []byte(code))
}

// MayReset tells whether a person's password can be reset by mail: only by the owner of an address that is known to be
// theirs.
func (u *User) MayReset() bool {
	return u.State == Active && u.Human != nil && u.Human.Email.Verified
}

// ErrCannotReset tells the mailer that there is nobody to send a mail to. No caller sees it: the answer to a request
// for a reset must tell nothing about the user.
var ErrCannotReset = errors.New("the password of this user cannot be reset by mail")

// ResetCode makes a code for a mail to a person who wants to reset the password. It replaces an earlier one. Right
// after the person's own change of the address there is none for who has no second factor from long enough before:
// Delayed. Errors: ErrCannotReset.
func ResetCode(ctx context.Context, s event.Store, master secret.MasterKey, id string) (Delivery, error) {
	return mailAbout(ctx, s, id, func(u *User) bool { return u.MayReset() }, ErrCannotReset,
		func(tx *event.Tx, u *event.Object[User], kept []before, d *Delivery) error {
			until, factorBefore := hold(kept, tx.Now())
			if d.Delayed = until > 0 &&
				!slices.ContainsFunc(u.Data.Human.Factors,
					func(f Factor) bool { return f.Created < factorBefore }); d.Delayed {
				d.fill(u.Data.Human, u.Data.Human.Email.Address, until)
				return nil
			}
			d.Text = secret.NewCode()
			expires, err := putReset(tx, master, u, d.Text)
			d.fill(u.Data.Human, u.Data.Human.Email.Address, expires)
			return err
		})
}

// mailAbout makes what a mail to a person says, with the addresses that the person had before. It refuses users that
// are not there, and those that do not fit.
func mailAbout(ctx context.Context, s event.Store, id string, fits func(*User) bool, refused error,
	decide func(*event.Tx, *event.Object[User], []before, *Delivery) error) (Delivery, error) {
	d := Delivery{UserID: id, By: ByEmail}
	who := event.Target[User]{
		Kind:   Kind,
		ID:     id,
		Origin: event.Origin{Actor: event.System},
		Reach: func(u *event.Object[User]) error {
			if u == nil || !fits(&u.Data) {
				return refused
			}
			return nil
		},
	}
	_, err := who.Needs(event.Command{Rows: []event.RowKey{BeforeRow(id)}}).Change(ctx, s, event.IfMatch{},
		func(tx *event.Tx, u *event.Object[User]) error {
			kept, err := parseBefore(tx.Row(BeforeRow(id)))
			if err != nil {
				return err
			}
			return decide(tx, u, kept, &d)
		})
	return d, err
}

// putReset stores a code that resets the password.
func putReset(tx *event.Tx, master secret.MasterKey, u *event.Object[User], code string) (expires int64, err error) {
	value, err := json.Marshal(pendingCode{MAC: resetMAC(master, u, code)})
	if err != nil {
		return 0, err
	}
	expires = tx.Now() + codeLife.Microseconds()
	tx.PutRow(event.Row{RowKey: ResetRow(u.ID), Value: value, Expires: expires})
	return expires, nil
}

// CheckResetCode looks at a code that resets a password, inside a command that declared the user and ResetRow. It gives
// the user if the code is right, and nil if not; that is counted.
func CheckResetCode(tx *event.Tx, master secret.MasterKey, id, code string) (*event.Object[User], error) {
	u, err := Kind.Get(tx, id)
	if err != nil {
		return nil, err
	}
	kept, err := tx.Row(ResetRow(id))
	if err != nil || kept == nil || u == nil || !u.Data.MayReset() {
		return nil, err
	}
	var pending pendingCode
	if err := json.Unmarshal(kept.Value, &pending); err != nil {
		return nil, err
	}
	if !hmac.Equal(pending.MAC, resetMAC(master, u, strings.ToUpper(code))) {
		return nil, countWrong(tx, kept, pending)
	}
	return u, nil
}
