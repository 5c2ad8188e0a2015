package idp

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/syntax"
)

// Added is what creations answer.
type Added struct {
	ID      string
	Details event.Details
}

// AddJWT creates a JWT provider in the permit's organization. Errors: InvalidArgument with violations; org.ErrNotFound; those of once.
func AddJWT(ctx context.Context, s event.Store, permit access.Permit, once event.Once, general General, jwt JWT) (Added, error) {
	var wrong errs.Violations
	general.all().violations(&wrong)
	to := jwt.all()
	to.Audience = &jwt.Audience
	if to.violations("", &wrong); wrong != nil {
		return Added{}, wrong.Err()
	}
	general.NameKey = syntax.NameKey(general.Name)
	return add(ctx, s, permit, once, Kind.NewID(), JWTAdded{General: general, JWT: jwt}, nil)
}

// AddOIDC creates an OpenID Connect provider in the permit's organization; an empty secret is none. Errors:
// InvalidArgument with violations; org.ErrNotFound; those of once.
func AddOIDC(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, once event.Once, general General, oidc OIDC, clientSecret string) (Added, error) {
	var wrong errs.Violations
	general.all().violations(&wrong)
	if (OIDCChanged{Issuer: &oidc.Issuer, ClientID: &oidc.ClientID, Scopes: &oidc.Scopes}).violations("", &clientSecret, &wrong); wrong != nil {
		return Added{}, wrong.Err()
	}
	id := Kind.NewID()
	general.NameKey = syntax.NameKey(general.Name)
	oidc.HasClientSecret = clientSecret != ""
	var row *event.Row
	if oidc.HasClientSecret {
		row = secretRow(master, id, clientSecret)
	}
	return add(ctx, s, permit, once, id, OIDCAdded{General: general, OIDC: oidc}, row)
}

func add(ctx context.Context, s event.Store, permit access.Permit, once event.Once, id string, fact event.Fact[Provider], row *event.Row) (Added, error) {
	owner := permit.Org()
	var added Added
	err := s.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Write:  []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			p, err := Kind.Create(tx, id, owner, fact)
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

// all names every field of the request that replaces the general configuration.
func (g *General) all() Changed {
	return Changed{Name: &g.Name, Styling: &g.Styling, AutoRegister: &g.AutoRegister}
}

// all names every field of the request that replaces the JWT configuration.
func (j *JWT) all() JWTChanged {
	return JWTChanged{Endpoint: &j.Endpoint, Issuer: &j.Issuer, KeysEndpoint: &j.KeysEndpoint, HeaderName: &j.HeaderName}
}

// SecretRow is where the secret of an OpenID Connect provider lives.
func SecretRow(id string) event.RowKey {
	return event.RowKey{Table: event.Secrets, Key: id + "/client_secret"}
}

// secretRow seals a secret: it has to be sent to the provider, so a hash would not do.
func secretRow(master secret.MasterKey, id, clientSecret string) *event.Row {
	return &event.Row{RowKey: SecretRow(id), Value: master.Wrap("idp client secret", []byte(clientSecret), []byte(id))}
}

// Replace replaces the general configuration. Errors: InvalidArgument with violations; ErrNotFound; Aborted when match does not hold.
func Replace(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, g General) (event.Details, error) {
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
func ReplaceJWT(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, jwt JWT) (event.Details, error) {
	to := jwt.all()
	var wrong errs.Violations
	if to.violations("", &wrong); wrong != nil {
		return event.Details{}, wrong.Err()
	}
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		if p.Data.JWT == nil {
			return ErrNotJWT
		}
		return p.Append(to.from(p.Data.JWT))
	})
}

// Modification is what to set of a provider. What is nil stays as it is.
type Modification struct {
	General      Changed // its NameKey follows from the name
	JWT          *JWTChanged
	OIDC         *OIDCChanged
	ClientSecret *string // of an OpenID Connect provider; empty removes it
}

func (m *Modification) violations() (wrong errs.Violations) {
	m.General.violations(&wrong)
	if m.JWT != nil {
		m.JWT.violations("jwt.", &wrong)
	}
	oidc := m.OIDC
	if oidc == nil {
		oidc = &OIDCChanged{}
	}
	oidc.violations("oidc.", m.ClientSecret, &wrong)
	return wrong
}

// Modify sets parts of a provider. Errors: InvalidArgument with violations; ErrNotFound; ErrNotJWT and ErrNotOIDC for parts that its type does not have;
// Aborted when match does not hold.
func Modify(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, id string, match event.IfMatch, m Modification) (event.Details, error) {
	if err := m.violations().Err(); err != nil {
		return event.Details{}, err
	}
	m.General.NameKey = nil
	if m.General.Name != nil {
		key := syntax.NameKey(*m.General.Name)
		m.General.NameKey = &key
	}
	var sealed *event.Row
	if m.ClientSecret != nil && *m.ClientSecret != "" {
		sealed = secretRow(master, id, *m.ClientSecret)
	}
	return within(permit, id).Change(ctx, s, match, func(tx *event.Tx, p *event.Object[Provider]) error {
		if m.JWT != nil && p.Data.JWT == nil {
			return ErrNotJWT
		}
		if (m.OIDC != nil || m.ClientSecret != nil) && p.Data.OIDC == nil {
			return ErrNotOIDC
		}
		found := m.facts(&p.Data)
		switch {
		case sealed != nil:
			tx.PutRow(*sealed)
			found = append(found, ClientSecretSet{})
		case m.ClientSecret != nil && p.Data.OIDC.HasClientSecret:
			tx.DropRow(SecretRow(id))
			found = append(found, ClientSecretRemoved{})
		}
		if len(found) == 0 {
			found = append(found, Changed{}) // nothing differs, and it is an event all the same
		}
		return p.Append(found...)
	})
}

// facts are what the modification changes of a provider that has these parts, but for its secret.
func (m *Modification) facts(p *Provider) (found []event.Fact[Provider]) {
	if f := m.General.from(&p.General); f != (Changed{}) {
		found = append(found, f)
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
	return found
}

// Deactivate switches a provider off. Errors: ErrNotFound; ErrNotActive; Aborted when match does not hold.
func Deactivate(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		if p.Data.State != Active {
			return ErrNotActive
		}
		return p.Append(Deactivated{})
	})
}

// Reactivate switches a provider on again. Errors: ErrNotFound; ErrNotInactive; Aborted when match does not hold.
func Reactivate(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(_ *event.Tx, p *event.Object[Provider]) error {
		if p.Data.State != Inactive {
			return ErrNotInactive
		}
		return p.Append(Reactivated{})
	})
}

// Remove ends a provider for good, and its secret with it. Errors: ErrNotFound; Aborted when match does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return within(permit, id).Change(ctx, s, match, func(tx *event.Tx, p *event.Object[Provider]) error {
		tx.DropRow(SecretRow(id))
		return p.Append(WasRemoved{})
	})
}
