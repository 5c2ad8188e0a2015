package org

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// maxDomains is how many domains an organization can have.
const maxDomains = 100

// Domain is a domain of an organization, in the form it is compared in.
type Domain struct {
	Name     string `json:"name"`
	Verified bool   `json:"verified,omitempty"`
	// by DNS: one that is verified may be so on the word of an administrator of the installation
	Proven    bool   `json:"proven,omitempty"`
	Challenge string `json:"challenge,omitempty"` // what the record that proves it has to hold; empty once it is proven
	// Routed says by whose word people of the domain are led to the organization's provider though DNS has not proven
	// it; nil: by nobody's. It is replaced, never altered.
	Routed *Routing `json:"routed,omitempty"`
}

// Routing is somebody's word that people of a domain are to be led to the organization's identity provider.
type Routing struct {
	By string `json:"by"`
	At int64  `json:"at"`
}

// Routes tells whether people who type a name of the domain are led to the organization's identity provider.
func (d Domain) Routes() bool { return d.Proven || d.Verified && d.Routed != nil }

// Routes tells whether the organization has a domain that leads people to its identity provider.
func (o *Org) Routes() bool { return slices.ContainsFunc(o.Domains, Domain.Routes) }

// PrimaryDomain is the one login names are shown with; empty when there is none.
func (o *Org) PrimaryDomain() string {
	if len(o.Domains) == 0 {
		return ""
	}
	return o.Domains[0].Name
}

// LoginNames of a user with this user name: one for every verified domain, the primary one first.
func (o *Org) LoginNames(userName string) []string {
	var names []string
	for _, d := range o.Domains {
		if d.Verified {
			names = append(names, userName+"@"+d.Name)
		}
	}
	return names
}

// LoginName is the first of LoginNames; the bare user name where there is none.
func (o *Org) LoginName(userName string) string {
	if names := o.LoginNames(userName); len(names) > 0 {
		return names[0]
	}
	return userName
}

// domain finds one of the organization's domains; -1 where it has no such.
func (o *Org) domain(name string) int {
	return slices.IndexFunc(o.Domains, func(d Domain) bool { return d.Name == name })
}

// Record is the DNS record of type TXT that proves a domain. Both are empty where nothing is left to prove.
func (d Domain) Record() (name, value string) {
	if d.Proven || d.Challenge == "" {
		return "", ""
	}
	return "_signet-challenge." + d.Name, "signet-domain-verification=" + d.Challenge
}

// VerifiedDomain finds a verified domain of the organization by any spelling, and gives the form it is compared in;
// empty where it has no such.
func (o *Org) VerifiedDomain(text string) string {
	name, problem := syntax.Domain(text)
	if i := o.domain(name); problem == nil && i >= 0 && o.Domains[i].Verified {
		return name
	}
	return ""
}

// DomainClaim is the claim of the organization that has verified a domain.
func DomainClaim(domain string) event.Claim { return event.Claim{Space: "domain", Key: domain} }

// ProvenClaim is the claim of the organization that has proven a domain by DNS. It has the other one, too.
func ProvenClaim(domain string) event.Claim { return event.Claim{Space: "proven_domain", Key: domain} }

// ProvenClaimOf is ProvenClaim for the domain of an e-mail address. No organization holds it if the address has none
// that can be proven.
func ProvenClaimOf(email string) event.Claim {
	return ProvenClaim(DomainOf(email))
}

// DomainOf is the domain of an e-mail address in the form that organizations prove; empty if it has none.
func DomainOf(email string) string {
	domain, _ := syntax.Domain(email[strings.LastIndexByte(email, '@')+1:])
	return domain
}

// Routed is the organization to whose identity provider people of a domain are led, in the form that domains are
// compared in; empty for none.
func Routed(ctx context.Context, r event.Reader, domain string) (string, error) {
	owner, err := r.Holder(ctx, ProvenClaim(domain))
	if err != nil || owner != "" {
		return owner, err
	}
	o, err := holding(ctx, r, domain)
	if err != nil || o == nil {
		return "", err
	}
	if i := o.Data.domain(domain); i >= 0 && o.Data.Domains[i].Routes() {
		return o.ID, nil
	}
	return "", nil
}

// DomainAdded records a domain; Primary makes it the one login names are shown with.
type DomainAdded struct {
	Domain    string `json:"domain"`
	Verified  bool   `json:"verified,omitempty"`
	Primary   bool   `json:"primary,omitempty"`
	Challenge string `json:"challenge,omitempty"`
}

// EventType implements event.Fact.
func (DomainAdded) EventType() event.Type { return "org.domain_added.v1" }

