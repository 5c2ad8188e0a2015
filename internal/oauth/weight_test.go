package oauth_test

import (
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/oauth/claimset"
)

func TestPeopleAreAskedFirstAboutWhatMatters(t *testing.T) {
	got := claimset.SortedScopes([]string{"email", "offline_access", "openid", "phone", "profile", "signet.api_access",
		"signet.read", "signet.roles", "signet.self", "signet.write", "strange",
		"urn:signet:org:id:org_a", "urn:signet:roles"})
	want := []string{"strange", "signet.api_access", "signet.roles", "signet.write", "signet.self", "offline_access",
		"signet.read", "urn:signet:roles", "urn:signet:org:id:org_a",
		"phone", "email", "profile", "openid"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
