package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/life/counts"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/setup"
)

// Organizations implements OrganizationService.
type Organizations struct {
	Setup       setup.Setup
	Invitations invitation.Invitations
	Master      secret.MasterKey
	Clock       func() time.Time
	Resolver    org.Resolver // where the proof of a domain is looked for
	Cleaner     *lifecycle.Cleaner
	Counts      *counts.Counts
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

// SetupInvitedOrganization creates an organization and invites its administrator.
func (s Organizations) SetupInvitedOrganization(ctx context.Context,
	r *signetv1.SetupInvitedOrganizationRequest) (*signetv1.SetupInvitedOrganizationResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	done, err := s.Setup.Invited(ctx, call.From(ctx).Permit, once, s.Invitations, invitedOrganizationOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetupInvitedOrganizationResponse{Details: complete(done.Details), OrgId: done.OrgID,
		InvitationId: done.InvitationID, ExpirationDate: timestamppb.New(done.Expires), Link: done.Link}, nil
}

func invitedOrganizationOf(r *signetv1.SetupInvitedOrganizationRequest) setup.InvitedOrganization {
	return setup.InvitedOrganization{
		Name: r.GetOrg().GetName(), Domain: r.GetOrg().GetDomain(),
		Administrator: invitation.New{Email: r.GetEmail(), Language: r.GetLanguage(),
			Life: time.Duration(r.GetLifetimeSeconds()) * time.Second},
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

// CountObjects counts what the organization that the path names has.
func (s Organizations) CountObjects(ctx context.Context,
	_ *signetv1.CountObjectsRequest) (*signetv1.CountObjectsResponse, error) {
	n, err := s.Counts.Of(ctx, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	return &signetv1.CountObjectsResponse{People: n.People, ServiceUsers: n.ServiceUsers, Applications: n.Applications,
		Groups: n.Groups, IdentityProviders: n.Providers, OpenInvitations: n.OpenInvitations}, nil
}
