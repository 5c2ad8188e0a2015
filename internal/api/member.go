package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
)

// Members implements MemberService.
type Members struct {
	Store  event.Store
	Master secret.MasterKey
}

var _ signetv1connect.MemberServiceHandler = Members{}

// ListOrganizationMembers is not there yet.
func (s Members) ListOrganizationMembers(ctx context.Context, r *signetv1.ListOrganizationMembersRequest) (*signetv1.ListOrganizationMembersResponse, error) {
	return nil, errNotYet
}

// SetOrganizationMember is not there yet.
func (s Members) SetOrganizationMember(ctx context.Context, r *signetv1.SetOrganizationMemberRequest) (*signetv1.SetOrganizationMemberResponse, error) {
	return nil, errNotYet
}

// RemoveOrganizationMember is not there yet.
func (s Members) RemoveOrganizationMember(ctx context.Context, r *signetv1.RemoveOrganizationMemberRequest) (*signetv1.RemoveOrganizationMemberResponse, error) {
	return nil, errNotYet
}

// ListInstallationMembers is not there yet.
func (s Members) ListInstallationMembers(ctx context.Context, r *signetv1.ListInstallationMembersRequest) (*signetv1.ListInstallationMembersResponse, error) {
	return nil, errNotYet
}

// SetInstallationMember is not there yet.
func (s Members) SetInstallationMember(ctx context.Context, r *signetv1.SetInstallationMemberRequest) (*signetv1.SetInstallationMemberResponse, error) {
	return nil, errNotYet
}

// RemoveInstallationMember is not there yet.
func (s Members) RemoveInstallationMember(ctx context.Context, r *signetv1.RemoveInstallationMemberRequest) (*signetv1.RemoveInstallationMemberResponse, error) {
	return nil, errNotYet
}

// ListMyMemberships is not there yet.
func (s Members) ListMyMemberships(ctx context.Context, r *signetv1.ListMyMembershipsRequest) (*signetv1.ListMyMembershipsResponse, error) {
	return nil, errNotYet
}
