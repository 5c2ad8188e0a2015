package app

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxApprovals is how many clients of other organizations an application may approve.
const MaxApprovals = 100

// Approval lets a client of another organization have tokens for an application.
type Approval struct {
	Client string `json:"client"` // an application or a service user
	Org    string `json:"org"`    // that the client belongs to
	At     int64  `json:"at"`
}

// Groups of applications.
const groupOpen = "apps/open"

func groupApproving(orgID string) string { return "apps/approving/" + orgID }

func groupApproved(clientOrg string) string { return "apps/approved/" + clientOrg }

func groups(a *event.Object[App]) []string {
	var in []string
	if a.Data.AllOrganizations {
		in = append(in, groupOpen)
	}
	if len(a.Data.Approvals) > 0 {
		in = append(in, groupApproving(a.Org))
	}
	if project := a.Data.RoleSettings.Project; project != "" {
		in = append(in, OfProject(project))
	}
	for _, given := range a.Data.Approvals {
		if group := groupApproved(given.Org); !slices.Contains(in, group) {
			in = append(in, group)
		}
	}
	return in
}

// Takes tells whether a client may have tokens for an application: one of the same organization, or one that was
// approved.
func Takes(a *event.Object[App], client, clientOrg string) bool {
	return a.Org == clientOrg || a.Data.approves(client)
}

func (a *App) approves(client string) bool {
	return slices.ContainsFunc(a.Approvals, func(given Approval) bool { return given.Client == client })
}

// ApproveAudience lets a client of another organization, an application or a service user, have tokens for an
// application of the permit's organization. Errors: ErrNotFound; ErrClientNotFound; ErrApprovalNotNeeded;
// ErrApprovalExists; ErrTooManyApprovals; Aborted when match does not hold.
func ApproveAudience(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	client string) (event.Details, error) {
	clientOrg, err := orgOfClient(ctx, s, client) // it never changes
	if err != nil {
		return event.Details{}, err
	}
	return Within(permit, id).Change(ctx, s, match, func(tx *event.Tx, a *event.Object[App]) error {
		switch {
		case clientOrg == "":
			return ErrClientNotFound
		case permit.Reaches(clientOrg):
			return ErrApprovalNotNeeded
		case a.Data.approves(client):
			return ErrApprovalExists
		case len(a.Data.Approvals) >= MaxApprovals:
			return ErrTooManyApprovals
		}
		return Append(permit, a, AudienceApproved{ClientID: client, ClientOrg: clientOrg, At: tx.Now()})
	})
}

// orgOfClient finds the organization of an application or a service user; empty where there is none.
func orgOfClient(ctx context.Context, r event.Reader, id string) (string, error) {
	if user.IsID(id) {
		u, err := user.Kind.Read(ctx, r, id)
		if err != nil || u == nil || u.Data.Service == nil {
			return "", err
		}
		return u.Org, nil
	}
	a, err := Kind.Read(ctx, r, id)
	if err != nil || a == nil || a.Data.State == Removed {
		return "", err
	}
	return a.Org, nil
}

// WithdrawAudience ends the approval of a client: it gets no more tokens for the application, and those that it has do
// not count there any more. Errors: ErrNotFound; ErrApprovalNotFound; Aborted when match does not hold.
func WithdrawAudience(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	client string) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if !a.Data.approves(client) {
			return ErrApprovalNotFound
		}
		return Append(permit, a, AudienceWithdrawn{ClientID: client})
	})
}

// ListApproving reads a page of the applications of the permit's organization that have approved clients of others.
func ListApproving(ctx context.Context, r event.Reader, permit access.Permit, after event.Cursor,
	limit int) ([]*event.Object[App], *event.Cursor, error) {
	return listGroup(ctx, r, groupApproving(permit.Org()), after, limit)
}

// ListApproved reads a page of the applications of other organizations that have approved clients of the permit's, with
// these approvals and no others.
func ListApproved(ctx context.Context, r event.Reader, permit access.Permit, after event.Cursor,
	limit int) ([]*event.Object[App], *event.Cursor, error) {
	found, next, err := listGroup(ctx, r, groupApproved(permit.Org()), after, limit)
	for _, a := range found {
		a.Data.Approvals = slices.DeleteFunc(copied(a.Data.Approvals),
			func(given Approval) bool { return !permit.Reaches(given.Org) })
	}
	return found, next, err
}

// ListOpen reads a page of the applications that are for all organizations, over the whole installation. Errors:
// access.ErrDenied for a permit that is not for the installation.
func ListOpen(ctx context.Context, r event.Reader, permit access.Permit, after event.Cursor,
	limit int) ([]*event.Object[App], *event.Cursor, error) {
	if !permit.Reaches(access.Installation) {
		return nil, nil, access.ErrDenied
	}
	return listGroup(ctx, r, groupOpen, after, limit)
}

// maxGranted is how many applications of a granted project are shown.
const maxGranted = 100

// OfGranted reads the oldest applications of a project to which people of an organization sign in because the project
// was granted to it, as the caller knows.
func OfGranted(ctx context.Context, r event.Reader, orgID, project string) ([]*event.Object[App], error) {
	found, _, err := listGroup(ctx, r, OfProject(project), event.Cursor{}, maxGranted)
	return slices.DeleteFunc(found, func(a *event.Object[App]) bool { return !Serves(a, orgID, true) }), err
}

func listGroup(ctx context.Context, r event.Reader, group string, after event.Cursor,
	limit int) ([]*event.Object[App], *event.Cursor, error) {
	return Kind.List(ctx, r, event.Query{Group: group, After: after, Limit: limit})
}

// OfProject is the group of the applications of a project.
func OfProject(project string) string { return "apps_of/" + project }
