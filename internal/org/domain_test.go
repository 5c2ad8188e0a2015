package org_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/eventtest"
	"github.com/signet-idm/signet/internal/org"
)

var (
	stale = event.IfMatch{Set: true, Sequence: 99}
	moved = errs.New(errs.Aborted, event.SequenceMismatch, "")
)

// world has two organizations that both want wanted.test; taken.test is the second one's.
func world(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, org.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a", []event.Claim{org.DomainClaim("a.test"), org.DomainClaim("a2.test")}, org.Added{Name: "A", NameKey: "a"},
		org.DomainAdded{Domain: "a.test", Verified: true, Primary: true}, org.DomainAdded{Domain: "a2.test", Verified: true}, org.DomainAdded{Domain: "wanted.test", Challenge: "aaa"})
	eventtest.Given(t, s, org.Kind, "org_b", "org_b", []event.Claim{org.DomainClaim("b.test"), org.DomainClaim("taken.test")}, org.Added{Name: "B", NameKey: "b"},
		org.DomainAdded{Domain: "b.test", Verified: true, Primary: true}, org.DomainAdded{Domain: "taken.test", Verified: true}, org.DomainAdded{Domain: "wanted.test", Challenge: "bbb"})
	eventtest.Given(t, s, org.Kind, "org_gone", "org_gone", nil, org.Added{Name: "Gone"}, org.WasRemoved{})
	return s
}

func holder(t *testing.T, s *eventtest.Store, domain string) string {
	t.Helper()
	id, err := s.Holder(t.Context(), org.DomainClaim(domain))
	eventtest.As(t, err, nil)
	return id
}

func names(o *event.Object[org.Org]) (all []string) {
	for _, d := range o.State.Domains {
		all = append(all, d.Name)
	}
	return all
}

func TestANewDomainWaitsForItsProof(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	added, d, err := org.AddDomain(t.Context(), s, permitFor(t, "org_a", access.Memberships{"org_a": {access.OrgSettingsManager}}), org.NewDomain{Name: "BÜCHER.test"})
	eventtest.As(t, err, nil)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(added.Challenge) {
		t.Errorf("challenge %q", added.Challenge)
	}
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_added.v1", Payload: `{"domain":"xn--bcher-kva.test","challenge":"` + added.Challenge + `"}`})
	o := eventtest.State(t, s, org.Kind, "org_a")
	if last := o.State.Domains[3]; last != added || added.Verified || d != o.Details() {
		t.Errorf("%+v was added, %+v is there", added, last)
	}
	if holder(t, s, "xn--bcher-kva.test") != "" {
		t.Error("a domain that is not verified claims its name")
	}
	name, value := added.Record()
	if name != "_signet-challenge.xn--bcher-kva.test" || value != "signet-domain-verification="+added.Challenge {
		t.Errorf("record %q %q", name, value)
	}

	// Each organization has a challenge of its own, also for the same domain.
	other, _, err := org.AddDomain(t.Context(), s, permit(t, "org_b"), org.NewDomain{Name: "bücher.test"})
	eventtest.As(t, err, nil)
	if other.Challenge == added.Challenge {
		t.Error("two organizations got the same challenge")
	}
}

func TestADomainThatSomebodyVouchesForIsClaimedAtOnce(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	added, _, err := org.AddDomain(t.Context(), s, permitFor(t, "org_a", access.Memberships{access.Installation: {access.IAMOrgManager}}), org.NewDomain{Name: "new.test", Verified: true})
	eventtest.As(t, err, nil)
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_added.v1", Payload: `{"domain":"new.test","verified":true}`})
	if name, value := added.Record(); name+value != "" || holder(t, s, "new.test") != "org_a" {
		t.Errorf("%+v was added, %q holds it", added, holder(t, s, "new.test"))
	}
}

