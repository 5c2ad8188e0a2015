// Package invitation holds the rules of invitations: a member of an organization invites a person by e-mail address,
// with roles and groups.
//
// The address is encrypted under a key of the invitation. The key is destroyed when the invitation ends unaccepted, or
// when the user who accepted it is removed. A link that came by mail proves the address; a link that was shown to the
// inviter proves nothing. Whether the inviter may give the roles and groups is checked when the invitation is made, and
// again when it is accepted, with the roles that the inviter has then.
package invitation

import (
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of an invitation.
type State string

// PENDING -> ACCEPTED, WITHDRAWN or EXPIRED. REMOVED with the organization.
const (
	Pending   State = "pending"
	Accepted  State = "accepted"
	Withdrawn State = "withdrawn"
	Expired   State = "expired"
	Removed   State = "removed"
)

// Invitation is the state of an invitation.
type Invitation struct {
	State    State         `json:"state"`
	Email    string        `json:"email,omitempty"` // empty once it has ended unaccepted, or its user is gone
	EmailKey string        `json:"emailKey,omitempty"`
	Roles    []access.Role `json:"roles,omitempty"`
	Groups   []string      `json:"groups,omitempty"`
	// roles that its groups gave when it was sent last: with Roles, what somebody of another organization accepts
	Shows    []access.Role `json:"shows,omitempty"`
	Language string        `json:"language,omitempty"`
	Inviter  string        `json:"inviter"`
	// Founds says that it was made with its organization, for the first owner: the inviter may set up organizations,
	// and need not hold what an owner holds.
	Founds bool `json:"founds,omitempty"`
	// App is the application that the person is invited to use, and Target a page of it; empty: none.
	App    string `json:"app,omitempty"`
	Target string `json:"target,omitempty"`
	// AppRoles are roles in applications, as they were when the invitation was made.
	AppRoles []user.AppRoles `json:"appRoles,omitempty"`

	Link    int64 `json:"link"`            // the number of the link that counts, from 1
	Shown   bool  `json:"shown,omitempty"` // it was shown to the inviter: it proves no address
	Life    int64 `json:"life"`            // of a link, in microseconds
	Expires int64 `json:"expires"`         // of this one

	UserID string `json:"userId,omitempty"` // who has accepted it
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Invitation]{
	Name: "invitation", Table: "invitations", Prefix: "inv", Shape: 1,
	Facts: []event.Fact[Invitation]{Added{}, Sent{}, WasAccepted{}, WasWithdrawn{}, HasExpired{},
		Erased{}, WasRemoved{}},
	Columns: []string{event.State, "email"},
	Lookup: func(o *event.Object[Invitation]) []string {
		email := ""
		if o.Data.EmailKey != "" {
			email = user.EmailDigest(o.Data.EmailKey)
		}
		return []string{string(o.Data.State), email}
	},
	Claims: func(o *event.Object[Invitation]) []event.Claim {
		if o.Data.State != Pending {
			return nil
		}
		return []event.Claim{EmailClaim(o.Org, o.Data.EmailKey)}
	},
	Groups: func(o *event.Object[Invitation]) []string {
		if o.Data.State != Accepted || o.Data.Email == "" {
			return nil
		}
		return []string{AcceptedBy(o.Data.UserID)}
	},
	Copy: func(i *Invitation) Invitation { return *i }, // lists are replaced, never altered
})

// EmailClaim is the claim of the one pending invitation of an address (in its comparison form) into an organization.
func EmailClaim(org, key string) event.Claim {
	return event.Claim{Space: "invitation/" + org, Key: key}
}

// AcceptedBy is the group of the invitations that a user has accepted.
func AcceptedBy(userID string) string { return "invitations_of/" + userID }

// version is the version of facts from which on nodes know invitations: one that does not would remove a user and leave
// the address of the invitation.
const version = 4

// Added records a new invitation.
type Added struct {
	Roles    []access.Role `json:"roles,omitempty"`
	Groups   []string      `json:"groups,omitempty"`
	Language string        `json:"language,omitempty"`
	Inviter  string        `json:"inviter"`
	Founds   bool          `json:"founds,omitempty"`
	App      string        `json:"app,omitempty"`

	AppRoles []user.AppRoles `json:"appRoles,omitempty"`

	Personal Invited `json:"-"`
}

