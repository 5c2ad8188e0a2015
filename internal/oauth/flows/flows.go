// Package flows reads and writes the rows of what is on its way: requests, codes, refresh tokens, devices, trials. They
// are rows of the side table event.Flows that expire.
package flows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Digest is what is stored of a secret that cannot be guessed.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Key is that of a row of a kind.
func Key(kind, key string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: kind + "/" + key}
}

// Decode reads what a row holds; nil for no row.
func Decode[T any](row *event.Row, err error) (*T, error) {
	if err != nil || row == nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(row.Value, value); err != nil {
		return nil, fmt.Errorf("row on %s: %w", row.Table, err)
	}
	return value, nil
}

func text(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return text
}

// Put writes a row that counts for a while.
func Put(tx *event.Tx, key event.RowKey, value any, life time.Duration) {
	tx.PutRow(event.Row{RowKey: key, Value: text(value), Expires: tx.Now() + life.Microseconds()})
}

const purposeBrowser = "sign-in of a browser"

// PutFor is Put for what only the holder of a secret may read again: the browser that it came by. Applications send
// along what they like, names of people among it, and nobody would find that to erase it: so it is sealed with what the
// browser alone holds.
func PutFor(master secret.MasterKey, tx *event.Tx, holder string, key event.RowKey, value any, life time.Duration) {
	sealed := master.DataKeyOf(purposeBrowser, []byte(holder)).Seal(text(value), []byte(key.Key))
	tx.PutRow(event.Row{RowKey: key, Value: sealed, Expires: tx.Now() + life.Microseconds()})
}

// DecodeFor reads what PutFor wrote; nil for no row, and for another holder.
func DecodeFor[T any](master secret.MasterKey, holder string, row *event.Row, err error) (*T, error) {
	if err != nil || row == nil || holder == "" {
		return nil, err
	}
	opened := *row
	if opened.Value, err = master.DataKeyOf(purposeBrowser, []byte(holder)).Open(row.Value, []byte(row.Key)); err != nil {
		return nil, nil
	}
	return Decode[T](&opened, nil)
}
