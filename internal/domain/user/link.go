package user

import (
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxLinks is how many accounts at identity providers a person may be linked to.
const MaxLinks = 20

// MaxSubject is how many bytes an issuer or a subject of a link may have.
const MaxSubject = 2048

// Link says who a person is at an identity provider: a sign-in there with this issuer and subject is a sign-in here as
// this person. Whether the link counts at a moment also depends on the provider.
type Link struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	Issuer   string `json:"issuer"`
	Subject  string `json:"subject"`
	Name     string `json:"name,omitempty"` // what the provider calls the person
	Created  int64  `json:"created"`

	Confirmed Confirmation `json:"confirmed,omitzero"`
}

// Confirmation says that somebody who may sign in as the person wants the link, with the provider as it was at a
// version.
type Confirmation struct {
	Version int64              `json:"version,omitempty"` // idp.Changer.Version
	By      string             `json:"by,omitempty"`
	At      int64              `json:"at,omitempty"`
	Roles   access.Memberships `json:"roles,omitempty"` // that the person held then
}

// LinkClaim is the claim of the one person who is linked to a subject at a provider. Nothing but these three tells who
// it is.
func LinkClaim(provider, issuer, subject string) event.Claim {
	return event.Claim{Space: "idp_link/" + provider, Key: issuer + "\x00" + subject}
}

// Reasons of links.
const (
	LinkNotFound errs.Reason = "LINK_NOT_FOUND"
	LinkTaken    errs.Reason = "LINK_TAKEN"
	TooManyLinks errs.Reason = "TOO_MANY_LINKS"
)

// Errors that the rules of links refuse with.
var (
	ErrLinkNotFound = errs.New(errs.NotFound, LinkNotFound, "this user has no such link to an identity provider")
	ErrLinkTaken    = errs.New(errs.AlreadyExists, LinkTaken,
		"this account of the identity provider is linked to another user: remove that link first")
	ErrTooManyLinks = errs.New(errs.FailedPrecondition, TooManyLinks,
		"a user can have at most 20 links to identity providers: remove one first")
)

// Link finds one of the person's links.
func (h *Human) Link(id string) (Link, bool) {
	if h == nil {
		return Link{}, false
	}
	i := slices.IndexFunc(h.Links, func(l Link) bool { return l.ID == id })
	if i < 0 {
		return Link{}, false
	}
	return h.Links[i], true
}

// LinkTo finds the person's link to a subject at a provider.
func (h *Human) LinkTo(provider, issuer, subject string) (Link, bool) {
	if h == nil {
		return Link{}, false
	}
	i := slices.IndexFunc(h.Links,
		func(l Link) bool { return l.Provider == provider && l.Issuer == issuer && l.Subject == subject })
	if i < 0 {
		return Link{}, false
	}
	return h.Links[i], true
}

// Confirm is the confirmation of a link by somebody who may, with the roles that the person holds now. A role that the
// person gets later in the own organization or in the installation takes another one.
func Confirm(tx *event.Tx, u *event.Object[User], version int64, by string) Confirmation {
	return Confirmation{Version: version, By: by, At: tx.Now(), Roles: u.Data.Memberships}
}

// AddLink links a person inside a command that declared the user for writing and the link's claim. ID and Created are
// filled in. byEmail says that nobody but the address told who it is. Errors: ErrNotHuman; InvalidArgument on subject;
// ErrLinkTaken; ErrTooManyLinks.
func AddLink(tx *event.Tx, u *event.Object[User], l Link, byEmail bool) (Link, error) {
	switch {
	case u.Data.Human == nil:
		return Link{}, ErrNotHuman
	case l.Provider == "" || l.Issuer == "" || l.Subject == "" || len(l.Issuer) > MaxSubject ||
		len(l.Subject) > MaxSubject:
		return Link{}, errs.Invalid(errs.Violation{Field: "subject",
			Message: "is missing or too long: the identity provider must send an issuer and a subject of at most 2048 bytes"})
	}
	switch holder, err := tx.Holder(LinkClaim(l.Provider, l.Issuer, l.Subject)); {
	case err != nil:
		return Link{}, err
	case holder == u.ID:
		found, _ := u.Data.Human.LinkTo(l.Provider, l.Issuer, l.Subject)
		return found, nil
	case holder != "":
		return Link{}, ErrLinkTaken
	case len(u.Data.Human.Links) >= MaxLinks:
		return Link{}, ErrTooManyLinks
	}
	l.ID, l.Created = event.NewID("lnk"), tx.Now()
	return l, u.Append(LinkAdded{
		LinkID:    l.ID,
		Provider:  l.Provider,
		Created:   l.Created,
		Confirmed: l.Confirmed,
		ByEmail:   byEmail,
		Personal:  LinkFacts{Issuer: l.Issuer, Subject: l.Subject, Name: l.Name},
	})
}

