package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// AddProjectGrant offers a project of the context organization to another one.
func (s Projects) AddProjectGrant(ctx context.Context,
	r *signetv1.AddProjectGrantRequest) (*signetv1.AddProjectGrantResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	created, err := project.AddGrant(ctx, s.Store, call.From(ctx).Permit, once, r.GetProjectId(), r.GetGrantedOrgId(),
		r.GetRoleKeys())
	if err != nil {
		return nil, err
	}
	return &signetv1.AddProjectGrantResponse{Details: complete(created.Details), GrantId: created.ID}, nil
}

// ListProjectGrants reads a page of the grants of a project of the context organization.
func (s Projects) ListProjectGrants(ctx context.Context,
	r *signetv1.ListProjectGrantsRequest) (*signetv1.ListProjectGrantsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]project.Granted, *event.Cursor, error) {
			return project.ListGrants(ctx, s.Store, call.From(ctx).Permit, r.GetProjectId(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListProjectGrantsResponse{NextPageToken: next}
	for _, g := range found {
		out.Grants = append(out.Grants,
			&signetv1.ProjectGrant{GrantId: g.ID, Details: complete(g.Details()), State: grantState(g.Data.State),
				GrantedOrgId: g.Data.To, Roles: showRoles(g.Roles)})
	}
	return out, nil
}

// SetProjectGrantRoles changes which roles of a project of the context organization another one may give.
func (s Projects) SetProjectGrantRoles(ctx context.Context,
	r *signetv1.SetProjectGrantRolesRequest) (*signetv1.SetProjectGrantRolesResponse, error) {
	info := call.From(ctx)
	d, err := project.SetGrantRoles(ctx, s.Store, info.Permit, r.GetProjectId(), r.GetGrantId(), info.IfMatch,
		r.GetRoleKeys())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetProjectGrantRolesResponse{Details: changed(d)}, nil
}

// WithdrawProjectGrant ends a grant of a project of the context organization.
func (s Projects) WithdrawProjectGrant(ctx context.Context,
	r *signetv1.WithdrawProjectGrantRequest) (*signetv1.WithdrawProjectGrantResponse, error) {
	info := call.From(ctx)
	d, err := project.WithdrawGrant(ctx, s.Store, info.Permit, r.GetProjectId(), r.GetGrantId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.WithdrawProjectGrantResponse{Details: changed(d)}, nil
}

// The applications of each are read, too.
const grantsPerPage = 50

// ListGrantedProjects reads a page of the projects that are granted to the context organization.
func (s Projects) ListGrantedProjects(ctx context.Context,
	r *signetv1.ListGrantedProjectsRequest) (*signetv1.ListGrantedProjectsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]project.Granted, *event.Cursor, error) {
			return project.ListGranted(ctx, s.Store, call.From(ctx).Permit, after, min(limit, grantsPerPage))
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListGrantedProjectsResponse{NextPageToken: next}
	for _, g := range found {
		apps, err := s.grantedApps(ctx, g)
		if err != nil {
			return nil, err
		}
		out.Projects = append(out.Projects, &signetv1.GrantedProject{
			GrantId:     g.ID,
			Details:     complete(g.Details()),
			State:       grantState(g.Data.State),
			ProjectId:   g.Data.Project,
			ProjectName: g.ProjectName,
			OwnerName:   g.OwnerName,
			Roles:       showRoles(g.Roles),
			Apps:        apps,
		})
	}
	return out, nil
}

func (s Projects) grantedApps(ctx context.Context, g project.Granted) (shown []*signetv1.GrantedApplication, err error) {
	if g.Data.State != project.Active {
		return nil, nil
	}
	apps, err := app.OfGranted(ctx, s.Store, g.Data.To, g.Data.Project)
	for _, a := range apps {
		shown = append(shown, &signetv1.GrantedApplication{AppId: a.ID, Name: a.Data.Name})
	}
	return shown, err
}

// AcceptGrantedProject accepts a grant to the context organization.
func (s Projects) AcceptGrantedProject(ctx context.Context,
	r *signetv1.AcceptGrantedProjectRequest) (*signetv1.AcceptGrantedProjectResponse, error) {
	info := call.From(ctx)
	d, err := project.AcceptGrant(ctx, s.Store, info.Permit, r.GetGrantId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.AcceptGrantedProjectResponse{Details: changed(d)}, nil
}

// DeclineGrantedProject ends a grant to the context organization.
func (s Projects) DeclineGrantedProject(ctx context.Context,
	r *signetv1.DeclineGrantedProjectRequest) (*signetv1.DeclineGrantedProjectResponse, error) {
	info := call.From(ctx)
	d, err := project.DeclineGrant(ctx, s.Store, info.Permit, r.GetGrantId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeclineGrantedProjectResponse{Details: changed(d)}, nil
}

func grantState(s project.State) signetv1.ProjectGrant_State {
	switch s {
	case project.Pending:
		return signetv1.ProjectGrant_STATE_PENDING
	case project.Active:
		return signetv1.ProjectGrant_STATE_ACTIVE
	}
	return signetv1.ProjectGrant_STATE_UNSPECIFIED
}
