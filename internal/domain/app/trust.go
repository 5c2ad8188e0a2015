package app

import (
	"context"
	"reflect"
	"slices"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// An application that may use Signet's API is worth what its scopes allow. People gave it their consent as it was, and
// an owner of the installation gave it the scopes. So an administrator who lets its codes, tokens or data reach
// somebody else needs the permission to give the scopes, and people are asked for consent again.

// An application that an owner of the installation has marked as the operator's own is worth what people are not asked
// about. The same changes are the installation's then.

// guard says when a change of one part of the state lets somebody have more of an application.
type guard struct {
	widens   func(from, to *App) bool
	harmless string // why no change of it does; then widens is nil
}

// guards is the list of all parts of an application's state. A part that is not on it is guarded: any change of it
// widens. A test asks for a line here.
var guards = map[string]guard{
	"AuthMethod":            differs(func(a *App) AuthMethod { return a.AuthMethod }),
	"GrantTypes":            gains(func(a *App) []GrantType { return a.GrantTypes }),
	"RedirectURIs":          gains(func(a *App) []string { return a.RedirectURIs }),
	"PostLogoutURIs":        gains(func(a *App) []string { return a.PostLogoutURIs }),
	"BackChannelLogoutURI":  moves(func(a *App) string { return a.BackChannelLogoutURI }),
	"InitiateLoginURI":      moves(func(a *App) string { return a.InitiateLoginURI }),
	"KeySetURI":             moves(func(a *App) string { return a.KeySetURI }),
	"TokenFormat":           differs(func(a *App) TokenFormat { return a.TokenFormat }),
	"ConsentRequired":       goesOff(func(a *App) bool { return a.ConsentRequired }),
	"ExactAuthMethod":       goesOff(func(a *App) bool { return a.ExactAuthMethod }),
	"PushedRequired":        goesOff(func(a *App) bool { return a.PushedRequired }),
	"DPoPRequired":          goesOff(func(a *App) bool { return a.DPoPRequired }),
	"IDTokenClaims":         moves(func(a *App) bool { return a.IDTokenClaims == ScopeClaims }),
	"Keys":                  gains(func(a *App) []Key { return a.Keys }),
	"OwnSignIn":             moves(func(a *App) bool { return a.OwnSignIn }),
	"RoleSettings.Project":  moves(func(a *App) string { return a.RoleSettings.Project }),
	"RoleSettings.Roles":    moves(func(a *App) bool { return a.RoleSettings.Roles }),
	"RoleSettings.Groups":   moves(func(a *App) bool { return a.RoleSettings.Groups }),
	"RoleSettings.Required": goesOff(func(a *App) bool { return a.RoleSettings.Required }),
	"RoleSettings.Metadata": gains(func(a *App) []string { return a.RoleSettings.Metadata }),
	"ClaimMappings":         {widens: newMapping},
	"Type":                  differs(func(a *App) Type { return a.Type }),

	"FirstParty":          {harmless: "only an owner of the installation marks it, and looks at what stands there"},
	"SecretByOwner":       {harmless: "it changes with the secret only"},
	"OldSecretByOwner":    {harmless: "it changes with the secret only"},
	"HasSecret":           {harmless: "each new secret is a SecretSet, which is guarded; having none takes away"},
	"OldSecretUntil":      {harmless: "it changes with the secret only"},
	"State":               {harmless: "switching it off takes away, and switching it on again opens what stood there before"},
	"Name":                {harmless: "it moves nothing"},
	"NameKey":             {harmless: "it follows from the name"},
	"SigningAlgorithm":    {harmless: "both of them are as strong, and tokens reach nobody else"},
	"AccessTokenSeconds":  {harmless: "within its bounds it reaches nobody else"},
	"RefreshTokenSeconds": {harmless: "within its bounds it reaches nobody else"},
	"AllOrganizations":    {harmless: "an owner of the installation opens it, and people of other organizations are asked"},
	"APIScopes":           {harmless: "these are the scopes themselves: SetAPIAccess has a permission of its own, and people are asked about each"},
	"Approvals":           {harmless: "they let others send tokens to the application, and give away none of its own"},
	"Changer":             {harmless: "it records who changed something else"},
	"Metadata":            {harmless: "programs keep it; Signet does nothing because of it"},
	"Epoch":               {harmless: "it ends tokens"},
	"APIEpoch":            {harmless: "it ends tokens and consents"},
	"Open":                {harmless: "it follows from AllOrganizations"},
	"Mapped":              {harmless: "it follows from ClaimMappings"},
}

func differs[T comparable](part func(*App) T) guard {
	return guard{widens: func(from, to *App) bool { return part(from) != part(to) }}
}

// moves: it is another one, and not none.
func moves[T comparable](part func(*App) T) guard {
	return guard{widens: func(from, to *App) bool { var none T; return part(from) != part(to) && part(to) != none }}
}

func goesOff(part func(*App) bool) guard {
	return guard{widens: func(from, to *App) bool { return part(from) && !part(to) }}
}

// gains: there is one that was not there before.
func gains[T comparable](part func(*App) []T) guard {
	return guard{widens: func(from, to *App) bool {
		return slices.ContainsFunc(part(to), func(one T) bool { return !slices.Contains(part(from), one) })
	}}
}

// newMapping: the application is told something that it was not told before, or in another way.
func newMapping(from, to *App) bool {
	return slices.ContainsFunc(to.ClaimMappings, func(m ClaimMapping) bool {
		return !slices.ContainsFunc(from.ClaimMappings, func(had ClaimMapping) bool { return reflect.DeepEqual(m, had) })
	})
}

// parts are the fields that the state consists of, by their names on the list.
var parts = func() map[string][]int {
	found := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[App]()) {
		switch {
		case f.Anonymous:
		case f.Type == reflect.TypeFor[RoleSettings]():
			for _, inner := range reflect.VisibleFields(f.Type) {
				found[f.Name+"."+inner.Name] = slices.Concat(f.Index, inner.Index)
			}
		default:
			found[f.Name] = f.Index
		}
	}
	return found
}()

