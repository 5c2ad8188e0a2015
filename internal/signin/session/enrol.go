package session

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// LastFactor is the reason of ErrLastFactor.
const LastFactor errs.Reason = "LAST_FACTOR"

// ErrLastFactor keeps people from leaving themselves without the second factor they must have.
var ErrLastFactor = errs.New(errs.FailedPrecondition, LastFactor,
	"you need a second factor, and this is your last one: add another one first, or ask an administrator to remove it")

// mayEnrol says who may add a second factor: who has proven those there are already. A session that still has to prove
// one may add the first, since nobody can prove what there is not. Errors: access.ErrSecondFactor;
// access.ErrPasswordChange; ErrNotRecent; user.ErrNotHuman.
func (s *InSession) mayEnrol() error {
	switch {
	case s.user.Data.Human == nil:
		return user.ErrNotHuman
	case s.unproven && s.user.Data.SecondFactor:
		return access.ErrSecondFactor
	case s.user.Data.Password.ChangeRequired && !s.unproven: // the password comes first, unless it waits for this
		return access.ErrPasswordChange
	case !s.recent():
		return ErrNotRecent
	}
	return nil
}

// mayChange says who may remove factors and make recovery codes. Errors: access.ErrSecondFactor; ErrNotRecent;
// user.ErrNotHuman.
func (s *InSession) mayChange() error {
	switch {
	case s.user.Data.Human == nil:
		return user.ErrNotHuman
	case s.unproven:
		return access.ErrSecondFactor
	case !s.recent():
		return ErrNotRecent
	}
	return nil
}

// mayLose keeps the last factor where one is required. Errors: ErrLastFactor.
func (s *InSession) mayLose() error {
	if s.required && len(s.user.Data.Human.Factors) == 1 {
		return ErrLastFactor
	}
	return nil
}

// Enrolled is a second factor that was just added. The session has proven it.
type Enrolled struct {
	Stepped
	FactorID string
	Details  event.Details
}

// StartTOTP makes a secret for an authenticator app of the caller, which is shown this once. Errors: PermissionDenied
// without a session; those of enrolling: access.ErrSecondFactor, access.ErrPasswordChange, ErrNotRecent,
// user.ErrNotHuman, factor.ErrTooMany.
func (s *Sessions) StartTOTP(ctx context.Context, caller *access.Caller) (factor.NewTOTP, error) {
	return s.ResumeTOTP(ctx, caller, "")
}

// ResumeTOTP is StartTOTP for a page that is shown once more: the secret that it has shown already stays, where it is
// the one that waits for its first code. Another one is made where it is not. Errors: as StartTOTP.
func (s *Sessions) ResumeTOTP(ctx context.Context, caller *access.Caller,
	shown string) (made factor.NewTOTP, err error) {
	row := factor.TOTPRow(caller.TokenID)
	_, err = s.Step(ctx, caller, From{}, false, event.Command{Rows: []event.RowKey{row}}, func(st *InSession) error {
		if err := st.mayEnrol(); err != nil {
			return err
		}
		kept, err := st.tx.Row(row)
		if err != nil {
			return err
		}
		waits := false
		if made, waits, err = s.Factors.Waiting(kept, st.user, shown); err != nil {
			return err
		}
		if !waits {
			made = s.Factors.NewTOTP(st.user.Data.UserName)
		}
		return s.Factors.StartTOTP(st.tx, st.user, st.session.ID, made)
	})
	if err != nil {
		return factor.NewTOTP{}, err
	}
	return made, nil
}

// ConfirmTOTP adds the app that was told the secret of StartTOTP, on a code that it shows. Errors: as StartTOTP;
// InvalidArgument on name and on code.
func (s *Sessions) ConfirmTOTP(ctx context.Context, caller *access.Caller, name, code string,
	from From) (Enrolled, error) {
	return s.enrol(ctx, caller, factor.TOTPRow(caller.TokenID), ByTOTP, from, name,
		func(st *InSession) (string, error) {
			return s.Factors.AddTOTP(st.tx, st.user, st.session.ID, name, code)
		})
}

// StartPasskey begins to add a passkey, and gives what the browser needs. Errors: as StartTOTP;
// factor.ErrPasskeysUnavailable.
func (s *Sessions) StartPasskey(ctx context.Context, caller *access.Caller) (options string, err error) {
	started, err := s.start(ctx, caller, (*InSession).mayEnrol, s.Factors.StartPasskey)
	if err != nil {
		return "", err
	}
	return started.Options, nil
}

