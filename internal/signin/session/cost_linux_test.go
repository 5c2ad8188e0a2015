//go:build cost

package session

import (
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

// A login name is looked up before anything slows down whoever sends it: it must cost next to nothing whatever it is.
func TestNoLoginNameCostsMuch(t *testing.T) {
	_, s := world(t)
	for _, size := range []int{600, 2000, 8000, 1 << 20} {
		costtest.Bounded(t, size, func(name string) {
			if _, _, err := s.find(t.Context(), name, NameScope{}); err != nil {
				t.Error(err)
			}
		})
	}
	for _, size := range []int{2000, 8000, 20_000} {
		costtest.Grows(t, "a domain of Han characters", size, costtest.Most/4, func(size int) func() {
			name := "a@" + costtest.Alphabets[0].Text(size)
			return func() { _, _, _ = s.find(t.Context(), name, NameScope{}) }
		})
	}
}
