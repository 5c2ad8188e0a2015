// Package stored holds counters that all nodes share and that survive a restart. Each counter is a row of JSON that
// expires when it is no longer needed. Nodes of the previous version read and write the same rows: a counter can get
// new fields, but its keys and fields keep their names and meaning.
package stored

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Counter is the row of a counter that holds a T. A command that uses it declares the Row.
type Counter[T any] struct{ Row event.RowKey }

// Of gives the counter of something. Only a MAC of its name is stored.
func Of[T any](master secret.MasterKey, purpose string, name ...string) Counter[T] {
	parts := make([][]byte, len(name))
	for i, p := range name {
		parts[i] = []byte(p)
	}
	return At[T](hex.EncodeToString(master.MAC(purpose, parts...)))
}

// At gives the counter with a key of its own, for what is no secret.
func At[T any](key string) Counter[T] {
	return Counter[T]{Row: event.RowKey{Table: event.Throttle, Key: key}}
}

// Get is what the counter holds; the zero value if it holds nothing.
func (c Counter[T]) Get(tx *event.Tx) (value T, err error) {
	row, err := tx.Row(c.Row)
	if err != nil || row == nil {
		return value, err
	}
	if err := json.Unmarshal(row.Value, &value); err != nil {
		return value, fmt.Errorf("stored counter: %w", err)
	}
	return value, nil
}

// Put stores what the counter holds, for so long.
func (c Counter[T]) Put(tx *event.Tx, value T, life time.Duration) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain fields of ours
	}
	tx.PutRow(event.Row{RowKey: c.Row, Value: text, Expires: tx.Now() + life.Microseconds()})
}

// Drop forgets what the counter holds.
func (c Counter[T]) Drop(tx *event.Tx) { tx.DropRow(c.Row) }

// Window is the moments of what was counted, the first one first, of those within a time.
type Window []int64

// Since gives the window without the moments that are as long ago as its length, or longer.
func (w Window) Since(now int64, length time.Duration) Window {
	return slices.DeleteFunc(w, func(at int64) bool { return now-at >= length.Microseconds() })
}

// Wait is how long to wait until fewer than so many moments are within a time; not above zero: no time.
func (w Window) Wait(now int64, most int, length time.Duration) time.Duration {
	if len(w) < most {
		return 0
	}
	return time.Duration(w[len(w)-most]-now)*time.Microsecond + length
}
