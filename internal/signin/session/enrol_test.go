package session

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhoMayEnrolChangeAndLoseFactors(t *testing.T) {
	one := []user.Factor{{ID: "fac_1"}}
	for _, c := range []struct {
		name                string
		factors             []user.Factor
		required, unproven  bool
		mustChange          bool // the password
		age                 time.Duration
		service             bool
		enrol, change, lose *errs.Error
	}{
		{name: "nobody asks for a factor"},
		{name: "one is enrolled and proven", factors: one},
		{name: "one is enrolled and not proven", factors: one, unproven: true, enrol: access.ErrSecondFactor,
			change: access.ErrSecondFactor},
		{name: "one is required and enrolled, but not proven", factors: one, required: true, unproven: true,
			enrol: access.ErrSecondFactor, change: access.ErrSecondFactor, lose: ErrLastFactor},
		{name: "one is required and none is enrolled", required: true, unproven: true, change: access.ErrSecondFactor},
		{name: "one is required and proven", factors: one, required: true, lose: ErrLastFactor},
		{name: "one of two that are required and proven", factors: append(one, one...), required: true},
		{name: "just recent", age: recentFor},
		{name: "not recent", age: recentFor + time.Microsecond, enrol: ErrNotRecent, change: ErrNotRecent},
		{name: "required, but not recent", required: true, unproven: true, age: recentFor + time.Microsecond,
			enrol: ErrNotRecent, change: access.ErrSecondFactor},
		{name: "the password has to be changed", mustChange: true, enrol: access.ErrPasswordChange},
		{name: "the password has to be changed, which waits for a factor", mustChange: true, required: true,
			unproven: true, change: access.ErrSecondFactor},
		{name: "a service user", service: true, enrol: user.ErrNotHuman, change: user.ErrNotHuman},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := world(t)
			u := &event.Object[user.User]{
				Data: user.User{
					Standing: user.Standing{SecondFactor: len(c.factors) > 0,
						Password: user.Password{ChangeRequired: c.mustChange}},
					Human: &user.Human{Factors: c.factors},
				},
			}
			if c.service {
				u.Data.Human = nil
			}
			must(t, s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error {
				st := &InSession{tx: tx, user: u, required: c.required, unproven: c.unproven,
					proof: Proof{At: tx.Now() - c.age.Microseconds()}}
				eventtest.As(t, st.mayEnrol(), c.enrol)
				eventtest.As(t, st.mayChange(), c.change)
				if !c.service {
					eventtest.As(t, st.mayLose(), c.lose)
				}
				return nil
			}}))
		})
	}
}

func TestASessionThatHasNotProvenAFactorChangesNone(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, signIn(t, a.sessions).Token)
	id := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors[0].ID
	before := a.Fingerprint()
	for name, do := range map[string]func() error{
		"start an app": func() error { _, err := a.sessions.StartTOTP(t.Context(), me); return err },
		"confirm an app": func() error {
			_, err := a.sessions.ConfirmTOTP(t.Context(), me, "", "000000", fromHome)
			return err
		},
		"start a passkey": func() error { _, err := a.sessions.StartPasskey(t.Context(), me); return err },
		"confirm a passkey": func() error {
			credential, err := (&factortest.Authenticator{Origin: externalURL}).Create(`{"rp":{"id":"id.signet.test"},"challenge":"eA"}`)
			must(t, err)
			_, err = a.sessions.ConfirmPasskey(t.Context(), me, "", credential, fromHome)
			return err
		},
		"recovery codes": func() error { _, err := a.sessions.MakeRecoveryCodes(t.Context(), me); return err },
		"remove": func() error {
			_, err := a.sessions.RemoveFactor(t.Context(), me, event.IfMatch{}, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { eventtest.As(t, do(), access.ErrSecondFactor) })
	}
	if a.Fingerprint() != before {
		t.Error("something was written")
	}
}

func TestAChallengeToEnrolIsWorthNothingOnceTheSessionIsNotRecent(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	me := as(t, sessions, in.Token)
	s.Advance(recentFor - time.Minute)
	made, err := sessions.StartTOTP(t.Context(), me)
	must(t, err)
	options, err := sessions.StartPasskey(t.Context(), me)
	must(t, err)
	credential, err := (&factortest.Authenticator{Origin: externalURL}).Create(options)
	must(t, err)
	s.Advance(time.Minute + time.Microsecond)
	_, err = sessions.ConfirmTOTP(t.Context(), me, "", factortest.Code(made.Secret, s.Now()), fromHome)
	eventtest.As(t, err, ErrNotRecent)
	_, err = sessions.ConfirmPasskey(t.Context(), me, "", credential, fromHome)
	eventtest.As(t, err, ErrNotRecent)
}