// Apply implements event.Fact.
func (e DomainAdded) Apply(o *Org) {
	d := Domain{Name: e.Domain, Verified: e.Verified, Challenge: e.Challenge}
	if e.Primary {
		o.Domains = slices.Insert(o.Domains, 0, d)
	} else {
		o.Domains = append(o.Domains, d)
	}
}

// ApplyAt implements event.EventAware. One that is verified from the start has a challenge, too, made from the event:
// no other event has the same.
func (e DomainAdded) ApplyAt(o *Org, at *event.Event) {
	if e.Verified && e.Challenge == "" {
		e.Challenge = hex.EncodeToString(at.Hash()[:challengeSize])
	}
	e.Apply(o)
}

// DomainVerified records that a domain was proven to belong to the organization.
type DomainVerified struct {
	Domain string `json:"domain"`
	// Proven says that DNS proved it just now. The first events did not say so: they were recorded of domains that were
	// verified already, without a look at DNS, and of others after one.
	Proven bool `json:"proven,omitempty"`
}

// EventType implements event.Fact.
func (DomainVerified) EventType() event.Type { return "org.domain_verified.v1" }

// Apply implements event.Fact.
func (e DomainVerified) Apply(o *Org) {
	i := o.domain(e.Domain)
	if i < 0 {
		return
	}
	d := &o.Domains[i]
	if e.Proven || !d.Verified {
		d.Proven, d.Challenge = true, ""
	}
	d.Verified = true
}

// DomainRoutingSet records that an administrator of the installation says, or no longer says, that people of a domain
// are to be led to the organization's provider.
type DomainRoutingSet struct {
	Domain string   `json:"domain"`
	Routed *Routing `json:"routed,omitempty"` // nil: no longer
}

// EventType implements event.Fact.
func (DomainRoutingSet) EventType() event.Type { return "org.domain_routing_set.v1" }

// Since implements event.Gated: a node that does not know it would lead people to a password.
func (DomainRoutingSet) Since() int { return 6 }

// Apply implements event.Fact.
func (e DomainRoutingSet) Apply(o *Org) {
	if i := o.domain(e.Domain); i >= 0 {
		o.Domains[i].Routed = e.Routed
	}
}

// PrimaryDomainSet records which domain login names are shown with.
type PrimaryDomainSet struct {
	Domain string `json:"domain"`
}

// EventType implements event.Fact.
func (PrimaryDomainSet) EventType() event.Type { return "org.primary_domain_set.v1" }

// Apply implements event.Fact.
func (e PrimaryDomainSet) Apply(o *Org) {
	if i := o.domain(e.Domain); i >= 0 {
		d := o.Domains[i]
		o.Domains = slices.Insert(slices.Delete(o.Domains, i, i+1), 0, d)
	}
}

// DomainRemoved records that a domain is the organization's no longer.
type DomainRemoved struct {
	Domain string `json:"domain"`
}

// EventType implements event.Fact.
func (DomainRemoved) EventType() event.Type { return "org.domain_removed.v1" }

// Apply implements event.Fact.
func (e DomainRemoved) Apply(o *Org) {
	if i := o.domain(e.Domain); i >= 0 {
		o.Domains = slices.Delete(o.Domains, i, i+1)
	}
}

// Reasons of the rules about domains.
const (
	DomainTaken       errs.Reason = "DOMAIN_TAKEN"
	DomainExists      errs.Reason = "DOMAIN_EXISTS"
	DomainNotFound    errs.Reason = "DOMAIN_NOT_FOUND"
	DomainNotProven   errs.Reason = "DOMAIN_NOT_PROVEN"
	DomainNotVerified errs.Reason = "DOMAIN_NOT_VERIFIED"
	DomainIsPrimary   errs.Reason = "DOMAIN_IS_PRIMARY"
	ReleaseDenied     errs.Reason = "DOMAIN_RELEASE_DENIED"
	TooManyDomains    errs.Reason = "TOO_MANY_DOMAINS"
	DNSAway           errs.Reason = "DNS_UNAVAILABLE"
)

// ErrDomainTaken: another organization has the domain.
var ErrDomainTaken = errs.New(errs.AlreadyExists, DomainTaken,
	"the domain belongs to another organization: choose another one, or leave it out to get a generated one")

