package org_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/eventtest"
	"github.com/signet-idm/signet/internal/org"
)

func TestWhatHappensToAnOrganizationFoldsIntoItsState(t *testing.T) {
	added := org.Added{Name: "Acme"}
	domain := func(name string, verified, primary bool) org.DomainAdded {
		return org.DomainAdded{Domain: name, Verified: verified, Primary: primary}
	}
	for _, c := range []struct {
		name  string
		facts []event.Fact[org.Org]
		want  string
	}{
		{"a new one is active", []event.Fact[org.Org]{added}, `{"state":"active","name":"Acme"}`},
		{"domains keep their order", []event.Fact[org.Org]{added, domain("a.example", true, true), domain("b.example", false, false)},
			`{"state":"active","name":"Acme","domains":[{"name":"a.example","verified":true},{"name":"b.example"}]}`},
		{"a primary domain comes first", []event.Fact[org.Org]{added, domain("a.example", true, true), domain("b.example", true, true)},
			`{"state":"active","name":"Acme","domains":[{"name":"b.example","verified":true},{"name":"a.example","verified":true}]}`},
		{"deactivating starts a new epoch", []event.Fact[org.Org]{added, org.Deactivated{}}, `{"state":"inactive","epoch":1,"name":"Acme"}`},
		{"reactivating does not go back to the old epoch", []event.Fact[org.Org]{added, org.Deactivated{}, org.Reactivated{}}, `{"state":"active","epoch":1,"name":"Acme"}`},
		{"every deactivation counts", []event.Fact[org.Org]{added, org.Deactivated{}, org.Reactivated{}, org.Deactivated{}}, `{"state":"inactive","epoch":2,"name":"Acme"}`},
		{"a removed one has no name, no domain and a new epoch", []event.Fact[org.Org]{added, domain("a.example", true, true), org.WasRemoved{}}, `{"state":"removed","epoch":1,"name":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var state org.Org
			for _, f := range c.facts {
				f.Apply(&state)
			}
			if got, _ := json.Marshal(state); string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestLoginNamesComeFromVerifiedDomains(t *testing.T) {
	for _, c := range []struct {
		name    string
		domains []org.Domain
		primary string
		names   []string
	}{
		{"none without a domain", nil, "", nil},
		{"the primary domain first", []org.Domain{{Name: "a.example", Verified: true}, {Name: "b.example", Verified: true}}, "a.example", []string{"jo@a.example", "jo@b.example"}},
		{"none for a domain that is not verified", []org.Domain{{Name: "a.example", Verified: true}, {Name: "b.example"}}, "a.example", []string{"jo@a.example"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := org.Org{Domains: c.domains}
			if o.PrimaryDomain() != c.primary || !slices.Equal(o.LoginNames("jo"), c.names) {
				t.Errorf("got %q and %q", o.PrimaryDomain(), o.LoginNames("jo"))
			}
		})
	}
}

func add(t *testing.T, s *eventtest.Store, id string, candidates ...string) error {
	t.Helper()
	var claims []event.Claim
	for _, c := range candidates {
		claims = append(claims, org.DomainClaim(c))
	}
	return s.Do(t.Context(), event.Command{Write: []event.Ref{org.Kind.Ref(id)}, Claims: claims, Decide: func(tx *event.Tx) error {
		_, err := org.Add(tx, id, "Acme", candidates)
		return err
	}})
}

func TestAddTakesTheFirstFreeDomain(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	fact := func(id, domain string) []eventtest.Fact {
		return []eventtest.Fact{
			{Object: id, Type: "org.added.v1", Payload: `{"name":"Acme"}`},
			{Object: id, Type: "org.domain_added.v1", Payload: `{"domain":"` + domain + `","verified":true,"primary":true}`},
		}
	}
	eventtest.As(t, add(t, s, "org_a", "acme.test", "acme-2.test"), nil)
	s.Then(t, 0, fact("org_a", "acme.test")...)

	eventtest.As(t, add(t, s, "org_b", "acme.test", "acme-2.test"), nil)
	s.Then(t, 2, fact("org_b", "acme-2.test")...)

	before := s.Fingerprint()
	eventtest.As(t, add(t, s, "org_c", "acme.test", "acme-2.test"), org.ErrDomainTaken)
	if s.Fingerprint() != before {
		t.Error("a refusal wrote something")
	}

	// REMOVED is final, but its name becomes free.
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.WasRemoved{})
	eventtest.As(t, add(t, s, "org_d", "acme.test"), nil)
	if o := eventtest.State(t, s, org.Kind, "org_d"); o.Org != "org_d" {
		t.Errorf("an organization owns itself, this one is owned by %q", o.Org)
	}
}

func TestAnOrganizationIsReadWithinItsPermit(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	for _, id := range []string{"org_active", "org_inactive", "org_removed"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	eventtest.Given(t, s, org.Kind, "org_inactive", "", nil, org.Deactivated{})
	eventtest.Given(t, s, org.Kind, "org_removed", "", nil, org.WasRemoved{})
	for id, found := range map[string]bool{"org_active": true, "org_inactive": true, "org_removed": false, "org_unknown": false, "../x": false, access.Installation: false} {
		t.Run(id, func(t *testing.T) {
			caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
			permit, err := caller.In(id, access.OrgRead)
			eventtest.As(t, err, nil)
			o, err := org.Get(t.Context(), s, permit)
			if found {
				eventtest.As(t, err, nil)
				if o == nil || o.ID != id {
					t.Errorf("got %+v", o)
				}
			} else {
				eventtest.As(t, err, org.ErrNotFound)
			}
		})
	}
}
