package setup

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
)

// InvitedOrganization is what an organization is set up with whose administrator is invited.
type InvitedOrganization struct {
	Name          string
	Domain        string         // empty: one is made under the suffix
	Administrator invitation.New // without roles and groups: the role is ORG_OWNER
}

// Violations lists what is wrong with it, in the names of the API.
func (o *InvitedOrganization) Violations() errs.Violations {
	return append(orgViolations(o.Name, o.Domain), o.Administrator.Violations()...)
}

// DoneInvited is what Invited answers.
type DoneInvited struct {
	Details      event.Details // of the organization
	OrgID        string
	InvitationID string
	Expires      time.Time
	// Link is shown only to who made it, without mail. It is not kept with the answer for once.
	Link string `json:"-"`
}

// Invited creates an organization, its domain and the invitation of its administrator: all or nothing. Until somebody
// accepts it the organization has no owner. The permit must be for the installation. Errors: InvalidArgument with
// violations; org.ErrDomainTaken; those of once; those of invitation.Draft.Make.
func (s Setup) Invited(ctx context.Context, permit access.Permit, once event.Once, invitations invitation.Invitations,
	in InvitedOrganization) (DoneInvited, error) {
	if !permit.Reaches(access.Installation) {
		return DoneInvited{}, access.ErrDenied
	}
	if err := in.Violations().Err(); err != nil {
		return DoneInvited{}, err
	}
	plan := s.plan(in.Name, in.Domain)
	draft := invitations.Founding(permit, plan.orgID, in.Administrator)
	var done DoneInvited
	err := s.Store.Do(ctx, once.Wrap(draft.Needs().With(event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{org.Kind.Ref(plan.orgID)},
		Claims: plan.claims(),
		Decide: func(tx *event.Tx) error {
			o, err := org.Add(tx, plan.orgID, in.Name, plan.domains)
			if err != nil {
				return err
			}
			if err := draft.Make(tx); err != nil {
				return err
			}
			done = DoneInvited{Details: o.Details(), OrgID: plan.orgID, InvitationID: draft.ID,
				Expires: draft.Made().Expires}
			return nil
		},
	}), &done))
	if err != nil {
		return DoneInvited{}, err
	}
	if done.InvitationID == draft.ID { // else it is a repetition
		done.Link = draft.Made().Link
	}
	return done, nil
}