func TestWhichDomainsCannotBeAdded(t *testing.T) {
	owner := permitFor(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	for _, c := range []struct {
		name    string
		permit  access.Permit
		in      org.NewDomain
		refusal *errs.Error
	}{
		{"one that the organization has", owner, org.NewDomain{Name: "A2.test"}, org.ErrDomainExists},
		{"one that it waits to verify", owner, org.NewDomain{Name: "wanted.test"}, org.ErrDomainExists},
		{"one that it waits to verify, with somebody's word", permit(t, "org_a"), org.NewDomain{Name: "wanted.test", Verified: true}, org.ErrDomainExists},
		{"an owner cannot vouch", owner, org.NewDomain{Name: "new.test", Verified: true}, org.ErrVouching},
		{"vouched for, but of another organization", permit(t, "org_a"), org.NewDomain{Name: "taken.test", Verified: true}, org.ErrDomainTaken},
		{"of another organization: may be tried", owner, org.NewDomain{Name: "taken.test"}, nil},
		{"at another sequence", owner, org.NewDomain{Name: "new.test", IfMatch: stale}, moved},
		{"the sequence comes before the name", owner, org.NewDomain{Name: "a2.test", IfMatch: stale}, moved},
		{"of a removed organization", permit(t, "org_gone"), org.NewDomain{Name: "new.test"}, org.ErrNotFound},
		{"of no organization", access.Permit{}, org.NewDomain{Name: "new.test"}, org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, _, err := org.AddDomain(t.Context(), s, c.permit, c.in)
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
	_, _, err := org.AddDomain(t.Context(), world(t), owner, org.NewDomain{Name: "a b"})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "domain")
}

func TestAnOrganizationHasAtMostAHundredDomains(t *testing.T) {
	s := world(t)
	for i := len(eventtest.State(t, s, org.Kind, "org_a").State.Domains); i < 100; i++ {
		_, _, err := org.AddDomain(t.Context(), s, permit(t, "org_a"), org.NewDomain{Name: fmt.Sprintf("d%d.test", i)})
		eventtest.As(t, err, nil)
	}
	_, _, err := org.AddDomain(t.Context(), s, permit(t, "org_a"), org.NewDomain{Name: "more.test", IfMatch: stale})
	eventtest.As(t, err, org.ErrTooManyDomains)
	_, err = org.RemoveDomain(t.Context(), s, permit(t, "org_a"), "d50.test", event.IfMatch{})
	eventtest.As(t, err, nil)
	_, _, err = org.AddDomain(t.Context(), s, permit(t, "org_a"), org.NewDomain{Name: "more.test"})
	eventtest.As(t, err, nil)
}

// dns answers every question the same, and remembers the questions.
type dns struct {
	texts []string
	err   error
	do    func(ctx context.Context)
	asked []string
}

func (d *dns) LookupTXT(ctx context.Context, name string) ([]string, error) {
	d.asked = append(d.asked, name)
	if d.do != nil {
		d.do(ctx)
	}
	return d.texts, d.err
}

func TestADomainIsVerifiedByItsRecord(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	d := &dns{texts: []string{"v=spf1 -all", "signet-domain-verification=aaa"}, do: func(ctx context.Context) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > 5*time.Second {
			t.Errorf("DNS has until %v", until)
		}
	}}
	details, err := org.VerifyDomain(t.Context(), s, d, permit(t, "org_a"), "WANTED.test", event.IfMatch{Set: true, Sequence: 4})
	eventtest.As(t, err, nil)
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_verified.v1", Payload: `{"domain":"wanted.test"}`})
	if !slices.Equal(d.asked, []string{"_signet-challenge.wanted.test."}) {
		t.Errorf("asked for %q", d.asked)
	}
	o := eventtest.State(t, s, org.Kind, "org_a")
	if o.State.Domains[2] != (org.Domain{Name: "wanted.test", Verified: true}) || details != o.Details() || holder(t, s, "wanted.test") != "org_a" {
		t.Errorf("got %+v", o.State.Domains)
	}

	// Once more it is an event, and needs no record.
	details, err = org.VerifyDomain(t.Context(), s, &dns{err: errors.New("asked")}, permit(t, "org_a"), "wanted.test", event.IfMatch{})
	if err != nil || details.Sequence != 6 {
		t.Errorf("%+v, %v", details, err)
	}

	// Who comes second does not get it, whatever the proof; after the first gave it up, it is free.
	second := &dns{texts: []string{"signet-domain-verification=bbb"}}
	_, err = org.VerifyDomain(t.Context(), s, second, permit(t, "org_b"), "wanted.test", event.IfMatch{})
	eventtest.As(t, err, org.ErrDomainTaken)
	_, err = org.RemoveDomain(t.Context(), s, permit(t, "org_a"), "wanted.test", event.IfMatch{})
	eventtest.As(t, err, nil)
	_, err = org.VerifyDomain(t.Context(), s, second, permit(t, "org_b"), "wanted.test", event.IfMatch{})
	eventtest.As(t, err, nil)
}

func TestWhatDoesNotVerifyADomain(t *testing.T) {
	long := strings.Repeat("x", 64) + ".test"
	for _, c := range []struct {
		name    string
		domain  string
		dns     dns
		match   event.IfMatch
		refusal *errs.Error
		asked   bool
	}{
		{"no record", "wanted.test", dns{}, event.IfMatch{}, org.ErrDomainNotProven, true},
		{"no such name", "wanted.test", dns{err: &net.DNSError{Err: "no such host", IsNotFound: true}}, event.IfMatch{}, org.ErrDomainNotProven, true},
		{"the record of another organization", "wanted.test", dns{texts: []string{"signet-domain-verification=bbb"}}, event.IfMatch{}, org.ErrDomainNotProven, true},
		{"only a part of the record", "wanted.test", dns{texts: []string{"aaa", "signet-domain-verification=", "signet-domain-verification=aaaa", " signet-domain-verification=aaa"}}, event.IfMatch{}, org.ErrDomainNotProven, true},
		{"DNS does not answer", "wanted.test", dns{err: &net.DNSError{Err: "timeout", IsTimeout: true}}, event.IfMatch{}, org.ErrDNSAway, true},
		{"DNS fails", "wanted.test", dns{texts: []string{"signet-domain-verification=aaa"}, err: errors.New("broken")}, event.IfMatch{}, org.ErrDNSAway, true},
		{"a domain that the organization does not have", "b.test", dns{}, event.IfMatch{}, org.ErrDomainNotFound, false},
		{"what is no domain", "a b", dns{}, event.IfMatch{}, org.ErrDomainNotFound, false},
		{"another sequence", "wanted.test", dns{}, stale, moved, false},
		{"another sequence of one that is verified", "a2.test", dns{}, stale, moved, false},
		{"a label that DNS cannot have", long, dns{texts: []string{"signet-domain-verification=ccc"}}, event.IfMatch{}, org.ErrDomainNotProven, false},
		{"a domain of an event without a challenge", "old.test", dns{texts: []string{"signet-domain-verification="}}, event.IfMatch{}, org.ErrDomainNotProven, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainAdded{Domain: long, Challenge: "ccc"}, org.DomainAdded{Domain: "old.test"})
			before := s.Fingerprint()
			_, err := org.VerifyDomain(t.Context(), s, &c.dns, permit(t, "org_a"), c.domain, c.match)
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
			if asked := len(c.dns.asked) > 0; asked != c.asked {
				t.Errorf("asked DNS for %q", c.dns.asked)
			}
			e, _ := errors.AsType[*errs.Error](err)
			if c.domain == "wanted.test" && e.Reason == org.DomainNotProven && !(strings.Contains(e.Message, "_signet-challenge.wanted.test") && strings.Contains(e.Message, "signet-domain-verification=aaa")) {
				t.Errorf("it does not say what to do: %s", e.Message)
			}
			if e.Kind == errs.Unavailable && e.RetryAfter <= 0 {
				t.Error("it does not say when to try again")
			}
			if strings.Contains(err.Error(), "bbb") || strings.Contains(err.Error(), "broken") {
				t.Errorf("it repeats what DNS said: %v", err)
			}
		})
	}
}

