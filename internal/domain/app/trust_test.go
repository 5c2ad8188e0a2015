package app_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
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
	"domain/app/trust.go":       "it is Append",
	"life/lifecycle/cleaner.go": "it removes applications with their organization",
	"api/metadata.go":           "metadata is harmless",
	"api/application_modify.go": "it only says what to change: Modify judges it",
}

func TestEveryChangeOfAnApplicationIsJudged(t *testing.T) {
	own, others := regexp.MustCompile(`\w\.Append\(`),
		regexp.MustCompile(`\bapp\.(Added|SettingsChanged|SecretSet|SecretRemoved|KeyAdded|KeyRemoved|APIAccessSet|APIConsentsEnded|AudienceApproved|AudienceWithdrawn|OwnSignInSet|Vouched|FirstPartySet|RoleSettingsSet|MetadataSet|ClaimMappingsSet|Deactivated|Reactivated|WasRemoved)\{`)
	root := os.DirFS("../..")
	must(t, fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			unguarded[path] != "" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(path, "domain/app/") && own.MatchString(line) ||
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
	PushedRequired:       new(true),
	DPoPRequired:         new(true),
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

// marked is a world with an application of org_a that an owner of the installation marked as the operator's own, and gave
// a secret and a key.
func marked(t *testing.T) *eventtest.Store {
	t.Helper()
	s := trusted(t)
	must(t, mark(t, s, ownerA, true))
	eventtest.Given(t, s, app.Kind, "app_active", "", nil, app.SecretSet{ByOwner: true},
		app.KeyAdded{KeyID: "pky_1", Public: "x", ByOwner: true})
	return s
}

func mark(t *testing.T, s event.Store, p access.Permit, on bool) error {
	t.Helper()
	_, err := app.SetFirstParty(t.Context(), s, p, "app_active", event.IfMatch{}, on)
	return err
}

// turns are the changes by which codes, tokens or data of an application reach somebody else.
var turns = map[string]operation{
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
	"an authentication method":     modify(app.SettingsChanged{AuthMethod: new(app.SecretPost)}),
	"any way to send a secret":     modify(app.SettingsChanged{ExactAuthMethod: new(false)}),
	"requests that browsers bring": modify(app.SettingsChanged{PushedRequired: new(false)}),
	"tokens for no key":            modify(app.SettingsChanged{DPoPRequired: new(false)}),
	"a key set":                    modify(app.SettingsChanged{KeySetURI: new("https://attacker.example/keys")}),
	"no consent":                   modify(app.SettingsChanged{ConsentRequired: new(false)}),
	"another form of tokens":       modify(app.SettingsChanged{TokenFormat: new(app.Opaque)}),
	"a claim":                      setMappings(mapping(app.FromGroupNames, nil)),
	"a secret":                     generateSecret,
	"a key":                        addKey,
	"a sign-in page of its own": func(t *testing.T, s event.Store, p access.Permit) error {
		_, err := app.SetOwnSignIn(t.Context(), s, p, "app_active", event.IfMatch{}, true)
		return err
	},
}

// trusts are applications that somebody trusts as they are, with what others are told who turn them, and whether people
// are asked again about scopes of the API.
var trusts = map[string]struct {
	world   func(t *testing.T) *eventtest.Store
	refusal error
	again   int64
}{
	"signet.passwords": {func(t *testing.T) *eventtest.Store { return trusted(t, "signet.passwords") },
		app.ErrOpensWaysIn, 1},
	"signet.self": {func(t *testing.T) *eventtest.Store { return trusted(t, "signet.self") }, app.ErrOpensWaysIn, 1},
	"signet.read signet.write": {func(t *testing.T) *eventtest.Store { return trusted(t, "signet.read", "signet.write") },
		app.ErrOpensWaysIn, 1},
	"the operator's own": {marked, app.ErrIsFirstParty, 0},
}

// An application that may use the API, general scopes included, or is the operator's own, is turned by nobody but those
// who may make it so, and people are asked again.
func TestATrustedApplicationIsNotTurned(t *testing.T) {
	managers := map[string]access.Memberships{
		"a settings manager":           {"org_a": {access.OrgSettingsManager}},
		"an owner of the organization": {"org_a": {access.OrgOwner}, access.Installation: {access.IAMOrgManager}},
	}
	for name, turn := range turns {
		for trust, c := range trusts {
			t.Run(name+"/"+trust, func(t *testing.T) {
				s := c.world(t)
				epoch := func() int64 { return eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch }
				before, mark := epoch(), s.Mark()
				for who, holds := range managers {
					if err := turn(t, s, of(t, "org_a", access.AppWrite, holds)); !errors.Is(err, c.refusal) ||
						!strings.Contains(err.Error(), "IAM_OWNER") {
						t.Errorf("%s: %v", who, err)
					}
				}
				s.Then(t, mark)
				must(t, turn(t, s, ownerA))
				if got := epoch(); got != before+c.again {
					t.Errorf("people are asked again: %d after %d", got, before)
				}
			})
		}
		if name != "a sign-in page of its own" { // that has a permission of its own
			must(t, turn(t, trusted(t), of(t, "org_a", access.AppWrite, managers["a settings manager"])))
			s := marked(t)
			must(t, mark(t, s, ownerA, false))
			must(t, turn(t, s, of(t, "org_a", access.AppWrite, managers["a settings manager"])))
		}
	}
}

// Taking away stays the organization's own, and nobody is asked again for it.
func TestTheOrganizationTakesAwayFromATrustedApplication(t *testing.T) {
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
		for trust, c := range trusts {
			t.Run(name+"/"+trust, func(t *testing.T) {
				s := c.world(t)
				before := eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch
				must(t, take(t, s, manager))
				if got := eventtest.State(t, s, app.Kind, "app_active").Data.APIEpoch; got != before {
					t.Errorf("people are asked again: %d after %d", got, before)
				}
			})
		}
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

// What an owner of the installation cannot have looked at stops counting with the mark: who has a secret, or the private
// part of a key.
func TestSecretsAndKeysOfOthersStopCountingWithTheMark(t *testing.T) {
	manager := of(t, "org_a", access.AppWrite, access.Memberships{"org_a": {access.OrgOwner}})
	// An application that acts for an owner of the installation is not that owner.
	program, err := (&access.Caller{UserID: "usr_iam", Client: "app_x", Scopes: access.APIScopeNames,
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}).In("org_a", access.AppWrite)
	must(t, err)
	secret := func(t *testing.T, s *eventtest.Store, p access.Permit) string {
		_, text, err := app.GenerateSecret(t.Context(), s, p, "app_active", event.IfMatch{}, time.Hour)
		must(t, err)
		return text
	}
	key := func(t *testing.T, s *eventtest.Store, p access.Permit) string {
		_, id, err := app.AddKey(t.Context(), s, p, "app_active", event.IfMatch{}, newKey(t))
		must(t, err)
		return id
	}
	for _, c := range []struct {
		name   string
		makers []access.Permit // of secrets, and of a key each
		counts []bool
	}{
		{"none", nil, nil},
		{"of the organization", []access.Permit{manager}, []bool{false}},
		{"of a program", []access.Permit{program}, []bool{false}},
		{"of the installation", []access.Permit{ownerA}, []bool{true}},
		{"a new one beside the organization's", []access.Permit{manager, ownerA}, []bool{false, true}},
		{"two of the installation", []access.Permit{ownerA, ownerA}, []bool{true, true}},
		// The one that was replaced does not come back.
		{"one of the organization beside it", []access.Permit{ownerA, manager}, []bool{false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			var secrets, keys []string
			for _, p := range c.makers {
				secrets, keys = append(secrets, secret(t, s, p)), append(keys, key(t, s, p))
			}
			must(t, mark(t, s, ownerA, true))
			a := eventtest.State(t, s, app.Kind, "app_active").Data
			if a.FirstParty == nil || a.FirstParty.By != "usr_iam" || a.FirstParty.At != event.Micros(s.Now()) {
				t.Errorf("marked %+v", a.FirstParty)
			}
			for i, p := range c.makers {
				if got := proves(t, s, "app_active", secrets[i]); got != c.counts[i] {
					t.Errorf("the secret %d counts: %t", i, got)
				}
				there := slices.ContainsFunc(a.Keys, func(k app.Key) bool { return k.ID == keys[i] })
				if want := slices.Equal(p.Roles()[access.Installation], []access.Role{access.IAMOwner}); there != want {
					t.Errorf("the key %d counts: %t", i, there)
				}
			}
		})
	}
}

func TestAMarkIsSetAndTakenAwayOnce(t *testing.T) {
	s := trusted(t)
	start := s.Mark()
	must(t, mark(t, s, ownerA, false)) // it is not there
	s.Then(t, start)
	must(t, mark(t, s, ownerA, true))
	first := eventtest.State(t, s, app.Kind, "app_active")
	s.Advance(time.Minute)
	must(t, mark(t, s, ownerA, true))
	if again := eventtest.State(t, s, app.Kind, "app_active"); again.Sequence != first.Sequence {
		t.Error("it is set again")
	}
	must(t, mark(t, s, ownerA, false))
	if a := eventtest.State(t, s, app.Kind, "app_active").Data; a.FirstParty != nil || a.Epoch != first.Data.Epoch+1 {
		t.Errorf("it is %+v, and tokens that nobody was asked about go on: epoch %d", a.FirstParty, a.Epoch)
	}
	for id, want := range map[string]*errs.Error{"app_gone": app.ErrNotFound, "app_foreign": app.ErrNotFound} {
		_, err := app.SetFirstParty(t.Context(), s, ownerA, id, event.IfMatch{}, true)
		eventtest.As(t, err, want)
	}
	_, err := app.SetFirstParty(t.Context(), s, ownerA, "app_active", stale, true)
	eventtest.As(t, err, moved)
}

// A node of the version before would demand nothing of the applications that need more.
func TestWhatAnApplicationNeedsWaitsForEveryNode(t *testing.T) {
	const since = 6
	for _, needs := range []app.Settings{{PushedRequired: true}, {DPoPRequired: true}} {
		if (app.Added{Settings: needs}).Since() != since {
			t.Errorf("%+v does not wait", needs)
		}
	}
	for _, off := range []bool{false, true} {
		if (app.SettingsChanged{PushedRequired: &off}).Since() != since || (app.SettingsChanged{DPoPRequired: &off}).Since() != since {
			t.Errorf("a change to %t does not wait", off)
		}
	}
	if (app.Added{Settings: shopOfBefore}).Since() != 0 || (app.SettingsChanged{ConsentRequired: new(true)}).Since() != 0 ||
		event.FactVersion < since {
		t.Error("it waits without need")
	}
}

// shopOfBefore has what every node knows.
var shopOfBefore = app.Settings{AuthMethod: app.SecretBasic, ConsentRequired: true}
