package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// New is an application to create. Settings that are left out get their defaults.
type New struct {
	Name string
	Type Type
	Settings
}

// Created is what a creation answers. The secret is shown this once; it is empty where the application has none.
type Created struct {
	ID      string
	Secret  string
	Details event.Details
}

// Add creates an application in the permit's organization, with a secret where its method needs one. Errors:
// InvalidArgument with the violations of the settings; ErrInstallationDecides; org.ErrNotFound.
func Add(ctx context.Context, s event.Store, permit access.Permit, n New) (Created, error) {
	wrong := n.Violations(n.Type)
	if wrong.Add("name", syntax.Name(n.Name)); wrong != nil {
		return Created{}, wrong.Err()
	}
	if n.AllOrganizations {
		if err := mayOpen(permit); err != nil {
			return Created{}, err
		}
	}
	fact := Added{Name: n.Name, NameKey: syntax.NameKey(n.Name), Type: n.Type, Settings: n.completed(n.Type)}
	id, owner := Kind.NewID(), permit.Org()
	created := Created{ID: id}
	facts := []event.Fact[App]{fact}
	var hash []byte
	if fact.AuthMethod.BySecret() {
		created.Secret, hash = secret.NewToken(secret.Client)
		facts = append(facts, SecretSet{ByOwner: byOwner(permit)})
	}
	err := s.Do(ctx, event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			a, err := Kind.Create(tx, id, owner, facts...)
			if err != nil {
				return err
			}
			if hash != nil {
				tx.PutRow(kept{current: hash}.row(id))
			}
			created.Details = a.Details()
			return nil
		},
	})
	if err != nil {
		return Created{}, err
	}
	return created, nil
}

// mayOpen refuses to open an application to all organizations, unless the caller has the permission for that in the
// installation.
func mayOpen(permit access.Permit) error {
	if !permit.HoldsFor(access.AllOrganizationsScope, access.AllOrgsWrite, access.Installation) {
		return ErrInstallationDecides
	}
	return nil
}

// Modify sets parts of an application: what is nil in m stays as it is, what is empty goes back to its default. Errors:
// ErrNotFound; InvalidArgument with the violations that the settings would have; ErrInstallationDecides where it would
// be open to all organizations from now on; access.ErrMoreScopes where another application changes more than the name
// of one that may do more; ErrOpensWaysIn; ErrIsFirstParty; Aborted when match does not hold.
func Modify(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	m SettingsChanged) (event.Details, error) {
	m.NameKey = nil
	if m.Name != nil {
		key := syntax.NameKey(*m.Name)
		m.NameKey = &key
	}
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		to := a.Data
		m.Apply(&to)
		wrong := m.asked(to.Violations(to.Type))
		if wrong.Add("name", syntax.Name(to.Name)); len(wrong) > 0 {
			return wrong.Err()
		}
		if to.AllOrganizations && !a.Data.AllOrganizations {
			if err := mayOpen(permit); err != nil {
				return err
			}
		}
		to.Settings = to.completed(to.Type)
		changed := difference(&a.Data, &to)
		if err := changed.allowed(permit, &a.Data); err != nil {
			return err
		}
		facts := []event.Fact[App]{changed}
		if changed.RedirectURIs != nil {
			facts = append(facts, vouch(permit, &a.Data, answerRedirects)...)
		}
		if changed.AuthMethod != nil {
			facts = append(facts, vouch(permit, &a.Data, answerMethod)...)
		}
		return Append(permit, a, facts...)
	})
}

// allowed refuses a change of more than the name by another application that may do less. What lets others have more of
// it, Append judges. Errors: access.ErrMoreScopes.
func (e SettingsChanged) allowed(permit access.Permit, a *App) error {
	if e == (SettingsChanged{Name: e.Name, NameKey: e.NameKey}) {
		return nil
	}
	return permit.CoversScopes(access.ScopesNamed(a.APIScopes...))
}

// asked leaves out what is wrong with single addresses of a list that is not to be changed: they were registered before
// today's rules, nobody is sent there any more, and everything else must still be changeable.
func (e SettingsChanged) asked(wrong errs.Violations) errs.Violations {
	return slices.DeleteFunc(wrong, func(v errs.Violation) bool {
		return e.RedirectURIs == nil && strings.HasPrefix(v.Field, "redirectUris[") ||
			e.PostLogoutURIs == nil && strings.HasPrefix(v.Field, "postLogoutUris[")
	})
}

// Deactivate switches an application off and ends its tokens. Errors: ErrNotFound; ErrNotActive; Aborted when match
// does not hold.
func Deactivate(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if a.Data.State != Active {
			return ErrNotActive
		}
		return Append(permit, a, Deactivated{})
	})
}

// Reactivate switches an application on again. Errors: ErrNotFound; access.ErrMoreScopes where another application does
// it to one that may do more; ErrNotInactive; Aborted when match does not hold.
func Reactivate(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if err := permit.CoversScopes(access.ScopesNamed(a.Data.APIScopes...)); err != nil {
			return err
		}
		if a.Data.State != Inactive {
			return ErrNotInactive
		}
		return Append(permit, a, Reactivated{})
	})
}

