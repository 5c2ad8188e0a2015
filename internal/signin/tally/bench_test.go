package tally_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// BenchmarkOutcome is what a sign-in pays for being counted.
func BenchmarkOutcome(b *testing.B) {
	counts := tally.New(eventtest.New(b, org.Kind), time.Now, slow)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			counts.Outcome("org_a", tally.Password, nil)
		}
	})
}
