package idp

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Added is what creations answer.
type Added struct {
	ID      string
	Details event.Details
}

// AddJWT creates a JWT provider in the permit's organization. Errors: InvalidArgument with violations; ErrLinkByEmail;
// org.ErrNotFound; those of once.
func AddJWT(ctx context.Context, s event.Store, permit access.Permit, once event.Once, general General,
	jwt JWT, draft bool) (Added, error) {
	var wrong errs.Violations
	general.all().violations(&wrong)
	to := jwt.all()
	to.Audience = &jwt.Audience
	if to.violations("", &wrong); wrong != nil {
		return Added{}, wrong.Err()
	}
	return add(ctx, s, permit, once, Kind.NewID(), general,
		func(g General) event.Fact[Provider] { return JWTAdded{General: g, JWT: jwt, Drafted: Drafted{draft}} }, nil)
}

// OIDCViolations lists what is wrong with a new OpenID Connect provider.
func OIDCViolations(general General, oidc OIDC, clientSecret string) (wrong errs.Violations) {
	oidc, general = oidc.filled(), general.styled(oidc.Preset)
	general.all().violations(&wrong)
	oidc.all().violations("", &clientSecret, &wrong)
	oidc.HasClientSecret = clientSecret != ""
	(&Provider{General: general, OIDC: &oidc}).conflicts(nil, &clientSecret, "", &wrong)
	return wrong
}

// AddOIDC creates an OpenID Connect provider in the permit's organization; an empty secret is none. What a preset knows
// and the caller leaves out is filled in. One that is unfinished is a draft also where draft is false. Errors:
// InvalidArgument with OIDCViolations; ErrLinkByEmail; org.ErrNotFound; those of once.
func AddOIDC(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, once event.Once,
	general General, oidc OIDC, clientSecret string, draft bool) (Added, error) {
	if err := OIDCViolations(general, oidc, clientSecret).Err(); err != nil {
		return Added{}, err
	}
	id := Kind.NewID()
	oidc, general = oidc.filled(), general.styled(oidc.Preset)
	oidc.HasClientSecret = clientSecret != ""
	d := Drafted{draft || oidc.client().unfinished()}
	return add(ctx, s, permit, once, id, general,
		func(g General) event.Fact[Provider] { return OIDCAdded{General: g, OIDC: oidc, Drafted: d} },
		secretRow(master, id, clientSecret))
}

// OAuthViolations lists what is wrong with a new OAuth 2.0 provider.
func OAuthViolations(general General, oauth OAuth, clientSecret string) (wrong errs.Violations) {
	oauth = oauth.filled()
	general.all().violations(&wrong)
	oauth.all().violations("", &clientSecret, &wrong)
	oauth.HasClientSecret = clientSecret != ""
	(&Provider{General: general, OAuth: &oauth}).conflicts(nil, &clientSecret, "", &wrong)
	return wrong
}

// AddOAuth creates an OAuth 2.0 provider in the permit's organization; an empty secret is none. What a preset knows and
// the caller leaves out is filled in. One that is unfinished is a draft also where draft is false. Errors:
// InvalidArgument with OAuthViolations; ErrLinkByEmail; org.ErrNotFound; those of once.
func AddOAuth(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, once event.Once,
	general General, oauth OAuth, clientSecret string, draft bool) (Added, error) {
	if err := OAuthViolations(general, oauth, clientSecret).Err(); err != nil {
		return Added{}, err
	}
	id := Kind.NewID()
	oauth = oauth.filled()
	oauth.HasClientSecret = clientSecret != ""
	d := Drafted{draft || oauth.client().unfinished()}
	return add(ctx, s, permit, once, id, general,
		func(g General) event.Fact[Provider] { return OAuthAdded{General: g, OAuth: oauth, Drafted: d} },
		secretRow(master, id, clientSecret))
}

// mayLinkByEmail refuses to switch LinkByEmail on or off, unless the caller may set policies in the permit's
// organization. Errors: ErrLinkByEmail.
func mayLinkByEmail(permit access.Permit) error {
	if !permit.Holds(access.PolicyWrite, permit.Org()) {
		return ErrLinkByEmail
	}
	return nil
}