// Remove ends an application for good, and its secret and its tokens with it. Errors: ErrNotFound; Aborted when match
// does not hold.
func Remove(ctx context.Context, s event.Store, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(tx *event.Tx, a *event.Object[App]) error {
		tx.DropRow(SecretRow(id))
		return Append(permit, a, WasRemoved{})
	})
}

// APIScopeViolations lists the names that are no scopes of Signet's own API, as what is wrong with a field scopes.
func APIScopeViolations(names []string) []errs.Violation {
	var wrong errs.Violations
	for i, name := range names {
		if !access.IsAPIScope(name) {
			wrong.Add(fmt.Sprintf("scopes[%d]", i),
				errs.Plain("must be one of "+strings.Join(access.APIScopeNames, ", ")))
		}
	}
	return wrong
}

// SetAPIAccess sets which scopes of Signet's own API an application may ask for. Another set ends its tokens. People
// are asked about scopes that an application gets after it had none. Errors: InvalidArgument for unknown scopes;
// ErrNotFound; access.ErrMoreScopes where an application adds what it was not given itself; Aborted when match does not
// hold.
func SetAPIAccess(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	scopes []string) (event.Details, error) {
	if wrong := APIScopeViolations(scopes); len(wrong) > 0 {
		return event.Details{}, errs.Invalid(wrong...)
	}
	fact := APIAccessSet{Scopes: append([]string{}, slices.Compact(slices.Sorted(slices.Values(scopes)))...)}
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if err := permit.CoversScopes(access.ScopesNamed(scopes...).Without(access.ScopesNamed(a.Data.APIScopes...))); err != nil {
			return err
		}
		facts := []event.Fact[App]{fact}
		if len(a.Data.APIScopes) == 0 && len(fact.Scopes) > 0 {
			facts = append(facts, APIConsentsEnded{}) // it may have had scopes before, and have been changed since
		}
		return Append(permit, a, facts...)
	})
}

// SetOwnSignIn says whether an application may have pages of its own through which people sign in at identity
// providers. The caller who allows it answers for it, also where it is allowed already. Errors: ErrNotFound;
// ErrNeedsSecret; access.ErrMoreScopes where another application does it to one that may do more; Aborted when match
// does not hold.
func SetOwnSignIn(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	allowed bool) (event.Details, error) {
	return Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if err := permit.CoversScopes(access.ScopesNamed(a.Data.APIScopes...)); err != nil {
			return err
		}
		if !allowed {
			if !a.Data.OwnSignIn {
				return nil
			}
			return Append(permit, a, OwnSignInSet{})
		}
		if !a.Data.HasSecret || !a.Data.AuthMethod.BySecret() {
			return ErrNeedsSecret
		}
		var facts []event.Fact[App]
		if !a.Data.OwnSignIn {
			facts = append(facts, OwnSignInSet{Allowed: true})
		}
		return Append(permit, a, append(facts, Vouched{By: permit.Origin().Actor, Roles: permit.Roles()})...)
	})
}

// What somebody answers for of an application with a sign-in page of its own, in the names of the API.
const (
	answerRedirects = "redirectUris"
	answerMethod    = "authMethod"
	answerSecret    = "clientSecret"
	answerOldSecret = "oldClientSecret"
)

// vouch is what a change of parts of an application records about who answers for it from then on; nothing where it has
// no sign-in page of its own.
func vouch(permit access.Permit, a *App, fields ...string) []event.Fact[App] {
	if !a.OwnSignIn {
		return nil
	}
	needed := []string{answerRedirects, answerMethod, answerSecret}
	if a.OldSecretUntil != 0 {
		needed = append(needed, answerOldSecret)
	}
	by := access.Answer{UserID: permit.Origin().Actor, Roles: permit.Roles()}
	by, _ = access.Vouch(a.Changer.answers(), by, fields, nil, needed)
	return []event.Fact[App]{Vouched{By: by.UserID, Roles: by.Roles, Fields: by.Fields}}
}

// vouchSecret is vouch for a new secret. Who made the one before answers for it while it is kept.
func vouchSecret(permit access.Permit, a *App, set SecretSet) []event.Fact[App] {
	to := *a
	if set.Apply(&to); set.OldUntil == 0 || !a.OwnSignIn {
		return vouch(permit, &to, answerSecret, answerOldSecret)
	}
	was := access.Whose(a.Changer.answers(), answerSecret)
	kept := Vouched{By: was.UserID, Roles: was.Roles, Fields: []string{answerOldSecret}}
	kept.Apply(&to)
	return append([]event.Fact[App]{kept}, vouch(permit, &to, answerSecret)...)
}

// SignsInItself tells whether an application may let people in through pages of its own now.
func (a *App) SignsInItself() bool {
	return a.State == Active && a.OwnSignIn && a.HasSecret && a.AuthMethod.BySecret() && a.Changer != nil
}
