// Package vault tries Vault's plugin for JWT and OpenID Connect, as docs/guides/claims.md sets it up: a module of its own
// because of what it needs.
package vault

import (
	"slices"
	"testing"
	"time"

	jwtauth "github.com/hashicorp/vault-plugin-auth-jwt"
	"github.com/hashicorp/vault/sdk/logical"

	"github.com/signet-idm/signet/test/clients/claims"
	"github.com/signet-idm/signet/test/testkit"
)

func TestVaultReadsGroups(t *testing.T) {
	p := claims.SignIn(t, "", "vault", "vault-admins", "developers")
	storage := &logical.InmemStorage{}
	b, err := jwtauth.Factory(t.Context(), &logical.BackendConfig{StorageView: storage,
		System: &logical.StaticSystemView{DefaultLeaseTTLVal: time.Hour, MaxLeaseTTLVal: time.Hour}})
	testkit.Must(t, err)
	write := func(operation logical.Operation, path string, data map[string]any) *logical.Response {
		t.Helper()
		resp, err := b.HandleRequest(t.Context(), &logical.Request{Operation: operation, Path: path,
			Storage: storage, Data: data, Connection: &logical.Connection{}})
		testkit.Must(t, err)
		if resp != nil && resp.IsError() {
			t.Fatalf("%s: %v", path, resp.Error())
		}
		return resp
	}
	write(logical.UpdateOperation, "config", map[string]any{"oidc_discovery_url": p.Issuer, "bound_issuer": p.Issuer})
	write(logical.CreateOperation, "role/people", map[string]any{"role_type": "jwt", "user_claim": "sub", "groups_claim": "groups",
		"bound_audiences": []string{p.ClientID}, "bound_claims": map[string]any{"groups": []string{"vault-admins"}}})
	resp := write(logical.UpdateOperation, "login", map[string]any{"role": "people", "jwt": p.IDToken})
	if resp.Auth == nil || resp.Auth.Alias.Name != p.UserID {
		t.Fatalf("it takes the person for %+v", resp.Auth)
	}
	var groups []string
	for _, alias := range resp.Auth.GroupAliases {
		groups = append(groups, alias.Name)
	}
	slices.Sort(groups)
	if !slices.Equal(groups, []string{"developers", "vault-admins"}) {
		t.Errorf("it reads the groups %q", groups)
	}
}