func TestEnrollingProvesTheFactorInThatSession(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	in := signIn(t, sessions)
	s.Advance(time.Minute)
	me := as(t, sessions, in.Token)
	made, err := sessions.StartTOTP(t.Context(), me)
	must(t, err)
	mark := s.Mark()
	rotating := fromHome
	rotating.Rotate = true
	added, err := sessions.ConfirmTOTP(t.Context(), me, "phone", factortest.Code(made.Secret, s.Now()), rotating)
	must(t, err)
	facts := s.Since(t, mark)
	if len(facts) != 2 || facts[0].Type != "user.totp_added.v1" || facts[1] != (eventtest.Fact{
		Object:   IDFor("usr_jo"),
		Type:     "sign_in.second_factor_proven.v1",
		Payload:  `{"sessionId":"` + in.SessionID + `","method":"otp"}`,
		Personal: place,
	}) {
		t.Errorf("recorded %+v", facts)
	}
	_, err = sessions.Authenticate(t.Context(), in.Token)
	eventtest.As(t, err, access.ErrUnauthenticated) // rotated
	b, err := sessions.Bearer(t.Context(), added.Token)
	must(t, err)
	if proof, err := ProofOf(&b.Token); err != nil || !proof.SecondFactor || proof.At != event.Micros(s.Now()) ||
		b.Caller.MustProveSecondFactor {
		t.Errorf("the proof is %+v, %v", proof, err)
	}
	u := eventtest.State(t, s, user.Kind, "usr_jo")
	if f, ok := u.Data.Human.Factor(added.FactorID); !ok || f.Name != "phone" || f.Kind != user.TOTP ||
		added.Details.Sequence != u.Sequence {
		t.Errorf("enrolled %+v, %+v", f, added)
	}
}

func TestRemovingOnesOwnFactors(t *testing.T) {
	a := arm(t)
	me := as(t, a.sessions, a.first.Token)
	factors := eventtest.State(t, a.Store, user.Kind, "usr_jo").Data.Human.Factors
	remove := func(id string, match event.IfMatch) error {
		_, err := a.sessions.RemoveFactor(t.Context(), me, match, id)
		return err
	}
	eventtest.As(t, remove("fac_x", event.IfMatch{}), factor.ErrNotFound)
	eventtest.Refused(t, remove(factors[0].ID, event.IfMatch{Set: true, Sequence: 99}), errs.Aborted,
		event.SequenceMismatch)
	must(t, remove(factors[0].ID, event.IfMatch{}))
	eventtest.As(t, remove(factors[0].ID, event.IfMatch{}), factor.ErrNotFound)
	other := signIn(t, a.sessions)
	if !as(t, a.sessions, other.Token).MustProveSecondFactor {
		t.Error("with one left nothing has to be proven")
	}
	must(t, remove(factors[1].ID, event.IfMatch{}))
	if as(t, a.sessions, other.Token).MustProveSecondFactor {
		t.Error("with none left something has to be proven")
	}
	_, err := a.sessions.MakeRecoveryCodes(t.Context(), me)
	eventtest.As(t, err, factor.ErrNoSecondFactor)
}

func TestASecretThatWasShownStaysUntilItsFirstCode(t *testing.T) {
	const startLife = 5 * time.Minute // of package factor
	s, sessions := world(t)
	withPassword(t, s, usual())
	me := as(t, sessions, signIn(t, sessions).Token)
	first, err := sessions.StartTOTP(t.Context(), me)
	must(t, err)
	s.Advance(startLife - time.Second)
	again, err := sessions.ResumeTOTP(t.Context(), me, first.Secret)
	must(t, err)
	if again != first {
		t.Errorf("shown again: %+v, not %+v", again, first)
	}
	s.Advance(startLife - time.Second) // there is as much time as at the start
	if again, err = sessions.ResumeTOTP(t.Context(), me, first.Secret); err != nil || again != first {
		t.Errorf("shown again: %+v, %v", again, err)
	}
	// the last one is not the one that waits by then
	for _, shown := range []string{"", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", first.Secret} {
		if made, err := sessions.ResumeTOTP(t.Context(), me, shown); err != nil || made == first ||
			made.Secret == shown || made.Secret == "" {
			t.Errorf("%q was shown: %+v, %v", shown, made, err)
		}
		first, err = sessions.StartTOTP(t.Context(), me)
		must(t, err)
		_, err = sessions.StartTOTP(t.Context(), me)
		must(t, err)
	}
	me = as(t, sessions, signIn(t, sessions).Token)
	made, err := sessions.StartTOTP(t.Context(), me)
	must(t, err)
	s.Advance(startLife + time.Second)
	if late, err := sessions.ResumeTOTP(t.Context(), me, made.Secret); err != nil || late == made {
		t.Errorf("what came too late is shown again: %v", err)
	}
	// In another session it is not the one that waits.
	made, err = sessions.StartTOTP(t.Context(), me)
	must(t, err)
	other := as(t, sessions, signIn(t, sessions).Token)
	if there, err := sessions.ResumeTOTP(t.Context(), other, made.Secret); err != nil || there == made {
		t.Errorf("another session shows it: %v", err)
	}
	_, err = sessions.ConfirmTOTP(t.Context(), me, "", factortest.Code(made.Secret, s.Now()), fromHome)
	must(t, err)
}
