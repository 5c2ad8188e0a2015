package factor

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// What every authenticator app understands (RFC 6238): SHA-1, six digits, half a minute. A clock that is a step off is
// fine.
const (
	totpStep   = 30 * time.Second
	totpSkew   = 1
	totpSecret = 20 // bytes, as RFC 4226 recommends
)

var totpOptions = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

// base32Plain is how apps write secrets.
var base32Plain = base32.StdEncoding.WithPadding(base32.NoPadding)

// totpKey is what is kept of an authenticator app.
type totpKey struct {
	ID     string `json:"id"`
	Secret []byte `json:"secret"` // wrapped
	Last   int64  `json:"last"`   // the last step that was used: none up to it counts again
}

const purposeTOTP = "totp secret"

// NewTOTP is the secret of an authenticator app, to be shown this once.
type NewTOTP struct {
	Secret string
	URI    string // the same for apps that scan
}

// NewTOTP makes a secret for somebody.
func (f *Factors) NewTOTP(account string) NewTOTP {
	raw := make([]byte, totpSecret)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	return f.totp(account, base32Plain.EncodeToString(raw))
}

func (f *Factors) totp(account, text string) NewTOTP {
	label := url.PathEscape(f.issuer) + ":" + url.PathEscape(account)
	return NewTOTP{Secret: text,
		URI: "otpauth://totp/" + label + "?secret=" + text + "&issuer=" + url.QueryEscape(f.issuer) +
			"&algorithm=SHA1&digits=6&period=30"}
}

// TOTPRow is where the secret waits for the first code of the app that was told it, in the session that asked.
// It is no event.Flow: the row holds the wrapped secret itself, which becomes that of the factor.
func TOTPRow(sessionID string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "totp/" + sessionID}
}

// Waiting gives a secret that was shown once more, as it was; false where it is not the one that waits in row.
func (f *Factors) Waiting(row *event.Row, u *event.Object[user.User],
	shown string) (again NewTOTP, waits bool, err error) {
	if row == nil {
		return NewTOTP{}, false, nil
	}
	text, err := f.master.Unwrap(purposeTOTP, row.Value, []byte(u.ID))
	if err != nil || subtle.ConstantTimeCompare(text, []byte(shown)) != 1 {
		return NewTOTP{}, false, err
	}
	return f.totp(u.Data.UserName, shown), true, nil
}

// StartTOTP remembers a secret that is about to be shown. Errors: user.ErrNotHuman; ErrTooMany.
func (f *Factors) StartTOTP(tx *event.Tx, u *event.Object[user.User], sessionID string, n NewTOTP) error {
	if err := room(u); err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: TOTPRow(sessionID), Value: f.master.Wrap(purposeTOTP, []byte(n.Secret), []byte(u.ID)),
		Expires: tx.Now() + startLife.Microseconds()})
	return nil
}

// AddTOTP adds the app that was told the secret, if the code comes from it. The command declared the user for writing,
// TOTPRow and user.FactorsRow. Errors: user.ErrNotHuman; ErrTooMany; InvalidArgument on code.
func (f *Factors) AddTOTP(tx *event.Tx, u *event.Object[user.User],
	sessionID, name, code string) (id string, err error) {
	if err := room(u); err != nil {
		return "", err
	}
	pending, err := tx.Row(TOTPRow(sessionID))
	if err != nil {
		return "", err
	}
	if pending == nil {
		return "", errs.Invalid(errs.Violation{Field: "code",
			Message: "is too late, or has no secret waiting for it: start again"})
	}
	key := totpKey{ID: event.NewID("fac"), Secret: pending.Value}
	right, err := f.use(&key, u.ID, code, tx.Now())
	if err != nil {
		return "", err
	}
	if !right {
		return "", errs.Invalid(errs.Violation{Field: "code",
			Message: "is wrong: check the clock of your device, and enter the current code of the app"})
	}
	k, err := load(tx, u.ID)
	if err != nil {
		return "", err
	}
	k.TOTP = append(k.TOTP, key)
	tx.DropRow(pending.RowKey)
	if err := k.save(tx, u.ID); err != nil {
		return "", err
	}
	return key.ID, u.Append(user.TOTPAdded{FactorID: key.ID, Created: tx.Now(), Personal: user.FactorFacts{Name: name}})
}

// UseTOTP takes a code of one of the user's apps, each step once. The command declared user.FactorsRow.
func (f *Factors) UseTOTP(tx *event.Tx, userID, code string) (right bool, err error) {
	return f.useTOTP(tx, userID, code, func(string) bool { return true })
}

// UseOlderTOTP is UseTOTP with an app that was added before a moment. The command declared the user too.
func (f *Factors) UseOlderTOTP(tx *event.Tx, u *event.Object[user.User], code string,
	before int64) (right bool, err error) {
	return f.useTOTP(tx, u.ID, code, func(id string) bool { return u.Data.Human.HadFactor(id, before) })
}

func (f *Factors) useTOTP(tx *event.Tx, userID, code string, usable func(id string) bool) (right bool, err error) {
	k, err := load(tx, userID)
	if err != nil {
		return false, err
	}
	for i := range k.TOTP {
		if !usable(k.TOTP[i].ID) {
			continue
		}
		if right, err = f.use(&k.TOTP[i], userID, code, tx.Now()); err != nil || right {
			break
		}
	}
	if err != nil || !right {
		return false, err
	}
	return true, k.save(tx, userID)
}

// use checks a code, and remembers its step if it is right.
func (f *Factors) use(key *totpKey, userID, code string, now int64) (right bool, err error) {
	text, err := f.master.Unwrap(purposeTOTP, key.Secret, []byte(userID))
	if err != nil {
		return false, err
	}
	code = strings.ReplaceAll(code, " ", "") // as apps show it
	current := now / totpStep.Microseconds()
	for step := max(0, current-totpSkew); step <= current+totpSkew; step++ {
		same, err := hotp.ValidateCustom(code, uint64(step), string(text), totpOptions)
		if err != nil { // not six characters
			return false, nil
		}
		if same && step > key.Last {
			key.Last = step
			return true, nil
		}
	}
	return false, nil
}
