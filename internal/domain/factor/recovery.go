package factor

import (
	"crypto/hmac"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// RecoveryCodes is how many a person gets.
const RecoveryCodes = 10

// NewRecoveryCodes makes codes, to be shown this once: eight characters and eight more, 80 bits.
func NewRecoveryCodes() []string {
	codes := make([]string, RecoveryCodes)
	for i := range codes {
		codes[i] = secret.NewCode() + "-" + secret.NewCode()
	}
	return codes
}

// recoveryMAC is what is kept of a code, however it is written.
func (f *Factors) recoveryMAC(userID, code string) []byte {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(code))
	return f.master.MAC("recovery code", []byte(userID), []byte(plain))
}

// PutRecoveryCodes gives the user new codes in place of any before. The command declared the user for writing and
// user.FactorsRow. Errors: ErrNoSecondFactor.
func (f *Factors) PutRecoveryCodes(tx *event.Tx, u *event.Object[user.User], codes []string) error {
	if !u.Data.SecondFactor {
		return ErrNoSecondFactor
	}
	k, err := load(tx, u.ID)
	if err != nil {
		return err
	}
	k.Recovery = nil
	for _, code := range codes {
		k.Recovery = append(k.Recovery, f.recoveryMAC(u.ID, code))
	}
	if err := k.save(tx, u.ID); err != nil {
		return err
	}
	return u.Append(user.RecoveryCodesMade{Count: len(codes)})
}

// UseRecoveryCode takes one of the user's codes, once. The command declared the user for writing and user.FactorsRow.
func (f *Factors) UseRecoveryCode(tx *event.Tx, u *event.Object[user.User], code string) (right bool, err error) {
	k, err := load(tx, u.ID)
	if err != nil {
		return false, err
	}
	mac, found := f.recoveryMAC(u.ID, code), -1
	for i, one := range k.Recovery { // all of them, so that the time says nothing
		if hmac.Equal(one, mac) {
			found = i
		}
	}
	if found < 0 {
		return false, nil
	}
	k.Recovery = slices.Delete(k.Recovery, found, found+1)
	if err := k.save(tx, u.ID); err != nil {
		return false, err
	}
	return true, u.Append(user.RecoveryCodeUsed{})
}
