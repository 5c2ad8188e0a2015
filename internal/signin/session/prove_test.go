package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var fromHome = From{Peer: home, UserAgent: "browser"}

// as is who calls with a token.
func as(t *testing.T, sessions *Sessions, token string) *access.Caller {
	t.Helper()
	caller, err := sessions.Authenticate(t.Context(), token)
	must(t, err)
	caller.RequestID = "req_1"
	return caller
}

// armed is jo with an app, a passkey and recovery codes, all enrolled in the session first.
type armed struct {
	*eventtest.Store
	sessions *Sessions
	first    SignedIn
	secret   string // of the app
	device   *factortest.Authenticator
	codes    []string
}

func arm(t *testing.T) *armed {
	t.Helper()
	s, sessions := world(t)
	withPassword(t, s, usual())
	a := &armed{Store: s, sessions: sessions, first: signIn(t, sessions),
		device: &factortest.Authenticator{Origin: externalURL}}
	a.secret = enrolTOTP(t, s, sessions, a.first.Token)
	me := as(t, sessions, a.first.Token)
	options, err := sessions.StartPasskey(t.Context(), me)
	must(t, err)
	credential, err := a.device.Create(options)
	must(t, err)
	_, err = sessions.ConfirmPasskey(t.Context(), me, "laptop", credential, fromHome)
	must(t, err)
	a.codes, err = sessions.MakeRecoveryCodes(t.Context(), me)
	must(t, err)
	s.Advance(time.Minute) // the code that enrolled the app is used
	return a
}

// enrolTOTP adds an app whose codes are not those of others that there are.
func enrolTOTP(t *testing.T, s *eventtest.Store, sessions *Sessions, token string, others ...string) (secret string) {
	t.Helper()
	me := as(t, sessions, token)
	secret = factortest.Choose(s.Now(), others, func() string {
		made, err := sessions.StartTOTP(t.Context(), me)
		must(t, err)
		return made.Secret
	})
	_, err := sessions.ConfirmTOTP(t.Context(), me, "phone", factortest.Code(secret, s.Now()), fromHome)
	must(t, err)
	return secret
}

// code is what the app shows now.
func (a *armed) code() Answer { return Answer{TOTPCode: factortest.Code(a.secret, a.Now())} }

// wrongApp and wrongRecovery are codes that are wrong now.
func wrongApp(a *armed) Answer    { return Answer{TOTPCode: factortest.Wrong(a.Now(), a.secret)} }
func wrongRecovery(*armed) Answer { return Answer{RecoveryCode: "WRONG"} }

// assertion answers a challenge of a session.
func (a *armed) assertion(t *testing.T, me *access.Caller) Answer {
	t.Helper()
	options, err := a.sessions.StartProof(t.Context(), me)
	must(t, err)
	answer, err := a.device.Get(options)
	must(t, err)
	return Answer{Assertion: answer}
}

func TestASignInTellsWhichFactorsItWaitsFor(t *testing.T) {
	a := arm(t)
	if a.first.SecondFactorRequired || a.first.Ways != nil {
		t.Errorf("without one: %+v", a.first)
	}
	in := signIn(t, a.sessions)
	if !in.SecondFactorRequired || !slices.Equal(in.Ways, []Method{ByTOTP, ByPasskey, ByRecovery}) {
		t.Errorf("with all: %+v", in)
	}
	if me := as(t, a.sessions, in.Token); !me.MustProveSecondFactor {
		t.Error("the session is a full one")
	}
	wrong, err := a.sessions.SignIn(t.Context(), try("jo", "wrong", home))
	if eventtest.As(t, err, ErrSignInFailed); wrong.SecondFactorRequired || wrong.Ways != nil {
		t.Errorf("with the wrong password: %+v", wrong)
	}
}

