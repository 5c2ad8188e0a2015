package trial

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// The reasons of this package.
const (
	NotFound errs.Reason = "SIGN_IN_TRIAL_NOT_FOUND"
	NotEnded errs.Reason = "SIGN_IN_TRIAL_NOT_ENDED"
	TooMany  errs.Reason = "TOO_MANY_SIGN_IN_TRIALS"
)

// Errors of trials.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"you have no such trial of a sign-in, or it is finished or has expired: start another one")
	ErrNotEnded = errs.New(errs.FailedPrecondition, NotEnded,
		"the sign-in has not ended: go on with it in the browser, or start another trial")

	// ErrSession: a trial is for a person at a browser.
	ErrSession = errs.New(errs.PermissionDenied, session.SessionRequired,
		"this needs a session of a person: sign in and send the session's token")

	errTooMany = &errs.Error{Kind: errs.ResourceExhausted, Reason: TooMany, RetryAfter: time.Minute,
		Message: "you have too many trials of sign-ins that are not finished: try again in a few minutes"}
)

// Keeper keeps trials. Each is one row, sealed with its identifier, which only the browser of its person has.
type Keeper struct {
	Store  event.Store
	Master secret.MasterKey
}

// Kept is what a row holds of a trial.
type Kept struct {
	Record
	Browser string          `json:"browser,omitempty"` // digest of the one that opened it
	Since   int64           `json:"since,omitempty"`   // when it was opened
	Request json.RawMessage `json:"request"`           // as package oauth has read it
	Terms   json.RawMessage `json:"terms,omitempty"`   // of package oauth, when it was approved
}

// open is an entry in the list of those that a person has not finished.
type open struct {
	Key   string `json:"key"`
	Until int64  `json:"until"`
}

// purposeTrial seals what is kept of a trial with its id, which only the person's browser has.
const purposeTrial = "sign-in of a browser"

var (
	trials = event.Flow[Kept]{Prefix: "trial", Purpose: purposeTrial} // by the digests of their ids
	lists  = event.Flow[[]open]{Prefix: "trials", Life: 2 * Life}     // of those that a user has not finished
)

// Row is that of a trial.
func Row(id string) event.RowKey { return trials.Key(secret.Digest(id)) }

// opens are those that somebody has not finished, and that have not expired.
func opens(tx *event.Tx, userID string) ([]open, error) {
	read, err := lists.Get(tx, userID)
	if err != nil || read == nil {
		return nil, err
	}
	return slices.DeleteFunc(*read, func(o open) bool { return o.Until <= tx.Now() }), nil
}

// Start keeps a new trial. Errors: ResourceExhausted where the person has too many.
func (s Keeper) Start(ctx context.Context, caller *access.Caller, id string, k *Kept) error {
	return s.Store.Do(ctx, event.Command{
		Origin: caller.Origin(),
		Rows:   []event.RowKey{lists.Key(k.UserID)},
		Decide: func(tx *event.Tx) error {
			k.State, k.Created, k.Expires = Started, tx.Now(), tx.Now()+Life.Microseconds()
			there, err := opens(tx, k.UserID)
			if err != nil {
				return err
			}
			if len(there) >= MaxOpen {
				return errTooMany
			}
			there = append(there, open{Row(id).Key, k.Expires})
			lists.Put(tx, k.UserID, &there)
			s.Put(tx, id, k)
			return nil
		},
	})
}

// Put writes a trial, which expires when its record says.
func (s Keeper) Put(tx *event.Tx, id string, k *Kept) {
	trials.For(s.Master, id).PutUntil(tx, secret.Digest(id), k, k.Expires)
}

// Read reads a trial. Errors: ErrNotFound.
func (s Keeper) Read(ctx context.Context, id string) (*Kept, error) {
	return found(trials.For(s.Master, id).Read(ctx, s.Store, secret.Digest(id)))
}

// Get reads a trial inside a command that declared its Row. Errors: ErrNotFound.
func (s Keeper) Get(tx *event.Tx, id string) (*Kept, error) {
	return found(trials.For(s.Master, id).Get(tx, secret.Digest(id)))
}

func found(k *Kept, err error) (*Kept, error) {
	if err == nil && k == nil {
		return nil, ErrNotFound
	}
	return k, err
}

