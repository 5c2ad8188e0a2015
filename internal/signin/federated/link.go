package federated

import (
	"context"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

func emailKey(email string) string {
	key, _ := syntax.Email(email)
	return key
}

// Linked is a link that was just added or confirmed.
type Linked struct {
	LinkID  string
	Details event.Details
}

// Link adds a link to the caller's account. The same one again changes nothing but its confirmation. Errors:
// PermissionDenied without a session; session.ErrNotRecent; access.ErrSecondFactor; access.ErrPasswordChange;
// user.ErrNotHuman; session.ErrSignInFailed where the provider was changed or switched off since the identity was
// checked, or is not for the caller's organization; session.ErrMethodNotAllowed; user.ErrLinkTaken;
// user.ErrTooManyLinks.
func (s Sessions) Link(ctx context.Context, caller *access.Caller, who idp.Identity,
	from session.From) (Linked, error) {
	return s.LinkBy(ctx, caller, who, nil, from)
}

// LinkBy is Link for somebody who comes by an application's own page, or by none. Errors: also session.ErrSignInFailed
// where the code does not count.
func (s Sessions) LinkBy(ctx context.Context, caller *access.Caller, who idp.Identity, by *ByCode,
	from session.From) (Linked, error) {
	var out Linked
	err := s.inSession(ctx, caller, from, true, who, by,
		func(in *session.InSession, p *event.Object[idp.Provider]) error {
			if err := in.MayLink(); err != nil {
				return err
			}
			u := in.User()
			added := linkTo(who)
			if in.Upstream().Of() != p.ID { // nobody confirms a provider by its own word
				added.Confirmed = user.Confirm(in.Tx(), u, who.Version, caller.UserID)
			}
			l, err := user.AddLink(in.Tx(), u, added, false)
			if err == nil && added.Confirmed.By != "" && l.Confirmed.Version != who.Version {
				err = u.Append(user.LinkConfirmed{LinkID: l.ID, Confirmed: added.Confirmed})
			}
			out = Linked{LinkID: l.ID, Details: u.Details()}
			if err != nil {
				return err
			}
			return by.redeem(in.Tx(), u)
		})
	return out, err
}

// inSession lets decide act in the caller's session on the word of a provider that is for the caller.
func (s Sessions) inSession(ctx context.Context, caller *access.Caller, from session.From, writes bool,
	who idp.Identity, by *ByCode, decide func(*session.InSession, *event.Object[idp.Provider]) error) error {
	_, err := s.stepThrough(ctx, caller, from, writes, who, by, decide)
	return err
}

func (s Sessions) stepThrough(ctx context.Context, caller *access.Caller, from session.From, writes bool,
	who idp.Identity, by *ByCode,
	decide func(*session.InSession, *event.Object[idp.Provider]) error) (session.Stepped, error) {
	c := event.Command{Read: []event.Ref{idp.Kind.Ref(who.Provider)},
		Claims: []event.Claim{user.LinkClaim(who.Provider, who.Issuer, who.Subject)}, Rows: sessionRows(who)}
	if who.Org != caller.OrgID {
		c.Read = append(c.Read, org.Kind.Ref(who.Org))
	}
	by.declare(&c)
	return s.Step(ctx, caller, from, writes, c, func(in *session.InSession) error {
		p, err := s.provider(in.Tx(), who)
		if err != nil {
			return err
		}
		o, err := org.Kind.Get(in.Tx(), caller.OrgID)
		if err != nil {
			return err
		}
		if !session.ProviderReaches(p, caller.OrgID, s.DefaultOrg) {
			return session.ErrSignInFailed
		}
		if !o.Data.Policy.AllowsProvider(p.ID) {
			return session.ErrMethodNotAllowed
		}
		return decide(in, p)
	})
}

// ReproveThrough renews the proof of the caller's session: the person has just proven to a linked provider who they
// are. Errors: PermissionDenied without a session; session.ErrNotRecent where the provider did not ask again;
// session.ErrNotLinked; session.ErrLinkSuspended; those of Link about the provider.
func (s Sessions) ReproveThrough(ctx context.Context, caller *access.Caller, who idp.Identity,
	from session.From) (session.Stepped, error) {
	return s.stepThrough(ctx, caller, from, false, who, nil,
		func(in *session.InSession, p *event.Object[idp.Provider]) error {
			l, there := in.User().Data.Human.LinkTo(who.Provider, who.Issuer, who.Subject)
			switch {
			case !there:
				return session.ErrNotLinked
			case !session.LinkCounts(p, in.User(), l):
				return session.ErrLinkSuspended
			case !who.Fresh:
				return session.ErrNotRecent
			}
			sid := ""
			if up := in.Upstream(); who.Session != "" && up.Of() == p.ID && up.Link == l.ID {
				// The provider may have opened another session for it, which ends ours from now on.
				sid = SessionDigest(who.Session)
				if err := remember(in.Tx(), who, in.User().ID, l.ID, in.Ends()); err != nil {
					return err
				}
			}
			return in.ProveThrough(p.ID, sid, who.Proven, from.Source())
		})
}

// ConfirmLink confirms one of the caller's links with its provider as it is now. Errors: PermissionDenied without a
// session; session.ErrNotRecent; access.ErrSecondFactor; access.ErrPasswordChange; user.ErrLinkNotFound;
// session.ErrMethodNotAllowed in a session that came through that provider; Aborted when match does not hold.
func (s Sessions) ConfirmLink(ctx context.Context, caller *access.Caller, match event.IfMatch,
	linkID string) (details event.Details, err error) {
	provider, err := s.providerOf(ctx, caller.UserID, linkID)
	if err != nil {
		return event.Details{}, err
	}
	_, err = s.Step(ctx, caller, session.From{}, true, event.Command{Read: []event.Ref{idp.Kind.Ref(provider)}},
		func(in *session.InSession) error {
			if err := in.MayLink(); err != nil {
				return err
			}
			if in.Upstream().Of() == provider {
				return errOwnWord
			}
			u := in.User()
			u.Expect(match)
			err := confirm(in.Tx(), u, linkID, provider, caller.UserID)
			details = u.Details()
			return err
		})
	return details, err
}

// ConfirmLinkOf confirms a link of a user in the permit's organization, who holds no more than the caller. The caller
// may set passwords there. Errors: user.ErrNotFound; access.ErrTargetHoldsMore; user.ErrLinkNotFound; Aborted when
// match does not hold.
func (s Sessions) ConfirmLinkOf(ctx context.Context, permit access.Permit, userID string, match event.IfMatch,
	linkID string) (event.Details, error) {
	if !permit.HoldsFor(access.PasswordsScope, access.CredentialWrite, permit.Org()) {
		return event.Details{}, access.ErrDenied
	}
	target := user.GivesAccess(permit, userID)
	if _, err := target.Read(ctx, s.Store); err != nil {
		return event.Details{}, err
	}
	provider, err := s.providerOf(ctx, userID, linkID)
	if err != nil {
		return event.Details{}, err
	}
	return target.Needs(event.Command{Read: []event.Ref{idp.Kind.Ref(provider)}}).Change(ctx, s.Store, match,
		func(tx *event.Tx, u *event.Object[user.User]) error {
			return confirm(tx, u, linkID, provider, permit.Origin().Actor)
		})
}

// providerOf finds the provider of a link, which never changes. Errors: user.ErrLinkNotFound.
func (s Sessions) providerOf(ctx context.Context, userID, linkID string) (string, error) {
	u, err := user.Kind.Read(ctx, s.Store, userID)
	if err != nil {
		return "", err
	}
	if u != nil {
		if l, there := u.Data.Human.Link(linkID); there {
			return l.Provider, nil
		}
	}
	return "", user.ErrLinkNotFound
}

// confirm confirms a link inside a command that declared the user for writing and the provider. What is confirmed
// already stays as it is.
func confirm(tx *event.Tx, u *event.Object[user.User], linkID, provider, by string) error {
	l, there := u.Data.Human.Link(linkID)
	p, err := idp.Kind.Get(tx, provider)
	if err != nil {
		return err
	}
	if !there || l.Provider != provider || !session.ProviderUsable(p) {
		return user.ErrLinkNotFound
	}
	return u.Append(user.LinkConfirmed{LinkID: linkID, Confirmed: user.Confirm(tx, u, p.Data.Changer.Version, by)})
}

// RemoveLink removes one of the caller's links, with every session and token that came by it. Errors: PermissionDenied
// without a session; session.ErrNotRecent; access.ErrSecondFactor; access.ErrPasswordChange; user.ErrLinkNotFound;
// Aborted when match does not hold.
func (s Sessions) RemoveLink(ctx context.Context, caller *access.Caller, match event.IfMatch,
	linkID string) (details event.Details, err error) {
	_, err = s.Step(ctx, caller, session.From{}, true, event.Command{}, func(in *session.InSession) error {
		if err := in.MayLink(); err != nil {
			return err
		}
		in.User().Expect(match)
		err := remove(in.User(), linkID)
		details = in.User().Details()
		return err
	})
	return details, err
}

// RemoveLinkOf removes a link of a user in the permit's organization, who holds no more than the caller. Errors:
// user.ErrNotFound; access.ErrTargetHoldsMore; user.ErrLinkNotFound; Aborted when match does not hold.
func (s Sessions) RemoveLinkOf(ctx context.Context, permit access.Permit, userID string, match event.IfMatch,
	linkID string) (event.Details, error) {
	return user.TakesAway(permit, userID).Change(ctx, s.Store, match,
		func(_ *event.Tx, u *event.Object[user.User]) error {
			return remove(u, linkID)
		})
}

func remove(u *event.Object[user.User], linkID string) error {
	l, there := u.Data.Human.Link(linkID)
	if !there {
		return user.ErrLinkNotFound
	}
	return u.Append(user.LinkRemoved{LinkID: l.ID, Provider: l.Provider})
}

// Shown is a link as it stands.
type Shown struct {
	user.Link
	ProviderName string // empty where the provider is gone
	Suspended    bool   // it does not sign in now: the provider is inactive or gone, or the link has to be confirmed
}

// Links lists the links of a user, the oldest first.
func (s Sessions) Links(ctx context.Context, u *event.Object[user.User]) ([]Shown, error) {
	if u.Data.Human == nil {
		return nil, user.ErrNotHuman
	}
	var shown []Shown
	for _, l := range u.Data.Human.Links {
		p, err := idp.Kind.Read(ctx, s.Store, l.Provider)
		if err != nil {
			return nil, err
		}
		one := Shown{Link: l, Suspended: !session.LinkCounts(p, u, l) ||
			!session.ProviderReaches(p, u.Org, s.DefaultOrg)}
		if p != nil {
			one.ProviderName = p.Data.General.Name
		}
		shown = append(shown, one)
	}
	return shown, nil
}
