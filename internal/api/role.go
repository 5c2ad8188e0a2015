package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/customrole"
)

// Roles implements RoleService. The rules find out by the permit whether they are about an organization or the
// installation.
type Roles struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time
}

var _ signetv1connect.RoleServiceHandler = Roles{}

// newRole is what requests say about a role.
func newRole(r interface {
	GetName() string
	GetDescription() string
	GetPermissions() []string
}) role.New {
	return role.New{Name: r.GetName(), Description: r.GetDescription(), Permissions: r.GetPermissions()}
}

// checkRole lists what is wrong with a request about a custom role.
func checkRole(req proto.Message) []errs.Violation {
	switch r := req.(type) {
	case *signetv1.AddOrganizationRoleRequest:
		return access.PermissionViolations("", r.GetPermissions())
	case *signetv1.UpdateOrganizationRoleRequest:
		return access.PermissionViolations("", r.GetPermissions())
	case *signetv1.AddInstallationRoleRequest:
		return access.PermissionViolations(access.Installation, r.GetPermissions())
	case *signetv1.UpdateInstallationRoleRequest:
		return access.PermissionViolations(access.Installation, r.GetPermissions())
	}
	return nil
}

func showRole(r *event.Object[role.Role]) *signetv1.CustomRole {
	return &signetv1.CustomRole{RoleId: r.ID, Details: complete(r.Details()), Name: r.Data.Name,
		Description: r.Data.Description, Permissions: permissionNames(r.Data.Permissions)}
}

func (s Roles) list(ctx context.Context, r pageRequest) (roles []*signetv1.CustomRole, next string, err error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[role.Role], *event.Cursor, error) {
			return role.List(ctx, s.Store, call.From(ctx).Permit, after, limit)
		})
	for _, o := range found {
		roles = append(roles, showRole(o))
	}
	return roles, next, err
}

func (s Roles) add(ctx context.Context, r proto.Message, n role.New) (role.Created, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return role.Created{}, err
	}
	return role.Add(ctx, s.Store, call.From(ctx).Permit, n, once)
}

// AddOrganizationRole creates a custom role of the organization the path names.
func (s Roles) AddOrganizationRole(ctx context.Context,
	r *signetv1.AddOrganizationRoleRequest) (*signetv1.AddOrganizationRoleResponse, error) {
	created, err := s.add(ctx, r, newRole(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.AddOrganizationRoleResponse{Details: complete(created.Details), RoleId: created.ID}, nil
}

// GetOrganizationRole reads a custom role of the organization the path names.
func (s Roles) GetOrganizationRole(ctx context.Context,
	r *signetv1.GetOrganizationRoleRequest) (*signetv1.GetOrganizationRoleResponse, error) {
	o, err := role.Get(ctx, s.Store, call.From(ctx).Permit, r.GetRoleId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetOrganizationRoleResponse{Role: showRole(o)}, nil
}

// ListOrganizationRoles reads a page of the custom roles of the organization the path names.
func (s Roles) ListOrganizationRoles(ctx context.Context,
	r *signetv1.ListOrganizationRolesRequest) (*signetv1.ListOrganizationRolesResponse, error) {
	roles, next, err := s.list(ctx, r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListOrganizationRolesResponse{Roles: roles, NextPageToken: next}, nil
}

// UpdateOrganizationRole changes a custom role of the organization the path names, and all its holders.
func (s Roles) UpdateOrganizationRole(ctx context.Context,
	r *signetv1.UpdateOrganizationRoleRequest) (*signetv1.UpdateOrganizationRoleResponse, error) {
	info := call.From(ctx)
	d, err := customrole.Change(ctx, s.Store, info.Permit, r.GetRoleId(), info.IfMatch, newRole(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateOrganizationRoleResponse{Details: changed(d)}, nil
}

// RemoveOrganizationRole ends a custom role of the organization the path names.
func (s Roles) RemoveOrganizationRole(ctx context.Context,
	r *signetv1.RemoveOrganizationRoleRequest) (*signetv1.RemoveOrganizationRoleResponse, error) {
	info := call.From(ctx)
	d, err := customrole.Remove(ctx, s.Store, info.Permit, r.GetRoleId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveOrganizationRoleResponse{Details: changed(d)}, nil
}

// AddInstallationRole creates a custom role of the installation.
func (s Roles) AddInstallationRole(ctx context.Context,
	r *signetv1.AddInstallationRoleRequest) (*signetv1.AddInstallationRoleResponse, error) {
	created, err := s.add(ctx, r, newRole(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.AddInstallationRoleResponse{Details: complete(created.Details), RoleId: created.ID}, nil
}

// GetInstallationRole reads a custom role of the installation.
func (s Roles) GetInstallationRole(ctx context.Context,
	r *signetv1.GetInstallationRoleRequest) (*signetv1.GetInstallationRoleResponse, error) {
	o, err := role.Get(ctx, s.Store, call.From(ctx).Permit, r.GetRoleId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetInstallationRoleResponse{Role: showRole(o)}, nil
}

// ListInstallationRoles reads a page of the custom roles of the installation.
func (s Roles) ListInstallationRoles(ctx context.Context,
	r *signetv1.ListInstallationRolesRequest) (*signetv1.ListInstallationRolesResponse, error) {
	roles, next, err := s.list(ctx, r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListInstallationRolesResponse{Roles: roles, NextPageToken: next}, nil
}

// UpdateInstallationRole changes a custom role of the installation, and all its holders.
func (s Roles) UpdateInstallationRole(ctx context.Context,
	r *signetv1.UpdateInstallationRoleRequest) (*signetv1.UpdateInstallationRoleResponse, error) {
	info := call.From(ctx)
	d, err := customrole.Change(ctx, s.Store, info.Permit, r.GetRoleId(), info.IfMatch, newRole(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateInstallationRoleResponse{Details: changed(d)}, nil
}

// RemoveInstallationRole ends a custom role of the installation.
func (s Roles) RemoveInstallationRole(ctx context.Context,
	r *signetv1.RemoveInstallationRoleRequest) (*signetv1.RemoveInstallationRoleResponse, error) {
	info := call.From(ctx)
	d, err := customrole.Remove(ctx, s.Store, info.Permit, r.GetRoleId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveInstallationRoleResponse{Details: changed(d)}, nil
}