func TestWhatAFactorDoesToTheSessionsThereAre(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	old, here := signIn(t, sessions), signIn(t, sessions)
	token := pat(t, s)
	given := func(id, session string) (token string) {
		token, hash := secret.NewToken(secret.Access)
		s.GivenToken(event.Token{
			ID:      id,
			Hash:    hash,
			Kind:    string(secret.Access),
			UserID:  "usr_jo",
			Session: session,
			Epoch:   1,
			Expires: event.Micros(s.Now().Add(time.Hour)),
			Data:    Given{Audience: []string{"signet"}}.Text(),
		})
		return token
	}
	sessions.Audience = "signet"
	ofOld, ofHere := given("oat_1", old.SessionID), given("oat_2", here.SessionID)
	as(t, sessions, ofOld)
	enrolTOTP(t, s, sessions, here.Token)
	for name, c := range map[string]struct {
		token      string
		restricted bool
	}{
		"the session it was enrolled in":                    {here.Token, false},
		"a session from before":                             {old.Token, true},
		"a personal access token":                           {token, false},
		"an access token of the session it was enrolled in": {ofHere, false},
	} {
		if got := as(t, sessions, c.token).MustProveSecondFactor; got != c.restricted {
			t.Errorf("%s: restricted %t", name, got)
		}
	}
	_, err := sessions.Authenticate(t.Context(), ofOld)
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestEveryFactorIsProvenOnce(t *testing.T) {
	for _, c := range []struct {
		method Method
		answer func(t *testing.T, a *armed, me *access.Caller) Answer
		field  string
	}{
		{ByTOTP, func(_ *testing.T, a *armed, _ *access.Caller) Answer { return a.code() }, "totpCode"},
		{ByRecovery, func(_ *testing.T, a *armed, _ *access.Caller) Answer { return Answer{RecoveryCode: a.codes[3]} },
			"recoveryCode"},
		{ByPasskey, func(t *testing.T, a *armed, me *access.Caller) Answer { return a.assertion(t, me) }, "assertion"},
	} {
		t.Run(string(c.method), func(t *testing.T) {
			a := arm(t)
			in := signIn(t, a.sessions)
			me := as(t, a.sessions, in.Token)
			answer := c.answer(t, a, me)
			mark := a.Mark()
			out, err := a.sessions.Prove(t.Context(), me, answer, fromHome)
			must(t, err)
			proven := eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.second_factor_proven.v1",
				Payload: fmt.Sprintf(`{"sessionId":%q,"method":%q}`, in.SessionID, c.method), Personal: place}
			if c.method == ByRecovery {
				a.Then(t, mark,
					eventtest.Fact{Object: "usr_jo", Type: "user.recovery_code_used.v1", Payload: `{}`}, proven)
			} else {
				a.Then(t, mark, proven)
			}
			if out.Token != "" || !out.Expires.Equal(in.Expires) {
				t.Errorf("got %+v", out)
			}
			if as(t, a.sessions, in.Token).MustProveSecondFactor {
				t.Error("the session is not a full one")
			}
			kept, err := a.TokenByID(t.Context(), in.SessionID)
			must(t, err)
			proof, err := ProofOf(kept)
			must(t, err)
			if !slices.Equal(proof.Methods, []Method{ByPassword, c.method}) || !proof.SecondFactor ||
				proof.At != event.Micros(a.Now()) {
				t.Errorf("the proof is %+v", proof)
			}
			// Not again, in this session or another one.
			other := signIn(t, a.sessions)
			for _, token := range []string{in.Token, other.Token} {
				_, err = a.sessions.Prove(t.Context(), as(t, a.sessions, token), answer, fromHome)
				eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, c.field)
			}
			if !as(t, a.sessions, other.Token).MustProveSecondFactor {
				t.Error("the other session is a full one")
			}
		})
	}
}

