package factor_test

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	external = "https://id.signet.test"
	ses      = "ses_1" // the session that everything happens in
)

var must = testkit.Must

// world has a person usr_jo in org_a who has no second factor.
func world(t *testing.T) (*eventtest.Store, *factor.Factors) {
	t.Helper()
	s := eventtest.New(t, user.Kind)
	eventtest.Given(t, s, user.Kind, "usr_jo", "org_a", []event.Claim{user.NameClaim("org_a", "jo")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo",
			Profile: user.Profile{DisplayName: "Jo D."}}})
	f, err := factor.New(s.Master, external)
	must(t, err)
	return s, f
}

// do runs a command about jo.
func do(t *testing.T, s *eventtest.Store, rows []event.RowKey,
	decide func(tx *event.Tx, jo *event.Object[user.User]) error) error {
	t.Helper()
	return s.Do(t.Context(), event.Command{
		Write: []event.Ref{user.Kind.Ref("usr_jo")},
		Rows:  append(rows, user.FactorsRow("usr_jo")),
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, "usr_jo")
			if err != nil {
				return err
			}
			return decide(tx, u)
		},
	})
}

func jo(t *testing.T, s *eventtest.Store) *event.Object[user.User] {
	return eventtest.State(t, s, user.Kind, "usr_jo")
}

// row is what is kept of jo's factors.
func row(t *testing.T, s *eventtest.Store) *event.Row {
	t.Helper()
	r, err := s.Row(t.Context(), user.FactorsRow("usr_jo"))
	must(t, err)
	return r
}

// withTOTP gives jo an app. The code that confirmed it is that of the store's time.
func withTOTP(t *testing.T, s *eventtest.Store, f *factor.Factors) (secret, id string) {
	t.Helper()
	var made factor.NewTOTP
	factortest.Choose(s.Now(), nil, func() string { made = f.NewTOTP("jo"); return made.Secret })
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
		return f.StartTOTP(tx, jo, ses, made)
	}))
	code := factortest.Code(made.Secret, s.Now())
	must(t, do(t, s, []event.RowKey{factor.TOTPRow(ses)}, func(tx *event.Tx, jo *event.Object[user.User]) (err error) {
		id, err = f.AddTOTP(tx, jo, ses, "phone", code)
		return err
	}))
	return made.Secret, id
}

func useTOTP(t *testing.T, s *eventtest.Store, f *factor.Factors, code string) (right bool) {
	t.Helper()
	must(t, do(t, s, nil, func(tx *event.Tx, _ *event.Object[user.User]) (err error) {
		right, err = f.UseTOTP(tx, "usr_jo", code)
		return err
	}))
	return right
}

func TestASecretIsInAFormThatAppsRead(t *testing.T) {
	_, f := world(t)
	made := f.NewTOTP("jo & co@id")
	u, err := url.Parse(made.URI)
	must(t, err)
	if u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/id.signet.test:jo & co@id" {
		t.Errorf("the URI is %s", made.URI)
	}
	if q := u.Query(); q.Get("secret") != made.Secret || q.Get("issuer") != "id.signet.test" ||
		q.Get("digits") != "6" || q.Get("period") != "30" || q.Get("algorithm") != "SHA1" {
		t.Errorf("the URI is %s", made.URI)
	}
	if other := f.NewTOTP("jo"); len(made.Secret) != 32 || other.Secret == made.Secret {
		t.Errorf("the secret has %d characters, or is not random", len(made.Secret))
	}
}

