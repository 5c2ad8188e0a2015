// Package federated signs in users whom an identity provider has authenticated: it opens sessions for users who are
// linked, links and registers others, and lists the links of a user. Its callers have checked what the provider said;
// package session (links.go) decides how far the provider is trusted.
package federated

import (
	"context"
	"errors"
	"net/netip"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// Sessions lets people in through identity providers, too.
type Sessions struct{ *session.Sessions }

// SignInRequest says how a sign-in through a provider is restricted, and where it comes from.
type SignInRequest struct {
	OrgID     string // that the sign-in is bound to: only its users are let in; empty: any
	App       string // the application that it is for; empty: none
	By        *ByCode
	Trial     bool // a refusal is no event: trials have notes of their own
	NoLink    bool // nobody is linked by the address: it has to be somebody who is linked already
	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// SignInThrough opens a session for the user who is linked to an identity, or who is linked by the address of it where
// the provider may do that. Errors: session.ErrNotLinked; session.ErrLinkSuspended; session.ErrMethodNotAllowed;
// session.ErrSignInFailed, whatever else is in the way, also that the provider was changed or switched off since the
// identity was checked.
func (s Sessions) SignInThrough(ctx context.Context, who idp.Identity,
	at SignInRequest) (in session.SignedIn, err error) {
	counts := who.Org // where it counts
	defer func() { s.Tally.Outcome(counts, tally.Provider, err) }()
	claim := user.LinkClaim(who.Provider, who.Issuer, who.Subject)
	id, err := s.Store.Holder(ctx, claim)
	if err != nil {
		return session.SignedIn{}, err
	}
	byEmail := id == ""
	if byEmail && !at.NoLink {
		if id, err = s.withEmail(ctx, who); err != nil {
			return session.SignedIn{}, err
		}
	}
	if id == "" {
		return session.SignedIn{}, session.ErrNotLinked
	}
	u, err := user.Kind.Read(ctx, s.Store, id)
	if err != nil {
		return session.SignedIn{}, err
	}
	if u == nil {
		return session.SignedIn{}, session.ErrSignInFailed
	}
	counts = u.Org
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return session.SignedIn{}, err
	}
	purpose := session.Purpose{Application: at.App, Org: at.OrgID}
	made := session.PrepareSession(u.ID, purpose)
	var why session.Reason // of a refusal, for the events of the person
	command := event.Command{
		Origin: event.Origin{Actor: u.ID, RequestID: at.RequestID},
		Write:  []event.Ref{session.Companion(u.ID)},
		Read: append([]event.Ref{user.Kind.Ref(u.ID), idp.Kind.Ref(who.Provider), installation.Ref},
			orgs(u.Org, who.Org)...),
		Claims: []event.Claim{claim},
		Rows:   sessionRows(who),
		Decide: func(tx *event.Tx) error {
			why = session.ProviderRefused
			p, err := s.provider(tx, who)
			if err != nil {
				return err
			}
			now, o, err := s.person(tx, u.ID, u.Org)
			if err != nil {
				why = whyNot(now, o)
				return err
			}
			if why = session.WayNotAllowed; !session.ProviderReaches(p, now.Org, s.DefaultOrg) {
				return session.ErrSignInFailed
			}
			if why = session.WrongOrganization; at.OrgID != "" && at.OrgID != now.Org {
				return session.ErrSignInFailed
			}
			why = ""
			l, err := s.link(tx, p, now, who, byEmail)
			if err != nil {
				return err
			}
			if !session.LinkCounts(p, now, l) {
				why = session.LinkIsSuspended
				return session.ErrLinkSuspended
			}
			if !o.Data.Policy.AllowsProvider(p.ID) {
				why = session.WayNotAllowed
				return session.ErrMethodNotAllowed
			}
			// A user who was linked by an e-mail address still has to prove their second factors.
			proof, err := s.proof(tx, p, o, l, who, byEmail && now.Data.SecondFactor)
			if err != nil {
				return err
			}
			if err := at.By.redeem(tx, now); err != nil {
				return err
			}
			if err := remember(tx, who, now.ID, l.ID,
				tx.Now()+policy.Effective(everywhere, o.Data.Policy).SessionLife().Microseconds()); err != nil {
				return err
			}
			return made.Open(tx, now, o, everywhere, proof, session.RequestSourceOf(at.Peer, at.UserAgent))
		},
	}
	if byEmail {
		command.Write = append(command.Write, user.Kind.Ref(u.ID))
	}
	at.By.declare(&command)
	if err := s.Store.Do(ctx, command); err != nil {
		if at.Trial {
			why = ""
		}
		return session.SignedIn{}, s.refused(ctx, err, session.Refused{UserID: u.ID, Method: session.ByProvider,
			Reason: why, Purpose: purpose, Peer: at.Peer, UserAgent: at.UserAgent, RequestID: at.RequestID})
	}
	return made.SignedIn, nil
}

// refused records why somebody does not get in, if a rule says so and not the store, and gives err back.
func (s Sessions) refused(ctx context.Context, err error, r session.Refused) error {
	if !errors.Is(err, session.ErrSignInFailed) && !errors.Is(err, session.ErrLinkSuspended) &&
		!errors.Is(err, session.ErrMethodNotAllowed) || r.Reason == "" {
		return err
	}
	if also := s.Refused(ctx, r); also != nil {
		return errors.Join(err, also)
	}
	return err
}

// whyNot is why person refuses somebody; empty where there is nobody any more.
func whyNot(u *event.Object[user.User], o *event.Object[org.Org]) session.Reason {
	if u == nil || o == nil {
		return ""
	}
	return session.WhyNot(&u.Data, o)
}

// orgs points at organizations, each once.
func orgs(a, b string) []event.Ref {
	if a == b || b == "" {
		return []event.Ref{org.Kind.Ref(a)}
	}
	return []event.Ref{org.Kind.Ref(a), org.Kind.Ref(b)}
}

// provider gives the provider of an identity inside a command that declared it and the organization that owns it, as it
// was when the identity was checked. Errors: session.ErrSignInFailed.
func (s Sessions) provider(tx *event.Tx, who idp.Identity) (*event.Object[idp.Provider], error) {
	p, err := idp.Kind.Get(tx, who.Provider)
	if err != nil {
		return nil, err
	}
	if !session.ProviderUsable(p) || p.Org != who.Org || p.Data.Epoch != who.Epoch ||
		p.Data.Changer.Version != who.Version || who.Issuer == "" || who.Subject == "" {
		return nil, session.ErrSignInFailed
	}
	owner, err := org.Kind.Get(tx, p.Org)
	if err == nil && (owner == nil || owner.Data.State != org.Active) {
		err = session.ErrSignInFailed
	}
	return p, err
}

// person gives somebody who may sign in, with the organization. Errors: session.ErrSignInFailed.
func (s Sessions) person(tx *event.Tx, id, orgID string) (*event.Object[user.User], *event.Object[org.Org], error) {
	u, err := user.Kind.Get(tx, id)
	if err != nil {
		return nil, nil, err
	}
	o, err := org.Kind.Get(tx, orgID)
	if err == nil && (u == nil || !session.MaySignIn(&u.Data, o)) {
		err = session.ErrSignInFailed
	}
	return u, o, err
}

// link gives the link of a user to an identity, and adds it where the address says who it is. Errors:
// session.ErrNotLinked where it has gone meanwhile.
func (s Sessions) link(tx *event.Tx, p *event.Object[idp.Provider], u *event.Object[user.User], who idp.Identity,
	byEmail bool) (user.Link, error) {
	holder, err := tx.Holder(user.LinkClaim(who.Provider, who.Issuer, who.Subject))
	if err != nil {
		return user.Link{}, err
	}
	l, there := u.Data.Human.LinkTo(who.Provider, who.Issuer, who.Subject)
	switch {
	case there && holder == u.ID:
		return l, nil
	case !byEmail || holder != "":
		return user.Link{}, session.ErrNotLinked
	}
	owner, err := org.Kind.Get(tx, p.Org)
	if err != nil {
		return user.Link{}, err
	}
	if (session.EmailMatch{Provider: p, Owner: owner, Who: who, Same: []*event.Object[user.User]{u}}).ByEmail() == nil {
		return user.Link{}, session.ErrNotLinked
	}
	return user.AddLink(tx, u, linkTo(who), true)
}

// linkTo is the link to an identity.
func linkTo(who idp.Identity) user.Link {
	return user.Link{Provider: who.Provider, Issuer: who.Issuer, Subject: who.Subject, Name: nameOf(who)}
}

// maxName is how many bytes of what a provider calls somebody are kept.
const maxName = 200

// nameOf is by what people know their account at a provider.
func nameOf(who idp.Identity) string {
	for _, name := range []string{who.Email, who.UserName} {
		if name != "" && len(name) <= maxName {
			return name
		}
	}
	return ""
}

// withEmail finds the user whom the address of an identity may stand for; empty for nobody. The command asks again.
func (s Sessions) withEmail(ctx context.Context, who idp.Identity) (string, error) {
	p, err := idp.Kind.Read(ctx, s.Store, who.Provider)
	if err != nil || p == nil || !p.Data.General.LinkByEmail {
		return "", err
	}
	owner, err := org.Kind.Read(ctx, s.Store, p.Org)
	if err != nil {
		return "", err
	}
	same, err := user.WithEmail(ctx, s.Store, p.Org, emailKey(who.Email), 3)
	if err != nil {
		return "", err
	}
	if u := (session.EmailMatch{Provider: p, Owner: owner, Who: who, Same: same}).ByEmail(); u != nil {
		return u.ID, nil
	}
	return "", nil
}

// proof is what the word of a provider proves. Its second factor counts where the user's organization says so. Where
// the installation asks everybody for one, only a provider of the default organization is believed about that: an
// organization cannot ask for less.
func (s Sessions) proof(tx *event.Tx, p *event.Object[idp.Provider], o *event.Object[org.Org], l user.Link,
	who idp.Identity, own bool) (session.Proof, error) {
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return session.Proof{}, err
	}
	up := &session.Upstream{Provider: p.ID, Link: l.ID, Epoch: p.Data.Epoch, Said: min(who.Proven, tx.Now())}
	if who.Session != "" {
		up.Session = SessionDigest(who.Session)
	}
	believed := secondFactorOf(o.Data.Policy.SignIn, p.ID) &&
		(i == nil || !i.Data.SecondFactorRequired || p.Org == s.DefaultOrg)
	return session.Proof{Methods: []session.Method{session.ByProvider},
		SecondFactor: believed && !own && session.ProviderSecondFactor(who.Methods), Upstream: up}, nil
}

func secondFactorOf(p policy.SignIn, provider string) bool {
	for _, id := range p.SecondFactorProviders {
		if id == provider {
			return true
		}
	}
	return false
}

// SessionDigest is what session.Upstream keeps of a provider's own session.
func SessionDigest(sid string) string { return secret.Digest(sid) }
