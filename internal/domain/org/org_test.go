package org_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhatHappensToAnOrganizationFoldsIntoItsState(t *testing.T) {
	added := org.Added{Name: "Acme"}
	domain := func(name string, verified, primary bool) org.DomainAdded {
		return org.DomainAdded{Domain: name, Verified: verified, Primary: primary}
	}
	challenged := org.DomainAdded{Domain: "b.example", Challenge: "c0ffee"}
	for _, c := range []struct {
		name  string
		facts []event.Fact[org.Org]
		want  string
	}{
		{"a new one is active", []event.Fact[org.Org]{added}, `{"state":"active","name":"Acme"}`},
		{"domains keep their order",
			[]event.Fact[org.Org]{added, domain("a.example", true, true), domain("b.example", false, false)},
			`{"state":"active","name":"Acme","domains":[{"name":"a.example","verified":true},{"name":"b.example"}]}`},
		{"a primary domain comes first",
			[]event.Fact[org.Org]{added, domain("a.example", true, true), domain("b.example", true, true)},
			`{"state":"active","name":"Acme","domains":[{"name":"b.example","verified":true},{"name":"a.example","verified":true}]}`},
		{"another name", []event.Fact[org.Org]{added, org.Renamed{Name: new("Ümit"), NameKey: new("ümit")}},
			`{"state":"active","name":"Ümit","nameKey":"ümit"}`},
		{"a new name that is none", []event.Fact[org.Org]{added, org.Renamed{}}, `{"state":"active","name":"Acme"}`},
		{"a domain that is verified needs no challenge any more",
			[]event.Fact[org.Org]{added, domain("a.example", true, true), challenged,
				org.DomainVerified{Domain: "b.example"}},
			`{"state":"active","name":"Acme","domains":[{"name":"a.example","verified":true},{"name":"b.example","verified":true,"proven":true}]}`},
		{"another primary domain",
			[]event.Fact[org.Org]{added, domain("a.example", true, true), domain("b.example", true, false),
				domain("c.example", true, false), org.PrimaryDomainSet{Domain: "c.example"}},
			`{"state":"active","name":"Acme","domains":[{"name":"c.example","verified":true},{"name":"a.example","verified":true},{"name":"b.example","verified":true}]}`},
		{"a domain less", []event.Fact[org.Org]{added, domain("a.example", true, true), challenged,
			org.DomainRemoved{Domain: "b.example"}},
			`{"state":"active","name":"Acme","domains":[{"name":"a.example","verified":true}]}`},
		{"what is said of other domains changes nothing",
			[]event.Fact[org.Org]{added, challenged, org.DomainVerified{Domain: "x"}, org.PrimaryDomainSet{Domain: "x"},
				org.DomainRemoved{Domain: "x"}},
			`{"state":"active","name":"Acme","domains":[{"name":"b.example","challenge":"c0ffee"}]}`},
		{"deactivating starts a new epoch", []event.Fact[org.Org]{added, org.Deactivated{}},
			`{"state":"inactive","epoch":1,"name":"Acme"}`},
		{"reactivating does not go back to the old epoch",
			[]event.Fact[org.Org]{added, org.Deactivated{}, org.Reactivated{}},
			`{"state":"active","epoch":1,"name":"Acme"}`},
		{"every deactivation counts",
			[]event.Fact[org.Org]{added, org.Deactivated{}, org.Reactivated{}, org.Deactivated{}},
			`{"state":"inactive","epoch":2,"name":"Acme"}`},
		{"a removed one has no name, no domain and a new epoch",
			[]event.Fact[org.Org]{added, domain("a.example", true, true), org.WasRemoved{}},
			`{"state":"removed","epoch":1,"name":""}`},
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
		{"the primary domain first",
			[]org.Domain{{Name: "a.example", Verified: true}, {Name: "b.example", Verified: true}}, "a.example",
			[]string{"jo@a.example", "jo@b.example"}},
		{"none for a domain that is not verified",
			[]org.Domain{{Name: "a.example", Verified: true}, {Name: "b.example"}}, "a.example",
			[]string{"jo@a.example"}},
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
	return s.Do(t.Context(), event.Command{
		Write:  []event.Ref{org.Kind.Ref(id)},
		Claims: claims,
		Decide: func(tx *event.Tx) error {
			_, err := org.Add(tx, id, "Acme", candidates)
			return err
		},
	})
}

func TestAddTakesTheFirstFreeDomain(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	fact := func(id, domain string) []eventtest.Fact {
		return []eventtest.Fact{
			{Object: id, Type: "org.added.v1", Payload: `{"name":"Acme","nameKey":"acme"}`},
			{Object: id, Type: "org.domain_added.v1",
				Payload: `{"domain":"` + domain + `","verified":true,"primary":true}`},
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
	for id, found := range map[string]bool{"org_active": true, "org_inactive": true, "org_removed": false,
		"org_unknown": false, "../x": false, access.Installation: false} {
		t.Run(id, func(t *testing.T) {
			caller := &access.Caller{UserID: "usr_iam",
				Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
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

// permit is that of an owner of the installation.
func permit(t *testing.T, scope string) access.Permit {
	t.Helper()
	return permitFor(t, scope, access.Memberships{access.Installation: {access.IAMOwner}})
}

func permitFor(t *testing.T, scope string, m access.Memberships) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_a", Memberships: m}).In(scope, access.DomainRead)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRenamingRecordsWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		name, to, payload string
	}{
		{"another name", "Acme GmbH", `{"name":"Acme GmbH","nameKey":"acme gmbh"}`},
		{"another spelling", "ACME", `{"name":"ACME"}`},
		{"nothing differs: an event without content", "Acme", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, org.Kind)
			eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "Acme", NameKey: "acme"})
			mark := s.Mark()
			d, err := org.Rename(t.Context(), s, permit(t, "org_a"), event.IfMatch{Set: true, Sequence: 1}, c.to)
			eventtest.As(t, err, nil)
			s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.renamed.v1", Payload: c.payload})
			if o := eventtest.State(t, s, org.Kind, "org_a"); o.Data.Name != c.to || d != o.Details() ||
				d.Sequence != 2 {
				t.Errorf("got %+v, details %+v", o.Data, d)
			}
		})
	}
}

func TestWhatCannotBeRenamed(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "Acme"})
	eventtest.Given(t, s, org.Kind, "org_gone", "org_gone", nil, org.Added{Name: "Gone"}, org.WasRemoved{})
	before := s.Fingerprint()
	for _, c := range []struct {
		name, id string
		match    event.IfMatch
		refusal  *errs.Error
	}{
		{"one that moved on", "org_a", event.IfMatch{Set: true, Sequence: 2},
			errs.New(errs.Aborted, event.SequenceMismatch, "")},
		{"a removed one", "org_gone", event.IfMatch{}, org.ErrNotFound},
		{"a removed one that moved on", "org_gone", event.IfMatch{Set: true, Sequence: 9}, org.ErrNotFound},
		{"an unknown one", "org_x", event.IfMatch{}, org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := org.Rename(t.Context(), s, permit(t, c.id), c.match, "New")
			eventtest.As(t, err, c.refusal)
		})
	}
	if s.Fingerprint() != before {
		t.Error("a refusal wrote something")
	}
}

