//go:build cost

package secret

import (
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

func TestNothingThatClaimsToBeASecretCostsMuchToRead(t *testing.T) {
	costtest.Bounded(t, 1<<20, func(text string) {
		ParseToken(text)
		HashProblem(text)
	})
}
