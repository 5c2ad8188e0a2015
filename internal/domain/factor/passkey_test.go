package factor_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// put remembers a challenge.
func put(t *testing.T, s *eventtest.Store, started *factor.Started) error {
	t.Helper()
	return s.Do(t.Context(), event.Command{Decide: func(tx *event.Tx) error { started.Put(tx); return nil }})
}

// add lets jo answer a challenge for a new passkey, in a session.
func add(t *testing.T, s *eventtest.Store, f *factor.Factors, session, credential string) (id string, err error) {
	t.Helper()
	made, err := factor.ReadNewPasskey(credential)
	if err != nil {
		return "", err
	}
	if err := f.Check(t.Context(), s, made, "usr_jo", session); err != nil {
		return "", err
	}
	err = do(t, s, []event.RowKey{made.Row()}, func(tx *event.Tx, jo *event.Object[user.User]) (err error) {
		id, err = f.AddPasskey(tx, jo, made, "laptop")
		return err
	})
	return id, err
}

// toAdd makes a challenge for a new passkey of jo's.
func toAdd(t *testing.T, s *eventtest.Store, f *factor.Factors) (options string) {
	t.Helper()
	started, err := f.StartPasskey(jo(t, s), row(t, s), ses)
	must(t, err)
	must(t, put(t, s, started))
	return started.Options
}

// toSignIn makes a challenge for signing in, for which nothing is put into the store.
func toSignIn(t *testing.T, s *eventtest.Store, f *factor.Factors) (options string) {
	t.Helper()
	options, err := f.StartSignIn(s.Now())
	must(t, err)
	return options
}

// withPasskey gives jo a device with a passkey.
func withPasskey(t *testing.T, s *eventtest.Store, f *factor.Factors) *factortest.Authenticator {
	t.Helper()
	device := &factortest.Authenticator{Origin: external}
	credential, err := device.Create(toAdd(t, s, f))
	must(t, err)
	_, err = add(t, s, f, ses, credential)
	must(t, err)
	return device
}

// signsIn tells whether an answer would sign jo in.
func signsIn(t *testing.T, s *eventtest.Store, f *factor.Factors, answer string) bool {
	t.Helper()
	return accepted(t, s, f, answer,
		func(a *factor.Assertion) (bool, error) { return f.VerifySignIn(t.Context(), s, a, jo(t, s)) })
}

// proves tells whether an answer would prove a second factor in a session of jo's.
func proves(t *testing.T, s *eventtest.Store, f *factor.Factors, session, answer string) bool {
	t.Helper()
	return accepted(t, s, f, answer, func(a *factor.Assertion) (bool, error) {
		return f.VerifyProof(t.Context(), s, a, jo(t, s), session)
	})
}

// accepted tells whether an answer is verified, and then accepted.
func accepted(t *testing.T, s *eventtest.Store, f *factor.Factors, answer string,
	verify func(*factor.Assertion) (bool, error)) bool {
	t.Helper()
	a, err := factor.ReadAssertion("assertion", answer)
	must(t, err)
	right, err := verify(a)
	must(t, err)
	if !right {
		return false
	}
	must(t, do(t, s, []event.RowKey{a.Row()}, func(tx *event.Tx, _ *event.Object[user.User]) (err error) {
		right, err = f.Accept(tx, a, "usr_jo")
		return err
	}))
	return right
}

func TestAPasskeyIsAddedAndUsed(t *testing.T) {
	for name, packed := range map[string]bool{"without attestation": false, "that attests itself": true} {
		t.Run(name, func(t *testing.T) {
			s, f := world(t)
			device := &factortest.Authenticator{Origin: external, Packed: packed}
			options := toAdd(t, s, f)
			var shown struct {
				RP        struct{ ID string }
				Selection struct {
					ResidentKey      string `json:"residentKey"`
					UserVerification string `json:"userVerification"`
				} `json:"authenticatorSelection"`
			}
			must(t, json.Unmarshal([]byte(options), &shown))
			if shown.RP.ID != "id.signet.test" || shown.Selection.ResidentKey != "required" ||
				shown.Selection.UserVerification != "required" {
				t.Errorf("the options are %s", options)
			}
			credential, err := device.Create(options)
			must(t, err)
			mark := s.Mark()
			id, err := add(t, s, f, ses, credential)
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_jo", Type: "user.passkey_added.v1",
				Payload: `{"factorId":"` + id + `","created":` + micros(s) + `}`, Personal: `{"name":"laptop"}`})
			for range 3 {
				options := toSignIn(t, s, f)
				answer, err := device.Get(options)
				must(t, err)
				if !signsIn(t, s, f, answer) {
					t.Error("it does not sign in")
				}
				if signsIn(t, s, f, answer) {
					t.Error("it signs in twice")
				}
				started, err := f.StartProof(jo(t, s), row(t, s), ses)
				must(t, err)
				must(t, put(t, s, started))
				if answer, err = device.Get(started.Options); err != nil {
					t.Fatal(err)
				}
				if !proves(t, s, f, ses, answer) || proves(t, s, f, ses, answer) {
					t.Error("it does not prove a second factor exactly once")
				}
			}
		})
	}
}

func TestNewPasskeysThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		device factortest.Authenticator
		in     string // session
		late   time.Duration
	}{
		{"from another page", factortest.Authenticator{Origin: "https://evil.test"}, ses, 0},
		{"from a page below", factortest.Authenticator{Origin: "https://x.id.signet.test"}, ses, 0},
		{"without TLS", factortest.Authenticator{Origin: "http://id.signet.test"}, ses, 0},
		{"in another session", factortest.Authenticator{Origin: external}, "ses_2", 0},
		{"without its owner", factortest.Authenticator{Origin: external, Unverified: true}, ses, 0},
		{"untouched", factortest.Authenticator{Origin: external, Absent: true}, ses, 0},
		{"too late", factortest.Authenticator{Origin: external}, ses, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, f := world(t)
			credential, err := c.device.Create(toAdd(t, s, f))
			must(t, err)
			s.Advance(c.late)
			_, err = add(t, s, f, c.in, credential)
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "credential")
			if row(t, s) != nil {
				t.Error("something is kept")
			}
		})
	}
	for _, text := range []string{"", "{}", "null", "[]", "nonsense",
		`{"id":"x","rawId":"x","type":"public-key","response":{}}`} {
		_, err := factor.ReadNewPasskey(text)
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "credential")
		_, err = factor.ReadAssertion("assertion", text)
		eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "assertion")
	}
}

func TestAPasskeyIsAddedOnce(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	options := toAdd(t, s, f)
	if _, err := device.Create(options); err == nil {
		t.Error("the browser is not told which passkeys are known")
	}
	credential, err := device.Again(device.Passkeys[0], options)
	must(t, err)
	_, err = add(t, s, f, ses, credential)
	eventtest.As(t, err, factor.ErrPasskeyExists)
	// A challenge is answered once.
	other := &factortest.Authenticator{Origin: external}
	options = toAdd(t, s, f)
	first, err := other.Create(options)
	must(t, err)
	second, err := other.Create(options)
	must(t, err)
	_, err = add(t, s, f, ses, first)
	must(t, err)
	_, err = add(t, s, f, ses, second)
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "credential")
}

func TestAssertionsThatAreRefused(t *testing.T) {
	signIn := toSignIn
	for _, c := range []struct {
		name  string
		start func(t *testing.T, s *eventtest.Store, f *factor.Factors) (options string)
		bend  func(t *testing.T, s *eventtest.Store, device *factortest.Authenticator)
	}{
		{"from another page", signIn,
			func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) { d.Origin = "https://evil.test" }},
		{"without its owner", signIn,
			func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) { d.Unverified = true }},
		{"untouched", signIn, func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) { d.Absent = true }},
		{"too late", signIn, func(_ *testing.T, s *eventtest.Store, _ *factortest.Authenticator) {
			s.Advance(5 * time.Minute)
		}},
		{"of a copy", signIn, func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) {
			d.Passkeys[0].Count = 1
		}},
		{"that counts no further", signIn,
			func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) { d.Passkeys[0].Still = true }},
		{"of somebody else", signIn, func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) {
			d.Passkeys[0].Handle = []byte("usr_x")
		}},
		{"of nobody", signIn, func(_ *testing.T, _ *eventtest.Store, d *factortest.Authenticator) {
			d.Passkeys[0].Handle = nil
		}},
		{"of another passkey", signIn, func(t *testing.T, _ *eventtest.Store, d *factortest.Authenticator) {
			_, err := d.Create(`{"rp":{"id":"id.signet.test"},"challenge":"eA"}`)
			must(t, err)
			d.Passkeys[1].ID, d.Passkeys[1].Handle, d.Passkeys[1].Count = d.Passkeys[0].ID, d.Passkeys[0].Handle, 99
		}},
		{"for another use", func(t *testing.T, s *eventtest.Store, f *factor.Factors) string {
			started, err := f.StartProof(jo(t, s), row(t, s), ses)
			must(t, err)
			must(t, put(t, s, started))
			return started.Options
		}, func(*testing.T, *eventtest.Store, *factortest.Authenticator) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, f := world(t)
			device := withPasskey(t, s, f)
			for range 2 { // it has counted to two
				options := toSignIn(t, s, f)
				answer, err := device.Get(options)
				must(t, err)
				if !signsIn(t, s, f, answer) {
					t.Fatal("it never worked")
				}
			}
			options := c.start(t, s, f)
			c.bend(t, s, device)
			answer, err := device.Get(options)
			must(t, err)
			if signsIn(t, s, f, answer) {
				t.Error("it signs in")
			}
		})
	}
}

