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

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var (
	stale = event.IfMatch{Set: true, Sequence: 99}
	moved = errs.New(errs.Aborted, event.SequenceMismatch, "")
)

// world has two organizations that both want wanted.test; taken.test is the second one's.
func world(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, org.Kind)
	eventtest.Given(t, s, org.Kind, "org_a", "org_a",
		[]event.Claim{org.DomainClaim("a.test"), org.DomainClaim("a2.test")}, org.Added{Name: "A", NameKey: "a"},
		org.DomainAdded{Domain: "a.test", Verified: true, Primary: true},
		org.DomainAdded{Domain: "a2.test", Verified: true}, org.DomainAdded{Domain: "wanted.test", Challenge: "aaa"})
	eventtest.Given(t, s, org.Kind, "org_b", "org_b",
		[]event.Claim{org.DomainClaim("b.test"), org.DomainClaim("taken.test")}, org.Added{Name: "B", NameKey: "b"},
		org.DomainAdded{Domain: "b.test", Verified: true, Primary: true},
		org.DomainAdded{Domain: "taken.test", Verified: true}, org.DomainAdded{Domain: "wanted.test", Challenge: "bbb"})
	eventtest.Given(t, s, org.Kind, "org_gone", "org_gone", nil, org.Added{Name: "Gone"}, org.WasRemoved{})
	return s
}

func holder(t *testing.T, s *eventtest.Store, domain string) string {
	t.Helper()
	id, err := s.Holder(t.Context(), org.DomainClaim(domain))
	eventtest.As(t, err, nil)
	return id
}

// prover is who has proven a domain by DNS.
func prover(t *testing.T, s *eventtest.Store, domain string) string {
	t.Helper()
	id, err := s.Holder(t.Context(), org.ProvenClaim(domain))
	eventtest.As(t, err, nil)
	return id
}

func names(o *event.Object[org.Org]) (all []string) {
	for _, d := range o.Data.Domains {
		all = append(all, d.Name)
	}
	return all
}

func TestANewDomainWaitsForItsProof(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	added, d, err := org.AddDomain(t.Context(), s,
		permitFor(t, "org_a", access.Memberships{"org_a": {access.OrgSettingsManager}}), event.IfMatch{},
		org.NewDomain{Name: "BÜCHER.test"})
	eventtest.As(t, err, nil)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(added.Challenge) {
		t.Errorf("challenge %q", added.Challenge)
	}
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_added.v1",
		Payload: `{"domain":"xn--bcher-kva.test","challenge":"` + added.Challenge + `"}`})
	o := eventtest.State(t, s, org.Kind, "org_a")
	if last := o.Data.Domains[3]; last != added || added.Verified || d != o.Details() {
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
	other, _, err := org.AddDomain(t.Context(), s, permit(t, "org_b"), event.IfMatch{},
		org.NewDomain{Name: "bücher.test"})
	eventtest.As(t, err, nil)
	if other.Challenge == added.Challenge {
		t.Error("two organizations got the same challenge")
	}
}

func TestADomainThatSomebodyVouchesForIsClaimedAtOnce(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	added, _, err := org.AddDomain(t.Context(), s,
		permitFor(t, "org_a", access.Memberships{access.Installation: {access.IAMOrgManager}}), event.IfMatch{},
		org.NewDomain{Name: "new.test", Verified: true})
	eventtest.As(t, err, nil)
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_added.v1",
		Payload: `{"domain":"new.test","verified":true}`})
	if holder(t, s, "new.test") != "org_a" || prover(t, s, "new.test") != "" || added.Proven {
		t.Errorf("%+v was added, %q holds it, %q has proven it", added, holder(t, s, "new.test"),
			prover(t, s, "new.test"))
	}
	if again := eventtest.State(t, s, org.Kind, "org_a").Data.Domains; again[len(again)-1] != added ||
		!regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(added.Challenge) {
		t.Errorf("%+v was added, and is %+v", added, again)
	}
}

