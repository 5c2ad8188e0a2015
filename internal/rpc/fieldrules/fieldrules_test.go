package fieldrules_test

import (
	"slices"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/rpc/fieldrules"
)

func TestARangeIsSaidInFewWords(t *testing.T) {
	rules, err := fieldrules.Of((&signetv1.SetInstallationPolicyRequest{}).ProtoReflect().Descriptor())
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := rules.Check(&signetv1.SetInstallationPolicyRequest{Policy: &signetv1.Policy{PasswordMinLength: 73, NetworkWaitSeconds: 59, SessionSeconds: 300}})
	want := []errs.Violation{{Field: "policy.passwordMinLength", Message: "must be from 0 to 72"}, {Field: "policy.networkWaitSeconds", Message: "must be from 60 to 3600"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v", found, err)
	}
}
