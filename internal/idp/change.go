package idp

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
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

// AddJWT creates a JWT provider in the permit's organization. Errors: org.ErrNotFound; those of once.
func AddJWT(ctx context.Context, s event.Store, permit access.Permit, once event.Once, general General, jwt JWT) (Added, error) {
	general.NameKey = syntax.NameKey(general.Name)
	return add(ctx, s, permit, once, Kind.NewID(), JWTAdded{General: general, JWT: jwt}, nil)
}

// AddOIDC creates an OpenID Connect provider in the permit's organization; an empty secret is none. Errors:
// org.ErrNotFound; those of once.
func AddOIDC(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, once event.Once, general General, oidc OIDC, clientSecret string) (Added, error) {
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

// SecretRow is where the secret of an OpenID Connect provider lives.
func SecretRow(id string) event.RowKey {
	return event.RowKey{Shelf: event.Secrets, Key: id + "/client_secret"}
}

// secretRow seals a secret: it has to be sent to the provider, so a hash would not do.
func secretRow(master secret.MasterKey, id, clientSecret string) *event.Row {
	return &event.Row{RowKey: SecretRow(id), Value: master.Wrap("idp client secret", []byte(clientSecret), []byte(id))}
}

// Replace replaces the general configuration. Errors: ErrNotFound; Aborted when match does not hold.
func Replace(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, g General) (event.Details, error) {
	key := syntax.NameKey(g.Name)
	to := Changed{Name: &g.Name, NameKey: &key, Styling: &g.Styling, AutoRegister: &g.AutoRegister}
	return change(ctx, s, permit, id, match, func(_ *event.Tx, p *Provider) ([]event.Fact[Provider], error) {
		return facts(to.from(&p.General)), nil
	})
}

// ReplaceJWT replaces the JWT configuration but for the audience, which the request it is for has no field for. Errors:
// ErrNotFound; ErrNotJWT; Aborted when match does not hold.
func ReplaceJWT(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch, jwt JWT) (event.Details, error) {
	to := JWTChanged{Endpoint: &jwt.Endpoint, Issuer: &jwt.Issuer, KeysEndpoint: &jwt.KeysEndpoint, HeaderName: &jwt.HeaderName}
	return change(ctx, s, permit, id, match, func(_ *event.Tx, p *Provider) ([]event.Fact[Provider], error) {
		if p.JWT == nil {
			return nil, ErrNotJWT
		}
		return facts(to.from(p.JWT)), nil
	})
}

// Modification is what to set of a provider. What is nil stays as it is.
type Modification struct {
	General      Changed // its NameKey follows from the name
	JWT          *JWTChanged
	OIDC         *OIDCChanged
	ClientSecret *string // of an OpenID Connect provider; empty removes it
}

// Modify sets parts of a provider. Errors: ErrNotFound; ErrNotJWT and ErrNotOIDC for parts that its type does not have;
// Aborted when match does not hold.
func Modify(ctx context.Context, s event.Store, master secret.MasterKey, permit access.Permit, id string, match event.IfMatch, m Modification) (event.Details, error) {
	m.General.NameKey = nil
	if m.General.Name != nil {
		key := syntax.NameKey(*m.General.Name)
		m.General.NameKey = &key
	}
	var sealed *event.Row
	if m.ClientSecret != nil && *m.ClientSecret != "" {
		sealed = secretRow(master, id, *m.ClientSecret)
	}
	return change(ctx, s, permit, id, match, func(tx *event.Tx, p *Provider) ([]event.Fact[Provider], error) {
		if m.JWT != nil && p.JWT == nil {
			return nil, ErrNotJWT
		}
		if (m.OIDC != nil || m.ClientSecret != nil) && p.OIDC == nil {
			return nil, ErrNotOIDC
		}
		var found []event.Fact[Provider]
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
		switch {
		case sealed != nil:
			tx.PutRow(*sealed)
			found = append(found, ClientSecretSet{})
		case m.ClientSecret != nil && p.OIDC.HasClientSecret:
			tx.DropRow(SecretRow(id))
			found = append(found, ClientSecretRemoved{})
		}
		if len(found) == 0 {
			found = facts(Changed{}) // nothing differs, and it is an event all the same
		}
		return found, nil
	})
}

// Deactivate switches a provider off. Errors: ErrNotFound; ErrNotActive; Aborted when match does not hold.
func Deactivate(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return change(ctx, s, permit, id, match, func(_ *event.Tx, p *Provider) ([]event.Fact[Provider], error) {
		if p.State != Active {
			return nil, ErrNotActive
		}
		return facts(Deactivated{}), nil
	})
}

// Reactivate switches a provider on again. Errors: ErrNotFound; ErrNotInactive; Aborted when match does not hold.
func Reactivate(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return change(ctx, s, permit, id, match, func(_ *event.Tx, p *Provider) ([]event.Fact[Provider], error) {
		if p.State != Inactive {
			return nil, ErrNotInactive
		}
		return facts(Reactivated{}), nil
	})
}

// Remove ends a provider for good, and its secret with it. Errors: ErrNotFound; Aborted when match does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch) (event.Details, error) {
	return change(ctx, s, permit, id, match, func(tx *event.Tx, _ *Provider) ([]event.Fact[Provider], error) {
		tx.DropRow(SecretRow(id))
		return facts(WasRemoved{}), nil
	})
}

func facts(f ...event.Fact[Provider]) []event.Fact[Provider] { return f }

// change records facts about a provider the permit reaches. What decide does to rows counts only if it is not refused.
func change(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	decide func(*event.Tx, *Provider) ([]event.Fact[Provider], error)) (event.Details, error) {
	reach := func(p *event.Object[Provider]) (*event.Object[Provider], error) { return reachable(p, permit) }
	return Kind.Change(ctx, s, event.Change[Provider]{Origin: permit.Origin(), ID: id, Match: match, Reach: reach}, decide)
}
