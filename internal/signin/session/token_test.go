package session

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// pat gives jo a personal access token for a day.
func pat(t *testing.T, s *eventtest.Store) string {
	t.Helper()
	token, hash := secret.NewToken(secret.PAT)
	must(t, s.Do(t.Context(), event.Command{
		Write: []event.Ref{user.Kind.Ref("usr_jo"), Kind.Ref(IDFor("usr_jo"))},
		Read:  []event.Ref{org.Kind.Ref("org_def")},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, "usr_jo")
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, "org_def")
			if err != nil {
				return err
			}
			_, err = IssuePAT(tx, u, o.Data.Epoch, PAT{Hash: hash, Expires: tx.Now() + (24 * time.Hour).Microseconds()})
			return err
		},
	}))
	return token
}

func TestWhenATokenCounts(t *testing.T) {
	onUser := func(facts ...event.Fact[user.User]) func(*testing.T, *eventtest.Store) {
		return func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, facts...)
		}
	}
	onOrg := func(facts ...event.Fact[org.Org]) func(*testing.T, *eventtest.Store) {
		return func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_def", "", nil, facts...)
		}
	}
	after := func(d time.Duration) func(*testing.T, *eventtest.Store) {
		return func(_ *testing.T, s *eventtest.Store) { s.Advance(d) }
	}
	for _, c := range []struct {
		name         string
		happens      func(*testing.T, *eventtest.Store)
		session, pat bool
	}{
		{"at once", after(0), true, true},
		{"just before a session expires", after(Life - time.Microsecond), true, true},
		{"when a session expires", after(Life), false, true},
		{"just before a personal access token expires", after(24*time.Hour - time.Microsecond), false, true},
		{"when a personal access token expires", after(24 * time.Hour), false, false},
		{"after the profile changed", onUser(user.ProfileChanged{}), true, true},
		{"after roles changed",
			onUser(user.MembershipSet{Scope: "org_def", Roles: []access.Role{access.OrgOwner}}), true, true},
		{"after the password was set", onUser(user.PasswordSet{}), false, false},
		{"after the password was changed elsewhere", onUser(user.PasswordChanged{}), false, true},
		{"after the sessions were ended", onUser(user.SessionsEnded{}), false, true},
		{"while the user is inactive", onUser(user.Deactivated{}), false, false},
		{"after the user came back", onUser(user.Deactivated{}, user.Reactivated{}), false, false},
		{"while the user is locked", onUser(user.WasLocked{}), false, false},
		{"after the user was unlocked", onUser(user.WasLocked{}, user.Unlocked{}), false, false},
		{"after the user was removed", onUser(user.WasRemoved{}), false, false},
		{"while the organization is inactive", onOrg(org.Deactivated{}), false, false},
		{"after the organization came back", onOrg(org.Deactivated{}, org.Reactivated{}), false, false},
		{"after the organization was removed", onOrg(org.WasRemoved{}), false, false},
		{"after the organization got a domain", onOrg(org.DomainAdded{Domain: "more.test"}), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			person(t, s, "usr_jo", "org_def", "jo", "")
			token, hash := secret.NewToken(secret.Session)
			s.GivenToken(event.Token{ID: "ses_1", Hash: hash, Kind: string(secret.Session), UserID: "usr_jo",
				Expires: event.Micros(s.Now().Add(Life))})
			tokens := map[string]bool{token: c.session, pat(t, s): c.pat}
			c.happens(t, s)
			for token, counts := range tokens {
				caller, err := sessions.Authenticate(t.Context(), token)
				if !counts {
					eventtest.As(t, err, access.ErrUnauthenticated)
				} else if err != nil || caller.UserID != "usr_jo" {
					t.Errorf("%s…: %v", token[:7], err)
				}
			}
		})
	}
}

