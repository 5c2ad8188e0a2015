package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/syntax"
	"github.com/signet-idm/signet/internal/user"
)

// nobodyID is looked up in the place of a user that a name does not lead to.
const nobodyID = "usr_nobody"

// where says where a name was typed.
type where struct {
	org string // that was named; empty: none
	app string // the organization of the application that the person signs in to; empty: there is none, or it is for all organizations
}

// typedName is what the throttle counts a login name under.
type typedName struct {
	kind  string
	orgID string // that the name leads to, or what stands for one that cannot be
	key   string
}

// nameIn is a name that is looked up in an organization.
func nameIn(orgID, key string) typedName { return typedName{"name", orgID, key} }

func (n typedName) parts() []string { return []string{n.kind, n.orgID, n.key} }

// lookup is one way in which a name may lead to a user. It gives the user's id; empty where it leads to nobody.
type lookup func(ctx context.Context) (userID string, err error)

// allOf asks all lookups at the same time, whatever the others find: with PostgreSQL it takes as long as one. So names that nobody has, and
// names that are found at the last of them, take as long as a name that is found at the first.
func allOf(ctx context.Context, steps []lookup) (found []string, err error) {
	found = make([]string, len(steps))
	failed := make([]error, len(steps))
	var others sync.WaitGroup
	look := func(i int) {
		failed[i] = errs.Guarded(func() (err error) { found[i], err = steps[i](ctx); return err })
	}
	for i := 1; i < len(steps); i++ {
		others.Go(func() { look(i) })
	}
	if len(steps) > 0 {
		look(0)
	}
	others.Wait()
	return found, cmp.Or(failed...)
}

// firstOf reads the user of the first lookup that finds somebody; nil where none does.
func (s *Sessions) firstOf(ctx context.Context, steps []lookup) (*event.Object[user.User], error) {
	found, err := allOf(ctx, steps)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(found...)
	u, err := user.Kind.Read(ctx, s.Store, cmp.Or(id, nobodyID))
	if err != nil || id == "" {
		return nil, err
	}
	return u, nil
}

// holder finds who holds a claim.
func (s *Sessions) holder(c event.Claim) lookup {
	return func(ctx context.Context) (string, error) { return s.Store.Holder(ctx, c) }
}

// named finds the user of a user name in an organization.
func (s *Sessions) named(orgID, nameKey string) lookup {
	return s.holder(user.NameClaim(orgID, nameKey))
}

// withEmail finds the user of an organization who has a verified e-mail address: of several, whose was verified first, see user.Verification.
func (s *Sessions) withEmail(orgID, email string) lookup {
	return func(ctx context.Context) (string, error) {
		found, err := s.Store.RecordsWhere(ctx, user.Kind.Name(), orgID, user.VerifiedEmail, user.EmailDigest(email), user.FirstByEmail, 1)
		if err != nil || len(found) == 0 {
			return "", err
		}
		return found[0].ID, nil
	}
}

// withEmailAnywhere finds the user of whatever organization who has an e-mail address that is verified on a word which counts in all of them.
func (s *Sessions) withEmailAnywhere(email, prover string) lookup {
	return func(ctx context.Context) (string, error) {
		found, err := s.Store.FirstWhere(ctx, user.Kind.Name(), user.EmailWord, user.FirstByEmail, user.TrustedWords(email, s.DefaultOrg, prover))
		if err != nil || found == nil {
			return "", err
		}
		return found.ID, nil
	}
}

// find looks for the user of a login name; nil when there is none. The place is chosen first: the organization that was named, else that of the
// application, else the one that has proven the domain of an e-mail address by DNS, else the default one. There the first that finds somebody wins: a
// user name with a verified domain (of any organization, where none was named); a bare user name; a verified e-mail address. Where nobody is found, and no
// organization was named, a verified e-mail address of another organization counts, if the word that it is verified on does, see user.TrustedWords. Of
// several with the same address it is whose was verified first, see user.Verification.
//
// typed is what the throttle counts the name under, whether or not somebody has it: the same for every way to write it, and
// nothing in it follows from which users there are. So everything is looked up by one folded form. What is looked up follows from the name and the
// place alone, too (see allOf), in three round trips: the domain, the name, the user.
func (s *Sessions) find(ctx context.Context, loginName string, at where) (u *event.Object[user.User], typed typedName, err error) {
	if len(at.org) > event.MaxID { // nobody is there, and nothing keeps all of it
		at.org = digest(at.org)
	}
	if syntax.TooLong(loginName) {
		return nil, typedName{"long name", cmp.Or(at.org, at.app, s.DefaultOrg), digest(loginName)}, nil
	}
	key := syntax.NameKey(loginName)
	domain, err := s.domainOf(ctx, loginName, key)
	if err != nil {
		return nil, typedName{}, err
	}
	typed, steps := s.steps(key, domain, at)
	u, err = s.firstOf(ctx, steps)
	return u, typed, err
}

// steps are the ways in which a folded name may lead to somebody, the first first.
func (s *Sessions) steps(key string, domain typedDomain, at where) (typed typedName, steps []lookup) {
	names := []string{key}
	owned := domain.owner != "" && (at.org == "" || at.org == domain.owner)
	if plain := domain.user + "@" + domain.name; owned && plain != key {
		// A domain has more spellings than a name: what is counted as one must be found as one.
		names = append(names, plain)
	}
	email, problem := syntax.Email(names[len(names)-1])
	in := cmp.Or(at.org, at.app)
	if in == "" && problem == "" {
		in = domain.prover
	}
	in = cmp.Or(in, s.DefaultOrg)
	typed = nameIn(in, key)
	if owned {
		typed = nameIn(domain.owner, domain.user)
		steps = append(steps, s.named(domain.owner, domain.user))
	}
	for _, name := range names {
		steps = append(steps, s.named(in, name))
	}
	if problem != "" {
		return typed, steps
	}
	steps = append(steps, s.withEmail(in, email))
	if at.org == "" && !s.EmailsPerOrganization {
		steps = append(steps, s.withEmailAnywhere(email, domain.prover))
	}
	return typed, steps
}

// digest stands for a text that is too long to be kept.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// typedDomain is a login name taken apart at its last @, of any width.
type typedDomain struct {
	user, name string // in front of it and behind it, folded
	owner      string // the organization that has verified the domain; empty where there is none
	prover     string // the same if it has proven it by DNS; else empty
}

// domainOf takes a login name apart. The domain counts as it was typed, then as it is folded, which
// differs where IDNA tells apart what names do not: ß and ss.
func (s *Sessions) domainOf(ctx context.Context, loginName, key string) (found typedDomain, err error) {
	at, keyAt := strings.LastIndexAny(loginName, "@\uFE6B\uFF20"), strings.LastIndexByte(key, '@')
	if at < 0 || keyAt < 0 {
		return found, nil
	}
	_, size := utf8.DecodeRuneInString(loginName[at:])
	var forms []string
	var steps []lookup
	for _, text := range []string{loginName[at+size:], key[keyAt+1:]} {
		if len(text) >= syntax.MaxTypedDomain {
			continue
		}
		if form, problem := syntax.Domain(text); problem == "" && !slices.Contains(forms, form) {
			forms = append(forms, form)
			steps = append(steps, s.holder(org.DomainClaim(form)), s.holder(org.ProvenClaim(form)))
		}
	}
	holders, err := allOf(ctx, steps)
	for i, form := range forms {
		if owner := holders[2*i]; owner != "" {
			return typedDomain{user: key[:keyAt], name: syntax.NameKey(form), owner: owner, prover: holders[2*i+1]}, err
		}
	}
	return found, err
}