func TestACodeCountsOnceAndAStepAround(t *testing.T) {
	const step = 30 * time.Second
	for _, c := range []struct {
		name  string
		after time.Duration // since the app was added
		codes []time.Duration
		want  []bool
	}{
		{"the code that added the app is used", 0, []time.Duration{0}, []bool{false}},
		{"the code of now", 2 * step, []time.Duration{0}, []bool{true}},
		{"twice", 2 * step, []time.Duration{0, 0}, []bool{true, false}},
		{"of the step before", 3 * step, []time.Duration{-step}, []bool{true}},
		{"of the next step", 2 * step, []time.Duration{step}, []bool{true}},
		{"of two steps before", 4 * step, []time.Duration{-2 * step}, []bool{false}},
		{"of two steps ahead", 2 * step, []time.Duration{2 * step}, []bool{false}},
		{"an older one after a newer one", 3 * step, []time.Duration{0, -step, step}, []bool{true, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, f := world(t)
			secret, _ := withTOTP(t, s, f)
			s.Advance(c.after)
			var got []bool
			for _, d := range c.codes {
				got = append(got, useTOTP(t, s, f, factortest.Code(secret, s.Now().Add(d))))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCodesThatAreNone(t *testing.T) {
	s, f := world(t)
	secret, _ := withTOTP(t, s, f)
	s.Advance(time.Minute)
	good := factortest.Code(secret, s.Now())
	for _, code := range []string{"", "12345", good + "0", "０" + good[1:], "abcdef", "-00001", good[:5]} {
		if useTOTP(t, s, f, code) {
			t.Errorf("%q was taken", code)
		}
	}
	if !useTOTP(t, s, f, good[:3]+" "+good[3:]) {
		t.Error("the code as the app shows it was not taken")
	}
}

func TestASecretWaitsFiveMinutesInItsOwnSession(t *testing.T) {
	s, f := world(t)
	made := f.NewTOTP("jo")
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
		return f.StartTOTP(tx, jo, ses, made)
	}))
	add := func(session, code string) error {
		return do(t, s, []event.RowKey{factor.TOTPRow(session)}, func(tx *event.Tx, jo *event.Object[user.User]) error {
			_, err := f.AddTOTP(tx, jo, session, "phone", code)
			return err
		})
	}
	eventtest.Refused(t, add("ses_2", factortest.Code(made.Secret, s.Now())), errs.InvalidArgument,
		errs.InvalidRequest, "code")
	wrong := factortest.Wrong(s.Now(), made.Secret)
	eventtest.Refused(t, add(ses, wrong), errs.InvalidArgument, errs.InvalidRequest, "code")
	s.Advance(5*time.Minute - time.Microsecond)
	must(t, add(ses, factortest.Code(made.Secret, s.Now())))
	// it is used up
	eventtest.Refused(t, add(ses, factortest.Code(made.Secret, s.Now().Add(30*time.Second))), errs.InvalidArgument,
		errs.InvalidRequest, "code")
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
		return f.StartTOTP(tx, jo, ses, made)
	}))
	s.Advance(5 * time.Minute)
	eventtest.Refused(t, add(ses, factortest.Code(made.Secret, s.Now())), errs.InvalidArgument,
		errs.InvalidRequest, "code")
}

func TestWhatIsKeptOfFactorsTellsNothing(t *testing.T) {
	s, f := world(t)
	mark := s.Mark()
	secret, id := withTOTP(t, s, f)
	codes := factor.NewRecoveryCodes()
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
		return f.PutRecoveryCodes(tx, jo, codes)
	}))
	s.Then(t, mark,
		eventtest.Fact{Object: "usr_jo", Type: "user.totp_added.v1",
			Payload: `{"factorId":"` + id + `","created":` + micros(s) + `}`, Personal: `{"name":"phone"}`},
		eventtest.Fact{Object: "usr_jo", Type: "user.recovery_codes_made.v1", Payload: `{"count":10}`})
	for _, text := range append(codes, secret, strings.ReplaceAll(codes[0], "-", "")) {
		if s.Stored(t, text) {
			t.Errorf("%q is stored", text)
		}
	}
	// A row that was moved to somebody else is worth nothing there.
	s.GivenRow(event.Row{RowKey: user.FactorsRow("usr_x"), Value: row(t, s).Value})
	s.Advance(time.Minute)
	code := factortest.Code(secret, s.Now())
	err := s.Do(t.Context(), event.Command{
		Rows: []event.RowKey{user.FactorsRow("usr_x")},
		Decide: func(tx *event.Tx) error {
			right, err := f.UseTOTP(tx, "usr_x", code)
			if right {
				t.Error("a code of jo's counts for somebody else")
			}
			return err
		},
	})
	if err == nil {
		t.Error("a secret that was moved could be opened")
	}
}

func TestRecoveryCodes(t *testing.T) {
	s, f := world(t)
	codes := factor.NewRecoveryCodes()
	put := func() error {
		return do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
			return f.PutRecoveryCodes(tx, jo, codes)
		})
	}
	use := func(code string) (right bool) {
		must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) (err error) {
			right, err = f.UseRecoveryCode(tx, jo, code)
			return err
		}))
		return right
	}
	eventtest.As(t, put(), factor.ErrNoSecondFactor)
	_, id := withTOTP(t, s, f)
	must(t, put())
	if len(codes) != 10 || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != 10 {
		t.Errorf("the codes are %q", codes)
	}
	for _, c := range []struct {
		name, code string
		want       bool
	}{
		{"a right one", codes[0], true},
		{"the same again", codes[0], false},
		{"in small letters, without the hyphen", strings.ToLower(strings.ReplaceAll(codes[1], "-", " ")), true},
		{"the half of one", codes[2][:8], false},
		{"nothing", "", false},
		{"one that was never made", factor.NewRecoveryCodes()[0], false},
	} {
		if got := use(c.code); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if left := jo(t, s).Data.Human.RecoveryCodes; left != 8 {
		t.Errorf("%d are left", left)
	}
	old := codes
	codes = factor.NewRecoveryCodes()
	must(t, put())
	if use(old[5]) || !use(codes[5]) {
		t.Error("new codes do not replace those before")
	}
	// With the last factor they go.
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error { return factor.Remove(tx, jo, id) }))
	if u := jo(t, s); row(t, s) != nil || u.Data.SecondFactor || u.Data.Human.RecoveryCodes != 0 || use(codes[6]) {
		t.Errorf("left: %+v", u.Data.Human)
	}
}