func TestAStepMayGiveTheSessionANewToken(t *testing.T) {
	a := arm(t)
	a.sessions.Audience = "signet"
	in := signIn(t, a.sessions)
	me := as(t, a.sessions, in.Token)
	derived, hash := secret.NewToken(secret.Access)
	a.GivenToken(event.Token{
		ID:      "oat_1",
		Hash:    hash,
		Kind:    string(secret.Access),
		UserID:  "usr_jo",
		Session: in.SessionID,
		Epoch:   1,
		Expires: event.Micros(a.Now().Add(time.Hour)),
		Data:    Given{Audience: []string{"signet"}}.Text(),
	})
	rotating := fromHome
	rotating.Rotate = true
	wrong, err := a.sessions.Prove(t.Context(), me, wrongApp(a), rotating)
	if eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "totpCode"); wrong.Token != "" {
		t.Error("a wrong code gives a new token")
	}
	as(t, a.sessions, in.Token)
	out, err := a.sessions.Prove(t.Context(), me, a.code(), rotating)
	must(t, err)
	_, err = a.sessions.Authenticate(t.Context(), in.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	if now := as(t, a.sessions, out.Token); now.TokenID != in.SessionID || now.MustProveSecondFactor {
		t.Errorf("the new token is %+v", now)
	}
	as(t, a.sessions, derived) // what lives with the session lives on
	again, err := a.sessions.Reauthenticate(t.Context(), as(t, a.sessions, out.Token), right, rotating)
	must(t, err)
	_, err = a.sessions.Authenticate(t.Context(), out.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	as(t, a.sessions, again.Token)
}

func TestOnlyASessionProves(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, pat(t, a.Store))
	before := a.Fingerprint()
	for name, do := range map[string]func() error{
		"start": func() error { _, err := a.sessions.StartProof(t.Context(), me); return err },
		"again": func() error { _, err := a.sessions.Reauthenticate(t.Context(), me, right, fromHome); return err },
		"totp":  func() error { _, err := a.sessions.StartTOTP(t.Context(), me); return err },
		"confirm": func() error {
			_, err := a.sessions.ConfirmTOTP(t.Context(), me, "", "000000", fromHome)
			return err
		},
		"passkey": func() error { _, err := a.sessions.StartPasskey(t.Context(), me); return err },
		"codes":   func() error { _, err := a.sessions.MakeRecoveryCodes(t.Context(), me); return err },
		"remove": func() error {
			_, err := a.sessions.RemoveFactor(t.Context(), me, event.IfMatch{}, "fac_x")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { eventtest.As(t, do(), errSessionOnly) })
	}
	if a.Fingerprint() != before {
		t.Error("something was written")
	}
	_, err := a.sessions.Prove(t.Context(), me, a.code(), fromHome)
	eventtest.As(t, err, errSessionOnly)
	// And it was not used up.
	_, err = a.sessions.Prove(t.Context(), as(t, a.sessions, signIn(t, a.sessions).Token), a.code(), fromHome)
	must(t, err)
}

func TestWrongCodesAreCountedAndAuditedLikeWrongPasswords(t *testing.T) {
	for name, wrongOf := range map[string]func(*armed) Answer{"app": wrongApp, "recovery code": wrongRecovery} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			wrong := wrongOf(a)
			in := signIn(t, a.sessions)
			me := as(t, a.sessions, in.Token)
			stranger := From{Peer: away, UserAgent: "browser"}
			before := eventtest.State(t, a.Store, user.Kind, "usr_jo")
			mark := a.Mark()
			for i := range pairFree {
				_, err := a.sessions.Prove(t.Context(), me, wrong, stranger)
				eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, wrong.field())
				if i == 0 {
					a.Then(t, mark,
						eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.failed.v1",
							Payload:  failedAs(wrong.method(), WrongFactor, 1),
							Personal: strings.Replace(place, home.String(), away.String(), 1)})
				}
			}
			// Now nothing of the kind is heard, right or wrong.
			good := map[string]Answer{"totpCode": a.code(), "recoveryCode": {RecoveryCode: a.codes[0]}}[wrong.field()]
			for _, sent := range []Answer{wrong, good} {
				_, err := a.sessions.Prove(t.Context(), me, sent, stranger)
				if got := answer(err); got != "SIGN_IN_THROTTLED 1s" {
					t.Errorf("%s: %s", sent.field(), got)
				}
			}
			after := eventtest.State(t, a.Store, user.Kind, "usr_jo")
			if after.Sequence != before.Sequence || !as(t, a.sessions, in.Token).MustProveSecondFactor {
				t.Error("the user or the session has changed")
			}
			// Passwords are counted by themselves.
			if _, err := a.sessions.SignIn(t.Context(), try("jo", right, away)); err != nil {
				t.Error(err)
			}
			a.Advance(time.Second)
			if _, err := a.sessions.Prove(t.Context(), me, good, stranger); err != nil {
				t.Errorf("after waiting: %v", err)
			}
		})
	}
}

// atOnce makes so many attempts at the same time, and counts their answers.
func atOnce(attempts int, attempt func(i int) string) map[string]int {
	count := map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range attempts {
		wait.Go(func() {
			got := attempt(i)
			mu.Lock()
			defer mu.Unlock()
			count[got]++
		})
	}
	wait.Wait()
	return count
}