// change changes a trial in one command.
func (s Keeper) change(ctx context.Context, id string, decide func(*event.Tx, *Kept) error) error {
	return s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{Row(id)},
		Decide: func(tx *event.Tx) error {
			k, err := s.Get(tx, id)
			if err != nil {
				return err
			}
			return decide(tx, k)
		},
	})
}

// In refuses a trial in another browser than the one that opened it, and one that is over. Errors: ErrNotFound.
func (k *Kept) In(browser string) error {
	if k.Browser != secret.Digest(browser) || k.State != Running {
		return ErrNotFound
	}
	return nil
}

// Open binds a trial to the browser that opens its address, if that has the session in which the trial was started.
// Opened again in the same browser, it goes on. Errors: ErrNotFound.
func (s Keeper) Open(ctx context.Context, id, browser string, has func(session string) bool) error {
	if _, err := s.Read(ctx, id); err != nil {
		return err // anybody can ask: a read costs less than a command
	}
	return s.change(ctx, id, func(tx *event.Tx, k *Kept) error {
		if k.State != Started {
			return k.In(browser)
		}
		if browser == "" || !has(k.Session) {
			return ErrNotFound
		}
		k.Browser, k.State, k.Since = secret.Digest(browser), Running, tx.Now()
		k.Add(Step{Page: Opened, Outcome: Done, At: tx.Now()})
		s.Put(tx, id, k)
		return nil
	})
}

// Note notes a step on the way. After the end it notes nothing.
func (s Keeper) Note(ctx context.Context, id, browser string, page Page, outcome Outcome, why Why) error {
	return s.change(ctx, id, func(tx *event.Tx, k *Kept) error {
		if k.In(browser) != nil {
			return nil
		}
		k.Add(Step{Page: page, Outcome: outcome, Why: why, At: tx.Now()})
		s.Put(tx, id, k)
		return nil
	})
}

// Refuse ends a trial without a code. Errors: ErrNotFound.
func (s Keeper) Refuse(ctx context.Context, id, browser string, refusal Refusal, why Why) error {
	return s.change(ctx, id, func(tx *event.Tx, k *Kept) error {
		if err := k.In(browser); err != nil {
			return err
		}
		k.Refusal = &refusal
		k.over(tx, Refused, Step{Page: Result, Outcome: Ended, Why: why})
		s.Put(tx, id, k)
		return nil
	})
}

// Approve notes inside a command that declared the Row that the application of a trial would get a code for terms, and
// what let the sign-in pass. Nobody else than its person can be approved. Errors: ErrNotFound.
func (s Keeper) Approve(tx *event.Tx, id, browser, userID string, passed []Step,
	terms func() (json.RawMessage, error)) error {
	k, err := s.Get(tx, id)
	if err != nil {
		return err
	}
	if err := k.In(browser); err != nil {
		return err
	}
	if k.UserID != userID {
		return ErrNotFound
	}
	if k.Terms, err = terms(); err != nil {
		return err
	}
	passed = slices.DeleteFunc(passed, func(s Step) bool { return s.Outcome == Skipped && k.Met(s.Page) })
	k.over(tx, Approved, append(passed, Step{Page: Result, Outcome: Ended, Why: Why{Because: NothingMissing}})...)
	s.Put(tx, id, k)
	return nil
}

// over notes that a trial is over. From now on it can be finished for a while.
func (k *Kept) over(tx *event.Tx, state State, steps ...Step) {
	k.State, k.Expires = state, tx.Now()+Life.Microseconds()
	for _, s := range steps {
		s.At = tx.Now()
		k.Add(s)
	}
}

// Forget drops a trial that has ended. It works once. Errors: ErrNotFound.
func (s Keeper) Forget(ctx context.Context, id, userID string) error {
	return s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{Row(id), lists.Key(userID)},
		Decide: func(tx *event.Tx) error {
			if _, err := s.Get(tx, id); err != nil {
				return err
			}
			there, err := opens(tx, userID)
			if err != nil {
				return err
			}
			tx.DropRow(Row(id))
			there = slices.DeleteFunc(there, func(o open) bool { return o.Key == Row(id).Key })
			lists.Put(tx, userID, &there)
			return nil
		},
	})
}
