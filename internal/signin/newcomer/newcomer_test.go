package newcomer

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	externalURL = "https://id.signet.test"
	right       = "correct horse battery"
)

var (
	must   = testkit.Must
	home   = netip.MustParseAddr("192.0.2.1")
	hasher = secret.NewCheapHasher()
	ticket = event.RowKey{Table: event.Flows, Key: "ticket"}
)

// world has the organization org_b with somebody called ann, and a ticket that lets one person in.
type world struct {
	Newcomers
	t     *testing.T
	store *eventtest.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, session.Kind)
	factors, err := factor.New(s.Master, externalURL)
	must(t, err)
	w := &world{t: t, store: s,
		Newcomers: Newcomers{&session.Sessions{Store: s, Factors: factors, Hasher: hasher, Master: s.Master,
			Clock: s.Now, DefaultOrg: "org_b", Standings: &session.Standings{}}}}
	eventtest.Given(t, s, org.Kind, "org_b", "org_b", nil, org.Added{Name: "b"})
	eventtest.Given(t, s, user.Kind, "usr_ann", "org_b", []event.Claim{user.NameClaim("org_b", "ann")}, user.HumanAdded{
		Personal: user.HumanFacts{UserName: "ann", UserNameKey: "ann", Email: "ann@b.test", EmailKey: "ann@b.test",
			Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}}})
	s.GivenRow(event.Row{RowKey: ticket, Value: []byte{1}})
	return w
}

var errNoTicket = errors.New("no ticket")

// admit lets whoever comes in by the ticket, as a member.
func admit(tx *event.Tx, u *event.Object[user.User]) error {
	row, err := tx.Row(ticket)
	if err != nil {
		return err
	}
	if row == nil {
		return errNoTicket
	}
	tx.DropRow(ticket)
	return u.Append(user.MembershipSet{Scope: u.Org, Roles: []access.Role{access.OrgUserManager}})
}

var needs = event.Command{Rows: []event.RowKey{ticket}}

func somebody() Person {
	return Person{
		OrgID:        "org_b",
		UserName:     "new",
		FirstName:    "New",
		LastName:     "Person",
		Language:     "de",
		Email:        "new@b.test",
		Password:     right,
		Verification: user.Verification{By: user.VerifiedByOwner},
		Peer:         home,
		UserAgent:    "browser",
		RequestID:    "req_1",
	}
}

func (w *world) policy(p policy.Policy) {
	w.t.Helper()
	o := eventtest.State(w.t, w.store, org.Kind, "org_b")
	eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.PolicySet{Diff: o.Data.Policy.DiffTo(p)})
}

