package api

import (
	"context"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/setup"
)

// Organizations implements OrganizationService.
type Organizations struct {
	Setup    setup.Setup
	Master   secret.MasterKey
	Clock    func() time.Time
	Resolver org.Resolver // where the proof of a domain is looked for
	Cleaner  *lifecycle.Cleaner
}

var _ signetv1connect.OrganizationServiceHandler = Organizations{}

// SetupOrganization creates an organization with its administrator.
func (s Organizations) SetupOrganization(ctx context.Context,
	r *signetv1.SetupOrganizationRequest) (*signetv1.SetupOrganizationResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	info, setUp := call.From(ctx), s.Setup
	setUp.Hasher = setUp.Hasher.For(info.Org())
	done, err := setUp.Organization(ctx, info.Permit, once, organizationOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetupOrganizationResponse{Details: complete(done.Details), OrgId: done.OrgID,
		UserId: done.UserID}, nil
}

func organizationOf(r *signetv1.SetupOrganizationRequest) setup.Organization {
	h := r.GetHuman()
	p := h.GetProfile()
	return setup.Organization{
		Name: r.GetOrg().GetName(), Domain: r.GetOrg().GetDomain(), Password: h.GetPassword(), Roles: r.GetRoles(),
		Human: user.NewHuman{
			UserName: h.GetUserName(),
			Profile: user.Profile{FirstName: p.GetFirstName(), LastName: p.GetLastName(), NickName: p.GetNickName(),
				DisplayName: p.GetDisplayName(), PreferredLanguage: p.GetPreferredLanguage(),
				Gender: genders.name(p.GetGender())},
			Email: h.GetEmail().GetEmail(), EmailVerified: h.GetEmail().GetIsEmailVerified(),
			Phone: h.GetPhone().GetPhone(), PhoneVerified: h.GetPhone().GetIsPhoneVerified(),
		},
	}
}

// GetOrganization reads the organization the path names.
func (s Organizations) GetOrganization(ctx context.Context,
	_ *signetv1.GetOrganizationRequest) (*signetv1.GetOrganizationResponse, error) {
	o, err := org.Get(ctx, s.Setup.Store, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetOrganizationResponse{Org: showOrganization(o)}, nil
}
