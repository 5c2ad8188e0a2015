// Package mailcount limits how many mails of one kind one person gets, no matter who asks for them, so that nobody can
// flood a mailbox.
package mailcount

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/stored"
)

const (
	pause = time.Minute
	day   = 24 * time.Hour
	aDay  = 10
	few   = 5 // to somebody who has not asked us for anything, as far as we know
)

// Throttled is the reason of a refusal to send one more mail.
const Throttled errs.Reason = "MAIL_THROTTLED"

// TooMany is the refusal to send one more mail before a while has passed.
func TooMany(wait time.Duration) error {
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: Throttled, RetryAfter: wait,
		Message: "such a mail was already sent: look for it, or wait " + errs.Seconds(wait) +
			" s before you request another one"}
}

// ErrTooMany is what errors.Is finds such a refusal by.
var ErrTooMany = errs.New(errs.ResourceExhausted, Throttled, "a mail like this was sent already")

// Count counts the mails of one kind to one account, in a row that a command declares.
type Count struct {
	Row  event.RowKey
	at   int64 // when the mail was caused; 0: by the command itself
	most int   // within a day; 0: aDay
}

// For counts a mail about something that happened at a moment. However often it is tried to be sent, it counts once.
func (c Count) For(at int64) Count { return Count{Row: c.Row, at: at, most: c.most} }

// Of makes one. The account is a user, or a name that nobody has; only a MAC of it is stored.
func Of(master secret.MasterKey, kind string, account ...string) Count {
	return Count{Row: stored.Of[stored.Window](master, "mails", append([]string{kind}, account...)...).Row}
}

// Daily counts mails of which one a day is enough.
func Daily(master secret.MasterKey, kind string, account ...string) Count {
	c := Of(master, kind, account...)
	c.most = 1
	return c
}

// ToMailbox counts mails to an address that need not be an account's: somebody typed it. All of them count together,
// whatever they are about and whichever organization they are for. So do the addresses of one mailbox, as far as that
// can be told: what follows a + is a tag.
func ToMailbox(master secret.MasterKey, emailKey string) Count {
	at := max(strings.LastIndexByte(emailKey, '@'), 0)
	local, domain := emailKey[:at], emailKey[at:]
	if tag := strings.IndexByte(local, '+'); tag > 0 {
		local = local[:tag]
	}
	c := Of(master, "mailbox", local, domain)
	c.most = few
	return c
}

// Take counts one more mail, or says how long to wait for it.
func (c Count) Take(tx *event.Tx) (wait time.Duration, err error) {
	counter := stored.Counter[stored.Window]{Row: c.Row}
	sent, err := counter.Get(tx)
	if err != nil || c.at != 0 && slices.Contains(sent, c.at) {
		return 0, err
	}
	now := cmp.Or(c.at, tx.Now())
	sent = sent.Since(now, day)
	if wait := max(sent.Wait(now, 1, pause), sent.Wait(now, cmp.Or(c.most, aDay), day)); wait > 0 {
		return wait, nil
	}
	counter.Put(tx, append(sent, now), day)
	return 0, nil
}