func TestNamesThatDNSCannotHaveAreNotLookedUp(t *testing.T) {
	for domain, asked := range map[string]bool{
		"a-b_c.9.test": true, "test.": true, strings.Repeat("x", 63): true, strings.Repeat("x.", 100) + "xx": true,
		strings.Repeat("x", 64): false, "a..test": false, ".test": false, "a\\b.test": false, "ä\u200d\uffff.test": false,
		strings.Repeat(strings.Repeat("x", 60)+".", 4) + "test": false,
	} {
		t.Run(domain, func(t *testing.T) {
			s, d := world(t), &dns{}
			_, _, err := org.AddDomain(t.Context(), s, permit(t, "org_a"), org.NewDomain{Name: domain})
			eventtest.As(t, err, nil)
			_, err = org.VerifyDomain(t.Context(), s, d, permit(t, "org_a"), domain, event.IfMatch{})
			eventtest.As(t, err, org.ErrDomainNotProven)
			if (len(d.asked) > 0) != asked {
				t.Errorf("asked for %q", d.asked)
			}
			if asked && (!strings.HasSuffix(d.asked[0], ".") || strings.HasSuffix(d.asked[0], "..")) {
				t.Errorf("asked for %q, which is not the whole name", d.asked)
			}
		})
	}
}

