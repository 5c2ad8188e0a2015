package account

import (
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/group"
	"github.com/signet-idm/signet/internal/member"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/user"
)

// organizations lists those that the person is in, and leaves them.
type organizations struct{}

func (organizations) show(v *visit, with pages.Frame) error {
	ctx := v.r.Context()
	all, err := member.Of(ctx, v.Store, v.me)
	if err != nil {
		return err
	}
	groups, _, err := group.OfUser(ctx, v.Store, &v.me.Data, "", event.Cursor{}, user.MaxGroups)
	if err != nil {
		return err
	}
	names := map[string]string{} // of those that are there
	for _, g := range groups {
		names[g.ID] = g.Data.Name
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
		for _, id := range m.Groups {
			if name, there := names[id]; there {
				shown.Groups = append(shown.Groups, name)
			}
		}
		if shown.Own {
			own = shown
		} else {
			others = append(others, shown)
		}
	}
	view := pages.Organizations{Account: v.account(with), Organizations: append([]pages.Organization{own}, others...)}
	view.Organizations = view.Organizations[:min(len(view.Organizations), maxListed)]
	return v.render(view, with.Problems)
}

func (o organizations) take(v *visit) error {
	if v.r.PostFormValue(pages.FieldDo) != pages.DoLeave {
		return o.show(v, pages.Frame{})
	}
	if _, err := member.Leave(v.r.Context(), v.Store, v.bearer.Caller, v.r.PostFormValue(pages.FieldID), event.IfMatch{}); err != nil {
		return v.back(o, err)
	}
	return v.on(pages.PathOrgs, organizationLeft)
}