func TestWhoBecomesAUser(t *testing.T) {
	invalid := func(fields ...string) *errs.Error {
		var wrong []errs.Violation
		for _, f := range fields {
			wrong = append(wrong, errs.Violation{Field: f})
		}
		return errs.Invalid(wrong...)
	}
	for _, c := range []struct {
		name     string
		given    func(*world)
		change   func(*Person)
		refusal  error
		userName string
		verified bool
	}{
		{"with a name", nil, nil, nil, "new", true},
		{"without a name, by the confirmed address", nil, func(p *Person) { p.UserName = "" }, nil, "new@b.test", true},
		{"by the confirmed address in other letters", nil, func(p *Person) { p.UserName = "NEW＠b.test" }, nil,
			"NEW＠b.test", true},
		{"with an address that nobody has confirmed", nil, func(p *Person) { p.Verification = user.Verification{} },
			nil, "new", false},
		{"without a name and with an unconfirmed address", nil,
			func(p *Person) { p.UserName, p.Verification = "", user.Verification{} }, invalid("userName"), "", false},
		{"by the unconfirmed address", nil,
			func(p *Person) { p.UserName, p.Verification = "new@b.test", user.Verification{} },
			invalid("userName"), "", false},
		{"by somebody else's address", nil, func(p *Person) { p.UserName = "boss@b.test" },
			invalid("userName"), "", false},
		{"by somebody else's address in wide letters", nil, func(p *Person) { p.UserName = "boss＠b.test" },
			invalid("userName"), "", false},
		{"by somebody else's address in small letters", nil, func(p *Person) { p.UserName = "boss﹫b.test" },
			invalid("userName"), "", false},
		{"with a name that is taken", nil, func(p *Person) { p.UserName = "ANN" }, user.ErrUserNameTaken, "", false},
		{"without a last name", nil, func(p *Person) { p.LastName = "" }, invalid("profile.lastName"), "", false},
		{"without an address", nil, func(p *Person) { p.Email = "" }, invalid("email.email"), "", false},
		{"without a password", nil, func(p *Person) { p.Password = "" }, invalid("password"), "", false},
		{"with a password that is too short", nil, func(p *Person) { p.Password = "short" },
			invalid("password"), "", false},
		{"with a password that is too short there",
			func(w *world) { n := int64(40); w.policy(policy.Policy{PasswordMinLength: n}) }, nil,
			invalid("password"), "", false},
		{"with a password where none is allowed", func(w *world) {
			w.policy(policy.Policy{SignIn: policy.SignIn{SignInMethods: []policy.Way{policy.WithPasskey}}})
		}, nil, session.ErrMethodNotAllowed, "", false},
		{"in an organization that does not exist", nil, func(p *Person) { p.OrgID = "org_x" },
			session.ErrSignInFailed, "", false},
		{"in an inactive organization",
			func(w *world) { eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.Deactivated{}) }, nil,
			session.ErrSignInFailed, "", false},
		{"without what lets them in", func(w *world) {
			must(w.t, w.store.Do(w.t.Context(),
				event.Command{Origin: event.Origin{Actor: event.System},
					Decide: func(tx *event.Tx) error { tx.DropRow(ticket); return nil }}))
		}, nil, errNoTicket, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.given != nil {
				c.given(w)
			}
			p := somebody()
			if c.change != nil {
				c.change(&p)
			}
			before := w.store.Fingerprint()
			in, err := w.Create(t.Context(), p, needs, admit)
			if c.refusal != nil {
				if want, is := errors.AsType[*errs.Error](c.refusal); is && want.Kind == errs.InvalidArgument {
					got, is := errors.AsType[*errs.Error](err)
					if !is || !slices.ContainsFunc(got.Fields,
						func(v errs.Violation) bool { return v.Field == want.Fields[0].Field }) {
						t.Errorf("got %v", err)
					}
				} else if !errors.Is(err, c.refusal) {
					t.Errorf("got %v, want %v", err, c.refusal)
				}
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			u := eventtest.State(t, w.store, user.Kind, in.UserID)
			h := u.Data.Human
			if u.Org != "org_b" || u.Data.UserName != c.userName || u.Data.UserNameKey != syntax.NameKey(c.userName) ||
				h.Email.Verified != c.verified ||
				h.Profile.DisplayName != "New Person" || h.Profile.PreferredLanguage != "de" ||
				u.Data.Password.ChangeRequired {
				t.Errorf("%+v, %+v", u.Data, h)
			}
			if v := h.Email.Verification; c.verified && (v.By != user.VerifiedByOwner || v.At == 0) {
				t.Errorf("%+v", v)
			}
			caller, err := w.Authenticate(t.Context(), in.Token)
			must(t, err)
			if caller.UserID != in.UserID || !caller.Memberships.Hold(access.UserWrite, "org_b") ||
				in.SecondFactorRequired || in.ChangeRequired {
				t.Errorf("%+v, %+v", caller, in)
			}
			again, err := w.SignIn(t.Context(),
				session.Attempt{LoginName: c.userName, Password: right, OrgID: "org_b", Peer: home})
			must(t, err)
			if again.UserID != in.UserID {
				t.Error("the next sign-in is somebody else's")
			}
		})
	}
}