func TestOrganizationsAreListedByNameDomainAndState(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	given := func(id, name string, key string, facts ...event.Fact[org.Org]) {
		t.Helper()
		facts = append([]event.Fact[org.Org]{org.Added{Name: name, NameKey: key},
			org.DomainAdded{Domain: id + ".test", Verified: true, Primary: true},
			org.DomainAdded{Domain: "wanted.test", Challenge: "x"}}, facts...)
		eventtest.Given(t, s, org.Kind, id, id, []event.Claim{org.DomainClaim(id + ".test")}, facts...)
	}
	given("org_1", "Zebra", "zebra")
	given("org_2", "ACME", "") // from before keys were recorded
	given("org_3", "Acme Two", "acme two", org.Deactivated{})
	given("org_4", "Acme Gone", "acme gone", org.WasRemoved{})
	for _, c := range []struct {
		name   string
		filter org.Filter
		want   []string
	}{
		{"all, the oldest first", org.Filter{}, []string{"org_1", "org_2", "org_3"}},
		{"by the beginning of the name, whatever its case", org.Filter{Name: "aCmE"}, []string{"org_2", "org_3"}},
		{"by name and state", org.Filter{Name: "acme", State: org.Inactive}, []string{"org_3"}},
		{"by state", org.Filter{State: org.Active}, []string{"org_1", "org_2"}},
		{"by domain, whatever its case", org.Filter{Domain: "ORG_1.Test"}, []string{"org_1"}},
		{"by domain and name", org.Filter{Domain: "org_2.test", Name: "Ac"}, []string{"org_2"}},
		{"by domain and another name", org.Filter{Domain: "org_2.test", Name: "Ze"}, nil},
		{"by domain and state", org.Filter{Domain: "org_3.test", State: org.Inactive}, []string{"org_3"}},
		{"by domain and another state", org.Filter{Domain: "org_3.test", State: org.Active}, nil},
		{"a part of a domain", org.Filter{Domain: "test"}, nil},
		{"a domain that nobody has verified", org.Filter{Domain: "wanted.test"}, nil},
		{"a domain of one that is gone", org.Filter{Domain: "org_4.test"}, nil},
		{"what is no domain", org.Filter{Domain: "a b"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := eventtest.IDs(t, func(after event.Cursor) ([]*event.Object[org.Org], *event.Cursor, error) {
				return org.List(t.Context(), s, permit(t, access.Installation), c.filter, after, 1)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, _, err := org.List(t.Context(), s, permit(t, "org_1"), org.Filter{}, event.Cursor{}, 10)
	eventtest.As(t, err, access.ErrDenied)
}

func TestOnesOwnOrganizationComesWithTheCredential(t *testing.T) {
	s := eventtest.New(t, org.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Added{Name: "Acme"})
	record, err := s.Record(t.Context(), org.Kind.Ref("org_a"))
	eventtest.As(t, err, nil)
	mine, err := org.Mine(t.Context(), nil, &access.Caller{OrgID: "org_a", Org: record}) // nothing to read from
	eventtest.As(t, err, nil)
	if mine.ID != "org_a" || mine.Data.Name != "Acme" {
		t.Errorf("got %+v", mine)
	}
	_, err = org.Mine(t.Context(), s, &access.Caller{OrgID: "org_x"})
	eventtest.As(t, err, org.ErrNotFound)
}
