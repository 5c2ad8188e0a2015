package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ListProjectUsers reads a page of the users who have roles of a project in the context organization.
func (s Projects) ListProjectUsers(ctx context.Context,
	r *signetv1.ListProjectUsersRequest) (*signetv1.ListProjectUsersResponse, error) {
	permit := call.From(ctx).Permit
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]project.UserWithRoles, *event.Cursor, error) {
			return project.ListUsers(ctx, s.Store, permit, r.GetProjectId(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	named := permit.HoldsFor(access.ReadScope, access.UserRead, permit.Org())
	out := &signetv1.ListProjectUsersResponse{NextPageToken: next}
	for _, f := range found {
		shown := &signetv1.UserWithRoles{UserId: f.User.ID, RoleKeys: roleKeys(f.Roles)}
		if named {
			shown.UserName, shown.DisplayName = f.User.Data.UserName, displayName(&f.User.Data)
		}
		out.Users = append(out.Users, shown)
	}
	return out, nil
}

func displayName(u *user.User) string {
	switch {
	case u.Human != nil:
		return u.Human.Profile.DisplayName
	case u.Service != nil:
		return u.Service.Name
	}
	return ""
}

// ListProjectGroups lists the groups whose members have roles of a project in the context organization.
func (s Projects) ListProjectGroups(ctx context.Context,
	r *signetv1.ListProjectGroupsRequest) (*signetv1.ListProjectGroupsResponse, error) {
	permit := call.From(ctx).Permit
	found, err := project.ListGroups(ctx, s.Store, permit, r.GetProjectId())
	if err != nil {
		return nil, err
	}
	named := permit.HoldsFor(access.ReadScope, access.GroupRead, permit.Org())
	out := &signetv1.ListProjectGroupsResponse{}
	for _, f := range found {
		shown := &signetv1.GroupWithRoles{GroupId: f.Group.ID, RoleKeys: roleKeys(f.Roles)}
		if named {
			shown.Name = f.Group.Data.Name
		}
		out.Groups = append(out.Groups, shown)
	}
	return out, nil
}

// SetUserAppRoles sets which roles of a project a user has in the context organization.
func (s Projects) SetUserAppRoles(ctx context.Context,
	r *signetv1.SetUserAppRolesRequest) (*signetv1.SetUserAppRolesResponse, error) {
	info := call.From(ctx)
	d, err := project.SetUserRoles(ctx, s.Store, info.Permit, r.GetUserId(), r.GetProjectId(), info.IfMatch,
		r.GetRoleKeys())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserAppRolesResponse{Details: changed(d)}, nil
}

// ListUserAppRoles lists the roles that a user has in the context organization.
func (s Projects) ListUserAppRoles(ctx context.Context,
	r *signetv1.ListUserAppRolesRequest) (*signetv1.ListUserAppRolesResponse, error) {
	all, err := project.RolesOfUser(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserAppRolesResponse{AppRoles: showGiven(all)}, nil
}

// ListMyAppRoles lists the roles that the caller has.
func (s Projects) ListMyAppRoles(ctx context.Context,
	_ *signetv1.ListMyAppRolesRequest) (*signetv1.ListMyAppRolesResponse, error) {
	all, err := project.MyRoles(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyAppRolesResponse{AppRoles: showGiven(all)}, nil
}

// SetGroupAppRoles sets which roles of a project the members of a group have in the context organization.
func (s Projects) SetGroupAppRoles(ctx context.Context,
	r *signetv1.SetGroupAppRolesRequest) (*signetv1.SetGroupAppRolesResponse, error) {
	info := call.From(ctx)
	d, err := project.SetGroupRoles(ctx, s.Store, info.Permit, r.GetGroupId(), r.GetProjectId(), info.IfMatch,
		r.GetRoleKeys())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetGroupAppRolesResponse{Details: changed(d)}, nil
}

// ListGroupAppRoles lists the roles that the members of a group have through it.
func (s Projects) ListGroupAppRoles(ctx context.Context,
	r *signetv1.ListGroupAppRolesRequest) (*signetv1.ListGroupAppRolesResponse, error) {
	all, err := project.RolesOfGroup(ctx, s.Store, call.From(ctx).Permit, r.GetGroupId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ListGroupAppRolesResponse{AppRoles: showGiven(all)}, nil
}

func showGiven(all []project.Given) (shown []*signetv1.AppRoles) {
	for _, given := range all {
		out := &signetv1.AppRoles{ProjectId: given.Project, ProjectName: given.ProjectName, OrgId: given.Org}
		for _, r := range given.Roles {
			out.Roles = append(out.Roles,
				&signetv1.AppRole{Key: r.Key, Name: r.Name, Direct: r.Direct, GroupIds: r.Groups})
		}
		shown = append(shown, out)
	}
	return shown
}