func TestATokenOfAnApplicationCountsWithItAndItsOrganization(t *testing.T) {
	for _, c := range []struct {
		name  string
		app   []event.Fact[app.App] // after it was added; nil: there is none
		org   []event.Fact[org.Org]
		given Given // with the epochs that there are, so that the states decide alone
		want  bool
	}{
		{"both in use", []event.Fact[app.App]{}, nil, Given{}, true},
		{"no application", nil, nil, Given{}, false},
		{"an application that is off", []event.Fact[app.App]{app.Deactivated{}}, nil, Given{ClientEpoch: 1}, false},
		{"an application that is back", []event.Fact[app.App]{app.Deactivated{}, app.Reactivated{}}, nil,
			Given{}, false},
		{"an application that is back, given since", []event.Fact[app.App]{app.Deactivated{}, app.Reactivated{}}, nil,
			Given{ClientEpoch: 1}, true},
		{"an organization that is off", []event.Fact[app.App]{}, []event.Fact[org.Org]{org.Deactivated{}},
			Given{ClientOrgEpoch: 1}, false},
		{"an organization that is back", []event.Fact[app.App]{},
			[]event.Fact[org.Org]{org.Deactivated{}, org.Reactivated{}}, Given{}, false},
		{"an organization that is back, given since", []event.Fact[app.App]{},
			[]event.Fact[org.Org]{org.Deactivated{}, org.Reactivated{}}, Given{ClientOrgEpoch: 1}, true},
		{"an organization that is gone", []event.Fact[app.App]{}, []event.Fact[org.Org]{org.WasRemoved{}},
			Given{ClientOrgEpoch: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			person(t, s, "usr_jo", "org_def", "jo", "")
			if c.app != nil {
				eventtest.Given(t, s, app.Kind, "app_1", "org_b", nil,
					append([]event.Fact[app.App]{app.Added{Name: "Shop"}}, c.app...)...)
			}
			if c.org != nil {
				eventtest.Given(t, s, org.Kind, "org_b", "", nil, c.org...)
			}
			token, hash := secret.NewToken(secret.Access)
			s.GivenToken(event.Token{
				ID:      "oat_1",
				Hash:    hash,
				Kind:    string(secret.Access),
				UserID:  "usr_jo",
				Client:  "app_1",
				Expires: event.Micros(s.Now().Add(time.Hour)),
				Data:    c.given.Text(),
			})
			_, err := sessions.Bearer(t.Context(), token)
			if c.want {
				must(t, err)
				return
			}
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
}

func TestWhatIsNoToken(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	stored, hash := secret.NewToken(secret.PAT)
	// A row that says session for a token that says it is a personal access token.
	s.GivenToken(event.Token{ID: "ses_1", Hash: hash, Kind: string(secret.Session), UserID: "usr_jo",
		Expires: event.Micros(s.Now().Add(Life))})
	orphan, orphanHash := secret.NewToken(secret.Session)
	s.GivenToken(event.Token{ID: "ses_2", Hash: orphanHash, Kind: string(secret.Session), UserID: "usr_x",
		Expires: event.Micros(s.Now().Add(Life))})
	unknown, _ := secret.NewToken(secret.Session)
	good := pat(t, s)
	for name, bearer := range map[string]string{
		"the wrong kind":       stored,
		"nobody's":             orphan,
		"an unknown one":       unknown,
		"nothing":              "",
		"cut short":            good[:len(good)-1],
		"with something on":    good + "x",
		"with white space":     " " + good,
		"in another case":      strings.ToUpper(good),
		"another kind's dress": strings.Replace(good, "sgn_pat_", "sgn_ses_", 1),
		"the id of a token":    "ses_1",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sessions.Authenticate(t.Context(), bearer)
			eventtest.As(t, err, access.ErrUnauthenticated)
		})
	}
	if _, err := sessions.Authenticate(t.Context(), good); err != nil {
		t.Error(err)
	}
}

func TestATokenCarriesWhatItsUserHoldsNow(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	token := pat(t, s)
	eventtest.Given(t, s, user.Kind, "usr_jo", "", nil,
		user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwner}})
	caller, err := sessions.Authenticate(t.Context(), token)
	must(t, err)
	if !caller.Memberships.Hold(access.UserWrite, "org_b") || caller.TokenKind != string(secret.PAT) ||
		caller.OrgID != "org_def" {
		t.Errorf("got %+v", caller)
	}
	eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.MembershipSet{Scope: "org_b"})
	caller, err = sessions.Authenticate(t.Context(), token)
	must(t, err)
	if caller.Memberships.Hold(access.UserWrite, "org_b") {
		t.Error("a role that was taken away still counts")
	}
}

func TestATokenThatDoesNotProveThePasswordIsNotHeldUpByIt(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	password(t, s, "usr_jo", cheap(), user.PasswordSet{ChangeRequired: true})
	caller, err := sessions.Authenticate(t.Context(), pat(t, s))
	must(t, err)
	if caller.MustChangePassword {
		t.Error("the personal access token is restricted")
	}
}

func TestAPersonalAccessTokenIsAFactAboutTheCompanion(t *testing.T) {
	s, _ := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	mark := s.Mark()
	token := pat(t, s)
	facts := s.Since(t, mark)
	if len(facts) != 1 || facts[0].Object != IDFor("usr_jo") || facts[0].Type != "sign_in.token_issued.v1" {
		t.Errorf("recorded %+v", facts)
	}
	if s.Stored(t, token) {
		t.Error("the token is stored in the clear")
	}
}

func TestOnlyOnesOwnSessionsCanBeEnded(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_jo", "org_def", "jo", "")
	person(t, s, "usr_ann", "org_def", "ann", "")
	give := func(id, user string, kind secret.TokenKind) string {
		token, hash := secret.NewToken(kind)
		s.GivenToken(event.Token{ID: id, Hash: hash, Kind: string(kind), UserID: user,
			Expires: event.Micros(s.Now().Add(Life))})
		return token
	}
	mine, other := give("ses_mine", "usr_jo", secret.Session), give("ses_other", "usr_jo", secret.Session)
	give("ses_anns", "usr_ann", secret.Session)
	give("pat_mine", "usr_jo", secret.PAT)
	jo := &access.Caller{UserID: "usr_jo", OrgID: "org_def", TokenID: "ses_mine", RequestID: "req_9"}
	for _, id := range []string{"ses_anns", "pat_mine", "ses_x", "", "' --"} {
		t.Run("not "+id, func(t *testing.T) {
			before := s.Fingerprint()
			eventtest.As(t, sessions.End(t.Context(), Own(jo), id), ErrNotFound)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
	mark := s.Mark()
	must(t, sessions.End(t.Context(), Own(jo), "ses_other"))
	must(t, sessions.End(t.Context(), Own(jo), "ses_mine"))
	s.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.session_ended.v1",
		Payload: `{"sessionId":"ses_other"}`},
		eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.session_ended.v1", Payload: `{"sessionId":"ses_mine"}`})
	for _, token := range []string{mine, other} {
		_, err := sessions.Authenticate(t.Context(), token)
		eventtest.As(t, err, access.ErrUnauthenticated)
	}
	eventtest.As(t, sessions.End(t.Context(), Own(jo), "ses_mine"), ErrNotFound)
}
