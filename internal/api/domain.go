package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// checkNewDomain applies the grammar of domains. Elsewhere a malformed domain is one that the organization does not
// have.
func checkNewDomain(r *signetv1.AddDomainRequest) (wrong errs.Violations) {
	_, problem := syntax.Domain(r.GetDomain())
	wrong.Add("domain", problem)
	return wrong
}

// ListDomains reads the domains of an organization.
func (s Organizations) ListDomains(ctx context.Context,
	_ *signetv1.ListDomainsRequest) (*signetv1.ListDomainsResponse, error) {
	o, err := org.Get(ctx, s.Setup.Store, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListDomainsResponse{Details: complete(o.Details())}
	for i, d := range o.Data.Domains {
		out.Domains = append(out.Domains, showDomain(d, i == 0))
	}
	return out, nil
}

func showDomain(d org.Domain, primary bool) *signetv1.Domain {
	name, value := d.Record()
	shown := &signetv1.Domain{Domain: d.Name, IsVerified: d.Verified, IsPrimary: primary, IsProven: d.Proven,
		VerificationName: name, VerificationValue: value, IsRouted: d.Routes()}
	if d.Routed != nil {
		shown.RoutedBy, shown.RoutedAt = d.Routed.By, timestamppb.New(event.Time(d.Routed.At))
	}
	return shown
}

// AddDomain adds a domain to an organization.
func (s Organizations) AddDomain(ctx context.Context,
	r *signetv1.AddDomainRequest) (*signetv1.AddDomainResponse, error) {
	info := call.From(ctx)
	added, d, err := org.AddDomain(ctx, s.Setup.Store, info.Permit, info.IfMatch,
		org.NewDomain{Name: r.GetDomain(), Verified: r.GetIsVerified()})
	if err != nil {
		return nil, err
	}
	return &signetv1.AddDomainResponse{Details: changed(d), Domain: showDomain(added, false)}, nil
}

// VerifyDomain looks for the proof of a domain.
func (s Organizations) VerifyDomain(ctx context.Context,
	r *signetv1.VerifyDomainRequest) (*signetv1.VerifyDomainResponse, error) {
	info := call.From(ctx)
	d, err := org.VerifyDomain(ctx, s.Setup.Store, s.Resolver, info.Permit, info.IfMatch, r.GetDomain())
	if err != nil {
		return nil, err
	}
	return &signetv1.VerifyDomainResponse{Details: changed(d)}, nil
}

// SetDomainRouting says whether a domain leads people to the identity provider on the caller's word.
func (s Organizations) SetDomainRouting(ctx context.Context,
	r *signetv1.SetDomainRoutingRequest) (*signetv1.SetDomainRoutingResponse, error) {
	info := call.From(ctx)
	d, err := org.SetDomainRouting(ctx, s.Setup.Store, info.Permit, info.IfMatch, r.GetDomain(), r.GetIsRouted())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetDomainRoutingResponse{Details: changed(d)}, nil
}

// SetPrimaryDomain chooses the domain that login names are shown with.
func (s Organizations) SetPrimaryDomain(ctx context.Context,
	r *signetv1.SetPrimaryDomainRequest) (*signetv1.SetPrimaryDomainResponse, error) {
	info := call.From(ctx)
	d, err := org.SetPrimaryDomain(ctx, s.Setup.Store, info.Permit, info.IfMatch, r.GetDomain())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetPrimaryDomainResponse{Details: changed(d)}, nil
}

// RemoveDomain takes a domain from an organization.
func (s Organizations) RemoveDomain(ctx context.Context,
	r *signetv1.RemoveDomainRequest) (*signetv1.RemoveDomainResponse, error) {
	info := call.From(ctx)
	losing, d, err := lifecycle.RemoveDomain(ctx, s.Setup.Store, info.Permit, info.IfMatch, r.GetDomain())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveDomainResponse{Details: changed(d), AffectedUsers: int32(losing.People),
		LoginNames: losing.Names}, nil
}
