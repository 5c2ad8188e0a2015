package session

import (
	"errors"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// moved is armed jo, who has just moved to another address and confirmed it, with a code that resets the password.
func moved(t *testing.T) (a *armed, code string) {
	t.Helper()
	a = arm(t)
	a.Advance(25 * time.Hour) // the factors are the owner's
	return a, a.moves(t)
}

// moves changes the address and confirms it, and asks for a code.
func (a *armed) moves(t *testing.T) (code string) {
	t.Helper()
	_, err := user.SetMyEmail(t.Context(), a.Store, &access.Caller{UserID: "usr_jo"}, event.IfMatch{}, "new@mail.test")
	must(t, err)
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.EmailVerified{})
	d, err := user.ResetCode(t.Context(), a.Store, a.Master, "usr_jo")
	must(t, err)
	return d.Text
}

func (a *armed) reset(t *testing.T, code string, with Answer) error {
	t.Helper()
	_, err := a.sessions.Reset(t.Context(),
		Reset{UserID: "usr_jo", Code: code, Password: next, Answer: with, Peer: home, UserAgent: "browser",
			RequestID: "req_1"})
	return err
}

func TestAResetRightAfterAChangeOfTheAddressNeedsASecondFactor(t *testing.T) {
	for name, answer := range map[string]func(t *testing.T, a *armed) Answer{
		"an authenticator app": func(_ *testing.T, a *armed) Answer { return a.code() },
		"a passkey": func(t *testing.T, a *armed) Answer {
			return passkeyOf(t, a, a.device)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, code := moved(t)
			before := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Password
			eventtest.As(t, a.reset(t, code, Answer{}), ErrResetFactor)
			eventtest.Refused(t, a.reset(t, code, wrongApp(a)), errs.InvalidArgument, errs.InvalidRequest, "totpCode")
			// When recovery codes were made is not known.
			eventtest.As(t, a.reset(t, code, Answer{RecoveryCode: a.codes[0]}), ErrResetFactor)
			// Whether the code is right is what is told first, and only to who has it.
			wrongCode(t, a.reset(t, wrong(code), a.code()))
			if now := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Password; now != before {
				t.Fatalf("the password is another one: %+v", now)
			}
			with := answer(t, a)
			must(t, a.reset(t, code, with))
			if now := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Password; now.Version != before.Version+1 {
				t.Errorf("the password is the same: %+v", now)
			}
		})
	}
}

func passkeyOf(t *testing.T, a *armed, device *factortest.Authenticator) Answer {
	t.Helper()
	options, err := a.sessions.StartPasskeySignIn()
	must(t, err)
	assertion, err := device.Get(options)
	must(t, err)
	return Answer{Assertion: assertion}
}

func TestAFactorFromJustBeforeTheChangeResetsNothing(t *testing.T) {
	a := arm(t)
	a.Advance(25 * time.Hour)
	in := signIn(t, a.sessions)
	_, err := a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), fromHome)
	must(t, err)
	me := as(t, a.sessions, in.Token)
	device := &factortest.Authenticator{Origin: externalURL}
	options, err := a.sessions.StartPasskey(t.Context(), me)
	must(t, err)
	credential, err := device.Create(options)
	must(t, err)
	_, err = a.sessions.ConfirmPasskey(t.Context(), me, "thief's", credential, fromHome)
	must(t, err)
	app := enrolTOTP(t, a.Store, a.sessions, in.Token, a.secret)
	a.Advance(time.Minute)
	code := a.moves(t)
	eventtest.Refused(t, a.reset(t, code, Answer{TOTPCode: factortest.Code(app, a.Now())}), errs.InvalidArgument,
		errs.InvalidRequest, "totpCode")
	eventtest.Refused(t, a.reset(t, code, passkeyOf(t, a, device)), errs.InvalidArgument,
		errs.InvalidRequest, "assertion")
	must(t, a.reset(t, code, a.code()))
}

func TestAfterADayAMailResetsAPasswordAgain(t *testing.T) {
	a, _ := moved(t)
	a.Advance(24 * time.Hour)
	d, err := user.ResetCode(t.Context(), a.Store, a.Master, "usr_jo")
	must(t, err)
	must(t, a.reset(t, d.Text, Answer{}))
}

func TestGuessesOfASecondFactorAtAResetCountWithAllOthers(t *testing.T) {
	a, code := moved(t)
	throttled := false
	for range 20 {
		err := a.reset(t, code, wrongApp(a))
		if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.ResourceExhausted {
			throttled = true
			break
		}
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "totpCode")
	}
	if !throttled {
		t.Fatal("it can be guessed at will")
	}
	in := signIn(t, a.sessions)
	_, err := a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), fromHome)
	if e, ours := errors.AsType[*errs.Error](err); !ours || e.Kind != errs.ResourceExhausted {
		t.Errorf("in a session: %v", err)
	}
}
