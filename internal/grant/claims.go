package grant

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant/told"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/project"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/syntax"
	"github.com/signet-idm/signet/internal/user"
)

// How sure Signet is of who signed in, as the claim acr tells it.
const (
	SingleFactor = "urn:signet:acr:single"
	MultiFactor  = "urn:signet:acr:multi"
)

// unix gives seconds, as tokens tell the time.
func unix(micros int64) int64 { return event.Time(micros).Unix() }

// whom is whom tokens are about.
type whom struct {
	user *event.Object[user.User]
	org  *event.Object[org.Org]
	held project.Held // what the application is told about roles, groups and metadata
}

// whose reads whom terms are about, and the places that they rest on. Errors: ErrInvalidGrant where somebody is gone.
func (g *Grants) whose(ctx context.Context, client *event.Object[app.App], t *terms) (*whom, error) {
	u, err := user.Kind.Read(ctx, g.Store, t.UserID)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, ErrInvalidGrant
	}
	o, err := org.Kind.Read(ctx, g.Store, u.Org)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, ErrInvalidGrant
	}
	c, w := told.Agreed(project.ClientOf(client), u.Org, t.Told), project.PersonOf(u)
	if t.places, err = project.Look(ctx, g.Store, c, w, t.BoundTo(t.Scopes, t.OrgID)); err != nil {
		return nil, err
	}
	held, err := t.places.Held(ctx, g.Store, c, w)
	return &whom{user: u, org: o, held: held}, err
}

// AddProof adds the claims about how somebody signed in.
func AddProof(claims map[string]any, p session.Proof) {
	if len(p.Methods) == 0 {
		return // a service user
	}
	methods := []string{}
	for _, m := range p.Methods {
		if !slices.Contains(methods, string(m)) {
			methods = append(methods, string(m))
		}
	}
	claims["acr"] = SingleFactor
	if p.SecondFactor {
		claims["acr"] = MultiFactor
		methods = append(methods, "mfa")
	}
	claims["amr"], claims["auth_time"] = methods, unix(p.At)
}

// AddOrganization adds the claims about a user's organization and roles, as far as the scopes allow. Who reads them
// in another organization is told of the roles in that organization and in the user's: who looks after the installation, or a third organization, is not its
// business. Where several read the same claims they are told what each of them may know.
func AddOrganization(claims map[string]any, u *event.Object[user.User], o *event.Object[org.Org], scopes []string, readers ...string) {
	if slices.Contains(scopes, OrgScope) {
		of := map[string]any{"id": o.ID, "name": o.Data.Name}
		if len(o.Data.Domains) > 0 {
			of["primary_domain"] = o.Data.Domains[0].Name
		}
		claims[OrgScope] = of
	}
	if slices.Contains(scopes, RolesScope) {
		roles := map[string][]access.Role{}
		for scope, held := range u.Data.Memberships {
			if len(held) > 0 && !slices.ContainsFunc(readers, func(reader string) bool { return reader != o.ID && scope != o.ID && scope != reader }) { // guests may hold none
				roles[scope] = held
			}
		}
		claims[RolesScope] = roles
	}
}

// PersonClaims are those that tell about a person, as the scopes allow.
var PersonClaims = []string{"name", "given_name", "family_name", "nickname", "preferred_username", "gender", "locale", "updated_at", "email", "email_verified",
	"phone_number", "phone_number_verified", OrgScope, RolesScope}

// ClaimsOf are what is told to the holder of an access token, or of it to a client that the token is meant for: reader, nil for the holder. The user and the organization
// come with the token where they were at hand, as they are at that moment. What the token's application is told about roles and groups is for it and others of its
// project.
func (g *Grants) ClaimsOf(ctx context.Context, b *session.Bearer, reader *Client) (map[string]any, error) {
	u, err := b.Person, error(nil)
	if u == nil {
		u, err = user.Self(ctx, g.Store, b.Caller)
	}
	if err != nil {
		return nil, err
	}
	o, err := org.Mine(ctx, g.Store, b.Caller)
	if err != nil {
		return nil, err
	}
	if reader == nil {
		claims := about(u, o, b.Given.Scopes, b.ClientOrg)
		return claims, g.addHeld(ctx, claims, b, u)
	}
	claims := about(u, o, b.Given.Scopes, b.ClientOrg, reader.Org())
	if !reader.owns(&b.Token) {
		if !told.SameProject(reader.App, b.ClientOrg, b.Client.Project) {
			return claims, nil
		}
		other := *b
		other.Client.Metadata = nil // each application has its own list of keys
		b = &other
	}
	return claims, g.addHeld(ctx, claims, b, u)
}

// addHeld adds what the application of a token is told about roles, groups and metadata.
func (g *Grants) addHeld(ctx context.Context, claims map[string]any, b *session.Bearer, u *event.Object[user.User]) (err error) {
	c, w := told.Agreed(b.Client, u.Org, b.Given.Told), project.PersonOf(u)
	if !c.Roles && !c.Groups && len(c.Metadata) == 0 {
		return nil
	}
	places := b.Places
	if places == nil {
		if places, err = project.Look(ctx, g.Store, c, w, b.Given.BoundTo(b.Given.Scopes, u.Org)); err != nil {
			return err
		}
	}
	held, err := places.Held(ctx, g.Store, c, w)
	told.Add(claims, held)
	return err
}

func about(u *event.Object[user.User], o *event.Object[org.Org], scopes []string, readers ...string) map[string]any {
	claims := map[string]any{"sub": u.ID}
	AddOrganization(claims, u, o, scopes, readers...)
	set := func(name, value string) {
		if value != "" {
			claims[name] = value
		}
	}
	human := u.Data.Human
	if slices.Contains(scopes, ProfileScope) {
		set("preferred_username", u.Data.UserName)
		claims["updated_at"] = u.Changed.Unix()
		if human != nil {
			p := human.Profile
			set("name", p.DisplayName)
			set("given_name", p.FirstName)
			set("family_name", p.LastName)
			set("nickname", p.NickName)
			set("gender", string(p.Gender))
			if tag, ok := syntax.Language(p.PreferredLanguage); ok {
				set("locale", tag.String())
			}
		} else if u.Data.Service != nil {
			set("name", u.Data.Service.Name)
		}
	}
	if human != nil && slices.Contains(scopes, EmailScope) && human.Email.Address != "" {
		claims["email"], claims["email_verified"] = human.Email.Address, human.Email.Verified
	}
	if human != nil && slices.Contains(scopes, PhoneScope) && human.Phone != nil {
		claims["phone_number"], claims["phone_number_verified"] = human.Phone.Normal, human.Phone.Verified
	}
	return claims
}