// What somebody vouches for is proven like any other, by a record with a challenge of its own.
func TestADomainThatSomebodyVouchesForIsProvenByItsRecord(t *testing.T) {
	s := world(t)
	domains := eventtest.State(t, s, org.Kind, "org_a").Data.Domains
	name, value := domains[1].Record()
	if name != "_signet-challenge.a2.test" || value == "" || domains[0].Challenge == domains[1].Challenge {
		t.Fatalf("the record is %q %q, domains %+v", name, value, domains)
	}
	before := s.Fingerprint()
	_, err := org.VerifyDomain(t.Context(), s,
		&dns{texts: []string{"signet-domain-verification=" + domains[0].Challenge}}, permit(t, "org_a"),
		event.IfMatch{}, "a2.test")
	eventtest.As(t, err, org.ErrDomainNotProven)
	if s.Fingerprint() != before {
		t.Error("a refusal wrote something")
	}
	mark := s.Mark()
	_, err = org.VerifyDomain(t.Context(), s, &dns{texts: []string{value}}, permit(t, "org_a"),
		event.IfMatch{}, "a2.test")
	eventtest.As(t, err, nil)
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_verified.v1",
		Payload: `{"domain":"a2.test","proven":true}`})
	if d := eventtest.State(t, s, org.Kind,
		"org_a").Data.Domains[1]; d != (org.Domain{Name: "a2.test", Verified: true, Proven: true}) ||
		prover(t, s, "a2.test") != "org_a" {
		t.Errorf("got %+v, proven by %q", d, prover(t, s, "a2.test"))
	}
	_, err = org.RemoveDomain(t.Context(), s, permit(t, "org_a"), event.IfMatch{}, "a2.test")
	eventtest.As(t, err, nil)
	if holder(t, s, "a2.test")+prover(t, s, "a2.test") != "" {
		t.Error("a domain that was removed is still held")
	}
	// The old record proves nothing of the same domain once it was added again.
	_, _, err = org.AddDomain(t.Context(), s,
		permitFor(t, "org_a", access.Memberships{access.Installation: {access.IAMOrgManager}}), event.IfMatch{},
		org.NewDomain{Name: "a2.test", Verified: true})
	eventtest.As(t, err, nil)
	_, err = org.VerifyDomain(t.Context(), s, &dns{texts: []string{value}}, permit(t, "org_a"),
		event.IfMatch{}, "a2.test")
	eventtest.As(t, err, org.ErrDomainNotProven)
}

// The first events did not say whether DNS was asked: it was of domains that were not verified yet.
func TestWhatOlderEventsProve(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts []event.Fact[org.Org]
		want  bool
	}{
		{"vouched for", []event.Fact[org.Org]{org.DomainAdded{Domain: "x.test", Verified: true}}, false},
		{"verified after an addition that was not",
			[]event.Fact[org.Org]{org.DomainAdded{Domain: "x.test", Challenge: "ccc"},
				org.DomainVerified{Domain: "x.test"}}, true},
		{"verified again", []event.Fact[org.Org]{org.DomainAdded{Domain: "x.test", Challenge: "ccc"},
			org.DomainVerified{Domain: "x.test"}, org.DomainVerified{Domain: "x.test"}}, true},
		{"vouched for, and verified without a look at DNS",
			[]event.Fact[org.Org]{org.DomainAdded{Domain: "x.test", Verified: true},
				org.DomainVerified{Domain: "x.test"}}, false},
		{"proven once, then removed and vouched for",
			[]event.Fact[org.Org]{org.DomainAdded{Domain: "x.test", Challenge: "ccc"},
				org.DomainVerified{Domain: "x.test"},
				org.DomainRemoved{Domain: "x.test"}, org.DomainAdded{Domain: "x.test", Verified: true},
				org.DomainVerified{Domain: "x.test"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, org.Kind, "org_a", "",
				[]event.Claim{org.DomainClaim("x.test"), org.ProvenClaim("x.test")}, c.facts...)
			if d := eventtest.State(t, s, org.Kind, "org_a").Data.Domains[3]; d.Proven != c.want ||
				(prover(t, s, "x.test") == "org_a") != c.want || !d.Verified || (d.Challenge == "") != c.want {
				t.Errorf("got %+v, proven by %q", d, prover(t, s, "x.test"))
			}
		})
	}
}

