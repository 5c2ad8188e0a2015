package idp_test

import (
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhichNewProvidersAreDrafts(t *testing.T) {
	keyed := oidc
	keyed.ClientAuth = idp.PrivateKeyJWT
	for name, c := range map[string]struct {
		add  func(s *eventtest.Store) (idp.Added, error)
		then idp.State
	}{
		"OpenID Connect with a secret": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, general, oidc, "x", false)
		}, idp.Active},
		"OpenID Connect with a secret, asked for": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, general, oidc, "x", true)
		}, idp.Draft},
		"OpenID Connect without a secret": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, general, oidc, "", false)
		}, idp.Draft},
		"OpenID Connect that needs no secret": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, general, keyed, "", false)
		}, idp.Active},
		"OAuth 2.0 with a secret": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOAuth(t.Context(), s, s.Master, ownerA, event.Once{}, general, github, "x", false)
		}, idp.Active},
		"OAuth 2.0 with a secret, asked for": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOAuth(t.Context(), s, s.Master, ownerA, event.Once{}, general, github, "x", true)
		}, idp.Draft},
		"OAuth 2.0 without a secret": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddOAuth(t.Context(), s, s.Master, ownerA, event.Once{}, general, github, "", false)
		}, idp.Draft},
		"JWT": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddJWT(t.Context(), s, ownerA, event.Once{}, general, jwt, false)
		}, idp.Active},
		"JWT, asked for": {func(s *eventtest.Store) (idp.Added, error) {
			return idp.AddJWT(t.Context(), s, ownerA, event.Once{}, general, jwt, true)
		}, idp.Draft},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			added, err := c.add(s)
			must(t, err)
			p := eventtest.State(t, s, idp.Kind, added.ID)
			if p.Data.State != c.then || p.Data.Offered() != (c.then == idp.Active) {
				t.Errorf("it is %s, offered: %t", p.Data.State, p.Data.Offered())
			}
		})
	}
}

func TestADraftIsOfferedAfterACheck(t *testing.T) {
	warning, problem := idp.Problem{Check: "clock", Warning: true}, idp.Problem{Check: "issuer"}
	for name, c := range map[string]struct {
		problems []idp.Problem
		adopt    bool
		facts    []event.Type
		then     idp.State
	}{
		"passed":                    {nil, false, []event.Type{"idp.reactivated.v1"}, idp.Active},
		"passed with a warning":     {[]idp.Problem{warning}, false, []event.Type{"idp.reactivated.v1"}, idp.Active},
		"passed, and answered for":  {nil, true, []event.Type{"idp.vouched.v1", "idp.reactivated.v1"}, idp.Active},
		"failed":                    {[]idp.Problem{warning, problem}, false, nil, idp.Draft},
		"failed, and to answer for": {[]idp.Problem{problem}, true, nil, idp.Draft},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			added, err := idp.AddJWT(t.Context(), s, ownerA, event.Once{}, general, jwt, true)
			must(t, err)
			mark := s.Mark()
			got, err := idp.Check(t.Context(), s, found{problems: c.problems}, ownerA, added.ID, event.IfMatch{}, c.adopt)
			must(t, err)
			var types []event.Type
			for _, e := range s.Since(t, mark) {
				types = append(types, e.Type)
			}
			p := eventtest.State(t, s, idp.Kind, added.ID)
			if !slices.Equal(types, c.facts) || p.Data.State != c.then || got.Details != p.Details() {
				t.Errorf("%q, %s, %+v", types, p.Data.State, got)
			}
		})
	}
}