// Refusals of the rules about domains.
var (
	ErrDomainExists   = errs.New(errs.AlreadyExists, DomainExists, "the organization already has this domain")
	ErrDomainNotFound = errs.New(errs.NotFound, DomainNotFound,
		"the organization does not have this domain: list its domains")
	ErrDomainNotProven = errs.New(errs.FailedPrecondition, DomainNotProven,
		"the record that proves the domain was not found in DNS")
	ErrDomainNotVerified = errs.New(errs.FailedPrecondition, DomainNotVerified,
		"the domain is not verified: verify it first")
	ErrDomainIsPrimary = errs.New(errs.FailedPrecondition, DomainIsPrimary,
		"the primary domain cannot be removed: make another one the primary domain first")
	ErrTooManyDomains = errs.New(errs.FailedPrecondition, TooManyDomains,
		"an organization has at most 100 domains: remove one first")
	ErrVouching = errs.New(errs.PermissionDenied, access.PermissionDenied,
		"only somebody who may change the domains of all organizations can confirm a domain without proof: leave isVerified out, and verify the domain by its DNS record")
	ErrReleaseDenied = errs.New(errs.PermissionDenied, ReleaseDenied,
		"this domain is verified: only an owner or a settings manager of the organization, or an IAM_OWNER, can remove it")
	errDomainElsewhere = errs.New(ErrDomainTaken.Kind, DomainTaken,
		"the domain belongs to another organization: it must be removed there first")
	ErrDNSAway = &errs.Error{Kind: errs.Unavailable, Reason: DNSAway,
		Message: "DNS did not answer: try again shortly", RetryAfter: 10 * time.Second}
)

// NewDomain is a domain that an organization wants.
type NewDomain struct {
	Name     string
	Verified bool // somebody who may do so for every organization vouches for it
}

// AddDomain adds a domain to the permit's organization. One that is not verified claims nothing: others may try to
// prove it too. Errors: InvalidArgument; ErrVouching; ErrNotFound; ErrTooManyDomains; ErrDomainExists; ErrDomainTaken;
// Aborted when match does not hold.
func AddDomain(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	in NewDomain) (Domain, event.Details, error) {
	name, problem := syntax.Domain(in.Name)
	if err := errs.Wrong("domain", cmp.Or(syntax.Text(in.Name, syntax.MaxDomain), problem)); err != nil {
		return Domain{}, event.Details{}, err
	}
	if in.Verified && !permit.Holds(access.DomainWrite, access.Installation) {
		return Domain{}, event.Details{}, ErrVouching
	}
	fact := DomainAdded{Domain: name, Verified: in.Verified}
	if !in.Verified {
		fact.Challenge = newChallenge()
	}
	var added Domain
	claim := event.Command{Claims: []event.Claim{DomainClaim(name)}}
	details, err := Of(permit).Needs(claim).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[Org]) error {
		if len(o.Data.Domains) >= maxDomains {
			return ErrTooManyDomains
		}
		if o.Data.domain(name) >= 0 {
			return ErrDomainExists
		}
		if in.Verified {
			if err := free(tx, o.ID, name); err != nil {
				return err
			}
		}
		if err := o.Append(fact); err != nil {
			return err
		}
		added = o.Data.Domains[len(o.Data.Domains)-1]
		return nil
	})
	return added, details, err
}

// free refuses with ErrDomainTaken where another organization has verified the domain.
func free(tx *event.Tx, id, domain string) error {
	holder, err := tx.Holder(DomainClaim(domain))
	if err == nil && holder != "" && holder != id {
		return errDomainElsewhere
	}
	return err
}

const challengeSize = 16 // bytes

// newChallenge is what nobody can have in DNS by chance.
func newChallenge() string {
	var b [challengeSize]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Resolver looks up DNS records of type TXT, as net.Resolver does.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// lookupLimit is how long DNS has to answer.
const lookupLimit = 5 * time.Second

// VerifyDomain looks for the record that proves a domain of the permit's organization, and makes the domain its own.
// One that is proven already needs no record; one that somebody vouches for does. Errors: ErrNotFound;
// ErrDomainNotFound; ErrDomainNotProven, naming the record; ErrDomainTaken; Aborted when match does not hold;
// ErrDNSAway; those of permit.Renew when the caller may no longer once DNS has answered.
func VerifyDomain(ctx context.Context, s event.Store, dns Resolver, permit access.Permit, match event.IfMatch,
	domain string) (event.Details, error) {
	name, problem := syntax.Domain(domain)
	if problem != nil {
		return event.Details{}, ErrDomainNotFound
	}
	o, err := Get(ctx, s, permit)
	if err != nil {
		return event.Details{}, err
	}
	i := o.Data.domain(name)
	if i < 0 {
		return event.Details{}, ErrDomainNotFound
	}
	wanted := o.Data.Domains[i]
	if !wanted.Proven {
		if err := prove(ctx, dns, wanted); err != nil {
			return event.Details{}, err
		}
		if permit, err = permit.Renew(ctx); err != nil { // DNS may have taken long
			return event.Details{}, err
		}
	}
	claims := event.Command{Claims: []event.Claim{DomainClaim(name), ProvenClaim(name)}}
	return Of(permit).Needs(claims).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[Org]) error {
		i := o.Data.domain(name)
		if i < 0 {
			return ErrDomainNotFound
		}
		// Removed and added again meanwhile, it has another challenge, and that is not proven.
		d := o.Data.Domains[i]
		if !d.Proven && (wanted.Proven || d.Challenge != wanted.Challenge) {
			return notProven(d)
		}
		if err := free(tx, o.ID, name); err != nil {
			return err
		}
		return o.Append(DomainVerified{Domain: name, Proven: !d.Proven})
	})
}