// widens tells whether codes, tokens or data of an application reach somebody through these facts who did not have them
// before.
func widens(from *App, facts []event.Fact[App]) bool {
	to := *from
	secret := false
	for _, f := range facts {
		f.Apply(&to)
		_, set := f.(SecretSet)
		secret = secret || set
	}
	if to.State == Removed {
		return false
	}
	for name, index := range parts {
		g := guards[name]
		switch {
		case g.harmless != "":
		case g.widens != nil:
			if g.widens(from, &to) {
				return true
			}
		case !reflect.DeepEqual(reflect.ValueOf(from).Elem().FieldByIndex(index).Interface(),
			reflect.ValueOf(&to).Elem().FieldByIndex(index).Interface()):
			return true
		}
	}
	return secret
}

// mayActAs refuses whatever lets one act as an application, such as its secret or where its codes are sent, for callers
// who could not give it the scopes of Signet's API that it has, or the mark of the operator's own: an owner of the
// installation gave them to the application as it was. Errors: access.ErrMoreScopes; ErrOpensWaysIn; ErrIsFirstParty.
func mayActAs(permit access.Permit) func(*App) error {
	return func(a *App) error {
		scopes := access.ScopesNamed(a.APIScopes...)
		if err := permit.CoversScopes(scopes); err != nil {
			return err
		}
		if scopes != 0 && !permit.HoldsFor(scopes|access.APIAccessScope, access.APIAccessWrite, access.Installation) {
			return ErrOpensWaysIn
		}
		if a.FirstParty != nil && !permit.HoldsFor(access.AllOrganizationsScope, access.AllOrgsWrite, access.Installation) {
			return ErrIsFirstParty
		}
		return nil
	}
}

// Append records a change of an application that somebody makes. All rules about applications change them by it: if the
// application may use Signet's API or is the operator's own, and the change lets somebody have more of it, it needs
// mayActAs, and ends the consents to scopes of the API. Errors: those of mayActAs.
func Append(permit access.Permit, a *event.Object[App], facts ...event.Fact[App]) error {
	if (len(a.Data.APIScopes) > 0 || a.Data.FirstParty != nil) && widens(&a.Data, facts) {
		if err := mayActAs(permit)(&a.Data); err != nil {
			return err
		}
		if len(a.Data.APIScopes) > 0 {
			facts = append(slices.Clip(facts), APIConsentsEnded{})
		}
	}
	return a.Append(facts...)
}

// byOwner tells whether somebody acts with all that an owner of the installation may do: what they make counts for an
// application that is marked as the operator's own.
func byOwner(permit access.Permit) bool {
	return slices.Contains(permit.Roles()[access.Installation], access.IAMOwner)
}

// SetFirstParty marks an application as the operator's own, as it stands, or takes the mark away. What is so already
// stays. Secrets and keys that no owner of the installation made stop counting with the mark: nobody can see who has
// them. Errors: ErrNotFound; Aborted when match does not hold.
func SetFirstParty(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	marked bool) (event.Details, error) {
	key := SecretRow(id)
	row := event.Command{Rows: []event.RowKey{key}}
	return Within(permit, id).Needs(row).Change(ctx, s, match, func(tx *event.Tx, a *event.Object[App]) error {
		if marked == (a.Data.FirstParty != nil) {
			return nil
		}
		fact := FirstPartySet{Marked: marked, By: permit.Origin().Actor, At: tx.Now()}
		if !marked {
			return Append(permit, a, fact)
		}
		fact.EndsSecret = a.Data.HasSecret && !a.Data.SecretByOwner
		fact.EndsOldSecret = !fact.EndsSecret && a.Data.OldSecretUntil != 0 && !a.Data.OldSecretByOwner
		for _, k := range a.Data.Keys {
			if !k.ByOwner {
				fact.EndsKeys = append(fact.EndsKeys, k.ID)
			}
		}
		stored, err := tx.Row(key)
		switch {
		case err != nil:
			return err
		case fact.EndsSecret:
			tx.DropRow(key)
		case fact.EndsOldSecret && stored != nil:
			tx.PutRow(kept{current: keptIn(stored).current}.row(id))
		}
		return Append(permit, a, fact)
	})
}
