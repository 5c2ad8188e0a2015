package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// signingKeys: the keys are shown and changed. There is one list for the whole installation, so this is told once.
func signingKeys(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	list := func() *signetv1.ListSigningKeysResponse {
		t.Helper()
		return done[*signetv1.ListSigningKeysResponse](t, c, w.root, &signetv1.ListSigningKeysRequest{})
	}
	before := list()
	if len(before.GetKeys()) != 1 || !before.GetKeys()[0].GetSigns() || before.GetKeys()[0].GetAlgorithm() != "ES256" ||
		before.GetKeys()[0].GetPublishedUntil() != nil {
		t.Fatalf("at first there are %v", before)
	}
	same(t, "owner", before.GetDetails().GetResourceOwner(), "installation")

	d := c.carryOut(t, w.root, &signetv1.RotateSigningKeysRequest{})
	after := list()
	same(t, "sequence", d.GetSequence(), before.GetDetails().GetSequence()+1)
	same(t, "keys", len(after.GetKeys()), 2)
	old, fresh := after.GetKeys()[0], after.GetKeys()[1]
	if !old.GetSigns() || fresh.GetSigns() || old.GetPublishedUntil() == nil ||
		!fresh.GetSignsFrom().AsTime().After(fresh.GetCreationDate().AsTime()) {
		t.Errorf("the new one signs already, or the old one does not: %v", after)
	}
	c.refused(t, refused(codes.FailedPrecondition, "SIGNING_KEYS_ROTATING"), w.root,
		&signetv1.RotateSigningKeysRequest{})

	c.carryOut(t, w.root, &signetv1.RotateSigningKeysRequest{Now: true})
	same(t, "keys after the urgent change", len(list().GetKeys()), 3)
	c.refused(t, refused(codes.FailedPrecondition, "SIGNING_KEYS_ROTATING"), w.root,
		&signetv1.RotateSigningKeysRequest{Now: true})
}
