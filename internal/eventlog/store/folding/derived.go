// Derived tables follow from the states of objects: claims, the groups that objects are in, and what they are found by.

package folding

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// table is one of them: what an object should have in it, and what there is.
type table struct {
	name   string
	called string // in the words of a report
	read   string // gives object_id first
	scan   func(scan engine.Scanner) (id string, row string, err error)
	want   func(f event.Folded) []string // rows, in the form that scan gives them
	insert func(f event.Folded) []engine.Statement
}

// Tables are some of these tables.
type Tables []table

// UsualTables are those with rows by object. What objects are found by is in word_blocks besides.
var UsualTables = Tables{
	{name: "claims", called: "claims", read: "SELECT object_id, digest FROM claims", scan: scanBytes, want: claimRows,
		insert: insertClaims},
	{name: "groupings", called: "groups", read: "SELECT object_id, name FROM groupings", scan: scanTexts,
		want: func(f event.Folded) []string { return f.Groups }, insert: insertGroups},
}

// TablesWithWords are the same, and the words that objects are found by until word_blocks has all of them.
var TablesWithWords = append(UsualTables[:len(UsualTables):len(UsualTables)],
	table{name: "words", called: "words", read: "SELECT object_id, org_id, word FROM words", scan: scanWords,
		want: wordRows, insert: insertWords})

// Names are the names of the tables.
func (all Tables) Names() (names []string) {
	for _, t := range all {
		names = append(names, t.name)
	}
	return names
}

// atOnce is how many objects are looked at together.
const atOnce = 50

// Insert inserts what an object has in them.
func (all Tables) Insert(ctx context.Context, x engine.Executor, f event.Folded) error {
	for _, t := range all {
		if err := engine.ExecAll(ctx, x, t.insert(f)); err != nil {
			return err
		}
	}
	return nil
}

// Replacing gives the statements after which objects have in these tables what they should. What is right stays as it
// is.
func (all Tables) Replacing(ctx context.Context, x engine.Executor,
	objects []event.Folded) (statements []engine.Statement, err error) {
	for part := range slices.Chunk(objects, atOnce) {
		ids := make([]string, len(part))
		for i, f := range part {
			ids[i] = f.Record.ID
		}
		for _, t := range all {
			have, err := t.rows(ctx, x, ids)
			if err != nil && !errors.Is(err, engine.ErrOtherType) {
				return nil, err
			}
			var inserts []engine.Statement
			for _, f := range part {
				if err == nil && slices.Equal(have[f.Record.ID], sorted(t.want(f))) {
					continue
				}
				statements = append(statements,
					engine.Statement{SQL: "DELETE FROM " + t.name + " WHERE object_id = ?", Args: []any{f.Record.ID}})
				inserts = append(inserts, t.insert(f)...)
			}
			statements = append(statements, inserts...) // a name may go from one of them to another
		}
	}
	return statements, nil
}

// Different names the tables whose rows of an object are not as they should be, in the words of a report.
func (all Tables) Different(ctx context.Context, x engine.Executor, f event.Folded) (different []string, err error) {
	for _, t := range all {
		have, err := t.rows(ctx, x, []string{f.Record.ID})
		switch {
		case err != nil && !errors.Is(err, engine.ErrOtherType):
			return nil, err
		case err != nil || !slices.Equal(have[f.Record.ID], sorted(t.want(f))):
			different = append(different, t.called)
		}
	}
	return different, nil
}

// rows gives what objects have in a table, in order.
func (t table) rows(ctx context.Context, x engine.Executor, ids []string) (map[string][]string, error) {
	n := 1
	if len(ids) > 1 {
		n = atOnce // always as many, so that it is one statement
	}
	have := map[string][]string{}
	err := x.Query(ctx, t.read+" WHERE object_id IN ("+engine.Placeholders(n)+")", engine.Padded(ids, n),
		func(scan engine.Scanner) error {
			id, row, err := t.scan(scan)
			have[id] = append(have[id], row)
			return err
		})
	for _, rows := range have {
		slices.Sort(rows)
	}
	return have, err
}

func sorted(rows []string) []string { return slices.Sorted(slices.Values(rows)) }

func scanTexts(scan engine.Scanner) (id, row string, err error) {
	err = scan(engine.Exactly([]any{&id, &row})...)
	return id, row, err
}

func scanBytes(scan engine.Scanner) (id, row string, err error) {
	var digest []byte
	err = scan(engine.Exactly([]any{&id, &digest})...)
	return id, string(digest), err
}

func scanWords(scan engine.Scanner) (id, row string, err error) {
	var org, word string
	err = scan(engine.Exactly([]any{&id, &org, &word})...)
	return id, wordRow(org, word), err
}

func claimRows(f event.Folded) (rows []string) {
	for _, c := range f.Claims {
		digest := c.Digest()
		rows = append(rows, string(digest[:]))
	}
	return rows
}

func insertClaims(f event.Folded) (statements []engine.Statement) {
	for _, row := range claimRows(f) {
		statements = append(statements,
			engine.Statement{SQL: "INSERT INTO claims (digest, object_id) VALUES (?, ?)",
				Args: []any{[]byte(row), f.Record.ID}})
	}
	return statements
}

func insertGroups(f event.Folded) (statements []engine.Statement) {
	for _, group := range f.Groups {
		statements = append(statements, engine.Statement{SQL: engine.InsertGrouping, Args: []any{group, f.Record.ID}})
	}
	return statements
}

func wordRow(org, word string) string { return org + " " + word }

func wordRows(f event.Folded) (rows []string) {
	for _, word := range f.Words {
		rows = append(rows, wordRow(f.Record.Org, word))
	}
	return rows
}

// insertWords: there are many, and an upgrade inserts those of every user: one statement for all of them.
func insertWords(f event.Folded) []engine.Statement {
	if len(f.Words) == 0 {
		return nil
	}
	var rows []any
	for _, word := range f.Words {
		rows = append(rows, f.Record.ID, word, f.Record.Org)
	}
	return []engine.Statement{{SQL: "INSERT INTO words (object_id, word, org_id) VALUES (?, ?, ?)" +
		strings.Repeat(", (?, ?, ?)", len(f.Words)-1), Args: rows}}
}

// DerivedCounts are numbers of rows, by table.
type DerivedCounts map[string]int

// Count counts what an object should have.
func (all Tables) Count(into DerivedCounts, f event.Folded) {
	for _, t := range all {
		into[t.name] += len(t.want(f))
	}
}

// CountStored counts what an object has.
func (all Tables) CountStored(ctx context.Context, x engine.Executor, into DerivedCounts, id string) error {
	for _, t := range all {
		err := x.Query(ctx, "SELECT 1 FROM "+t.name+" WHERE object_id = ?", []any{id}, func(engine.Scanner) error {
			into[t.name]++
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
