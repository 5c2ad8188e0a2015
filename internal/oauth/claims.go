package oauth

import (
	"context"
	"strings"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/session"
)

// unix gives seconds, as tokens tell the time.
func unix(micros int64) int64 { return event.Time(micros).Unix() }

// whom is whom tokens are about.
type whom struct {
	user *event.Object[user.User]
	org  *event.Object[org.Org]
	held project.Held // what the application is told about roles, groups and metadata
}

// subject is whom the claims that an application declares are about.
func (w *whom) subject(scopes []string) claimset.Subject {
	return claimset.Subject{User: w.user, Org: w.org, Held: w.held.Mapped, Scopes: scopes}
}

// whose reads whom terms are about, and the places that they rest on. Errors: ErrInvalidGrant where somebody is gone.
func (g *Grants) whose(ctx context.Context, client *event.Object[app.App], t *terms) (*whom, error) {
	u, err := user.Kind.Read(ctx, g.Store, t.UserID)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, refusedOf(t.Client, refusal.Ended, "the user of what %s sent has been removed", t.Client)
	}
	o, err := org.Kind.Read(ctx, g.Store, u.Org)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, refusedOf(t.Client, refusal.Ended, "the organization of the user of what %s sent has been removed", t.Client)
	}
	c, w := claimset.Agreed(project.ClientOf(client), u.Org, t.Told), project.PersonOf(u)
	if t.places, err = project.Look(ctx, g.Store, c, w, t.BoundTo(t.Scopes, t.OrgID)); err != nil {
		return nil, err
	}
	held, err := t.places.Held(ctx, g.Store, c, w)
	return &whom{user: u, org: o, held: held}, err
}

// ClaimsOf are what is told to the holder of an access token, or of it to a client that the token is meant for: reader,
// nil for the holder. The user and the organization come with the token where they were at hand, as they are at that
// moment. What the token's application is told about roles and groups is for it and others of its project.
func (g *Grants) ClaimsOf(ctx context.Context, b *session.Bearer, reader *Client) (claimset.Set, error) {
	return g.addClaims(ctx, claimset.New(false), b, reader)
}

// addClaims is ClaimsOf for a set that there is.
func (g *Grants) addClaims(ctx context.Context, claims claimset.Set, b *session.Bearer,
	reader *Client) (claimset.Set, error) {
	u, err := b.Person, error(nil)
	if u == nil {
		u, err = user.Self(ctx, g.Store, b.Caller)
	}
	if err != nil {
		return claims, err
	}
	o, err := org.Mine(ctx, g.Store, b.Caller)
	if err != nil {
		return claims, err
	}
	if reader != nil || claims.Explained() { // introspection
		claims.LoginName = o.Data.LoginName(u.Data.UserName)
	}
	if reader == nil {
		claims.AddPerson(u, o, b.Given.Scopes, b.ClientOrg)
		return claims, g.addHeld(ctx, &claims, b, nil, &whom{user: u, org: o})
	}
	claims.AddPerson(u, o, b.Given.Scopes, b.ClientOrg, reader.Org())
	if !reader.owns(&b.Token) {
		if !claimset.SameProject(reader.App, b.ClientOrg, b.Client.Project) {
			return claims, nil
		}
		other := *b
		other.Client.Metadata = nil // each application has its own list of keys
		b = &other
	}
	return claims, g.addHeld(ctx, &claims, b, reader, &whom{user: u, org: o})
}

// addHeld adds what the application of a token is told about roles, groups and metadata, and the claims that it
// declares.
func (g *Grants) addHeld(ctx context.Context, claims *claimset.Set, b *session.Bearer, reader *Client,
	of *whom) (err error) {
	u := of.user
	c, w := claimset.Agreed(b.Client, u.Org, b.Given.Told), project.PersonOf(u)
	if !c.Roles && !c.Groups && len(c.Metadata) == 0 && !c.Mapped.Any {
		claimset.AddRoles(*claims, project.Held{})
		return nil
	}
	places := b.Places
	if places == nil {
		if places, err = project.Look(ctx, g.Store, c, w, b.Given.BoundTo(b.Given.Scopes, u.Org)); err != nil {
			return err
		}
	}
	if of.held, err = places.Held(ctx, g.Store, c, w); err != nil {
		return err
	}
	claimset.AddRoles(*claims, of.held)
	if !c.Mapped.Any {
		return nil
	}
	mappings, err := g.mappings(ctx, b, reader)
	if err != nil {
		return err
	}
	about := of.subject(b.Given.Scopes)
	if reader == nil {
		claims.AddMapped(claimset.Map(mappings, app.InUserInfo, about))
	}
	if reader != nil || claims.Explained() {
		claims.Mapped = claimset.Map(mappings, app.InIntrospection, about)
	}
	return nil
}

// mappings are the claims that the application of a token declares, as far as a client may know them: reader, nil for
// the holder of the token.
func (g *Grants) mappings(ctx context.Context, b *session.Bearer, reader *Client) ([]app.ClaimMapping, error) {
	if reader != nil && reader.App != nil && reader.App.ID == b.Token.Client {
		return reader.App.Data.ClaimMappings, nil
	}
	a, err := app.Kind.Read(ctx, g.Store, b.Token.Client)
	if err != nil || a == nil {
		return nil, err
	}
	if reader != nil {
		return claimset.Shared(a.Data.ClaimMappings), nil
	}
	return a.Data.ClaimMappings, nil
}

// Introspection is what is said of an access token that counts: about is what there is to say of its user.
func (g *Grants) Introspection(b *session.Bearer, about claimset.Set) claimset.Set {
	claims, always := claimset.New(about.Explained()), claimset.Why{Source: claimset.Always}
	client := b.Token.Client
	if client == "" {
		client = b.Token.UserID // a service user acts for itself
	}
	for name, value := range map[string]any{
		"active":     true,
		"token_type": TokenType(b.Given.Key),
		"iss":        g.Issuer,
		"sub":        b.Token.UserID,
		"jti":        b.Token.ID,
		"client_id":  client,
		"scope":      strings.Join(b.Given.Scopes, " "),
		"iat":        unix(b.Token.Created),
		"aud":        b.Given.Audience,
		"exp":        unix(b.Token.Expires),
	} {
		claims.Put(name, value, always)
	}
	if b.Given.Key != "" {
		claims.Put("cnf", confirmation(b.Given.Key), always)
	}
	claims.AddProof(b.Given.Proof)
	for name, from := range map[string]string{
		claimset.OrgScope:   claimset.OrgScope,
		claimset.RolesScope: claimset.RolesScope,
		"username":          "preferred_username",
		claimset.Roles:      claimset.Roles,
		claimset.Groups:     claimset.Groups,
		claimset.Metadata:   claimset.Metadata,
	} {
		if value, known := about.Values[from]; known {
			if name == "username" { // people of two organizations may have the same user name
				value = about.LoginName
			}
			claims.Put(name, value, about.Why(from))
		} else if why, noted := about.Missing()[from]; noted {
			claims.Lacks(why, name)
		}
	}
	claims.AddMapped(about.Mapped)
	return claims
}
