package session

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// A request to reset a password waits in a sealed row until a node looks up the user. So the client is answered after
// the same work whether or not the user exists, and the rest happens at a time of its own. The command that records the
// outcome drops the row: however many nodes look, each request leads to at most one mail.
const (
	resetPrefix = "reset/"
	resetBeat   = 500 * time.Millisecond // how often to look for requests
	resetPage   = 100                    // requests that are looked at together
	resetStale  = time.Hour              // nobody waits for a mail that long

	// maxResetName bounds what is stored: a user name with a domain is shorter, and no mail goes to an address that is
	// longer.
	maxResetName = 16 << 10
)

// waiting is a request as it waits.
type waiting struct {
	LoginName string        `json:"loginName,omitempty"`
	OrgID     string        `json:"orgId,omitempty"`
	AppOrg    string        `json:"appOrg,omitempty"`
	Source    RequestSource `json:"place"`
	RequestID string        `json:"requestId,omitempty"`
	At        int64         `json:"at"`
}

// await stores a request. The same name waits once.
func (s *Sessions) await(ctx context.Context, r ResetRequest) error {
	mac := s.Master.MAC("reset request", []byte(r.OrgID), []byte(r.AppOrg), []byte(r.LoginName))
	row := event.RowKey{Table: event.Deliveries, Key: resetPrefix + hex.EncodeToString(mac)}
	w := waiting{Source: RequestSourceOf(r.Peer, r.UserAgent), RequestID: r.RequestID}
	if len(r.LoginName)+len(r.OrgID) <= maxResetName {
		w.LoginName, w.OrgID, w.AppOrg = r.LoginName, r.OrgID, r.AppOrg
	}
	return s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: r.RequestID},
		Decide: func(tx *event.Tx) error {
			w.At = tx.Now()
			plain, err := json.Marshal(w)
			if err != nil {
				return err
			}
			tx.PutRow(event.Row{RowKey: row, Value: s.Master.Wrap("reset request", plain, []byte(row.Key))})
			return nil
		},
	})
}

// AnswerResets does what waiting requests ask for, until ctx ends.
func (s *Sessions) AnswerResets(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(resetBeat)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := s.AnswerWaitingResets(ctx)
		if ctx.Err() != nil {
			return
		}
		if bug, is := errors.AsType[*errs.Panicked](err); is {
			log.Error("a request to reset a password failed and was dropped", "error", err, "stack", bug.Stack)
		} else if err != nil && !failing {
			log.Warn("requests to reset passwords failed: the server retries", "error", err)
		}
		failing = err != nil
	}
}

// AnswerWaitingResets does what waits now, once. What fails waits on, and keeps nothing else from being done.
func (s *Sessions) AnswerWaitingResets(ctx context.Context) error {
	var failures error
	for after := ""; ; {
		rows, err := s.Store.RowsOf(ctx, event.Deliveries, resetPrefix, after, resetPage)
		if err != nil || len(rows) == 0 {
			return cmp.Or(err, failures)
		}
		after = rows[len(rows)-1].Key
		failed := make([]error, len(rows))
		var all sync.WaitGroup
		for i := range rows { // together: one transaction of the store's takes many
			all.Go(func() { failed[i] = s.answerOrDrop(ctx, &rows[i]) })
		}
		all.Wait()
		if failures = cmp.Or(failures, cmp.Or(failed...)); len(rows) < resetPage {
			return failures
		}
	}
}

// answerOrDrop answers a request. One that leads to a panic is dropped: it would lead to one each time.
func (s *Sessions) answerOrDrop(ctx context.Context, row *event.Row) error {
	err := errs.Guarded(func() error { return s.answerReset(ctx, row) })
	if _, bug := errors.AsType[*errs.Panicked](err); bug {
		return errors.Join(err, s.dropReset(ctx, row))
	}
	return err
}

func (s *Sessions) dropReset(ctx context.Context, row *event.Row) error {
	return s.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		tx.DropRow(row.RowKey)
		return nil
	}})
}

// resetMails counts the mails to one user.
func resetMails(master secret.MasterKey, userID string) mailcount.Count {
	return mailcount.Of(master, "password reset", "user", userID)
}

// answerReset notes that a mail shall go to the user of a request's login name: to a verified address of an active
// person only, and not more often than mailcount.Count allows.
func (s *Sessions) answerReset(ctx context.Context, row *event.Row) error {
	var w waiting
	plain, err := s.Master.Unwrap("reset request", row.Value, []byte(row.Key))
	if err == nil {
		err = json.Unmarshal(plain, &w)
	}
	if err != nil {
		return s.dropReset(ctx, row) // nobody can ever read it
	}
	var u *event.Object[user.User]
	if w.LoginName != "" {
		if u, _, err = s.find(ctx, w.LoginName, NameScope{Org: w.OrgID, App: w.AppOrg}); err != nil {
			return err
		}
	}
	command := event.Command{Origin: event.Origin{Actor: event.System, RequestID: w.RequestID},
		Rows: []event.RowKey{row.RowKey}}
	id := NobodyID
	var count mailcount.Count
	hasNoOther := false
	if u != nil {
		if hasNoOther, err = s.keepsPassword(ctx, u); err != nil {
			return err
		}
		id = u.ID
		count = resetMails(s.Master, u.ID)
		command.Rows = append(command.Rows, count.Row)
		command.Read = append(command.Read, org.Kind.Ref(u.Org))
	}
	command.Write = []event.Ref{Kind.Ref(IDFor(id))}
	command.Read = append(command.Read, userRef(id))
	command.Decide = func(tx *event.Tx) error {
		kept, err := tx.Row(row.RowKey)
		if err != nil || kept == nil { // another node was faster
			return err
		}
		tx.DropRow(row.RowKey)
		if u == nil || tx.Now() >= w.At+resetStale.Microseconds() {
			return nil
		}
		wait, err := count.Take(tx)
		if err != nil || wait > 0 {
			return err
		}
		now, err := user.Kind.Get(tx, u.ID)
		if err != nil {
			return err
		}
		o, err := org.Kind.Get(tx, u.Org)
		if err != nil || now == nil || !now.Data.MayReset() || !MaySignIn(&now.Data, o) {
			return err
		}
		return record(tx, u.ID, PasswordResetRequested{Personal: w.Source,
			NoPassword: !hasNoOther && !o.Data.Policy.Allows(policy.WithPassword)})
	}
	return s.Store.Do(ctx, command)
}
