package invitation

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/limit/stored"
)

const (
	maxPending = 1000
	maxADay    = 500

	// kept is how long it is known of a link that is over what it was, so that people are told why it does not work.
	kept = 30 * 24 * time.Hour
)

// links say which invitation a link is of, by its hash: the link itself is not stored.
var links = event.Flow[linked]{Prefix: "invitation"}

// linked is what the row of a link holds.
type linked struct {
	Invitation string `json:"invitation"`
	Link       int64  `json:"link"` // it counts while this is the invitation's number
}

// putLink stores a link of an invitation.
func putLink(tx *event.Tx, i *event.Object[Invitation], hash []byte) {
	links.PutUntil(tx, hex.EncodeToString(hash), &linked{Invitation: i.ID, Link: i.Data.Link},
		i.Data.Expires+kept.Microseconds())
}

// sending is a link that is about to be made.
type sending struct {
	permit   access.Permit
	org      string
	mail     bool
	life     time.Duration // zero: as long as the one before
	each     mailcount.Count
	token    string
	hash     []byte
	external string

	recounted *int64 // pending invitations; nil: nobody has counted

	expires int64
	link    string // to be shown
}

func (s Invitations) sending(permit access.Permit, orgID, emailKey string, life time.Duration) *sending {
	n := &sending{permit: permit, org: orgID, mail: s.Mail, life: life, external: s.ExternalURL,
		each: Counts(s.Master, orgID, emailKey)}
	if !s.Mail {
		n.token, n.hash = secret.NewToken(secret.Invitation)
	}
	return n
}

func (n *sending) rows() []event.RowKey { return []event.RowKey{countOf(n.org).Row, n.each.Row} }

// count counts a link that is sent, and pending invitations that are made. Errors: errFull; ResourceExhausted.
func (n *sending) count(tx *event.Tx, made int64) error {
	c, err := countOf(n.org).Get(tx)
	if err != nil {
		return err
	}
	if n.recounted != nil {
		c.Pending = *n.recounted
	}
	if c.Pending+made > maxPending {
		return errFull
	}
	c.Pending += made
	day := tx.Now() / (24 * time.Hour).Microseconds()
	if c.Day != day {
		c.Day, c.Sent = day, 0
	}
	if c.Sent++; c.Sent > maxADay {
		wait := time.Duration((day+1)*(24*time.Hour).Microseconds()-tx.Now()) * time.Microsecond
		return &errs.Error{Kind: errs.ResourceExhausted, Reason: TooManyPassed, RetryAfter: wait,
			Message: fmt.Sprintf("the organization has sent %d invitations today: send more tomorrow (UTC)", maxADay)}
	}
	if n.mail {
		wait, err := n.each.Take(tx)
		if err != nil {
			return err
		}
		if wait > 0 {
			return mailcount.TooMany(wait)
		}
	}
	countOf(n.org).Put(tx, c, countKept)
	return nil
}

// send records a new link, and stores it if it is shown to the inviter. If it goes by mail, the mailer makes the link:
// see Mailed.
func (n *sending) send(tx *event.Tx, i *event.Object[Invitation]) error {
	var shows []access.Role
	for _, id := range i.Data.Groups {
		g, err := group.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		if g != nil && g.Data.State == group.Active && g.Org == i.Org {
			shows = append(shows, g.Data.Roles...)
		}
	}
	slices.Sort(shows)
	life := n.life.Microseconds()
	if life == 0 {
		life = i.Data.Life
	}
	if i.Data.Expires != 0 {
		tx.DropRow(sweepRow(i.Data.Expires, i.ID))
	}
	n.expires = tx.Now() + life
	inviter := n.permit.Origin().Actor
	if n.permit.Supports() {
		inviter = i.Data.Inviter
	}
	if err := i.Append(Sent{Link: i.Data.Link + 1, Shown: !n.mail, Life: life, Expires: n.expires,
		Inviter: inviter, Shows: slices.Compact(shows)}); err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: sweepRow(n.expires, i.ID), Value: []byte{1}})
	if n.mail {
		return nil
	}
	n.link = Address(n.external, n.token)
	putLink(tx, i, n.hash)
	return nil
}

// counter is how many invitations an organization has, and has sent today.
type counter struct {
	Pending int64 `json:"pending,omitempty"`
	Day     int64 `json:"day,omitempty"` // since 1970
	Sent    int64 `json:"sent,omitempty"`
}

// countOf is that of an organization.
func countOf(org string) stored.Counter[counter] { return stored.At[counter]("invitations/" + org) }

// countKept is how long a count is kept: no invitation that it counts can be left then.
const countKept = MaxLife + 24*time.Hour

// Delivery is an invitation on its way by mail.
type Delivery struct {
	Email    string
	Language string
	OrgID    string
	Inviter  string // id of the user
	Token    string
	Expires  time.Time
}