func TestParallelGuessesAtCodesCountEachOther(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, signIn(t, a.sessions).Token)
	wrong := wrongApp(a)
	count := atOnce(64, func(int) string {
		_, err := a.sessions.Prove(t.Context(), me, wrong, From{Peer: away})
		return answer(err)
	})
	if count["INVALID_REQUEST"] != pairFree || count["SIGN_IN_THROTTLED 1s"] != 64-pairFree {
		t.Errorf("got %v", count)
	}
}

func TestOfManyProofsAtOnceOneCounts(t *testing.T) {
	for name, make := range map[string]func(a *armed, me *access.Caller) Answer{
		"app":           func(a *armed, _ *access.Caller) Answer { return a.code() },
		"recovery code": func(a *armed, _ *access.Caller) Answer { return Answer{RecoveryCode: a.codes[0]} },
		"passkey":       func(a *armed, me *access.Caller) Answer { return a.assertion(t, me) },
	} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			me := as(t, a.sessions, signIn(t, a.sessions).Token)
			sent := make(a, me)
			counted := 0
			var mu sync.Mutex
			var wait sync.WaitGroup
			for range 64 {
				wait.Go(func() {
					_, err := a.sessions.Prove(t.Context(), me, sent, fromHome)
					mu.Lock()
					defer mu.Unlock()
					switch got := answer(err); {
					case err == nil:
						counted++
					case got != "INVALID_REQUEST" && !strings.HasPrefix(got, "SIGN_IN_THROTTLED"):
						t.Errorf("got %s", got)
					}
				})
			}
			if wait.Wait(); counted != 1 {
				t.Errorf("%d counted", counted)
			}
		})
	}
}

func TestASessionThatEndsMeanwhileStaysEnded(t *testing.T) {
	jo := &access.Caller{UserID: "usr_jo", OrgID: "org_def", RequestID: "req_1"}
	for name, happens := range map[string]func(t *testing.T, a *armed, in SignedIn){
		"it is ended": func(t *testing.T, a *armed, in SignedIn) {
			must(t, a.sessions.End(t.Context(), Own(jo), in.SessionID))
		},
		"all are ended": func(t *testing.T, a *armed, _ SignedIn) {
			_, err := a.sessions.EndOthers(t.Context(), jo, event.IfMatch{})
			must(t, err)
		},
		"the password is set": func(t *testing.T, a *armed, _ SignedIn) {
			eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.PasswordSet{})
		},
		"the user is locked": func(t *testing.T, a *armed, _ SignedIn) {
			eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		},
		"the organization is switched off": func(t *testing.T, a *armed, _ SignedIn) {
			eventtest.Given(t, a.Store, org.Kind, "org_def", "", nil, org.Deactivated{})
		},
		"it expires": func(_ *testing.T, a *armed, _ SignedIn) { a.Advance(Life) },
	} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			in := signIn(t, a.sessions)
			me := as(t, a.sessions, in.Token)
			slow := *a.sessions
			slow.Store = &eventtest.Meanwhile{Store: a.Store, Happens: func() { happens(t, a, in) }}
			_, err := slow.Prove(t.Context(), me, a.code(), fromHome)
			eventtest.As(t, err, access.ErrUnauthenticated)
			_, err = a.sessions.Authenticate(t.Context(), in.Token)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

func TestNobodyStepsInASessionOfSomebodyElse(t *testing.T) {
	a := arm(t)
	in := signIn(t, a.sessions)
	me := *as(t, a.sessions, in.Token)
	other, err := a.TokenByID(t.Context(), in.SessionID) // it counts as much as one's own
	must(t, err)
	_, other.Hash = secret.NewToken(secret.Session)
	other.ID, other.UserID, me.TokenID = "ses_ann", "usr_ann", "ses_ann"
	a.GivenToken(*other)
	_, err = a.sessions.Prove(t.Context(), &me, a.code(), fromHome)
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestASessionThatLivesOnIsProven(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, a *armed, me *access.Caller){
		"while the others are ended": func(t *testing.T, a *armed, me *access.Caller) {
			_, err := a.sessions.EndOthers(t.Context(), me, event.IfMatch{})
			must(t, err)
		},
		"while the password is changed in it": func(t *testing.T, a *armed, me *access.Caller) {
			_, err := a.sessions.ChangePassword(t.Context(), me, event.IfMatch{},
				ChangePassword{Current: right, New: "a new one", Peer: home})
			must(t, err)
		},
		"while a token is issued": func(t *testing.T, a *armed, me *access.Caller) { pat(t, a.Store) },
	} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			in := signIn(t, a.sessions)
			me := as(t, a.sessions, in.Token)
			slow := *a.sessions
			slow.Store = &eventtest.Meanwhile{Store: a.Store, Happens: func() { happens(t, a, me) }}
			_, err := slow.Prove(t.Context(), me, a.code(), fromHome)
			must(t, err)
			if as(t, a.sessions, in.Token).MustProveSecondFactor {
				t.Error("it is not a full one")
			}
		})
	}
}