// ConfirmPasskey adds the passkey that a browser has made. Errors: as StartPasskey; InvalidArgument on name and on
// credential; factor.ErrPasskeyExists.
func (s *Sessions) ConfirmPasskey(ctx context.Context, caller *access.Caller, name, credential string,
	from From) (Enrolled, error) {
	if _, err := s.Step(ctx, caller, From{}, false, event.Command{}, (*InSession).mayEnrol); err != nil {
		return Enrolled{}, err // who may not is told that, not what is wrong with the passkey
	}
	made, err := factor.ReadNewPasskey(credential)
	if err != nil {
		return Enrolled{}, err
	}
	if err := s.Factors.Check(ctx, s.Store, made, caller.UserID, caller.TokenID); err != nil {
		return Enrolled{}, err
	}
	return s.enrol(ctx, caller, made.Row(), ByPasskey, from, name, func(st *InSession) (string, error) {
		return s.Factors.AddPasskey(st.tx, st.user, made, name)
	})
}

func (s *Sessions) enrol(ctx context.Context, caller *access.Caller, row event.RowKey, by Method, from From,
	name string, add func(*InSession) (string, error)) (Enrolled, error) {
	var out Enrolled
	if err := errs.Wrong("name", syntax.Text(name, syntax.MaxName)); err != nil {
		return out, err
	}
	command := event.Command{Rows: []event.RowKey{row, user.FactorsRow(caller.UserID)}}
	stepped, err := s.Step(ctx, caller, from, true, command, func(st *InSession) (err error) {
		if err := st.mayEnrol(); err != nil {
			return err
		}
		if out.FactorID, err = add(st); err != nil {
			return err
		}
		out.Details = st.user.Details()
		return st.prove(by, from.Source())
	})
	if err != nil {
		return Enrolled{}, err
	}
	out.Stepped = stepped
	return out, nil
}

// RemoveFactor takes one of the caller's second factors away. Errors: PermissionDenied without a session; ErrNotRecent;
// access.ErrSecondFactor; factor.ErrNotFound; ErrLastFactor; Aborted when match does not hold.
func (s *Sessions) RemoveFactor(ctx context.Context, caller *access.Caller, match event.IfMatch,
	id string) (details event.Details, err error) {
	command := event.Command{Rows: []event.RowKey{user.FactorsRow(caller.UserID)}}
	_, err = s.Step(ctx, caller, From{}, true, command, func(st *InSession) error {
		if err := st.mayChange(); err != nil {
			return err
		}
		if _, ok := st.user.Data.Human.Factor(id); !ok {
			return factor.ErrNotFound
		}
		if err := st.mayLose(); err != nil {
			return err
		}
		st.user.Expect(match)
		err := factor.Remove(st.tx, st.user, id)
		details = st.user.Details()
		return err
	})
	return details, err
}

// RenameFactor gives one of the caller's second factors another name. Errors: InvalidArgument on name; PermissionDenied
// without a session; ErrNotRecent; access.ErrSecondFactor; factor.ErrNotFound; Aborted when match does not hold.
func (s *Sessions) RenameFactor(ctx context.Context, caller *access.Caller, match event.IfMatch,
	id, name string) (details event.Details, err error) {
	if err := errs.Wrong("name", syntax.Name(name)); err != nil {
		return event.Details{}, err
	}
	_, err = s.Step(ctx, caller, From{}, true, event.Command{}, func(st *InSession) error {
		if err := st.mayChange(); err != nil {
			return err
		}
		if _, ok := st.user.Data.Human.Factor(id); !ok {
			return factor.ErrNotFound
		}
		st.user.Expect(match)
		err := st.user.Append(user.FactorRenamed{FactorID: id, Personal: user.FactorFacts{Name: name}})
		details = st.user.Details()
		return err
	})
	return details, err
}

// MakeRecoveryCodes gives the caller new recovery codes in place of any before. They are shown this once. Errors:
// PermissionDenied without a session; ErrNotRecent; access.ErrSecondFactor; factor.ErrNoSecondFactor.
func (s *Sessions) MakeRecoveryCodes(ctx context.Context, caller *access.Caller) ([]string, error) {
	codes := factor.NewRecoveryCodes()
	command := event.Command{Rows: []event.RowKey{user.FactorsRow(caller.UserID)}}
	_, err := s.Step(ctx, caller, From{}, true, command, func(st *InSession) error {
		if err := st.mayChange(); err != nil {
			return err
		}
		return s.Factors.PutRecoveryCodes(st.tx, st.user, codes)
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}
