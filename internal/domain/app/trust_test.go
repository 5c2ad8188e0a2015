package app_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestEveryPartOfAnApplicationIsGuardedOrSaysWhyNot(t *testing.T) {
	for _, problem := range app.Unguarded() {
		t.Error(problem)
	}
}

// unguarded are the places that record facts of applications without Append, and why they may.
var unguarded = map[string]string{
	"app/trust.go":               "it is Append",
	"lifecycle/cleaner.go":       "it removes applications with their organization",
	"api/metadatas/metadatas.go": "metadata is harmless",
	"api/application_modify.go":  "it only says what to change: Modify judges it",
}

func TestEveryChangeOfAnApplicationIsJudged(t *testing.T) {
	own, others := regexp.MustCompile(`\w\.Append\(`),
		regexp.MustCompile(`\bapp\.(Added|SettingsChanged|SecretSet|SecretRemoved|KeyAdded|KeyRemoved|APIAccessSet|APIConsentsEnded|AudienceApproved|AudienceWithdrawn|OwnSignInSet|Vouched|RoleSettingsSet|MetadataSet|Deactivated|Reactivated|WasRemoved)\{`)
	root := os.DirFS("..")
	must(t, fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			unguarded[path] != "" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(path, "app/") && own.MatchString(line) ||
				others.MatchString(line) && !strings.Contains(line, "app.Append(permit, ") {
				t.Errorf("internal/%s:%d changes an application without app.Append, which judges what that lets others have", path, n+1)
			}
		}
		return err
	}))
}

// What is on the way to whom: settings of an application that has all of them.
var full = app.SettingsChanged{
	RedirectURIs:         &[]string{"https://a.example/cb", "https://b.example/cb"},
	PostLogoutURIs:       &[]string{"https://a.example/", "https://b.example/"},
	BackChannelLogoutURI: new("https://a.example/out"),
	InitiateLoginURI:     new("https://a.example/start"),
	KeySetURI:            new("https://a.example/keys"),
	GrantTypes:           &[]app.GrantType{app.AuthorizationCode, app.RefreshToken},
	ConsentRequired:      new(true),
	ExactAuthMethod:      new(true),
	IDTokenClaims:        new(app.ScopeClaims),
}

// trusted is a world with an application of org_a that an owner of the installation gave these scopes.
func trusted(t *testing.T, scopes ...string) *eventtest.Store {
	t.Helper()
	s := world(t)
	eventtest.Given(t, s, app.Kind, "app_active", "", nil, full, app.SecretSet{},
		app.KeyAdded{KeyID: "pky_1", Public: "x"})
	_, err := app.SetAPIAccess(t.Context(), s, ownerA, "app_active", event.IfMatch{}, scopes)
	must(t, err)
	return s
}

// An application that may use the API is turned by nobody but those who may give it the scopes, general ones included,
// and people are asked again.
func TestAnApplicationWithScopesOfTheAPIIsNotTurned(t *testing.T) {
	ownSignIn := func(t *testing.T, s event.Store, p access.Permit) error {
		_, err := app.SetOwnSignIn(t.Context(), s, p, "app_active", event.IfMatch{}, true)
		return err
	}
	turns := map[string]operation{
		"another address": modify(app.SettingsChanged{RedirectURIs: &[]string{"https://attacker.example/cb"}}),
		"one more address": modify(app.SettingsChanged{RedirectURIs: &[]string{"https://a.example/cb",
			"https://b.example/cb", "https://attacker.example/cb"}}),
		"a name and an address": modify(app.SettingsChanged{Name: new("Shop 2"),
			RedirectURIs: &[]string{"https://attacker.example/cb"}}),
		"a post-logout address":  modify(app.SettingsChanged{PostLogoutURIs: &[]string{"https://attacker.example/"}}),
		"a back-channel address": modify(app.SettingsChanged{BackChannelLogoutURI: new("https://attacker.example/out")}),
		"a start address":        modify(app.SettingsChanged{InitiateLoginURI: new("https://attacker.example/start")}),
		"a grant type": modify(app.SettingsChanged{GrantTypes: &[]app.GrantType{app.AuthorizationCode,
			app.DeviceCode}}),
		"an authentication method":  modify(app.SettingsChanged{AuthMethod: new(app.SecretPost)}),
		"any way to send a secret":  modify(app.SettingsChanged{ExactAuthMethod: new(false)}),
		"a key set":                 modify(app.SettingsChanged{KeySetURI: new("https://attacker.example/keys")}),
		"no consent":                modify(app.SettingsChanged{ConsentRequired: new(false)}),
		"another form of tokens":    modify(app.SettingsChanged{TokenFormat: new(app.Opaque)}),
		"a secret":                  generateSecret,
		"a key":                     addKey,
		"a sign-in page of its own": ownSignIn,
	}
	managers := map[string]access.Memberships{
		"a settings manager":           {"org_a": {access.OrgSettingsManager}},
		"an owner of the organization": {"org_a": {access.OrgOwner}, access.Installation: {access.IAMOrgManager}},
	}
	for name, turn := range turns {
		for _, scopes := range [][]string{{"signet.passwords"}, {"signet.self"}, {"signet.read", "signet.write"}} {
			t.Run(name+"/"+strings.Join(scopes, " "), func(t *testing.T) {
				s := trusted(t, scopes...)
				epoch := func() int64 { return eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch }
				before, mark := epoch(), s.Mark()
				for who, holds := range managers {
					if err := turn(t, s, of(t, "org_a", access.AppWrite, holds)); !errors.Is(err, app.ErrOpensWaysIn) ||
						!strings.Contains(err.Error(), "IAM_OWNER") {
						t.Errorf("%s: %v", who, err)
					}
				}
				s.Then(t, mark)
				must(t, turn(t, s, ownerA))
				if got := epoch(); got != before+1 {
					t.Errorf("people are not asked again: %d after %d", got, before)
				}
			})
		}
		if name != "a sign-in page of its own" { // that has a permission of its own
			must(t, turn(t, trusted(t), of(t, "org_a", access.AppWrite, managers["a settings manager"])))
		}
	}
}

