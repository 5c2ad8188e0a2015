// This file makes and reads the codes that devices without a browser show, and slows down guessing. A user types such a
// code on another device. A code has eight consonants: it spells no word, and there are 25 billion of them.

package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/limit/stored"
)

const letters = "BCDFGHJKLMNPQRSTVWXZ"

// Bounds.
const (
	UserCodeLength    = 8                // of a code
	MaxUserCodeMisses = 20               // wrong codes from one network
	UserCodeWindow    = 10 * time.Minute // in which they are counted
)

// NewUserCode makes a code.
func NewUserCode() string {
	var code strings.Builder
	for range UserCodeLength {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // it never fails: crypto/rand ends the program instead
		}
		code.WriteByte(letters[n.Int64()])
	}
	return code.String()
}

// ShownUserCode is a code as devices show it: BCDF-GHJK.
func ShownUserCode(code string) string {
	return code[:UserCodeLength/2] + "-" + code[UserCodeLength/2:]
}

// CanonicalUserCode reads a code as people type it: in any case, with any separators.
func CanonicalUserCode(typed string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(typed))
}

// UserCodeThrottled is the reason for which guesses are refused.
const UserCodeThrottled errs.Reason = "USER_CODE_THROTTLED"

var errThrottled = errs.Error{Kind: errs.ResourceExhausted, Reason: UserCodeThrottled,
	Message: "too many wrong codes came from this network: wait before trying again"}

// UserCodeGuesses counts the codes that come from a network.
type UserCodeGuesses struct {
	Store  event.Store
	Master secret.MasterKey
}

// misses are the codes from one network that were wrong, or are still being looked at.
type misses struct {
	Count int64 `json:"count"`
	Until int64 `json:"until"`
}

// Count counts a code before it is looked at, so that parallel guesses count each other. Errors: ResourceExhausted
// (USER_CODE_THROTTLED).
func (g UserCodeGuesses) Count(ctx context.Context, peer netip.Addr) error {
	return g.change(ctx, peer, func(m *misses, left time.Duration) error {
		if m.Count >= MaxUserCodeMisses {
			refused := errThrottled
			refused.RetryAfter = left
			return &refused
		}
		m.Count++
		return nil
	})
}

// TakeBack takes a guess back that was none.
func (g UserCodeGuesses) TakeBack(ctx context.Context, peer netip.Addr) error {
	return g.change(ctx, peer, func(m *misses, _ time.Duration) error {
		m.Count = max(0, m.Count-1)
		return nil
	})
}

// change changes the count of a network, which begins anew when its time is over.
func (g UserCodeGuesses) change(ctx context.Context, peer netip.Addr,
	change func(m *misses, left time.Duration) error) error {
	count := stored.Of[misses](g.Master, "user code", ratelimit.NetworkName(peer))
	command := event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{count.Row}}
	command.Decide = func(tx *event.Tx) error {
		m, err := count.Get(tx)
		if err != nil {
			return err
		}
		m.Until = cmp.Or(m.Until, tx.Now()+UserCodeWindow.Microseconds())
		left := time.Duration(m.Until-tx.Now()) * time.Microsecond
		if err := change(&m, left); err != nil {
			return err
		}
		if m.Count == 0 {
			count.Drop(tx)
		} else {
			count.Put(tx, m, left)
		}
		return nil
	}
	return g.Store.Do(ctx, command)
}