func TestGivingThePasswordAgain(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	recent := func() bool {
		b, err := sessions.Bearer(t.Context(), in.Token)
		must(t, err)
		return Recent(b.Caller, s.Now())
	}
	s.Advance(recentFor)
	if !recent() {
		t.Error("after 15 minutes it is not recent any more")
	}
	if s.Advance(time.Microsecond); recent() {
		t.Error("after more than 15 minutes it is recent")
	}
	me := as(t, sessions, in.Token)
	_, err := sessions.StartTOTP(t.Context(), me)
	eventtest.As(t, err, ErrNotRecent)
	_, err = sessions.Reauthenticate(t.Context(), me, "wrong", fromHome)
	if eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "password"); recent() {
		t.Error("the wrong password makes it recent")
	}
	mark := s.Mark()
	_, err = sessions.Reauthenticate(t.Context(), me, right, fromHome)
	must(t, err)
	facts := s.Since(t, mark)
	if last := facts[len(facts)-1]; last != (eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.reauthenticated.v1",
		Payload: `{"sessionId":"` + in.SessionID + `"}`, Personal: place}) {
		t.Errorf("recorded %+v", facts)
	}
	if !recent() {
		t.Error("it is not recent")
	}
	_, err = sessions.StartTOTP(t.Context(), me)
	must(t, err)
	// It counts with the passwords typed at sign-in.
	s.GivenRow(joRow(cheap()))
	for range pairFree {
		_, _ = sessions.Reauthenticate(t.Context(), me, "wrong", From{Peer: away})
	}
	_, err = sessions.Reauthenticate(t.Context(), me, right, From{Peer: away})
	if got := answer(err); got != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("got %s", got)
	}
	if _, err = sessions.SignIn(t.Context(), try("jo", right, away)); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("a sign-in: %v", err)
	}
}

func TestAPasswordThatIsChangedMeanwhileProvesNothing(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	me := as(t, sessions, in.Token)
	s.Advance(recentFor + time.Microsecond)
	slow := *sessions
	changing := &eventtest.Meanwhile{Store: s}
	changing.Happens = func() { // once it is known to be a session
		changing.Happens = func() { // once the password is checked
			_, err := sessions.ChangePassword(t.Context(), me, event.IfMatch{},
				ChangePassword{Current: right, New: "a new one", Peer: home})
			must(t, err)
		}
	}
	slow.Store = changing
	_, err := slow.Reauthenticate(t.Context(), me, right, fromHome)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "password")
	if b, err := sessions.Bearer(t.Context(), in.Token); err != nil || Recent(b.Caller, s.Now()) {
		t.Errorf("it is recent, or has ended: %v", err)
	}
}

func TestThePasswordProvesNoSecondFactor(t *testing.T) {
	a := arm(t)
	in := signIn(t, a.sessions)
	_, err := a.sessions.Reauthenticate(t.Context(), as(t, a.sessions, in.Token), right, fromHome)
	must(t, err)
	if !as(t, a.sessions, in.Token).MustProveSecondFactor {
		t.Error("it does")
	}
}

