package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
)

// Flow is a kind of row that expires: a request, a code, a challenge on its way. Its rows are in the side table Flows,
// each a T as JSON. A command that declares the key of a row and uses it up is the only one that does.
type Flow[T any] struct {
	Prefix  string        // of its keys
	Life    time.Duration // of a row; PutUntil is for those that end otherwise
	Purpose string        // empty: rows are plain. Else they are sealed, see For

	seal   *secret.DataKey
	about  string // sealed rows are bound to it; empty: to their key
	absent bool   // nobody holds what would open a row
}

// For is the flow for the holder of a secret, such as a browser: its rows are sealed with it. Rows of another holder
// are not there. What strangers send along may name people, and nobody would find that to erase it.
func (f Flow[T]) For(master secret.MasterKey, holder string) Flow[T] {
	key := master.DataKeyOf(f.Purpose, []byte(holder))
	f.seal, f.absent = &key, holder == ""
	return f
}

// About binds sealed rows to a text instead of their key. Rows about another text are not there.
func (f Flow[T]) About(text string) Flow[T] {
	f.about = text
	return f
}

// Key is that of a row; a command that reads the row declares it.
func (f Flow[T]) Key(id string) RowKey { return RowKey{Table: Flows, Key: f.Prefix + "/" + id} }

// Put writes a row that lives as long as rows of its kind do.
func (f Flow[T]) Put(tx *Tx, id string, value *T) {
	f.PutUntil(tx, id, value, tx.Now()+f.Life.Microseconds())
}

// PutUntil writes a row that ends at a moment.
func (f Flow[T]) PutUntil(tx *Tx, id string, value *T, expires int64) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain fields of ours
	}
	key := f.Key(id)
	switch {
	case f.seal != nil:
		text = f.seal.Seal(text, []byte(cmp.Or(f.about, key.Key)))
	case f.Purpose != "":
		panic("event: a row of " + f.Prefix + " is for nobody")
	}
	tx.PutRow(Row{RowKey: key, Value: text, Expires: expires})
}

// Get is what a row holds, inside a command that declared its key; nil: there is none.
func (f Flow[T]) Get(tx *Tx, id string) (*T, error) { return f.open(tx.Row(f.Key(id))) }

// Use is Get, and nobody gets it again.
func (f Flow[T]) Use(tx *Tx, id string) (*T, error) {
	value, err := f.Get(tx, id)
	if value != nil {
		tx.DropRow(f.Key(id))
	}
	return value, err
}

// Read is what a row holds; nil: there is none.
func (f Flow[T]) Read(ctx context.Context, r Reader, id string) (*T, error) {
	return f.open(r.Row(ctx, f.Key(id)))
}

func (f Flow[T]) open(row *Row, err error) (*T, error) {
	if err != nil || row == nil || f.absent {
		return nil, err
	}
	text := row.Value
	if f.seal != nil {
		if text, err = f.seal.Open(text, []byte(cmp.Or(f.about, row.Key))); err != nil {
			return nil, nil // of another holder, or about another text
		}
	}
	value := new(T)
	if err := json.Unmarshal(text, value); err != nil {
		return nil, fmt.Errorf("row on %s: %w", row.Table, err)
	}
	return value, nil
}