func TestWhichDomainsCannotBeAdded(t *testing.T) {
	owner := permitFor(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	for _, c := range []struct {
		name    string
		permit  access.Permit
		match   event.IfMatch
		in      org.NewDomain
		refusal *errs.Error
	}{
		{"one that the organization has", owner, event.IfMatch{}, org.NewDomain{Name: "A2.test"}, org.ErrDomainExists},
		{"one that it waits to verify", owner, event.IfMatch{}, org.NewDomain{Name: "wanted.test"},
			org.ErrDomainExists},
		{"one that it waits to verify, with somebody's word", permit(t, "org_a"), event.IfMatch{},
			org.NewDomain{Name: "wanted.test", Verified: true}, org.ErrDomainExists},
		{"an owner cannot vouch", owner, event.IfMatch{}, org.NewDomain{Name: "new.test", Verified: true},
			org.ErrVouching},
		{"vouched for, but of another organization", permit(t, "org_a"), event.IfMatch{},
			org.NewDomain{Name: "taken.test", Verified: true}, org.ErrDomainTaken},
		{"of another organization: may be tried", owner, event.IfMatch{}, org.NewDomain{Name: "taken.test"}, nil},
		{"at another sequence", owner, stale, org.NewDomain{Name: "new.test"}, moved},
		{"the name comes before the sequence", owner, stale, org.NewDomain{Name: "a2.test"}, org.ErrDomainExists},
		{"the other organization comes before the sequence", permit(t, "org_a"), stale,
			org.NewDomain{Name: "taken.test", Verified: true}, org.ErrDomainTaken},
		{"of a removed organization", permit(t, "org_gone"), event.IfMatch{}, org.NewDomain{Name: "new.test"},
			org.ErrNotFound},
		{"of no organization", access.Permit{}, event.IfMatch{}, org.NewDomain{Name: "new.test"}, org.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, _, err := org.AddDomain(t.Context(), s, c.permit, c.match, c.in)
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
	_, _, err := org.AddDomain(t.Context(), world(t), owner, event.IfMatch{}, org.NewDomain{Name: "a b"})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "domain")
}

func TestAnOrganizationHasAtMostAHundredDomains(t *testing.T) {
	s := world(t)
	for i := len(eventtest.State(t, s, org.Kind, "org_a").Data.Domains); i < 100; i++ {
		_, _, err := org.AddDomain(t.Context(), s, permit(t, "org_a"), event.IfMatch{},
			org.NewDomain{Name: fmt.Sprintf("d%d.test", i)})
		eventtest.As(t, err, nil)
	}
	_, _, err := org.AddDomain(t.Context(), s, permit(t, "org_a"), stale, org.NewDomain{Name: "more.test"})
	eventtest.As(t, err, org.ErrTooManyDomains)
	_, err = org.RemoveDomain(t.Context(), s, permit(t, "org_a"), event.IfMatch{}, "d50.test")
	eventtest.As(t, err, nil)
	_, _, err = org.AddDomain(t.Context(), s, permit(t, "org_a"), event.IfMatch{}, org.NewDomain{Name: "more.test"})
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
	details, err := org.VerifyDomain(t.Context(), s, d, permit(t, "org_a"),
		event.IfMatch{Set: true, Sequence: 4}, "WANTED.test")
	eventtest.As(t, err, nil)
	s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: "org.domain_verified.v1",
		Payload: `{"domain":"wanted.test","proven":true}`})
	if !slices.Equal(d.asked, []string{"_signet-challenge.wanted.test."}) {
		t.Errorf("asked for %q", d.asked)
	}
	o := eventtest.State(t, s, org.Kind, "org_a")
	if o.Data.Domains[2] != (org.Domain{Name: "wanted.test", Verified: true, Proven: true}) ||
		prover(t, s, "wanted.test") != "org_a" || details != o.Details() || holder(t, s, "wanted.test") != "org_a" {
		t.Errorf("got %+v", o.Data.Domains)
	}

	// Once more it is an event, and needs no record.
	details, err = org.VerifyDomain(t.Context(), s, &dns{err: errors.New("asked")}, permit(t, "org_a"),
		event.IfMatch{}, "wanted.test")
	if err != nil || details.Sequence != 6 {
		t.Errorf("%+v, %v", details, err)
	}

	// Who comes second does not get it, whatever the proof; after the first gave it up, it is free.
	second := &dns{texts: []string{"signet-domain-verification=bbb"}}
	_, err = org.VerifyDomain(t.Context(), s, second, permit(t, "org_b"), event.IfMatch{}, "wanted.test")
	eventtest.As(t, err, org.ErrDomainTaken)
	_, err = org.RemoveDomain(t.Context(), s, permit(t, "org_a"), event.IfMatch{}, "wanted.test")
	eventtest.As(t, err, nil)
	_, err = org.VerifyDomain(t.Context(), s, second, permit(t, "org_b"), event.IfMatch{}, "wanted.test")
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
		{"no such name", "wanted.test", dns{err: &net.DNSError{Err: "no such host", IsNotFound: true}}, event.IfMatch{},
			org.ErrDomainNotProven, true},
		{"the record of another organization", "wanted.test", dns{texts: []string{"signet-domain-verification=bbb"}},
			event.IfMatch{}, org.ErrDomainNotProven, true},
		{"only a part of the record", "wanted.test",
			dns{texts: []string{"aaa", "signet-domain-verification=", "signet-domain-verification=aaaa",
				" signet-domain-verification=aaa"}}, event.IfMatch{}, org.ErrDomainNotProven, true},
		{"DNS does not answer", "wanted.test", dns{err: &net.DNSError{Err: "timeout", IsTimeout: true}},
			event.IfMatch{}, org.ErrDNSAway, true},
		{"DNS fails", "wanted.test", dns{texts: []string{"signet-domain-verification=aaa"}, err: errors.New("broken")},
			event.IfMatch{}, org.ErrDNSAway, true},
		{"a domain that the organization does not have", "b.test", dns{}, event.IfMatch{},
			org.ErrDomainNotFound, false},
		{"what is no domain", "a b", dns{}, event.IfMatch{}, org.ErrDomainNotFound, false},
		{"another sequence", "wanted.test", dns{texts: []string{"signet-domain-verification=aaa"}}, stale, moved, true},
		{"no record comes before another sequence", "wanted.test", dns{}, stale, org.ErrDomainNotProven, true},
		{"no record of one that somebody vouches for", "a2.test", dns{}, stale, org.ErrDomainNotProven, true},
		{"another sequence of one that is proven", "proven.test", dns{}, stale, moved, false},
		{"a label that DNS cannot have", long, dns{texts: []string{"signet-domain-verification=ccc"}}, event.IfMatch{},
			org.ErrDomainNotProven, false},
		{"a domain of an event without a challenge", "old.test", dns{texts: []string{"signet-domain-verification="}},
			event.IfMatch{}, org.ErrDomainNotProven, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, org.Kind, "org_a", "",
				[]event.Claim{org.DomainClaim("proven.test"), org.ProvenClaim("proven.test")},
				org.DomainAdded{Domain: long, Challenge: "ccc"},
				org.DomainAdded{Domain: "old.test"}, org.DomainAdded{Domain: "proven.test", Challenge: "ddd"},
				org.DomainVerified{Domain: "proven.test"})
			before := s.Fingerprint()
			_, err := org.VerifyDomain(t.Context(), s, &c.dns, permit(t, "org_a"), c.match, c.domain)
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
			if asked := len(c.dns.asked) > 0; asked != c.asked {
				t.Errorf("asked DNS for %q", c.dns.asked)
			}
			e, _ := errors.AsType[*errs.Error](err)
			if c.domain == "wanted.test" && e.Reason == org.DomainNotProven &&
				!(strings.Contains(e.Message, "_signet-challenge.wanted.test") &&
					strings.Contains(e.Message, "signet-domain-verification=aaa")) {
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
		strings.Repeat("x", 64): false, "a..test": false, ".test": false, "a\\b.test": false,
		"ä\u200d\uffff.test": false,
		strings.Repeat(strings.Repeat("x", 60)+".", 4) + "test": false,
	} {
		t.Run(domain, func(t *testing.T) {
			s, d := world(t), &dns{}
			form, problem := syntax.Domain(domain) // which may be longer than what can be typed
			if problem != nil {
				t.Fatal(problem)
			}
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainAdded{Domain: form, Challenge: "ddd"})
			_, err := org.VerifyDomain(t.Context(), s, d, permit(t, "org_a"), event.IfMatch{}, domain)
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
		{"the caller may no longer", nil,
			func(*testing.T) (access.Permit, error) { return access.Permit{}, access.ErrDenied }, access.ErrDenied},
		{"the domain is removed", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainRemoved{Domain: "wanted.test"})
		}, nil, org.ErrDomainNotFound},
		{"it gets another challenge", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.DomainRemoved{Domain: "wanted.test"},
				org.DomainAdded{Domain: "wanted.test", Challenge: "zzz"})
		}, nil, org.ErrDomainNotProven},
		{"another organization is faster", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_b", "",
				[]event.Claim{org.DomainClaim("wanted.test"), org.ProvenClaim("wanted.test")},
				org.DomainVerified{Domain: "wanted.test"})
		}, nil, org.ErrDomainTaken},
		{"a twin is faster", func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "",
				[]event.Claim{org.DomainClaim("wanted.test"), org.ProvenClaim("wanted.test")},
				org.DomainVerified{Domain: "wanted.test"})
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
			}}, p, event.IfMatch{}, "wanted.test")
			eventtest.As(t, err, c.refusal)
		})
	}
	// Who gives up waiting is not told that DNS is away.
	ctx, cancel := context.WithCancel(t.Context())
	_, err := org.VerifyDomain(ctx, world(t), &dns{err: context.Canceled, do: func(context.Context) { cancel() }},
		permit(t, "org_a"), event.IfMatch{}, "wanted.test")
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
			d, err := org.SetPrimaryDomain(t.Context(), s, permit(t, c.org), c.match, c.domain)
			eventtest.As(t, err, c.primary)
			if wrote := s.Fingerprint() != before; wrote != (c.primary == nil) {
				t.Errorf("wrote: %t", wrote)
			}
			if c.primary == nil {
				o := eventtest.State(t, s, org.Kind, c.org)
				if o.Data.PrimaryDomain() != strings.ToLower(c.domain) || len(o.Data.Domains) != 3 ||
					d != o.Details() || d.Sequence != 5 {
					t.Errorf("got %q", names(o))
				}
			}

			s = world(t)
			before = s.Fingerprint()
			d, err = org.RemoveDomain(t.Context(), s, permit(t, c.org), c.match, c.domain)
			eventtest.As(t, err, c.leave)
			if wrote := s.Fingerprint() != before; wrote != (c.leave == nil) {
				t.Errorf("wrote: %t", wrote)
			}
			if c.leave == nil {
				o := eventtest.State(t, s, org.Kind, c.org)
				if slices.Contains(names(o), strings.ToLower(c.domain)) || len(o.Data.Domains) != 2 ||
					d != o.Details() || holder(t, s, strings.ToLower(c.domain)) != "" {
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
		{"who manages organizations", access.Memberships{access.Installation: manager}, "a2.test",
			org.ErrReleaseDenied},
		{"the same, under another spelling", access.Memberships{access.Installation: manager}, "A2.TEST",
			org.ErrReleaseDenied},
		{"the same, one that is not verified", access.Memberships{access.Installation: manager}, "wanted.test", nil},
		{"the same, the primary one", access.Memberships{access.Installation: manager}, "a.test", org.ErrReleaseDenied},
		{"who owns the one that wants it", access.Memberships{access.Installation: manager, "org_b": {access.OrgOwner}},
			"a2.test", org.ErrReleaseDenied},
		{"who manages settings here, too",
			access.Memberships{access.Installation: manager, "org_a": {access.OrgSettingsManager}}, "a2.test", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, err := org.RemoveDomain(t.Context(), s, permitFor(t, "org_a", c.holds), event.IfMatch{}, c.domain)
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
}