func TestWhoHasASecondFactorRenewsTheProofWithIt(t *testing.T) {
	a := arm(t)
	in := signIn(t, a.sessions)
	_, err := a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), fromHome)
	must(t, err)
	recent := func() bool { return Recent(as(t, a.sessions, in.Token), a.Now()) }
	a.Advance(recentFor)
	if !recent() {
		t.Error("it is not recent at first")
	}
	for range 2 { // the second time the session has a time of the factor alone already
		a.Advance(time.Minute)
		_, err = a.sessions.Reauthenticate(t.Context(), as(t, a.sessions, in.Token), right, fromHome)
		must(t, err)
		if recent() {
			t.Error("the password alone makes it recent")
		}
	}
	eventtest.As(t, a.sessions.Proven(t.Context(), as(t, a.sessions, in.Token), true, false), ErrNotRecent)
	must(t, a.sessions.Proven(t.Context(), as(t, a.sessions, in.Token), false, true))
	_, err = a.sessions.IssueOwn(t.Context(), as(t, a.sessions, in.Token), NewToken{})
	eventtest.As(t, err, ErrNotRecent)
	_, err = a.sessions.Prove(t.Context(), as(t, a.sessions, in.Token), a.code(), fromHome)
	must(t, err)
	if !recent() {
		t.Error("the factor does not make it recent")
	}
	_, err = a.sessions.IssueOwn(t.Context(), as(t, a.sessions, in.Token), NewToken{})
	must(t, err)
	// Without any factor left the password is enough again.
	a.Advance(recentFor)
	me := as(t, a.sessions, in.Token)
	for _, f := range eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors {
		_, err := a.sessions.RemoveFactor(t.Context(), me, event.IfMatch{}, f.ID)
		must(t, err)
	}
	a.Advance(time.Minute)
	_, err = a.sessions.Reauthenticate(t.Context(), as(t, a.sessions, in.Token), right, fromHome)
	must(t, err)
	if !recent() {
		t.Error("the password of somebody without a factor does not make it recent")
	}
}

func TestPeopleProveThemselvesByASessionAndServicesByTheirToken(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	robot(t, s, "usr_bot")
	for _, kind := range []secret.TokenKind{secret.PAT, secret.Access} {
		for _, recent := range []bool{false, true} {
			eventtest.As(t, sessions.Proven(t.Context(), &access.Caller{UserID: "usr_jo", TokenKind: string(kind)},
				recent, false), errSessionOnly)
			bot := &access.Caller{UserID: "usr_bot", TokenKind: string(kind)}
			must(t, sessions.Proven(t.Context(), bot, recent, false))
			eventtest.As(t, sessions.Proven(t.Context(), bot, recent, true), errSessionOnly) // it takes a person
		}
	}
	eventtest.As(t, sessions.Proven(t.Context(), &access.Caller{UserID: "usr_nobody", TokenKind: string(secret.PAT)},
		false, false), user.ErrNotFound)
}