func add(ctx context.Context, s event.Store, permit access.Permit, once event.Once, id string, general General,
	fact func(General) event.Fact[Provider], row *event.Row) (Added, error) {
	if general.LinkByEmail {
		if err := mayLinkByEmail(permit); err != nil {
			return Added{}, err
		}
	}
	general.NameKey = syntax.NameKey(general.Name)
	owner := permit.Org()
	var added Added
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			p, err := Kind.Create(tx, id, owner, fact(general), adopted(permit))
			if err != nil {
				return err
			}
			if row != nil {
				tx.PutRow(*row)
			}
			added = Added{ID: id, Details: p.Details()}
			return nil
		},
	}, &added))
	return added, err
}

// all names every field of the request that replaces the general configuration, which has none for linkByEmail.
func (g *General) all() Changed {
	return Changed{Name: &g.Name, Styling: &g.Styling, AutoRegister: &g.AutoRegister}
}

// all names every field of the request that replaces the JWT configuration.
func (j *JWT) all() JWTChanged {
	return JWTChanged{Endpoint: &j.Endpoint, Issuer: &j.Issuer, KeysEndpoint: &j.KeysEndpoint,
		HeaderName: &j.HeaderName}
}

// SecretRow is where the client secret of a provider lives, or the private key for Apple.
func SecretRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/client_secret"}
}

// secretRow seals a secret: it has to be sent to the provider, so a hash would not do. Nil: there is none.
func secretRow(master secret.MasterKey, id, clientSecret string) *event.Row {
	if clientSecret == "" {
		return nil
	}
	return &event.Row{RowKey: SecretRow(id), Value: master.Wrap("idp client secret", []byte(clientSecret), []byte(id))}
}

// Replace replaces the general configuration. Errors: InvalidArgument with violations; ErrNotFound; Aborted when match
// does not hold.
func Replace(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	g General) (event.Details, error) {
	to := g.all()
	var wrong errs.Violations
	if to.violations(&wrong); wrong != nil {
		return event.Details{}, wrong.Err()
	}
	key := syntax.NameKey(g.Name)
	to.NameKey = &key
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		return p.Append(to.from(&p.Data.General))
	})
}

// ReplaceJWT replaces the JWT configuration but for the audience, which the request it is for has no field for. Errors:
// InvalidArgument with violations; ErrNotFound; ErrNotJWT; Aborted when match does not hold.
func ReplaceJWT(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	jwt JWT) (event.Details, error) {
	to := jwt.all()
	var wrong errs.Violations
	if to.violations("", &wrong); wrong != nil {
		return event.Details{}, wrong.Err()
	}
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		if p.Data.JWT == nil {
			return ErrNotJWT
		}
		facts := []event.Fact[Provider]{to.from(p.Data.JWT)}
		// Also for the same values, where nobody answers for them yet, or somebody with less does.
		vouched := p.Data.vouch(permit, facts, []event.Fact[Provider]{to})
		return p.Append(append(facts, vouched...)...)
	})
}

// Modification is what to set of a provider. What is nil stays as it is.
type Modification struct {
	General     Changed // its NameKey follows from the name
	JWT         *JWTChanged
	OIDC        *OIDCChanged
	OIDCSecret  *string // empty removes it
	OAuth       *OAuthChanged
	OAuthSecret *string // empty removes it
}

// Violations lists what is wrong with single fields, whatever the provider is like.
func (m *Modification) Violations() (wrong errs.Violations) {
	m.General.violations(&wrong)
	if m.JWT != nil {
		m.JWT.violations("jwt.", &wrong)
	}
	orEmpty(m.OIDC).violations("oidc.", m.OIDCSecret, &wrong)
	orEmpty(m.OAuth).violations("oauth.", m.OAuthSecret, &wrong)
	return wrong
}

