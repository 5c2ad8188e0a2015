package secret

import (
	"bytes"
	"testing"
)

func TestACheapHasherWorksLikeTheOther(t *testing.T) {
	cheap, usual := NewCheapHasher(), NewHasher(0, 0)
	encoded, err := cheap.Hash(t.Context(), "correct horse")
	if err != nil || !bytes.HasPrefix(encoded, []byte(cheapPrefix)) || HashProblem(string(encoded)) != "" {
		t.Fatalf("got %s, %v", encoded, err)
	}
	if again, _ := cheap.Hash(t.Context(), "correct horse"); bytes.Equal(encoded, again) {
		t.Error("both hashes have the same salt")
	}
	if ok, upgraded, err := cheap.Verify(t.Context(), encoded, "correct horse"); !ok || upgraded != nil || err != nil {
		t.Errorf("the right password: %v, %s, %v", ok, upgraded, err)
	}
	if ok, upgraded, err := cheap.Verify(t.Context(), encoded, "battery staple"); ok || upgraded != nil || err != nil {
		t.Errorf("a wrong password: %v, %s, %v", ok, upgraded, err)
	}
	if ok, upgraded, err := cheap.Verify(t.Context(), []byte(importedArgon2Weak), horse); !ok ||
		!bytes.HasPrefix(upgraded, []byte(cheapPrefix)) || err != nil {
		t.Errorf("a hash of another system: %v, %s, %v", ok, upgraded, err)
	}
	// A server never takes such a hash for a strong one.
	if ok, upgraded, err := usual.Verify(t.Context(), encoded, "correct horse"); !ok ||
		!bytes.HasPrefix(upgraded, []byte(currentParametersStart)) || err != nil {
		t.Errorf("verified by the other: %v, %s, %v", ok, upgraded, err)
	}
	if m, problem := inspect(cheapNothing); m.algorithm != algorithmArgon2 || problem != "" {
		t.Errorf("what it compares with when there is no user: %s", problem)
	}
}
