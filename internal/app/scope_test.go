package app_test

import (
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
)

// An application that acts for an owner with scopes of its own neither widens them nor gets at those of another application.
func TestAnApplicationTakesOverNoneThatMayDoMore(t *testing.T) {
	with := func(scopes ...string) access.Permit {
		caller := &access.Caller{UserID: "usr_iam", Scopes: scopes, Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
		p, err := caller.In("org_a", access.AppWrite)
		must(t, err)
		return p
	}
	less, same := with("signet.write", "signet.redirects", "signet.app_credentials"), with("signet.self", "signet.passwords")
	for name, takesOver := range map[string]func(*testing.T, event.Store, access.Permit) error{
		"redirect": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.Modify(t.Context(), s, p, "app_active", event.IfMatch{}, app.SettingsChanged{RedirectURIs: &[]string{"https://attacker.example/cb"}})
			return err
		},
		"redirect and rename": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.Modify(t.Context(), s, p, "app_active", event.IfMatch{}, app.SettingsChanged{Name: new("Shop"), ConsentRequired: new(false)})
			return err
		},
		"a secret": func(t *testing.T, s event.Store, p access.Permit) error {
			_, _, err := app.GenerateSecret(t.Context(), s, p, "app_active", event.IfMatch{}, 0)
			return err
		},
		"a key": func(t *testing.T, s event.Store, p access.Permit) error {
			_, _, err := app.AddKey(t.Context(), s, p, "app_active", event.IfMatch{}, newKey(t))
			return err
		},
		"one more scope": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.SetAPIAccess(t.Context(), s, p, "app_active", event.IfMatch{}, []string{"signet.self", "signet.passwords"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			allowed := []string{"signet.self", "signet.passwords"}
			if name == "one more scope" {
				allowed = allowed[:1]
			}
			_, err := app.SetAPIAccess(t.Context(), s, ownerA, "app_active", event.IfMatch{}, allowed)
			must(t, err)
			mark := s.Mark()
			if err := takesOver(t, s, less); !errors.Is(err, access.ErrMoreScopes) {
				t.Errorf("with other scopes: %v", err)
			}
			s.Then(t, mark)
			must(t, takesOver(t, s, same))
		})
	}

	s := world(t)
	_, err := app.SetAPIAccess(t.Context(), s, ownerA, "app_active", event.IfMatch{}, []string{"signet.passwords", "signet.self"})
	must(t, err)
	_, err = app.Modify(t.Context(), s, less, "app_active", event.IfMatch{}, app.SettingsChanged{Name: new("Shop")})
	must(t, err) // a name is no way in
	_, err = app.SetAPIAccess(t.Context(), s, less, "app_active", event.IfMatch{}, []string{"signet.self"})
	must(t, err) // nor is less than before
}