func TestANewcomerWhoNeedsASecondFactorHasToAddOne(t *testing.T) {
	w := newWorld(t)
	w.policy(policy.Policy{SecondFactorRequired: true})
	in, err := w.Create(t.Context(), somebody(), needs, admit)
	must(t, err)
	if !in.SecondFactorRequired || len(in.Ways) > 0 {
		t.Errorf("%+v", in)
	}
}

func TestWhoBecomesAUserWithAPasskey(t *testing.T) {
	const flow = "flow"
	for _, c := range []struct {
		name    string
		given   func(*world)
		flow    string
		device  *factortest.Authenticator
		refusal *errs.Error
	}{
		{"made for it", nil, flow, &factortest.Authenticator{Origin: externalURL}, nil},
		{"where a second factor is required", func(w *world) { w.policy(policy.Policy{SecondFactorRequired: true}) },
			flow, &factortest.Authenticator{Origin: externalURL}, nil},
		{"made by what lets somebody else in", nil, "another flow", &factortest.Authenticator{Origin: externalURL},
			errs.Invalid(errs.Violation{Field: "credential"})},
		{"made on another site", nil, flow, &factortest.Authenticator{Origin: "https://evil.test"},
			errs.Invalid(errs.Violation{Field: "credential"})},
		{"of a device that knows nobody", nil, flow, &factortest.Authenticator{Origin: externalURL, Unverified: true},
			errs.Invalid(errs.Violation{Field: "credential"})},
		{"too late", func(w *world) { w.store.Advance(6 * time.Minute) }, flow,
			&factortest.Authenticator{Origin: externalURL}, errs.Invalid(errs.Violation{Field: "credential"})},
		{"where none is allowed", func(w *world) {
			w.policy(policy.Policy{SignIn: policy.SignIn{SignInMethods: []policy.Way{policy.WithPassword}}})
		}, flow,
			&factortest.Authenticator{Origin: externalURL}, session.ErrMethodNotAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			options, err := w.StartPasskey(t.Context(), home, "new", "New Person", flow)
			must(t, err)
			credential, err := c.device.Create(options)
			must(t, err)
			if c.given != nil {
				c.given(w)
			}
			p := somebody()
			p.Password, p.Passkey = "", &Passkey{Credential: credential, Flow: c.flow}
			in, err := w.Create(t.Context(), p, needs, admit)
			if c.refusal != nil {
				if got, is := errors.AsType[*errs.Error](err); !is || got.Kind != c.refusal.Kind ||
					got.Reason != c.refusal.Reason {
					t.Errorf("got %v", err)
				}
				return
			}
			must(t, err)
			if in.SecondFactorRequired {
				t.Error("a passkey proves both factors")
			}
			if string(c.device.Passkeys[0].Handle) != in.UserID {
				t.Error("the passkey is somebody else's")
			}
			options, err = w.StartPasskeySignIn()
			must(t, err)
			assertion, err := c.device.Get(options)
			must(t, err)
			again, err := w.SignInWithPasskey(t.Context(), session.PasskeyAttempt{Assertion: assertion, Peer: home})
			must(t, err)
			if again.UserID != in.UserID {
				t.Error("the next sign-in is somebody else's")
			}
			p.UserName = "other"
			w.store.GivenRow(event.Row{RowKey: ticket, Value: []byte{1}})
			if _, err := w.Create(t.Context(), p, needs, admit); err == nil {
				t.Error("the same passkey makes another user")
			}
		})
	}
}

func TestWhatLetsOnePersonInLetsNoOtherIn(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	done := make([]error, 64)
	for i := range done {
		all.Go(func() {
			p := somebody()
			p.UserName = "new" + string(rune('a'+i))
			_, done[i] = w.Create(t.Context(), p, needs, admit)
		})
	}
	all.Wait()
	n := 0
	for _, err := range done {
		if err == nil {
			n++
		} else if !errors.Is(err, errNoTicket) && !errors.Is(err, secret.ErrBusy) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d were let in", n)
	}
}