// Invited is who is invited.
type Invited struct {
	Email    string `json:"email,omitempty"`
	EmailKey string `json:"emailKey,omitempty"`
	Target   string `json:"target,omitempty"` // who it is for may be in it
}

// EventType implements event.Fact.
func (Added) EventType() event.Type { return "invitation.added.v1" }

// Since implements event.Gated: a node of before would forget that the invitation founds an organization, and what for.
func (e Added) Since() int {
	if e.Founds || e.App != "" || len(e.AppRoles) > 0 {
		return 6
	}
	return max(version, access.RolesSince(e.Roles))
}

// Apply implements event.Fact.
func (e Added) Apply(i *Invitation) {
	*i = Invitation{State: Pending, Email: e.Personal.Email, EmailKey: e.Personal.EmailKey, Roles: e.Roles,
		Groups: e.Groups, Language: e.Language, Inviter: e.Inviter, Founds: e.Founds, App: e.App,
		Target: e.Personal.Target, AppRoles: e.AppRoles}
}

// Sent records a new link, which ends the one before. The link itself is a secret, not a fact.
type Sent struct {
	Link    int64 `json:"link"`
	Shown   bool  `json:"shown,omitempty"` // to who asked for it; else it goes to the address by mail
	Life    int64 `json:"life"`
	Expires int64 `json:"expires"`
	// Inviter is the user who answers for the invitation from now on: the one who sent it last and was not support.
	Inviter string `json:"inviter"`
	// Shows are the roles that its groups gave at this moment. Missing in the first events: nobody accepts them by
	// those.
	Shows []access.Role `json:"shows,omitempty"`
}

// EventType implements event.Fact.
func (Sent) EventType() event.Type { return "invitation.sent.v1" }

// Since implements event.Gated: a node of before would forget what the invitation shows.
func (e Sent) Since() int {
	if len(e.Shows) > 0 {
		return 5
	}
	return 0
}

// Apply implements event.Fact.
func (e Sent) Apply(i *Invitation) {
	i.Link, i.Shown, i.Life, i.Expires, i.Inviter, i.Shows = e.Link, e.Shown, e.Life, e.Expires, e.Inviter, e.Shows
}

// WasAccepted records who has accepted the invitation.
type WasAccepted struct {
	UserID string `json:"userId"`
}

// EventType implements event.Fact.
func (WasAccepted) EventType() event.Type { return "invitation.accepted.v1" }

// Apply implements event.Fact.
func (e WasAccepted) Apply(i *Invitation) { i.State, i.UserID = Accepted, e.UserID }

// forget leaves nothing of who was invited.
func (i *Invitation) forget() { i.Email, i.EmailKey, i.Target = "", "", "" }

// WasWithdrawn records that the invitation was taken back. Nothing is left of the address.
type WasWithdrawn struct{}

// EventType implements event.Fact.
func (WasWithdrawn) EventType() event.Type { return "invitation.withdrawn.v1" }

// Apply implements event.Fact.
func (WasWithdrawn) Apply(i *Invitation) {
	i.State = Withdrawn
	i.forget()
}

// HasExpired records that nobody has accepted the invitation in time. Nothing is left of the address.
type HasExpired struct{}

// EventType implements event.Fact.
func (HasExpired) EventType() event.Type { return "invitation.expired.v1" }

// Apply implements event.Fact.
func (HasExpired) Apply(i *Invitation) {
	i.State = Expired
	i.forget()
}

// Erased records that the user who had accepted the invitation was removed. Nothing is left of the address.
type Erased struct{}

// EventType implements event.Fact.
func (Erased) EventType() event.Type { return "invitation.erased.v1" }

// Apply implements event.Fact.
func (Erased) Apply(i *Invitation) { i.forget() }

// WasRemoved records that the invitation went with its organization.
type WasRemoved struct{}

// EventType implements event.Fact.
func (WasRemoved) EventType() event.Type { return "invitation.removed.v1" }

// Apply implements event.Fact.
func (WasRemoved) Apply(i *Invitation) { *i = Invitation{State: Removed} }
