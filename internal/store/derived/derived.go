// Package derived is about the tables that follow from the states of objects: claims, the groups that objects are in, and the words that they are found by.
package derived

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/engine"
)

// Tables are the names of these tables.
var Tables = []string{"claims", "groupings", "words"}

// Insert inserts what an object has in them.
func Insert(ctx context.Context, x engine.Executor, f event.Folded) error {
	id := f.Record.ID
	for _, c := range f.Claims {
		digest := c.Digest()
		if err := x.Exec(ctx, "INSERT INTO claims (digest, object_id) VALUES (?, ?)", digest[:], id); err != nil {
			return err
		}
	}
	for _, group := range f.Groups {
		if err := x.Exec(ctx, engine.InsertGrouping, group, id); err != nil {
			return err
		}
	}
	if len(f.Words) == 0 {
		return nil
	}
	// There are many, and an upgrade inserts those of every user: one statement for all of them.
	var rows []any
	for _, word := range f.Words {
		rows = append(rows, id, word, f.Record.Org)
	}
	return x.Exec(ctx, "INSERT INTO words (object_id, word, org_id) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", len(f.Words)-1), rows...)
}

// Delete deletes what an object has in them.
func Delete(ctx context.Context, x engine.Executor, id string) error {
	for _, table := range Tables {
		if err := x.Exec(ctx, "DELETE FROM "+table+" WHERE object_id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// Counts are numbers of rows, by table.
type Counts map[string]int

// Add counts what an object should have.
func (c Counts) Add(f event.Folded) {
	c["claims"] += len(f.Claims)
	c["groupings"] += len(f.Groups)
	c["words"] += len(f.Words)
}

// AddStored counts what an object has.
func (c Counts) AddStored(ctx context.Context, x engine.Executor, id string) error {
	for _, table := range Tables {
		err := x.Query(ctx, "SELECT 1 FROM "+table+" WHERE object_id = ?", []any{id}, func(engine.Scanner) error {
			c[table]++
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Different names the tables whose rows of an object are not as they should be, in the words of a report.
func Different(ctx context.Context, x engine.Executor, f event.Folded) (different []string, err error) {
	for _, part := range []struct {
		name string
		same func(context.Context, engine.Executor, event.Folded) (bool, error)
	}{{"claims", sameClaims}, {"groups", sameGroups}, {"words", sameWords}} {
		same, err := part.same(ctx, x, f)
		switch {
		case err != nil && !errors.Is(err, engine.ErrOtherType):
			return nil, err
		case err != nil || !same:
			different = append(different, part.name)
		}
	}
	return different, nil
}

func sameClaims(ctx context.Context, x engine.Executor, f event.Folded) (bool, error) {
	var have, want [][]byte
	err := x.Query(ctx, "SELECT digest FROM claims WHERE object_id = ?", []any{f.Record.ID}, func(scan engine.Scanner) error {
		have = append(have, nil)
		return scan(engine.Exactly([]any{&have[len(have)-1]})...)
	})
	for _, c := range f.Claims {
		digest := c.Digest()
		want = append(want, digest[:])
	}
	slices.SortFunc(have, bytes.Compare)
	slices.SortFunc(want, bytes.Compare)
	return slices.EqualFunc(have, want, bytes.Equal), err
}

func sameGroups(ctx context.Context, x engine.Executor, f event.Folded) (bool, error) {
	var have []string
	err := x.Query(ctx, "SELECT name FROM groupings WHERE object_id = ?", []any{f.Record.ID}, func(scan engine.Scanner) error {
		have = append(have, "")
		return scan(engine.Exactly([]any{&have[len(have)-1]})...)
	})
	slices.Sort(have)
	return slices.Equal(have, slices.Sorted(slices.Values(f.Groups))), err
}

func sameWords(ctx context.Context, x engine.Executor, f event.Folded) (bool, error) {
	var have []string
	same := true
	err := x.Query(ctx, "SELECT word, org_id FROM words WHERE object_id = ? ORDER BY word", []any{f.Record.ID}, func(scan engine.Scanner) error {
		have = append(have, "")
		var org string
		err := scan(engine.Exactly([]any{&have[len(have)-1], &org})...)
		same = same && org == f.Record.Org
		return err
	})
	return same && slices.Equal(have, f.Words), err
}