// prove looks for a domain's record. The name is asked for as it is, with a dot at its end: otherwise a resolver may
// look for it below the domains of the machine it runs on, where somebody else can answer.
func prove(ctx context.Context, dns Resolver, d Domain) error {
	name, value := d.Record()
	if !canBeInDNS(name) {
		return notProven(d)
	}
	limited, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	found, err := dns.LookupTXT(limited, strings.TrimSuffix(name, ".")+".")
	if failure, ok := errors.AsType[*net.DNSError](err); ok && failure.IsNotFound {
		return notProven(d)
	}
	refusal, ours := errors.AsType[*errs.Error](err)
	switch {
	case ours: // nobody was asked
		return refusal
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // not even the log gets to see what came from outside
		return ErrDNSAway
	case !slices.Contains(found, value):
		return notProven(d)
	}
	return nil
}

// notProven says what to do about a domain that is not proven.
func notProven(d Domain) error {
	e := *ErrDomainNotProven
	if name, value := d.Record(); name != "" {
		e.Message += ": create a TXT record with the name " + name + " and the text " + value +
			", wait until DNS shows it, and try again"
	}
	return &e
}

// canBeInDNS tells whether DNS could have records of a name; domains may be others.
func canBeInDNS(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
		}) {
			return false
		}
	}
	return true
}

// SetDomainRouting says, or says no longer, that people who type a name of a domain are to be led to the identity
// provider of the permit's organization. DNS says it of a domain that it has proven; of another it takes somebody who
// answers for the whole installation. It changes nothing about where names are looked up. Errors: ErrNotFound;
// ErrDomainNotFound; ErrDomainNotVerified; Aborted when match does not hold.
func SetDomainRouting(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, domain string,
	routed bool) (event.Details, error) {
	return changeDomain(ctx, s, permit, match, domain, func(tx *event.Tx, o *Org, i int) (event.Fact[Org], error) {
		switch {
		case !routed:
			return DomainRoutingSet{Domain: o.Domains[i].Name}, nil
		case !o.Domains[i].Verified:
			return nil, ErrDomainNotVerified
		}
		return DomainRoutingSet{Domain: o.Domains[i].Name,
			Routed: &Routing{By: permit.Origin().Actor, At: tx.Now()}}, nil
	})
}

// SetPrimaryDomain makes a domain the one login names of the permit's organization are shown with. Errors: ErrNotFound;
// ErrDomainNotFound; ErrDomainNotVerified; Aborted when match does not hold.
func SetPrimaryDomain(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	domain string) (event.Details, error) {
	return changeDomain(ctx, s, permit, match, domain, func(_ *event.Tx, o *Org, i int) (event.Fact[Org], error) {
		if !o.Domains[i].Verified {
			return nil, ErrDomainNotVerified
		}
		return PrimaryDomainSet{Domain: o.Domains[i].Name}, nil
	})
}

// RemoveDomain takes a domain from the permit's organization; others can have it then. Whose login names end with it
// may lead to somebody else one day, so a verified one takes access.DomainRelease. Errors: ErrNotFound;
// ErrDomainNotFound; ErrReleaseDenied; ErrDomainIsPrimary; Aborted when match does not hold.
func RemoveDomain(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch,
	domain string) (event.Details, error) {
	return changeDomain(ctx, s, permit, match, domain, func(_ *event.Tx, o *Org, i int) (event.Fact[Org], error) {
		switch {
		case o.Domains[i].Verified && !permit.Holds(access.DomainRelease, permit.Org()):
			return nil, ErrReleaseDenied
		case i == 0:
			return nil, ErrDomainIsPrimary
		}
		return DomainRemoved{Domain: o.Domains[i].Name}, nil
	})
}

// changeDomain records a fact about a domain that the organization has.
func changeDomain(ctx context.Context, s event.Store, permit access.Permit, match event.IfMatch, domain string,
	decide func(tx *event.Tx, o *Org, i int) (event.Fact[Org], error)) (event.Details, error) {
	name, problem := syntax.Domain(domain)
	if problem != nil {
		return event.Details{}, ErrDomainNotFound
	}
	return Of(permit).Change(ctx, s, match, func(tx *event.Tx, o *event.Object[Org]) error {
		i := o.Data.domain(name)
		if i < 0 {
			return ErrDomainNotFound
		}
		fact, err := decide(tx, &o.Data, i)
		if err != nil {
			return err
		}
		return o.Append(fact)
	})
}
