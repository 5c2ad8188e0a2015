package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// NobodyID is looked up in the place of a user that a name does not lead to.
const NobodyID = "usr_nobody"

// NameFinder looks for users by their login names.
type NameFinder struct {
	Store event.Store
	// DefaultOrg is where names are looked for that lead to no other organization.
	DefaultOrg string
	// EmailsPerOrganization keeps e-mail addresses from being looked for in organizations other than the one that a
	// sign-in is at.
	EmailsPerOrganization bool
}

// NameScope says where a name was typed.
type NameScope struct {
	Org string // that was named; empty: none
	// the organization of the application that the person signs in to; empty: there is none, or it is for all organizations
	App string
}

// TypedName is what the throttle counts a login name under.
type TypedName struct {
	Kind  string
	OrgID string // that the name leads to, or what stands for one that cannot be
	Key   string
}

// typedNameIn is a name that is looked up in an organization.
func typedNameIn(orgID, key string) TypedName { return TypedName{"name", orgID, key} }

// Parts are what it is counted under.
func (n TypedName) Parts() []string { return []string{n.Kind, n.OrgID, n.Key} }

// allOf looks in all ways with one query, whatever the others find. So names that nobody has, and names that are found
// in the last way, take as long as a name that is found in the first. If a name makes the query panic, that is an error
// of who asked for this name, and no one else's.
func (s NameFinder) allOf(ctx context.Context, ways []event.Lookup) (found []string, err error) {
	err = errs.Guarded(func() (err error) { found, err = s.Store.Find(ctx, ways); return err })
	return found, err
}

// firstOf reads the user of the first way that finds somebody; nil where none does.
func (s NameFinder) firstOf(ctx context.Context, ways []event.Lookup) (*event.Object[user.User], error) {
	found, err := s.allOf(ctx, ways)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(found...)
	u, err := user.Kind.Read(ctx, s.Store, cmp.Or(id, NobodyID))
	if err != nil || id == "" {
		return nil, err
	}
	return u, nil
}

// namedIn finds the user of a user name in an organization.
func namedIn(orgID, nameKey string) event.Lookup {
	return event.Lookup{Claim: user.NameClaim(orgID, nameKey)}
}

// withEmail finds the user of an organization who has a verified e-mail address: of several, whose was verified first,
// see user.Verification.
func withEmail(orgID, email string) event.Lookup {
	return event.Lookup{Kind: user.Kind.Name(), Org: orgID, Column: user.VerifiedEmail, By: user.FirstByEmail,
		Values: []string{user.EmailDigest(email)}}
}

// WithEmail finds the user of an organization who is found there by an e-mail address; empty where nobody is.
func (s NameFinder) WithEmail(ctx context.Context, orgID, email string) (userID string, err error) {
	found, err := s.allOf(ctx, []event.Lookup{withEmail(orgID, email)})
	return cmp.Or(found...), err
}

// withEmailAnywhere finds the user of whatever organization who has an e-mail address that is verified on a word which
// counts in all of them.
func (s NameFinder) withEmailAnywhere(email, prover string) event.Lookup {
	return event.Lookup{Kind: user.Kind.Name(), Anywhere: true, Column: user.EmailWord, By: user.FirstByEmail,
		Values: user.TrustedWords(email, s.DefaultOrg, prover)}
}

// Find looks for the user of a login name; nil when there is none. The organization is chosen first: the one that was
// named, else that of the application, else the one that has proven the domain of an e-mail address by DNS, else the
// default one. There the first that finds somebody wins: a user name with a verified domain (of any organization, where
// none was named); a bare user name; a verified e-mail address. Where nobody is found, and no organization was named, a
// verified e-mail address of another organization counts, if the word that it is verified on does, see
// user.TrustedWords. Of several with the same address it is whose was verified first, see user.Verification.
//
// typed is what the throttle counts the name under, whether or not somebody has it: the same for every way to write it,
// and nothing in it follows from which users there are. So everything is looked up by one folded form. What is looked
// up follows from the name and the organization alone, too (see allOf), in three round trips: the domain, the name, the
// user.
func (s NameFinder) Find(ctx context.Context, loginName string,
	at NameScope) (u *event.Object[user.User], typed TypedName, err error) {
	if len(at.Org) > event.MaxID { // nobody is there, and nothing keeps all of it
		at.Org = secret.Digest(at.Org)
	}
	if syntax.TooLong(loginName) {
		return nil, TypedName{"long name", cmp.Or(at.Org, at.App, s.DefaultOrg), secret.Digest(loginName)}, nil
	}
	key := syntax.NameKey(loginName)
	domain, err := s.domainOf(ctx, loginName, key)
	if err != nil {
		return nil, TypedName{}, err
	}
	typed, ways := s.ways(key, domain, at)
	u, err = s.firstOf(ctx, ways)
	return u, typed, err
}

// ways are those in which a folded name may lead to somebody, the first first.
func (s NameFinder) ways(key string, domain typedDomain, at NameScope) (typed TypedName, ways []event.Lookup) {
	names := []string{key}
	owned := domain.owner != "" && (at.Org == "" || at.Org == domain.owner)
	if plain := domain.user + "@" + domain.name; owned && plain != key {
		// A domain has more spellings than a name: what is counted as one must be found as one.
		names = append(names, plain)
	}
	email, problem := syntax.Email(names[len(names)-1])
	in := cmp.Or(at.Org, at.App)
	if in == "" && problem == nil {
		in = domain.prover
	}
	in = cmp.Or(in, s.DefaultOrg)
	typed = typedNameIn(in, key)
	if owned {
		typed = typedNameIn(domain.owner, domain.user)
		ways = append(ways, namedIn(domain.owner, domain.user))
	}
	for _, name := range names {
		ways = append(ways, namedIn(in, name))
	}
	if problem != nil {
		return typed, ways
	}
	ways = append(ways, withEmail(in, email))
	if at.Org == "" && !s.EmailsPerOrganization {
		ways = append(ways, s.withEmailAnywhere(email, domain.prover))
	}
	return typed, ways
}

// typedDomain is a login name taken apart at its last @, of any width.
type typedDomain struct {
	user, name string // in front of it and behind it, folded
	owner      string // the organization that has verified the domain; empty where there is none
	prover     string // the same if it has proven it by DNS; else empty
}

// domainOf takes a login name apart. The domain counts as it was typed, then as it is folded, which
// differs where IDNA tells apart what names do not: ß and ss.
func (s NameFinder) domainOf(ctx context.Context, loginName, key string) (found typedDomain, err error) {
	at, keyAt := strings.LastIndexAny(loginName, "@\uFE6B\uFF20"), strings.LastIndexByte(key, '@')
	if at < 0 || keyAt < 0 {
		return found, nil
	}
	_, size := utf8.DecodeRuneInString(loginName[at:])
	var forms []string
	var ways []event.Lookup
	for _, text := range []string{loginName[at+size:], key[keyAt+1:]} {
		if len(text) >= syntax.MaxTypedDomain {
			continue
		}
		if form, problem := syntax.Domain(text); problem == nil && !slices.Contains(forms, form) {
			forms = append(forms, form)
			ways = append(ways, event.Lookup{Claim: org.DomainClaim(form)}, event.Lookup{Claim: org.ProvenClaim(form)})
		}
	}
	holders, err := s.allOf(ctx, ways)
	if err != nil {
		return found, err
	}
	for i, form := range forms {
		if owner := holders[2*i]; owner != "" {
			return typedDomain{user: key[:keyAt], name: syntax.NameKey(form), owner: owner, prover: holders[2*i+1]}, nil
		}
	}
	return found, nil
}