// RemoveLinksSince takes away the links that were added or confirmed since a moment: they may not be the owner's.
func RemoveLinksSince(u *event.Object[User], since int64) error {
	for _, l := range u.Data.Human.Links {
		if l.Created >= since || l.Confirmed.At >= since {
			if err := u.Append(LinkRemoved{LinkID: l.ID, Provider: l.Provider}); err != nil {
				return err
			}
		}
	}
	return nil
}

// LinkFacts is who the person is at the provider.
type LinkFacts struct {
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
	Name    string `json:"name,omitempty"`
}

// linkVersion is the version of facts from which on nodes know links: one that does not would let people in whose link
// is gone.
const linkVersion = 3

// LinkAdded records that the person is linked to an account at an identity provider.
type LinkAdded struct {
	LinkID    string       `json:"linkId"`
	Provider  string       `json:"provider"`
	Created   int64        `json:"created"`
	Confirmed Confirmation `json:"confirmed,omitzero"`
	ByEmail   bool         `json:"byEmail,omitempty"` // nobody but the address told who it is
	Personal  LinkFacts    `json:"-"`
}

// EventType implements event.Fact.
func (LinkAdded) EventType() event.Type { return "user.link_added.v1" }

// Since implements event.Gated.
func (LinkAdded) Since() int { return linkVersion }

// Apply implements event.Fact.
func (e LinkAdded) Apply(u *User) {
	if u.Human != nil {
		u.Human.Links = append(slices.Clip(u.Human.Links), Link{
			ID:        e.LinkID,
			Provider:  e.Provider,
			Issuer:    e.Personal.Issuer,
			Subject:   e.Personal.Subject,
			Name:      e.Personal.Name,
			Created:   e.Created,
			Confirmed: e.Confirmed,
		})
		u.Links = append(slices.Clip(u.Links), e.LinkID)
	}
}

// LinkConfirmed records that somebody who may sign in as the person, or give the person a password, wants a link with
// its provider as it is now.
type LinkConfirmed struct {
	LinkID    string       `json:"linkId"`
	Confirmed Confirmation `json:"confirmed"`
}

// EventType implements event.Fact.
func (LinkConfirmed) EventType() event.Type { return "user.link_confirmed.v1" }

// Since implements event.Gated.
func (LinkConfirmed) Since() int { return linkVersion }

// Apply implements event.Fact.
func (e LinkConfirmed) Apply(u *User) {
	if u.Human == nil {
		return
	}
	u.Human.Links = slices.Clone(u.Human.Links)
	for i := range u.Human.Links {
		if u.Human.Links[i].ID == e.LinkID {
			u.Human.Links[i].Confirmed = e.Confirmed
		}
	}
}

// LinkRemoved records that a link does not count any more, and nothing that came by it.
type LinkRemoved struct {
	LinkID   string `json:"linkId"`
	Provider string `json:"provider"`
}

// EventType implements event.Fact.
func (LinkRemoved) EventType() event.Type { return "user.link_removed.v1" }

// Since implements event.Gated.
func (LinkRemoved) Since() int { return linkVersion }

// Apply implements event.Fact.
func (e LinkRemoved) Apply(u *User) {
	if u.Human == nil {
		return
	}
	u.Human.Links = slices.DeleteFunc(slices.Clone(u.Human.Links), func(l Link) bool { return l.ID == e.LinkID })
	u.Links = slices.DeleteFunc(slices.Clone(u.Links), func(id string) bool { return id == e.LinkID })
	if len(u.Human.Links) == 0 {
		u.Human.Links, u.Links = nil, nil
	}
}
