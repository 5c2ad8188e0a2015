package account

import (
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
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
	own := pages.Organization{ID: v.home.ID, Name: v.home.Data.Name, Own: true}
	var others []pages.Organization
	for _, m := range all {
		shown := pages.Organization{ID: m.Org, Name: m.Name, Leave: m.Guest && m.Org != ""}
		if m.Org == v.home.ID {
			shown = own
		}
		for _, r := range m.Roles {
			shown.Roles = append(shown.Roles, string(r.Role))
		}
		for _, r := range m.Waiting {
			shown.Waiting = append(shown.Waiting, string(r))
		}
		shown.Unaccepted = m.Guest && !m.Accepted
		shown.All = strings.Join(slices.Concat(shown.Roles, shown.Waiting), " ")
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
	offers, err := member.OffersTo(ctx, v.Store, v.me.ID, v.Clock())
	if err != nil {
		return err
	}
	for _, o := range offers {
		shown := pages.Offer{ID: o.Offer.ID, Name: o.Org.Data.Name, Domain: o.Org.Data.PrimaryDomain()}
		for _, r := range o.Offer.Data.Roles {
			shown.Roles = append(shown.Roles, string(r))
		}
		if v.me.Data.MayAccept(o.Offer.Data.Roles) != nil {
			view.Password = pages.To(pages.PathPassword, nil)
		}
		view.Offers = append(view.Offers, shown)
	}
	return v.render(view, with.Problems)
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
		_, err = member.AcceptRoles(ctx, v.Store, caller, id, event.IfMatch{},
			strings.Fields(v.r.PostFormValue(pages.FieldRoles)))
	default:
		return o.show(v, pages.Frame{})
	}
	if err != nil {
		return v.back(o, err)
	}
	return v.on(pages.PathOrgs, done)
}
