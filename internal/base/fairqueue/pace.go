package fairqueue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Pace measures how fast a line moves, and tells newcomers whose deadline would pass before their turn: they need not
// wait for nothing, and what they send need not be kept in memory. It is safe for concurrent use. Its zero value knows
// nothing yet and lets everybody wait.
type Pace struct{ turn atomic.Int64 } // mean time of one turn

// Moved notes that so many turns took a time. Recent ones count more than older ones.
func (p *Pace) Moved(turns int, took time.Duration) {
	if turns > 0 {
		mean := p.turn.Load()
		p.turn.Store(mean + (int64(took)/int64(turns)-mean)/8)
	}
}

// Admit refuses somebody with so many turns ahead if ctx ends before its own. Errors: busy, with the time in which the
// line will have moved on.
func (p *Pace) Admit(ctx context.Context, ahead int, busy *errs.Error) error {
	deadline, limited := ctx.Deadline()
	wait := time.Duration(ahead) * time.Duration(p.turn.Load())
	if !limited || wait <= 0 || wait < time.Until(deadline) {
		return nil
	}
	refusal := *busy
	refusal.RetryAfter = min(max(wait, refusal.RetryAfter), time.Minute)
	return &refusal
}
