package session

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/zitadel/passwap/argon2"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	right       = "correct horse"
	externalURL = "https://id.signet.test"
)

var (
	hasher = secret.NewCheapHasher()
	home   = netip.MustParseAddr("192.0.2.1")
	away   = netip.MustParseAddr("198.51.100.7")

	// cheap is a hash of right that costs next to nothing to check, for tests that guess a lot. Guessing right once
	// replaces it by a hash of the usual cost.
	cheap = sync.OnceValue(func() []byte {
		hash, err := argon2.NewArgon2id(argon2.Params{Memory: 64, Time: 1, Threads: 1, KeyLen: 32,
			SaltLen: 16}).Hash(right)
		if err != nil {
			panic(err)
		}
		return []byte(hash)
	})
	usual = sync.OnceValue(func() []byte {
		hash, err := hasher.Hash(context.Background(), right)
		if err != nil {
			panic(err)
		}
		return hash
	})
)

// world has the default organization org_def with the domain def.test, and org_b with b.test and, not verified,
// nope.test. Nobody is in them.
func world(t *testing.T) (*eventtest.Store, *Sessions) {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, Kind)
	for id, domain := range map[string]string{"org_def": "def.test", "org_b": "b.test"} {
		eventtest.Given(t, s, org.Kind, id, id, []event.Claim{org.DomainClaim(domain)}, org.Added{Name: id},
			org.DomainAdded{Domain: domain, Verified: true, Primary: true})
	}
	eventtest.Given(t, s, org.Kind, "org_b", "", nil, org.DomainAdded{Domain: "nope.test"})
	factors, err := factor.New(s.Master, externalURL)
	must(t, err)
	return s, &Sessions{Store: s, Factors: factors, Hasher: hasher, Master: s.Master, Clock: s.Now,
		DefaultOrg: "org_def", Standings: &Standings{}}
}

// person puts somebody into an organization; email is verified, and empty for somebody with another one.
func person(t *testing.T, s *eventtest.Store, id, orgID, name, email string) {
	t.Helper()
	eventtest.Given(t, s, user.Kind, id, orgID, []event.Claim{user.NameClaim(orgID, syntax.NameKey(name))},
		user.HumanAdded{
			EmailVerified: email != "",
			Personal: user.HumanFacts{UserName: name, UserNameKey: syntax.NameKey(name), Email: email, EmailKey: email,
				Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}},
		})
}

// withPassword is a person called jo in the default organization whose password is right.
func withPassword(t *testing.T, s *eventtest.Store, hash []byte) {
	t.Helper()
	person(t, s, "usr_jo", "org_def", "jo", "jo@mail.test")
	password(t, s, "usr_jo", hash, user.PasswordSet{})
}

func password(t *testing.T, s *eventtest.Store, id string, hash []byte, fact user.PasswordSet) {
	t.Helper()
	eventtest.Given(t, s, user.Kind, id, "", nil, fact)
	s.GivenRow(event.Row{RowKey: user.PasswordRow(id), Value: hash})
}

var must = testkit.Must

func try(name, password string, peer netip.Addr) Attempt {
	return Attempt{LoginName: name, Password: password, Peer: peer, UserAgent: "browser", RequestID: "req_1"}
}

// signIn signs jo in.
func signIn(t *testing.T, s *Sessions) SignedIn {
	t.Helper()
	in, err := s.SignIn(t.Context(), try("jo", right, home))
	must(t, err)
	return in
}

// joRow is jo's password row with another hash.
func joRow(hash []byte) event.Row {
	return event.Row{RowKey: user.PasswordRow("usr_jo"), Value: hash}
}
