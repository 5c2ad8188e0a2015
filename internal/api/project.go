package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// Projects implements ProjectService.
type Projects struct {
	Store   event.Store
	Master  secret.MasterKey
	Clock   func() time.Time
	Cleaner *lifecycle.Cleaner
}

var _ signetv1connect.ProjectServiceHandler = Projects{}

// checkProject lists what is wrong with a request beyond the field rules of the definition.
func checkProject(req proto.Message) []errs.Violation {
	switch r := req.(type) {
	case *signetv1.SetProjectRoleRequest:
		return project.RoleViolations(r.GetKey(), r.GetName(), r.GetDescription())
	case *signetv1.AddProjectGrantRequest:
		return project.GrantViolations(r.GetGrantedOrgId(), r.GetRoleKeys())
	case *signetv1.SetProjectGrantRolesRequest:
		return project.RoleKeyViolations(r.GetRoleKeys())
	case *signetv1.SetUserAppRolesRequest:
		return project.RoleKeyViolations(r.GetRoleKeys())
	case *signetv1.SetGroupAppRolesRequest:
		return project.RoleKeyViolations(r.GetRoleKeys())
	case *signetv1.SetApplicationRoleSettingsRequest:
		return project.RoleSettingsViolations(roleSettings(r))
	}
	return nil
}

// AddProject creates a project in the context organization.
func (s Projects) AddProject(ctx context.Context, r *signetv1.AddProjectRequest) (*signetv1.AddProjectResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	created, err := project.Add(ctx, s.Store, call.From(ctx).Permit, once, r.GetName())
	if err != nil {
		return nil, err
	}
	return &signetv1.AddProjectResponse{Details: complete(created.Details), ProjectId: created.ID}, nil
}

// GetProject reads a project of the context organization.
func (s Projects) GetProject(ctx context.Context, r *signetv1.GetProjectRequest) (*signetv1.GetProjectResponse, error) {
	p, err := project.Get(ctx, s.Store, call.From(ctx).Permit, r.GetProjectId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetProjectResponse{Project: showProject(p)}, nil
}

// ListProjects reads a page of the projects of the context organization.
func (s Projects) ListProjects(ctx context.Context,
	r *signetv1.ListProjectsRequest) (*signetv1.ListProjectsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[project.Project], *event.Cursor, error) {
			return project.List(ctx, s.Store, call.From(ctx).Permit, r.GetName(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListProjectsResponse{NextPageToken: next}
	for _, p := range found {
		out.Projects = append(out.Projects, showProject(p))
	}
	return out, nil
}

// RenameProject gives a project of the context organization another name.
func (s Projects) RenameProject(ctx context.Context,
	r *signetv1.RenameProjectRequest) (*signetv1.RenameProjectResponse, error) {
	info := call.From(ctx)
	d, err := project.Rename(ctx, s.Store, info.Permit, r.GetProjectId(), info.IfMatch, r.GetName())
	if err != nil {
		return nil, err
	}
	return &signetv1.RenameProjectResponse{Details: changed(d)}, nil
}

// RemoveProject ends a project of the context organization.
func (s Projects) RemoveProject(ctx context.Context,
	r *signetv1.RemoveProjectRequest) (*signetv1.RemoveProjectResponse, error) {
	info := call.From(ctx)
	d, err := project.Remove(ctx, s.Store, info.Permit, r.GetProjectId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	s.Cleaner.Wake()
	return &signetv1.RemoveProjectResponse{Details: changed(d)}, nil
}

// SetProjectRole declares a role of a project of the context organization, or describes it anew.
func (s Projects) SetProjectRole(ctx context.Context,
	r *signetv1.SetProjectRoleRequest) (*signetv1.SetProjectRoleResponse, error) {
	info := call.From(ctx)
	d, err := project.SetRole(ctx, s.Store, info.Permit, r.GetProjectId(), info.IfMatch, r.GetKey(), r.GetName(),
		r.GetDescription())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetProjectRoleResponse{Details: changed(d)}, nil
}

// RemoveProjectRole ends a role of a project of the context organization.
func (s Projects) RemoveProjectRole(ctx context.Context,
	r *signetv1.RemoveProjectRoleRequest) (*signetv1.RemoveProjectRoleResponse, error) {
	info := call.From(ctx)
	d, err := project.RemoveRole(ctx, s.Store, info.Permit, r.GetProjectId(), info.IfMatch, r.GetKey())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveProjectRoleResponse{Details: changed(d)}, nil
}

func showProject(p *event.Object[project.Project]) *signetv1.Project {
	return &signetv1.Project{ProjectId: p.ID, Details: complete(p.Details()), Name: p.Data.Name,
		Roles: showRoles(p.Data.Roles)}
}

func showRoles(roles []project.Role) (shown []*signetv1.ProjectRole) {
	for _, r := range roles {
		shown = append(shown, &signetv1.ProjectRole{Key: r.Key, Name: r.Name, Description: r.Description})
	}
	return shown
}

func roleKeys(roles []project.Role) (keys []string) {
	for _, r := range roles {
		keys = append(keys, r.Key)
	}
	return keys
}

// roleSettings are those that a request sends for an application.
func roleSettings(r *signetv1.SetApplicationRoleSettingsRequest) app.RoleSettings {
	return app.RoleSettings{Project: r.GetProjectId(), Roles: r.GetRolesInTokens(), Groups: r.GetGroupsInTokens(),
		Required: r.GetRoleRequired(), Metadata: r.GetMetadataKeys()}
}

// showRoleSettings shows those of an application; nil where there are none.
func showRoleSettings(s app.RoleSettings) *signetv1.ApplicationRoleSettings {
	if s.Equal(app.RoleSettings{}) {
		return nil
	}
	return &signetv1.ApplicationRoleSettings{ProjectId: s.Project, RolesInTokens: s.Roles, GroupsInTokens: s.Groups,
		RoleRequired: s.Required, MetadataKeys: s.Metadata}
}
