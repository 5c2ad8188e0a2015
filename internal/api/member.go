package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Members implements MemberService.
type Members struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time
}

var _ signetv1connect.MemberServiceHandler = Members{}

// ListOrganizationMembers reads a page of the members of the organization the path names.
func (s Members) ListOrganizationMembers(ctx context.Context,
	r *signetv1.ListOrganizationMembersRequest) (*signetv1.ListOrganizationMembersResponse, error) {
	members, next, err := s.list(ctx, r, member.OfOrganization)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListOrganizationMembersResponse{Members: members, NextPageToken: next}, nil
}

// SetOrganizationMember gives a user roles in the organization the path names.
func (s Members) SetOrganizationMember(ctx context.Context,
	r *signetv1.SetOrganizationMemberRequest) (*signetv1.SetOrganizationMemberResponse, error) {
	info := call.From(ctx)
	members, err := member.OfOrganization(info.Permit)
	if err != nil {
		return nil, err
	}
	d, err := members.Set(ctx, s.Store, r.GetUserId(), info.IfMatch, r.GetRoles())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetOrganizationMemberResponse{Details: changed(d.Details), OrgsWithoutOwner: s.ownerless(ctx),
		Home: s.home(ctx, d.Home), OfferId: d.Offer}, nil
}

// RemoveOrganizationMember takes a user's roles there away.
func (s Members) RemoveOrganizationMember(ctx context.Context,
	r *signetv1.RemoveOrganizationMemberRequest) (*signetv1.RemoveOrganizationMemberResponse, error) {
	info := call.From(ctx)
	members, err := member.OfOrganization(info.Permit)
	if err != nil {
		return nil, err
	}
	d, err := members.Remove(ctx, s.Store, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveOrganizationMemberResponse{Details: changed(d), OrgsWithoutOwner: s.ownerless(ctx)}, nil
}

// ownerless tells somebody who may leave the organization without an owner whether it is. What was changed stays so if
// that cannot be read.
func (s Members) ownerless(ctx context.Context) []string {
	permit := call.From(ctx).Permit
	if !permit.ForInstallation(access.MemberWrite) {
		return nil
	}
	ids, _ := member.Ownerless(ctx, s.Store, access.Memberships{permit.Org(): {access.OrgOwner}})
	return ids
}

// ListInstallationMembers reads a page of the members of the installation.
func (s Members) ListInstallationMembers(ctx context.Context,
	r *signetv1.ListInstallationMembersRequest) (*signetv1.ListInstallationMembersResponse, error) {
	members, next, err := s.list(ctx, r, member.OfInstallation)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListInstallationMembersResponse{Members: members, NextPageToken: next}, nil
}

// SetInstallationMember gives a user roles in the installation.
func (s Members) SetInstallationMember(ctx context.Context,
	r *signetv1.SetInstallationMemberRequest) (*signetv1.SetInstallationMemberResponse, error) {
	info := call.From(ctx)
	members, err := member.OfInstallation(info.Permit)
	if err != nil {
		return nil, err
	}
	d, err := members.Set(ctx, s.Store, r.GetUserId(), info.IfMatch, r.GetRoles())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetInstallationMemberResponse{Details: changed(d.Details)}, nil
}

// RemoveInstallationMember takes a user's roles there away.
func (s Members) RemoveInstallationMember(ctx context.Context,
	r *signetv1.RemoveInstallationMemberRequest) (*signetv1.RemoveInstallationMemberResponse, error) {
	info := call.From(ctx)
	members, err := member.OfInstallation(info.Permit)
	if err != nil {
		return nil, err
	}
	d, err := members.Remove(ctx, s.Store, r.GetUserId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveInstallationMemberResponse{Details: changed(d)}, nil
}

// ListMyMemberships tells what the caller holds.
func (s Members) ListMyMemberships(ctx context.Context,
	_ *signetv1.ListMyMembershipsRequest) (*signetv1.ListMyMembershipsResponse, error) {
	u, err := user.Self(ctx, s.Store, call.From(ctx).Caller)
	if err != nil {
		return nil, err
	}
	all, err := member.Of(ctx, s.Store, u)
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListMyMembershipsResponse{}
	for _, m := range all {
		out.Memberships = append(out.Memberships, renderMembership(m))
	}
	return out, nil
}

func renderMembership(m member.Membership) *signetv1.Membership {
	shown := &signetv1.Membership{OrgId: m.Org, OrgName: m.Name, Guest: m.Guest, GroupIds: m.Groups,
		Accepted: m.Accepted, WaitingRoles: access.Names(m.Waiting)}
	held := slices.Clone(m.Waiting)
	for _, r := range m.Roles {
		shown.Roles = append(shown.Roles, r.Role.Name())
		held = append(held, r.Role)
		shown.Sources = append(shown.Sources,
			&signetv1.RoleSource{Role: r.Role.Name(), Direct: r.Direct, GroupIds: r.Groups})
	}
	shown.Permissions = permissionNames(access.PermissionsOf(cmp.Or(m.Org, access.Installation), held))
	return shown
}

func permissionNames(permissions []access.Permission) (names []string) {
	for _, p := range permissions {
		names = append(names, string(p))
	}
	return names
}

// ListUserMemberships tells the own organization of a user what the user holds there, and what others gave the user
// without an acceptance.
func (s Members) ListUserMemberships(ctx context.Context,
	r *signetv1.ListUserMembershipsRequest) (*signetv1.ListUserMembershipsResponse, error) {
	u, err := user.Get(ctx, s.Store, call.From(ctx).Permit, r.GetUserId())
	if err != nil {
		return nil, err
	}
	all, err := member.Of(ctx, s.Store, u)
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListUserMembershipsResponse{}
	for _, m := range all {
		if m.Org == u.Org || m.Guest && (!m.Accepted || len(m.Waiting) > 0) {
			out.Memberships = append(out.Memberships, renderMembership(m))
		}
	}
	return out, nil
}

// AcceptMyRoles accepts what the caller was given in another organization.
func (s Members) AcceptMyRoles(ctx context.Context,
	r *signetv1.AcceptMyRolesRequest) (*signetv1.AcceptMyRolesResponse, error) {
	info := call.From(ctx)
	d, err := member.AcceptRoles(ctx, s.Store, info.Caller, r.GetOrgId(), info.IfMatch, r.GetRoles(),
		r.GetPermissions())
	if err != nil {
		return nil, err
	}
	return &signetv1.AcceptMyRolesResponse{Details: changed(d)}, nil
}

// ListMyOffers reads the offers to the caller.
func (s Members) ListMyOffers(ctx context.Context,
	_ *signetv1.ListMyOffersRequest) (*signetv1.ListMyOffersResponse, error) {
	offers, err := member.OffersTo(ctx, s.Store, call.From(ctx).Caller.UserID, s.Clock())
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyOffersResponse{Offers: renderOffers(offers)}, nil
}

func renderOffers(offers []member.Shown) (out []*signetv1.MyOffer) {
	for _, o := range offers {
		shown := &signetv1.MyOffer{
			OfferId:        o.Offer.ID,
			OrgId:          o.Org.ID,
			OrgName:        o.Org.Data.Name,
			OrgDomain:      o.Org.Data.PrimaryDomain(),
			Roles:          access.Names(o.Offer.Data.Roles),
			ExpirationDate: timestamppb.New(event.Time(o.Offer.Data.Expires)),
			Permissions:    permissionNames(access.PermissionsOf(o.Org.ID, o.Offer.Data.Roles)),
		}
		out = append(out, shown)
	}
	return out
}

// AcceptMyOffer accepts an offer to the caller.
func (s Members) AcceptMyOffer(ctx context.Context,
	r *signetv1.AcceptMyOfferRequest) (*signetv1.AcceptMyOfferResponse, error) {
	info := call.From(ctx)
	d, err := member.AcceptOffer(ctx, s.Store, info.Caller, r.GetOfferId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.AcceptMyOfferResponse{Details: changed(d)}, nil
}

// DeclineMyOffer declines an offer to the caller.
func (s Members) DeclineMyOffer(ctx context.Context,
	r *signetv1.DeclineMyOfferRequest) (*signetv1.DeclineMyOfferResponse, error) {
	if err := member.DeclineOffer(ctx, s.Store, call.From(ctx).Caller, r.GetOfferId()); err != nil {
		return nil, err
	}
	return &signetv1.DeclineMyOfferResponse{}, nil
}

// ListServiceUserOffers reads the offers to a service user.
func (s Members) ListServiceUserOffers(ctx context.Context,
	r *signetv1.ListServiceUserOffersRequest) (*signetv1.ListServiceUserOffersResponse, error) {
	offers, err := member.OffersToService(ctx, s.Store, call.From(ctx).Permit, r.GetUserId(), s.Clock())
	if err != nil {
		return nil, err
	}
	return &signetv1.ListServiceUserOffersResponse{Offers: renderOffers(offers)}, nil
}

// AcceptServiceUserOffer accepts an offer to a service user.
func (s Members) AcceptServiceUserOffer(ctx context.Context,
	r *signetv1.AcceptServiceUserOfferRequest) (*signetv1.AcceptServiceUserOfferResponse, error) {
	info := call.From(ctx)
	d, err := member.AcceptOfferFor(ctx, s.Store, info.Permit, r.GetUserId(), r.GetOfferId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.AcceptServiceUserOfferResponse{Details: changed(d)}, nil
}

// DeclineServiceUserOffer declines an offer to a service user.
func (s Members) DeclineServiceUserOffer(ctx context.Context,
	r *signetv1.DeclineServiceUserOfferRequest) (*signetv1.DeclineServiceUserOfferResponse, error) {
	if err := member.DeclineOfferFor(ctx, s.Store, call.From(ctx).Permit, r.GetUserId(), r.GetOfferId()); err != nil {
		return nil, err
	}
	return &signetv1.DeclineServiceUserOfferResponse{}, nil
}

// offerStates pairs the numbers of the API with the words of the package.
var offerStates = enum[signetv1.Offer_State, member.OfferState]{
	signetv1.Offer_STATE_OPEN:      member.OfferOpen,
	signetv1.Offer_STATE_ACCEPTED:  member.OfferAccepted,
	signetv1.Offer_STATE_WITHDRAWN: member.OfferWithdrawn,
	signetv1.Offer_STATE_REPLACED:  member.OfferReplaced,
	signetv1.Offer_STATE_EXPIRED:   member.OfferExpired,
}

// ListOffers reads a page of the offers that an organization has made.
func (s Members) ListOffers(ctx context.Context, r *signetv1.ListOffersRequest) (*signetv1.ListOffersResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[member.Offer], *event.Cursor, error) {
			return member.Offers(ctx, s.Store, call.From(ctx).Permit, offerStates[r.GetState()],
				s.Clock(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListOffersResponse{NextPageToken: next}
	for _, o := range found {
		out.Offers = append(out.Offers, &signetv1.Offer{
			OfferId:        o.ID,
			Details:        complete(o.Details()),
			State:          offerStates.number(o.Data.StateAt(s.Clock())),
			UserId:         o.Data.UserID,
			Roles:          access.Names(o.Data.Roles),
			ExpirationDate: timestamppb.New(event.Time(o.Data.Expires)),
		})
	}
	return out, nil
}

// WithdrawOffer takes an offer back.
func (s Members) WithdrawOffer(ctx context.Context,
	r *signetv1.WithdrawOfferRequest) (*signetv1.WithdrawOfferResponse, error) {
	info := call.From(ctx)
	d, err := member.Withdraw(ctx, s.Store, info.Permit, r.GetOfferId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.WithdrawOfferResponse{Details: changed(d)}, nil
}

// LeaveOrganization takes the caller out of an organization.
func (s Members) LeaveOrganization(ctx context.Context,
	r *signetv1.LeaveOrganizationRequest) (*signetv1.LeaveOrganizationResponse, error) {
	info := call.From(ctx)
	d, err := member.Leave(ctx, s.Store, info.Caller, r.GetOrgId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.LeaveOrganizationResponse{Details: changed(d)}, nil
}

// list reads a page of the members that the permit is for.
func (s Members) list(ctx context.Context, r pageRequest,
	of func(access.Permit) (member.Members, error)) (members []*signetv1.Member, next string, err error) {
	permit := call.From(ctx).Permit
	users, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[user.User], *event.Cursor, error) {
			all, err := of(permit)
			if err != nil {
				return nil, nil, err
			}
			return all.List(ctx, s.Store, after, limit)
		})
	if err != nil {
		return nil, "", err
	}
	homes, err := s.homes(ctx, users, permit.Org())
	if err != nil {
		return nil, "", err
	}
	for _, u := range users {
		shown := renderMember(u, permit.Org(), homes[u.Org])
		if permit.Uses() == access.AuditRead {
			shown.UserName = "" // which is an e-mail address at times
		}
		members = append(members, shown)
	}
	return members, next, nil
}

// homes are the organizations that users belong to, as members of a scope see them: all but the scope itself.
func (s Members) homes(ctx context.Context, users []*event.Object[user.User],
	scope string) (map[string]*signetv1.Home, error) {
	var ids []string
	for _, u := range users {
		if u.Org != scope {
			ids = append(ids, u.Org)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	orgs, err := org.OwningAll(ctx, s.Store, call.From(ctx).Caller, ids)
	if err != nil {
		return nil, err
	}
	homes := map[string]*signetv1.Home{}
	for id, o := range orgs {
		homes[id] = &signetv1.Home{OrgId: id, Name: o.Data.Name, PrimaryDomain: o.Data.PrimaryDomain()}
	}
	return homes, nil
}

// home is the organization that somebody belongs to who got roles in another one; nil: in this one. What was changed
// stays so if that cannot be read.
func (s Members) home(ctx context.Context, homeID string) *signetv1.Home {
	scope := call.From(ctx).Permit.Org()
	if homeID == scope {
		return nil
	}
	homes, _ := s.homes(ctx, []*event.Object[user.User]{{Org: homeID}}, scope)
	return homes[homeID]
}

func renderMember(u *event.Object[user.User], scope string, home *signetv1.Home) *signetv1.Member {
	return &signetv1.Member{
		Home:         home,
		UserId:       u.ID,
		Details:      complete(u.Details()),
		UserName:     u.Data.UserName,
		DisplayName:  u.Data.ShownName(),
		Roles:        access.Names(u.Data.Memberships[scope]),
		DirectRoles:  access.Names(u.Data.Direct()[scope]),
		Guest:        user.IsGuest(u, scope),
		Accepted:     user.IsGuest(u, scope) && !user.Unaccepted(u, scope),
		WaitingRoles: access.Names(u.Data.Waiting(scope)),
	}
}
