// Package usercode makes and reads the codes that devices without a browser show, and slows down whoever guesses them. A person types such a code on another
// device. The codes have eight consonants: they spell no words, and there are 25 billion of them.
package usercode

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
	"github.com/signet-idm/signet/internal/limit/network"
)

const letters = "BCDFGHJKLMNPQRSTVWXZ"

// Bounds.
const (
	Length    = 8                // of a code
	MaxMisses = 20               // wrong codes from one network
	Window    = 10 * time.Minute // in which they are counted
)

// New makes a code.
func New() string {
	var code strings.Builder
	for range Length {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // it never fails: crypto/rand ends the program instead
		}
		code.WriteByte(letters[n.Int64()])
	}
	return code.String()
}

// Shown is a code as devices show it: BCDF-GHJK.
func Shown(code string) string { return code[:Length/2] + "-" + code[Length/2:] }

// Canonical reads a code as people type it: in any case, with any separators.
func Canonical(typed string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(typed))
}

// Throttled is the reason for which guesses are refused.
const Throttled errs.Reason = "USER_CODE_THROTTLED"

var errThrottled = errs.Error{Kind: errs.ResourceExhausted, Reason: Throttled, Message: "too many wrong codes came from this network: wait before trying again"}

// Guesses counts the codes that come from a network.
type Guesses struct {
	Store  event.Store
	Master secret.MasterKey
}

// misses are the codes from one network that were wrong, or are still being looked at.
type misses struct {
	Count int64 `json:"count"`
	Until int64 `json:"until"`
}

// Count counts a code before it is looked at, so that parallel guesses count each other. Errors: ResourceExhausted (USER_CODE_THROTTLED).
func (g Guesses) Count(ctx context.Context, peer netip.Addr) error {
	return g.change(ctx, peer, func(m *misses, now int64) error {
		if m.Count >= MaxMisses {
			refused := errThrottled
			refused.RetryAfter = time.Duration(m.Until-now) * time.Microsecond
			return &refused
		}
		m.Count++
		return nil
	})
}

// TakeBack takes a guess back that was none.
func (g Guesses) TakeBack(ctx context.Context, peer netip.Addr) error {
	return g.change(ctx, peer, func(m *misses, _ int64) error {
		m.Count = max(0, m.Count-1)
		return nil
	})
}

// change changes the count of a network, which begins anew when its time is over.
func (g Guesses) change(ctx context.Context, peer netip.Addr, change func(m *misses, now int64) error) error {
	key := event.RowKey{Table: event.Throttle, Key: hex.EncodeToString(g.Master.MAC("user code", []byte(network.Name(peer))))}
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
		row, err := tx.Row(key)
		if err != nil {
			return err
		}
		m := misses{Until: tx.Now() + Window.Microseconds()}
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