func TestOnlySessionsAreRecent(t *testing.T) {
	now := eventtest.Start
	by := func(kind secret.TokenKind, data string) *access.Caller {
		return &access.Caller{TokenKind: string(kind),
			Session: &event.Token{Kind: string(kind), Created: event.Micros(now), Data: data}}
	}
	for name, c := range map[string]struct {
		caller *access.Caller
		want   bool
	}{
		"nothing":                          {nil, false},
		"a token":                          {by(secret.PAT, ""), false},
		"a session that is not at hand":    {&access.Caller{TokenKind: string(secret.Session)}, false},
		"a session from before the proofs": {by(secret.Session, ""), true},
		"one whose proof cannot be read":   {by(secret.Session, "x"), false},
	} {
		if got := Recent(c.caller, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// signInByPasskey lets jo in without anything else.
func (a *armed) signInByPasskey(t *testing.T, bend func(*PasskeyAttempt)) (SignedIn, error) {
	t.Helper()
	options, err := a.sessions.StartPasskeySignIn()
	must(t, err)
	assertion, err := a.device.Get(options)
	must(t, err)
	attempt := PasskeyAttempt{Assertion: assertion, Peer: home, UserAgent: "browser", RequestID: "req_1"}
	if bend != nil {
		bend(&attempt)
	}
	return a.sessions.SignInWithPasskey(t.Context(), attempt)
}

func TestAPasskeyAloneOpensAFullSession(t *testing.T) {
	a := arm(t)
	mark := a.Mark()
	var attempt PasskeyAttempt
	in, err := a.signInByPasskey(t, func(p *PasskeyAttempt) { p.OrgID = "org_def"; attempt = *p })
	must(t, err)
	a.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.succeeded.v1",
		Payload: `{"sessionId":"` + in.SessionID + `","method":"hwk","boundTo":"org_def"}`, Personal: place})
	if in.UserID != "usr_jo" || in.SecondFactorRequired || in.ChangeRequired ||
		!in.Expires.Equal(event.Time(event.Micros(a.Now().Add(Life)))) {
		t.Errorf("got %+v", in)
	}
	b, err := a.sessions.Bearer(t.Context(), in.Token)
	must(t, err)
	proof, err := ProofOf(&b.Token)
	must(t, err)
	if b.Caller.MustProveSecondFactor || !slices.Equal(proof.Methods, []Method{ByPasskey}) || !proof.SecondFactor ||
		!Recent(b.Caller, a.Now()) {
		t.Errorf("the proof is %+v", proof)
	}
	_, err = a.sessions.SignInWithPasskey(t.Context(), attempt)
	eventtest.As(t, err, errPasskeyFailed)
	// A password that has to be changed has to be changed.
	eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.PasswordSet{ChangeRequired: true})
	in, err = a.signInByPasskey(t, nil)
	if err != nil || !in.ChangeRequired || !as(t, a.sessions, in.Token).MustChangePassword {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestPasskeysThatLetNobodyIn(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, a *armed, p *PasskeyAttempt){
		"an inactive user": func(t *testing.T, a *armed, _ *PasskeyAttempt) {
			eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.Deactivated{})
		},
		"a locked user": func(t *testing.T, a *armed, _ *PasskeyAttempt) {
			eventtest.Given(t, a.Store, user.Kind, "usr_jo", "", nil, user.WasLocked{})
		},
		"an inactive organization": func(t *testing.T, a *armed, _ *PasskeyAttempt) {
			eventtest.Given(t, a.Store, org.Kind, "org_def", "", nil, org.Deactivated{})
		},
		"another organization": func(_ *testing.T, _ *armed, p *PasskeyAttempt) { p.OrgID = "org_b" },
		"a factor removed": func(t *testing.T, a *armed, _ *PasskeyAttempt) {
			_, err := factor.RemoveFor(t.Context(), a.Store, manager(t, "org_def"), "usr_jo", event.IfMatch{},
				eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors[1].ID)
			must(t, err)
		},
		"too late": func(_ *testing.T, a *armed, _ *PasskeyAttempt) { a.Advance(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			a := arm(t)
			var tokens int
			_, err := a.signInByPasskey(t, func(p *PasskeyAttempt) {
				happens(t, a, p)
				all, err := a.TokensOf(t.Context(), "usr_jo", string(secret.Session), "", 10)
				must(t, err)
				tokens = len(all)
			})
			want := errPasskeyFailed
			if name == "a factor removed" { // see TestOnlyWhoHoldsAPasskeyLearnsThatItWasRemoved
				want = ErrPasskeyRemoved
			}
			eventtest.As(t, err, want)
			if all, _ := a.TokensOf(t.Context(), "usr_jo", string(secret.Session), "", 10); len(all) != tokens {
				t.Error("there is a session more")
			}
		})
	}
	a := arm(t)
	for _, handle := range []string{"usr_x", "", "x", "\x00", "org_def"} {
		a.device.Passkeys[0].Handle = []byte(handle)
		_, err := a.signInByPasskey(t, nil)
		eventtest.As(t, err, errPasskeyFailed)
	}
	_, err := a.signInByPasskey(t, func(p *PasskeyAttempt) { p.Assertion = "nonsense" })
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "assertion")
}

func TestFailedSignInsWithAPasskeyAreAuditedAndSlowedDown(t *testing.T) {
	a := arm(t)
	a.device.Unverified = true
	mark := a.Mark()
	for range pairFree {
		_, err := a.signInByPasskey(t, nil)
		eventtest.As(t, err, errPasskeyFailed)
	}
	a.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.failed.v1",
		Payload: failedAs(ByPasskey, PasskeyRefused, 1), Personal: place})
	a.device.Unverified = false
	if _, err := a.signInByPasskey(t, nil); answer(err) != "SIGN_IN_THROTTLED 1s" {
		t.Errorf("got %v", err)
	}
}

func TestOfManySignInsWithOneAssertionOneSucceeds(t *testing.T) {
	a := arm(t)
	options, err := a.sessions.StartPasskeySignIn()
	must(t, err)
	assertion, err := a.device.Get(options)
	must(t, err)
	in := 0
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			_, err := a.sessions.SignInWithPasskey(context.Background(),
				PasskeyAttempt{Assertion: assertion, Peer: home})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				in++
			}
		})
	}
	if wait.Wait(); in != 1 {
		t.Errorf("%d went in", in)
	}
}
