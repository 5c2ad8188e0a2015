package secret

import (
	"context"
	"testing"
	"time"
)

func TestWorkIsTimedAndARefusalIsNot(t *testing.T) {
	told := 0
	h := NewCheapHasher().Timed(func(waited, worked time.Duration) {
		if told++; waited < 0 || worked <= 0 {
			t.Errorf("it waited %v and worked %v", waited, worked)
		}
	})
	encoded, err := h.For("org").Hash(t.Context(), "a password")
	if err != nil {
		t.Fatal(err)
	}
	if ok, _, err := h.Public("org", "network", 0).Verify(t.Context(), encoded, "a password"); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := h.VerifyNothing(t.Context(), "a password"); err != nil {
		t.Error(err)
	}
	if told != 3 {
		t.Errorf("told %d times, want 3", told)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.VerifyNothing(ended, "a password"); err == nil || told != 3 {
		t.Errorf("for nobody: %v, told %d times", err, told)
	}
}