func TestAProofIsBoundToItsSessionAndNeedsNoVerification(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	start := func() string {
		started, err := f.StartProof(jo(t, s), row(t, s), ses)
		must(t, err)
		must(t, put(t, s, started))
		return started.Options
	}
	answer, err := device.Get(start())
	must(t, err)
	if proves(t, s, f, "ses_2", answer) {
		t.Error("it counts in another session")
	}
	forSignIn, err := device.Get(toSignIn(t, s, f))
	must(t, err)
	if proves(t, s, f, ses, forSignIn) || !signsIn(t, s, f, forSignIn) || proves(t, s, f, ses, forSignIn) {
		t.Error("an assertion for a sign-in proves a second factor")
	}
	var adding struct{ Challenge string }
	must(t, json.Unmarshal([]byte(toAdd(t, s, f)), &adding))
	if answer, err = device.Assert(device.Passkeys[0], adding.Challenge); err != nil || proves(t, s, f, ses, answer) {
		t.Errorf("the challenge for a new passkey proves one that is known: %v", err)
	}
	device.Unverified = true
	if answer, err = device.Get(start()); err != nil || !proves(t, s, f, ses, answer) {
		t.Errorf("it does not count: %v", err)
	}
}

func TestAPasskeyThatWasRemovedMeanwhileIsRefused(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	withTOTP(t, s, f)
	options := toSignIn(t, s, f)
	answer, err := device.Get(options)
	must(t, err)
	a, err := factor.ReadAssertion("assertion", answer)
	must(t, err)
	if right, err := f.VerifySignIn(t.Context(), s, a, jo(t, s)); err != nil || !right {
		t.Fatalf("%t, %v", right, err)
	}
	id := jo(t, s).Data.Human.Factors[0].ID
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error { return factor.Remove(tx, jo, id) }))
	must(t, do(t, s, []event.RowKey{a.Row()}, func(tx *event.Tx, _ *event.Object[user.User]) error {
		right, err := f.Accept(tx, a, "usr_jo")
		if right {
			t.Error("it counts")
		}
		return err
	}))
}

func TestACopyIsFoundAlsoWhereBothAreUsedAtOnce(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	verified := func() *factor.Assertion {
		options := toSignIn(t, s, f)
		device.Passkeys[0].Count = 5 // and the next is six, for both
		answer, err := device.Get(options)
		must(t, err)
		a, err := factor.ReadAssertion("assertion", answer)
		must(t, err)
		if right, err := f.VerifySignIn(t.Context(), s, a, jo(t, s)); err != nil || !right {
			t.Fatalf("%t, %v", right, err)
		}
		return a
	}
	var got []bool
	for _, a := range []*factor.Assertion{verified(), verified()} {
		must(t, do(t, s, []event.RowKey{a.Row()}, func(tx *event.Tx, _ *event.Object[user.User]) error {
			right, err := f.Accept(tx, a, "usr_jo")
			got = append(got, right)
			return err
		}))
	}
	if !got[0] || got[1] {
		t.Errorf("accepted: %v", got)
	}
}

