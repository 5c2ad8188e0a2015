package app_test

import (
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// operation is what a caller tries to do.
type operation = func(*testing.T, event.Store, access.Permit) error

func modify(m app.SettingsChanged) operation {
	return func(t *testing.T, s event.Store, p access.Permit) error {
		_, err := app.Modify(t.Context(), s, p, "app_active", event.IfMatch{}, m)
		return err
	}
}

func generateSecret(t *testing.T, s event.Store, p access.Permit) error {
	_, _, err := app.GenerateSecret(t.Context(), s, p, "app_active", event.IfMatch{}, 0)
	return err
}

func addKey(t *testing.T, s event.Store, p access.Permit) error {
	_, _, err := app.AddKey(t.Context(), s, p, "app_active", event.IfMatch{}, newKey(t))
	return err
}

// An application that acts for an owner with scopes of its own neither widens them nor gets at those of another
// application.
func TestAnApplicationTakesOverNoneThatMayDoMore(t *testing.T) {
	with := func(scopes ...string) access.Permit {
		caller := &access.Caller{UserID: "usr_iam", Scopes: scopes,
			Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
		p, err := caller.In("org_a", access.AppWrite)
		must(t, err)
		return p
	}
	less, same := with("signet.write", "signet.redirects", "signet.app_credentials"),
		with("signet.self", "signet.passwords", "signet.api_access")
	for name, takesOver := range map[string]operation{
		"redirect":                 modify(app.SettingsChanged{RedirectURIs: &[]string{"https://attacker.example/cb"}}),
		"no consent, and a rename": modify(app.SettingsChanged{Name: new("Shop"), ConsentRequired: new(false)}),
		"a secret":                 generateSecret,
		"a key":                    addKey,
		"switched on again": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.Reactivate(t.Context(), s, p, "app_inactive", event.IfMatch{})
			return err
		},
		"one more scope": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.SetAPIAccess(t.Context(), s, p, "app_active", event.IfMatch{},
				[]string{"signet.self", "signet.passwords"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			allowed := []string{"signet.self", "signet.passwords"}
			if name == "one more scope" {
				allowed = allowed[:1]
			}
			for _, id := range []string{"app_active", "app_inactive"} {
				_, err := app.SetAPIAccess(t.Context(), s, ownerA, id, event.IfMatch{}, allowed)
				must(t, err)
			}
			mark := s.Mark()
			if err := takesOver(t, s, less); !errors.Is(err, access.ErrMoreScopes) {
				t.Errorf("with other scopes: %v", err)
			}
			s.Then(t, mark)
			must(t, takesOver(t, s, same))
		})
	}

	s := world(t)
	for _, id := range []string{"app_active", "app_spa"} {
		_, err := app.SetAPIAccess(t.Context(), s, ownerA, id, event.IfMatch{},
			[]string{"signet.passwords", "signet.self"})
		must(t, err)
	}
	// Who may not is told that, whatever state the application is in.
	_, on := app.Reactivate(t.Context(), s, less, "app_active", event.IfMatch{})
	_, _, secret := app.GenerateSecret(t.Context(), s, less, "app_spa", event.IfMatch{}, 0)
	_, _, key := app.AddKey(t.Context(), s, less, "app_spa", event.IfMatch{}, newKey(t))
	for _, err := range []error{on, secret, key} {
		if !errors.Is(err, access.ErrMoreScopes) {
			t.Errorf("in the wrong state: %v", err)
		}
	}
	_, err := app.Modify(t.Context(), s, less, "app_active", event.IfMatch{}, app.SettingsChanged{Name: new("Shop")})
	must(t, err) // a name is no way in
	_, err = app.SetAPIAccess(t.Context(), s, less, "app_active", event.IfMatch{}, []string{"signet.self"})
	must(t, err) // nor is less than before
}