// Taking away stays the organization's own, and nobody is asked again for it.
func TestTheOrganizationTakesAwayFromAnApplicationWithScopesOfTheAPI(t *testing.T) {
	manager := of(t, "org_a", access.AppWrite, access.Memberships{"org_a": {access.OrgSettingsManager}})
	for name, take := range map[string]operation{
		"an address": modify(app.SettingsChanged{RedirectURIs: &[]string{"https://b.example/cb"}}),
		"another order": modify(app.SettingsChanged{RedirectURIs: &[]string{"https://b.example/cb",
			"https://a.example/cb"}}),
		"the post-logout ones":     modify(app.SettingsChanged{PostLogoutURIs: &[]string{}}),
		"the back-channel address": modify(app.SettingsChanged{BackChannelLogoutURI: new("")}),
		"the start address":        modify(app.SettingsChanged{InitiateLoginURI: new("")}),
		"the key set":              modify(app.SettingsChanged{KeySetURI: new("")}),
		"a grant type":             modify(app.SettingsChanged{GrantTypes: &[]app.GrantType{app.AuthorizationCode}}),
		"claims of ID tokens":      modify(app.SettingsChanged{IDTokenClaims: new(app.MinimalClaims)}),
		"life of tokens": modify(app.SettingsChanged{AccessTokenSeconds: new(int64(600)),
			Name: new("Shop 2")}),
		"what it was": modify(full),
		"the secret": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.RemoveSecret(t.Context(), s, p, "app_active", event.IfMatch{})
			return err
		},
		"the key": func(t *testing.T, s event.Store, p access.Permit) error {
			_, err := app.RemoveKey(t.Context(), s, p, "app_active", event.IfMatch{}, "pky_1")
			return err
		},
		"off, on, and all": func(t *testing.T, s event.Store, p access.Permit) error {
			_, off := app.Deactivate(t.Context(), s, p, "app_active", event.IfMatch{})
			_, on := app.Reactivate(t.Context(), s, p, "app_active", event.IfMatch{})
			_, gone := app.Remove(t.Context(), s, p, "app_active", event.IfMatch{})
			return errors.Join(off, on, gone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := trusted(t, "signet.read", "signet.passwords")
			before := eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch
			must(t, take(t, s, manager))
			if got := eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch; got != before {
				t.Errorf("people are asked again: %d after %d", got, before)
			}
		})
	}
}

// A key that has expired goes when another one comes. That is no way to add one.
func TestAKeyThatWasTakenAwayIsGuardedWhenItComesBack(t *testing.T) {
	s := trusted(t, "signet.read")
	manager := of(t, "org_a", access.AppWrite, access.Memberships{"org_a": {access.OrgSettingsManager}})
	_, err := app.RemoveKey(t.Context(), s, manager, "app_active", event.IfMatch{}, "pky_1")
	must(t, err)
	_, _, err = app.AddKey(t.Context(), s, manager, "app_active", event.IfMatch{}, user.NewKey{PublicKey: "x"})
	if !errors.Is(err, app.ErrOpensWaysIn) {
		t.Error(err)
	}
	if keys := eventtest.State(t, s, app.Kind, "app_active").Data.Keys; !slices.Equal(keys, nil) {
		t.Errorf("%+v", keys)
	}
}