func orEmpty[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// Modify sets parts of a provider. Errors: InvalidArgument with Violations; ErrNotFound; ErrNotJWT, ErrNotOIDC and
// ErrNotOAuth for parts that its type does not have; InvalidArgument for what does not go together; ErrLinkByEmail;
// Aborted when match does not hold.
func Modify(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, id string,
	match event.IfMatch, m Modification) (event.Details, error) {
	if err := m.Violations().Err(); err != nil {
		return event.Details{}, err
	}
	m.General.NameKey = nil
	if m.General.Name != nil {
		key := syntax.NameKey(*m.General.Name)
		m.General.NameKey = &key
	}
	return within(permit, id).And(m.fits).Change(ctx, s, match, func(tx *event.Tx, p *event.Object[Provider]) error {
		found, err := m.facts(permit, &p.Data)
		if err != nil {
			return err
		}
		if clientSecret := m.secret(); clientSecret != nil {
			if sealed := secretRow(master, id, *clientSecret); sealed != nil {
				tx.PutRow(*sealed)
			} else {
				tx.DropRow(SecretRow(id))
			}
		}
		if p.Data.Changer != nil || m.JWT != nil || m.OIDC != nil || m.OAuth != nil || settings(found...) != nil {
			found = append(found, p.Data.vouch(permit, found, m.sent())...)
		}
		return p.Append(found...)
	})
}

// fits refuses parts of another type. Errors: ErrNotJWT; ErrNotOIDC; ErrNotOAuth.
func (m *Modification) fits(p *Provider) error {
	switch {
	case m.JWT != nil && p.JWT == nil:
		return ErrNotJWT
	case (m.OIDC != nil || m.OIDCSecret != nil) && p.OIDC == nil:
		return ErrNotOIDC
	case (m.OAuth != nil || m.OAuthSecret != nil) && p.OAuth == nil:
		return ErrNotOAuth
	}
	return nil
}

// secret is the one to set; nil: it stays as it is.
func (m *Modification) secret() *string {
	if m.OIDCSecret != nil {
		return m.OIDCSecret
	}
	return m.OAuthSecret
}

// sent is all that the modification names, whether or not it is other than before.
func (m *Modification) sent() []event.Fact[Provider] {
	return []event.Fact[Provider]{m.General, orEmpty(m.JWT), orEmpty(m.OIDC), orEmpty(m.OAuth)}
}

// facts are what the modification changes of a provider that it fits. Errors: InvalidArgument; ErrLinkByEmail.
func (m *Modification) facts(permit access.Permit, p *Provider) (found []event.Fact[Provider], err error) {
	if f := m.General.from(&p.General); f != (Changed{}) {
		found = append(found, f)
		if f.LinkByEmail != nil {
			err = mayLinkByEmail(permit)
		}
	}
	if m.JWT != nil {
		if f := m.JWT.from(p.JWT); f != (JWTChanged{}) {
			found = append(found, f)
		}
	}
	if m.OIDC != nil {
		if f := m.OIDC.from(p.OIDC); f != (OIDCChanged{}) {
			found = append(found, f)
		}
	}
	if m.OAuth != nil {
		if f := m.OAuth.from(p.OAuth); f != (OAuthChanged{}) {
			found = append(found, f)
		}
	}
	switch clientSecret := m.secret(); {
	case clientSecret == nil:
	case *clientSecret != "":
		found = append(found, ClientSecretSet{}) // also the same again: nobody can compare it
	case *p.client().hasSecret:
		found = append(found, ClientSecretRemoved{})
	}
	var wrong errs.Violations
	p.with(found).conflicts(p, m.secret(), map[Type]string{IsOIDC: "oidc.", IsOAuth: "oauth."}[p.Type()], &wrong)
	if wrong != nil {
		return nil, wrong.Err()
	}
	if found == nil {
		found = append(found, Changed{}) // nothing differs, and it is an event all the same
	}
	return found, err
}

// with is what the provider becomes by these facts.
func (p *Provider) with(facts []event.Fact[Provider]) *Provider {
	c := p.clone()
	for _, f := range facts {
		f.Apply(&c)
	}
	return &c
}

// Deactivate switches a provider off. Errors: ErrNotFound; ErrNotActive; ErrDraft; Aborted when match does not hold.
func Deactivate(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		switch p.Data.State {
		case Active:
			return p.Append(Deactivated{})
		case Draft:
			return ErrDraft
		default:
			return ErrNotActive
		}
	})
}

// Reactivate switches a provider on again, or offers a draft without a check. Errors: ErrNotFound; ErrNotInactive;
// Aborted when match does not hold.
func Reactivate(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		if p.Data.State == Active {
			return ErrNotInactive
		}
		return p.Append(Reactivated{})
	})
}

// Remove ends a provider for good, and its secret with it. Errors: ErrNotFound; Aborted when match does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(tx *event.Tx, p *event.Object[Provider]) error {
		tx.DropRow(SecretRow(id))
		return p.Append(WasRemoved{})
	})
}
