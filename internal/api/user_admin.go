package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// AddHumanUser creates a person in the context organization.
func (s Users) AddHumanUser(ctx context.Context,
	r *signetv1.AddHumanUserRequest) (*signetv1.AddHumanUserResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	info := call.From(ctx)
	added, err := user.CreateHuman{NewHuman: humanOf(r), Password: r.GetPassword(),
		ChangeRequired: !r.GetNoChangeRequired()}.
		Do(ctx, s.Store, s.Hasher.For(info.Org()), info.Permit, once)
	if err != nil {
		return nil, err
	}
	return &signetv1.AddHumanUserResponse{Details: complete(added.Details), UserId: added.ID}, nil
}

func humanOf(r *signetv1.AddHumanUserRequest) user.NewHuman {
	p := r.GetProfile()
	return user.NewHuman{
		UserName: r.GetUserName(),
		Profile: user.Profile{FirstName: p.GetFirstName(), LastName: p.GetLastName(), NickName: p.GetNickName(),
			DisplayName: p.GetDisplayName(), PreferredLanguage: p.GetPreferredLanguage(),
			Gender: genders.name(p.GetGender())},
		Email: r.GetEmail().GetEmail(), EmailVerified: r.GetEmail().GetIsEmailVerified(),
		Phone: r.GetPhone().GetPhone(), PhoneVerified: r.GetPhone().GetIsPhoneVerified(),
	}
}

// AddServiceUser creates a service user in the context organization.
func (s Users) AddServiceUser(ctx context.Context,
	r *signetv1.AddServiceUserRequest) (*signetv1.AddServiceUserResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	added, err := user.CreateService{UserName: r.GetUserName(), Name: r.GetName(), Description: r.GetDescription()}.
		Do(ctx, s.Store, call.From(ctx).Permit, once)
	if err != nil {
		return nil, err
	}
	return &signetv1.AddServiceUserResponse{Details: complete(added.Details), UserId: added.ID}, nil
}

// ListUsers reads a page of the users of the context organization, which is read once for the login names of all.
func (s Users) ListUsers(ctx context.Context, r *signetv1.ListUsersRequest) (*signetv1.ListUsersResponse, error) {
	info := call.From(ctx)
	filter := user.Filter{UserName: r.GetUserName(), Name: r.GetName(), Email: r.GetEmail(),
		State: userStates.name(r.GetState()), Type: userTypes.name(r.GetType())}
	var owner *event.Object[org.Org]
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) (_ []*event.Object[user.User], _ *event.Cursor, err error) {
			if owner, err = org.Home(ctx, s.Store, info.Caller, info.Permit.Org()); err != nil {
				return nil, nil, err
			}
			return user.List(ctx, s.Store, info.Permit, filter, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListUsersResponse{NextPageToken: next}
	for _, u := range found {
		out.Users = append(out.Users, showUser(u, owner))
	}
	return out, nil
}

// usualSearch is how many users a page of a search has when nobody says so.
const usualSearch = 20

// SearchUsers reads a page of the users of the context organization, or of all, who are found by words. Each
// organization is read once.
func (s Users) SearchUsers(ctx context.Context, r *signetv1.SearchUsersRequest) (*signetv1.SearchUsersResponse, error) {
	info := call.From(ctx)
	if r.GetPageSize() == 0 {
		r.PageSize = usualSearch
	}
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[user.User], *event.Cursor, error) {
			return user.Search(ctx, s.Store, info.Permit, r.GetQuery(), r.GetAllOrganizations(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, u := range found {
		ids[i] = u.Org
	}
	owners, err := org.OwningAll(ctx, s.Store, info.Caller, ids)
	if err != nil {
		return nil, err
	}
	out := &signetv1.SearchUsersResponse{NextPageToken: next}
	for _, u := range found {
		owner := owners[u.Org]
		if owner == nil { // its users are about to go, too
			continue
		}
		out.Results = append(out.Results,
			&signetv1.SearchUsersResponse_Found{User: showUser(u, owner), OrgId: owner.ID, OrgName: owner.Data.Name})
	}
	return out, nil
}

// UpdateUserProfile replaces the profile of a user of the context organization.
func (s Users) UpdateUserProfile(ctx context.Context,
	r *signetv1.UpdateUserProfileRequest) (*signetv1.UpdateUserProfileResponse, error) {
	info := call.From(ctx)
	d, err := user.ReplaceProfileOf(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, user.Profile{
		FirstName: r.GetFirstName(), LastName: r.GetLastName(), NickName: r.GetNickName(),
		DisplayName:       r.GetDisplayName(),
		PreferredLanguage: r.GetPreferredLanguage(), Gender: genders.name(r.GetGender()),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateUserProfileResponse{Details: changed(d)}, nil
}

// UpdateServiceUser replaces name and description of a service user of the context organization.
func (s Users) UpdateServiceUser(ctx context.Context,
	r *signetv1.UpdateServiceUserRequest) (*signetv1.UpdateServiceUserResponse, error) {
	info := call.From(ctx)
	d, err := user.ReplaceService(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetName(),
		r.GetDescription())
	if err != nil {
		return nil, err
	}
	return &signetv1.UpdateServiceUserResponse{Details: changed(d)}, nil
}

// SetUserName gives a user of the context organization another user name.
func (s Users) SetUserName(ctx context.Context, r *signetv1.SetUserNameRequest) (*signetv1.SetUserNameResponse, error) {
	info := call.From(ctx)
	d, err := user.SetUserName(ctx, s.Store, info.Permit, r.GetUserId(), info.IfMatch, r.GetUserName())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserNameResponse{Details: changed(d)}, nil
}
