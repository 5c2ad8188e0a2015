package access_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
)

func TestEveryScopeHasItsName(t *testing.T) {
	for _, c := range []struct {
		scope access.APIScopes
		name  string
	}{
		{access.SelfScope, "signet.self"}, {access.ReadScope, "signet.read"}, {access.WriteScope, "signet.write"},
		{access.PasswordsScope, "signet.passwords"},
		{access.ContactsScope, "signet.contacts"}, {access.RolesScope, "signet.roles"},
		{access.CredentialsScope, "signet.credentials"},
		{access.AppCredentialsScope, "signet.app_credentials"}, {access.RedirectsScope, "signet.redirects"},
		{access.APIAccessScope, "signet.api_access"},
		{access.AllOrganizationsScope, "signet.all_organizations"}, {access.ApprovalsScope, "signet.approvals"},
		{access.DomainsScope, "signet.domains"},
		{access.WebhooksScope, "signet.webhooks"}, {access.ProvidersScope, "signet.providers"},
		{access.PoliciesScope, "signet.policies"}, {access.SigningKeysScope, "signet.signing_keys"},
		{access.GroupsScope, "signet.groups"}, {access.AppRolesScope, "signet.app_roles"},
		{access.InvitationsScope, "signet.invitations"}, {access.MetadataScope, "signet.metadata"},
	} {
		if got := access.ScopesNamed(c.name); got != c.scope || !access.IsAPIScope(c.name) {
			t.Errorf("%s is %b, not %b", c.name, got, c.scope)
		}
		if got := c.scope.Names(); !slices.Equal(got, []string{c.name}) {
			t.Errorf("%s is called %v", c.name, got)
		}
	}
	if all := access.ScopesNamed(access.APIScopeNames...); all != access.MetadataScope<<1-1 {
		t.Errorf("names and constants differ: %b", all)
	}
}

func TestATokenIsGoodForItsScopesOnly(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  access.APIScopes
	}{
		{nil, 0},
		{[]string{"openid", "signet", "signet.", "signet.*", "signet.reads", "SIGNET.READ", "urn:signet:roles",
			" signet.read"}, 0},
		{[]string{"openid", "signet.read"}, access.ReadScope},
		{[]string{"signet.write"}, access.WriteScope | access.ReadScope},
		{[]string{"signet.passwords", "signet.self"}, access.PasswordsScope | access.SelfScope},
	} {
		if got := access.ScopesGiven(c.given); got != c.want {
			t.Errorf("%v is good for %v", c.given, got.Names())
		}
	}
}

// needs is a small definition: what can be done with user.credential.write needs two scopes, and nothing lets an
// application hold org.setup.
var needs = map[access.Permission]access.APIScopes{
	access.UserRead: access.ReadScope, access.UserWrite: access.WriteScope | access.PasswordsScope,
	access.CredentialWrite: access.PasswordsScope | access.CredentialsScope,
	access.GroupRead:       access.ReadScope, access.GroupWrite: access.WriteScope,
	access.InvitationRead:  access.ReadScope,
	access.InvitationWrite: access.WriteScope, access.SignInRead: access.ReadScope,
}

