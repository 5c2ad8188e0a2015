package session

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// came stores a token of jo that came through a provider.
func came(s *eventtest.Store, id string, kind secret.TokenKind, provider string, up *Upstream) (token string) {
	token, hash := secret.NewToken(kind)
	now := event.Micros(s.Now())
	s.GivenToken(event.Token{
		ID:       id,
		Hash:     hash,
		Kind:     string(kind),
		UserID:   "usr_jo",
		Created:  now,
		Expires:  now + time.Hour.Microseconds(),
		Provider: provider,
		Data:     Proof{Methods: []Method{ByProvider}, At: now, Upstream: up}.text(),
	})
	return token
}

// linked is jo with a link to idp_a.
func linked(t *testing.T, s *eventtest.Store) {
	t.Helper()
	person(t, s, "usr_jo", "org_def", "jo", "")
	eventtest.Given(t, s, user.Kind, "usr_jo", "",
		[]event.Claim{user.LinkClaim("idp_a", "i", "0"), user.LinkClaim("idp_a", "i", "1")},
		user.LinkAdded{LinkID: "lnk_0", Provider: "idp_a", Personal: user.LinkFacts{Issuer: "i", Subject: "0"}},
		user.LinkAdded{LinkID: "lnk_1", Provider: "idp_a", Personal: user.LinkFacts{Issuer: "i", Subject: "1"}},
		user.LinkRemoved{LinkID: "lnk_0"})
}

func TestWhatCameThroughAProviderEndsWithIt(t *testing.T) {
	up := func(epoch int64) *Upstream {
		return &Upstream{Link: "lnk_1", Provider: "idp_a", Epoch: epoch, Fresh: true}
	}
	for _, c := range []struct {
		name     string
		provider string
		up       *Upstream
		facts    []event.Fact[idp.Provider]
		counts   bool
	}{
		{"an active one", "idp_a", up(0), nil, true},
		{"one that was changed", "idp_a", up(0), []event.Fact[idp.Provider]{idp.JWTChanged{Issuer: new("x")}}, true},
		{"a deactivated one", "idp_a", up(0), []event.Fact[idp.Provider]{idp.Deactivated{}}, false},
		{"one that came back", "idp_a", up(0), []event.Fact[idp.Provider]{idp.Deactivated{}, idp.Reactivated{}}, false},
		{"a session since it came back", "idp_a", up(1),
			[]event.Fact[idp.Provider]{idp.Deactivated{}, idp.Reactivated{}}, true},
		{"deactivated in its epoch", "idp_a", up(1), []event.Fact[idp.Provider]{idp.Deactivated{}}, false},
		{"a removed one", "idp_a", up(0), []event.Fact[idp.Provider]{idp.WasRemoved{}}, false},
		{"removed in its epoch", "idp_a", up(1), []event.Fact[idp.Provider]{idp.WasRemoved{}}, false},
		{"a token that does not say since when", "idp_a", nil, nil, false},
		{"a token that names another one", "idp_a", &Upstream{Link: "lnk_1", Provider: "idp_b"}, nil, false},
		{"one that does not exist", "idp_x", &Upstream{Link: "lnk_1", Provider: "idp_x"}, nil, false},
		{"by a link that was removed", "idp_a", &Upstream{Link: "lnk_0", Provider: "idp_a"}, nil, false},
		{"by no link", "idp_a", &Upstream{Provider: "idp_a"}, nil, false},
		{"none", "", nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sessions := world(t)
			linked(t, s)
			eventtest.Given(t, s, idp.Kind, "idp_a", "org_def", nil, idp.JWTAdded{General: idp.General{Name: "a"}})
			eventtest.Given(t, s, idp.Kind, "idp_b", "org_def", nil, idp.JWTAdded{General: idp.General{Name: "b"}})
			eventtest.Given(t, s, idp.Kind, "idp_a", "", nil, c.facts...)
			s.Advance(time.Microsecond)
			session := came(s, "ses_1", secret.Session, c.provider, c.up)
			pat := came(s, "pat_1", secret.PAT, c.provider, c.up)
			for name, token := range map[string]string{"a session": session, "a personal access token": pat} {
				if _, err := sessions.Authenticate(t.Context(), token); (err == nil) != c.counts {
					t.Errorf("%s: %v", name, err)
				}
			}
			// In commands, by a caller from before.
			caller := &access.Caller{UserID: "usr_jo", OrgID: "org_def", TokenID: "ses_1",
				TokenKind: string(secret.Session)}
			var err error
			caller.Session, err = s.TokenByID(t.Context(), "ses_1")
			must(t, err)
			if _, err := sessions.StartTOTP(t.Context(), caller); (err == nil) != c.counts {
				t.Errorf("a step: %v", err)
			}
			over, err := sessions.Over(t.Context(), "usr_jo", []string{"ses_1"})
			must(t, err)
			if len(over) == 0 != c.counts {
				t.Errorf("over: %v", over)
			}
			for _, kind := range []secret.TokenKind{secret.Session, secret.PAT} {
				shown, _, err := sessions.List(t.Context(), Own(caller), kind, event.Cursor{}, 10)
				must(t, err)
				if len(shown) == 1 != c.counts {
					t.Errorf("listed: %v", shown)
				}
			}
			if _, err := sessions.IssueOwn(t.Context(), caller, NewToken{}); (err == nil) != c.counts {
				t.Errorf("a new token: %v", err)
			}
			if err := sessions.End(t.Context(), Own(caller), "ses_1"); (err == nil) != c.counts {
				t.Errorf("ended: %v", err)
			}
		})
	}
}

