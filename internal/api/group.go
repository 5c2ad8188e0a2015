package api

import (
	"context"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// Groups implements GroupService.
type Groups struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time
}

var _ signetv1connect.GroupServiceHandler = Groups{}

// AddGroup creates a group in the context organization.
func (s Groups) AddGroup(ctx context.Context, r *signetv1.AddGroupRequest) (*signetv1.AddGroupResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	created, err := group.Add(ctx, s.Store, call.From(ctx).Permit,
		group.New{Name: r.GetName(), Description: r.GetDescription()}, once)
	if err != nil {
		return nil, err
	}
	return &signetv1.AddGroupResponse{Details: complete(created.Details), GroupId: created.ID}, nil
}

// GetGroup reads a group of the context organization.
func (s Groups) GetGroup(ctx context.Context, r *signetv1.GetGroupRequest) (*signetv1.GetGroupResponse, error) {
	g, err := group.Get(ctx, s.Store, call.From(ctx).Permit, r.GetGroupId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetGroupResponse{Group: showGroup(g)}, nil
}

// ListGroups reads a page of the groups of the context organization.
func (s Groups) ListGroups(ctx context.Context, r *signetv1.ListGroupsRequest) (*signetv1.ListGroupsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[group.Group], *event.Cursor, error) {
			return group.List(ctx, s.Store, call.From(ctx).Permit, r.GetName(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	return &signetv1.ListGroupsResponse{Groups: showGroups(found), NextPageToken: next}, nil
}

// UpdateGroup replaces name and description of a group of the context organization.
func (s Groups) UpdateGroup(ctx context.Context,
	r *signetv1.UpdateGroupRequest) (*signetv1.UpdateGroupResponse, error) {
	info := call.From(ctx)
	d, err := group.Change(ctx, s.Store, info.Permit, r.GetGroupId(), info.IfMatch,
		group.New{Name: r.GetName(), Description: r.GetDescription()})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateGroupResponse{Details: changed(d)}, nil
}

// RemoveGroup ends a group of the context organization.
func (s Groups) RemoveGroup(ctx context.Context,
	r *signetv1.RemoveGroupRequest) (*signetv1.RemoveGroupResponse, error) {
	info := call.From(ctx)
	d, err := lifecycle.RemoveGroup(ctx, s.Store, info.Permit, r.GetGroupId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveGroupResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx)}, nil
}

// SetGroupRoles says which roles of this API a group of the context organization gives.
func (s Groups) SetGroupRoles(ctx context.Context,
	r *signetv1.SetGroupRolesRequest) (*signetv1.SetGroupRolesResponse, error) {
	info := call.From(ctx)
	d, err := group.SetRoles(ctx, s.Store, info.Permit, r.GetGroupId(), info.IfMatch, r.GetRoles())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetGroupRolesResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx)}, nil
}

// AddGroupMember puts a user or a guest of the context organization into a group.
func (s Groups) AddGroupMember(ctx context.Context,
	r *signetv1.AddGroupMemberRequest) (*signetv1.AddGroupMemberResponse, error) {
	info := call.From(ctx)
	d, err := group.AddMember(ctx, s.Store, info.Permit, r.GetGroupId(), r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.AddGroupMemberResponse{Details: changed(d)}, nil
}

// RemoveGroupMember takes a user out of a group of the context organization.
func (s Groups) RemoveGroupMember(ctx context.Context,
	r *signetv1.RemoveGroupMemberRequest) (*signetv1.RemoveGroupMemberResponse, error) {
	info := call.From(ctx)
	d, err := group.RemoveMember(ctx, s.Store, info.Permit, r.GetGroupId(), r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveGroupMemberResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx)}, nil
}

// ownerless tells somebody who may leave the organization without an owner whether it is. What was changed stays so if
// that cannot be read.
func (s Groups) ownerless(ctx context.Context) []string {
	permit := call.From(ctx).Permit
	if !permit.ForInstallation(access.MemberWrite) {
		return nil
	}
	ids, _ := member.Ownerless(ctx, s.Store, access.Memberships{permit.Org(): {access.OrgOwner}})
	return ids
}

// ListGroupMembers reads a page of the members of a group of the context organization.
func (s Groups) ListGroupMembers(ctx context.Context,
	r *signetv1.ListGroupMembersRequest) (*signetv1.ListGroupMembersResponse, error) {
	permit := call.From(ctx).Permit
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[user.User], *event.Cursor, error) {
			return group.ListMembers(ctx, s.Store, permit, r.GetGroupId(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListGroupMembersResponse{NextPageToken: next}
	for _, u := range found {
		out.Members = append(out.Members, &signetv1.GroupMember{
			UserId:      u.ID,
			Details:     complete(u.Details()),
			UserName:    u.Data.UserName,
			DisplayName: u.Data.ShownName(),
			Guest:       u.Org != permit.Org(),
		})
	}
	return out, nil
}

// ListUserGroups reads a page of the groups of the context organization that a user is in.
func (s Groups) ListUserGroups(ctx context.Context,
	r *signetv1.ListUserGroupsRequest) (*signetv1.ListUserGroupsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[group.Group], *event.Cursor, error) {
			return group.OfMember(ctx, s.Store, call.From(ctx).Permit, r.GetUserId(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserGroupsResponse{Groups: showGroups(found), NextPageToken: next}, nil
}

// ListMyGroups reads a page of the groups that the caller is in.
func (s Groups) ListMyGroups(ctx context.Context,
	r *signetv1.ListMyGroupsRequest) (*signetv1.ListMyGroupsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[group.Group], *event.Cursor, error) {
			u, err := user.Self(ctx, s.Store, call.From(ctx).Caller)
			if err != nil {
				return nil, nil, err
			}
			return group.OfUser(ctx, s.Store, &u.Data, "", after, limit)
		})
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyGroupsResponse{Groups: showGroups(found), NextPageToken: next}, nil
}

func showGroup(g *event.Object[group.Group]) *signetv1.Group {
	return &signetv1.Group{GroupId: g.ID, Details: complete(g.Details()), Name: g.Data.Name,
		Description: g.Data.Description, Roles: access.Names(g.Data.Roles)}
}

func showGroups(groups []*event.Object[group.Group]) (all []*signetv1.Group) {
	for _, g := range groups {
		all = append(all, showGroup(g))
	}
	return all
}