func TestAdministratorsRemoveFactors(t *testing.T) {
	s, f := world(t)
	_, id := withTOTP(t, s, f)
	eventtest.Given(t, s, user.Kind, "usr_boss", "org_a", []event.Claim{user.NameClaim("org_a", "boss")},
		user.HumanAdded{Personal: user.HumanFacts{UserName: "boss", UserNameKey: "boss"}},
		user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}, user.TOTPAdded{FactorID: "fac_boss"})
	permit := func(org string) access.Permit {
		p, err := (&access.Caller{UserID: "usr_m",
			Memberships: access.Memberships{org: {access.OrgUserManager}}}).In(org, access.CredentialWrite)
		must(t, err)
		return p
	}
	stale := event.IfMatch{Set: true, Sequence: 99}
	for _, c := range []struct {
		name         string
		permit       access.Permit
		user, factor string
		match        event.IfMatch
		want         *errs.Error
	}{
		{"of another organization", permit("org_b"), "usr_jo", id, event.IfMatch{}, user.ErrNotFound},
		{"without a permit", access.Permit{}, "usr_jo", id, event.IfMatch{}, user.ErrNotFound},
		{"of who holds more", permit("org_a"), "usr_boss", "fac_boss", event.IfMatch{}, access.ErrTargetHoldsMore},
		{"an unknown one", permit("org_a"), "usr_jo", "fac_x", stale, factor.ErrNotFound},
		{"at another sequence", permit("org_a"), "usr_jo", id, stale,
			errs.New(errs.Aborted, event.SequenceMismatch, "x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Fingerprint()
			_, err := factor.RemoveFor(t.Context(), s, c.permit, c.user, c.match, c.factor)
			if eventtest.As(t, err, c.want); s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
	_, err := factor.RemoveFor(t.Context(), s, permit("org_a"), "usr_jo", event.IfMatch{}, id)
	must(t, err)
	if row(t, s) != nil || jo(t, s).Data.SecondFactor {
		t.Error("it is still there")
	}
}

func TestThereAreTwentyFactorsAtMost(t *testing.T) {
	s, f := world(t)
	_, first := withTOTP(t, s, f)
	for range user.MaxFactors - 1 {
		withTOTP(t, s, f)
	}
	more := func() error {
		return do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
			return f.StartTOTP(tx, jo, ses, f.NewTOTP("jo"))
		})
	}
	eventtest.As(t, more(), factor.ErrTooMany)
	_, err := f.StartPasskey(jo(t, s), row(t, s), ses)
	eventtest.As(t, err, factor.ErrTooMany)
	must(t, do(t, s, nil, func(tx *event.Tx, jo *event.Object[user.User]) error {
		return factor.Remove(tx, jo, first)
	}))
	must(t, more())
}

// once runs the same many times at the same moment, and counts successes.
func once(try func() bool) (succeeded int) {
	var n atomic.Int64
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			if try() {
				n.Add(1)
			}
		})
	}
	wait.Wait()
	return int(n.Load())
}

func TestOfManyAtOnceOneSucceeds(t *testing.T) {
	s, f := world(t)
	secret, _ := withTOTP(t, s, f)
	s.Advance(time.Minute)
	if n := once(func() bool { return useTOTP(t, s, f, factortest.Code(secret, s.Now())) }); n != 1 {
		t.Errorf("a code counted %d times", n)
	}
	device := withPasskey(t, s, f)
	answer, err := device.Get(toSignIn(t, s, f))
	must(t, err)
	if n := once(func() bool { return signsIn(t, s, f, answer) }); n != 1 {
		t.Errorf("an assertion counted %d times", n)
	}
}

func micros(s *eventtest.Store) string { return event.StandingOf(event.Micros(s.Now())) }
