package session

import (
	"testing"

	"github.com/signet-idm/signet/internal/costtest"
)

// A login name is looked up before anything slows down whoever sends it: it must cost next to nothing whatever it is.
func TestNoLoginNameCostsMuch(t *testing.T) {
	_, s := world(t)
	for _, size := range []int{600, 2000, 8000, 1 << 20} {
		costtest.Bounded(t, size, func(name string) {
			if _, _, err := s.find(t.Context(), name, ""); err != nil {
				t.Error(err)
			}
		})
	}
	han := costtest.Alphabets[0].Text
	for _, size := range []int{2000, 8000, 20_000} {
		if cost := costtest.CPU(func() { _, _, _ = s.find(t.Context(), "a@"+han(size), "") }); cost > costtest.Most/10 {
			t.Errorf("%d bytes of Han characters cost %v", size, cost)
		}
	}
}