func TestATokenThatIsMadeInASessionThroughAProviderEndsWithTheProvider(t *testing.T) {
	s, sessions := world(t)
	linked(t, s)
	eventtest.Given(t, s, idp.Kind, "idp_a", "org_def", nil, idp.JWTAdded{General: idp.General{Name: "a"}})
	caller, err := sessions.Authenticate(t.Context(),
		came(s, "ses_1", secret.Session, "idp_a", &Upstream{Link: "lnk_1", Provider: "idp_a", Fresh: true}))
	must(t, err)
	made, err := sessions.IssueOwn(t.Context(), caller, NewToken{})
	must(t, err)
	_, err = sessions.Authenticate(t.Context(), made.Token)
	must(t, err)
	eventtest.Given(t, s, idp.Kind, "idp_a", "", nil, idp.Deactivated{})
	_, err = sessions.Authenticate(t.Context(), made.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
	eventtest.Given(t, s, idp.Kind, "idp_a", "", nil, idp.Reactivated{})
	_, err = sessions.Authenticate(t.Context(), made.Token)
	eventtest.As(t, err, access.ErrUnauthenticated)
}

func TestTheWordOfAProviderIsARecentProofOnlyIfThePersonWasAskedAgain(t *testing.T) {
	now := eventtest.Start
	at, long := event.Micros(now.Add(-time.Minute)), event.Micros(now.Add(-time.Hour))
	for _, c := range []struct {
		name   string
		proof  Proof
		factor bool
		recent bool
	}{
		{"asked again", Proof{Methods: []Method{ByProvider}, At: at, Upstream: &Upstream{Fresh: true}}, false, true},
		{"asked again long ago",
			Proof{Methods: []Method{ByProvider}, At: long, Upstream: &Upstream{Fresh: true}}, false, false},
		{"not asked", Proof{Methods: []Method{ByProvider}, At: at, Upstream: &Upstream{}}, false, false},
		{"not asked, with a second factor that the provider has checked",
			Proof{Methods: []Method{ByProvider}, At: at, SecondFactor: true, Upstream: &Upstream{}}, true, false},
		{"not asked, and a second factor was proven here",
			Proof{Methods: []Method{ByProvider, ByTOTP}, At: at, SecondFactor: true,
				Upstream: &Upstream{}}, true, true},
		{"not asked, and the password was given here",
			Proof{Methods: []Method{ByProvider, ByPassword}, At: at, Upstream: &Upstream{}}, false, true},
		{"a password", Proof{Methods: []Method{ByPassword}, At: at}, false, true},
	} {
		if got := c.proof.recent(event.Micros(now), c.factor); got != c.recent {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// Signet makes no such token: it would count on if it were read without its session.
func TestATokenOfASessionNamesTheSameProvider(t *testing.T) {
	s, sessions := world(t)
	linked(t, s)
	eventtest.Given(t, s, idp.Kind, "idp_a", "org_def", nil, idp.JWTAdded{General: idp.General{Name: "a"}})
	came(s, "ses_1", secret.Session, "idp_a", &Upstream{Link: "lnk_1", Provider: "idp_a"})
	for provider, counts := range map[string]bool{"idp_a": true, "": false} {
		token, hash := secret.NewToken(secret.Access)
		s.GivenToken(event.Token{
			ID:       "oat_" + provider,
			Hash:     hash,
			Kind:     string(secret.Access),
			UserID:   "usr_jo",
			Session:  "ses_1",
			Expires:  event.Micros(s.Now().Add(time.Hour)),
			Provider: provider,
			Data:     Given{Proof: Proof{Upstream: &Upstream{Link: "lnk_1", Provider: "idp_a"}}}.Text(),
		})
		if _, err := sessions.Bearer(t.Context(), token); (err == nil) != counts {
			t.Errorf("%q: %v", provider, err)
		}
	}
}
