package federated

import (
	"context"
	"crypto/rand"
	"net/netip"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// errOwnWord: nobody confirms a provider by its own word.
var errOwnWord = errs.New(errs.PermissionDenied, session.MethodNotAllowed,
	"this session came through the identity provider of the link: sign in in another way to confirm it")

// Registration is what somebody is registered with who is linked to nobody yet.
type Registration struct {
	OrgID     string // where; empty: the organization that owns the provider
	UserName  string
	FirstName string
	LastName  string
	NickName  string
	Language  string
	Email     string
	// EmailFromProvider says that nobody has edited the address. It counts as verified if the provider says so of this
	// very address.
	EmailFromProvider bool
	// Verification is on whose word the address counts without the provider's; zero: on nobody's.
	Verification user.Verification
	By           *ByCode
	App          string // that the person is on the way to; empty: none
	// AcceptedTerms are those that the person accepts; empty: none.
	AcceptedTerms string

	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// suffixes are how many names are tried for somebody whose name is taken.
const suffixes = 3

// RegisterThrough registers a person on the word of a provider, with the link, and opens a session. Errors:
// InvalidArgument with violations, on userName, profile.…, email.email and user.TermsField; session.ErrNotLinked where
// the provider does not register people there; session.ErrMethodNotAllowed; session.ErrSignInFailed where the provider
// was changed or switched off since the identity was checked; user.ErrLinkTaken; user.ErrUserNameTaken where no name is
// free; ResourceExhausted where too much was begun from the network.
func (s Sessions) RegisterThrough(ctx context.Context, who idp.Identity, r Registration) (session.SignedIn, error) {
	return s.RegisterInvited(ctx, who, r, event.Command{}, nil)
}

// RegisterInvited is RegisterThrough for somebody who is invited: the provider need not register people by itself, but
// the organization has to allow the provider, and asks for no terms. join lets the person in or refuses, in the same
// command, before the link and the session are made; nil: nobody has invited the person. needs is what join reads and
// writes besides the person. Errors: also those of join.
func (s Sessions) RegisterInvited(ctx context.Context, who idp.Identity, r Registration, needs event.Command,
	join func(tx *event.Tx, u *event.Object[user.User]) error) (session.SignedIn, error) {
	if r.By == nil { // who comes by an application has been counted
		if err := s.NetworkLimiter.Take(r.Peer, 1); err != nil {
			return session.SignedIn{}, err
		}
	}
	verified := r.EmailFromProvider && who.EmailVerified && r.Email == who.Email
	word := user.Verification{By: user.VerifiedByProvider, Org: who.Org}
	if r.Verification.By != "" {
		verified, word = true, r.Verification
	}
	human := user.NewHuman{
		UserName:      r.UserName,
		Email:         r.Email,
		EmailVerified: verified,
		VerifiedBy:    word.By,
		VerifierOrg:   word.Org,
		Profile: user.Profile{FirstName: r.FirstName, LastName: r.LastName, NickName: r.NickName,
			PreferredLanguage: r.Language},
	}
	wrong := human.Violations("")
	wrong.Add("userName", user.ChosenName(r.UserName, r.Email, verified))
	if err := wrong.Err(); err != nil {
		return session.SignedIn{}, err
	}
	in := r.OrgID
	if in == "" {
		in = who.Org
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return session.SignedIn{}, err
	}
	id, names := user.Kind.NewID(), namesLike(r.UserName)
	made := session.PrepareSession(id, session.Purpose{Application: r.App, Org: r.OrgID})
	claim := user.LinkClaim(who.Provider, who.Issuer, who.Subject)
	command := needs.With(event.Command{
		Origin: event.Origin{Actor: id, RequestID: r.RequestID},
		Create: []event.Ref{user.Kind.Ref(id)},
		Write:  []event.Ref{session.Companion(id)},
		Read:   append([]event.Ref{idp.Kind.Ref(who.Provider), installation.Ref}, orgs(in, who.Org)...),
		Claims: []event.Claim{claim},
		Rows:   sessionRows(who),
		Decide: func(tx *event.Tx) error {
			p, err := s.provider(tx, who)
			if err != nil {
				return err
			}
			o, err := s.registersIn(tx, p, in, join != nil)
			if err != nil {
				return err
			}
			u, err := addFree(tx, id, in, human, names)
			if err != nil {
				return err
			}
			if join != nil {
				err = join(tx, u)
			} else { // terms are for people who come by themselves
				err = user.AcceptTerms(tx, u, o.Data.Policy.TermsURI, r.AcceptedTerms)
			}
			if err != nil {
				return err
			}
			l := linkTo(who)
			// the account, with what it holds now, is the provider's from the first
			l.Confirmed = user.Confirm(tx, u, who.Version, id)
			if l, err = user.AddLink(tx, u, l, false); err != nil {
				return err
			}
			proof, err := s.proof(tx, p, o, l, who, false)
			if err != nil {
				return err
			}
			if err := r.By.redeem(tx, u); err != nil {
				return err
			}
			if err := remember(tx, who, u.ID, l.ID,
				tx.Now()+policy.Effective(everywhere, o.Data.Policy).SessionLife().Microseconds()); err != nil {
				return err
			}
			return made.Open(tx, u, o, everywhere, proof, session.RequestSourceOf(r.Peer, r.UserAgent))
		},
	})
	for _, name := range names {
		command.Claims = append(command.Claims, user.NameClaim(in, syntax.NameKey(name)))
	}
	r.By.declare(&command)
	if err := event.Do(ctx, s.Store, command); err != nil {
		return session.SignedIn{}, err
	}
	s.Tally.Outcome(in, tally.Provider, nil)
	return made.SignedIn, nil
}

// registersIn gives the organization that a provider registers people in: the one that owns it, or another one that
// lets the default organization's providers do that. Somebody who is invited needs neither. Errors:
// session.ErrNotLinked; session.ErrMethodNotAllowed; session.ErrSignInFailed.
func (s Sessions) registersIn(tx *event.Tx, p *event.Object[idp.Provider], in string,
	invited bool) (*event.Object[org.Org], error) {
	o, err := org.Kind.Get(tx, in)
	switch {
	case err != nil:
		return nil, err
	case o == nil || o.Data.State != org.Active:
		return nil, session.ErrSignInFailed
	case !session.ProviderReaches(p, in, s.DefaultOrg) ||
		!invited && (!p.Data.General.AutoRegister || p.Org != in && !o.Data.Policy.RegistersFromDefault):
		return nil, session.ErrNotLinked
	case !o.Data.Policy.AllowsProvider(p.ID):
		return nil, session.ErrMethodNotAllowed
	}
	return o, nil
}

// addFree creates a person under the first of some names that is free. Errors: user.ErrUserNameTaken.
func addFree(tx *event.Tx, id, in string, human user.NewHuman, names []string) (*event.Object[user.User], error) {
	for _, name := range names {
		holder, err := tx.Holder(user.NameClaim(in, syntax.NameKey(name)))
		if err != nil {
			return nil, err
		}
		if holder == "" {
			human.UserName = name
			return user.AddHuman(tx, id, in, &human)
		}
	}
	return nil, user.ErrUserNameTaken
}

// namesLike are a name and some with a short suffix. What follows an @ is left out of those: they are no address.
func namesLike(name string) []string {
	names := []string{name}
	stem := []rune(syntax.BeforeAt(name))
	stem = stem[:min(len(stem), syntax.MaxName-8)]
	for range suffixes {
		names = append(names, string(stem)+"-"+strings.ToLower(rand.Text()[:4]))
	}
	return names
}
