package session

import (
	"context"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Live gives a session that begins now the lifetime that the rules allow, and returns when its token expires. Code that
// replaces the token of an open session keeps Until and Idle, and lets the new token expire when the old one would
// have.
func (p *Proof) Live(now int64, rules policy.Settings) (expires int64) {
	p.Until, p.Idle = 0, 0
	end := now + rules.SessionLife().Microseconds()
	if idle := rules.SessionIdle().Microseconds(); idle > 0 && idle < end-now {
		p.Until, p.Idle = end, idle
	}
	return p.unusedUntil(now, end)
}

// unusedUntil tells when a session ends that was used last at a moment, end being when it ends without Idle.
func (p *Proof) unusedUntil(used, end int64) int64 {
	if p.Idle == 0 {
		return end
	}
	return min(p.Until, used+p.Idle)
}

// renewal is what lets a session live on once the request that came with it has been carried out; nil where there is
// nothing to do: most sessions do not end by not being used, and one that does is renewed by a tenth of its time at
// least.
func (s *Sessions) renewal(t *event.Token, now int64) (func(), error) {
	if !strings.Contains(t.Data, `"idle"`) { // reading it costs more than all the rest
		return nil, nil
	}
	proof, err := ProofOf(t)
	if err != nil {
		return nil, err
	}
	expires := proof.unusedUntil(now, t.Expires)
	if won := expires - t.Expires; won <= 0 || won < proof.Idle/10 && expires < proof.Until {
		return nil, nil
	}
	id, ends := t.ID, t.Expires
	return func() {
		s.Renewals.Run(id, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			// Where it fails, the next use tries again.
			_ = s.Store.Do(ctx, event.Command{
				Origin: event.Origin{Actor: event.System},
				Decide: func(tx *event.Tx) error {
					if tx.Now() < ends { // what has ended stays ended
						tx.ExtendToken(id, expires)
					}
					return nil
				},
			})
		})
	}, nil
}