func TestAssertionsWithoutAVerifiedSignatureAreNotAccepted(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	options := toSignIn(t, s, f)
	answer, err := device.Get(options)
	must(t, err)
	a, err := factor.ReadAssertion("assertion", answer)
	must(t, err)
	must(t, do(t, s, []event.RowKey{a.Row()}, func(tx *event.Tx, _ *event.Object[user.User]) error {
		right, err := f.Accept(tx, a, "usr_jo")
		if right {
			t.Error("nobody looked at the signature")
		}
		return err
	}))
	if !signsIn(t, s, f, answer) {
		t.Error("an answer that nobody verified uses up the challenge")
	}
}

func TestAChallengeForSigningInIsStoredOnlyOnceItWasUsed(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	kept := func(a *factor.Assertion) *event.Row {
		row, err := s.Row(t.Context(), a.Row())
		must(t, err)
		return row
	}
	answer, err := device.Get(toSignIn(t, s, f))
	must(t, err)
	a, err := factor.ReadAssertion("assertion", answer)
	must(t, err)
	if kept(a) != nil {
		t.Error("it is stored before anybody has proven anything")
	}
	s.Advance(5*time.Minute - time.Microsecond)
	if !signsIn(t, s, f, answer) {
		t.Error("it does not count until its end")
	}
	if row := kept(a); row == nil || row.Expires < event.Micros(s.Now().Add(5*time.Minute)) {
		t.Errorf("that it was used is kept as %+v", row)
	}
}

func TestOnlyOurOwnChallengesSignIn(t *testing.T) {
	s, f := world(t)
	device := withPasskey(t, s, f)
	var ours struct{ Challenge string }
	must(t, json.Unmarshal([]byte(toSignIn(t, s, f)), &ours))
	raw, err := base64.RawURLEncoding.DecodeString(ours.Challenge)
	must(t, err)
	bent := func(i int) string {
		c := slices.Clone(raw)
		c[i] ^= 1
		return base64.RawURLEncoding.EncodeToString(c)
	}
	elsewhere, err := factor.New(secret.NewMasterKey(), external)
	must(t, err)
	var theirs struct{ Challenge string }
	must(t, json.Unmarshal([]byte(toSignIn(t, s, elsewhere)), &theirs))
	for name, challenge := range map[string]string{
		"another number": bent(0), "another end": bent(39), "another MAC": bent(71), "cut off": ours.Challenge[:92],
		"one more":                ours.Challenge + "AAAA",
		"written otherwise":       ours.Challenge[:4] + "\n" + ours.Challenge[4:],
		"of another installation": theirs.Challenge, "invented": strings.Repeat("A", 96),
	} {
		answer, err := device.Assert(device.Passkeys[0], challenge)
		must(t, err)
		if signsIn(t, s, f, answer) {
			t.Errorf("%s: it signs in", name)
		}
	}
	answer, err := device.Assert(device.Passkeys[0], ours.Challenge)
	must(t, err)
	if !signsIn(t, s, f, answer) {
		t.Error("ours does not sign in")
	}
}

func TestPasskeysNeedAHostName(t *testing.T) {
	for external, want := range map[string]string{
		"http://127.0.0.1:8080": "", "http://[::1]:8080": "", "http://localhost:8080": "http://localhost:8080",
		"https://id.example.org:443":  "https://id.example.org",
		"https://id.example.org:8443": "https://id.example.org:8443",
	} {
		t.Run(external, func(t *testing.T) {
			s, _ := world(t)
			f, err := factor.New(secret.NewMasterKey(), external)
			must(t, err)
			started, err := f.StartPasskey(jo(t, s), nil, ses)
			if want == "" {
				eventtest.As(t, err, factor.ErrPasskeysUnavailable)
				_, err = f.StartSignIn(s.Now())
				eventtest.As(t, err, factor.ErrPasskeysUnavailable)
				_, err = f.StartProof(jo(t, s), nil, ses)
				eventtest.As(t, err, factor.ErrPasskeysUnavailable)
				return
			}
			must(t, err)
			must(t, put(t, s, started))
			credential, err := (&factortest.Authenticator{Origin: want}).Create(started.Options)
			must(t, err)
			if _, err := add(t, s, f, ses, credential); err != nil {
				t.Error(err)
			}
		})
	}
	s, f := world(t)
	_, err := f.StartProof(jo(t, s), nil, ses)
	eventtest.As(t, err, factor.ErrNoPasskey)
	if strings.Contains(toAdd(t, s, f), "excludeCredentials") {
		t.Error("passkeys are listed that are not there")
	}
}
