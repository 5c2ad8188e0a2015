package user

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
)

// How many mails of one kind go to one person, whoever asks for them: nobody may flood somebody's mailbox.
const (
	mailPause = time.Minute
	mailsADay = 10
)

// MailThrottled is the reason of a refusal to send one more mail.
const MailThrottled errs.Reason = "MAIL_THROTTLED"

func errTooManyMails(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: MailThrottled, RetryAfter: wait,
		Message: "such a mail was already sent: look for it, or wait " + strconv.Itoa(int((wait+time.Second-1)/time.Second)) + " s before you request another one"}
}

// ErrTooManyMails is what errors.Is finds such a refusal by.
var ErrTooManyMails = errs.New(errs.ResourceExhausted, MailThrottled, "a mail like this was sent already")

// MailCount counts the mails of one kind to one account, in a row that a command declares.
type MailCount struct {
	Row event.RowKey
	at  int64 // when the mail was caused; 0: by the command itself
}

// For counts a mail about something that happened at a moment. However often it is tried to be sent, it counts once.
func (c MailCount) For(at int64) MailCount { return MailCount{Row: c.Row, at: at} }

// CountMails makes one. The account is a user, or a name that nobody has; only a MAC of it is stored.
func CountMails(master secret.MasterKey, kind string, account ...string) MailCount {
	parts := [][]byte{[]byte(kind)}
	for _, p := range account {
		parts = append(parts, []byte(p))
	}
	return MailCount{Row: event.RowKey{Table: event.Throttle, Key: hex.EncodeToString(master.MAC("mails", parts...))}}
}

// Take counts one more mail, or says how long to wait for it.
func (c MailCount) Take(tx *event.Tx) (wait time.Duration, err error) {
	row, err := tx.Row(c.Row)
	if err != nil {
		return 0, err
	}
	var sent []int64 // when, the first one first
	if row != nil {
		if err := json.Unmarshal(row.Value, &sent); err != nil {
			return 0, err
		}
	}
	now, day := cmp.Or(c.at, tx.Now()), (24 * time.Hour).Microseconds()
	if c.at != 0 && slices.Contains(sent, c.at) {
		return 0, nil
	}
	sent = slices.DeleteFunc(sent, func(at int64) bool { return now-at >= day })
	if n := len(sent); n > 0 {
		next := sent[n-1] + mailPause.Microseconds()
		if n >= mailsADay {
			next = max(next, sent[n-mailsADay]+day)
		}
		if now < next {
			return time.Duration(next-now) * time.Microsecond, nil
		}
	}
	value, err := json.Marshal(append(sent, now))
	if err != nil {
		return 0, err
	}
	tx.PutRow(event.Row{RowKey: c.Row, Value: value, Expires: tx.Now() + day})
	return 0, nil
}
