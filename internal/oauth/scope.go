package oauth

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// The scopes.
const (
	orgByID     = session.OrgByID     // sign in to this organization only
	orgByDomain = session.OrgByDomain // the same, by one of its domains
	audience    = "urn:signet:app:"   // …:aud makes a token for another application
)

// Scopes are those that can be asked for by name, as the discovery document lists them.
var Scopes = append([]string{claimset.OpenID, claimset.ProfileScope, claimset.EmailScope, claimset.PhoneScope,
	claimset.OfflineAccess, claimset.OrgScope, claimset.RolesScope}, access.APIScopeNames...)

const maxScopes = 50

// subset tells whether all of one list are in another.
func subset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}

// both gives what is in two lists, in the order of the first.
func both(first, second []string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(s string) bool { return !slices.Contains(second, s) })
}

// askable sorts the scopes that were asked for and leaves out what cannot be given.
func askable(asked, api []string, offline bool) []string {
	kept := slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return unaskable(s, api, offline) != "" })
	slices.Sort(kept)
	return slices.Compact(kept)
}

// unaskable tells why a scope cannot be given: it means nothing here, is one of Signet's API that the client may not
// have, or is offline access where there are no refresh tokens; empty where it can.
func unaskable(s string, api []string, offline bool) trial.Code {
	switch {
	case access.IsAPIScope(s) && !slices.Contains(api, s):
		return trial.ScopeNotAllowed
	case s == claimset.OfflineAccess && !offline:
		return trial.NoRefreshTokens
	case !access.IsAPIScope(s) && audienceOf(s) == "" && !strings.HasPrefix(s, orgByID) &&
		!strings.HasPrefix(s, orgByDomain) && !slices.Contains(Scopes, s):
		return trial.ScopeUnknown
	}
	return ""
}

// appScopes is askable for an application.
func appScopes(a *app.App, asked []string) []string {
	return askable(asked, a.APIScopes, slices.Contains(a.GrantTypes, app.RefreshToken))
}

// alwaysAsked are the scopes that no application gets without the person's consent: with those an application can
// open ways in.
func alwaysAsked(scopes []string) []string {
	return access.ScopesNamed(scopes...).Without(access.GeneralScopes).Names()
}

// audienceOf gives the application that a scope adds to the audience; empty for other scopes.
func audienceOf(scope string) string {
	rest, starts := strings.CutPrefix(scope, audience)
	id, ends := strings.CutSuffix(rest, ":aud")
	if !starts || !ends || len(id) > maxID {
		return ""
	}
	return id
}

// boundTo gives the organization that a sign-in to an application is bound to: by its scopes, or because nobody else's
// people can use the application; empty for none. Errors: ErrInvalidScope where the scopes contradict each other or
// name none.
func (g *Grants) boundTo(ctx context.Context, client *event.Object[app.App], scopes []string) (string, error) {
	bound, err := g.named(ctx, scopes)
	if err == nil && bound == "" && client.Data.OnlyOwnPeople() {
		bound = client.Org
	}
	return bound, err
}

// named gives the organization that scopes name; empty for none.
func (g *Grants) named(ctx context.Context, scopes []string) (string, error) {
	bound := ""
	for _, s := range scopes {
		if err := ctx.Err(); err != nil {
			return "", err // nobody waits for the answer
		}
		id, ok := strings.CutPrefix(s, orgByID)
		if domain, named := strings.CutPrefix(s, orgByDomain); named {
			form, problem := syntax.Domain(domain)
			if problem != nil {
				return "", ErrInvalidScope
			}
			holder, err := g.Store.Holder(ctx, org.DomainClaim(form))
			if err != nil {
				return "", err
			}
			id, ok = holder, true
		}
		if !ok {
			continue
		}
		if id == "" || len(id) > maxID || bound != "" && bound != id {
			return "", ErrInvalidScope
		}
		bound = id
	}
	return bound, nil
}

// meantFor works out the audience of tokens with these scopes: the client itself, the applications that are asked for,
// and Signet's own API. Applications of other organizations than the client's that have not approved the client are
// left out, and so are their scopes.
func (g *Grants) meantFor(ctx context.Context, clientID, clientOrg string,
	scopes []string) (aud, kept []string, err error) {
	aud = []string{clientID}
	for _, s := range scopes {
		if id := audienceOf(s); id != "" {
			a, err := g.active(ctx, id)
			if err != nil {
				return nil, nil, err
			}
			if a == nil || !app.Takes(a, clientID, clientOrg) {
				continue
			}
			aud = append(aud, id)
		}
		kept = append(kept, s)
	}
	if slices.ContainsFunc(kept, access.IsAPIScope) {
		aud = append(aud, g.Issuer)
	}
	slices.Sort(aud[1:])
	return slices.Compact(aud), kept, nil
}

// look tells whether the caller may use an application, and what decides about that.
func (g *Grants) look(ctx context.Context, client *event.Object[app.App], caller *access.Caller,
	bound string) (*project.Places, project.Verdict, error) {
	c, w := project.ClientOf(client), project.Person{Org: caller.OrgID, Memberships: caller.Memberships}
	if c.Decides(w, bound) {
		u, err := user.Self(ctx, g.Store, caller)
		if err != nil {
			return nil, project.NotForThem, err
		}
		w = project.PersonOf(u)
	}
	c.Roles, c.Groups, c.Mapped = false, false, app.Mapped{} // nobody is told yet
	places, err := project.Look(ctx, g.Store, c, w, bound)
	if err != nil {
		return nil, project.NotForThem, err
	}
	verdict, _ := places.Judge(w, "")
	return places, verdict, nil
}
