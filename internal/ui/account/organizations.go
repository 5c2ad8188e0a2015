package account

import (
	"cmp"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// organizations lists those that the person is in, and leaves them; and those that would have the person, who accepts
// or declines.
type organizations struct{}

func (organizations) show(v *browserRequest, with pages.Frame) error {
	ctx := v.r.Context()
	all, err := member.Of(ctx, v.Store, v.me)
	if err != nil {
		return err
	}
	offers, err := member.OffersTo(ctx, v.Store, v.me.ID, v.Clock())
	if err != nil {
		return err
	}
	var roles []access.Role
	for _, m := range all {
		roles = append(roles, held(m)...)
	}
	for _, o := range offers {
		roles = append(roles, o.Offer.Data.Roles...)
	}
	names, err := role.NamesOf(ctx, v.Store, roles)
	if err != nil {
		return err
	}
	own := pages.Organization{ID: v.home.ID, Name: v.home.Data.Name, Own: true}
	var others []pages.Organization
	for _, m := range all {
		shown := pages.Organization{ID: m.Org, Name: m.Name, Leave: m.Guest && m.Org != ""}
		if m.Org == v.home.ID {
			shown = own
		}
		scope := cmp.Or(m.Org, access.Installation)
		shown.Roles, shown.Custom = shownRoles(scope, held(m)[:len(m.Roles)], names)
		shown.Waiting, shown.WaitingCustom = shownRoles(scope, m.Waiting, names)
		shown.Unaccepted = m.Guest && !m.Accepted
		for i, r := range held(m) { // with the permissions of custom ones
			if i > 0 {
				shown.All += " "
			}
			shown.All += string(r)
		}
		if shown.Own {
			own = shown
		} else {
			others = append(others, shown)
		}
	}
	view := pages.Organizations{Account: v.account(with), Organizations: append([]pages.Organization{own}, others...)}
	view.Organizations = view.Organizations[:min(len(view.Organizations), maxListed)]
	for i := range view.Organizations { // each has a limit of its own
		shown := &view.Organizations[i]
		if len(v.me.Data.Groups[shown.ID]) == 0 {
			continue
		}
		groups, _, err := group.OfUser(ctx, v.Store, &v.me.Data, shown.ID, event.Cursor{}, user.MaxGroups)
		if err != nil {
			return err
		}
		for _, g := range groups {
			shown.Groups = append(shown.Groups, g.Data.Name)
		}
	}
	for _, o := range offers {
		shown := pages.Offer{ID: o.Offer.ID, Name: o.Org.Data.Name, Domain: o.Org.Data.PrimaryDomain()}
		shown.Roles, shown.Custom = shownRoles(o.Org.ID, o.Offer.Data.Roles, names)
		if v.me.Data.MayAccept(o.Offer.Data.Roles) != nil {
			view.Password = pages.To(pages.PathPassword, nil)
		}
		view.Offers = append(view.Offers, shown)
	}
	return v.render(view, with.Problems)
}

// held are the roles that somebody has in an organization, then those that wait.
func held(m member.Membership) (roles []access.Role) {
	for _, r := range m.Roles {
		roles = append(roles, r.Role)
	}
	return append(roles, m.Waiting...)
}

func shownRoles(scope string, roles []access.Role, names map[string]string) (fixed []string, custom []pages.CustomRole) {
	fixed = role.Show(scope, roles, names, func(name string, allows []string) {
		custom = append(custom, pages.CustomRole{Name: name, Allows: allows})
	})
	return fixed, custom
}

// permissionNames are the permissions that the page has shown with roles; nil where none is custom.
func permissionNames(scope string, roles []access.Role) (names []string) {
	if !slices.ContainsFunc(roles, access.Role.IsCustom) {
		return nil
	}
	for _, p := range access.PermissionsOf(scope, roles) {
		names = append(names, string(p))
	}
	return names
}

func (o organizations) take(v *browserRequest) error {
	ctx, caller, id := v.r.Context(), v.bearer.Caller, v.r.PostFormValue(pages.FieldID)
	var err error
	done := organizationLeft
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoLeave:
		_, err = member.Leave(ctx, v.Store, caller, id, event.IfMatch{})
	case pages.DoAccept:
		done = offerAccepted
		_, err = member.AcceptOffer(ctx, v.Store, caller, id, event.IfMatch{})
	case pages.DoDecline:
		done = offerDeclined
		err = member.DeclineOffer(ctx, v.Store, caller, id)
	case pages.DoAcceptRoles:
		done = offerAccepted
		var shown []access.Role
		for _, r := range strings.Fields(v.r.PostFormValue(pages.FieldRoles)) {
			shown = append(shown, access.Role(r))
		}
		_, err = member.AcceptRoles(ctx, v.Store, caller, id, event.IfMatch{}, access.Names(shown),
			permissionNames(id, shown))
	default:
		return o.show(v, pages.Frame{})
	}
	if err != nil {
		return v.back(o, err)
	}
	return v.on(pages.PathOrgs, done)
}