// ErrNothingToSend tells the mailer that there is no mail to send.
var ErrNothingToSend = errors.New("this invitation has ended, or was sent again")

// Mailed makes the link for a mail about Sent. What was sent twice, since nobody knew whether it had arrived, has two
// links; one person accepts by either. Errors: ErrNothingToSend; ResourceExhausted where the address got too many
// invitations.
func Mailed(ctx context.Context, s event.Store, master secret.MasterKey, e *event.Event) (d Delivery, err error) {
	fact, err := Kind.Decode(e.Type, e.Payload, nil)
	if err != nil {
		return d, err
	}
	sent, is := fact.(Sent)
	known, err := Kind.Read(ctx, s, e.ObjectID)
	if err != nil {
		return d, err
	}
	if !is || sent.Shown || known == nil || known.Data.State != Pending {
		return d, ErrNothingToSend
	}
	everywhere := CountsEverywhere(master, known.Data.EmailKey)
	token, hash := secret.NewToken(secret.Invitation)
	err = s.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Read:   []event.Ref{Kind.Ref(e.ObjectID)},
		Rows:   []event.RowKey{everywhere.Row},
		Decide: func(tx *event.Tx) error {
			i, err := Kind.Get(tx, e.ObjectID)
			if err != nil {
				return err
			}
			if i == nil || i.Data.State != Pending || i.Data.Link != sent.Link || tx.Now() >= i.Data.Expires {
				return ErrNothingToSend
			}
			wait, err := everywhere.For(e.Time).Take(tx) // once, however often it is tried
			if err == nil && wait > 0 {
				wait, err = everywhere.Take(tx) // there may have been a pause since
			}
			if err != nil {
				return err
			}
			if wait > 0 {
				return mailcount.TooMany(wait)
			}
			d = Delivery{Email: i.Data.Email, Language: i.Data.Language, OrgID: i.Org, Inviter: i.Data.Inviter,
				Token: token, Expires: event.Time(i.Data.Expires)}
			putLink(tx, i, hash)
			return nil
		},
	})
	return d, err
}

// sweepPrefix begins the rows by which invitations are found that nobody has accepted in time.
const sweepPrefix = "invitation/"

func sweepRow(expires int64, id string) event.RowKey {
	return event.RowKey{Table: event.Deliveries, Key: fmt.Sprintf("%s%020d/%s", sweepPrefix, expires, id)}
}

// sweepPage is how many are looked at together.
const sweepPage = 100

// due gives the invitations of all organizations that nobody has accepted in time, with the rows by which they are
// found, until f fails.
func due(ctx context.Context, r event.Reader, now time.Time, f func(row event.RowKey, id string) error) error {
	for after := ""; ; {
		rows, err := r.RowsOf(ctx, event.Deliveries, sweepPrefix, after, sweepPage)
		if err != nil {
			return err
		}
		for _, row := range rows {
			at, id, _ := strings.Cut(strings.TrimPrefix(row.Key, sweepPrefix), "/")
			expires, err := strconv.ParseInt(at, 10, 64)
			if err == nil && expires > event.Micros(now) {
				return nil // the others come later
			}
			if err := f(row.RowKey, id); err != nil {
				return err
			}
			after = row.Key
		}
		if len(rows) < sweepPage {
			return nil
		}
	}
}

// Sweep ends the invitations that nobody has accepted in time. Several nodes may do so at once: what has ended already
// is skipped.
func (s Invitations) Sweep(ctx context.Context, now time.Time) error {
	var failures error
	err := due(ctx, s.Store, now, func(row event.RowKey, id string) error {
		if err := s.expire(ctx, id, row); err != nil {
			failures = errors.Join(failures, fmt.Errorf("invitation %s: %w", id, err))
		}
		return nil
	})
	return errors.Join(failures, err)
}

func (s Invitations) expire(ctx context.Context, id string, row event.RowKey) error {
	known, err := Kind.Read(ctx, s.Store, id)
	if err != nil {
		return err
	}
	command := event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{Kind.Ref(id)}}
	if known != nil {
		command.Rows = []event.RowKey{countOf(known.Org).Row}
	}
	command.Decide = func(tx *event.Tx) error {
		tx.DropRow(row)
		i, err := Kind.Get(tx, id)
		if err != nil || i == nil || known == nil || i.Data.State != Pending || tx.Now() < i.Data.Expires {
			return err
		}
		return end(tx, i, HasExpired{})
	}
	return s.Store.Do(ctx, command)
}

// sweepEvery is how often to look for invitations that have expired.
const sweepEvery = time.Minute

// Run sweeps every now and then, until ctx ends. report is told of failures.
func (s Invitations) Run(ctx context.Context, clock func() time.Time, report func(error)) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Sweep(ctx, clock()); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
