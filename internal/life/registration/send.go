package registration

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/signin/session"
)

// A registration waits in a row, sealed, until a node has sent its mail. The node notes that it is at it, with the
// token, so that another one takes over with the same token if it fails: the mail goes out at least once, within an
// hour, and counts once.
const (
	waitingPrefix = "registration/"
	beat          = 500 * time.Millisecond // how often to look
	pause         = 10 * time.Second       // where mails cannot be sent
	page          = 100                    // rows that are looked at together
	parallel      = 8                      // mails on their way
	patience      = time.Minute            // for a node that sends one
)

// Run sends mails until ctx ends.
func (s *Registrations) Run(ctx context.Context, log *slog.Logger) {
	if s.Mail == nil {
		return
	}
	failing, wait := false, beat
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		err := s.SendWaiting(ctx)
		if ctx.Err() != nil {
			return
		}
		if bug, is := errors.AsType[*errs.Panicked](err); is {
			log.Error("a registration failed and was dropped", "error", err, "stack", bug.Stack)
		} else if err != nil && !failing {
			log.Warn("mails to people who register could not be sent: the server retries", "error", err)
		}
		failing = err != nil
		if wait = beat; failing {
			wait = pause
		}
	}
}

// SendWaiting sends what waits now, once. What fails waits on, and keeps nothing else from being sent.
func (s *Registrations) SendWaiting(ctx context.Context) error {
	var failures error
	left := &waiting{of: map[string]int{}}
	defer func() { s.waiting.Store(left) }()
	for after := ""; ; {
		rows, err := s.Sessions.Store.RowsOf(ctx, event.Deliveries, waitingPrefix, after, page)
		if err != nil || len(rows) == 0 {
			return cmp.Or(err, failures)
		}
		after = rows[len(rows)-1].Key
		failed := make([]error, len(rows))
		slots := make(chan struct{}, parallel)
		var all sync.WaitGroup
		for i := range rows {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				failed[i] = s.sendOrDrop(ctx, &rows[i])
			})
		}
		all.Wait()
		for i, err := range failed {
			if err == nil {
				continue
			}
			if p, unread := s.read(&rows[i]); unread == nil {
				left.of[p.OrgID]++
			}
			left.all++
		}
		if failures = cmp.Or(failures, cmp.Or(failed...)); len(rows) < page {
			return failures
		}
	}
}

// sendOrDrop sends one. One that leads to a panic is dropped: it would lead to one each time.
func (s *Registrations) sendOrDrop(ctx context.Context, row *event.Row) error {
	err := errs.Guarded(func() error { return s.send(ctx, row) })
	if _, bug := errors.AsType[*errs.Panicked](err); bug {
		return errors.Join(err, s.drop(ctx, row.RowKey))
	}
	return err
}

func (s *Registrations) drop(ctx context.Context, keys ...event.RowKey) error {
	return s.Sessions.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Decide: func(tx *event.Tx) error {
			for _, key := range keys {
				tx.DropRow(key)
			}
			return nil
		},
	})
}

func (s *Registrations) send(ctx context.Context, row *event.Row) error {
	p, err := s.read(row)
	if err != nil {
		return s.drop(ctx, row.RowKey) // nobody can ever read it
	}
	o, known, err := s.judge(ctx, p)
	if err != nil {
		return err
	}
	if p, err = s.take(ctx, row.RowKey, o != nil, known); err != nil || p == nil {
		return err
	}
	id := strings.TrimPrefix(row.Key, waitingPrefix)
	to := Receiver{Address: p.Email, Language: p.Language, Organization: o.Data.Name}
	if p.Known {
		err = s.Mail.Registered(ctx, to)
	} else {
		err = s.Mail.Register(ctx, to, linkOf(p.Token, id))
	}
	if refused, is := errors.AsType[*notify.Refusal](err); is && refused.ForGood {
		return s.drop(ctx, row.RowKey, rowAt(id)) // there is no such mailbox
	}
	if err != nil {
		return err
	}
	return s.drop(ctx, row.RowKey)
}

// judge finds whether a mail goes out, nil for none, and whether there is somebody with the address.
func (s *Registrations) judge(ctx context.Context, p *pending) (o *event.Object[org.Org], known bool, err error) {
	if o, err = s.Open(ctx, p.OrgID); errors.Is(err, ErrOff) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	prover, err := s.Sessions.Store.Holder(ctx, org.ProvenClaimOf(p.Email))
	if err != nil {
		return nil, false, err
	}
	if !takes(o, prover) {
		return nil, false, nil
	}
	known, err = s.known(ctx, p)
	return o, known, err
}

// known tells whether there is somebody with the address in the organization.
func (s *Registrations) known(ctx context.Context, p *pending) (bool, error) {
	key, _ := syntax.Email(p.Email)
	id, err := session.NameFinder{Store: s.Sessions.Store}.WithEmail(ctx, p.OrgID, key)
	return id != "", err
}

// take notes that this node sends a mail, and makes the link count; nil where there is none to send. A mailbox gets a
// few of them a day.
func (s *Registrations) take(ctx context.Context, row event.RowKey, allowed, known bool) (taken *pending, err error) {
	kept, err := s.Sessions.Store.Row(ctx, row)
	if err != nil || kept == nil {
		return nil, err
	}
	p, err := s.read(kept)
	if err != nil {
		return nil, err
	}
	key, _ := syntax.Email(p.Email)
	count := mailcount.ToMailbox(s.Sessions.Master, key)
	token, hash := secret.NewToken(secret.Registration)
	finish := rowAt(strings.TrimPrefix(row.Key, waitingPrefix))
	err = s.Sessions.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: p.RequestID},
		Rows:   []event.RowKey{row, count.Row},
		Decide: func(tx *event.Tx) error {
			taken = nil
			kept, err := tx.Row(row)
			if err != nil || kept == nil { // another node was faster
				return err
			}
			now, err := s.read(kept)
			if err != nil {
				return err
			}
			switch {
			case !allowed || tx.Now() >= now.At+life.Microseconds():
				tx.DropRow(row)
				return nil
			case tx.Now() < now.Next: // another node is at it
				return nil
			case now.Next == 0:
				wait, err := count.Take(tx)
				if err != nil {
					return err
				}
				if wait > 0 {
					tx.DropRow(row) // the mail before has to do
					return nil
				}
				if now.Known = known; !known {
					now.Token = token
					if err := s.put(tx, finish,
						&pending{OrgID: now.OrgID, Email: now.Email, Language: now.Language, Return: now.Return,
							At: tx.Now(), Hash: hash}, tx.Now()+life.Microseconds()); err != nil {
						return err
					}
				}
			}
			now.Next = tx.Now() + patience.Microseconds()
			taken = now
			return s.put(tx, row, now, 0)
		},
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}