func asApplication(scopes ...string) *access.Caller {
	return &access.Caller{UserID: "usr_a", OrgID: "org_a", Scopes: append([]string{}, scopes...), Needs: needs,
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
}

func TestAnApplicationHoldsWhatThePersonHoldsAndItsScopesAllowInFull(t *testing.T) {
	person := asApplication()
	person.Scopes = nil
	manager := access.Memberships{"org_a": {access.OrgUserManager}}
	for _, c := range []struct {
		name                                string
		caller                              *access.Caller
		reads, writes, credentials, setup   bool
		passwords, covers, coversTheUnknown bool
	}{
		{"a person", person, true, true, true, true, true, true, true},
		{"no scope", asApplication(), false, false, false, false, false, false, false},
		{"reading", asApplication("signet.read"), true, false, false, false, false, false, false},
		{"writing", asApplication("signet.self", "signet.write"), true, false, false, false, false, false, false},
		{"passwords", asApplication("signet.passwords"), false, false, false, false, true, false, false},
		{"some", asApplication("signet.write", "signet.passwords"), true, true, false, false, true, false, false},
		{"all of a role", asApplication("signet.write", "signet.passwords", "signet.credentials"), true, true, true,
			false, true, true, false},
		{"every scope", asApplication(access.APIScopeNames...), true, true, true, false, true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			permit, err := c.caller.In("org_a", access.UserRead)
			if err != nil {
				t.Fatal(err)
			}
			check := func(permit access.Permit) {
				t.Helper()
				for p, want := range map[access.Permission]bool{access.UserRead: c.reads, access.UserWrite: c.writes,
					access.CredentialWrite: c.credentials, access.OrgSetup: c.setup} {
					if got := permit.Holds(p, access.Installation); got != want {
						t.Errorf("holds %s: %t", p, got)
					}
				}
				if got := permit.HoldsFor(access.PasswordsScope, access.CredentialWrite, "org_a"); got != c.passwords {
					t.Errorf("sets passwords: %t", got)
				}
				if got := permit.Covers(manager) == nil; got != c.covers {
					t.Errorf("covers a user manager: %t", got)
				}
				if got := permit.Covers(access.Memberships{access.Installation: {access.IAMOrgManager}}) == nil; got != c.coversTheUnknown {
					t.Errorf("covers an organization manager: %t", got)
				}
				if err := permit.Covers(nil); err != nil {
					t.Errorf("covers somebody without roles: %v", err)
				}
			}
			check(permit)
			renewed, err := permit.Renewing(func(context.Context) (access.Permit, error) {
				return c.caller.In("org_a", access.UserRead)
			}).Renew(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(renewed)
		})
	}
}

func TestScopesGiveNothingThatThePersonDoesNotHold(t *testing.T) {
	caller := asApplication(access.APIScopeNames...)
	caller.Memberships = access.Memberships{"org_a": {access.OrgOwnerViewer}}
	permit, err := caller.In("org_a", access.UserRead)
	if err != nil {
		t.Fatal(err)
	}
	if permit.Holds(access.UserWrite, "org_a") ||
		permit.HoldsFor(access.PasswordsScope, access.CredentialWrite, "org_a") ||
		permit.Covers(access.Memberships{"org_a": {access.OrgUserManager}}) == nil {
		t.Error("a scope made a manager of a viewer")
	}
}

func TestACallerWithScopesThatNobodyExplainedHoldsNothing(t *testing.T) {
	caller := asApplication(access.APIScopeNames...)
	caller.Needs = nil
	permit, err := caller.In("org_a", access.UserRead)
	if err != nil {
		t.Fatal(err)
	}
	if permit.Holds(access.UserRead, "org_a") ||
		permit.Covers(access.Memberships{"org_a": {access.OrgOwnerViewer}}) == nil {
		t.Error("it holds something")
	}
}

func TestAnApplicationGivesAwayOnlyWhatItHas(t *testing.T) {
	permit, _ := asApplication("signet.api_access", "signet.read").In("org_a", access.UserRead)
	for _, c := range []struct {
		scopes access.APIScopes
		ok     bool
	}{{0, true}, {access.ReadScope, true}, {access.ReadScope | access.APIAccessScope, true}, {access.WriteScope, false},
		{access.ReadScope | access.PasswordsScope, false}} {
		if err := permit.CoversScopes(c.scopes); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.scopes.Names(), err)
		}
	}
	person := asApplication()
	person.Scopes = nil
	permit, _ = person.In("org_a", access.UserRead)
	if err := permit.CoversScopes(access.PasswordsScope); err != nil {
		t.Errorf("a person: %v", err)
	}
}

func TestARefusalNamesTheScopesThatAreMissing(t *testing.T) {
	for scopes, want := range map[access.APIScopes]string{
		access.PasswordsScope: "this needs the scope signet.passwords: ",
		access.WriteScope | access.RolesScope | access.PasswordsScope: "this needs the scopes signet.write, signet.passwords and signet.roles: ",
	} {
		e, ours := errors.AsType[*errs.Error](access.ErrScopes(scopes))
		if !ours || e.Reason != access.ScopeRequired || e.Kind != errs.PermissionDenied ||
			!strings.HasPrefix(e.Message, want) {
			t.Errorf("got %v", e)
		}
	}
}

func TestRolesOfAPermitAreThoseThatItsScopesAllowInFull(t *testing.T) {
	both := access.Memberships{access.Installation: {access.IAMOwner},
		"org_a": {access.OrgUserManager, access.OrgOwner}, "org_b": {access.OrgUserManager}}
	for _, c := range []struct {
		name   string
		scopes []string
		want   access.Memberships
	}{
		{"a person", nil, both},
		{"no scope", []string{}, access.Memberships{}},
		{"some of a role", []string{"signet.write", "signet.passwords"}, access.Memberships{}},
		{"all of a role", []string{"signet.write", "signet.passwords", "signet.credentials"},
			access.Memberships{"org_a": {access.OrgUserManager}, "org_b": {access.OrgUserManager}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := asApplication(c.scopes...)
			caller.Memberships = both
			if c.scopes == nil {
				caller.Scopes = nil
			}
			permit, err := caller.In("org_a", access.UserRead)
			if err != nil {
				t.Fatal(err)
			}
			if got := permit.Roles(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v", got)
			}
		})
	}
	if got := (access.Permit{}).Roles(); len(got) != 0 {
		t.Errorf("no permit has %v", got)
	}
}
