// Package kubernetes tries the authenticator of the API server of Kubernetes, as docs/guides/claims.md sets it up: a
// module of its own because of what it needs.
package kubernetes

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/signet-idm/signet/test/clients/claims"
	"github.com/signet-idm/signet/test/testkit"
)

func TestTheAPIServerReadsGroups(t *testing.T) {
	p := claims.SignIn(t, "https://id.example.test", "kubernetes", "k8s-admins", "developers")
	prefix := "signet:"
	by, err := oidc.New(t.Context(), oidc.Options{
		Client: p.Client,
		JWTAuthenticator: apiserver.JWTAuthenticator{
			Issuer: apiserver.Issuer{URL: p.Issuer, Audiences: []string{p.ClientID}},
			ClaimMappings: apiserver.ClaimMappings{
				Username: apiserver.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix},
				Groups:   apiserver.PrefixedClaimOrExpression{Claim: "groups", Prefix: &prefix},
			},
		},
	})
	testkit.Must(t, err)
	testkit.Await(t, "the authenticator has read the keys", func() bool { return by.HealthCheck() == nil })
	who, ok, err := by.AuthenticateToken(t.Context(), p.IDToken)
	testkit.Must(t, err)
	if !ok || who.User.GetName() != "signet:"+p.UserID {
		t.Fatalf("it takes the person for %v (%v)", who, ok)
	}
	if got := who.User.GetGroups(); !slices.Equal(got, []string{"signet:developers", "signet:k8s-admins"}) {
		t.Errorf("it reads the groups %q", got)
	}
}