func TestWhatHappensWhileDNSAnswersCounts(t *testing.T) {
	proof := []string{"signet-domain-verification=aaa"}
	for _, c := range []struct {
		name    string
		during  func(t *testing.T, s *eventtest.Store)
		permit  func(t *testing.T) (access.Permit, error)
		refusal *errs.Error
	}{
		{"nothing", nil, nil, nil},
		{"the caller may no longer", nil, func(*testing.T) (access.Permit, error) { return access.Permit{}, access.ErrDenied }, access.ErrDenied},
		{"the domain is removed", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainRemoved{Domain: "wanted.test"})
		}, nil, org.ErrDomainNotFound},
		{"it gets another challenge", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainRemoved{Domain: "wanted.test"}, org.DomainAdded{Domain: "wanted.test", Challenge: "zzz"})
		}, nil, org.ErrDomainNotProven},
		{"another organization is faster", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_b", "", []event.Claim{org.DomainClaim("wanted.test")}, org.DomainVerified{Domain: "wanted.test"})
		}, nil, org.ErrDomainTaken},
		{"a twin is faster", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", []event.Claim{org.DomainClaim("wanted.test")}, org.DomainVerified{Domain: "wanted.test"})
		}, nil, nil},
		{"the organization is removed", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.WasRemoved{})
		}, nil, org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			p := permit(t, "org_a")
			if c.permit != nil {
				p = p.Renewing(func(context.Context) (access.Permit, error) { return c.permit(t) })
			}
			_, err := org.VerifyDomain(t.Context(), s, &dns{texts: proof, do: func(context.Context) {
				if c.during != nil {
					c.during(t, s)
				}
			}}, p, "wanted.test", event.IfMatch{})
			eventtest.As(t, err, c.refusal)
		})
	}
	// Who gives up waiting is not told that DNS is away.
	ctx, cancel := context.WithCancel(t.Context())
	_, err := org.VerifyDomain(ctx, world(t), &dns{err: context.Canceled, do: func(context.Context) { cancel() }}, permit(t, "org_a"), "wanted.test", event.IfMatch{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestThePrimaryDomainIsAVerifiedOneAndStays(t *testing.T) {
	for _, c := range []struct {
		name           string
		org, domain    string
		match          event.IfMatch
		primary, leave *errs.Error
	}{
		{"a verified one", "org_a", "A2.test", event.IfMatch{Set: true, Sequence: 4}, nil, nil},
		{"the primary one", "org_a", "a.test", event.IfMatch{}, nil, org.ErrDomainIsPrimary},
		{"one that is not verified", "org_a", "wanted.test", event.IfMatch{}, org.ErrDomainNotVerified, nil},
		{"the state comes before the sequence", "org_a", "wanted.test", stale, org.ErrDomainNotVerified, moved},
		{"the primary one, and another sequence", "org_a", "a.test", stale, moved, org.ErrDomainIsPrimary},
		{"of another organization", "org_a", "b.test", event.IfMatch{}, org.ErrDomainNotFound, org.ErrDomainNotFound},
		{"what is no domain", "org_a", "@", stale, org.ErrDomainNotFound, org.ErrDomainNotFound},
		{"of an organization that is gone", "org_gone", "a.test", event.IfMatch{}, org.ErrNotFound, org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			d, err := org.SetPrimaryDomain(t.Context(), s, permit(t, c.org), c.domain, c.match)
			eventtest.As(t, err, c.primary)
			if wrote := s.Fingerprint() != before; wrote != (c.primary == nil) {
				t.Errorf("wrote: %t", wrote)
			}
			if c.primary == nil {
				o := eventtest.State(t, s, org.Kind, c.org)
				if o.State.PrimaryDomain() != strings.ToLower(c.domain) || len(o.State.Domains) != 3 || d != o.Details() || d.Sequence != 5 {
					t.Errorf("got %q", names(o))
				}
			}

			s = world(t)
			before = s.Fingerprint()
			d, err = org.RemoveDomain(t.Context(), s, permit(t, c.org), c.domain, c.match)
			eventtest.As(t, err, c.leave)
			if wrote := s.Fingerprint() != before; wrote != (c.leave == nil) {
				t.Errorf("wrote: %t", wrote)
			}
			if c.leave == nil {
				o := eventtest.State(t, s, org.Kind, c.org)
				if slices.Contains(names(o), strings.ToLower(c.domain)) || len(o.State.Domains) != 2 || d != o.Details() || holder(t, s, strings.ToLower(c.domain)) != "" {
					t.Errorf("got %q", names(o))
				}
			}
		})
	}
}

func TestAVerifiedDomainIsForItsOrganizationToGiveUp(t *testing.T) {
	manager := []access.Role{access.IAMOrgManager}
	for _, c := range []struct {
		name    string
		holds   access.Memberships
		domain  string
		refusal *errs.Error
	}{
		{"an owner of it", access.Memberships{"org_a": {access.OrgOwner}}, "a2.test", nil},
		{"who manages its settings", access.Memberships{"org_a": {access.OrgSettingsManager}}, "A2.test", nil},
		{"an owner of everything", access.Memberships{access.Installation: {access.IAMOwner}}, "a2.test", nil},
		{"who manages organizations", access.Memberships{access.Installation: manager}, "a2.test", org.ErrReleaseDenied},
		{"the same, under another spelling", access.Memberships{access.Installation: manager}, "A2.TEST", org.ErrReleaseDenied},
		{"the same, one that is not verified", access.Memberships{access.Installation: manager}, "wanted.test", nil},
		{"the same, the primary one", access.Memberships{access.Installation: manager}, "a.test", org.ErrReleaseDenied},
		{"who owns the one that wants it", access.Memberships{access.Installation: manager, "org_b": {access.OrgOwner}}, "a2.test", org.ErrReleaseDenied},
		{"who manages settings here, too", access.Memberships{access.Installation: manager, "org_a": {access.OrgSettingsManager}}, "a2.test", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, err := org.RemoveDomain(t.Context(), s, permitFor(t, "org_a", c.holds), c.domain, event.IfMatch{})
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
}
