// This file makes and reads the codes that devices without a browser show, and slows down whoever guesses them. A
// person types such a code on another device. The codes have eight consonants: they spell no words, and there are 25
// billion of them.

package oauth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
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

var errThrottled = errs.Error{Kind: errs.ResourceExhausted, Reason: UserCodeThrottled, Message: "too many wrong codes came from this network: wait before trying again"}

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
	return g.change(ctx, peer, func(m *misses, now int64) error {
		if m.Count >= MaxUserCodeMisses {
			refused := errThrottled
			refused.RetryAfter = time.Duration(m.Until-now) * time.Microsecond
			return &refused
		}
		m.Count++
		return nil
	})
}

// TakeBack takes a guess back that was none.
func (g UserCodeGuesses) TakeBack(ctx context.Context, peer netip.Addr) error {
	return g.change(ctx, peer, func(m *misses, _ int64) error {
		m.Count = max(0, m.Count-1)
		return nil
	})
}

// change changes the count of a network, which begins anew when its time is over.
func (g UserCodeGuesses) change(ctx context.Context, peer netip.Addr, change func(m *misses, now int64) error) error {
	key := event.RowKey{Table: event.Throttle, Key: hex.EncodeToString(g.Master.MAC("user code", []byte(ratelimit.NetworkName(peer))))}
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
		row, err := tx.Row(key)
		if err != nil {
			return err
		}
		m := misses{Until: tx.Now() + UserCodeWindow.Microseconds()}
		if row != nil {
			if err := json.Unmarshal(row.Value, &m); err != nil {
				return fmt.Errorf("guesses of user codes: %w", err)
			}
		}
		if err := change(&m, tx.Now()); err != nil {
			return err
		}
		if m.Count == 0 {
			tx.DropRow(key)
			return nil
		}
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		tx.PutRow(event.Row{RowKey: key, Value: text, Expires: m.Until})
		return nil
	}})
}
